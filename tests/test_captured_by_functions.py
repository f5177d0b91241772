"""Functions of `cond`, `while_loop`, `scan`, `map` and `custom_vjp`, and hooks, may read tensors of surrounding functions."""
from __future__ import annotations

import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

W, X = np.array([0.4, -0.7, 1.2]), np.array([0.9, 0.1, -0.5])
BATCH = np.stack([X, -X])


class Held:
    def __init__(self, w: Any) -> None:
        self.w = w

    def times(self, x: Any) -> Any:
        return x * self.w

    __call__ = times


class Slots:
    __slots__ = ("more", "w")

    def __init__(self, w: Any) -> None:
        self.w = w


@dataclass(frozen=True)
class Frozen:
    w: Any


class Attributes(dict[str, Any]):
    def __getattr__(self, name: str) -> Any:
        return self[name]


class Parent:
    """It and its child hold each other."""

    def __init__(self, w: Any) -> None:
        self.children = [SimpleNamespace(parent=self, name="child")]
        self.w = w

    def times(self, x: Any) -> Any:
        assert self.children[0].parent is self
        return x * self.children[0].parent.w


def in_default(w: Any) -> Callable[[Any], Any]:
    return lambda x, w=w: x * w


def of(held: Any, times: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: times(held, x)


HOLDERS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "a closure": lambda w: lambda x: x * w, "a default": in_default, "a method": lambda w: Held(w).times, "a callable": Held,
    "a partial method": lambda w: partial(Held.times, Held(w)), "an object": lambda w: of(Held(w), lambda held, x: held.times(x)),
    "slots": lambda w: of(Slots(w), lambda held, x: x * held.w), "a frozen dataclass": lambda w: of(Frozen(w), lambda held, x: x * held.w),
    "a namespace": lambda w: of(SimpleNamespace(w=[w]), lambda held, x: x * held.w[0]), "a cycle": lambda w: Parent(w).times,
    "the other end": lambda w: of(Parent(w).children, lambda held, x: held[0].parent.times(x)),
    "a dict with attributes": lambda w: of(Attributes(w=w), lambda held, x: x * held.w),
    "a dict with a default": lambda w: of(defaultdict(int, w=w), lambda held, x: x * held["w"] + held["none"]),
    "an ordered dict": lambda w: of(OrderedDict(a=1, w=w), lambda held, x: x * held["w"] + len(held)),
}
FORMS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "cond": lambda f, x: torch.cond(x.sum() > 0, f, torch.neg, (x,)).sum(),
    "while_loop": lambda f, x: torch.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, f(x)), (torch.zeros(()), x))[1].sum(),
    "scan": lambda f, x: torch.scan(lambda c, x: (c + f(x).sum(), c * 1), x[0], x)[1].sum(),
    "map": lambda f, x: (torch.map(f, x) * x.sum()).sum(),
}


def loss(holder: str, form: str) -> Callable[[Any, Any], Any]:
    return lambda w, x: FORMS[form](HOLDERS[holder](w.exp()), x)


@pytest.mark.parametrize(("holder", "form"), [*zip(HOLDERS, itertools.cycle(FORMS)), *[("a method", form) for form in FORMS]])
def test_compiled_and_batched_functions_find_what_eager_ones_do(holder: str, form: str) -> None:
    function = loss(holder, form)
    gradient = irtool.grad(function, argnums=(0, 1))
    wanted = [gradient(W, x) for x in BATCH]
    for found, expected in zip(irtool.jit(gradient)(W, X), wanted[0], strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected))
    for place, found in enumerate(irtool.vmap(gradient, in_dims=(None, 0))(W, BATCH)):
        np.testing.assert_allclose(np.asarray(found), [np.asarray(each[place]) for each in wanted])


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_a_custom_vjp_captures_has_no_gradient(holder: str) -> None:
    """torch.func gives these numbers for a `torch.autograd.Function` in whose functions w is captured."""
    def function(w: Any, x: Any) -> Any:
        times = HOLDERS[holder](w.exp())
        return irtool.custom_vjp(lambda x: (times(x), x), lambda gradient, x: [gradient * 2 * times(x) / x])(x.sin()).sum()
    value = np.asarray(function(irtool.Tensor(W), irtool.Tensor(X)))
    of_x = 2 * HOLDERS[holder](np.exp(W))(np.sin(X)) / np.sin(X) * np.cos(X)
    gradient = irtool.grad(function, argnums=(0, 1))
    for way in (gradient, irtool.jit(gradient)) if holder in ("a closure", "a cycle") else (gradient,):
        np.testing.assert_allclose(np.asarray(way(W, X)[0]), np.zeros(3))
        np.testing.assert_allclose(np.asarray(way(W, X)[1]), of_x)
    batched = irtool.vmap(gradient, in_dims=(0, None))(np.stack([W, W + 1]), X)
    np.testing.assert_allclose(np.asarray(batched[1])[0], of_x)
    np.testing.assert_allclose(np.asarray(irtool.vmap(function, in_dims=(0, None))(W[None], X)), [value])
    np.testing.assert_allclose(np.asarray(irtool.jvp(lambda w: function(w, irtool.Tensor(X)), (W,), (W,))[1]), 0)


def test_the_backward_of_a_custom_vjp_is_differentiated_by_what_it_captures() -> None:
    """As torch.func does."""
    def function(x: Any) -> Any:
        w = x.exp()
        return irtool.custom_vjp(lambda x: (x * w, x), lambda gradient, x: [gradient * 2 * w])(x.sin()).sum()
    np.testing.assert_allclose(np.asarray(irtool.hessian(function)(X)), np.diag(2 * np.exp(X) * (np.cos(X) - np.sin(X))))


def test_a_wrong_number_of_gradients_is_counted_without_what_is_captured() -> None:
    def function(w: Any) -> Any:
        return irtool.custom_vjp(lambda x, y: (x * w, x), lambda gradient, x: [gradient])(w, w).sum()
    with pytest.raises(irtool.RunError, match="gave 1 gradients for 2 arguments"):
        irtool.grad(function)(W)


HOOKS: dict[str, tuple[Callable[[Any], Callable[[Any], Any]], Callable[[Any, Any], Any]]] = {
    "a product": (lambda x: lambda gradient: gradient * x, lambda gradient, x: gradient * x),
    "a constant": (lambda x: lambda gradient: gradient + x.detach(), lambda gradient, x: gradient + x),
    "a method": (lambda x: Held(x.exp()).times, lambda gradient, x: gradient * np.exp(x)),
    "nothing": (lambda x: lambda gradient: [gradient * x].clear(), lambda gradient, x: gradient),
}


@pytest.mark.parametrize("name", HOOKS)
def test_hooks_may_read_tensors_of_their_function(name: str) -> None:
    """The numbers are torch's, as autograd and torch.func give them."""
    make, as_numbers = HOOKS[name]

    def function(x: Any) -> Any:
        y = x * x
        irtool.register_hook(y, make(x))
        return y.sin().sum()

    def expected(x: Any) -> Any:
        return as_numbers(np.cos(x * x), x) * 2 * x
    gradient = irtool.grad(function)
    for way in (gradient, irtool.jit(gradient), irtool.jacrev(function), lambda x: irtool.dispatch.vjp(function, x)[1](np.array(1.0))[0]):
        np.testing.assert_allclose(np.asarray(way(X)), expected(X))
    np.testing.assert_allclose(np.asarray(irtool.vmap(gradient)(BATCH)), expected(BATCH))
    second = irtool.grad(lambda x: gradient(x).sum())(X)
    if name != "a constant":        # detached, it is one for the second derivative too
        np.testing.assert_allclose(np.asarray(second), (expected(X + 1e-6) - expected(X - 1e-6)) / 2e-6, rtol=1e-6)
