"""Laws over random programs that write into values, buffers and views of them.

A batch is a loop, a gradient is the slope, a trace is what it traces, and a tangent is what the gradient makes of it.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

Program = Callable[[Any], Any]
VIEWS: list[Callable[[Any], Any]] = [
    lambda z: z[0], lambda z: z[1:], lambda z: z[:, 1], lambda z: z.t(), lambda z: z.t()[1:], lambda z: z.select(1, 2),
    lambda z: z.diagonal(), lambda z: z.unsqueeze(0), lambda z: z[::2], lambda z: z.diagonal(1), lambda z: z.transpose(0, 1)[0],
    lambda z: z.narrow(1, 1, 2), lambda z: z[1:][0], lambda z: z.unbind(0)[2], lambda z: z.split([1, 2])[1], lambda z: z.squeeze(),
    lambda z: torch.broadcast_tensors(z[:2], z[1])[0], lambda z: torch.meshgrid(z[0], z[:1, 0], indexing="ij")[0]]
WRITES: list[Callable[[Any, Any], Any]] = [
    lambda part, x: part.mul_(2), lambda part, x: part.add_(x.sum()), lambda part, x: part.copy_(x[0, 0] * 3), lambda part, x: part.zero_(),
    lambda part, x: part.sub_(part * 0.5), lambda part, x: part.fill_(x[1, 2]), lambda part, x: part.sin_(),
    lambda part, x: part.masked_fill_(torch.ones_like(part) > 0, 0.5), lambda part, x: part.add_(part.sum() * 0.1),
    lambda part, x: part.mul_(x[2, 0]), lambda part, x: part.unsqueeze_(0).add_(x[0, 1])]
MAKERS: list[Callable[[Any], Any]] = [
    lambda x: x * 1, lambda x: x.new_zeros(3, 3), lambda x: torch.zeros(3, 3, dtype=torch.float64), lambda x: torch.ones_like(x),
    lambda x: x.clone(), lambda x: x.new_full((3, 3), 0.5), lambda x: x.t() + 0, lambda x: torch.empty_like(x).copy_(x * x)]
WHOLE: list[Callable[[Any, Any], Any]] = [
    lambda z, x: z.add_(x), lambda z, x: z.mul_(x), lambda z, x: z.index_add_(0, torch.tensor([1, 0]), x[:2]),
    lambda z, x: z.scatter_add_(1, torch.tensor([[0, 2], [1, 1]]), x[:2, 1:]), lambda z, x: z.t_(), lambda z, x: z.copy_(z @ x),
    lambda z, x: z.index_put_((torch.tensor([0, 2]), torch.tensor([1, 1])), x[0, :2]), lambda z, x: z.addcmul_(x, x, value=0.5)]


def drawn(seed: int) -> Program:
    """A program of so many steps on two tensors that it makes, and views of them that live on."""
    random = np.random.default_rng(seed)
    makers = [MAKERS[random.integers(len(MAKERS))] for _ in range(2)]
    steps = [(int(random.integers(4)), int(random.integers(2)), int(random.integers(100)), int(random.integers(100)))
             for _ in range(random.integers(3, 8))]

    def program(x: Any) -> Any:
        made = [maker(x) for maker in makers]
        parts: list[Any] = []
        for what, which, one, other in steps:
            z = made[which]
            if what == 0:
                parts.append(VIEWS[one % len(VIEWS)](z))
            elif what == 1:
                WRITES[other % len(WRITES)](VIEWS[one % len(VIEWS)](z), x)
            elif what == 2 and parts:
                WRITES[other % len(WRITES)](parts[one % len(parts)], x)
            else:
                WHOLE[one % len(WHOLE)](z, x)
        return (made[0] * x).sum() + (made[1] ** 2).sum() + sum([(part * (place + 1)).sum() for place, part in enumerate(parts)])
    return program


def slopes(program: Program, x: np.ndarray) -> np.ndarray:
    """The gradient, by differences of what a program gives on plain tensors."""
    found, step = np.zeros_like(x), 1e-6
    for place in np.ndindex(*x.shape):
        there, back = x.copy(), x.copy()
        there[place] += step
        back[place] -= step
        found[place] = (float(program(irtool.Tensor(there))) - float(program(irtool.Tensor(back)))) / (2 * step)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_random_writes(seed: int) -> None:
    program = drawn(seed)
    xs = np.random.default_rng(1000 + seed).standard_normal((2, 3, 3)) * 0.6
    values = [float(program(irtool.Tensor(x.copy()))) for x in xs]
    np.testing.assert_allclose(np.asarray(irtool.vmap(program)(xs.copy())), values, rtol=1e-9, atol=1e-12)
    wanted = np.stack([slopes(program, x) for x in xs])
    gradients = np.stack([np.asarray(irtool.grad(program)(x.copy())) for x in xs])
    np.testing.assert_allclose(gradients, wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.asarray(irtool.vmap(irtool.grad(program))(xs.copy())), gradients, rtol=1e-9, atol=1e-12)
    _, moved = irtool.jvp(program, (xs[0].copy(),), (xs[1],))
    np.testing.assert_allclose(np.asarray(moved), (gradients[0] * xs[1]).sum(), rtol=1e-9, atol=1e-12)
    if seed % 4 == 0:
        jitted = irtool.jit(irtool.grad(program))
        np.testing.assert_allclose(np.stack([np.asarray(jitted(x.copy())) for x in xs]), gradients, rtol=1e-9, atol=1e-12)
