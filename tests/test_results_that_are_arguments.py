"""A transformed function that returns its argument, or a view of it, returns the caller's memory: under any other transformation, a program
with `r, _ = vjp(lambda a: a[1:], y)` computes what it computes with `r = y[1:]`, whichever of the two is written afterwards."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

func = torch.func
X, Z = np.array([0.5, -1.0, 2.0, 1.5]), np.array([1.0, 3.0, -0.5, 0.25])
Shown = Callable[[Any], Any]

SHOWN: dict[str, Shown] = {
    "the argument": lambda a: a, "a part": lambda a: a[:2], "a part of a part": lambda a: a[1:][:2],
    "turned": lambda a: a.view(2, 2).t(), "detached": lambda a: a.detach()}


def doubled(shown: Shown) -> Shown:
    return lambda a: shown(a.mul_(2))


def doubled_in_part(shown: Shown) -> Shown:
    def run(a: Any) -> Any:
        a[1:].mul_(2)
        return shown(a)
    return run


READING: dict[str, Callable[[Shown, Any, Any], Any]] = {
    "vjp": lambda f, y, z: func.vjp(f, y)[0],
    "vjp of a dict": lambda f, y, z: func.vjp(lambda d: [d["q"] * 2, f(d["q"])], {"q": y})[0][1],
    "vjp, aux": lambda f, y, z: func.vjp(lambda a: (a * a, f(a)), y, has_aux=True)[2],
    "grad, aux": lambda f, y, z: func.grad(lambda a: ((a * a).sum(), (f(a),)), has_aux=True)(y)[1][0],
    "grad_and_value, aux": lambda f, y, z: func.grad_and_value(lambda a: ((a * a).sum(), f(a)), has_aux=True)(y)[1][1],
    "jvp": lambda f, y, z: func.jvp(f, (y,), (z,))[0],
    "jvp, aux": lambda f, y, z: func.jvp(lambda a: (a * a, f(a)), (y,), (z,), has_aux=True)[2],
    "linearize": lambda f, y, z: func.linearize(f, y)[0],
    "jacrev, aux": lambda f, y, z: func.jacrev(lambda a: (a * a, f(a)), has_aux=True)(y)[1],
    "jacfwd, aux": lambda f, y, z: func.jacfwd(lambda a: (a * a, f(a)), has_aux=True)(y)[1],
    "vjp of vjp": lambda f, y, z: func.vjp(lambda a: func.vjp(f, a)[0], y)[0],
    "jvp of vjp": lambda f, y, z: func.jvp(lambda a: func.vjp(f, a)[0], (y,), (z,))[0],
    "vjp of vmap": lambda f, y, z: func.vjp(lambda a: func.vmap(f)(a.view(1, 4)), y)[0]}
"""Ways to get what a function shows of an argument that it is differentiated for."""
WRITING: dict[str, Callable[[Shown, Any, Any], Any]] = {
    "grad, aux": lambda f, y, z: func.grad(lambda c, a: ((c * c).sum(), f(a)), has_aux=True)(z, y)[1],
    "grad, aux of a named argument": lambda f, y, z: func.grad(lambda c, *, a: ((c * c).sum(), f(a)), has_aux=True)(z, a=y)[1],
    "jacrev, aux": lambda f, y, z: func.jacrev(lambda c, a: (c * c, f(a)), has_aux=True)(z, y)[1],
    "jacfwd, aux": lambda f, y, z: func.jacfwd(lambda c, a: (c * c, f(a)), has_aux=True)(z, y)[1],
    "vmap": lambda f, y, z: func.vmap(f)(y.view(1, 4)),
    "vmap of the other": lambda f, y, z: func.vmap(lambda a, c: f(a), (1, None))(y.view(4, 1), z),
    "vmap of grad, aux": lambda f, y, z: func.vmap(func.grad(lambda c, a: ((c * c).sum(), f(a)), has_aux=True), (None, 0))(
        z, y.view(1, 4))[1]}
"""The same of an argument that the function may write into."""


def by_variable(y: Any, r: Any, z: Any) -> None:
    y.mul_(z)


def part(y: Any, r: Any, z: Any) -> None:
    y[1:].mul_(z[1:])


def result(y: Any, r: Any, z: Any) -> None:
    r.mul_(z.sum())


def both(y: Any, r: Any, z: Any) -> None:
    r.add_(1)
    y.mul_(z)
    r.mul_(2)


WRITES = [by_variable, part, result, both]
Program = Callable[[Any, Any], Any]
OUTER: dict[str, Callable[[Program], Any]] = {
    "nothing": lambda call: call(irtool.Tensor(X.copy()), irtool.Tensor(Z.copy())),
    "jvp": lambda call: func.jvp(call, (irtool.Tensor(X.copy()), irtool.Tensor(Z.copy())), (Z, X)),
    "vmap": lambda call: func.vmap(call)(np.stack([X, X * 2]), np.stack([Z, Z * 3])),
    "vmap of grad": lambda call: func.vmap(func.grad(lambda x, z: (call(x, z) ** 2).sum(), (0, 1)))(
        np.stack([X, X * 2]), np.stack([Z, Z * 3])),
    "jit": lambda call: irtool.jit(call)(X.copy(), Z.copy())}


def program(get: Callable[[Any, Any], Any], write: Callable[[Any, Any, Any], None], is_part: bool) -> Program:
    """get: makes the result that the program writes, or reads after it has written the tensor."""
    def run(x: Any, z: Any) -> Any:
        y = (torch.cat([x, x]) * 2)[2:6] if is_part else x * 1
        r = get(y, z)
        write(y, r, z)
        return torch.cat([r.reshape(-1) * 2, y.reshape(-1)])
    return run


def numbers(value: Any) -> list[Any]:
    return [each for part in value for each in numbers(part)] if isinstance(value, tuple) else [np.asarray(value)]


CHANGES: dict[str, Callable[[Shown], Shown]] = {"read": lambda shown: shown, "written": doubled, "written in part": doubled_in_part}


@cache
def wanted(shows: str, change: str, outer: str, at: int) -> list[Any]:
    """What a program gives that calls no transformation in place of the one that is tested."""
    shown = CHANGES[change](SHOWN[shows])
    return numbers(OUTER[outer](program(lambda y, z: shown(y), WRITES[at], at % 2 == 1)))


def check(way: Callable[[Shown, Any, Any], Any], shows: str, change: str, outer: str) -> None:
    shown = CHANGES[change](SHOWN[shows])
    for at, write in enumerate(WRITES):
        found = numbers(OUTER[outer](program(lambda y, z: way(shown, y, z), write, at % 2 == 1)))
        for one, other in zip(found, wanted(shows, change, outer, at), strict=True):
            np.testing.assert_allclose(one, other, 1e-12, 1e-12, err_msg=write.__name__)


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("shows", SHOWN)
@pytest.mark.parametrize("name", READING)
def test_what_a_function_shows_of_its_argument_is_the_callers(name: str, shows: str, outer: str) -> None:
    check(READING[name], shows, "read", outer)


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("shows", SHOWN)
@pytest.mark.parametrize("name", WRITING)
def test_what_a_function_shows_of_an_argument_that_it_writes_is_the_callers(name: str, shows: str, change: str, outer: str) -> None:
    check(WRITING[name], shows, change, outer)


@pytest.mark.parametrize("outer", ["jvp", "vmap", "vmap of grad", "jit"])
def test_a_detached_part_of_a_result_can_be_written(outer: str) -> None:
    def after(x: Any, z: Any) -> Any:
        (whole, part), _ = func.vjp(lambda a: ((b := a * 2), b.detach()[1:]), x)
        part.mul_(z[1:])
        return whole * z

    def plain(x: Any, z: Any) -> Any:
        whole = x * 2
        whole.detach()[1:].mul_(z[1:])
        return whole * z
    for one, other in zip(numbers(OUTER[outer](after)), numbers(OUTER[outer](plain)), strict=True):
        np.testing.assert_allclose(one, other, 1e-12)
