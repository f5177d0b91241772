"""vmap over operands of ranks that the samples do not have: as the operator at each place, which refuses most of them."""
from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.dispatch import current, vmap
from irtool.dispatch.batch_rules import rule_of
from irtool.dispatch.batched import draws
from irtool.ops import OPS
from irtool.ops.call import overload
from irtool.ops.tensor import Tensor
from tests.laws import overload_samples
from tests.test_batching import NOT_BATCHED, at, check, handles, leaves, replaced, result_leaves, variants

NAMES = [name for name in OPS if rule_of(name) is not None and not overload(name).schema.is_mutable and overload_samples(name)]
PART = 20


def of_rank(array: Any, rank: int) -> Any:
    """The first part of an array with fewer dimensions, or the array with more of extent 1."""
    while array.ndim > rank:
        array = array[0]
    return np.array(array[(None,) * (rank - array.ndim)])


def arguments(name: str) -> list[Any]:
    """Those of the overload's first sample."""
    args: list[Any] = overload_samples(name)[0].values[1].arguments(OPS[name].schemas[OPS[name].names.index(name)])
    return args


def is_refused(name: str, args: list[Any]) -> bool:
    """Does the operator refuse the arguments alone?"""
    try:
        overload(name)([np.array(each) if isinstance(each, np.ndarray) else each for each in args])
    except irtool.Error:
        return True
    return False


def batched(name: str, args: list[Any], path: tuple[int, ...]) -> None:
    """The operator under vmap over one argument."""
    vmap(lambda given: [each for each in result_leaves(current().apply(name, handles(replaced(args, {path: given}))))
                        if isinstance(each, Tensor)])(np.stack(variants(at(args, path), path), 0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, len(NAMES), PART))
def test_operands_of_other_ranks_under_vmap(first: int) -> None:
    for name in NAMES[first:first + PART]:
        args = arguments(name)
        if draws(name, args):
            continue
        for path in leaves(args):
            array = at(args, path)
            if array.dtype.kind not in "fc" or 0 in array.shape or path[0] in NOT_BATCHED.get(name, ()):
                continue
            for rank in {0, array.ndim - 1, array.ndim + 1, 4} - {-1, array.ndim}:
                other = replaced(args, {path: of_rank(array, rank)})
                if is_refused(name, other):
                    with np.errstate(all="ignore"), pytest.raises(irtool.Error):
                        batched(name, other, path)
                        pytest.fail(f"{name} takes argument {path} of rank {rank} under vmap alone")
                else:
                    try:
                        check(name, other, (path,), [0])
                    except irtool.Error:        # a refusal, in words
                        continue


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, len(NAMES), PART))
def test_all_operands_of_one_rank_under_vmap(first: int) -> None:
    """As at each place, or refused as not supported: an error of the operator would say that a place is wrong."""
    for name in NAMES[first:first + PART]:
        args = arguments(name)
        paths = [path for path in leaves(args) if at(args, path).dtype.kind in "fc" and 0 not in at(args, path).shape]
        given = tuple([path for path in paths if path[0] not in NOT_BATCHED.get(name, ())])
        for rank in (0, 1, 2) if given and not draws(name, args) else ():
            other = replaced(args, {path: of_rank(at(args, path), rank) for path in paths})
            if not is_refused(name, other):
                with contextlib.suppress(irtool.UnsupportedError):
                    check(name, other, given, [0] * len(given))


@pytest.mark.parametrize("name", ["linalg_solve_ex", "_linalg_solve_ex"])
def test_reports_and_factors_of_a_solver_have_the_dimensions_of_the_matrices(name: str) -> None:
    """Right sides may have more dimensions than the matrices, which are factorized once."""
    operator = getattr(irtool.torch.ops.aten, name)
    a, b = irtool.torch.tensor(4 * np.eye(3) + np.ones((2, 3, 3))), irtool.torch.ones([4, 2, 3, 3], dtype=irtool.torch.float64)
    together = irtool.vmap(operator, (0, None))(a, b)
    rows = [operator(a[place], b) for place in range(2)]
    for got, *wants in zip(together, *rows, strict=True):
        np.testing.assert_allclose(got.array, np.stack([each.array for each in wants]))
