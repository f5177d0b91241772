"""Gradients of sorting and of what is chosen by order: they go to the place the value came from."""
from __future__ import annotations

from irtool.ops.kernels.sort import table
from irtool.ops.tensor import Tensor, torch


def to_places(grad: Tensor, dim: int, indices: Tensor, keepdim: bool, sizes: list[int]) -> Tensor:
    """Zeros with the gradient at the places of `indices` along `dim`."""
    if not keepdim and len(sizes) > 0:
        return grad.new_zeros(sizes).scatter(dim, indices.unsqueeze(dim), grad.unsqueeze(dim))
    return grad.new_zeros(sizes).scatter(dim, indices, grad)


@table.gradient("aten::sort")
def sort_gradient(self: Tensor, dim: int, descending: bool):
    values, indices = torch.sort(self, dim, descending)
    sizes = self.size()

    def backward(grad: Tensor):
        return to_places(grad, dim, indices, True, sizes), None, None

    return values, indices, backward


@table.gradient("sort.stable")
def stable_sort_gradient(self: Tensor, stable: bool | None, dim: int, descending: bool):
    values, indices = torch.sort(self, stable=stable, dim=dim, descending=descending)
    sizes = self.size()

    def backward(grad: Tensor):
        return to_places(grad, dim, indices, True, sizes), None, None, None

    return values, indices, backward


@table.gradient("msort")
def msort_gradient(self: Tensor):
    values, indices = torch.sort(self, 0, False)
    sizes = self.size()

    def backward(grad: Tensor):
        return to_places(grad, 0, indices, True, sizes)

    return values, backward


@table.gradient("topk")
def topk_gradient(self: Tensor, k: int, dim: int, largest: bool, sorted: bool):
    values, indices = torch.topk(self, k, dim, largest, sorted)
    sizes = self.size()

    def backward(grad: Tensor):
        return to_places(grad, dim, indices, True, sizes), None, None, None, None

    return values, indices, backward


@table.gradient("kthvalue")
def kthvalue_gradient(self: Tensor, k: int, dim: int, keepdim: bool):
    values, indices = torch.kthvalue(self, k, dim, keepdim)
    sizes = self.size()

    def backward(grad: Tensor):
        return to_places(grad, dim, indices, keepdim, sizes), None, None, None

    return values, indices, backward


@table.gradient("mode")
def mode_gradient(self: Tensor, dim: int, keepdim: bool):
    values, indices = torch.mode(self, dim, keepdim)
    sizes = self.size()

    def backward(grad: Tensor):
        return to_places(grad, dim, indices, keepdim, sizes), None, None

    return values, indices, backward


@table.gradient("median.dim")
def median_dim_gradient(self: Tensor, dim: int, keepdim: bool):
    values, indices = torch.median(self, dim, keepdim)
    sizes = self.size()

    def backward(grad: Tensor):
        return to_places(grad, dim, indices, keepdim, sizes), None, None

    return values, indices, backward


@table.gradient("nanmedian.dim")
def nanmedian_dim_gradient(self: Tensor, dim: int, keepdim: bool):
    values, indices = torch.nanmedian(self, dim, keepdim)
    sizes = self.size()

    def backward(grad: Tensor):
        return to_places(grad, dim, indices, keepdim, sizes), None, None

    return values, indices, backward


@table.gradient("aten::median")
def median_gradient(self: Tensor):
    result = torch.median(self)

    def backward(grad: Tensor):     # equal elements share
        chosen = (self == result) | ((self != self) & (result != result))
        return chosen * (grad / chosen.sum())

    return result, backward


@table.gradient("aten::nanmedian")
def nanmedian_gradient(self: Tensor):
    result = torch.nanmedian(self)

    def backward(grad: Tensor):
        chosen = (self == result) | ((self != self) & (result != result))
        return chosen * (grad / chosen.sum())

    return result, backward


table.no_gradient("places are whole numbers", "argsort")
