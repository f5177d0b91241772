"""Gradients and cotangents in another dtype or class than the tensor's: refused in torch's words, or taken as plain arrays."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool

MUL = "graph(%x : Tensor, %y : Tensor):\n  %a : Tensor = aten::mul(%x, %y)\n  %b : Tensor = aten::exp(%a)\n  return (%a, %b)\n"
X, Y = np.array([0.1, 0.2]), np.array([1.0, 2.0])
ONES = [np.ones(2)] * 2


class Louder(np.ndarray):
    """An array whose products are other ones."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        return getattr(ufunc, method)(*[np.asarray(each) for each in inputs]) + 1000


COTANGENTS: dict[str, Callable[[Any], Any]] = {
    "masked": lambda a: np.ma.array(a, mask=[1, 0]), "subclass": lambda a: a.view(Louder), "list": lambda a: a.tolist(),
    "read-only": lambda a: np.broadcast_to(a, a.shape), "other byte order": lambda a: a.astype(">f8"), "float32": lambda a: a.astype("f4"),
}
WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "vjp": lambda g, c: irtool.vjp(g, [X, Y], c, [0, 1]), "interpret": lambda g, c: irtool.vjp(g, [X, Y], c, [0, 1], interpret=True),
    "executor": lambda g, c: irtool.compile(g).vjp([X, Y], c, [0, 1]),
    "record": lambda g, c: irtool.compile(g).record([X, Y], [0, 1]).backward(c),
    "plain": lambda g, c: irtool.compile(g, optimize=False).record([X, Y], [0, 1]).backward(c),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", COTANGENTS)
def test_cotangents_are_taken_as_plain_arrays(kind: str, way: str) -> None:
    got = WAYS[way](irtool.parse(MUL), [COTANGENTS[kind](each) for each in ONES])
    for one, other in zip(got, WAYS["interpret"](irtool.parse(MUL), ONES), strict=True):
        assert type(one) is np.ndarray
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("made", [lambda g: g * 1j, lambda g: g.astype("f4"), lambda g: g > 0], ids=["complex", "float32", "bool"])
def test_hooks_keep_the_dtype(made: Callable[[Any], Any]) -> None:
    """torch: hook has changed the type of value (was torch.DoubleTensor got CPUComplexDoubleType)"""
    for options in ({}, {"optimize": False}):
        record = irtool.compile(irtool.parse(MUL), **options).record([X, Y], [0, 1])
        record.hook_output(0, made)
        with pytest.raises(irtool.RunError, match="hook has changed the type of value .was float64, got"):
            record.backward(ONES)
        record = irtool.compile(irtool.parse(MUL), **options).record([X, Y], [0, 1])
        record.hook_input(0, made)
        with pytest.raises(irtool.RunError, match="hook has changed the type of value .was float64, got"):
            record.backward(ONES)


def test_hooks_may_scale() -> None:
    record = irtool.compile(irtool.parse(MUL)).record([X, Y], [0, 1])
    record.hook_input(0, lambda g: g * np.float32(2))
    one, other = record.backward(ONES)
    wanted = irtool.vjp(irtool.parse(MUL), [X, Y], ONES, [0, 1])
    np.testing.assert_allclose(one, 2 * wanted[0])
    np.testing.assert_allclose(other, wanted[1])
