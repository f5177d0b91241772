"""Convolutions in 1 to 3 dimensions, plain and transposed, grouped and dilated, and their gradients; im2col and col2im.

Windows are laid out as columns and multiplied with the weights in one matrix product per sample and group. A 1x1 kernel needs no
columns. Large inputs are done a piece at a time, so that columns stay small.
"""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import title
from irtool.ops.checks import c_name, refuse_nothing, row_major
from irtool.ops.kernels.shape import view_as_shape
from irtool.ops.kernels.windows import (
    Windows,
    add_places,
    conv_extents,
    cropped,
    padded_zeros,
    per_dim,
    spread,
    windows,
)
from irtool.ops.op import OpTable

table = OpTable("conv")

SMALL, LARGE, LARGEST = 1 << 17, 1 << 17, 1 << 18
"""Numbers of elements of columns: as many may be made at once for small arrays; as many suffice for a fast product; the same for long
columns."""
FEW_OUTS, MUCH = 8, 1.1
"""Outs of a group from which the product takes longer than the columns; how much longer it may be, so that columns are made faster."""
ENOUGH = 256
"""Positions that make a product of long columns fast."""


def slab_of(length, *arrays):
    """How many elements of columns of a length are made at once, beside arrays of these: a product should be fast, and memory small."""
    return min(max(length * ENOUGH, LARGE), LARGEST, max(sum([each.size for each in arrays]) // 2, SMALL))


def _columns(xp, x, kernel, stride, dilation, counts):
    """Windows of (n, channels, *extents) as (n, channels * places, positions)."""
    rank = len(kernel)
    if all(k == 1 for k in kernel) and all(s == 1 for s in stride):
        return x.reshape(x.shape[0], x.shape[1], math.prod(counts))
    view = windows(xp, x, kernel, stride, dilation, counts)
    order = (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
    return view.transpose(order).reshape(x.shape[0], x.shape[1] * math.prod(kernel), math.prod(counts))


def _pieces(count, groups, rows, size, limit):
    """Slices of samples and of groups, and the first and last of some rows of windows, whose columns have about `limit` elements. size: of
    the columns of a row of a group."""
    few = max(limit // (size * rows), 1)
    if few >= groups:
        for start in range(0, count, few // groups):
            yield slice(start, start + few // groups), slice(0, groups), 0, rows
        return
    some = rows if size * rows <= limit else max(limit // size, 1)
    for sample in range(count):
        for start in range(0, groups, few):
            for first in range(0, rows, some):
                yield slice(sample, sample + 1), slice(start, min(start + few, groups)), first, min(first + some, rows)


def _product(xp, matrix, columns, out=None):
    """matrix @ columns; a matrix of one column needs no product."""
    return (xp.matmul if matrix.shape[-1] != 1 else xp.multiply)(matrix, columns, out=out)


def forward(xp, x, weight, stride, before, after, dilation, groups):
    """Convolution of (n, channels, *extents) with (out, channels / groups, *kernel), zeros around; (n, out, *counts)."""
    kernel = weight.shape[2:]
    counts = conv_extents(x.shape[2:], kernel, stride, dilation, before, after)
    count, out = x.shape[0], weight.shape[0]
    if not count or not math.prod(counts) or not x.shape[1]:
        return xp.zeros((count, out, *counts), x.dtype)
    each, length = x.shape[1] // groups, weight[0].size
    matrix = weight.reshape(groups, out // groups, length)
    result = xp.empty((count, groups, out // groups, math.prod(counts)), x.dtype)
    if set(kernel) == set(stride) == {1} and not any(before) and not any(after):
        return _product(xp, matrix, x.reshape(count, groups, each, -1), result).reshape(count, out, *counts)
    result = result.reshape(count, groups, out // groups, *counts)
    view = Windows(kernel, stride, before, after, dilation, counts)
    is_cropped = len(view.phases) == len(view.places) or \
        out // groups > FEW_OUTS and math.prod(view.wide[1:]) > MUCH * math.prod(counts[1:])
    inner = counts[1:] if is_cropped else view.wide[1:]
    crop = (..., *[slice(n) for n in counts[1:]])
    limit = slab_of(x.shape[1] * math.prod(kernel), x, weight, result)
    for samples, some, first, last in _pieces(count, groups, counts[0], length * math.prod(inner), limit):
        part = x[samples, some.start * each:some.stop * each]
        columns = view.columns(xp, part, first, last, is_cropped).reshape(len(part), some.stop - some.start, length, -1)
        products = _product(xp, matrix[some], columns)
        result[samples, some, :, first:last] = products.reshape(*products.shape[:3], last - first, *inner)[crop]
        del part, columns, products       # before the next are made
    return result.reshape(count, out, *counts)


def transposed(xp, x, weight, stride, padding, output_padding, dilation, groups):
    """Transposed convolution of (n, channels, *extents) with (channels, out / groups, *kernel)."""
    kernel, extents = weight.shape[2:], x.shape[2:]
    count, channels, each = x.shape[0], x.shape[1], weight.shape[1]
    shape = [(n - 1) * s + d * (k - 1) + 1 + o - 2 * p
             for n, s, d, k, o, p in zip(extents, stride, dilation, kernel, output_padding, padding, strict=True)]
    if x.size and min(shape) < (x.dtype != xp.float32):     # torch has another kernel for single precision, which gives nothing
        given, found = (" x ".join(map(str, each)) for each in (extents, shape))
        raise RunError(f"Given input size per channel: ({given}). Calculated output size per channel: ({found}). Output size is too small")
    result = xp.zeros((count, groups * each, *shape), x.dtype)
    if not result.size or not x.size:
        return result
    matrix = weight.reshape(groups, channels // groups, -1).swapaxes(1, 2)
    length = groups * each * math.prod(kernel)
    line, limit = length * math.prod(extents[1:]), slab_of(length, x, weight, result)
    few, rows = max(limit // (line * extents[0]), 1), max(limit // line, 1)
    for start in range(0, count, few):
        for first in range(0, extents[0], rows):
            part = x[start:start + few, :, first:first + rows]
            sizes = part.shape[2:]
            columns = xp.matmul(matrix, part.reshape(part.shape[0], groups, channels // groups, -1))
            add_places(result[start:start + few], columns.reshape(part.shape[0], groups * each, *kernel, *sizes), kernel, stride, dilation,
                       [padding[0] - first * stride[0], *padding[1:]])
            del columns     # before the next are made
    return result


def _weight_gradient(xp, grad, x, kernel, stride, padding, dilation, groups):
    """Gradient of `forward` for its weight."""
    counts = grad.shape[2:]
    out, channels = grad.shape[1], x.shape[1]
    total = xp.zeros((groups, out // groups, channels // groups * math.prod(kernel)), x.dtype)
    if not grad.size or not channels:
        return total.reshape(out, channels // groups, *kernel)
    view = Windows(kernel, stride, padding, padding, dilation, counts)
    each, length, line = channels // groups, total.shape[-1], math.prod(counts[1:])
    by_position = grad.reshape(grad.shape[0], groups, out // groups, -1)
    limit = slab_of(channels * math.prod(kernel), x, total, grad)
    for samples, some, first, last in _pieces(x.shape[0], groups, counts[0], length * line, limit):
        part = x[samples, some.start * each:some.stop * each]
        columns = view.columns(xp, part, first, last, True).reshape(len(part), some.stop - some.start, length, -1)
        for grads, parts in zip(by_position[samples, some, :, first * line:last * line], columns, strict=True):
            total[some] += xp.matmul(grads, parts.swapaxes(1, 2))
        del part, columns, parts
    return total.reshape(out, channels // groups, *kernel)


# ---- checks and calls

def _check_types(x, weight, bias):
    if weight.dtype != x.dtype and x.dtype == "float32":
        raise RunError(f"Input type (torch.{title(x.dtype)}Tensor) and weight type (torch.{title(weight.dtype)}Tensor) should be the "
                       f"same or "
                       "input should be a MKLDNN tensor and weight is a dense tensor")
    if weight.dtype != x.dtype:
        raise RunError(f"expected scalar type {title(x.dtype)} but found {title(weight.dtype)}", code="E0409")
    if bias is not None and bias.dtype != x.dtype:
        raise RunError(f"Input type ({c_name(x.dtype)}) and bias type ({c_name(bias.dtype)}) should be the same")


def _check_shapes(x, weight, bias, stride, padding, dilation, is_transposed, groups):
    for name, values, least in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)):
        if min(values) < least:
            raise RunError("negative padding is not supported" if name == "padding" else
                           "non-positive stride is not supported" if name == "stride" else "dilation should be greater than zero")
    if groups <= 0:
        raise RunError("non-positive groups is not supported")
    weight_text, shape_text = list(weight.shape), list(x.shape)
    if weight.shape[0] < groups or not is_transposed and weight.shape[0] % groups:
        raise RunError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
                       f"{weight_text} instead" if weight.shape[0] < groups else
                       f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size "
                       f"[{weight_text}] instead")
    expected = weight.shape[0] if is_transposed else weight.shape[1] * groups
    if x.shape[1] != expected:
        if is_transposed:
            raise RunError(f"Given transposed=1, weight of size {weight_text}, expected input{shape_text} to have {expected} channels, but "
                           f"got {x.shape[1]} channels instead")
        raise RunError(f"Given groups={groups}, weight of size {weight_text}, expected input{shape_text} to have {expected} channels, but "
                       f"got {x.shape[1]} channels instead")
    outputs = weight.shape[1] * groups if is_transposed else weight.shape[0]
    if bias is not None and bias.shape != (outputs,):
        raise RunError(f"Given {'transposed=1, ' * is_transposed}weight of size {weight_text}, expected bias to be "
                       f"1-dimensional with {outputs} elements, but got bias of size {list(bias.shape)} instead")
    if not is_transposed:
        room = [n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True)]
        need = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:], strict=True)]
        if any(r < k for r, k in zip(room, need, strict=True)):
            raise RunError(f"Calculated padded input size per channel: ({' x '.join(map(str, room))}). Kernel size: "
                           f"({' x '.join(map(str, need))}). Kernel size can't be greater than actual input size")


def _outs_of_empty(x, weight):
    """How many channels the result of an empty operand has: none, as in torch, if the operand has none. None: as many as weights say."""
    if x.size:
        return None
    if x.shape[0] and x.shape[1]:
        raise RunError(f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x.shape)}")
    if x.shape[1] and not weight.size:
        refuse_nothing()
    return None if x.shape[1] else 0


def convolve(xp, x, weight, bias, stride, padding, dilation, is_transposed, output_padding, groups, name=None):
    """Any convolution, with torch's checks; inputs without a batch dimension too. `padding` may be a pair of lists (before, after)."""
    rank = weight.ndim - 2
    if rank < 1 or x.ndim not in (rank + 1, rank + 2):
        if name or rank >= 1:
            raise RunError(f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to "
                           f"{name or f'conv{rank}d'}, but got input of size: {list(x.shape)}")
        raise RunError(f"weight should have at least three dimensions, but got {weight.ndim}")
    _check_types(x, weight, bias)
    batched = x.ndim == rank + 2
    if not batched:
        x = x[None]
    stride, dilation = per_dim(stride, rank, "stride"), per_dim(dilation, rank, "dilation")
    output_padding = per_dim(output_padding, rank, "output_padding")
    if min(output_padding) < 0:
        raise RunError("negative output_padding is not supported")
    before, after = padding if isinstance(padding, tuple) else (per_dim(padding, rank, "padding"),) * 2
    _check_shapes(x, weight, bias, stride, [max(b, a) for b, a in zip(before, after, strict=True)], dilation, is_transposed, groups)
    outs = _outs_of_empty(x, weight)
    dtype = x.dtype
    if dtype == xp.float16:
        x, weight = x.astype(xp.float32), weight.astype(xp.float32)
    if is_transposed:
        for extra, s, d in zip(output_padding, stride, dilation, strict=True):
            if extra >= s and extra >= d:
                raise RunError("output padding must be smaller than either stride or dilation, but got output_padding: "
                               f"{output_padding}, stride: {stride}, dilation: {dilation}")
        result = transposed(xp, x, weight, stride, before, output_padding, dilation, groups)
    else:
        result = forward(xp, x, weight, stride, before, after, dilation, groups)
    if outs is not None:
        result = result[:, :outs]
    elif bias is not None:
        result += bias.reshape(-1, *(1,) * rank)
    result = result.astype(dtype, copy=False)
    return result if batched else result[0]


def _convolution(xp, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *hints):
    return convolve(xp, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


_ANY = "Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed"
table.define((f"aten::_convolution({_ANY}, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled, "
              "bool allow_tf32) -> Tensor",
              f"aten::_convolution.deprecated({_ANY}, int[] output_padding, SymInt groups, bool benchmark, bool deterministic, "
              "bool cudnn_enabled) -> Tensor",
              f"aten::convolution({_ANY}, SymInt[] output_padding, SymInt groups) -> Tensor",
              f"aten::convolution_overrideable({_ANY}, SymInt[] output_padding, SymInt groups) -> Tensor"), _convolution,
             doc="Convolution in 1 to 3 dimensions, plain or transposed.")


def string_padding(xp, input, weight, bias, stride, padding, dilation, groups):
    """Convolution with padding `valid` (none) or `same` (as many positions as the input has; one more zero behind when odd)."""
    rank = weight.ndim - 2
    if padding == "valid":
        return convolve(xp, input, weight, bias, stride, [0] * rank, dilation, False, [0] * rank, groups)
    if padding != "same":
        raise RunError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in per_dim(stride, rank)):
        raise RunError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for d, k in zip(per_dim(dilation, rank), weight.shape[2:], strict=True)]
    before = [t // 2 for t in totals]
    return convolve(xp, input, weight, bias, stride, (before, [t - b for t, b in zip(totals, before, strict=True)]), dilation, False,
                    [0] * rank, groups)


def _by_rank(rank):
    """conv1d to conv3d, and their transposes."""
    ones, zeros = [1] * rank, [0] * rank

    def check_ranks(name, input, weight):
        if input.ndim not in (rank + 1, rank + 2):
            raise RunError(f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
                           f"{list(input.shape)}")
        if weight.ndim > rank + 2:
            raise RunError(f"Expected a {rank + 2}D weight of {name}, but got one of size: {list(weight.shape)}")

    def plain(xp, input, weight, bias, stride, padding, dilation, groups):
        check_ranks(f"conv{rank}d", input, weight)
        return convolve(xp, input, weight, bias, stride, padding, dilation, False, zeros, groups, f"conv{rank}d")

    def upwards(xp, input, weight, bias, stride, padding, output_padding, groups, dilation):
        check_ranks(f"conv_transpose{rank}d", input, weight)
        return convolve(xp, input, weight, bias, stride, padding, dilation, True, output_padding, groups, f"conv_transpose{rank}d")

    head = f"Tensor input, Tensor weight, Tensor? bias=None, SymInt[{rank}] stride={ones}"
    table.define(f"aten::conv{rank}d({head}, SymInt[{rank}] padding={zeros}, SymInt[{rank}] dilation={ones}, SymInt groups=1) -> Tensor",
                 plain, doc=f"Convolution in {rank} dimension(s).")
    table.define(f"aten::conv{rank}d.padding({head}, str padding=\"valid\", SymInt[{rank}] dilation={ones}, SymInt groups=1) -> Tensor",
                 string_padding, doc="The same with padding `valid` or `same`.")
    table.define(f"aten::conv_transpose{rank}d{'.input' * (rank > 1)}({head}, SymInt[{rank}] padding={zeros}, SymInt[{rank}] "
                 f"output_padding={zeros}, SymInt groups=1, SymInt[{rank}] dilation={ones}) -> Tensor", upwards,
                 doc=f"Transposed convolution in {rank} dimension(s).")


for _rank in (1, 2, 3):
    _by_rank(_rank)

table.define("aten::_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, "
             "SymInt groups) -> Tensor", string_padding, doc="Convolution with padding `valid` or `same`.")


def _plain_kernel(xp, self, weight, kernel_size, bias, stride, padding, dilation=None):
    rank = len(kernel_size)
    if min(kernel_size) < 1:
        raise RunError(f"kernel size should be greater than zero, but got kernel_height: {kernel_size[0]} kernel_width: {kernel_size[-1]}")
    if weight.ndim == rank + 2 and weight.shape[2:] != tuple(kernel_size):
        raise RunError(f"the kernel size {list(kernel_size)} is not that of the weight, {list(weight.shape[2:])}", code="E0407")
    return convolve(xp, self, weight, bias, stride, padding, dilation or [1] * rank, False, [0] * rank, 1)


def _depthwise_kernel(xp, self, weight, kernel_size, bias, stride, padding, dilation):
    return convolve(xp, self, weight, bias, stride, padding, dilation, False, [0] * len(kernel_size), self.shape[-1 - len(kernel_size)])


table.define(("aten::thnn_conv2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] "
              "padding=[0, 0]) -> Tensor",
              "aten::_slow_conv2d_forward(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] "
              "padding) -> Tensor",
              "aten::slow_conv3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], "
              "SymInt[3] "
              "padding=[0, 0, 0]) -> Tensor",
              "aten::slow_conv_dilated2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], "
              "SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor",
              "aten::slow_conv_dilated3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], "
              "SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor"), _plain_kernel, doc="Convolution of one group.")
table.define(("aten::_conv_depthwise2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] "
              "padding, "
              "SymInt[2] dilation) -> Tensor",
              "aten::conv_depthwise3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3] "
              "padding, "
              "SymInt[3] dilation) -> Tensor"), _depthwise_kernel, doc="Convolution of each channel with filters of its own.")


@table.op("aten::conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor")
def conv_tbc(xp, self, weight, bias, pad):
    """Convolution over time of (time, batch, channels) with (kernel, channels, out)."""
    if self.ndim != 3 or weight.ndim != 3 or bias.ndim != 1:
        raise RunError("Input must have 3 dims: time, batch, in_channel" if self.ndim != 3 else "Weight tensor must have 3 dims")
    steps, batch, channels = self.shape
    if channels != weight.shape[1]:
        raise RunError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if not weight.size or not self.size and steps + 2 * pad >= weight.shape[0]:
        return xp.broadcast_to(bias, (steps + 2 * pad - weight.shape[0] + 1, batch, weight.shape[2])).copy()
    for place in range(weight.shape[0]):        # torch multiplies a flat view of these steps
        first, last = max(place - pad, 0), min(steps, steps + pad - weight.shape[0] + 1 + place)
        if first < last:
            view_as_shape(xp, self[first:last], (-1, channels))
    result = convolve(xp, row_major(xp, self.transpose(1, 2, 0)), row_major(xp, weight.transpose(2, 1, 0)), bias, [1], [pad],
                      [1], False, [0], 1)
    return row_major(xp, result.transpose(2, 0, 1))


@table.op("aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] "
          "padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> "
          "(Tensor, Tensor, Tensor)")
def convolution_backward(xp, grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
                         output_mask):
    """Gradients of convolution for input, weight and bias, those that `output_mask` asks for."""
    rank = weight.ndim - 2
    if input.ndim < weight.ndim:        # torch always has a batch dimension here; formulas of gradients do without
        for_input, *others = convolution_backward.kernel(xp, grad_output[None], input[None], weight, bias_sizes, stride, padding, dilation,
                                                         transposed, output_padding, groups, output_mask)
        return (None if for_input is None else for_input[0], *others)
    stride, padding, dilation = per_dim(stride, rank), per_dim(padding, rank), per_dim(dilation, rank)
    for_input = for_weight = None
    if weight.dtype.kind == "c":
        weight, input = xp.conj(weight), xp.conj(input)
    if output_mask[0]:
        inside = (..., *[slice(n) for n in input.shape[2:]])        # output_padding can be room for one more
        for_input = (forward(xp, grad_output, weight, stride, padding, padding, dilation, groups)[inside] if transposed else
                     input_gradient(xp, grad_output, weight, input.shape[2:], stride, padding, dilation, groups))
    if output_mask[1] and transposed:
        for_weight = _weight_gradient(xp, input, grad_output, weight.shape[2:], stride, padding, dilation, groups)
    elif output_mask[1]:
        for_weight = _weight_gradient(xp, grad_output, input, weight.shape[2:], stride, padding, dilation, groups)
    for_bias = grad_output.sum((0, *range(2, rank + 2)), dtype=grad_output.dtype) if output_mask[2] else None
    return for_input, for_weight, for_bias


def input_gradient(xp, grad, weight, extents, stride, padding, dilation, groups):
    """Gradient of `forward` for its input: the transposed convolution whose result has the input's extents."""
    kernel = weight.shape[2:]
    extra = [n - ((m - 1) * s - 2 * p + d * (k - 1) + 1)
             for n, m, s, p, d, k in zip(extents, grad.shape[2:], stride, padding, dilation, kernel, strict=True)]
    return transposed(xp, grad, weight, stride, padding, extra, dilation, groups)


# ---- columns as operators

def _column_sizes(extents, kernel_size, dilation, padding, stride):
    if min(padding) < 0:
        raise RunError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[-1]}")
    for name, each in (("dilation", dilation), ("stride", stride)):
        if min(each) < 1:
            raise RunError(f"{name} should be greater than zero, but got {name}_height: {each[0]} {name}_width: {each[-1]}")
    counts = conv_extents(extents, kernel_size, stride, dilation, padding, padding)
    if any(n < 1 for n in counts):
        raise RunError(f"Given input with spatial size {tuple(extents)}, kernel_size={tuple(kernel_size)}, dilation={tuple(dilation)}, "
                       f"padding={tuple(padding)}, calculated shape of the array of sliding blocks as {tuple(counts)}, but its components "
                       "must be at least one.")
    return counts


@table.op("aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor")
def im2col(xp, self, kernel_size, dilation, padding, stride):
    """Windows of an image as columns: (n, channels * places, positions)."""
    if min(kernel_size) < 1:
        raise RunError(f"kernel size should be greater than zero, but got kernel_height: {kernel_size[0]} kernel_width: {kernel_size[-1]}")
    if self.ndim not in (3, 4) or 0 in self.shape[-3:]:
        raise RunError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
                       f"{list(self.shape)}")
    x = self if self.ndim == 4 else self[None]
    counts = _column_sizes(x.shape[2:], kernel_size, dilation, padding, stride)
    columns = row_major(xp, _columns(xp, padded_zeros(xp, x, padding, padding), kernel_size, stride, dilation, counts))
    return columns if self.ndim == 4 else columns[0]


@table.op("aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor")
def col2im(xp, self, output_size, kernel_size, dilation, padding, stride):
    """An image from columns, which are added where windows overlap."""
    if self.ndim not in (2, 3) or 0 in self.shape[-2:]:
        raise RunError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but "
                       f"got: {list(self.shape)}")
    columns = self if self.ndim == 3 else self[None]
    counts = _column_sizes(output_size, kernel_size, dilation, padding, stride)
    places = math.prod(kernel_size)
    if columns.shape[1] % places:
        raise RunError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
                       f"{columns.shape[1]} and kernel_size={tuple(kernel_size)}.")
    if columns.shape[2] != math.prod(counts):
        raise RunError(f"Given output_size={tuple(output_size)}, kernel_size={tuple(kernel_size)}, dilation={tuple(dilation)}, padding="
                       f"{tuple(padding)}, stride={tuple(stride)}, expected size of input's dimension 2 to match the calculated number of "
                       f"sliding blocks {counts[0]} * {counts[1]} = {math.prod(counts)}, but got input.size(2)={columns.shape[2]}.")
    channels = columns.shape[1] // places
    whole = [n + 2 * p for n, p in zip(output_size, padding, strict=True)]
    result = spread(xp, columns.reshape(columns.shape[0], channels, *kernel_size, *counts), kernel_size, stride, dilation, whole)
    result = row_major(xp, cropped(result, padding, padding))
    return result if self.ndim == 3 else result[0]


# ---- dtypes that torch serves

table.takes("uilhfc", "conv1d conv2d conv3d conv_tbc")
table.takes("lhfc", "conv_transpose1d conv_transpose2d.input conv_transpose3d.input")
table.takes("bhfc", "im2col col2im")
table.laid_out("W", "_convolution convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d _convolution_mode "
               "thnn_conv2d _slow_conv2d_forward slow_conv_dilated2d")
table.laid_out("MM-", "convolution_backward")
