"""Numbers and texts of other classes than Python's own: IntEnum, subclasses of float, NumPy's scalars. Each layer takes their values."""
from __future__ import annotations

from collections.abc import Callable
from enum import Enum, IntEnum, IntFlag, StrEnum
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.ir.builder import Builder

X = np.array([1.0, 2.0])


class Level(IntEnum):
    LOW = 2
    HIGH = 3


class Flag(IntFlag):
    SET = 2


class Whole(int):
    def __repr__(self) -> str:
        return "whole"


class Real(float):
    def __repr__(self) -> str:
        return "real"


class Part(float, Enum):
    DOUBLE = 2.0


class Both(complex):
    pass


class Side(StrEnum):
    LEFT = "left"


NUMBERS = (Level.LOW, Flag.SET, Whole(2), Real(2.0), Part.DOUBLE, np.float64(2), np.int64(2), np.float32(2), 2, 2.0)
WAYS: dict[str, Callable[[Any], Any]] = {
    "argument of jit": lambda n: irtool.jit(lambda x, n: x * n)(X, n),
    "captured by jit": lambda n: irtool.jit(lambda x: x * n)(X),
    "in a call": lambda n: irtool.jit(lambda x, n: torch.add(x, x, alpha=n) - x)(X, n),
    "captured in a call": lambda n: irtool.jit(lambda x: torch.add(x, x, alpha=n) - x)(X),
    "argument of trace": lambda n: irtool.run(irtool.trace(lambda x, n: x * n, [X, n]), [X, n] if isinstance(n, np.generic) else [X])[0],
    "captured by trace": lambda n: irtool.run(irtool.parse(str(irtool.trace(lambda x: x * n, [X]))), [X])[0],
    "vmap": lambda n: irtool.vmap(lambda x: x * n)(X),
    "grad": lambda n: irtool.grad(lambda x: (x * x * n).sum())(X) / 2,
    "jit of grad": lambda n: irtool.jit(irtool.grad(lambda x, n: (x * x * n).sum()))(X, n) / 2,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda each: type(each).__name__)
def test_a_number_of_another_class_counts_as_its_value(number: Any, way: str) -> None:
    found = np.asarray(WAYS[way](number))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, X * 2)


@pytest.mark.parametrize("one", [Whole, Real])
def test_numbers_of_equal_text_are_different_constants(one: Any) -> None:
    a, b = one(2), one(3)
    np.testing.assert_array_equal(np.asarray(irtool.jit(lambda x: x * a + b)(X)), X * 2 + 3)
    np.testing.assert_array_equal(np.asarray(irtool.jit(lambda x, a, b: x * a + b)(X, a, b)), X * 2 + 3)
    np.testing.assert_array_equal(irtool.run(irtool.trace(lambda x: x * a + b, [X]), [X])[0], X * 2 + 3)


def test_members_of_an_enum_are_compared_in_each_call() -> None:
    f = irtool.jit(lambda x, level: x if level is Level.LOW else -x * level)
    np.testing.assert_array_equal(np.asarray(f(X, Level.LOW)), X)
    np.testing.assert_array_equal(np.asarray(f(X, Level.HIGH)), -3 * X)
    assert f(X, Level.LOW).shape == [2]
    level = Level.LOW
    g = irtool.jit(lambda x: (x * level, level))
    assert g(X)[1] is Level.LOW
    level = Level.HIGH
    np.testing.assert_array_equal(np.asarray(g(X)[0]), X * 3)


def test_numbers_in_lists_and_texts() -> None:
    np.testing.assert_array_equal(np.asarray(irtool.jit(lambda x: x.reshape([Level.LOW, Whole(1)]))(X)), X[:, None])
    np.testing.assert_array_equal(np.asarray(irtool.jit(lambda x: torch.searchsorted(x, x, side=Side.LEFT))(X)), [0, 1])
    np.testing.assert_array_equal(np.asarray(irtool.jit(lambda x: x * Both(2 + 1j))(X)), X * (2 + 1j))
    graph = irtool.trace(lambda x: x.reshape(Level.LOW, 1), [X])
    np.testing.assert_array_equal(irtool.run(irtool.parse(str(graph)), [X])[0], X[:, None])


@pytest.mark.parametrize(("value", "text"), [
    (Level.LOW, "value=2"), (Part.DOUBLE, "value=2."), (Side.LEFT, 'value="left"'), ([Level.LOW, Whole(3)], "value=[2, 3]"),
    ((Real(1.5), "a"), "1.5"), (True, "value=1")])
def test_constants_of_graphs_are_pythons_numbers(value: Any, text: str) -> None:
    graph = irtool.parse("graph(%x : Tensor):\n  return (%x)\n").graph()
    build = Builder(graph)
    build.at_end(graph.block)
    graph.block.set_outputs([build.constant(value)])
    assert text in str(graph)
    assert str(irtool.parse(str(graph))) == str(graph)


def test_gradients_take_true_for_one() -> None:
    """Formulas do arithmetic on numbers, and TorchScript has none on bools."""
    x = np.array([0.5, 1.25, 2.0])
    texts = """x ** {}; torch.float_power({}, x); torch.celu(x, {}); torch.dist(x, -x, p={}); torch.lerp(x, x * x, {}); x.norm(p={});
        torch.gradient(x, spacing={})[0]; x.std(correction={}); torch.renorm(x[None], 2, 0, {}); torch.xlogy({}, x)"""
    for text in texts.split(";"):
        one, other = (np.asarray(irtool.grad(lambda x: eval(text.strip().format(number), {"torch": torch, "x": x}).sum())(x))   # noqa: B023
                      for number in (True, 1))
        assert np.array_equal(one, other), text
    assert irtool.hessian(lambda x: (x ** True).sum())(x).tolist() == np.zeros((3, 3)).tolist()
