"""Writes into tensors and into views of them, inside grad, vmap, jit and each other: as if every value were new."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.dispatch.graph_functions import tape_gradients
from irtool.dispatch.trees import flatten
from irtool.ops.tensor import torch


def row(x: Any) -> Any:
    y = x * 1
    y[0].zero_()
    return (y * x).sum()


def part_of_a_view(x: Any) -> Any:
    y = x.clone()
    v = y.view(-1)
    v[:2].mul_(3)
    return (y * x).sum() + (v * v).sum()


def whole_seen_by_views(x: Any) -> Any:
    y = x * 2
    a, b = y[0], y.t()[1]
    y.mul_(x)
    return (a * b[:1]).sum() + b.sin().sum()


def piece(x: Any) -> Any:
    y = x.sin()
    first, _ = y.split([1, 2])
    first.copy_(x[1:2] * x[2:])
    return (y * y).sum()


def places(x: Any) -> Any:
    y = x + 0
    y[1:, 2] = y[0, 0] * y[0, 1]
    y[[0, 1], [1, 0]] = x[2, :2]
    return (y ** 3).sum()


def rounds(x: Any) -> Any:
    y = x.clone()
    for i in range(2):
        y[i + 1] += y[i] * x[i]
    return (y * x).sum()


def plain(x: Any) -> Any:
    y = x.clone()
    y.add_(x).sin_()
    return y.sum()


def argument(x: Any) -> Any:
    y = x * 1
    x[0].mul_(y[1])
    x.t().add_(y).sin_()
    return (y * x).sum()


def turned(x: Any) -> Any:
    y = x.clone()
    v = y[1:]
    y.t().t_()
    v.t_().unsqueeze_(0).mul_(2)
    return (y * x).sum() + v[0, 2].sum()


PROGRAMS = [turned, row, part_of_a_view, whole_seen_by_views, piece, places, rounds, plain, argument]
X = np.random.default_rng(5).standard_normal((3, 3))


def differences(f: Any, x: np.ndarray) -> np.ndarray:
    """The gradient, by differences of what the function gives on plain tensors."""
    found, step = np.zeros_like(x), 1e-5
    for place in np.ndindex(*x.shape):
        there, back = x.copy(), x.copy()
        there[place] += step
        back[place] -= step
        found[place] = (float(f(irtool.Tensor(there))) - float(f(irtool.Tensor(back)))) / (2 * step)
    return found


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f: Any) -> None:
    given = X.copy()
    wanted = differences(f, X)
    for found in (irtool.grad(f)(given), irtool.jit(irtool.grad(f))(given), irtool.vmap(irtool.grad(f))(np.stack([given, 2 * given]))[0]):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6, atol=1e-8)
    assert np.array_equal(given, X)


@pytest.mark.parametrize("f", PROGRAMS)
def test_batches(f: Any) -> None:
    batch = np.random.default_rng(6).standard_normal((4, 3, 3))
    wanted = [float(f(irtool.Tensor(each.copy()))) for each in batch]
    np.testing.assert_allclose(np.asarray(irtool.vmap(f)(batch.copy())), wanted, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(irtool.jit(irtool.vmap(f))(batch.copy())), wanted, rtol=1e-12)
    slopes = [differences(f, each) for each in batch]
    found = irtool.grad(lambda x: irtool.vmap(f)(x).sum())(batch)
    np.testing.assert_allclose(np.asarray(found), slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_of_gradients(f: Any) -> None:
    def slope(x: Any) -> Any:
        return (irtool.grad(f)(x) ** 2).sum()
    np.testing.assert_allclose(np.asarray(irtool.grad(slope)(X)), differences(slope, X), rtol=1e-5, atol=1e-6)


def detached(x: Any) -> Any:
    y = x.clone()
    y.detach().mul_(2)
    return y * x


def detached_part(x: Any) -> Any:
    y = x * 2
    y[1:].detach()[:, 0].copy_(x[0, 1:])
    return y * x


def shown_without_gradient(x: Any) -> Any:
    y = x.sin()
    v = y[0]
    y.detach()[0, 1:] = 3.0
    return v * y


NESTED = {
    "jvp": lambda f, x: irtool.jvp(f, (x,), (x * 3,)), "jacfwd": lambda f, x: irtool.jacfwd(f)(x),
    "jacrev": lambda f, x: irtool.jacrev(f)(x),
    "hessian": lambda f, x: irtool.hessian(lambda x: (f(x) ** 2).sum())(x), "linearize": lambda f, x: irtool.linearize(f, x)[1](x),
    "vmap of jvp": lambda f, x: irtool.vmap(lambda x: irtool.jvp(f, (x,), (x * 3,)))(torch.stack([x, x * 2])),
    "jvp of vmap": lambda f, x: irtool.jvp(lambda w: irtool.vmap(f)(torch.stack([x, x * 2]) * w), (x,), (x,)),
    "jvp of grad": lambda f, x: irtool.jvp(irtool.grad(lambda x: (f(x) ** 2).sum()), (x,), (x,)),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("f", [detached, detached_part, shown_without_gradient])
def test_a_graph_does_not_forget_a_write_that_tapes_must_not_see(f: Any, name: str) -> None:
    x = irtool.Tensor(X)
    wanted = flatten(NESTED[name](f, x))[0]
    fast, graph = irtool.jit(lambda x: NESTED[name](f, x)), irtool.trace(lambda x: NESTED[name](f, x), [x])
    for found in (*[flatten(fast(x))[0] for _ in range(3)], irtool.run(graph, [X]), flatten(NESTED[name](irtool.jit(f), x))[0]):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-12)


def test_traces_leave_what_they_are_given_alone() -> None:
    def f(x: Any) -> Any:
        x.add_(1)
        x.view(-1)[:2].mul_(3)
        return x * 2
    given, wanted = np.ones((2, 2)), [[12.0, 12.0], [4.0, 4.0]]
    graph, jitted = irtool.trace(f, [given]), irtool.jit(f)
    for found in (irtool.run(graph, [given])[0], irtool.run(graph, [given], interpret=True)[0], jitted(given.copy()), jitted(given.copy()),
                  irtool.vmap(f)(given[None].copy())[0]):
        assert np.array_equal(np.asarray(found), wanted)
    assert np.array_equal(given, np.ones((2, 2)))


def test_arguments_that_are_written_into_have_the_gradients_of_what_was_given() -> None:
    def f(x: Any) -> Any:
        return x.mul_(2) * x
    x = np.arange(3.0)
    outputs, moved = irtool.jvp(f, (x,), (np.ones(3),))
    assert np.array_equal(np.asarray(outputs), 4 * x * x) and np.array_equal(np.asarray(moved), 8 * x)
    (found,) = tape_gradients(irtool.trace(f, [x]), [x], [0], [np.ones(3)])
    assert np.array_equal(found, 8 * x) and np.array_equal(x, np.arange(3.0))


def test_what_cannot_be_done_says_so() -> None:
    def shared(x: Any) -> Any:
        y = (x * 1)[0].expand(3, 3)
        y.mul_(2)
        return y.sum()

    y0 = torch.zeros([3])

    def outside(x: Any) -> Any:
        y0.copy_(x[0])
        return y0.sum()

    def part_of_outside(x: Any) -> Any:
        y0[1:].zero_()
        return x.sum()

    def parted(x: Any) -> Any:
        return (x * 1)[0].detach_().sum()

    def wider(x: Any) -> Any:
        y = x[0].clone()
        y.add_(x)
        return y.sum()
    for f, words in ((shared, "more than one element of the written-to tensor"), (outside, "would mutate a captured Tensor"),
                     (part_of_outside, "would mutate a captured Tensor"), (parted, "Can't detach views in-place"),
                     (wider, "doesn't match the broadcast shape")):
        with pytest.raises(irtool.Error, match=words):
            irtool.grad(f)(X)
