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


@pytest.mark.parametrize("start", [0, 1])
def test_a_captured_tensor_shows_what_jit_writes_into_an_argument(start: int) -> None:
    """The first call, which is traced, too: with the same memory, and with memory that overlaps."""
    def results(wrapped: bool) -> list[list[float]]:
        memory = np.ones(4)
        captured = irtool.Tensor(memory[start:start + 3])

        def function(x: Any) -> Any:
            x.add_(1)
            return captured * torch.rand(()) if x.sum() > 100 else captured * 2

        fast = irtool.jit(function) if wrapped else lambda x: function(irtool.Tensor(x))
        return [[*fast(memory[:3]).tolist(), *memory.tolist()] for _ in range(3)]

    assert results(True) == results(False)


def test_a_decision_on_a_captured_tensor_that_shows_what_jit_writes_is_refused() -> None:
    memory = np.zeros(3)
    captured = irtool.Tensor(memory)

    def function(x: Any) -> Any:
        x.add_(1)
        return captured * 2 if captured.sum() > 1 else captured * 3

    with pytest.raises(irtool.UnsupportedError, match="give it as an argument"):
        irtool.jit(function)(memory)
    assert memory.tolist() == [0, 0, 0]
