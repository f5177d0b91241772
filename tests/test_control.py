"""Graphs with branches and loops on batched and traced conditions."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import irtool
from irtool.dispatch import vmap
from irtool.dispatch.graphs import function_of
from irtool.dispatch.tracer import trace

X = np.array([[0.5, -1.0], [2.0, 3.0], [-0.1, 0.05], [0.0, 0.0]])

BRANCH = irtool.from_script("""
def f(x):
    if bool((x.sum() > 0) and not (x[0] > 1)):
        y = x * 2
    else:
        if bool(x[1] > 0.01):
            y = x * x * x
        else:
            y = x.exp()
    return (y * x).sum()
""").graph()
LOOP = irtool.from_script("""
def f(x):
    y = x
    while bool((y * y).sum() < 50):
        y = y * 1.5 + 0.1
    return y.sum()
""").graph()
BROKEN = irtool.from_script("""
def f(x):
    y = x
    for i in range(5):
        if bool(y.sum() > 3):
            break
        y = y + 0.7
    return y.sum()
""").graph()


def run(graph, x):
    return np.asarray(irtool.run(graph, [x])[0])


def no_warnings(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(*args)


@pytest.mark.parametrize("graph", [BRANCH, LOOP, BROKEN])
def test_a_batch_decides_place_by_place(graph):
    found = np.asarray(vmap(function_of(graph))(X))
    np.testing.assert_allclose(found, [run(graph, x) for x in X])
    nested = np.asarray(vmap(vmap(function_of(graph)))(np.stack([X, X + 0.3])))
    np.testing.assert_allclose(nested, [[run(graph, x) for x in rows] for rows in (X, X + 0.3)])


@pytest.mark.parametrize("graph", [BRANCH, LOOP, BROKEN])
def test_traced_branches_and_loops_stay(graph):
    traced = no_warnings(trace, function_of(graph), [X[0]])
    kinds = {node.kind for node in traced.walk()}
    assert "prim::If" in kinds if graph is BRANCH else "prim::Loop" in kinds or "prim::If" in kinds
    irtool.verify(traced)
    again = irtool.parse(str(traced)).graph()
    for x in X:
        np.testing.assert_array_equal(run(traced, x), run(graph, x))
        np.testing.assert_array_equal(run(again, x), run(graph, x))
        np.testing.assert_allclose(irtool.compile(traced)(x)[0], run(graph, x))


@pytest.mark.parametrize("graph", [BRANCH, LOOP, BROKEN])
def test_a_traced_batch_is_the_batch(graph):
    traced = no_warnings(trace, vmap(function_of(graph)), [X])
    np.testing.assert_allclose(run(traced, X + 0.2), [run(graph, x + 0.2) for x in X])


def test_gradients_of_branches():
    def wanted(x):
        return irtool.vjp(BRANCH, [x], [np.array(1.0)], [0])[0]

    f = function_of(BRANCH)
    for x in X:
        np.testing.assert_allclose(np.asarray(irtool.grad(f)(x)), wanted(x))
    np.testing.assert_allclose(np.asarray(vmap(irtool.grad(f))(X)), [wanted(x) for x in X])
    np.testing.assert_allclose(np.asarray(irtool.grad(lambda xs: vmap(f)(xs).sum())(X)), [wanted(x) for x in X])
    traced = no_warnings(trace, irtool.grad(f), [X[0]])
    assert any(node.kind == "prim::If" for node in traced.nodes)
    for x in X:
        np.testing.assert_allclose(run(traced, x), wanted(x))
    second = no_warnings(trace, irtool.grad(lambda x: irtool.grad(f)(x).sum()), [X[0]])
    for x in X[:3]:
        direct = np.asarray(irtool.grad(lambda x: irtool.grad(f)(x).sum())(x))
        np.testing.assert_allclose(run(second, x), direct)
        np.testing.assert_allclose(np.asarray(vmap(irtool.grad(lambda x: irtool.grad(f)(x).sum()))(x[None]))[0], direct)


def test_gradients_of_loops():
    f = function_of(LOOP)
    for x in X:
        np.testing.assert_allclose(np.asarray(irtool.grad(f)(x)), irtool.vjp(LOOP, [x], [np.array(1.0)], [0])[0])
    with pytest.raises(irtool.UnsupportedError, match="differentiate the graph instead"):
        vmap(irtool.grad(f))(X)


@pytest.mark.parametrize(("source", "message"), [
    ("def f(x):\n    y = x.clone()\n    if bool(x.sum() > 0):\n        y.add_(1)\n    return y\n", "is not supported with aten::add_"),
    ("def f(x):\n    n = 1\n    if bool(x.sum() > 0):\n        n = 2\n    return x * n\n", "gives 2 one way and 1 the other"),
    ("def f(x):\n    if bool(x.sum() > 0):\n        raise ValueError('no')\n    return x\n", "with prim::RaiseException"),
    ("def f(x):\n    y = x\n    i = 0\n    while bool(y.sum() < 5):\n        y = y + i + 1\n        i += 1\n    return y\n",
     "changes it|one way"),
])
def test_what_cannot_be_done_place_by_place_says_so(source, message):
    graph = irtool.from_script(source).graph()
    for transformed in (vmap(function_of(graph)), lambda x: trace(function_of(graph), [x[1]])):
        with pytest.raises(irtool.UnsupportedError, match=message):
            transformed(X)
