"""Cotangents and tangents stand in a tree as results and primals do, dicts by key, or flat; hooks see every walk; functions with a gradient
of their own take and give dicts."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import dispatch

X = np.array([1.0, 2.0])
ZERO = 0 * X


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12)


@pytest.mark.parametrize("cotangents", [{"a": X, "b": (ZERO, X)}, {"b": (ZERO, X), "a": X}, {"b": [ZERO, X], "a": X}, [X, ZERO, X],
                                        (X, ZERO, X)])
def test_cotangents_are_taken_by_key_or_flat(cotangents: Any) -> None:
    _, back = dispatch.vjp(lambda x: {"a": x * 1, "b": (x * 10, x * 100)}, X)
    close(back(cotangents)[0], 101 * X)


@pytest.mark.parametrize(("cotangents", "words"), [
    ({"a": X}, "expected 2 cotangents, got 1"), ({"a": X, "c": X}, "tree as the outputs, with the keys 'a', 'b'"), ([X], "expected 2"),
    ({"a": X, "b": [X]}, "tree as the outputs"), ({"a": X, "b": X[:1]}, "a cotangent has shape")])
def test_what_does_not_fit_is_refused(cotangents: Any, words: str) -> None:
    _, back = dispatch.vjp(lambda x: {"a": x * 1, "b": x * 10}, X)
    with pytest.raises(irtool.RunError, match=words):
        back(cotangents)


def test_a_cotangent_of_a_sole_result_stands_in_nothing() -> None:
    _, back = dispatch.vjp(lambda x: x * 2, X)
    with pytest.raises(irtool.RunError, match="tree as the outputs"):
        back((X,))


@pytest.mark.parametrize("tangents", [({"a": X, "b": ZERO},), ({"b": ZERO, "a": X},), (X, ZERO)])
def test_tangents_are_taken_by_key_or_flat(tangents: Any) -> None:
    def f(p: Any) -> Any:
        return p["a"] + 10 * p["b"]
    given = {"a": X, "b": X}
    close(irtool.jvp(f, (given,), tangents)[1], X)
    close(irtool.linearize(f, given)[1](*tangents), X)


# -- functions with a gradient of their own
def forward(p: Any) -> Any:
    return {"u": p["a"] * 2, "v": p["b"] ** 2}, {"seen": p}


def backward(grads: Any, saved: Any) -> Any:
    return [{"b": 7 * grads["v"] * saved["seen"]["b"], "a": 5 * grads["u"]}]


CUSTOM = irtool.custom_vjp(forward, backward)
WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, p: irtool.grad(f)(p), "jit": lambda f, p: irtool.jit(irtool.grad(f))(p),
    "vmap": lambda f, p: irtool.vmap(irtool.grad(f))(p),
    "grad of vmap": lambda f, p: irtool.grad(lambda p: irtool.vmap(f)(p).sum())(p)}


@pytest.mark.parametrize("way", WAYS)
def test_functions_with_a_gradient_of_their_own_take_and_give_dicts(way: str) -> None:
    found = WAYS[way](lambda p: (CUSTOM(p)["u"] + CUSTOM(p)["v"]).sum(), {"a": X, "b": X})
    close(found["a"], [5, 5])
    close(found["b"], 7 * X)
    found = WAYS[way](lambda p: CUSTOM(p)["u"].sum(), {"a": X, "b": X})     # one of two results has a gradient
    close(found["a"], [5, 5])
    close(found["b"], ZERO)


def test_what_is_saved_can_be_differentiated_again() -> None:
    found = irtool.hessian(lambda p: CUSTOM(p)["v"].sum())({"a": X, "b": X})
    close(found["b"]["b"], 7 * np.eye(2))
    same = irtool.custom_vjp(lambda x: (x, x), lambda grad, saved: [grad * saved])      # result and operand in one: the operand is saved
    close(irtool.hessian(lambda x: (same(x) ** 2).sum())(X), np.diag(2 * X * X + 2 * X))


def test_gradients_that_do_not_fit_are_refused() -> None:
    wrong = irtool.custom_vjp(lambda p: (p["a"] * 2, None), lambda grad, saved: [{"x": grad}])
    with pytest.raises(irtool.RunError, match="1 gradients for an argument of 2"):
        irtool.grad(lambda p: wrong(p).sum())({"a": X, "b": X})


# -- hooks
def test_hooks_see_every_walk_once() -> None:
    seen = []

    def f(x: Any) -> Any:
        y = x * x
        irtool.register_hook(y, lambda grad: seen.append(1) or grad * 10)
        return y
    _, back = dispatch.vjp(f, X)
    for walk in range(1, 4):
        close(back(np.ones(2))[0], 20 * X)
        assert len(seen) == walk
    close(irtool.jacrev(f, chunk_size=1)(X), np.diag(20 * X))
    close(irtool.grad(lambda x: (f(x) * x).sum())(X), 21 * X * X)


# -- whole numbers
def test_whole_numbers_have_no_gradients() -> None:
    def f(x: Any) -> Any:
        return (x > 0).sum()
    for call in (lambda: dispatch.vjp(f, X), lambda: irtool.jacrev(f)(X)):
        with pytest.raises(irtool.RunError, match="All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                                                  "torch.int64"):
            call()
    close(irtool.grad(f)(X), ZERO)
    assert np.asarray(irtool.jacfwd(f)(X)).dtype == np.int64
    with pytest.raises(irtool.RunError, match="real scalar outputs but got torch.complex128"):
        irtool.grad(lambda x: (x * 1j).sum())(X)


# -- no places
@pytest.mark.parametrize("f", [
    lambda r: r.sum(), lambda r: r.mean(), lambda r: r.prod(), lambda r: r.flatten(), lambda r: r.reshape(-1), lambda r: r.softmax(-1),
    lambda r: r.roll(1), lambda r: r @ r.t(), lambda r: r.norm(), lambda r: r.cumsum(0), lambda r: r.sort(0).values, lambda r: r[[0, 1]]])
def test_a_batch_of_nothing_gives_nothing(f: Any) -> None:
    x = np.ones((2, 3, 4))
    for way in (irtool.vmap(f), irtool.vmap(irtool.grad(lambda r: f(r).sum()))):
        some, none = np.asarray(way(x)), np.asarray(way(x[:0]))
        assert none.shape == (0, *some.shape[1:]) and none.dtype == some.dtype


def test_convolutions_of_nothing_say_so() -> None:
    def f(r: Any) -> Any:
        return irtool.torch.nn.functional.batch_norm(r, None, None, training=True)
    with pytest.raises(irtool.UnsupportedError, match="extent 0"):
        irtool.vmap(f)(np.zeros((0, 2, 4)))
