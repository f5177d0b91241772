"""What a jitted function reads from outside its arguments is compared in each call: after any change jit gives what eager gives."""
from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.dispatch.tracer import TraceWarning

X = np.array([1.0, -2.0, 3.0])
VALUES: dict[str, tuple[Any, Any]] = {
    "float": (2.0, 3.0), "zeros": (0.0, -0.0), "int and float": (2, 2.0), "bool": (True, False), "array": (np.ones(3), np.full(3, 5.0)),
    "tensor": (irtool.Tensor(np.ones(3)), irtool.Tensor(np.full(3, 5.0))), "sizes": (np.ones(3), np.ones(1)),
    "nothing": (None, 3.0), "function": (lambda x: x + 1, lambda x: x * 3), "text": ("sum", "mean"),
}


class Box:
    """An object with an attribute, a method, a property, and an attribute of its class."""

    scale: Any = None

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def current(self) -> Any:
        return self.value

    def __call__(self, x: Any) -> Any:
        return applied(self.value, x)


def applied(value: Any, x: Any) -> Any:
    """The function or operator that a value names, of x; x times a number or tensor; 1 / x for None."""
    if value is None:
        return 1 / x
    if isinstance(value, str):
        return getattr(x, value)()
    return value(x) if callable(value) else 1 / (x * value)


def of_global(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    names: dict[str, Any] = {"value": first, "applied": applied}
    exec("def f(x):\n    return applied(value, x)", names)
    return names["f"], lambda new: names.update(value=new)


def of_helper(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    names: dict[str, Any] = {"value": first, "applied": applied}
    exec("def g(x):\n    return applied(value, x)\ndef f(x):\n    return [g(x) for _ in range(1)][0]", names)
    return names["f"], lambda new: names.update(value=new)


def of_cell(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    value = first

    def set(new: Any) -> None:
        nonlocal value
        value = new
    return lambda x: applied(value, x), set


def of_attribute(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    box = Box(Box(first))
    return lambda x: applied(box.value.value, x), lambda new: setattr(box.value, "value", new)


def static(value: Any) -> Any:
    """The value as an attribute of a class; the same object for the same function."""
    if not isinstance(value, types.FunctionType):
        return value
    return STATIC.setdefault(value, staticmethod(value))


STATIC: dict[Any, Any] = {}


def of_class(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    kind = type("Kind", (Box,), {"scale": static(first)})
    box = kind(None)
    return lambda x: applied(box.scale, x), lambda new: setattr(kind, "scale", static(new))


def of_property(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    box = Box(first)
    return lambda x: applied(box.current, x), lambda new: setattr(box, "value", new)


def of_object(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    box = Box(first)
    return box.__call__, lambda new: setattr(box, "value", new)


def of_called_object(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    box = Box(first)
    return lambda x: box(x), lambda new: setattr(box, "value", new)


def of_list(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    items = [None, [first]]
    return lambda x: applied(items[1][0], x), lambda new: items[1].__setitem__(0, new)      # type: ignore[index]


def of_dict(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    items = {"a": ({"b": first},)}
    return lambda x: applied(items["a"][0]["b"], x), lambda new: items["a"][0].update(b=new)


def of_module(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    module = types.ModuleType("settings_of_a_user")
    module.value = first        # type: ignore[attr-defined]
    return lambda x: applied(module.value, x), lambda new: setattr(module, "value", new)


def of_partial(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    box = Box(first)
    return partial(lambda box, x: applied(box.value, x), box), lambda new: setattr(box, "value", new)


def of_transformation(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    f, set = of_attribute(first)
    return irtool.grad(lambda x: f(x).sum()), set


def of_jitted(first: Any) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    f, set = of_cell(first)
    return irtool.jit(f), set


PLACES = [of_global, of_helper, of_cell, of_attribute, of_class, of_property, of_object, of_called_object, of_list, of_dict, of_module,
          of_partial, of_transformation, of_jitted]


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("place", PLACES)
def test_a_change_outside_gives_what_eager_gives(place: Any, values: str) -> None:
    first, second = VALUES[values]
    function, change = place(first)
    fast = irtool.jit(function)
    for value in (first, first, second, second, first, second):
        change(value)
        with np.errstate(divide="ignore"):
            assert np.array_equal(np.asarray(fast(X)), np.asarray(function(irtool.Tensor(X))), equal_nan=True), value
    assert len(fast.variants) == 2       # the variants of an earlier state serve again


def test_the_reason_names_the_place() -> None:
    function, change = of_attribute(2.0)
    fast = irtool.jit(function)
    fast(X)
    change(3.0)
    fast(X)
    assert "after a change of Box.value, which the function reads from outside" in fast.why


def test_what_the_function_changes_itself_is_not_compared() -> None:
    box, log = Box(0), []

    def function(x: Any) -> Any:
        box.value += 1
        log.append(box.value)
        if not hasattr(box, "mask"):
            box.mask = x.shape        # type: ignore[attr-defined]
        return x * 2
    fast = irtool.jit(function)
    for _ in range(3):
        fast(X)
    assert box.value == 1 and log == [1] and len(fast.variants) == 1


def test_many_changes_are_named() -> None:
    function, change = of_attribute(0.0)
    fast = irtool.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(16):
            change(float(step))
            fast(X)
    change(16.0)
    with pytest.warns(TraceWarning, match="changes, and that was 16 times so far, now Box.value. Pass it as an argument"):
        assert np.array_equal(np.asarray(fast(X)), np.asarray(function(irtool.Tensor(X))))


def test_a_recursive_function_and_a_list_that_holds_itself() -> None:
    items: list[Any] = [1.0]
    items.append(items)

    def power(x: Any, n: int) -> Any:
        return torch.ones_like(x) if n == 0 else x * items[0] * power(x, n - 1)
    fast = irtool.jit(power)
    assert fast(X, 3).tolist() == (X**3).tolist()
    items[0] = 2.0
    assert fast(X, 3).tolist() == (8 * X**3).tolist()
