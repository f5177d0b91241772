"""Gradients of pooling: maxima send theirs to the place of their index, means spread it over the window."""
from __future__ import annotations

from irtool.ops.kernels.pooling import table
from irtool.ops.tensor import Tensor, torch


def at_places(grad: Tensor, indices: Tensor, inner: int) -> Tensor:
    """The elements of a gradient at positions of the plane that the last `inner` dimensions make."""
    return grad.flatten(-inner).gather(-1, indices.flatten(-inner)).reshape(indices.size())


@table.derivative("max_pool1d", through="max_pool1d_with_indices")
@table.derivative("max_pool1d_with_indices")
def max_pool1d_gradient(grad, result1, self_size):
    return grad.new_zeros(self_size).scatter_add(-1, result1, grad)


@table.derivative("max_pool2d", through="max_pool2d_with_indices")
@table.derivative("max_pool2d_with_indices")
def max_pool2d_gradient(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1):
    return torch.max_pool2d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1)


@table.derivative("max_pool3d", through="max_pool3d_with_indices")
@table.derivative("max_pool3d_with_indices")
def max_pool3d_gradient(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1):
    return torch.max_pool3d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1)


table.derivative("max_pool2d_with_indices_backward fractional_max_pool2d_backward",
                 lambda grad, indices: (at_places(grad, indices, 2), None, None))
table.derivative("max_pool3d_with_indices_backward fractional_max_pool3d_backward",
                 lambda grad, indices: (at_places(grad, indices, 3), None, None))


@table.gradient("max_pool2d_backward")
def max_pool2d_backward_gradient(grad_output: Tensor, self: Tensor, kernel_size: list[int], stride: list[int], padding: list[int],
                                 dilation: list[int], ceil_mode: bool):
    _, indices = torch.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)
    result = torch.max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)

    def backward(grad: Tensor):
        return at_places(grad, indices, 2), None, None, None, None, None, None

    return result, backward


# ---- means

@table.derivative("avg_pool1d")
def avg_pool1d_gradient(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad):
    steps = kernel_size if len(stride) == 0 else stride
    plane = torch.avg_pool2d_backward(grad.unsqueeze(-2), self.unsqueeze(-2), [1] + kernel_size, [1] + steps, [0] + padding, ceil_mode,
                                      count_include_pad, None)
    return plane.squeeze(-2)


table.transposed("avg_pool2d avg_pool3d")


# ---- back to the places of maxima; windows at random places

table.derivative("max_unpool2d", lambda grad, indices: (at_places(grad, indices, 2), None))
table.derivative("max_unpool3d", lambda grad, indices: (at_places(grad, indices, 3), None))


@table.derivative("fractional_max_pool2d")
def fractional_max_pool2d_gradient(grad, self, kernel_size, output_size, result1):
    return torch.fractional_max_pool2d_backward(grad, self, kernel_size, output_size, result1), None


@table.derivative("fractional_max_pool3d")
def fractional_max_pool3d_gradient(grad, self, kernel_size, output_size, result1):
    return torch.fractional_max_pool3d_backward(grad, self, kernel_size, output_size, result1), None


table.no_gradient_for("random_samples", "torch has none either", "fractional_max_pool2d fractional_max_pool3d")
