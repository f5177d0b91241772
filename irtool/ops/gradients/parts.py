"""Functions that formulas share: TorchScript, compiled with the formulas that call them."""
from __future__ import annotations

from irtool.ops.tensor import Tensor, torch


def with_ones(reduced: Tensor, dims: list[int] | None, keepdim: bool, sizes: list[int]) -> Tensor:
    """A reduction's result with the reduced dimensions put back as 1. No dimensions: all of them."""
    if keepdim or len(sizes) == 0:
        return reduced
    shape = [1 for size in sizes]
    if dims is not None:
        if len(dims) > 0:
            shape = [size for size in sizes]
            for dim in dims:
                shape[dim] = 1
    return reduced.reshape(shape)


def ratio_or_zero(part: Tensor, whole: Tensor) -> Tensor:
    """part / whole, and 0 where `whole` is 0; its own derivatives are 0 there, too, which those of a chosen 0 / 0 are not."""
    is_zero = whole == 0
    return torch.where(is_zero, torch.zeros_like(part), part / whole.masked_fill(is_zero, 1))


def along(reduced: Tensor, dim: int, keepdim: bool, sizes: list[int]) -> Tensor:
    """A reduction's result, with the reduced dimension as one of size 1."""
    if keepdim or len(sizes) == 0:
        return reduced
    return reduced.unsqueeze(dim)


def shares(mask: Tensor, dims: list[int], grad: Tensor) -> Tensor:
    """`grad` divided equally among the places of a mask, along dimensions that were reduced."""
    return mask * (grad / mask.sum(dims, True))
