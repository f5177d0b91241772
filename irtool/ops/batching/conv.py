"""Batching rules of convolutions. B is folded into the rows N if only the input is batched, else into the channels, as groups."""
from __future__ import annotations

from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import folded, into_channels, into_rows, out_of_channels, out_of_rows, unfolded
from irtool.ops.kernels.conv import table


@table.batch("im2col col2im")
def columns(batch: Batch, self: Any, *args: Any) -> Any:
    """im2col (N, C, H, W) and col2im (N, C * k, L), N optional: N -> B * N, or B is N."""
    rank = 3 if batch.kind == "aten::im2col" else 2
    return unfolded(batch, batch.same(folded(batch, self, rank), *args), self, rank)


def convolve(batch: Batch, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
             groups: int) -> Any:
    """x (N, C, ...), weight (O, C / groups, ...).

    Only x batched: N -> B * N. weight batched: x (N, B * C, ...), weight (B * O, ...), groups * B; the result is (N, B * O, ...).
    """
    rank = weight.ndim - 1
    if x.ndim == rank:      # without N
        one = batch.again("aten::unsqueeze", x, 0)
        result = convolve(batch, one, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
        return batch.again("aten::squeeze", result, 0)
    rest = (stride, padding, dilation, transposed, output_padding)
    if bias is not None and batch.has(bias):
        return with_bias(batch, convolve(batch, x, weight, None, *rest, groups), bias)
    if not batch.has([x, weight]):
        return batch.do("aten::convolution", x, weight, bias, *rest, groups)
    if not batch.has(weight):
        return unfolded(batch, batch.do("aten::convolution", folded(batch, x, 0), weight, bias, *rest, groups), x, 0)
    result = batch.do("aten::convolution", into_channels(batch, x), into_rows(batch, weight), None, *rest, groups * batch.length)
    return with_bias(batch, out_of_channels(batch, result), bias)


def with_bias(batch: Batch, result: Any, bias: Any) -> Any:
    """result (N, C, ...) + bias (C)."""
    if bias is None:
        return result
    column = batch.again("aten::reshape", bias, [-1, *[1] * (result.ndim - 2)])
    return batch.again("aten::add", result, column)


def per_dimension(value: Any, count: int) -> list[int]:
    """One number for each of `count` dimensions."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values * count if len(values) == 1 else values


@table.batch("convolution convolution_overrideable _convolution _convolution.deprecated")
def convolution(batch: Batch, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                output_padding: Any, groups: int, *flags: Any) -> Any:
    """All kinds of convolution, as they are."""
    return convolve(batch, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@table.batch("conv1d conv2d conv3d")
def conv(batch: Batch, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """A convolution that is not transposed."""
    count = weight.ndim - 2
    stride, padding, dilation = (per_dimension(each, count) for each in (stride, padding, dilation))
    return convolve(batch, x, weight, bias, stride, padding, dilation, False, [0] * count, groups)


@table.batch("conv1d.padding conv2d.padding conv3d.padding _convolution_mode")
def conv_padded(batch: Batch, x: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: int) -> Any:
    """padding `valid` is 0. `same` is dilation * (kernel - 1) in all, half of it on each side, an odd one with more at the end."""
    count = weight.ndim - 2
    if padding == "valid":
        return conv(batch, x, weight, bias, stride, 0, dilation, groups)
    total = [d * (n - 1) for d, n in zip(per_dimension(dilation, count), weight.shape[2:], strict=True)]
    if any(each % 2 for each in total):
        x = batch.again("aten::constant_pad_nd", x, [n for each in reversed(total) for n in (0, each % 2)], 0)
    return conv(batch, x, weight, bias, stride, [each // 2 for each in total], dilation, groups)


@table.batch("conv_transpose1d conv_transpose2d conv_transpose3d")
def conv_transpose(batch: Batch, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int,
                   dilation: Any) -> Any:
    """A transposed convolution."""
    count = weight.ndim - 2
    stride, padding, output_padding, dilation = (per_dimension(each, count) for each in (stride, padding, output_padding, dilation))
    return convolve(batch, x, weight, bias, stride, padding, dilation, True, output_padding, groups)


@table.batch("thnn_conv2d _slow_conv2d_forward slow_conv3d")
def slow_conv(batch: Batch, x: Any, weight: Any, kernel_size: Any, bias: Any, stride: Any, padding: Any) -> Any:
    """A convolution without dilation and groups."""
    return conv(batch, x, weight, bias, stride, padding, 1, 1)


@table.batch("slow_conv_dilated2d slow_conv_dilated3d")
def slow_conv_dilated(batch: Batch, x: Any, weight: Any, kernel_size: Any, bias: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """A convolution with dilation, without groups."""
    return conv(batch, x, weight, bias, stride, padding, dilation, 1)


@table.batch("_conv_depthwise2d conv_depthwise3d")
def conv_depthwise(batch: Batch, x: Any, weight: Any, kernel_size: Any, bias: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """A convolution with as many groups as channels."""
    return conv(batch, x, weight, bias, stride, padding, dilation, x.shape[-(weight.ndim - 1)])


@table.batch("convolution_backward")
def convolution_backward(batch: Batch, grad: Any, x: Any, weight: Any, bias_sizes: Any, *options: Any) -> Any:
    """All operands with B in the channels: x (N, B * C, ...), weight (B * O, ...), groups * B."""
    if x.ndim != weight.ndim:       # without N
        grad, x = (batch.again("aten::unsqueeze", each, 0) for each in (grad, x))
        of_x, *of_others = convolution_backward(batch, grad, x, weight, bias_sizes, *options)
        return (None if of_x is None else batch.again("aten::squeeze", of_x, 0), *of_others)
    *settings, groups, mask = options
    sizes = None if bias_sizes is None else [batch.length * each for each in bias_sizes]
    grads = batch.do("aten::convolution_backward", into_channels(batch, grad), into_channels(batch, x), into_rows(batch, weight),
                     sizes, *settings, groups * batch.length, mask)
    of_x = out_of_channels(batch, grads[0]) if mask[0] else None
    of_weight = out_of_rows(batch, grads[1]) if mask[1] else None
    of_bias = out_of_rows(batch, grads[2]) if mask[2] else None
    return of_x, of_weight, of_bias


@table.batch("conv_tbc")
def conv_tbc(batch: Batch, x: Any, weight: Any, bias: Any, pad: int) -> Any:
    """x (T, N, C) -> (N, C, T), weight (k, C, O) -> (O, C, k): conv1d."""
    result = batch.again("aten::conv1d", batch.again("aten::permute", x, [1, 2, 0]), batch.again("aten::permute", weight, [2, 1, 0]), bias,
                        [1], [pad])
    return batch.again("aten::permute", result, [2, 0, 1])
