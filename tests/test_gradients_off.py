"""`torch.no_grad()` under nested transformations, in traces and in `irtool.jit`: gradients at all levels stop, tangents pass. Recorded with
torch.func 2.13."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.dispatch import grad, jvp, vmap


def factor(x: Any) -> Any:
    with torch.no_grad():
        c = x * x
    return (x * c).sum()


def write(x: Any) -> Any:
    x = x * 1
    with torch.no_grad():
        x.mul_(2)
    return (x ** 3).sum()


def on_inside(x: Any) -> Any:
    with torch.no_grad(), torch.enable_grad():
        c = x * x
    return (x * c).sum()


def around_a_gradient(x: Any) -> Any:
    with torch.no_grad():
        g = grad(lambda y: (y ** 3).sum())(x)
    return (g * x).sum()


def inside_a_gradient(x: Any) -> Any:
    def inner(y: Any) -> Any:
        with torch.no_grad():
            c = y * x
        return (y * c).sum()
    return (grad(inner)(x) * x).sum()


def on_inside_a_gradient(x: Any) -> Any:
    def inner(y: Any) -> Any:
        with torch.enable_grad():
            c = y * x
        return (y * c).sum()
    with torch.no_grad():
        g = grad(inner)(x)
    return (g * x).sum()


def around_a_tangent(x: Any) -> Any:
    with torch.no_grad():
        t = jvp(lambda y: y ** 3, (x,), (x,))[1]
    return (t * x).sum()


def inside_a_tangent(x: Any) -> Any:
    def inner(y: Any) -> Any:
        with torch.no_grad():
            c = y * x * x
        return y * c
    return jvp(inner, (x,), (x,))[1].sum()


def asked(x: Any) -> Any:
    with torch.no_grad():
        e = float(torch.is_grad_enabled())
        g = grad(lambda y: (y * y * (1. + 2 * float(torch.is_grad_enabled()))).sum())(x)
    return (g * x).sum() + e + 2 * float(torch.is_grad_enabled())


def called(x: Any) -> Any:
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    c = x * x
    torch.set_grad_enabled(before)
    return (c * x).sum()


def left_off(x: Any) -> Any:
    def inner(y: Any) -> Any:
        torch.set_grad_enabled(False)
        return (y * y).sum()
    return (grad(inner)(x) * 0).sum() + (x ** 3).sum()


def through_detached(x: Any) -> Any:
    x = x * 1
    x.detach().mul_(2)
    return (x ** 3).sum()


def through_a_view(x: Any) -> Any:
    x = x * 1
    v = x[:1]
    with torch.no_grad():
        v.mul_(2)
    return (v * x * x).sum()


CASES: dict[Callable[[Any], Any], list[list[float]]] = {
    factor: [[9.0, 0.25], [0.0, 0.0], 28.5, [6.0, 2.0], [6.0, 2.0]],
    write: [[108.0, 3.0], [36.0, 6.0], 228.0, [72.0, 24.0], [72.0, 24.0]],
    on_inside: [[27.0, 0.75], [18.0, 3.0], 28.5, [18.0, 6.0], [18.0, 6.0]],
    around_a_gradient: [[27.0, 0.75], [0.0, 0.0], 85.5, [18.0, 6.0], [18.0, 6.0]],
    inside_a_gradient: [[9.0, 0.25], [0.0, 0.0], 28.5, [6.0, 2.0], [6.0, 2.0]],
    on_inside_a_gradient: [[18.0, 0.5], [0.0, 0.0], 57.0, [12.0, 4.0], [12.0, 4.0]],
    around_a_tangent: [[81.0, 0.375], [0.0, 0.0], 327.0, [81.0, 4.5], [81.0, 4.5]],
    inside_a_tangent: [[54.0, 0.25], [0.0, 0.0], 218.0, [54.0, 3.0], [54.0, 3.0]],
    asked: [[18.0, 3.0], [0.0, 0.0], 48.0, [6.0, 12.0], [6.0, 12.0]],
    called: [[9.0, 0.25], [0.0, 0.0], 28.5, [6.0, 2.0], [6.0, 2.0]],
    left_off: [[27.0, 0.75], [18.0, 3.0], 28.5, [18.0, 6.0], [18.0, 6.0]],
    through_detached: [[108.0, 3.0], [36.0, 6.0], 114.0, [36.0, 12.0], [36.0, 12.0]],
    through_a_view: [[108.25, 6.0], [37.0, 13.0], 228.5, [74.0, 26.0], [74.0, 26.0]],
}
"""Gradient, gradient of the gradient's sum, tangent, tangent of the gradient, gradient of the tangent; of x = (3, 0.5), along (1, 2)."""
X, WAY = np.array([3., .5]), np.array([1., 2.])


def total(function: Any) -> Any:
    """The function whose results are summed."""
    return lambda x: function(x).sum()


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_numbers_are_those_of_torch(function: Any) -> None:
    first, second, tangent, of_gradient, of_tangent = CASES[function]
    np.testing.assert_allclose(grad(function)(X), first)
    np.testing.assert_allclose(grad(total(grad(function)))(X), second)
    np.testing.assert_allclose(jvp(function, (X,), (WAY,))[1], tangent)
    np.testing.assert_allclose(jvp(grad(function), (X,), (WAY,))[1], of_gradient)
    np.testing.assert_allclose(grad(lambda x: jvp(function, (x,), (WAY,))[1])(X), of_tangent)
    np.testing.assert_allclose(vmap(grad(total(grad(function))))(np.stack([X, X]))[1], second)
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_traces_keep_them(function: Any) -> None:
    if function is asked:
        return
    first, second, tangent, *_ = CASES[function]

    def zeros(gradient: Any) -> Any:
        return np.zeros(2) if gradient is None else gradient
    graph, of_gradient = irtool.trace(function, [X]), irtool.trace(grad(function), [X])
    fast, fast_gradient = irtool.jit(function), irtool.jit(grad(function))
    np.testing.assert_allclose(zeros(irtool.vjp(graph, [X], [np.ones(())], [0])[0]), first)
    np.testing.assert_allclose(zeros(irtool.vjp(of_gradient, [X], [np.ones(2)], [0])[0]), second)
    np.testing.assert_allclose(irtool.run(of_gradient, [X])[0], first)
    for _ in range(2):
        np.testing.assert_allclose(grad(fast)(X), first)
        np.testing.assert_allclose(grad(total(grad(fast)))(X), second)
        np.testing.assert_allclose(grad(total(fast_gradient))(X), second)
        np.testing.assert_allclose(jvp(fast, (X,), (WAY,))[1], tangent)


def test_outside_of_transformations_the_mode_can_be_asked() -> None:
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
        assert np.asarray(grad(lambda x: (x * x).sum())(X)).tolist() == [6, 1]

    @torch.set_grad_enabled(False)
    def quiet() -> bool:
        return torch.is_grad_enabled()
    assert torch.is_grad_enabled() and not quiet() and torch.is_grad_enabled()
