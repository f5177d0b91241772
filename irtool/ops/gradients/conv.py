"""Gradients of convolutions, by convolution_backward; and of that, by convolutions again."""
from __future__ import annotations

from irtool.ops.kernels.conv import table
from irtool.ops.tensor import Tensor, torch

CONJUGATED = True      # convolution_backward conjugates, as in torch


@table.derivative("convolution convolution_overrideable _convolution.deprecated aten::_convolution")
def convolution_gradient(grad, input, weight, stride, padding, dilation, transposed, output_padding, groups, bias_present):
    return torch.convolution_backward(grad, input, weight, None, stride, padding, dilation, transposed, output_padding, groups,
                                      [True, True, bias_present])


@table.derivative("aten::conv1d aten::conv2d aten::conv3d")
def plain_gradient(grad, input, weight, stride, padding, dilation, groups, bias_present):
    return torch.convolution_backward(grad, input, weight, None, stride, padding, dilation, False, [0], groups, [True, True, bias_present])


@table.derivative("conv_transpose1d conv_transpose2d.input conv_transpose3d.input")
def upwards_gradient(grad, input, weight, stride, padding, output_padding, groups, dilation, bias_present):
    return torch.convolution_backward(grad, input, weight, None, stride, padding, dilation, True, output_padding, groups,
                                      [True, True, bias_present])


@table.derivative("conv1d.padding conv2d.padding conv3d.padding _convolution_mode")
def string_padding_gradient(grad, input, weight, stride, padding, dilation, groups, bias_present):
    mask = [True, True, bias_present]
    rank = weight.dim() - 2
    border: list[int] = []
    inverse: list[int] = []
    for d in range(rank):       # the last dimension's comes first
        total = dilation[-1 - d % len(dilation)] * (weight.size(-1 - d) - 1) if padding == "same" else 0
        border += [total // 2, total - total // 2]
        inverse += [-(total // 2), total // 2 - total]
    whole = torch.constant_pad_nd(input, border, 0)
    for_whole, for_weight, for_bias = torch.convolution_backward(grad, whole, weight, None, stride, [0], dilation, False, [0], groups,
                                                                 mask)
    return torch.constant_pad_nd(for_whole, inverse, 0), for_weight, for_bias


@table.derivative("thnn_conv2d _slow_conv2d_forward")
@table.derivative("slow_conv3d")
def one_group_gradient(grad, self, weight, stride, padding, bias_present):
    return torch.convolution_backward(grad, self, weight, None, stride, padding, [1], False, [0], 1, [True, True, bias_present])


@table.derivative("slow_conv_dilated2d")
@table.derivative("slow_conv_dilated3d")
def dilated_gradient(grad, self, weight, stride, padding, dilation, bias_present):
    return torch.convolution_backward(grad, self, weight, None, stride, padding, dilation, False, [0], 1, [True, True, bias_present])


@table.gradient("_conv_depthwise2d conv_depthwise3d")
def depthwise_gradient(self: Tensor, weight: Tensor, kernel_size: list[int], bias: Tensor | None, stride: list[int], padding: list[int],
                       dilation: list[int]):
    groups = self.size(-1 - len(kernel_size))
    result = torch.convolution(self, weight, bias, stride, padding, dilation, False, [0], groups)
    mask = [True, True, bias is not None]

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.convolution_backward(grad, self, weight, None, stride, padding, dilation, False, [0],
                                                                     groups, mask)
        return for_input, for_weight, None, for_bias, None, None, None

    return result, backward


@table.derivative("conv_tbc")
def conv_tbc_gradient(grad, self, weight, pad):
    if self.numel() == 0:       # convolutions want positions
        for_input, for_weight, for_bias = torch.zeros_like(self), torch.zeros_like(weight), grad.sum([0, 1])
    else:
        turned_input, turned_weight, for_bias = torch.convolution_backward(
            grad.permute([1, 2, 0]), self.permute([1, 2, 0]), weight.permute([2, 1, 0]), None, [1], [pad], [1], False, [0], 1,
            [True, True, True])
        for_input, for_weight = turned_input.permute([2, 0, 1]), turned_weight.permute([2, 1, 0])
    return for_input, for_weight, for_bias


@table.derivative("convolution_backward")
def convolution_backward_gradient(grad_input, grad_weight, grad_bias, grad_output, input, weight, stride, padding, dilation, transposed,
                                  output_padding, groups):
    along_input = torch.zeros_like(input) if grad_input is None else grad_input
    along_weight = torch.zeros_like(weight) if grad_weight is None else grad_weight
    one = torch.convolution(along_input, weight, grad_bias, stride, padding, dilation, transposed, output_padding, groups)
    other = torch.convolution(input, along_weight, None, stride, padding, dilation, transposed, output_padding, groups)
    second_input, _, _ = torch.convolution_backward(grad_output, input, along_weight, None, stride, padding, dilation, transposed,
                                                    output_padding, groups, [True, False, False])
    _, second_weight, _ = torch.convolution_backward(grad_output, along_input, weight, None, stride, padding, dilation, transposed,
                                                     output_padding, groups, [False, True, False])
    return one + other, second_input, second_weight


@table.derivative("im2col")
def im2col_gradient(grad, kernel_size, dilation, padding, stride, self_size):
    return torch.col2im(grad, self_size[-2:], kernel_size, dilation, padding, stride)


table.derivative("col2im", lambda grad, kernel_size, dilation, padding, stride: torch.im2col(grad, kernel_size, dilation, padding, stride))
