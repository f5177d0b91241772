"""Operators on lists of tensors of several dtypes give under vmap what a loop gives, dtypes included."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

OPERATORS = {
    "cat": lambda xs: torch.cat(xs), "stack": lambda xs: torch.stack(xs), "hstack": lambda xs: torch.hstack(xs),
    "vstack": lambda xs: torch.vstack(xs), "dstack": lambda xs: torch.dstack(xs), "column_stack": lambda xs: torch.column_stack(xs),
    "block_diag": lambda xs: torch.block_diag(*xs), "broadcast_tensors": lambda xs: torch.broadcast_tensors(*xs),
    "pad_sequence": lambda xs: torch.ops.aten.pad_sequence(xs, False, 0.5),
    "pad_sequence to the left": lambda xs: torch.ops.aten.pad_sequence(xs, True, 2.0, "left"),
    "_chunk_cat": lambda xs: torch.ops.aten._chunk_cat(xs, 0, 2),
    "flatten_dense_tensors": lambda xs: torch.ops.aten.flatten_dense_tensors(xs),
    "cartesian_prod": lambda xs: torch.cartesian_prod(*[each[0] for each in xs]),
    "meshgrid": lambda xs: torch.meshgrid([each[0] for each in xs]),
    "atleast_3d": lambda xs: torch.atleast_3d(*xs),
}
DTYPES = [("int32", "float64"), ("float64", "int32"), ("float32", "float64"), ("bool", "float32"), ("complex64", "float64")]


def outcome(function: Any, *arrays: Any) -> Any:
    """Results as a list of arrays; None where the operator refuses the operands."""
    try:
        result = function(*arrays)
    except irtool.Error:
        return None
    return [np.asarray(each.array) for each in (result if isinstance(result, list | tuple) else [result])]


@pytest.mark.parametrize("dtypes", DTYPES, ids=" ".join)
@pytest.mark.parametrize("name", OPERATORS)
def test_a_list_of_several_dtypes(name: str, dtypes: tuple[str, str]) -> None:
    rng = np.random.default_rng(3)
    whole = [rng.integers(-4, 5, (3, 2, 3)).astype(dtype) for dtype in dtypes]
    for both in (True, False):
        def function(a: Any, b: Any = whole[1][0]) -> Any:
            return OPERATORS[name]([a, torch.tensor(b) if isinstance(b, np.ndarray) else b])

        batches = whole if both else whole[:1]
        rows = [outcome(function, *[torch.tensor(each[row]) for each in batches]) for row in range(3)]
        got = outcome(irtool.vmap(function), *map(torch.tensor, batches))
        if rows[0] is None or got is None:
            assert rows[0] is None and got is None
            continue
        for place, result in enumerate(got):
            want = np.stack([row[place] for row in rows])
            assert result.dtype == want.dtype
            np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize("large", ["float64", "int64", "complex128"])
@pytest.mark.parametrize("small", ["float32", "int32", "complex64", "bool"])
@pytest.mark.parametrize("name", ["block_diag", "atleast_3d", "broadcast_tensors"])
def test_numbers_of_another_dtype_beside_matrices(name: str, small: str, large: str) -> None:
    """A tensor without dimensions counts less in promotion; under vmap it has one on the layer below."""
    numbers, matrices = np.arange(3).astype(large), np.ones((3, 2, 2), small)
    for order in (1, -1):
        def function(*xs: Any, order: int = order) -> Any:
            return OPERATORS[name](list(xs)[::order])
        rows = [outcome(function, torch.tensor(numbers[row]), torch.tensor(matrices[row])) for row in range(3)]
        got = outcome(irtool.vmap(function), torch.tensor(numbers), torch.tensor(matrices))
        assert got is not None
        for place, result in enumerate(got):
            want = np.stack([row[place] for row in rows])
            assert result.dtype == want.dtype
            np.testing.assert_array_equal(result, want)
