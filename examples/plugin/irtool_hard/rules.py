"""Rewrite rules: what is looked for, and what takes its place. They are compiled and checked, not executed."""
from irtool import Tensor, torch


def mul_one(x: Tensor):
    assert x.is_floating_point()        # a product of bools is of whole numbers
    return x * 1, x


def double_negation(x: Tensor):
    return torch.neg(torch.neg(x)), x


def relu_of_relu(x: Tensor):
    return torch.relu(torch.relu(x)), torch.relu(x)


def add_mm(a: Tensor, b: Tensor, c: Tensor):
    assert c.dim() == 2                 # addmm takes no other; of complex infinities it gives other nans
    assert not c.is_complex()
    return torch.mm(a, b) + c, torch.addmm(c, a, b)


def abs_of_product(x: Tensor, y: Tensor):
    assert x.is_floating_point()
    assert y.is_floating_point()
    return torch.abs(x) * torch.abs(y), torch.abs(x * y)
