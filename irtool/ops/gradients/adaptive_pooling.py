"""Gradients of pooling to a given size."""
from __future__ import annotations

from irtool.ops.gradients.pooling import at_places
from irtool.ops.kernels.adaptive_pooling import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("adaptive_avg_pool1d")
def adaptive_avg_pool1d_gradient(self: Tensor, output_size: list[int]):
    def backward(grad: Tensor):
        return torch._adaptive_avg_pool2d_backward(grad.unsqueeze(-2), self.unsqueeze(-2)).squeeze(-2), None

    return torch.adaptive_avg_pool1d(self, output_size), backward


@table.gradient("adaptive_avg_pool2d _adaptive_avg_pool2d")
def adaptive_avg_pool2d_gradient(self: Tensor, output_size: list[int]):
    def backward(grad: Tensor):
        return torch._adaptive_avg_pool2d_backward(grad, self), None

    return torch._adaptive_avg_pool2d(self, output_size), backward


@table.gradient("adaptive_avg_pool3d _adaptive_avg_pool3d")
def adaptive_avg_pool3d_gradient(self: Tensor, output_size: list[int]):
    def backward(grad: Tensor):
        return torch._adaptive_avg_pool3d_backward(grad, self), None

    return torch._adaptive_avg_pool3d(self, output_size), backward


@table.gradient("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward_gradient(grad_output: Tensor, self: Tensor):
    sizes = grad_output.size()

    def backward(grad: Tensor):
        return torch._adaptive_avg_pool2d(grad, sizes[-2:]), None

    return torch._adaptive_avg_pool2d_backward(grad_output, self), backward


@table.gradient("_adaptive_avg_pool3d_backward")
def adaptive_avg_pool3d_backward_gradient(grad_output: Tensor, self: Tensor):
    sizes = grad_output.size()

    def backward(grad: Tensor):
        return torch._adaptive_avg_pool3d(grad, sizes[-3:]), None

    return torch._adaptive_avg_pool3d_backward(grad_output, self), backward


@table.gradient("adaptive_max_pool1d")
def adaptive_max_pool1d_gradient(self: Tensor, output_size: list[int]):
    result, indices = torch.adaptive_max_pool1d(self, output_size)
    sizes = self.size()

    def backward(grad: Tensor):
        return grad.new_zeros(sizes).scatter_add(-1, indices, grad), None

    return result, indices, backward


@table.gradient("adaptive_max_pool2d")
def adaptive_max_pool2d_gradient(self: Tensor, output_size: list[int]):
    result, indices = torch.adaptive_max_pool2d(self, output_size)

    def backward(grad: Tensor):
        return torch.adaptive_max_pool2d_backward(grad, self, indices), None

    return result, indices, backward


@table.gradient("adaptive_max_pool3d")
def adaptive_max_pool3d_gradient(self: Tensor, output_size: list[int]):
    result, indices = torch.adaptive_max_pool3d(self, output_size)

    def backward(grad: Tensor):
        return torch.adaptive_max_pool3d_backward(grad, self, indices), None

    return result, indices, backward


@table.gradient("adaptive_max_pool2d_backward")
def adaptive_max_pool2d_backward_gradient(grad_output: Tensor, self: Tensor, indices: Tensor):
    def backward(grad: Tensor):
        return at_places(grad, indices, 2), None, None

    return torch.adaptive_max_pool2d_backward(grad_output, self, indices), backward


@table.gradient("adaptive_max_pool3d_backward")
def adaptive_max_pool3d_backward_gradient(grad_output: Tensor, self: Tensor, indices: Tensor):
    def backward(grad: Tensor):
        return at_places(grad, indices, 3), None, None

    return torch.adaptive_max_pool3d_backward(grad_output, self, indices), backward
