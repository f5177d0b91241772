"""Gradients of convolutions, plain and transposed; of second order too, since the gradient operator is made of convolutions."""
from __future__ import annotations

from irtool.ops.conv import table
from irtool.ops.tensor import Tensor, torch


def bias_sizes_of(bias: Tensor | None) -> list[int] | None:
    """The bias's shape, None without one."""
    if bias is None:
        return None
    return bias.size()


def slopes(grad: Tensor, input: Tensor, weight: Tensor, bias_sizes: list[int] | None, stride: list[int], padding: list[int],
           dilation: list[int], transposed: bool, output_padding: list[int], groups: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients for input, weight and bias of a convolution, with or without a batch."""
    lone = input.dim() < weight.dim()
    spread, batch = grad, input
    if lone:
        spread, batch = grad.unsqueeze(0), input.unsqueeze(0)
    for_input, for_weight, for_bias = torch.convolution_backward(spread, batch, weight, bias_sizes, stride, padding, dilation, transposed,
                                                                 output_padding, groups, [True, True, bias_sizes is not None])
    if lone:
        for_input = for_input.squeeze(0)
    bias_grad: Tensor | None = None
    if bias_sizes is not None:
        bias_grad = for_bias
    return for_input, for_weight, bias_grad


@table.gradient("_convolution")
def hinted_convolution_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
                                transposed: bool, output_padding: list[int], groups: int, benchmark: bool, deterministic: bool, cudnn_enabled: bool, allow_tf32: bool):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = slopes(grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None, None, None, None, None, None, None

    return torch.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups), backward


@table.gradient("_convolution.deprecated")
def old_convolution_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
                             transposed: bool, output_padding: list[int], groups: int, benchmark: bool, deterministic: bool, cudnn_enabled: bool):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = slopes(grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None, None, None, None, None, None

    return torch.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups), backward


@table.gradient("convolution convolution_overrideable")
def convolution_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
                         transposed: bool, output_padding: list[int], groups: int):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = slopes(grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None, None, None

    return torch.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups), backward


@table.gradient("conv1d")
def conv1d_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
                    groups: int):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = slopes(grad, input, weight, bias_sizes, stride, padding, dilation, False, [0], groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None

    return torch.conv1d(input, weight, bias, stride, padding, dilation, groups), backward


@table.gradient("conv_transpose1d")
def conv_transpose1d_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
                              output_padding: list[int], groups: int, dilation: list[int]):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = slopes(grad, input, weight, bias_sizes, stride, padding, dilation, True, output_padding, groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None, None

    return torch.conv_transpose1d(input, weight, bias, stride, padding, output_padding, groups, dilation), backward


@table.gradient("conv1d.padding")
def conv1d_padding_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: str, dilation: list[int],
                            groups: int):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = padded_slopes(grad, input, weight, bias_sizes, stride, padding, dilation, groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None

    return torch.conv1d(input, weight, bias, stride, padding, dilation, groups), backward


@table.gradient("conv2d")
def conv2d_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
                    groups: int):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = slopes(grad, input, weight, bias_sizes, stride, padding, dilation, False, [0, 0], groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None

    return torch.conv2d(input, weight, bias, stride, padding, dilation, groups), backward


@table.gradient("conv_transpose2d.input")
def conv_transpose2d_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
                              output_padding: list[int], groups: int, dilation: list[int]):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = slopes(grad, input, weight, bias_sizes, stride, padding, dilation, True, output_padding, groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None, None

    return torch.conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation), backward


@table.gradient("conv2d.padding")
def conv2d_padding_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: str, dilation: list[int],
                            groups: int):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = padded_slopes(grad, input, weight, bias_sizes, stride, padding, dilation, groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None

    return torch.conv2d(input, weight, bias, stride, padding, dilation, groups), backward


@table.gradient("conv3d")
def conv3d_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
                    groups: int):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = slopes(grad, input, weight, bias_sizes, stride, padding, dilation, False, [0, 0, 0], groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None

    return torch.conv3d(input, weight, bias, stride, padding, dilation, groups), backward


@table.gradient("conv_transpose3d.input")
def conv_transpose3d_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
                              output_padding: list[int], groups: int, dilation: list[int]):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = slopes(grad, input, weight, bias_sizes, stride, padding, dilation, True, output_padding, groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None, None

    return torch.conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups, dilation), backward


@table.gradient("conv3d.padding")
def conv3d_padding_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: str, dilation: list[int],
                            groups: int):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = padded_slopes(grad, input, weight, bias_sizes, stride, padding, dilation, groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None

    return torch.conv3d(input, weight, bias, stride, padding, dilation, groups), backward


def padded_slopes(grad: Tensor, input: Tensor, weight: Tensor, bias_sizes: list[int] | None, stride: list[int], padding: str,
                  dilation: list[int], groups: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """The same with padding `valid` or `same`: the input is padded, its gradient cropped."""
    rank = weight.dim() - 2
    nothing = [0 for place in range(rank)]
    widths: list[int] = []
    if padding == "same":
        for place in range(rank):
            at = rank - 1 - place
            spread = dilation[at] if len(dilation) > 1 else dilation[0]
            total = spread * (weight.size(at + 2) - 1)
            widths.append(total // 2)
            widths.append(total - total // 2)
    whole = torch.constant_pad_nd(input, widths)
    for_input, for_weight, for_bias = slopes(grad, whole, weight, bias_sizes, stride, nothing, dilation, False, nothing, groups)
    return torch.constant_pad_nd(for_input, [-width for width in widths]), for_weight, for_bias


@table.gradient("_convolution_mode")
def convolution_mode_gradient(input: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: str, dilation: list[int],
                              groups: int):
    bias_sizes = bias_sizes_of(bias)

    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = padded_slopes(grad, input, weight, bias_sizes, stride, padding, dilation, groups)
        return input_grad, weight_grad, bias_grad, None, None, None, None

    return torch._convolution_mode(input, weight, bias, stride, padding, dilation, groups), backward


@table.gradient("convolution_backward")
def convolution_backward_gradient(grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: list[int] | None, stride: list[int],
                                  padding: list[int], dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
                                  output_mask: list[bool]):
    for_input, for_weight, for_bias = torch.convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation,
                                                                 transposed, output_padding, groups, output_mask)

    def backward(input_grad: Tensor | None, weight_grad: Tensor | None, bias_grad: Tensor | None):
        output_grad = torch.zeros_like(grad_output)
        to_input = torch.zeros_like(input)
        to_weight = torch.zeros_like(weight)
        if input_grad is not None:
            output_grad = output_grad + torch.convolution(input_grad, weight, None, stride, padding, dilation, transposed, output_padding,
                                                          groups)
            unused, again, none = torch.convolution_backward(grad_output, input_grad, weight, None, stride, padding, dilation, transposed,
                                                             output_padding, groups, [False, True, False])
            to_weight = again
        if weight_grad is not None:
            output_grad = output_grad + torch.convolution(input, weight_grad, None, stride, padding, dilation, transposed, output_padding,
                                                          groups)
            again, unused, none = torch.convolution_backward(grad_output, input, weight_grad, None, stride, padding, dilation, transposed,
                                                             output_padding, groups, [True, False, False])
            to_input = again
        if bias_grad is not None:
            shape = [1 for size in grad_output.size()]
            shape[1] = -1
            output_grad = output_grad + bias_grad.reshape(shape)
        return output_grad, to_input, to_weight, None, None, None, None, None, None, None, None

    return for_input, for_weight, for_bias, backward


@table.gradient("conv_tbc")
def conv_tbc_gradient(self: Tensor, weight: Tensor, bias: Tensor, pad: int):
    def backward(grad: Tensor):
        input_grad, weight_grad, bias_grad = slopes(grad.permute([1, 2, 0]), self.permute([1, 2, 0]), weight.permute([2, 1, 0]), bias.size(),
                                                    [1], [pad], [1], False, [0], 1)
        return input_grad.permute([2, 0, 1]), weight_grad.permute([2, 1, 0]), grad.sum([0, 1]), None

    return torch.conv_tbc(self, weight, bias, pad), backward


@table.gradient("im2col")
def im2col_gradient(self: Tensor, kernel_size: list[int], dilation: list[int], padding: list[int], stride: list[int]):
    size = self.size()

    def backward(grad: Tensor):
        return torch.col2im(grad, [size[-2], size[-1]], kernel_size, dilation, padding, stride), None, None, None, None

    return torch.im2col(self, kernel_size, dilation, padding, stride), backward


@table.gradient("col2im")
def col2im_gradient(self: Tensor, output_size: list[int], kernel_size: list[int], dilation: list[int], padding: list[int],
                    stride: list[int]):
    def backward(grad: Tensor):
        return torch.im2col(grad, kernel_size, dilation, padding, stride), None, None, None, None, None

    return torch.col2im(self, output_size, kernel_size, dilation, padding, stride), backward
