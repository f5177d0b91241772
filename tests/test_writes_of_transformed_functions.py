"""Writes of a transformed function into arguments that it is not differentiated for reach the caller, once, as after a plain call."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

X, COUNT = np.array([0.5, -1.0]), np.array([3.0, 4.0])


def counting(x: Any, count: Any, pair: Any) -> Any:
    """The function: it writes into its second argument, and into a part of its third."""
    count += 1
    pair["q"][0].mul_(2)
    return torch.sin(x) * count + pair["q"][0] * x ** 3


def number(x: Any, *args: Any) -> Any:
    return counting(x, *args).sum()


def two_leaves(x: Any, *args: Any) -> Any:
    return {"a": counting(x["a"], *args), "b": x["b"].sum() * x["a"]}


Call = Callable[[Any, Any, Any], Any]
CALLS: dict[str, Call] = {
    "grad": lambda x, *args: irtool.grad(number)(x, *args),
    "value_and_grad": lambda x, *args: irtool.value_and_grad(number)(x, *args),
    "jacrev": lambda x, *args: irtool.jacrev(counting)(x, *args),
    "jacrev in chunks": lambda x, *args: irtool.jacrev(counting, chunk_size=1)(x, *args),
    "jacfwd": lambda x, *args: irtool.jacfwd(counting)(x, *args),
    "jacrev of two": lambda x, *args: irtool.jacrev(two_leaves)({"a": x, "b": x * 2}, *args),
    "jacfwd of two": lambda x, *args: irtool.jacfwd(two_leaves)({"a": x, "b": x * 2}, *args),
    "jacfwd, another place": lambda x, *args: irtool.jacfwd(lambda count, x, pair: counting(x, count, pair), (-2,))(args[0], x, args[1]),
    "hessian": lambda x, *args: irtool.hessian(number)(x, *args),
    "hessian of two": lambda x, *args: irtool.hessian(lambda x, *args: two_leaves(x, *args)["a"].sum())({"a": x, "b": x * 2}, *args),
    "jacfwd of jacfwd": lambda x, *args: irtool.jacfwd(irtool.jacfwd(counting))(x, *args),
    "by name: jacrev": lambda x, count, pair: irtool.jacrev(counting)(x, count=count, pair=pair),
    "by name: jacfwd": lambda x, count, pair: irtool.jacfwd(counting)(x, count=count, pair=pair)}
OUTER: dict[str, Callable[[Call], Call]] = {
    "nothing": lambda call: call,
    "grad": lambda call: irtool.grad(lambda *args: sum(each.sum() for each in leaves(call(*args)))),
    "jacfwd": lambda call: irtool.jacfwd(lambda *args: sum(each.sum() for each in leaves(call(*args)))),
    "vmap": lambda call: lambda x, *args: irtool.vmap(call, (0, None, None))(torch.stack([x, x * 2]), *args),
    "vmap of all": lambda call: irtool.vmap(lambda x, count, pair: call(torch.stack([x, x]), count, pair)),
    "jit": lambda call: irtool.jit(call)}


def leaves(tree: Any) -> list[Any]:
    """The tensors of a result."""
    parts = list(tree.values()) if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else None
    return [tree] if parts is None else [leaf for part in parts for leaf in leaves(part)]


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("name", CALLS)
def test_a_write_into_an_argument_is_the_write_of_a_plain_call(name: str, outer: str) -> None:
    call = OUTER[outer](CALLS[name])
    for _ in range(2):
        x, count, pair = irtool.Tensor(X.copy()), irtool.Tensor(COUNT.copy()), {"q": [irtool.Tensor(COUNT.copy())]}
        call(x, count, pair)
        assert np.array_equal(np.asarray(x), X)
        assert np.array_equal(np.asarray(count), COUNT + 1)
        assert np.array_equal(np.asarray(pair["q"][0]), COUNT * 2)


@pytest.mark.parametrize("make", [irtool.jacrev, irtool.jacfwd])
def test_the_jacobian_is_that_of_what_was_written(make: Any) -> None:
    found = make(counting)(X, COUNT.copy(), {"q": [COUNT.copy()]})
    np.testing.assert_allclose(np.asarray(found), np.diag(np.cos(X) * (COUNT + 1) + 2 * COUNT * 3 * X ** 2))


def test_a_jacobian_runs_its_function_once() -> None:
    runs = []

    def function(x: Any, y: Any) -> Any:
        runs.append(1)
        return x["a"] * y.sum() + x["b"].mean(), y * 2
    args = {"a": X, "b": np.ones((2, 1))}, np.ones(3)
    first, second = irtool.jacfwd(function, (0, 1))(*args)
    assert len(runs) == 1
    wanted = irtool.jacrev(function, (0, 1))(*args)
    assert len(runs) == 2
    for found, other in zip(leaves((first, second)), leaves(wanted), strict=True):
        assert found.shape == other.shape and found.dtype == other.dtype and np.array_equal(np.asarray(found), np.asarray(other))
