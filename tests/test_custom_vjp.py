"""A gradient of one's own stays, whatever becomes of the function: transformed, traced, written as text, differentiated, compiled."""
from __future__ import annotations

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.dispatch import vmap
from irtool.dispatch.graph_functions import function_of
from irtool.execute.compilation import Options
from irtool.execute.executor import Executor
from irtool.ir.custom import CUSTOM_VJP
from irtool.passmanager import PassManager

X = np.arange(1, 9.0).reshape(2, 4) / 4
WEIGHTS = np.cos(X)
BATCH = np.stack([X, X + 1])

square = irtool.custom_vjp(lambda x: (x * x, x), lambda g, x: [g * x * 32])
exp = irtool.custom_vjp(lambda x: (lambda y: (y, y))(x.exp()), lambda g, y: [g * y * 32])
cube = irtool.custom_vjp(lambda x: (x * x * x, x * x), lambda g, kept: [g * kept * 5])
outer = irtool.custom_vjp(lambda x: (square(x).sin(), x), lambda g, x: [g * square(x)])
pair = irtool.custom_vjp(lambda x, y: ((x * y, x + y), (x, y, x * x)), lambda g, kept: [g[0] * kept[1] * 3 + g[1] * 7 * kept[2], None])
listed = irtool.custom_vjp(lambda xs, n: (xs[0] * xs[1] * n, (xs, n)), lambda g, kept: [[g * kept[0][0] * kept[1], None], None])


def both(x):
    a, b = pair(x * 2, x.cos())
    return (a * b).sum()


PROGRAMS = {
    "saves its operand": lambda x: (square(x) * x).sum(),
    "saves its result": lambda x: (exp(x.sin()) * x).sum(),
    "saves something else": lambda x: cube(x * 2).sum(),
    "another's operand": lambda x: square(exp(x)).sum(),
    "one in another": lambda x: outer(x).sum(),
    "two results": both,
    "two results, one of them used": lambda x: pair(x * 2, x.cos())[0].sum(),
    "a list and a number": lambda x: listed([x.sin(), x], 3).sum(),
}


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10)


def again(graph):
    """The graph, written and read."""
    irtool.verify(graph)
    found = irtool.parse(str(graph)).graph()
    assert str(found) == str(graph)
    return found


def gradient_of_gradient(function):
    """The gradient of a weighted sum of a function's gradient."""
    return irtool.grad(lambda x: (irtool.grad(function)(x) * irtool.Tensor(WEIGHTS)).sum())


def test_the_gradients_are_wrong_as_asked_for():
    close(irtool.grad(PROGRAMS["saves its operand"])(X), 33 * X * X)
    close(irtool.grad(PROGRAMS["saves something else"])(X), 2 * 5 * (2 * X) ** 2)
    close(irtool.grad(PROGRAMS["two results, one of them used"])(X), 2 * 3 * np.cos(X))
    close(irtool.grad(PROGRAMS["a list and a number"])(X), 3 * np.sin(X) * np.cos(X))


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_nests(name):
    function = PROGRAMS[name]
    wanted = irtool.grad(function)(X)
    close(vmap(irtool.grad(function))(BATCH)[0], wanted)
    close(irtool.grad(lambda xs: vmap(function)(xs).sum())(BATCH)[0], wanted)
    close(irtool.jacrev(function)(X), wanted)
    close(irtool.jacfwd(function)(X), wanted)
    second = gradient_of_gradient(function)
    close(vmap(second)(BATCH), np.stack([np.asarray(second(x)) for x in BATCH]))
    close(irtool.grad(lambda xs: vmap(lambda x: (irtool.grad(function)(x) * irtool.Tensor(WEIGHTS)).sum())(xs).sum())(BATCH)[0], second(X))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_trace_keeps_it(name):
    function = PROGRAMS[name]
    wanted = irtool.grad(function)(X)
    graph = again(irtool.trace(function, [X]))
    assert any(node.kind == CUSTOM_VJP for node in graph.nodes)
    traced = function_of(graph)
    close(irtool.run(graph, [X])[0], function(irtool.Tensor(X)))
    close(irtool.grad(traced)(X), wanted)
    close(irtool.vjp(graph, [X], [np.array(1.0)], [0])[0], wanted)
    close(vmap(irtool.grad(traced))(BATCH)[0], wanted)
    close(irtool.hessian(traced)(X), irtool.hessian(function)(X))
    batched = again(irtool.trace(vmap(function), [BATCH]))
    close(irtool.grad(lambda xs: function_of(batched)(xs).sum())(BATCH)[0], wanted)
    close(irtool.run(irtool.trace(vmap(irtool.grad(function)), [BATCH]), [BATCH])[0][0], wanted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_of_graphs_are_those_of_the_function(name):
    function = PROGRAMS[name]
    wanted = gradient_of_gradient(function)(X)
    for graph in (irtool.trace(irtool.grad(function), [X]), irtool.trace(irtool.grad(function_of(irtool.trace(function, [X]))), [X])):
        (found,) = irtool.vjp(again(graph), [X], [WEIGHTS], [0])
        close(np.zeros_like(X) if found is None else found, wanted)     # what else is saved is a constant
        close(irtool.grad(lambda x, graph=graph: (function_of(graph)(x) * irtool.Tensor(WEIGHTS)).sum())(X), wanted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_plans_keep_it(name):
    function = PROGRAMS[name]
    graph = irtool.trace(function, [X])
    wanted = irtool.grad(function)(X)
    for options in (Options(), Options(optimize=False), Options(whole=False)):
        run = Executor(graph, options)
        for _ in range(3):
            close(run(X)[0], function(irtool.Tensor(X)))
            close(run.vjp([X], [np.array(1.0)], [0])[0], wanted)
    assert not any(node.kind == CUSTOM_VJP for node in irtool.compile(graph).plan_for(X).graph.walk())
    close(irtool.jit(irtool.grad(function))(X), wanted)


def test_opened_it_has_the_derived_gradient():
    module = PassManager("lower-custom-vjp").run(irtool.parse(str(irtool.trace(PROGRAMS["one in another"], [X]))))
    assert CUSTOM_VJP not in str(module)
    close(irtool.vjp(module.graph(), [X], [np.array(1.0)], [0])[0], 2 * X * np.cos(X * X))


def test_what_the_functions_read_besides_becomes_an_operand_without_a_gradient():
    def function(x, w):
        return irtool.custom_vjp(lambda x: (x * w, x), lambda g, x: [g * w * x])(x).sum()
    graph = again(irtool.trace(function, [X, WEIGHTS]))
    assert len(next(node for node in graph.nodes if node.kind == CUSTOM_VJP).inputs) == 2
    found = irtool.vjp(graph, [X, WEIGHTS], [np.array(1.0)], [0, 1])
    close(found[0], X * WEIGHTS)
    assert not np.any(found[1])


def test_undefined_gradients_are_zeros_for_the_function():
    """Of two results one is reached, or, in the reverse graph, turns out to have a gradient."""
    text = str(irtool.trace(lambda x: pair(x * 2, x.cos()), [X]))
    graph = irtool.parse(text).graph()
    for seeds in ([WEIGHTS, None], [None, WEIGHTS], [WEIGHTS, X]):
        wanted = irtool.vjp(graph, [X], [np.zeros_like(X) if seed is None else seed for seed in seeds], [0])[0]
        close(irtool.vjp(graph, [X], seeds, [0])[0], wanted)
        tape = irtool.dispatch.vjp(function_of(graph), X)[1]
        close(tape(tuple(irtool.Tensor(np.zeros_like(X) if seed is None else seed) for seed in seeds))[0], wanted)


def test_what_does_not_fit_is_said():
    wrong = irtool.custom_vjp(lambda x: (x * x, x), lambda g, x: [g, g])
    with pytest.raises(irtool.Error, match="gave 2 gradients for 1 arguments"):
        irtool.trace(lambda x: wrong(x), [X])
    with pytest.raises(irtool.Error, match="must give tensors, it gave int"):
        irtool.trace(lambda x: irtool.custom_vjp(lambda x: (3, x), lambda g, x: [g])(x), [X])
    shorter = irtool.custom_vjp(lambda xs: (xs[0] * xs[1], xs), lambda g, xs: [[g]])
    with pytest.raises(irtool.Error, match="gave 1 gradients for an argument of 2"):
        irtool.trace(lambda x: shorter([x, x]), [X])


OWN = """with irtool::custom_vjp_0 = graph(%x : Tensor):
  %1 : Tensor = aten::mul(%x, %x)
  return (%1, %x)
with irtool::custom_vjp_0.backward = graph(%g : Tensor, %x : Tensor):
  %2 : Tensor = aten::mul(%g, %x)
  %3 : int = prim::Constant[value=3]()
  %4 : Tensor = aten::mul(%2, %3)
  return (%4)
"""
IN_A_LOOP = """graph(%x : Tensor):
  %n : int = prim::Constant[value=3]()
  %t : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %c : Tensor):
      %a : Tensor, %s : Tensor = irtool::custom_vjp_0[outputs=1, backward=<Graph>](%c)
      %b : Tensor = aten::sin(%a)
      -> (%t, %b)
  %r : Tensor = aten::sum(%y, %none)
  return (%r)
""" + OWN
IN_A_BRANCH = """graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %m : Tensor = aten::sum(%x, %none)
  %q : Tensor = aten::gt(%m, %zero)
  %p : bool = aten::Bool(%q)
  %y : Tensor = prim::If(%p)
    block0():
      %a : Tensor, %s : Tensor = irtool::custom_vjp_0[outputs=1, backward=<Graph>](%x)
      -> (%a)
    block1():
      %b : Tensor = aten::sin(%x)
      -> (%b)
  %r : Tensor = aten::sum(%y, %none)
  return (%r)
""" + OWN


@pytest.mark.parametrize("text", [IN_A_LOOP, IN_A_BRANCH])
def test_it_stands_in_blocks(text):
    points = np.array([[0.5, -1.0], [2.0, 3.0], [-0.1, 0.05]])
    graph = irtool.parse(text).graph()
    irtool.verify(graph)
    function = function_of(graph)
    wanted = [np.asarray(irtool.grad(function)(x)) for x in points]
    close(vmap(irtool.grad(function))(points), wanted)
    traced, gradients = again(irtool.trace(function, [points[0]])), irtool.trace(irtool.grad(function), [points[0]])
    for x, gradient in zip(points, wanted, strict=True):
        close(irtool.run(gradients, [x])[0], gradient)
        close(irtool.compile(graph).vjp([x], [np.array(1.0)], [0])[0], gradient)
        for each in (graph, traced):
            close(irtool.vjp(each, [x], [np.array(1.0)], [0])[0], gradient)
    a = np.sin(points[1] ** 2)
    close(wanted[1], 3 * points[1] if text is IN_A_BRANCH else
          27 * points[1] * np.cos(points[1] ** 2) * a * np.cos(a ** 2) * np.sin(a ** 2) * np.cos(np.sin(a ** 2) ** 2))


def test_a_gradient_of_another_shape_than_its_argument_is_refused():
    wrong = irtool.custom_vjp(lambda x: (x.sign(), x), lambda gradient, x: [gradient.sum()])
    for transformed in (irtool.grad(lambda x: wrong(x).sum()), lambda x: irtool.trace(lambda y: wrong(y).sum(), [x])):
        with pytest.raises(irtool.RunError, match="gave a gradient of shape .* for an argument of shape"):
            transformed(X)


@pytest.mark.parametrize("transform", [
    lambda f: f, irtool.grad, irtool.value_and_grad, lambda f: lambda x: irtool.jvp(f, (x,), (x,)), gradient_of_gradient])
def test_random_numbers_are_drawn_as_without_jit(transform):
    """In the call that is traced, too, which records `backward` before it is asked for, or though it never is."""
    noisy = irtool.custom_vjp(lambda x: (lambda drawn: (x * drawn, (x, drawn)))(torch.rand_like(x)),
                              lambda g, kept: [g * kept[0] * kept[1] * torch.rand_like(g)])
    eager = transform(lambda x: (noisy(x.sin()) * torch.rand_like(x) + noisy(x)).sum())
    fast = irtool.jit(eager)
    for seed in range(3):
        drawn = []
        for function in (eager, fast):
            torch.manual_seed(seed)
            results = function(irtool.Tensor(X))
            drawn.append([*(results if isinstance(results, tuple) else [results]), torch.rand([2])])
        for found, wanted in zip(*drawn, strict=True):
            close(found, wanted)
