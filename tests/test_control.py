"""Graphs with branches and loops on batched and traced conditions."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import irtool
from irtool.dispatch import vmap
from irtool.dispatch.graph_functions import function_of
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


LOOPS = {
    "one that stops by its values": """    y = x
    while bool((y * y).sum() < 50):
        y = y * 1.5 + 0.1 * x
    return (y * y * x).sum()
""",
    "one that breaks": """    y = x
    for i in range(5):
        if bool(y.sum() > 3):
            break
        y = y.sin() * 2 + 0.7
    return (y * y).sum()
""",
    "one in another": """    y = x
    while bool(y.sum() < 20):
        z = x
        while bool(z.sum() < 5.13):
            z = z * 1.3 + 0.5
        y = y + z * z * 0.3
    return (y * y).sum()
""",
    "a branch in one": """    y = x
    while bool(y.abs().sum() < 20):
        if bool(y.sum() > 0):
            y = y * 1.7 + 0.2
        else:
            y = y * y + x.sin() + 1
    return (y * y).sum()
""",
    "two values, one of them from nothing": """    y = x
    n = x.sum() * 0
    while bool(n < 4):
        y = (y * x).tanh() + n
        n = n + 1
    return (y * y).sum()
""",
    "one that counts": "    y = x\n    for i in range(4):\n        y = (y * x).tanh() + i\n    return (y * y).sum()\n",
}
POINTS = np.array([[0.5, -1.0], [2.0, 3.0], [-0.1, 0.05], [0.3, 0.2]])


def close(found, wanted):
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-8, atol=1e-10)


@pytest.fixture(params=LOOPS)
def loop(request):
    """A graph with a loop, and its gradients at the points."""
    graph = irtool.from_script(f"def f(x):\n{LOOPS[request.param]}").graph()
    wanted = [irtool.vjp(graph, [x], [np.array(1.0)], [0])[0] for x in POINTS]
    direction = np.array([0.3, 0.7])
    for x, gradient in zip(POINTS, wanted, strict=True):
        slope = (run(graph, x + 1e-6 * direction) - run(graph, x - 1e-6 * direction)) / 2e-6
        np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-5, atol=1e-7)
    return graph, wanted


def test_gradients_of_loops_under_layers(loop):
    """Places of a batch stop where they do, to any order."""
    graph, wanted = loop
    f = function_of(graph)
    close([np.asarray(irtool.grad(f)(x)) for x in POINTS], wanted)
    close(vmap(irtool.grad(f))(POINTS), wanted)
    close(irtool.grad(lambda xs: vmap(f)(xs).sum())(POINTS), wanted)
    close(irtool.grad(lambda xs: vmap(vmap(f))(xs).sum())(np.stack([POINTS, POINTS])), [wanted, wanted])
    close(vmap(irtool.hessian(f))(POINTS), [np.asarray(irtool.hessian(f)(x)) for x in POINTS])


def test_traced_gradients_of_loops(loop):
    """The loop stays one, and so does the way back: the graph is right where other rounds are made, and can be differentiated again."""
    graph, wanted = loop
    f = function_of(graph)
    traced = no_warnings(trace, irtool.grad(f), [POINTS[0]])
    irtool.verify(traced)
    again = irtool.parse(str(traced)).graph()
    fast, whole = irtool.jit(irtool.grad(f)), irtool.jit(irtool.jacrev(lambda x: f(x) * x))
    for x, gradient in zip(POINTS, wanted, strict=True):
        close(run(traced, x), gradient)
        close(run(again, x), gradient)
        close(fast(x), gradient)
        close(whole(x), irtool.jacrev(lambda x: f(x) * x)(x))
        for seed, row in zip(np.eye(2), np.asarray(irtool.hessian(f)(x)), strict=True):
            close(irtool.vjp(again, [x], [seed], [0])[0], row)
    moved = [irtool.vjp(graph, [x + 0.1], [np.array(1.0)], [0])[0] for x in POINTS]
    for transformed in (vmap(irtool.grad(f)), irtool.grad(lambda xs: vmap(f)(xs).sum())):
        batched = no_warnings(trace, transformed, [POINTS])
        irtool.verify(batched)
        close(run(batched, POINTS + 0.1), moved)
        close(irtool.jit(transformed)(POINTS), wanted)


def test_what_tapes_cannot_do_with_traced_loops_they_say():
    f = function_of(LOOP)
    with pytest.raises(irtool.UnsupportedError, match="second derivative of a loop .* differentiate its graph"):
        trace(irtool.grad(lambda x: irtool.grad(f)(x).sum()), [X[0]])
    listed = irtool.from_script("""
def f(x):
    y = [x, x]
    n = x.sum()
    while bool(n < 4):
        n = n + y[0].sum() + 1
    return n
""")
    with pytest.raises(irtool.UnsupportedError, match="the gradient of a loop .* with lists of tensors"):
        trace(irtool.grad(function_of(listed.graph())), [X[0]])


@pytest.mark.parametrize(("source", "message"), [
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


def test_a_write_in_a_branch_is_a_new_value_there():
    f = function_of(irtool.from_script("""
def f(x):
    y = x.clone()
    if bool(x.sum() > 0):
        y[0].add_(1)
    return y * x
""").graph())
    x = np.array([[1.0, 2.0], [-3.0, 1.0]])
    wanted = [[2.0, 4.0], [9.0, 1.0]]
    close(vmap(f)(x), wanted)
    close(irtool.jit(vmap(f))(x), wanted)
    close(vmap(irtool.grad(lambda x: f(x).sum()))(x), [[3.0, 4.0], [-6.0, 2.0]])
