"""Gradients of scattering."""
from __future__ import annotations

from irtool.ops.scatter import table
from irtool.ops.tensor import Tensor, number, torch


@table.gradient("scatter.src")
def scatter_gradient(self: Tensor, dim: int, index: Tensor, src: Tensor):
    src_size = src.size()

    def backward(grad: Tensor):
        taken = torch.gather(grad, dim, index)
        return torch.scatter(grad, dim, index, 0), None, None, filled(taken, src_size)

    return torch.scatter(self, dim, index, src), backward


def filled(taken: Tensor, size: list[int]) -> Tensor:
    """The gradient of a source of which only the beginning was used."""
    if taken.size() == size:
        return taken
    pad: list[int] = []
    for place in range(len(size)):
        at = len(size) - 1 - place
        pad.append(0)
        pad.append(size[at] - taken.size(at))
    return torch.constant_pad_nd(taken, pad)


@table.gradient("scatter.value")
def scatter_value_gradient(self: Tensor, dim: int, index: Tensor, value: number):
    def backward(grad: Tensor):
        return torch.scatter(grad, dim, index, 0), None, None, None

    return torch.scatter(self, dim, index, value), backward


@table.gradient("scatter.reduce")
def scatter_reduce_gradient(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str):
    src_size = src.size()

    def backward(grad: Tensor):
        if reduce != "add":
            raise NotImplementedError("scatter with multiplication has no gradient")
        return grad, None, None, filled(torch.gather(grad, dim, index), src_size), None

    return torch.scatter(self, dim, index, src, reduce=reduce), backward


@table.gradient("scatter.value_reduce")
def scatter_value_reduce_gradient(self: Tensor, dim: int, index: Tensor, value: number, reduce: str):
    def backward(grad: Tensor):
        if reduce != "add":
            raise NotImplementedError("scatter with multiplication has no gradient")
        return grad, None, None, None, None

    return torch.scatter(self, dim, index, value, reduce=reduce), backward


@table.gradient("scatter_add")
def scatter_add_gradient(self: Tensor, dim: int, index: Tensor, src: Tensor):
    src_size = src.size()

    def backward(grad: Tensor):
        return grad, None, None, filled(torch.gather(grad, dim, index), src_size)

    return torch.scatter_add(self, dim, index, src), backward
