"""Gradients of sorting, and of choice by order: they are added at the position of the chosen value."""
from __future__ import annotations

from irtool.ops.kernels.sort import table
from irtool.ops.tensor import Tensor, torch


def to_places(grad: Tensor, dim: int, indices: Tensor, keepdim: bool, sizes: list[int]) -> Tensor:
    """Zeros with the gradient at the places of `indices` along `dim`."""
    if not keepdim and len(sizes) > 0:
        return grad.new_zeros(sizes).scatter(dim, indices.unsqueeze(dim), grad.unsqueeze(dim))
    return grad.new_zeros(sizes).scatter(dim, indices, grad)


table.derivative("aten::sort sort.stable topk", lambda grad, dim, indices, self_size: to_places(grad, dim, indices, True, self_size))


@table.gradient("msort")
def msort_gradient(self: Tensor):
    values, indices = torch.sort(self, 0, False)
    sizes = self.size()

    def backward(grad: Tensor):
        return to_places(grad, 0, indices, True, sizes)

    return values, backward


table.derivative("kthvalue mode median.dim nanmedian.dim",
                 lambda grad, dim, keepdim, indices, self_size: to_places(grad, dim, indices, keepdim, self_size))


@table.derivative("aten::median aten::nanmedian")
def median_gradient(grad, self, result):
    chosen = (self == result) | ((self != self) & (result != result))
    return chosen * (grad / chosen.sum())


table.no_gradient("places are whole numbers", "argsort")
