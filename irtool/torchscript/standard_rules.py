# mypy: ignore-errors
"""The rules of `rewrite` without a file: TorchScript, compiled and never executed. A test checks each on values."""
from __future__ import annotations

from irtool.ops.tensor import Tensor, torch


def mul_one(x: Tensor):
    assert x.is_floating_point()        # a product of bools is an integer
    return x * 1, x


def one_mul(x: Tensor):
    assert x.is_floating_point()
    return x * 1.0, x


def div_one(x: Tensor):
    assert x.is_floating_point()
    return x / 1, x


def sub_zero(x: Tensor):
    assert x.is_floating_point()        # not x + 0, which is 0 if x is -0
    return x - 0, x


def pow_one(x: Tensor):
    assert x.is_floating_point()
    return x ** 1, x


def double_negation(x: Tensor):
    return torch.neg(torch.neg(x)), x


def double_not(x: Tensor):
    assert x.dtype == torch.bool
    return torch.logical_not(torch.logical_not(x)), x


def relu_of_relu(x: Tensor):
    return torch.relu(torch.relu(x)), torch.relu(x)


def abs_of_abs(x: Tensor):
    return torch.abs(torch.abs(x)), torch.abs(x)


def abs_of_neg(x: Tensor):
    return torch.abs(-x), torch.abs(x)


def sub_neg(x: Tensor, y: Tensor):
    assert x.is_floating_point()
    assert y.is_floating_point()
    return x - (-y), x + y


def add_neg(x: Tensor, y: Tensor):
    assert x.is_floating_point()
    assert y.is_floating_point()
    return x + (-y), x - y


def double_transpose(x: Tensor):
    return x.t().t(), x


def transpose_of_product(a: Tensor, b: Tensor):
    return torch.mm(b.t(), a.t()).t(), torch.mm(a, b)
