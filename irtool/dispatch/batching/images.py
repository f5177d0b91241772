"""Operators on images and signals (N, C, ...): the hidden dimension goes into N, or stands for it; with weights, into the channels."""
from __future__ import annotations

from typing import Any

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import no_rule, rule
from irtool.ops.tensor import Tensor


def spatial(name: str) -> int:
    """How many dimensions behind the channels an operator of this name has: 2 for `aten::max_pool2d`."""
    return next(int(each) for each, after in zip(name, name[1:] + " ", strict=True) if each in "123" and after in "d_ .")


def folded(batch: Batch, value: Any, rank: int) -> Any:
    """The hidden dimension as N, or put into it; `rank` counts the dimensions behind N. None stays."""
    if not isinstance(value, Tensor):
        return value
    found = batch.whole(value)
    if value.ndim <= rank:
        return found
    return batch.do("aten::reshape", found, [batch.length * value.shape[0], *value.shape[1:]])


def unfolded(batch: Batch, result: Any, given: Any, rank: int) -> Any:
    """Results with the hidden dimension taken out of N again."""
    if isinstance(result, list | tuple):
        return type(result)([unfolded(batch, each, given, rank) for each in result])
    if not isinstance(result, Tensor):
        return result
    if given.ndim <= rank:
        return batch.box(result)
    return batch.box(batch.do("aten::reshape", result, [batch.length, given.shape[0], *result.shape[1:]]))


POOLS = " ".join(f"max_pool{n}d max_pool{n}d_with_indices avg_pool{n}d adaptive_avg_pool{n}d adaptive_max_pool{n}d" for n in (1, 2, 3))
BACKWARDS = " ".join(f"max_pool{n}d_with_indices_backward avg_pool{n}d_backward _adaptive_avg_pool{n}d_backward "
                     f"adaptive_max_pool{n}d_backward fractional_max_pool{n}d fractional_max_pool{n}d_backward" for n in (2, 3))
PADS = " ".join(f"{name}_pad{n}d {name}_pad{n}d_backward" for n in (1, 2, 3) for name in ("reflection", "replication"))


@rule(f"{POOLS} {BACKWARDS} {PADS} _adaptive_avg_pool2d _adaptive_avg_pool3d max_pool2d_backward max_unpool2d max_unpool3d")
def image(batch: Batch, *args: Any) -> Any:
    """Channels and what is behind them; N may be absent."""
    rank = spatial(batch.kind) + 1
    given = next(each for each in args if isinstance(each, Tensor))
    samples = [folded(batch, each, 2) if argument.name == "random_samples" else folded(batch, each, rank)
               for each, argument in zip(args, batch.schema.arguments, strict=True)]
    return unfolded(batch, batch.same(*samples), given, rank)


NEAREST = " ".join(f"{name}{n}d {name}{n}d.vec" for n in (1, 2, 3) for name in ("upsample_nearest", "_upsample_nearest_exact"))
SMOOTH = ("upsample_linear1d upsample_linear1d.vec upsample_bilinear2d upsample_bilinear2d.vec upsample_trilinear3d "
          "upsample_trilinear3d.vec upsample_bicubic2d upsample_bicubic2d.vec")
ANTIALIASED = " ".join(f"_upsample_{name}2d_aa _upsample_{name}2d_aa.vec" for name in ("bilinear", "bicubic", "lanczos"))


@rule(f"{NEAREST} {SMOOTH} {ANTIALIASED} grid_sampler grid_sampler_2d grid_sampler_3d _grid_sampler_2d_cpu_fallback channel_shuffle "
      "native_channel_shuffle")
def with_batch(batch: Batch, *args: Any) -> Any:
    """N is there."""
    given = next(each for each in args if isinstance(each, Tensor))
    return unfolded(batch, batch.same(*[folded(batch, each, 0) for each in args]), given, 0)


@rule(" ".join(f"upsample_nearest{n}d_backward _upsample_nearest_exact{n}d_backward" for n in (1, 2, 3)) + " upsample_linear1d_backward "
      "upsample_bilinear2d_backward upsample_trilinear3d_backward upsample_bicubic2d_backward _upsample_bilinear2d_aa_backward "
      "_upsample_bicubic2d_aa_backward _upsample_lanczos2d_aa_backward")
def resample_backward(batch: Batch, grad: Any, output_size: Any, input_size: Any, *rest: Any) -> Any:
    """The size of the input counts N."""
    sizes = [batch.length * input_size[0], *input_size[1:]]
    return unfolded(batch, batch.same(folded(batch, grad, 0), output_size, sizes, *rest), grad, 0)


@rule("affine_grid_generator affine_grid_generator_backward")
def affine_grid(batch: Batch, theta: Any, size: Any, align_corners: bool) -> Any:
    """The size counts N."""
    return unfolded(batch, batch.same(folded(batch, theta, 0), [batch.length * size[0], *size[1:]], align_corners), theta, 0)


@rule("im2col col2im")
def columns(batch: Batch, self: Any, *args: Any) -> Any:
    """Images with channels, or columns of them; N may be absent."""
    rank = 3 if batch.kind == "aten::im2col" else 2
    return unfolded(batch, batch.same(folded(batch, self, rank), *args), self, rank)


@rule("pixel_shuffle pixel_unshuffle constant_pad_nd")
def leading(batch: Batch, self: Any, *args: Any) -> Any:
    """Any dimensions in front will do."""
    return batch.box(batch.same(batch.front(self), *args))


@rule("pad _pad_enum _pad_circular")
def pad(batch: Batch, self: Any, padding: Any, *args: Any) -> Any:
    """Constant padding takes any dimensions in front, the others N and C or only C."""
    if batch.kind == "aten::pad" and args[0] == "constant" or batch.kind == "aten::_pad_enum" and args[0] == 3:
        return leading(batch, self, padding, *args)
    rank = len(padding) // 2 + 1
    return unfolded(batch, batch.same(folded(batch, self, rank), padding, *args), self, rank)


# ---- convolutions

def into_channels(batch: Batch, value: Any) -> Any:
    """(B, N, C, ...) as (N, B * C, ...)."""
    batch.refuse_none()
    whole = batch.whole(value)
    moved = batch.do("aten::movedim", whole, 0, 1)
    return batch.do("aten::reshape", moved, [value.shape[0], batch.length * value.shape[1], *value.shape[2:]])


def out_of_channels(batch: Batch, result: Any) -> Any:
    """(N, B * C, ...) with B hidden."""
    shape = result.shape
    split = batch.do("aten::reshape", result, [shape[0], batch.length, batch.share(shape[1]), *shape[2:]])
    return batch.box(split, 1)


def into_rows(batch: Batch, value: Any) -> Any:
    """(B, O, ...) as (B * O, ...). None stays."""
    if value is None:
        return None
    return batch.do("aten::reshape", batch.whole(value), [batch.length * value.shape[0], *value.shape[1:]])


def convolve(batch: Batch, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
             groups: int) -> Any:
    """A convolution. Batched weights make the batch into groups of channels."""
    rank = weight.ndim - 1
    if x.ndim == rank:      # without N
        one = batch.again("aten::unsqueeze", x, 0)
        found = convolve(batch, one, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
        return batch.again("aten::squeeze", found, 0)
    rest = (stride, padding, dilation, transposed, output_padding)
    if bias is not None and batch.has(bias):
        found = convolve(batch, x, weight, None, *rest, groups)
        return batch.again("aten::add", found, batch.again("aten::reshape", bias, [-1, *[1] * (rank - 1)]))
    if not batch.has([x, weight]):
        return batch.do("aten::convolution", x, weight, bias, *rest, groups)
    if not batch.has(weight):
        return unfolded(batch, batch.do("aten::convolution", folded(batch, x, 0), weight, bias, *rest, groups), x, 0)
    found = batch.do("aten::convolution", into_channels(batch, x), into_rows(batch, weight), None, *rest, groups * batch.length)
    out = out_of_channels(batch, found)
    return out if bias is None else batch.again("aten::add", out, batch.again("aten::reshape", bias, [-1, *[1] * (rank - 1)]))


def per_dimension(value: Any, count: int) -> list[int]:
    """One number per dimension."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values * count if len(values) == 1 else values


@rule("convolution convolution_overrideable _convolution _convolution.deprecated")
def convolution(batch: Batch, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                output_padding: Any, groups: int, *flags: Any) -> Any:
    """The general one."""
    return convolve(batch, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@rule("conv1d conv2d conv3d")
def conv(batch: Batch, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """Not transposed."""
    count = weight.ndim - 2
    stride, padding, dilation = (per_dimension(each, count) for each in (stride, padding, dilation))
    return convolve(batch, x, weight, bias, stride, padding, dilation, False, [0] * count, groups)


@rule("conv1d.padding conv2d.padding conv3d.padding _convolution_mode")
def conv_padded(batch: Batch, x: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: int) -> Any:
    """With padding by name: `same` pads one more behind where it must."""
    count = weight.ndim - 2
    stride, dilation = per_dimension(stride, count), per_dimension(dilation, count)
    if padding == "valid":
        return convolve(batch, x, weight, bias, stride, [0] * count, dilation, False, [0] * count, groups)
    total = [d * (n - 1) for d, n in zip(dilation, weight.shape[2:], strict=True)]
    if any(each % 2 for each in total):
        x = batch.again("aten::constant_pad_nd", x, [n for each in reversed(total) for n in (0, each % 2)], 0)
    return convolve(batch, x, weight, bias, stride, [each // 2 for each in total], dilation, False, [0] * count, groups)


@rule("conv_transpose1d conv_transpose2d.input conv_transpose3d.input")
def conv_transpose(batch: Batch, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int,
                   dilation: Any) -> Any:
    """Transposed."""
    count = weight.ndim - 2
    stride, padding, output_padding, dilation = (per_dimension(each, count) for each in (stride, padding, output_padding, dilation))
    return convolve(batch, x, weight, bias, stride, padding, dilation, True, output_padding, groups)


@rule("thnn_conv2d _slow_conv2d_forward slow_conv3d")
def slow_conv(batch: Batch, x: Any, weight: Any, kernel_size: Any, bias: Any, stride: Any, padding: Any) -> Any:
    """Without dilation."""
    count = weight.ndim - 2
    return convolve(batch, x, weight, bias, per_dimension(stride, count), per_dimension(padding, count), [1] * count, False, [0] * count, 1)


@rule("slow_conv_dilated2d slow_conv_dilated3d")
def slow_conv_dilated(batch: Batch, x: Any, weight: Any, kernel_size: Any, bias: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """With dilation."""
    return conv(batch, x, weight, bias, stride, padding, dilation, 1)


@rule("_conv_depthwise2d conv_depthwise3d")
def conv_depthwise(batch: Batch, x: Any, weight: Any, kernel_size: Any, bias: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """A group per channel."""
    return conv(batch, x, weight, bias, stride, padding, dilation, x.shape[-(weight.ndim - 1)])


@rule("convolution_backward")
def convolution_backward(batch: Batch, grad: Any, x: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
                         transposed: bool, output_padding: Any, groups: int, mask: Any) -> Any:
    """The batch as groups of channels, whatever is batched."""
    if x.ndim != weight.ndim:       # without N
        grad, x = (batch.again("aten::unsqueeze", each, 0) for each in (grad, x))
        of_x, *of_others = convolution_backward(batch, grad, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
                                                groups, mask)
        return (None if of_x is None else batch.again("aten::squeeze", of_x, 0), *of_others)
    rest = (stride, padding, dilation, transposed, output_padding, groups * batch.length)
    found = batch.do("aten::convolution_backward", into_channels(batch, grad), into_channels(batch, x), into_rows(batch, weight),
                     None if bias_sizes is None else [batch.length * each for each in bias_sizes], *rest, mask)
    of_x = out_of_channels(batch, found[0]) if mask[0] else None
    of_weight, of_bias = (None if each is None or not wanted else batch.box(batch.do("aten::reshape", each, [
        batch.length, batch.share(each.shape[0]), *each.shape[1:]])) for each, wanted in zip(found[1:], mask[1:], strict=True))
    return of_x, of_weight, of_bias


@rule("conv_tbc")
def conv_tbc(batch: Batch, x: Any, weight: Any, bias: Any, pad: int) -> Any:
    """As a convolution of what is put in order."""
    found = batch.again("aten::conv1d", batch.again("aten::permute", x, [1, 2, 0]), batch.again("aten::permute", weight, [2, 1, 0]), bias,
                        [1], [pad])
    return batch.again("aten::permute", found, [2, 0, 1])


no_rule("a kernel for whole layers: vmap their parts",
        "_native_multi_head_attention _transformer_encoder_layer_fwd _transform_bias_rescale_qkv")
