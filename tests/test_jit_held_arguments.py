"""Arguments of a jitted function that are neither arrays nor numbers: after any change of them jit gives what eager gives."""
from __future__ import annotations

import enum
import types
from collections import deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

X = np.array([1, 2, 3])
IMAGES = np.ones((2, 1, 8, 8), np.float32)
MODEL = Path(__file__).parent.parent / "examples" / "model.pt"
SCALES = {"value": 2}


class Box:
    """An object with an attribute."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def times(self, x: Any) -> Any:
        return x * self.value


@dataclass(frozen=True)
class Frozen:
    """Equal and hashed by value."""

    value: Any


def shown(result: Any) -> Any:
    """A result with dtypes and classes, to be compared."""
    if isinstance(result, irtool.Tensor):
        return str(result.array.dtype), result.array.tolist()
    return [shown(each) for each in result] if isinstance(result, list) else repr(result)


def scaled_by(value: Any) -> Callable[[Any], Any]:
    """A function that reads a variable which an attribute of it can change."""
    def scaled(x: Any) -> Any:
        return x * scaled.scale     # type: ignore[attr-defined]
    scaled.scale = value            # type: ignore[attr-defined]
    return scaled


BOX = Box(2)
CHANGED: dict[str, tuple[Any, Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "attribute": (Box(2), lambda x, box: x * box.value, lambda box: setattr(box, "value", 3.5)),
    "item of an attribute": (Box([2]), lambda x, box: x * box.value[0], lambda box: box.value.append(box.value.pop() + 1.5)),
    "array of an attribute": (Box(np.ones(3)), lambda x, box: x * box.value, lambda box: setattr(box, "value", np.full(3, 2.0))),
    "namespace": (types.SimpleNamespace(value=2), lambda x, box: x * box.value, lambda box: setattr(box, "value", 3)),
    "set": ({1}, lambda x, some: x * len(some), lambda some: some.add(2)),
    "deque": (deque([2, 3]), lambda x, some: x * some[0], lambda some: some.rotate()),
    "bytes": (bytearray(b"ab"), lambda x, some: x * some[0], lambda some: some.reverse()),
    "function": (scaled_by(2), lambda x, f: f(x), lambda f: setattr(f, "scale", 3.5)),
    "method": (BOX.times, lambda x, f: f(x), lambda f: setattr(BOX, "value", 3.5)),
    "partial": (partial(Box.times, Box(2)), lambda x, f: f(x), lambda f: setattr(f.args[0], "value", 3.5)),
    "in a dict": ({"a": Box(2)}, lambda x, each: x * each["a"].value, lambda each: setattr(each["a"], "value", 3.5)),
    "in a frozen object": (Frozen(Box(2)), lambda x, each: x * each.value.value, lambda each: setattr(each.value, "value", 3.5)),
}


@pytest.mark.parametrize("name", CHANGED)
def test_contents_of_arguments_may_change(name: str) -> None:
    argument, function, change = CHANGED[name]
    fast = irtool.jit(function)
    for _ in range(3):
        for _ in range(2):
            assert shown(fast(X, argument)) == shown(function(irtool.Tensor(X), argument))
        assert fast.variants.why == ""
        change(argument)


EQUAL: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "key": (lambda x, each: [x * key for key in each], lambda value: {value: X}),
    "key in a tuple": (lambda x, each: [x * key[0] for key in each], lambda value: {(value,): X}),
    "set": (lambda x, each: [x * key for key in each], lambda value: frozenset([value])),
    "frozen object": (lambda x, each: x * each.value, Frozen),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_values_of_other_classes_give_other_results(name: str) -> None:
    function, made = EQUAL[name]
    fast = irtool.jit(function)
    for value in (1, 1.0, True, 0.0, -0.0):
        for _ in range(2):
            assert shown(fast(X, made(value))) == shown(function(irtool.Tensor(X), made(value)))
        assert fast.variants.why == ""
    assert len(fast.variants) == 5


def test_a_generator_that_is_an_argument_draws_in_each_call() -> None:
    fast = irtool.jit(lambda x, generator: x * generator.random())
    drawn, expected = np.random.default_rng(0), np.random.default_rng(0)
    for _ in range(3):
        assert fast(X, drawn).tolist() == pytest.approx((X * expected.random()).tolist())
    assert "traced in each call" in fast.variants.why


def test_variants_for_such_arguments_are_counted_and_forgotten() -> None:
    box = Box(2)
    fast = irtool.jit(lambda x, box: box.times(torch.neg(x)))
    fast(X, box), fast(X, Box(3)), fast(X.astype(float), box)
    assert len(fast.variants) == len(fast.graphs()) == 3
    assert "3 signatures" in repr(fast)
    fast.clear()
    assert len(fast.variants) == 0
    assert fast(X, box).tolist() == [-2, -4, -6]


def of_class_with_code(name: str) -> Any:
    """An argument that is compared by value, of a class with a method that reads what changes."""
    def times(self: Any, x: Any) -> Any:
        return x * SCALES["value"]
    if name == "enumeration":
        return enum.Enum("Named", {"FIRST": 1}, type=type("Mixed", (), {"times": times, "__module__": __name__})).FIRST      # type: ignore
    if name == "named tuple":
        return type("Pair", (namedtuple("Pair", "first"),), {"times": times, "__module__": __name__})(X)
    if name == "frozen object":
        return type("Frozen", (Frozen,), {"times": times, "__module__": __name__})(1)
    return type("Own", ({"text": str, "float": float, "int": int}[name],), {"times": times, "__module__": __name__})(1)


@pytest.mark.parametrize("name", ["enumeration", "named tuple", "frozen object", "text", "float", "int"])
def test_methods_of_arguments_read_what_changes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    argument = of_class_with_code(name)
    fast = irtool.jit(lambda x, each: each.times(x))
    for scale in (2, 3.5, 2):
        monkeypatch.setitem(SCALES, "value", scale)
        for _ in range(2):
            assert shown(fast(X, argument)) == shown(irtool.Tensor(X) * scale)
        assert fast.variants.why == ""


@pytest.mark.parametrize("way", ["captured", "method", "argument"])
def test_attributes_of_modules_of_archives_may_change(way: str) -> None:
    module = irtool.load(MODEL)
    forward = module.forward
    function = {"captured": lambda x: module(x), "method": lambda x: forward(x), "argument": lambda x, each: each(x)}[way]
    more = (module,) if way == "argument" else ()
    fast = irtool.jit(function)
    for bias in (1, 5, 9):
        module.head.bias = np.full(3, bias, np.float32)
        for _ in range(2):
            np.testing.assert_allclose(fast(IMAGES, *more), module(IMAGES), rtol=1e-6)
        assert fast.variants.why == ""
    module.train()
    with pytest.raises(irtool.UnsupportedError, match=r"call eval\(\) first"):
        fast(IMAGES, *more)
    module.eval()
    np.testing.assert_allclose(fast(IMAGES, *more), module(IMAGES), rtol=1e-6)
