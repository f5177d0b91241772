"""Choosing without branches gives what np.where gives, to the bit."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ops.select import LEAST, select

DTYPES = ("float16", "float32", "float64", "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8", "bool")


def odd_values(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Every kind of number a dtype has: random bits."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]


@pytest.mark.parametrize("shape", [(3,), (LEAST,), (64, 100)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_those_of_where(dtype: str, shape: tuple[int, ...]) -> None:
    condition = np.random.default_rng(0).random(shape) > 0.5
    first, second = odd_values(dtype, shape, 1), odd_values(dtype, shape, 2)
    zero, one, row = np.zeros((), dtype), np.ones((), dtype), first[..., :1]
    pairs: list[tuple[Any, Any]] = [(first, second), (first, zero), (zero, second), (one, second), (first, dtype != "bool" and 0),
                                    (row, second), (first, row), (zero, zero)]
    for a, b in pairs:
        want = np.where(condition, a, b)
        assert select(condition, a, b, np.empty(shape, dtype)).tobytes() == want.astype(dtype).tobytes()


@pytest.mark.parametrize("place", [0, 1, None])
def test_the_result_may_lie_in_an_operand(place: int | None) -> None:
    shape = (40, 100)
    condition = np.random.default_rng(0).random(shape) > 0.5
    for zero_at in (0, 1, None):
        operands: list[Any] = [odd_values("float32", shape, 1), odd_values("float32", shape, 2)]
        if zero_at is not None:
            operands[zero_at] = np.float32(0)
        if place is None or place == zero_at:
            continue
        want = np.where(condition, operands[0], operands[1])
        select(condition, operands[0], operands[1], operands[place])
        assert operands[place].tobytes() == want.tobytes()


def test_rows_and_columns() -> None:
    """Operands and results that do not lie row by row, and a condition that is broadcast."""
    a, b = odd_values("float32", (60, 80), 1).T, odd_values("float32", (80, 60), 2)
    condition = (np.arange(80) % 3 == 0)[:, None]
    out = np.empty((60, 80), np.float32).T
    assert select(condition, a, b, out).tobytes() == np.where(condition, a, b).tobytes()


@pytest.mark.parametrize("shapes", [((64, 64), (64,), (64,)), ((64, 1), (1, 64), (64,)), ((64, 1), (1, 1), (64, 64)), ((64, 64), (), ())])
def test_operands_smaller_than_the_result(shapes: tuple[tuple[int, ...], ...]) -> None:
    condition = np.random.default_rng(0).random(shapes[0]) > 0.5
    first, second = np.full(shapes[1], 2, np.float32), np.arange(1, 1 + np.prod(shapes[2]), dtype=np.float32).reshape(shapes[2])
    want = np.where(condition, first, second)
    assert select(condition, first, second, np.empty((64, 64), np.float32)).tobytes() == want.tobytes()
    graph = irtool.parse("graph(%c : Tensor, %x : Tensor, %y : Tensor):\n  %r : Tensor = aten::where(%c, %x, %y)\n  return (%r)\n").graph()
    assert irtool.compile(graph)(condition, first, second)[0].tobytes() == want.tobytes()


def test_a_plan_chooses_without_branches() -> None:
    graph = irtool.parse("""graph(%g : Tensor, %x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : Tensor = aten::threshold_backward(%g, %x, %0)
  return (%1)
""").graph()
    g, x = odd_values("float32", (64, 64), 3), odd_values("float32", (64, 64), 4)
    run = irtool.compile(graph, native=False)
    for _ in range(3):
        (found,) = run(g, x)
        assert found.tobytes() == np.where(x <= 0, np.float32(0), g).tobytes()
