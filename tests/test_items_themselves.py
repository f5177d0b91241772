"""`broadcast_tensors` and `atleast_2d` of a list return its tensors themselves where they have nothing to do: a new shape of one is then
one of the other, on every way to run, under gradients and under transformations, as in torch."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from fuzz.gradients import EXECUTORS

CALLS = {"broadcast_tensors": "torch.broadcast_tensors([v, u])", "atleast_2d": "torch.atleast_2d([v, u])",
         "atleast_1d": "torch.atleast_1d([v, u])"}
WRITES = {"t_": "v.t_()", "unsqueeze_": "v.unsqueeze_(0)", "transpose_": "v.transpose_(0, 1)", "mul_": "v.mul_(2.0)"}
X = np.arange(4.0).reshape(2, 2) + 1.0


def expected(name: str, write: str, row: Any) -> tuple[Any, Any]:
    """The value and the gradient of the program below for one row of u, computed by hand."""
    v = {"t_": X.T, "transpose_": X.T, "unsqueeze_": X[None], "mul_": 2 * X}[write] * 2.0
    slope = np.arange(4.0).reshape(2, 2) + 1.0
    value = (v * (slope if write != "unsqueeze_" else slope[None])).sum() + (np.broadcast_to(row, (2, 2)) if name[0] == "b" else row).sum()
    return value, {"t_": slope.T, "transpose_": slope.T, "unsqueeze_": slope, "mul_": 2 * slope}[write] * 2.0


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", CALLS)
def test_graphs(name: str, write: str) -> None:
    u = np.array([[0.5], [0.25]])
    module = irtool.from_script("def f(x: Tensor, u: Tensor, w: Tensor):\n"
                                f"    v = x * 2.0\n    parts = {CALLS[name]}\n    {WRITES[write]}\n"
                                "    return (parts[0] * w).sum() + parts[1].sum()\n")
    inputs = [X, u, np.arange(4.0).reshape(2, 2) + 1.0]
    value, slope = expected(name, write, u)
    assert irtool.run(module, inputs, interpret=True)[0] == value
    np.testing.assert_array_equal(irtool.vjp(module, inputs, [np.array(1.0)], [0], interpret=True)[0], slope)
    np.testing.assert_array_equal(irtool.vjp(module, inputs, [np.array(1.0)], [0])[0], slope)
    for way, options in EXECUTORS.items():
        run = irtool.compile(module, **options)
        for _ in range(3):
            assert run(*inputs)[0] == value, way
            np.testing.assert_array_equal(run.vjp(inputs, [np.array(1.0)], [0])[0], slope, err_msg=way)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", CALLS)
def test_transformations(name: str, write: str) -> None:
    """grad, jit, vmap of u and of x; and a trace whose u has sizes that ask for more than its example did."""
    torch = irtool.torch

    def f(x: Any, u: Any) -> Any:
        v = x * 2.0
        parts = getattr(torch, name)([v, u])
        getattr(v, write)(*{"t_": (), "unsqueeze_": (0,), "transpose_": (0, 1), "mul_": (2.0,)}[write])
        return (parts[0] * torch.tensor(np.arange(4.0).reshape(2, 2) + 1.0)).sum() + parts[1].sum()

    u = np.array([[0.5], [0.25]])
    value, slope = expected(name, write, u)
    for function in (f, irtool.jit(f)):
        for _ in range(3):
            assert float(function(torch.tensor(X), torch.tensor(u))) == value
            np.testing.assert_array_equal(irtool.grad(function)(torch.tensor(X), torch.tensor(u)).array, slope)
            np.testing.assert_array_equal(irtool.jit(irtool.grad(function))(torch.tensor(X), torch.tensor(u)).array, slope)
    batch = np.stack([u, 2 * u, -u])
    values = [expected(name, write, each)[0] for each in batch]
    np.testing.assert_array_equal(irtool.vmap(f, in_dims=(None, 0))(torch.tensor(X), torch.tensor(batch)).array, values)
    np.testing.assert_array_equal(irtool.vmap(f)(torch.tensor(np.stack([X, X, X])), torch.tensor(batch)).array, values)
    whole = np.broadcast_to(u, (2, 2)).copy()
    graph = irtool.trace(f, [X, whole])
    assert irtool.run(graph, [X, whole])[0] == expected(name, write, whole)[0]
    assert irtool.run(graph, [X, u])[0] == value


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_constant_among_the_items_is_traced(order: tuple[int, int]) -> None:
    """A tensor that is no part of the trace, and has the size already, is an item itself, too."""
    def f(x: irtool.Tensor) -> irtool.Tensor:
        items = [x, irtool.torch.tensor([0.0, 1.0])]
        one, other = irtool.torch.broadcast_tensors(items[order[0]], items[order[1]])
        return (one * 2 + other) * x
    x = irtool.torch.tensor([3.0])
    np.testing.assert_allclose(irtool.jit(f)(x).array, f(x).array)
    np.testing.assert_allclose(irtool.jit(irtool.grad(lambda x: f(x).sum()))(x).array, irtool.grad(lambda x: f(x).sum())(x).array)
