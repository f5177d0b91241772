"""vmap is a loop: for every expression that campaigns draw, on operands without dimensions, without elements, and of unequal ranks."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from fuzz import sampled, tables
from fuzz.values import elements

TABLES = (sampled.EXACT, sampled.SMOOTH, sampled.REDUCE, sampled.CHOICE, sampled.MOVE, tables.SMOOTH, tables.EXACT, tables.SMOOTH_BOTH,
          tables.EXACT_BOTH, tables.VIEWS, tables.REDUCE, tables.EXACT_REDUCE, tables.MORE_SMOOTH, tables.MORE_BOTH, tables.MORE_EXACT)
SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()), ((1,), ()), ((), (1,)), ((0,), (0,)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((1, 1), (1,)), ((3, 3), (3, 3)))
ROWS = 3


@pytest.mark.parametrize("which", [(True, True), (True, False), (False, True)], ids=["both", "first", "second"])
@pytest.mark.parametrize("number", range(len(TABLES)))
def test_vmap_is_a_loop(number: int, which: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(number)
    compared = 0
    for text, _ in TABLES[number]:
        if which == (False, True) and "{b}" not in text:
            continue
        function = function_of(text)
        for shapes in SHAPES:
            dtype = rng.choice(["float64", "float32", "int64"])
            operands = [elements(rng, (ROWS, *shape) if is_batched else shape, dtype) for shape, is_batched in zip(shapes, which)]
            rows = loop(function, operands, which)
            where = f"{text} of {dtype} {shapes}"
            try:
                got = np.asarray(irtool.vmap(function, in_dims=tuple(0 if each else None for each in which))(*map(tensor, operands)))
            except (irtool.Error, LookupError, ArithmeticError) as error:
                assert rows is None or isinstance(error, irtool.UnsupportedError), where
                continue
            assert rows is not None, f"{where} is refused row by row"
            assert (got.dtype, got.shape) == (rows.dtype, rows.shape), where
            assert np.allclose(got, rows, rtol=1e-4, atol=1e-5, equal_nan=True), where
            compared += 1
    assert compared or which == (False, True)


def loop(function: Callable[..., Any], operands: list[Any], which: tuple[bool, bool]) -> Any:
    """Row by row; None where a row raises, or rows differ in shape."""
    try:
        rows = [np.asarray(function(*[tensor(each[row] if is_batched else each) for each, is_batched in zip(operands, which)]))
                for row in range(ROWS)]
    except (irtool.Error, LookupError, ArithmeticError):
        return None
    return np.stack(rows) if len({(row.shape, row.dtype) for row in rows}) == 1 else None


def function_of(text: str) -> Callable[..., Any]:
    """The expression as a function of two tensors."""
    code = compile(text.format(a="a", b="b", n=2, r=0.5), "<expression>", "eval")
    return lambda a, b: eval(code, {"torch": irtool.torch, "F": irtool.torch.nn.functional, "a": a, "b": b})  # an expression of the tables


def tensor(array: Any) -> Any:
    """A tensor of its own."""
    return irtool.torch.tensor(np.array(array))


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    """Means of nothing are NaN here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
