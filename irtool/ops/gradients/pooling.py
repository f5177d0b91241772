"""Gradients of pooling: to the place of the maximum, or spread over the window."""
from __future__ import annotations

from irtool.ops.pooling import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("max_pool1d")
def max_pool1d_gradient(self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int], dilation: list[int], ceil_mode: bool):
    size = self.size()
    result, indices = torch.max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)

    def backward(grad: Tensor):
        return grad.new_zeros(size).scatter_add(-1, indices, grad), None, None, None, None, None

    return result, backward


@table.gradient("max_pool1d_with_indices")
def max_pool1d_with_indices_gradient(self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int], dilation: list[int],
                                     ceil_mode: bool):
    size = self.size()
    result, indices = torch.max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)

    def backward(grad: Tensor):
        return grad.new_zeros(size).scatter_add(-1, indices, grad), None, None, None, None, None

    return result, indices, backward


@table.gradient("avg_pool1d")
def avg_pool1d_gradient(self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int], ceil_mode: bool,
                        count_include_pad: bool):
    def backward(grad: Tensor):
        step = kernel_size[0]
        if len(stride) > 0:
            step = stride[0]
        found = torch.avg_pool2d_backward(grad.unsqueeze(-2), self.unsqueeze(-2), [1, kernel_size[0]], [1, step], [0, padding[0]], ceil_mode,
                                          count_include_pad, None)
        return found.squeeze(-2), None, None, None, None, None

    return torch.avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad), backward


@table.gradient("max_pool2d")
def max_pool2d_gradient(self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int], dilation: list[int], ceil_mode: bool):
    result, indices = torch.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)

    def backward(grad: Tensor):
        found = torch.max_pool2d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
        return found, None, None, None, None, None

    return result, backward


@table.gradient("max_pool2d_with_indices")
def max_pool2d_with_indices_gradient(self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int], dilation: list[int],
                                     ceil_mode: bool):
    result, indices = torch.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)

    def backward(grad: Tensor):
        found = torch.max_pool2d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
        return found, None, None, None, None, None

    return result, indices, backward


@table.gradient("max_pool2d_with_indices_backward")
def max_pool2d_with_indices_backward_gradient(grad_output: Tensor, self: Tensor, kernel_size: list[int], stride: list[int],
                                              padding: list[int], dilation: list[int], ceil_mode: bool, indices: Tensor):
    def backward(grad: Tensor):
        again = grad.flatten(-2).gather(-1, indices.flatten(-2)).reshape(indices.size())
        return again, torch.zeros_like(grad), None, None, None, None, None, None

    found = torch.max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
    return found, backward


@table.gradient("avg_pool2d")
def avg_pool2d_gradient(self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int], ceil_mode: bool,
                        count_include_pad: bool, divisor_override: int | None):
    def backward(grad: Tensor):
        found = torch.avg_pool2d_backward(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return found, None, None, None, None, None, None

    return torch.avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override), backward


@table.gradient("avg_pool2d_backward")
def avg_pool2d_backward_gradient(grad_output: Tensor, self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int],
                                 ceil_mode: bool, count_include_pad: bool, divisor_override: int | None):
    def backward(grad: Tensor):
        again = torch.avg_pool2d(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return again, torch.zeros_like(grad), None, None, None, None, None, None

    found = torch.avg_pool2d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return found, backward


@table.gradient("max_unpool2d")
def max_unpool2d_gradient(self: Tensor, indices: Tensor, output_size: list[int]):
    size = self.size()

    def backward(grad: Tensor):
        return grad.flatten(-2).gather(-1, indices.flatten(-2)).reshape(size), None, None

    return torch.max_unpool2d(self, indices, output_size), backward


@table.gradient("fractional_max_pool2d")
def fractional_max_pool2d_gradient(self: Tensor, kernel_size: list[int], output_size: list[int], random_samples: Tensor):
    result, indices = torch.fractional_max_pool2d(self, kernel_size, output_size, random_samples)

    def backward(grad: Tensor):
        return torch.fractional_max_pool2d_backward(grad, self, kernel_size, output_size, indices), None, None, None

    return result, indices, backward


@table.gradient("fractional_max_pool2d_backward")
def fractional_max_pool2d_backward_gradient(grad_output: Tensor, self: Tensor, kernel_size: list[int], output_size: list[int],
                                            indices: Tensor):
    def backward(grad: Tensor):
        again = grad.flatten(-2).gather(-1, indices.flatten(-2)).reshape(indices.size())
        return again, torch.zeros_like(grad), None, None, None

    return torch.fractional_max_pool2d_backward(grad_output, self, kernel_size, output_size, indices), backward


@table.gradient("max_pool3d")
def max_pool3d_gradient(self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int], dilation: list[int], ceil_mode: bool):
    result, indices = torch.max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)

    def backward(grad: Tensor):
        found = torch.max_pool3d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
        return found, None, None, None, None, None

    return result, backward


@table.gradient("max_pool3d_with_indices")
def max_pool3d_with_indices_gradient(self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int], dilation: list[int],
                                     ceil_mode: bool):
    result, indices = torch.max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)

    def backward(grad: Tensor):
        found = torch.max_pool3d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
        return found, None, None, None, None, None

    return result, indices, backward


@table.gradient("max_pool3d_with_indices_backward")
def max_pool3d_with_indices_backward_gradient(grad_output: Tensor, self: Tensor, kernel_size: list[int], stride: list[int],
                                              padding: list[int], dilation: list[int], ceil_mode: bool, indices: Tensor):
    def backward(grad: Tensor):
        again = grad.flatten(-3).gather(-1, indices.flatten(-3)).reshape(indices.size())
        return again, torch.zeros_like(grad), None, None, None, None, None, None

    found = torch.max_pool3d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
    return found, backward


@table.gradient("avg_pool3d")
def avg_pool3d_gradient(self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int], ceil_mode: bool,
                        count_include_pad: bool, divisor_override: int | None):
    def backward(grad: Tensor):
        found = torch.avg_pool3d_backward(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return found, None, None, None, None, None, None

    return torch.avg_pool3d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override), backward


@table.gradient("avg_pool3d_backward")
def avg_pool3d_backward_gradient(grad_output: Tensor, self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int],
                                 ceil_mode: bool, count_include_pad: bool, divisor_override: int | None):
    def backward(grad: Tensor):
        again = torch.avg_pool3d(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return again, torch.zeros_like(grad), None, None, None, None, None, None

    found = torch.avg_pool3d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return found, backward


@table.gradient("max_unpool3d")
def max_unpool3d_gradient(self: Tensor, indices: Tensor, output_size: list[int], stride: list[int], padding: list[int]):
    size = self.size()

    def backward(grad: Tensor):
        return grad.flatten(-3).gather(-1, indices.flatten(-3)).reshape(size), None, None, None, None

    return torch.max_unpool3d(self, indices, output_size, stride, padding), backward


@table.gradient("fractional_max_pool3d")
def fractional_max_pool3d_gradient(self: Tensor, kernel_size: list[int], output_size: list[int], random_samples: Tensor):
    result, indices = torch.fractional_max_pool3d(self, kernel_size, output_size, random_samples)

    def backward(grad: Tensor):
        return torch.fractional_max_pool3d_backward(grad, self, kernel_size, output_size, indices), None, None, None

    return result, indices, backward


@table.gradient("fractional_max_pool3d_backward")
def fractional_max_pool3d_backward_gradient(grad_output: Tensor, self: Tensor, kernel_size: list[int], output_size: list[int],
                                            indices: Tensor):
    def backward(grad: Tensor):
        again = grad.flatten(-3).gather(-1, indices.flatten(-3)).reshape(indices.size())
        return again, torch.zeros_like(grad), None, None, None

    return torch.fractional_max_pool3d_backward(grad_output, self, kernel_size, output_size, indices), backward


@table.gradient("max_pool2d_backward")
def max_pool2d_backward_gradient(grad_output: Tensor, self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int],
                                 dilation: list[int], ceil_mode: bool):
    result, indices = torch.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)

    def backward(grad: Tensor):
        again = grad.flatten(-2).gather(-1, indices.flatten(-2)).reshape(indices.size())
        return again, torch.zeros_like(grad), None, None, None, None, None

    return torch.max_pool2d_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode), backward
