"""grad, vmap and what they make together, on functions of arrays."""
from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch
from irtool.dispatch import Autograd, Hooks, Logger, current, jacfwd, jacrev, vjp, vmap
from irtool.dispatch.autograd import register_hook
from irtool.dispatch.graph_functions import function_of, transformed
from irtool.dispatch.tracer import TraceWarning, trace

RNG = np.random.default_rng(0)
W1, W2, X, Y = RNG.standard_normal((4, 8)), RNG.standard_normal((8, 2)), RNG.standard_normal((5, 4)), RNG.standard_normal((5, 2))


def mlp(w1, w2, x, y):
    return ((torch.tanh(x @ w1) @ w2 - y) ** 2).sum()


def close(a, b, tolerance=1e-12):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def slope(f, x, direction, step=1e-6):
    return (np.asarray(f(x + step * direction)) - np.asarray(f(x - step * direction))) / (2 * step)


def test_a_gradient_is_the_slope():
    direction = RNG.standard_normal(W1.shape)
    found = irtool.grad(mlp)(W1, W2, X[0], Y[0])
    close((np.asarray(found) * direction).sum(), slope(lambda w: mlp_value(w), W1, direction), 1e-6)


def mlp_value(w):
    return np.asarray(mlp(irtool.Tensor(w), irtool.Tensor(W2), irtool.Tensor(X[0]), irtool.Tensor(Y[0])))


def test_gradients_nest():
    cube = irtool.grad(irtool.grad(irtool.grad(lambda x: x * x * x * x)))
    close(cube(np.array(2.0)), 48.0)
    found, value = irtool.value_and_grad(lambda x: (x * x).sum())(np.arange(3.0))[::-1]
    close(found, [0, 2, 4])
    close(value, 5.0)


def test_arguments_that_are_not_used():
    def f(x, y):
        return (x * 2).sum()
    close(irtool.grad(f, argnums=1)(np.ones(2), np.ones(3)), np.zeros(3))
    assert irtool.grad(f, argnums=(0, 1), unused="none")(np.ones(2), np.ones(3))[1] is None


def test_trees_and_aux():
    def f(parameters, x):
        return (parameters["w"] * x + parameters["b"][0]).sum(), x * 2
    grads, aux = irtool.grad(f, has_aux=True)({"w": np.ones(3), "b": (np.zeros(()),)}, np.arange(3.0))
    close(grads["w"], [0, 1, 2])
    close(grads["b"][0], 3.0)
    close(aux, [0, 2, 4])


def test_gradients_per_sample():
    per_sample = irtool.vmap(irtool.grad(mlp, argnums=(0, 1)), in_dims=(None, None, 0, 0))(W1, W2, X, Y)
    for i in range(5):
        for together, alone in zip(per_sample, irtool.grad(mlp, argnums=(0, 1))(W1, W2, X[i], Y[i]), strict=True):
            close(np.asarray(together)[i], alone)
    whole = irtool.grad(lambda w: irtool.vmap(mlp, (None, None, 0, 0))(w, irtool.Tensor(W2), irtool.Tensor(X), irtool.Tensor(Y)).sum())(W1)
    close(np.asarray(per_sample[0]).sum(0), whole)


def test_vmap_in_and_out_dims():
    a, b = RNG.standard_normal((3, 4)), RNG.standard_normal((4, 5))
    close(vmap(lambda x, y: x * y, in_dims=(1, 0), out_dims=1)(a, b[:, :3]), a * b[:, :3].T)
    close(vmap(vmap(lambda x, y: (x * y).sum(), (None, 1)), (0, None))(a, b), a @ b)
    close(vmap(lambda x: irtool.Tensor(np.ones(2)))(a), np.ones((3, 2)))
    assert np.asarray(vmap(vmap(lambda x: x.unsqueeze(0)))(np.zeros((3, 4, 5)))).shape == (3, 4, 1, 5)
    seen = []
    vmap(vmap(lambda x: seen.append(x.shape) or x))(np.zeros((3, 4, 5)))
    assert seen == [[5]]


def test_what_vmap_refuses():
    x = np.ones((3, 2))
    for function, args, message in (
        (vmap(lambda: 1), (), "nothing to batch"),
        (vmap(lambda a, b: a), (x, np.ones((4, 2))), "extents 3 and 4"),
        (vmap(lambda a: 1), (x,), "must give tensors, it gave int"),
        (vmap(lambda a: a, in_dims=2), (x,), "dimension 2 of a tensor of shape"),
        (vmap(lambda a: a, in_dims=(0, 0)), (x,), "in_dims"),
        (vmap(lambda a: a, in_dims=None), (x,), "None for every argument"),
        (vmap(lambda a: bool(a.sum() > 0)), (x,), "aten::Bool.Tensor under vmap is not supported: it makes a Python number of elements"),
        (vmap(lambda a: torch.ops.aten.leaky_relu(a, a.sum())), (x,), "with a batched tensor as 'negative_slope': it makes"),
        (vmap(lambda a: torch.ops.aten.leaky_relu(a, a)), (x[:, 0],), "with a batched tensor as 'negative_slope'"),
        (vmap(lambda a: torch.ops.aten.linalg_pinv(a, atol=a.sum(), rtol=1e-3)), (x[..., None],), "with a batched tensor as 'atol'"),
        (irtool.grad(lambda a: a), (x,), "scalar tensor"),
        (irtool.grad(lambda a: 1), (x,), "must give a tensor"),
        (irtool.grad(lambda a: a.sum(), argnums=3), (x,), "argnums"),
    ):
        with pytest.raises(irtool.Error, match=message):
            function(*args)


def test_escaped_values_are_errors():
    kept = []
    irtool.grad(lambda x: kept.append(x) or (x * x).sum())(np.ones(2))
    with pytest.raises(irtool.Error, match="escaped its transform"):
        kept[0] * 2
    with pytest.raises(irtool.Error, match="escaped its transform"):
        np.asarray(kept[0])


def test_jacobians_and_hessians():
    def f(x):
        return torch.sin(x) * x.sum()
    x = X[0]
    wanted = np.diag(np.cos(x) * x.sum()) + np.sin(x)[:, None]
    close(jacrev(f)(x), wanted)
    close(jacfwd(f)(x), wanted)
    second = np.asarray(irtool.hessian(lambda x: f(x).sum())(x))
    close(second, np.asarray(jacrev(jacrev(lambda x: f(x).sum()))(x)))
    close(second, second.T)
    outputs, tangents = irtool.jvp(f, (x,), (np.ones(4),))
    close(outputs, np.sin(x) * x.sum())
    close(tangents, wanted @ np.ones(4))
    outputs, back = vjp(lambda a, b: (a * b, a.sum()), x, 2 * x)
    found = back((np.ones(4), np.array(3.0)))
    close(found[0], 2 * x + 3)
    close(found[1], x)


def test_custom_vjp_shows_under_every_transformation():
    """A backward that is wrong on purpose."""
    square = irtool.custom_vjp(lambda x: (x * x, x), lambda g, x: [g * x * 32])
    x = X[0]
    close(irtool.grad(lambda x: square(x).sum())(x), 32 * x)
    close(irtool.grad(lambda x: irtool.grad(lambda x: square(x).sum())(x).sum())(x), np.full(4, 32.0))
    close(vmap(irtool.grad(lambda x: square(x).sum()))(X), 32 * X)
    close(irtool.grad(lambda x: vmap(lambda x: square(x).sum())(x).sum())(X), 32 * X)


def test_custom_vjp_under_a_trace_and_hooks():
    square = irtool.custom_vjp(lambda x: (x * x, x), lambda g, x: [g * x * 32])
    graph = trace(vmap(irtool.grad(lambda x: square(x).sum())), [X])
    close(irtool.run(graph, [X + 1])[0], 32 * (X + 1))
    close(irtool.run(trace(lambda x: square(x), [X]), [X])[0], X * X)
    with Hooks(current()), Logger(current(), "log", lambda line: None):
        close(irtool.grad(lambda x: square(x).sum())(X[0]), 32 * X[0])


def test_hooks_see_and_replace_gradients():
    seen = []

    def f(x):
        y = x * 3
        register_hook(y, lambda g: seen.append(np.asarray(g)) or g * 10)
        return (y * y).sum()
    close(irtool.grad(f)(np.ones(2)), [180, 180])
    close(seen[0], [6, 6])


def with_hook(x: Any) -> Any:
    y = x * x
    irtool.register_hook(y, lambda gradient: gradient * 10)
    return y


@pytest.mark.parametrize(("call", "expected"), [
    (lambda x, v: irtool.jvp(with_hook, (x,), (v,))[1], [6.0, 12.0]),
    (lambda x, v: irtool.linearize(with_hook, x)[1](v), [6.0, 12.0]),
    (lambda x, v: irtool.jacfwd(with_hook)(x), [[6.0, 0.0], [0.0, 6.0]]),
    (lambda x, v: irtool.jvp(lambda y: irtool.jvp(with_hook, (y,), (v,))[1], (x,), (v,))[1], [2.0, 8.0]),
    (lambda x, v: irtool.vmap(lambda y: irtool.jvp(with_hook, (y,), (v,))[1])(x[None])[0], [6.0, 12.0]),
    (irtool.jit(lambda x, v: irtool.jvp(with_hook, (x,), (v,))[1]), [6.0, 12.0]),
    (lambda x, v: irtool.jvp(irtool.grad(lambda y: with_hook(y).sum()), (x,), (v,)), [[60.0, 60.0], [20.0, 40.0]]),
    (lambda x, v: irtool.hessian(lambda y: with_hook(y).sum())(x), [[20.0, 0.0], [0.0, 20.0]]),
    (lambda x, v: irtool.jacrev(with_hook)(x), [[60.0, 0.0], [0.0, 60.0]])])
def test_hooks_change_gradients_and_no_tangents(call: Any, expected: Any) -> None:
    found = call(np.array([3.0, 3.0]), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(np.stack([np.asarray(each) for each in found]), expected)


def test_a_hook_where_tangents_are_differentiated_is_refused() -> None:
    with pytest.raises(irtool.Error, match="cannot register a hook on a tensor that doesn't require gradient"):
        irtool.grad(lambda x: irtool.jvp(with_hook, (x,), (x,))[0].sum())(np.ones(2))


def test_randomness():
    x = np.ones((3, 1000))
    with pytest.raises(irtool.Error, match="say randomness"):
        vmap(lambda x: torch.bernoulli(x, 0.5))(x)
    same = np.asarray(vmap(lambda x: x + torch.rand([1000]), randomness="same")(x))
    assert (same[0] == same[1]).all()


def test_in_place_operators_give_their_tensor_another_value():
    def f(x):
        y = x * 1
        y.mul_(3)
        y.add_(1)
        return (y * y).sum()
    close(irtool.grad(f)(np.ones(2)), [24, 24])
    close(vmap(f)(np.ones((3, 2))), [32, 32, 32])
    with pytest.raises(irtool.Error, match="`self` not being vmapped over"):
        vmap(lambda x: irtool.Tensor(np.ones(2)).add_(x))(np.ones((3, 2)))


# -- graphs
def test_tracing_then_running_is_running():
    graph = trace(mlp, [W1, W2, X[0], Y[0]])
    assert [value.type.text for value in graph.inputs][0] == "Double(4, 8, strides=[8, 1], requires_grad=0, device=cpu)"
    (found,) = irtool.run(graph, [W1, W2, X[0], Y[0]])
    assert found == np.asarray(mlp(*map(irtool.Tensor, (W1, W2, X[0], Y[0]))))
    again = irtool.parse(str(graph)).graph()
    assert irtool.run(again, [W1, W2, X[0], Y[0]])[0] == found


def test_tracing_a_transformation_is_the_transformation():
    per_sample = irtool.vmap(irtool.grad(mlp, argnums=(0, 1)), in_dims=(None, None, 0, 0))
    graph = trace(per_sample, [W1, W2, X, Y])
    for found, wanted in zip(irtool.run(graph, [W1, W2, X, Y]), per_sample(W1, W2, X, Y), strict=True):
        np.testing.assert_array_equal(found, np.asarray(wanted))


def test_a_graph_under_transformations():
    graph = trace(mlp, [W1, W2, X[0], Y[0]])
    text = "vmap(grad(argnums=(0, 1)), in_dims=(None, None, 0, 0))"
    found = transformed(function_of(graph), text)(*map(irtool.Tensor, (W1, W2, X, Y)))
    wanted = irtool.vmap(irtool.grad(mlp, argnums=(0, 1)), in_dims=(None, None, 0, 0))(W1, W2, X, Y)
    for one, other in zip(found, wanted, strict=True):
        close(one, other)
    for wrong in ("vmap(", "gradd(0)", "vmap(grad(x))", "vmap(1 + 1)", "grad(0)(1)", "vmap(grad(0), nope=1)", "(" * 500):
        with pytest.raises(irtool.Error):
            transformed(function_of(graph), wrong)(W1)


def test_a_branch_on_elements_is_warned_about():
    def f(x):
        return x * 2 if x.sum() > 0 else x
    with pytest.warns(TraceWarning, match="aten::Bool"):
        trace(f, [np.ones(2)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace(lambda x: x.reshape([x.shape[0], 1]), [np.ones(2)])


def test_a_value_of_another_trace_is_an_error():
    kept = []
    trace(lambda x: kept.append(x) or x * 2, [np.ones(2)])
    with pytest.raises(irtool.Error, match="escaped|another trace"):
        trace(lambda x: x * kept[0], [np.ones(2)])


def test_the_first_evaluator():
    """The test of 2017: gradients accumulate, then the traced graph is run again with other numbers."""
    def product(x, y):
        return x * y
    gradients = np.zeros(2)
    gradients += [float(g) for g in irtool.grad(product, (0, 1))(np.array(4.0), np.array(7.0))]
    assert gradients.tolist() == [7, 4]
    graph = trace(irtool.grad(product, (0, 1)), [np.array(4.0), np.array(7.0)])
    gradients += [float(g) for g in irtool.run(graph, [np.array(2.0), np.array(3.0)])]
    assert gradients.tolist() == [7 + 3, 4 + 2]


def test_a_missing_gradient_of_a_custom_backward_is_zeros_where_it_is_needed():
    product = irtool.custom_vjp(lambda x, y: (x * y, (x, y)), lambda g, saved: [g * saved[1], None])
    found = irtool.grad(lambda x, y, z: product(x, y).sum(), (0, 1, 2), unused="none")(X[0], X[1], X[2])
    close(found[0], X[1])
    close(found[1], np.zeros(4))        # None, though y is on the tape
    assert found[2] is None             # never reached
    close(irtool.grad(lambda x, y, z: product(x, y).sum(), 2)(X[0], X[1], X[2]), np.zeros(4))
    wrong = irtool.custom_vjp(lambda x: (x * x, x), lambda g, x: [g, g])
    with pytest.raises(irtool.Error, match="gave 2 gradients for 1 arguments"):
        irtool.grad(lambda x: wrong(x).sum())(X[0])


def test_missing_gradients_are_none_or_zeros():
    tape = Autograd(current())
    x, y = tape.variable(irtool.Tensor(X[0])), tape.variable(irtool.Tensor(X[1]))
    with tape:
        z = (x * 2).sum()
    seed = irtool.Tensor(np.array(1.0))
    assert tape.gradients([z], [seed], [x, y])[1] is None
    close(tape.gradients([z], [seed], [x, y], unused="zeros")[1], np.zeros(4))


def test_traces_nest():
    inner_graphs = []

    def outer(x):
        inner_graphs.append(trace(lambda y: y * y + 1, [np.ones(2)]))
        return x * 2
    graph = trace(outer, [np.ones(2)])
    close(irtool.run(graph, [np.full(2, 3.0)])[0], [6, 6])
    close(irtool.run(inner_graphs[0], [np.full(2, 3.0)])[0], [10, 10])

    def traced_inside(x):       # a traced value is what the inner trace is made of
        inner_graphs.append(trace(lambda y: y * y + x, [x]))
        return x * 3
    with pytest.raises(irtool.Error, match="value of another trace"):
        trace(traced_inside, [np.ones(2)])


def test_hooks_of_a_tape_see_gradients_before_and_after_an_operation():
    tape = Autograd(current())
    x = tape.variable(irtool.Tensor(X[0]))
    with tape:
        z = (x.sin() * 3).sum()
    seen = []
    tape.pre_hooks.append(lambda name, grads: seen.append(("into", name)))
    tape.post_hooks.append(lambda name, found, grads: seen.append(("out of", name)))
    tape.post_hooks.append(lambda name, found, grads: [found[0] * 2] if name == "aten::sin" else None)
    (found,) = tape.gradients([z], [irtool.Tensor(np.array(1.0))], [x])
    close(found, 6 * np.cos(X[0]))
    assert [name for when, name in seen if when == "into"] == ["aten::sum", "aten::mul.Tensor", "aten::sin"] or \
        [name for when, name in seen if when == "into"] == ["aten::sum", "aten::mul.Scalar", "aten::sin"]
    assert seen[::2] == [("into", name) for _, name in seen[1::2]]


def test_hooks_of_a_layer_see_and_replace_operations():
    names = []

    def before(name, args):
        names.append(name)
        return [args[0], 5] if name == "aten::mul.Scalar" else None
    with Hooks(current(), before, lambda name, args, result: -result if name == "aten::sin" else None):
        y = irtool.Tensor(X[0]).sin() * 3
    close(y, -np.sin(X[0]) * 5)
    assert "aten::sin" in names


# -- jit
def test_jit_traces_once_per_signature():
    calls = []

    def f(x, n):
        calls.append(n)
        return {"y": x * n, "s": (x.sum(),)}
    fast = irtool.jit(f)
    for x, n in ((X, 2), (Y, 2), (X + 1, 2), (X, 3), (X.astype(np.float32), 3), (X, 2), (X, 2.0), (X, True)):
        found = fast(x, n)
        close(found["y"], x * n)
        close(found["s"][0], x.sum(), 1e-5)
    assert calls == [2, 2, 3, 2.0, True]       # numbers are inputs; their class is part of the signature, and so is a bool
    assert len(fast.graphs()) == 5 and isinstance(found["y"], irtool.Tensor)
    close(irtool.grad(lambda x: fast(x, 2)["s"][0])(X), np.ones_like(X))        # under a layer the function itself
    with pytest.raises(irtool.Error, match="must give tensors"):
        irtool.jit(lambda x: {1})(X)
    with pytest.raises(irtool.Error):
        irtool.jit(lambda x: x @ x)(X)


def test_jit_of_transformations():
    per_sample = irtool.vmap(irtool.grad(mlp, argnums=(0, 1)), in_dims=(None, None, 0, 0))
    fast = irtool.jit(per_sample)
    for _ in range(3):
        for found, wanted in zip(fast(W1, W2, X, Y), per_sample(W1, W2, X, Y), strict=True):
            close(found, wanted, 1e-10)
    (variant,) = fast.variants
    assert variant.executor.stats["execution_plan_cache_miss"] == 1


def test_nothing_keeps_results_alive():
    """A cycle of references would keep arrays until the next collection: memory that a plan could use again."""
    fast = irtool.jit(lambda x: (x * 2, {"y": x + 1}))
    gc.collect()
    gc.disable()
    try:
        result = fast(X)
        kept = weakref.ref(result[1]["y"].array)
        del result
        assert kept() is None
    finally:
        gc.enable()


def test_calls_bind_as_torch_s_do():
    """What a schema wants by name is not taken by place (`prod(x, 0)` is along dimension 0); a number may stand for a list of so many."""
    x = irtool.Tensor(X)
    close(torch.prod(x, 0), np.prod(X, 0))
    close(x.prod(1), np.prod(X, 1))
    close(irtool.grad(lambda x: (x.sum(0) * torch.prod(x, 0)).sum())(X), np.asarray(irtool.grad(
        lambda x: (x.sum([0]) * torch.prod(x, 0, False)).sum())(X)))
    kernel = irtool.Tensor(RNG.standard_normal((2, 1, 3)))
    close(irtool.jacrev(lambda x: torch.conv1d(x.reshape([1, 1, 20]), kernel, None, 1, 1))(X),
          irtool.jacrev(lambda x: torch.conv1d(x.reshape([1, 1, 20]), kernel, None, [1], [1]))(X))


def test_tangents_where_a_formula_asks_about_zeros():
    """The cotangent that a vjp is differentiated at is not zero: formulas may have corners there."""
    x, direction = np.array([0.3, -1.0, 2.0]), np.array([1.0, -0.5, 0.25])

    def function(x):
        return torch.logcumsumexp(x, 0) + torch.cumprod(x, 0)
    for f, point, moved in ((function, x, direction), (vmap(function), np.stack([x, x + 1]), np.stack([direction, direction]))):
        found = irtool.jvp(f, (point,), (moved,))[1]
        close(found, slope(lambda p, f=f: f(irtool.Tensor(p)), point, moved), 1e-8)
    second = irtool.hessian(lambda x: torch.cumprod(x, 0).sum())
    close(vmap(second)(np.stack([x, x]))[1], second(x))


def test_a_pullback_takes_torchs_options() -> None:
    x = np.array([1.0, 2.0])
    _, back = irtool.torch.func.vjp(lambda x: x * x, x)
    for options in ({}, {"retain_graph": False}, {"retain_graph": True, "create_graph": True}):
        assert np.asarray(back(x, **options)[0]).tolist() == [2, 8]
