"""Operators that write into an argument beside the first (running statistics, noise): a trace gives all of their results, and goes on with
the operands it had."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ops import OPS
from irtool.ops.arrays import seeded
from irtool.ops.tensor import call
from tests.shared_memory import calls, schema_of


def writes_elsewhere(name: str) -> bool:
    """Does an overload write, but not into its first argument?"""
    schema = schema_of(name)
    first = schema.arguments[0].alias if schema.arguments else None
    return schema.is_mutable and not (first is not None and first.is_write)


NAMES = [name for name in OPS if name.startswith("aten::") and writes_elsewhere(name)]


def flat(value: Any) -> list[Any]:
    """The arrays of a result."""
    return [each for item in value for each in flat(item)] if isinstance(value, list | tuple) else [np.asarray(value)]


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_gives_what_the_function_gives(name: str) -> None:
    compared = 0
    for which, args in calls(name):
        places = [place for place, value in enumerate(args) if isinstance(value, np.ndarray)]

        def function(*tensors: Any, args: list[Any] = args, places: list[int] = places) -> Any:
            mine = list(args)
            for place, tensor in zip(places, tensors, strict=True):
                mine[place] = tensor
            with seeded(3):
                result = call(name, tuple(mine), {})
            return [result, [tensor * 1 for tensor in tensors]]

        def given(args: list[Any] = args, places: list[int] = places) -> list[Any]:
            return [args[place].copy() for place in places]

        try:
            expected = flat(function(*map(irtool.Tensor, given())))
        except irtool.Error:        # another dtype or number, which the operator refuses
            continue
        compared += 1
        found = irtool.run(irtool.trace(function, given()), given(), seed=3)
        for one, other in zip(flat(found), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=f"{name} {which}")
    assert compared > 3 and len(NAMES) > 2


def test_a_tensor_is_copied_to_itself_under_every_layer() -> None:
    """Even one that is repeated in memory: such a copy writes nothing, so it is not refused."""
    def function(x: Any) -> Any:
        whole = call("aten::expand", (x * 2, [2, 3], False), {})
        return call("aten::copy_", (whole, whole, False), {})

    x = np.arange(3.0)
    expected = np.stack([x * 2, x * 2])
    for found in (function(irtool.Tensor(x)), irtool.vmap(function)(x[None])[0], irtool.jit(function)(x),
                  irtool.jvp(function, (x,), (x,))[0]):
        np.testing.assert_array_equal(np.asarray(found), expected)
    np.testing.assert_array_equal(irtool.grad(lambda x: function(x).sum())(x), [4, 4, 4])
