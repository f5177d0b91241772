"""Gradients of borders: what was copied is added up again."""
from __future__ import annotations

from irtool.ops.kernels.padding import table
from irtool.ops.tensor import Tensor, number, torch


@table.gradient("constant_pad_nd")
def constant_pad_nd_gradient(self: Tensor, pad: list[int], value: number):
    def backward(grad: Tensor):
        return torch.constant_pad_nd(grad, [-extent for extent in pad], 0), None, None

    return torch.constant_pad_nd(self, pad, value), backward


def circular_back(grad: Tensor, pad: list[int], sizes: list[int]) -> Tensor:
    """The gradient of a circular border, a dimension after the other."""
    for place in range(len(pad) // 2):
        dim = len(sizes) - 1 - place
        whole = grad.size()
        left, right = pad[2 * place], pad[2 * place + 1]
        first = -left if left < 0 else 0        # a negative border takes away, and what is left goes round
        last = -right if right < 0 else 0
        sources = (torch.arange(whole[dim]) - (left if left > 0 else 0)).remainder(sizes[dim] - first - last) + first
        whole[dim] = sizes[dim]
        grad = grad.new_zeros(whole).index_add(dim, sources, grad)
    return grad


def pad_back(grad: Tensor, self: Tensor, pad: list[int], mode: str) -> Tensor:
    """The gradient of any border."""
    if mode == "constant":
        return torch.constant_pad_nd(grad, [-extent for extent in pad], 0)
    if mode == "circular":
        return circular_back(grad, pad, self.size())
    if mode == "reflect":
        if len(pad) == 2:
            return torch.reflection_pad1d_backward(grad, self, pad)
        if len(pad) == 4:
            return torch.reflection_pad2d_backward(grad, self, pad)
        return torch.reflection_pad3d_backward(grad, self, pad)
    if len(pad) == 2:
        return torch.replication_pad1d_backward(grad, self, pad)
    if len(pad) == 4:
        return torch.replication_pad2d_backward(grad, self, pad)
    return torch.replication_pad3d_backward(grad, self, pad)


@table.gradient("aten::pad")
def pad_gradient(self: Tensor, pad: list[int], mode: str, value: float | None):
    def backward(grad: Tensor):
        return pad_back(grad, self, pad, mode), None, None, None

    return torch.pad(self, pad, mode, value), backward


@table.gradient("_pad_enum")
def pad_enum_gradient(self: Tensor, pad: list[int], mode: int, value: float | None):
    def backward(grad: Tensor):
        return pad_back(grad, self, pad, ["reflect", "replicate", "circular", "constant"][mode]), None, None, None

    return torch._pad_enum(self, pad, mode, value), backward


@table.gradient("_pad_circular")
def pad_circular_gradient(self: Tensor, pad: list[int]):
    sizes = self.size()

    def backward(grad: Tensor):
        return circular_back(grad, pad, sizes), None

    return torch._pad_circular(self, pad), backward


@table.gradient("reflection_pad1d")
def reflection_pad1d_gradient(self: Tensor, padding: list[int]):
    def backward(grad: Tensor):
        return torch.reflection_pad1d_backward(grad, self, padding), None

    return torch.reflection_pad1d(self, padding), backward


@table.gradient("reflection_pad1d_backward")
def reflection_pad1d_backward_gradient(grad_output: Tensor, self: Tensor, padding: list[int]):
    def backward(grad: Tensor):
        return torch.reflection_pad1d(grad, padding), None, None

    return torch.reflection_pad1d_backward(grad_output, self, padding), backward


@table.gradient("reflection_pad2d")
def reflection_pad2d_gradient(self: Tensor, padding: list[int]):
    def backward(grad: Tensor):
        return torch.reflection_pad2d_backward(grad, self, padding), None

    return torch.reflection_pad2d(self, padding), backward


@table.gradient("reflection_pad2d_backward")
def reflection_pad2d_backward_gradient(grad_output: Tensor, self: Tensor, padding: list[int]):
    def backward(grad: Tensor):
        return torch.reflection_pad2d(grad, padding), None, None

    return torch.reflection_pad2d_backward(grad_output, self, padding), backward


@table.gradient("reflection_pad3d")
def reflection_pad3d_gradient(self: Tensor, padding: list[int]):
    def backward(grad: Tensor):
        return torch.reflection_pad3d_backward(grad, self, padding), None

    return torch.reflection_pad3d(self, padding), backward


@table.gradient("reflection_pad3d_backward")
def reflection_pad3d_backward_gradient(grad_output: Tensor, self: Tensor, padding: list[int]):
    def backward(grad: Tensor):
        return torch.reflection_pad3d(grad, padding), None, None

    return torch.reflection_pad3d_backward(grad_output, self, padding), backward


@table.gradient("replication_pad1d")
def replication_pad1d_gradient(self: Tensor, padding: list[int]):
    def backward(grad: Tensor):
        return torch.replication_pad1d_backward(grad, self, padding), None

    return torch.replication_pad1d(self, padding), backward


@table.gradient("replication_pad1d_backward")
def replication_pad1d_backward_gradient(grad_output: Tensor, self: Tensor, padding: list[int]):
    def backward(grad: Tensor):
        return torch.replication_pad1d(grad, padding), None, None

    return torch.replication_pad1d_backward(grad_output, self, padding), backward


@table.gradient("replication_pad2d")
def replication_pad2d_gradient(self: Tensor, padding: list[int]):
    def backward(grad: Tensor):
        return torch.replication_pad2d_backward(grad, self, padding), None

    return torch.replication_pad2d(self, padding), backward


@table.gradient("replication_pad2d_backward")
def replication_pad2d_backward_gradient(grad_output: Tensor, self: Tensor, padding: list[int]):
    def backward(grad: Tensor):
        return torch.replication_pad2d(grad, padding), None, None

    return torch.replication_pad2d_backward(grad_output, self, padding), backward


@table.gradient("replication_pad3d")
def replication_pad3d_gradient(self: Tensor, padding: list[int]):
    def backward(grad: Tensor):
        return torch.replication_pad3d_backward(grad, self, padding), None

    return torch.replication_pad3d(self, padding), backward


@table.gradient("replication_pad3d_backward")
def replication_pad3d_backward_gradient(grad_output: Tensor, self: Tensor, padding: list[int]):
    def backward(grad: Tensor):
        return torch.replication_pad3d(grad, padding), None, None

    return torch.replication_pad3d_backward(grad_output, self, padding), backward
