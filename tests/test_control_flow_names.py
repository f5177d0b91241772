"""torch.cond, while_loop, scan and map: what the same program does with Python's own branches and loops, under every transformation."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

X = np.arange(1.0, 4.0)
PLACES = np.stack([X, -X, 2 * X, X[::-1]])
Function = Callable[[Any], Any]


def branch(x: Any) -> Any:
    total, outside = x.sum(), x * 3
    return torch.cond(total > 0, lambda x: x * 2 * total, lambda x: outside - x, (x,)).sum()


def branch_in_python(x: Any) -> Any:
    total, outside = x.sum(), x * 3
    return (x * 2 * total if bool(total > 0) else outside - x).sum()


def trees(x: Any) -> Any:
    made = torch.cond(x[0] > 0, lambda p: {"a": p["a"] * 2, "b": [p["b"][0], x]}, lambda p: {"a": p["a"] - x, "b": [x * x, p["b"][0]]},
                      ({"a": x, "b": [x.exp()]},))
    return (made["a"] * made["b"][0] + made["b"][1]).sum()


def trees_in_python(x: Any) -> Any:
    return (x * 2 * x.exp() + x if bool(x[0] > 0) else (x - x) * (x * x) + x.exp()).sum()


def nested(x: Any) -> Any:
    total = x.sum()

    def inner(x: Any, factor: Any = total) -> Any:
        return torch.cond(x[0] > 2, lambda y: y * factor, lambda y: y + factor, (x,))
    return torch.cond(x.sum() > 0, partial(lambda k, y: inner(y) * k, x.prod()), lambda y: y.sin(), (x,)).sum()


def nested_in_python(x: Any) -> Any:
    factor = x.sum()
    if bool(factor > 0):
        return ((x * factor if bool(x[0] > 2) else x + factor) * x.prod()).sum()
    return x.sin().sum()


def counted(x: Any) -> Any:
    return torch.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (torch.tensor(0), x * 1))[1].sum()


def counted_by_int(x: Any) -> Any:
    return torch.while_loop(lambda i, y: 2 * i < 5, lambda i, y: (i + 1, y * x), (0, x * 1))[1].sum()


def counted_in_python(x: Any) -> Any:
    y = x * 1
    for _ in range(3):
        y = y * x
    return y.sum()


def decided(x: Any) -> Any:
    return torch.while_loop(lambda s: (s["y"] * s["y"]).sum() < 100, lambda s: ({"y": s["y"] * 2},), ({"y": x * 1},))[0]["y"].sum()


def decided_in_python(x: Any) -> Any:
    y = x * 1
    while bool((y * y).sum() < 100):
        y = y * 2
    return y.sum()


def scanned(x: Any) -> Any:
    carry, found = torch.scan(lambda c, a: (c * a["p"] + x[0], [c + a["p"]]), torch.ones([], dtype=torch.float64), {"p": x}, reverse=True)
    return carry + (found[0] * found[0] * x).sum()


def scanned_in_python(x: Any) -> Any:
    carry, found = torch.ones([], dtype=torch.float64), [None] * 3
    for k in (2, 1, 0):
        carry, found[k] = carry * x[k] + x[0], carry + x[k]
    return carry + (torch.stack(found) ** 2 * x).sum()


def mapped(x: Any) -> Any:
    return (torch.map(lambda a, b: a * b.sum() * x[1], x, x) ** 2).sum()


def mapped_in_python(x: Any) -> Any:
    return ((x * x.sum() * x[1]) ** 2).sum()


PROGRAMS: list[tuple[Function, Function]] = [
    (branch, branch_in_python), (trees, trees_in_python), (nested, nested_in_python), (counted, counted_in_python),
    (counted_by_int, counted_in_python), (decided, decided_in_python), (scanned, scanned_in_python), (mapped, mapped_in_python)]


def along(f: Function) -> Function:
    """The derivative in the direction of the argument."""
    return lambda x: irtool.jvp(f, (x,), (x,))[1]


TRANSFORMS: dict[str, Function] = {"plain": lambda f: lambda x: f(torch.asarray(x)), "grad": irtool.grad, "jvp": along,
    "hessian": irtool.hessian,
                                   "grad of grad": lambda f: irtool.grad(lambda x: irtool.grad(f)(x).sum())}


@pytest.mark.parametrize(("by_name", "in_python"), PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_as_in_python(by_name: Function, in_python: Function, transform: str) -> None:
    make = TRANSFORMS[transform]
    expected = [np.asarray(make(in_python)(place)) for place in PLACES]
    for place, value in zip(PLACES, expected, strict=True):
        np.testing.assert_allclose(np.asarray(make(by_name)(place)), value, rtol=1e-12)
    if transform in ("plain", "grad"):
        np.testing.assert_allclose(np.asarray(irtool.vmap(make(by_name))(PLACES)), np.stack(expected), rtol=1e-12)
        np.testing.assert_allclose(np.asarray(irtool.jit(irtool.vmap(make(by_name)))(PLACES)), np.stack(expected), rtol=1e-12)
    compiled = irtool.jit(make(by_name))
    try:
        results = [np.asarray(compiled(place)) for place in PLACES]
    except irtool.UnsupportedError as error:
        assert by_name is decided and "the second derivative of a loop" in str(error)
    else:
        for result, value in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, value, rtol=1e-12)


@pytest.mark.parametrize(("function", "kind"), [
    (branch, "prim::If"), (counted, "prim::Loop"), (decided, "prim::Loop"), (scanned, "prim::Loop"), (mapped, "prim::Loop"),
    (irtool.grad(branch), "prim::If"), (irtool.grad(counted), "prim::Loop"), (irtool.vmap(counted), "prim::Loop")])
def test_a_trace_writes_control_flow_down(function: Function, kind: str) -> None:
    graph = irtool.trace(function, [X])
    assert sum(node.kind == kind for node in graph.walk()) >= 1


def test_a_compiled_branch_is_traced_once() -> None:
    traced = []

    def f(x: Any) -> Any:
        traced.append(1)
        return branch(x)
    compiled = irtool.jit(f)
    for place in PLACES:
        np.testing.assert_allclose(np.asarray(compiled(place)), np.asarray(branch_in_python(irtool.Tensor(place))))
    assert len(traced) == 1


@pytest.mark.parametrize(("call", "words"), [
    (lambda x: torch.cond(x > 0, torch.sin, torch.cos, (x,)), "pred is a tensor of shape [3]"),
    (lambda x: torch.cond("yes", torch.sin, torch.cos, (x,)), "pred is a str"),
    (lambda x: torch.cond(True, torch.sin, torch.cos, x), "expected operands in a tuple"),
    (lambda x: torch.cond(True, torch.sin, 3, (x,)), "cond"),
    (lambda x: irtool.vmap(lambda y: torch.cond(y > 0, lambda y: [y], lambda y: y, (y,)))(x), "expected the same lists"),
    (lambda x: torch.while_loop(lambda y: y.sum() < 9, lambda y: (y, y), (x,)), "expected the same lists"),
    (lambda x: torch.while_loop(lambda y: y.sum() < 9, lambda y: y * 2, (x,)), "body_fn gives a"),
    (lambda x: torch.while_loop(lambda y: y < 9, lambda y: (y * 2,), (x,)), "cond_fn is a tensor of shape"),
    (lambda x: torch.scan(lambda c, a: c, x[0], x), "expected a tuple of the next carry"),
    (lambda x: torch.scan(lambda c, a: ([c], c), x[0], x), "expected the same lists"),
    (lambda x: torch.scan(lambda c, a: (c, c), x[0], [x, x[:2]]), "extents along dimension 0 are [2, 3]"),
    (lambda x: torch.map(lambda a: a, x[:0]), "extents along dimension 0 are [0]"),
])
def test_wrong_calls_say_what_is_expected(call: Function, words: str) -> None:
    with pytest.raises(irtool.RunError) as error:
        call(irtool.Tensor(X))
    assert words in str(error.value)
