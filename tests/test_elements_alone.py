"""An element of a pointwise result is the same, bit for bit, whatever tensor it is in: alone, broadcast, spread in memory or in a plan."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ir.schema import schemas
from irtool.ops import OPS
from irtool.ops.call import call_op
from irtool.ops.facts import facts_of_overload

VALUES = (0.5, -1.0, 2.0, 3.0, -0.0, 0.0, np.inf, -np.inf, np.nan, 7.25, 0.3, -4.0, 1.0, -2.0, 1 / 3, 90.0)
"""What has rules of its own, or short cuts in NumPy."""

EITHER = ("aten::fmax", "aten::fmin")
"""Of 0.0 and -0.0 they give either, as in C."""


def tensors_of(name: str) -> int:
    """How many operands an overload has, all of them tensors; 0 if it has others that must be given."""
    kind, _, variant = name.partition(".")
    schema = next((each for each in schemas(kind) if each.name == name), None)
    needed = [] if schema is None else [each for each in schema.arguments if not each.has_default]
    return len(needed) if all(each.type.key == "Tensor" for each in needed) else 0


POINTWISE = sorted(name for name in OPS if name.startswith("aten::") and facts_of_overload(name).is_pointwise and tensors_of(name) in (1, 2)
                   and not name.partition(".")[0].endswith("_"))


def same_bits(one: Any, other: Any) -> bool:
    """Are two arrays equal, with the signs of zeros?"""
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc") and (
        one.dtype.kind != "f" or bool((np.signbit(one) == np.signbit(other))[~np.isnan(one)].all()))


def operands(name: str, dtype: str) -> list[Any]:
    """All pairs of VALUES, for an operator of two operands; else all of them."""
    rows = np.array(list(product(VALUES, VALUES)), dtype).T
    return [np.ascontiguousarray(row) for row in rows][:tensors_of(name)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_element_is_the_same_alone_and_among_others(dtype: str) -> None:
    count = 0
    for name in POINTWISE:
        whole = operands(name, dtype)
        try:
            wanted = call_op(name, whole)
            if isinstance(wanted, tuple):
                continue
            singles = [[each[i:i + 1] for each in whole] for i in range(whole[0].size)]
            results = {
                "alone": np.concatenate([call_op(name, each) for each in singles]),
                "without dimensions": np.stack([call_op(name, [each.reshape(()) for each in single]) for single in singles]),
                "spread": call_op(name, [np.repeat(each, 2)[::2] for each in whole]),
                "repeated": np.concatenate([call_op(name, [*single[:-1], np.resize(single[-1], 3)])[:1] for single in singles])}
            if len(whole) == 2:
                n = len(VALUES)
                columns = np.array(VALUES, dtype)
                results["a row for all"] = call_op(name, [columns[:, None], columns]).ravel()
                results["one exponent for all"] = np.stack([call_op(name, [columns, columns[i:i + 1]]) for i in range(n)], 1).ravel()
        except (irtool.Error, TypeError, ValueError):
            continue        # other operands
        count += 1
        for way, result in results.items():
            assert same_bits(result, wanted) or name in EITHER and np.array_equal(result, wanted, equal_nan=True), (name, way)
    assert count > 60


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (16,), (16, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["pow", "atan2", "float_power", "remainder", "hypot", "div", "xlogy", "fmod"])
def test_plans_write_over_operands_without_another_result(kind: str, dtype: str, shape: tuple[int, ...]) -> None:
    """The operands are temporary, so that the plan may write the result over them."""
    module = irtool.from_script(f"def f(x: Tensor, y: Tensor):\n    a = torch.{kind}(x * 1, y * 1)\n"
                                f"    return a * 1, torch.{kind}(x * 1, y), torch.{kind}(x, torch.ones_like(x) * 0.5)\n")
    executors = [irtool.compile(module, native=False), irtool.compile(module, native=False, profiling=True)]
    for x, y in product(VALUES, VALUES[:5]):
        inputs = [np.full(shape, x, dtype), np.full(shape, y, dtype)]
        (wanted,) = irtool.run(module, inputs, interpret=True)
        for executor in executors:
            (got,) = executor.run(inputs)
            assert all(map(same_bits, got, wanted)), (x, y)
