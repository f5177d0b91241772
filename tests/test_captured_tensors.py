"""A captured tensor that an operator returns, in a list or as `out`, is still one from outside for the layers."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

X = np.ones(2)
RETURN: dict[str, Callable[[Any], Any]] = {
    "broadcast_tensors": lambda y: torch.broadcast_tensors(y, y), "atleast_1d": lambda y: torch.atleast_1d([y, y]),
    "out": lambda y: torch.mul(y, 1, out=y), "to": lambda y: y.to(y.dtype), "contiguous": lambda y: y.contiguous()}


@pytest.mark.parametrize("name", RETURN)
def test_jit_reads_a_captured_tensor_in_each_run(name: str) -> None:
    held = irtool.Tensor(X.copy())
    if name == "out":
        RETURN[name](held)      # `jit` refuses out= inside

    def function(x: Any) -> Any:
        if name != "out":
            RETURN[name](held)
        return held + x
    compiled = irtool.jit(function)
    for value in (1.0, 5.0, 7.0):
        held.array[:] = value
        np.testing.assert_array_equal(np.asarray(compiled(X)), X + value)


@pytest.mark.parametrize("name", RETURN)
def test_writes_into_captured_tensors_are_refused(name: str) -> None:
    held = irtool.Tensor(X.copy())

    def function(x: Any) -> Any:
        RETURN[name](held)
        return (held.add_(1) * x).sum()
    with pytest.raises(irtool.Error, match="mutate a captured Tensor"):
        irtool.grad(function)(X)
    np.testing.assert_array_equal(np.asarray(held), X)


@pytest.mark.parametrize("make", [
    lambda x: x.new_tensor([1.0, 2.0]), lambda x: torch.DoubleTensor([1.0, 2.0]), lambda x: torch.tensor([1.0, 2.0])])
def test_tensors_made_of_numbers_inside_may_be_written(make: Callable[[Any], Any]) -> None:
    def function(x: Any) -> Any:
        return (make(x).add_(x * x) * x).sum()
    np.testing.assert_allclose(np.asarray(irtool.grad(function)(X)), [4.0, 5.0])
    np.testing.assert_allclose(np.asarray(irtool.vmap(irtool.grad(function))(X[None])), [[4.0, 5.0]])
    np.testing.assert_allclose(np.asarray(irtool.jit(irtool.grad(function))(X)), [4.0, 5.0])
