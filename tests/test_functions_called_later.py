"""Branches and bodies of `cond`, `while_loop`, `scan` and `map` that a tape calls again: they read what they read at first."""
from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch as T

X = np.array([0.3, -0.4, 2.0])
Function = Callable[[Any], Any]


class Scale:
    """An object with a slot and an attribute, of a class that forbids to set them."""

    __slots__ = ("__dict__", "by")

    def __init__(self, by: Any) -> None:
        object.__setattr__(self, "by", by)
        object.__setattr__(self, "more", 1.0)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)

    def __call__(self, y: Any) -> Any:
        return y * self.by * self.more


def chosen(x: Any, times: Function) -> Any:
    return T.cond(x > 0, lambda y: times(y) * y, lambda y: times(y) * 3, (x,))


def repeated(x: Any, times: Function) -> Any:
    return T.while_loop(lambda y: y.abs() + times(y) * 0 < 9, lambda y: (times(y).abs() + y.abs() + 1,), (x,))[0]


def stepped(x: Any, times: Function) -> Any:
    return T.scan(lambda a, b: (times(a) + b, a), x, T.ones(3, dtype=T.float64))[0]


def mapped(x: Any, times: Function) -> Any:
    return T.map(lambda b: times(b) * x, x * T.ones(2, dtype=T.float64)).sum()


FORMS = {"cond": chosen, "while_loop": repeated, "scan": stepped, "map": mapped}


def rebound(x: Any, form: Any) -> Any:
    c = 2.0
    y = form(x, lambda y: y * c)
    c = 100.0
    return y + c


def rebound_by_a_loop(x: Any, form: Any) -> Any:
    for k in range(2, 4):
        x = form(x, lambda y: y * k)  # noqa: B023  as users write it
    return x


def rebound_tensors(x: Any, form: Any) -> Any:
    y = x
    for w in [x * 2, x + 2]:
        y = form(y, lambda y: y * w)  # noqa: B023
    return y


def made_tensors(x: Any, form: Any) -> Any:
    w = T.ones((), dtype=T.float64) * 2
    y = form(x, lambda y: y * w)
    w.mul_(100)
    return y + w


def written_tensors(x: Any, form: Any) -> Any:
    w = x * 2
    y = form(x, lambda y: y * w)
    w.mul_(100)
    return y + w


def grown_lists(x: Any, form: Any) -> Any:
    c = [2.0]
    y = form(x, lambda y: y * sum(c))
    c.append(100.0)
    return y + form(x, lambda y: y * c[-1])


def dicts(x: Any, form: Any) -> Any:
    c = {"by": 2.0}
    y = form(x, lambda y: y * c["by"] * (50.0 if "more" in c else 1.0))
    c.update(by=100.0, more=1.0)
    return y


def objects(x: Any, form: Any) -> Any:
    c = SimpleNamespace(by=2.0)
    y = form(x, lambda y: y * getattr(c, "more", c.by))
    c.more = 100.0
    return y


def closed_objects(x: Any, form: Any) -> Any:
    c = Scale(x * 2)
    y = form(x, c)
    object.__setattr__(c, "by", 100.0)
    object.__setattr__(c, "more", 100.0)
    object.__setattr__(c, "others", 100.0)
    return y


def defaults(x: Any, form: Any) -> Any:
    def times(y: Any, by: float = 2.0) -> Any:
        return y * by
    y = form(x, times)
    times.__defaults__ = (100.0,)
    return y


def unbound(x: Any, form: Any) -> Any:
    c = 2.0

    def times(y: Any) -> Any:
        return y * c  # noqa: F821  deleted below, which ruff takes for never bound
    y = form(x, times)
    del c
    return y


def filled(x: Any, form: Any) -> Any:
    def times(y: Any) -> Any:
        try:
            return y * c
        except NameError:
            return y * 2.0
    y = form(x, times)
    c = 100.0
    return y


PROGRAMS = (rebound, rebound_by_a_loop, rebound_tensors, made_tensors, written_tensors, grown_lists, dicts, objects, closed_objects,
            defaults, unbound, filled)


def each_alone(g: Function) -> Any:
    return [np.asarray(g(np.array(each))) for each in X]


def tangents(f: Function) -> Function:
    return lambda x: irtool.jvp(f, (x,), (x * 0 + 1,))[1]


WAYS: dict[str, Callable[[Function], Any]] = {
    "vmap(grad)": lambda f: irtool.vmap(irtool.grad(f))(X), "grad(vmap)": lambda f: irtool.grad(lambda x: irtool.vmap(f)(x).sum())(X),
    "jit(grad)": lambda f: each_alone(irtool.jit(irtool.grad(f))), "jit(vmap(grad))": lambda f: irtool.jit(irtool.vmap(irtool.grad(f)))(X),
    "grad(jit)": lambda f: each_alone(irtool.grad(irtool.jit(f))), "vmap(jvp)": lambda f: irtool.vmap(tangents(f))(X),
    "vmap(jacfwd)": lambda f: irtool.vmap(irtool.jacfwd(f))(X), "vmap(jacrev)": lambda f: irtool.vmap(irtool.jacrev(f))(X),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_those_of_one_sample_at_a_time(form: str, program: Any) -> None:
    """Where nothing is batched or traced, Python branches and loops, and no function is called again."""
    def f(x: Any) -> Any:
        return program(x, FORMS[form])
    wanted = each_alone(irtool.grad(f))
    for name in WAYS if form == "cond" else ("vmap(grad)", "jit(grad)"):
        way = WAYS[name]
        np.testing.assert_allclose(np.asarray(way(f)), wanted, rtol=1e-9, err_msg=name)


def test_second_derivatives() -> None:
    def f(x: Any) -> Any:
        return rebound_tensors(x, chosen) + rebound(x, chosen)
    wanted = each_alone(irtool.grad(irtool.grad(f)))
    np.testing.assert_allclose(np.asarray(irtool.vmap(irtool.grad(irtool.grad(f)))(X)), wanted, rtol=1e-9)
    np.testing.assert_allclose(each_alone(irtool.jit(irtool.grad(irtool.grad(f)))), wanted, rtol=1e-9)


def test_what_a_function_leaves_stays() -> None:
    """What it appended and counted when it first ran, and what was there afterwards, is there after the gradient, too."""
    seen: list[str] = []

    def f(x: Any) -> Any:
        def first(y: Any) -> Any:
            seen.append("first")
            return y * len(seen)
        y = T.cond(x > 0, first, lambda y: y * 3, (x,))
        seen.append("after")
        return y
    np.testing.assert_allclose(np.asarray(irtool.vmap(irtool.grad(f))(X)), [1, 3, 1])
    assert seen == ["first", "after"]
