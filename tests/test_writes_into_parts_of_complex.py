"""Writes into the real and imaginary parts of complex numbers, and into complex numbers that show pairs: gradients, batches and traces."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool


def whole(torch: Any, x: Any) -> Any:
    parts = torch.view_as_real(x * 1.25 * (1 + 1j))
    parts.neg_()
    return (parts * 0.5).sum()


def real(torch: Any, x: Any) -> Any:
    numbers = x * (1 + 1j)
    torch.real(numbers).mul_(x)
    return (torch.view_as_real(numbers) ** 2).sum()


def imaginary(torch: Any, x: Any) -> Any:
    numbers = x * (1 + 2j)
    torch.imag(numbers)[1:].mul_(x[1:] * 3)
    return (torch.view_as_real(numbers) ** 2).sum()


def pairs(torch: Any, x: Any) -> Any:
    rows = torch.stack([x, x * 2], 1)
    torch.view_as_complex(rows).mul_(1 + 2j)
    return (rows ** 2).sum()


def turned(torch: Any, x: Any) -> Any:
    numbers = (x * (1 + 2j)).reshape(1, 3)
    torch.view_as_real(numbers.t())[:, 0, 1].exp_()
    return (torch.view_as_real(numbers) ** 2).sum()


def again(torch: Any, x: Any) -> Any:
    """`numbers.imag[1:] *= x` writes what it computed into the same place once more."""
    numbers = x * (1 + 2j)
    numbers.imag[1:] *= x[1:] * 3
    numbers.real += numbers.imag
    numbers.imag = x[0] * 2
    numbers[1:].real -= 1
    return (torch.view_as_real(numbers) ** 2).sum()


VALUES = np.array([1.75, -0.5, 2.0])
PROGRAMS = whole, real, imaginary, pairs, turned, again


@pytest.mark.parametrize("program", PROGRAMS)
def test_transformations(program: Any) -> None:
    torch, x = irtool.torch, irtool.Tensor(VALUES)

    def f(x: Any) -> Any:
        return program(torch, x)

    step = 1e-6 * np.eye(3)
    slopes = [(f(irtool.Tensor(VALUES + each)).numpy() - f(irtool.Tensor(VALUES - each)).numpy()) / 2e-6 for each in step]
    for gradient in (irtool.grad(f), irtool.jit(irtool.grad(f)), irtool.jacrev(f), irtool.jacfwd(f)):
        np.testing.assert_allclose(gradient(x).numpy(), slopes, rtol=1e-6)
    both = irtool.vmap(f)(irtool.Tensor(np.stack([VALUES, VALUES * 0.5]))).numpy()
    np.testing.assert_allclose(both, [f(x).numpy(), f(irtool.Tensor(VALUES * 0.5)).numpy()])


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_torch_has_the_same_gradients(program: Any) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(VALUES, requires_grad=True)
    program(torch, x).backward()
    np.testing.assert_allclose(irtool.grad(lambda x: program(irtool.torch, x))(irtool.Tensor(VALUES)).numpy(), x.grad.numpy())
