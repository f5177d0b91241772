"""Graphs, modules of one graph and executors are functions to every transformation: they give what the same Python function gives."""
from __future__ import annotations

from typing import Optional

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.dispatch import vjp

PROGRAMS = {
    "straight": "def f(x):\n    return (x.sin() * x).sum()\n",
    "a loop until": "def f(x, n: int = 7):\n    while bool(x.sum() < n):\n        x = x * 2\n    return (x * x).sum()\n",
    "a branch": "def f(x):\n    if bool(x.sum() > 1):\n        y = x * x\n    else:\n        y = x.exp()\n    return (y * x).sum()\n",
    "a counter": "def f(x, n: int = 3):\n    y = x\n    for i in range(n):\n        y = (y * x).tanh() + i\n    return (y * y).sum()\n",
    "a list": "def f(x):\n    parts = [x]\n    for i in range(3):\n        parts.append(parts[i] * 2 + i)\n"
              "    return torch.stack(parts).prod(0).sum()\n",
    "a write": "def f(x):\n    y = x * 2\n    y.add_(x.sin())\n    y[0] = y[0] * y[1]\n    return (y * y).sum()\n",
    "an early end": "def f(x, n: int = 5):\n    y = x\n    for i in range(n):\n        if i * 2 > n:\n            break\n"
                    "        y = y * x.cos() + 0.5\n    return y.sum()\n",
    "a float": "def f(x, a: float = 0.3):\n    return (x * a + x.pow(2.0)).sum()\n",
    "an Optional": "def f(x, w: Optional[torch.Tensor] = None):\n    y = x * 3\n    if w is not None:\n        y = y * w\n"
                   "    return y.prod()\n",
}
OTHERS = {"n": 7, "a": 0.3, "w": None}
POINTS = np.array([[0.5, 1.25], [0.3, 0.9], [0.7, 0.1]])


def close(found, wanted):
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-10, atol=1e-12)


def both(source):
    """A text as a Python function of tensors, as a graph, and what its parameters after the first are."""
    space = {"torch": torch, "Optional": Optional}
    exec(source, space)     # noqa: S102
    module = irtool.from_script(source)
    return space["f"], module, [OTHERS[value.name.partition(".")[0]] for value in module.graph().inputs[1:]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_graph_is_its_function(name):
    f, module, rest = both(PROGRAMS[name])
    graph = module.graph()
    x = POINTS[0]
    wanted = irtool.grad(f)(x, *rest)
    close(irtool.vjp(graph, [x, *rest], [np.array(1.0)], [0])[0], wanted)
    for each in (graph, module, irtool.compile(graph), irtool.jit(graph)):
        close(irtool.grad(each)(x, *rest), wanted)
        found, value = irtool.dispatch.grad_and_value(each)(x, *rest)
        close(found, wanted)
        close(value, np.asarray(f(irtool.Tensor(x), *rest)))
    close(irtool.jit(graph)(x, *rest), np.asarray(f(irtool.Tensor(x), *rest)))
    close(irtool.jit(irtool.grad(graph))(x, *rest), wanted)
    close(irtool.jacrev(graph)(x, *rest), wanted)
    close(irtool.jacfwd(graph)(x, *rest), wanted)
    close(vjp(graph, x, *rest)[1](np.array(1.0))[0], wanted)
    if name in ("straight", "a loop until", "a branch"):
        second = np.asarray(irtool.hessian(f)(x, *rest))
        close(irtool.hessian(graph)(x, *rest), second)
        close(irtool.jvp(lambda x: irtool.grad(graph)(x, *rest), (x,), (x,))[1], second @ x)
    close(irtool.linearize(graph, x, *rest)[1](x, *[None] * len(rest)), np.asarray(wanted) @ x)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_batch_of_a_graph_is_a_loop(name):
    f, module, rest = both(PROGRAMS[name])
    dims = (0, *[None] * len(rest))
    close(irtool.vmap(module, in_dims=dims)(POINTS, *rest), [np.asarray(f(irtool.Tensor(x), *rest)) for x in POINTS])
    close(irtool.vmap(irtool.grad(module), in_dims=dims)(POINTS, *rest), [np.asarray(irtool.grad(f)(x, *rest)) for x in POINTS])


def test_several_inputs_and_outputs():
    graph = irtool.from_script("def f(a, xs: List[Tensor], b):\n    return a * xs[0] + xs[1], (a * b).sum()\n").graph()
    a, b, xs = POINTS[0], POINTS[1], [POINTS[2], POINTS[0]]
    first, second = irtool.jit(graph)(a, xs, b)
    close(first, a * xs[0] + xs[1])
    close(second, (a * b).sum())
    outputs, back = vjp(graph, a, xs, b)
    found = back((irtool.Tensor(np.ones(2)), irtool.Tensor(np.array(10.0))))
    close(found[0], xs[0] + 10 * b)
    close(found[1][0], a)
    close(found[1][1], np.ones(2))
    close(found[2], 10 * a)
    both_jacobians = irtool.jacrev(graph, argnums=(0, 2))(a, xs, b)
    close(both_jacobians[0][0], np.diag(xs[0]))
    close(both_jacobians[1][1], a)
    close(irtool.vmap(lambda a, b: graph_of_two(a, b=b))(POINTS, POINTS), POINTS * 2 - POINTS)


graph_of_two = irtool.jit(irtool.from_script("def f(a, b):\n    return a * 2 - b\n"))


def test_arguments_by_name():
    graph = irtool.from_script("def f(x, n: int):\n    return (x * n).sum()\n").graph()
    close(irtool.grad(graph)(POINTS[0], n=4), [4, 4])
    close(irtool.jit(graph)(n=4, x=POINTS[0]), 4 * POINTS[0].sum())


@pytest.mark.parametrize(("call", "words"), [
    (lambda g, x: irtool.grad(g)(x), "expected 2 inputs (%x.1 : Tensor, %n.1 : int), got 1"),
    (lambda g, x: irtool.grad(g)(x, m=1), "no input 'm'"),
    (lambda g, x: irtool.grad(g)(x, 1, n=1), "by position and by name"),
    (lambda g, x: irtool.vmap(g)(x, x), "%n.1 is int, which can be neither differentiated nor batched"),
    (lambda g, x: irtool.grad(g)(x, x), "%n.1: expected int, got a tensor of shape [2]"),
    (lambda g, x: irtool.grad(g)(x, "a"), "%n.1: expected int, got 'a'"),
    (lambda g, x: irtool.grad(irtool.PassManager("differentiate").run(irtool.from_script("def f(x):\n    return x * x\n"))),
     "has 2 (f, df); choose one"),
    (lambda g, x: irtool.jit(irtool.Module()), "has 0 (none)"),
    (lambda g, x: irtool.vmap(3), "expected a function, got int"),
])
def test_what_does_not_fit_is_named(call, words):
    graph = irtool.from_script("def f(x, n: int):\n    return (x * n).sum()\n").graph()
    with pytest.raises(irtool.RunError) as caught:
        call(graph, POINTS[0])
    assert words in str(caught.value)


@pytest.mark.parametrize("writes", ["y.mul_(2)", "v.mul_(2)", "y[0] = 1", "l.append(v)"])
def test_a_batched_branch_that_gives_memory_written_later_is_right_or_refused(writes: str) -> None:
    module = irtool.from_script("def f(x: Tensor):\n    v = x * 2\n    y = x * 3\n    k = [v]\n    l = [y]\n    if bool(x.sum() > 3):\n"
                                f"        y = v\n        l = k\n    {writes}\n    return v + y + torch.stack(k).sum(0)\n")
    batch = np.arange(6.0).reshape(3, 2)
    with pytest.raises(irtool.UnsupportedError, match="shares memory"):
        irtool.vmap(module)(batch)
