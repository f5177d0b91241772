"""Maximum and average over windows in 1 to 3 dimensions, their indices, inverses and gradients.

Indices count elements of the flattened plane without its border, as torch's. Windows are walked place by place of the kernel, each
step on whole arrays; sums go one dimension after another.
"""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import add_at
from irtool.ops.checks import only, refuse, row_major
from irtool.ops.kernels.windows import cropped, padded_zeros, per_dim, pieces, place_slices, pool_extents, positions, spread
from irtool.ops.op import OpTable

table = OpTable("pooling")


class Geometry:
    """Sizes of one pooling: kernel, stride, padding and dilation per dimension, numbers of positions, and the excess at the end."""

    __slots__ = ("kernel", "stride", "padding", "dilation", "counts", "behind", "extents")

    def __init__(self, name, x, kernel_size, stride, padding, dilation, ceil_mode, rank):
        if x.ndim not in (rank + 1, rank + 2) or 0 in x.shape[-rank - 1:]:
            raise RunError(f"{name}: Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
                           f"got: {list(x.shape)}")
        self.kernel = per_dim(kernel_size, rank, "kernel_size")
        self.stride = per_dim(stride, rank, "stride", self.kernel)
        self.padding = per_dim(padding, rank, "padding")
        self.dilation = per_dim(dilation, rank, "dilation")
        self.extents = x.shape[-rank:]
        if min(self.kernel) < 1:
            raise RunError(f"{name}: kernel size should be greater than zero, but got {self.kernel}")
        if min(self.stride) < 1:
            raise RunError("stride should not be zero")
        if min(self.dilation) < 1:
            raise RunError(f"dilation should be greater than zero, but got {list(self.dilation)}")
        if min(self.padding) < 0:
            raise RunError("pad must be non-negative")
        if min(self.dilation) < 1:
            raise RunError(f"{name}: dilation should be greater than zero, but got {self.dilation}")
        for k, p, d in zip(self.kernel, self.padding, self.dilation, strict=True):
            if p > ((k - 1) * d + 1) // 2:
                raise RunError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}")
        self.counts = pool_extents(self.extents, self.kernel, self.stride, self.dilation, self.padding, ceil_mode)
        if min(self.counts) < 1:
            sizes = "x".join(str(n) for n in x.shape[-rank - 1:])
            outs = "x".join(str(n) for n in (x.shape[-rank - 1], *self.counts))
            raise RunError(f"Given input size: ({sizes}). Calculated output size: ({outs}). Output size is too small")
        self.behind = [max((c - 1) * s + d * (k - 1) + 1 - n - p, p) for c, s, d, k, n, p in
                       zip(self.counts, self.stride, self.dilation, self.kernel, self.extents, self.padding, strict=True)]

    def parts(self, x):
        """For each place of the kernel: the place, and the elements of padded `x` at it in all windows."""
        for place in positions(self.kernel):
            yield place, x[(..., *place_slices(place, self.stride, self.dilation, self.counts))]


# ---- maximum

def _least(xp, dtype):
    return dtype.type(-math.inf) if dtype.kind == "f" else xp.iinfo(dtype).min


def _first_places(xp, geometry):
    """Per dimension the coordinate of each window's first place, and of its first place inside the tensor."""
    firsts, insides = [], []
    rank = len(geometry.kernel)
    for axis in range(rank):
        first = xp.arange(geometry.counts[axis]) * geometry.stride[axis] - geometry.padding[axis]
        d = geometry.dilation[axis]
        inside = xp.where(first < 0, first + -(first // d) * d, first)
        shape = (1,) * axis + (-1,) + (1,) * (rank - axis - 1)
        firsts.append(first.reshape(shape))
        insides.append(inside.reshape(shape))
    return firsts, insides


def _flat(coordinates, extents):
    total = 0
    for coordinate, extent in zip(coordinates, extents, strict=True):
        total = total * extent + coordinate
    return total


def max_windows(xp, x, geometry, with_indices):
    """Maximum per window, nan wins; with the flat index of the first largest element (of the last nan, as torch)."""
    only("max_pool", "iuf", x)
    some = pieces(x.shape, len(geometry.kernel)) if with_indices or any(geometry.padding) or any(geometry.behind) else [()]
    if len(some) == 1:
        return _max_windows(xp, x, geometry, with_indices)
    shape = (*x.shape[:-len(geometry.kernel)], *geometry.counts)
    best, indices = xp.empty(shape, x.dtype), xp.empty(shape, xp.int64) if with_indices else None
    for index in some:
        best[index], places = _max_windows(xp, x[index], geometry, with_indices)
        if indices is not None:
            indices[index] = places
    return best, indices


def _max_windows(xp, x, geometry, with_indices):
    padded = padded_zeros(xp, x, geometry.padding, geometry.behind, _least(xp, x.dtype))
    best = indices = None
    if not with_indices:
        for _, part in geometry.parts(padded):
            best = part.copy() if best is None else xp.maximum(best, part, out=best)
        return best, None
    firsts, insides = _first_places(xp, geometry)
    shape = x.shape[:-len(geometry.kernel)] + tuple(geometry.counts)
    best = xp.full(shape, _least(xp, x.dtype), x.dtype)
    which = xp.zeros(shape, xp.uint8 if math.prod(geometry.kernel) < 256 else xp.int32)     # 0: none larger yet, else position + 1
    distances = [0]
    for number, (place, part) in enumerate(geometry.parts(padded), 1):
        better = part > best
        if x.dtype.kind == "f":
            better |= part != part
        if x.dtype == xp.float16:       # its maximum of 0 and -0 is another one
            xp.copyto(best, part, where=better)
        else:
            xp.maximum(part, best, out=best)        # without the branch of `where` at each element
        xp.maximum(which, better * which.dtype.type(number), out=which)
        distances.append(_flat([k * d for k, d in zip(place, geometry.dilation, strict=True)], geometry.extents))
    indices = xp.array(distances, xp.int64)[which] + _flat(firsts, geometry.extents)
    if which.size and int(which.min()) == 0:
        indices = xp.where(which == 0, _flat(insides, geometry.extents), indices)
    return best, indices


def _max_pool(rank, with_indices):
    def kernel(xp, self, kernel_size, stride, padding, dilation, ceil_mode):
        geometry = Geometry(f"max_pool{rank}d", self, kernel_size, stride, padding, dilation, ceil_mode, rank)
        values, indices = max_windows(xp, self, geometry, with_indices)
        return (values, indices) if with_indices else values
    return kernel


def spread_to_indices(xp, grad, like, indices, rank):
    """Gradient of a maximum over windows: that of every element is added at the position of its index."""
    plane, count = math.prod(like.shape[-rank:]), math.prod(indices.shape[-rank:])
    lead = math.prod(like.shape[:-rank])
    result = xp.zeros((lead, plane), grad.dtype)
    add_at(result, (xp.arange(lead)[:, None], indices.reshape(lead, count)), grad.reshape(lead, count))
    return result.reshape(like.shape)


def _max_pool_backward(rank):
    def kernel(xp, grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
        return spread_to_indices(xp, grad_output, self, indices, rank)
    return kernel


for _rank in (1, 2, 3):
    _zero, _one = ("[0]", "[1]") if _rank == 1 else ("0", "1")
    _arguments = (f"(Tensor self, int[{_rank}] kernel_size, int[{_rank}] stride=[], int[{_rank}] padding={_zero}, int[{_rank}] "
                  f"dilation={_one}, bool ceil_mode=False) -> ")
    table.define(f"aten::max_pool{_rank}d{_arguments}Tensor", _max_pool(_rank, False), doc="Largest element of every window.")
    table.define(f"aten::max_pool{_rank}d_with_indices{_arguments}(Tensor, Tensor)", _max_pool(_rank, True),
                 doc="Largest element of every window, and its place in the flattened plane.")
    if _rank > 1:
        table.define(f"aten::max_pool{_rank}d_with_indices_backward(Tensor grad_output, Tensor self, int[{_rank}] kernel_size, "
                     f"int[{_rank}] stride, int[{_rank}] padding, int[{_rank}] dilation, bool ceil_mode, Tensor indices) -> Tensor",
                     _max_pool_backward(_rank), doc="Gradient of the maximum over windows.")


@table.op("aten::max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
          "int[2] dilation=1, bool ceil_mode=False) -> Tensor")
def max_pool2d_backward(xp, grad_output, self, kernel_size, stride, padding, dilation, ceil_mode):
    """Gradient of max_pool2d, indices worked out again."""
    geometry = Geometry("max_pool2d", self, kernel_size, stride, padding, dilation, ceil_mode, 2)
    return spread_to_indices(xp, grad_output, self, max_windows(xp, self, geometry, True)[1], 2)


# ---- average

def sum_windows(xp, x, geometry):
    """Sum per window of padded `x`, one dimension after another."""
    rank = len(geometry.kernel)
    for axis in range(rank):
        lead = (..., )
        tail = (slice(None),) * (rank - axis - 1)
        total = None
        for k in range(geometry.kernel[axis]):
            (window,) = place_slices((k,), (geometry.stride[axis],), (1,), (geometry.counts[axis],))
            part = x[(*lead, window, *tail)]
            total = part.copy() if total is None else xp.add(total, part, out=total)
        x = total
    return x


def divisors(xp, geometry, count_include_pad, divisor_override, dtype):
    """The divisor of each window's sum: a number, or an array over the positions."""
    if divisor_override is not None:
        if divisor_override == 0:
            raise RunError("divisor must be not zero")
        return divisor_override
    rank, result = len(geometry.kernel), 1
    for axis in range(rank):
        first = xp.arange(geometry.counts[axis]) * geometry.stride[axis] - geometry.padding[axis]
        extent, p = geometry.extents[axis], geometry.padding[axis]
        end = xp.minimum(first + geometry.kernel[axis], extent + p)
        size = end - first if count_include_pad else xp.minimum(end, extent) - xp.maximum(first, 0)
        result = result * size.reshape((1,) * axis + (-1,) + (1,) * (rank - axis - 1))
    return result.astype(dtype)


def _avg_pool(rank):
    def kernel(xp, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
        if self.dtype.kind not in "iuf" or rank == 3 and self.dtype == xp.float16:
            refuse(f"avg_pool{rank}d_out_frame", self)
        geometry = Geometry(f"avg_pool{rank}d", self, kernel_size, stride, padding, 1, ceil_mode, rank)
        wide = xp.float32 if self.dtype == xp.float16 else self.dtype
        padded = padded_zeros(xp, self.astype(wide, copy=False), geometry.padding, geometry.behind)
        total = sum_windows(xp, padded, geometry)
        by = divisors(xp, geometry, count_include_pad, divisor_override, wide)
        if self.dtype.kind in "iu":
            return (xp.sign(total) * xp.sign(by) * (xp.abs(total) // xp.abs(by))).astype(self.dtype)     # towards 0, as in C
        return (total / by).astype(self.dtype, copy=False)
    return kernel


def _avg_pool_backward(rank):
    def kernel(xp, grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        geometry = Geometry(f"avg_pool{rank}d", self, kernel_size, stride, padding, 1, ceil_mode, rank)
        each = grad_output / divisors(xp, geometry, count_include_pad, divisor_override, grad_output.dtype)
        ones = (1,) * rank
        columns = xp.broadcast_to(each.reshape(each.shape[:-rank] + ones + each.shape[-rank:]),
                                  each.shape[:-rank] + tuple(geometry.kernel) + each.shape[-rank:])
        whole = [p + n + b for p, n, b in zip(geometry.padding, geometry.extents, geometry.behind, strict=True)]
        result = spread(xp, columns, geometry.kernel, geometry.stride, [1] * rank, whole)
        return row_major(xp, cropped(result, geometry.padding, geometry.behind))
    return kernel


for _rank in (1, 2, 3):
    _zero = "[0]" if _rank == 1 else "0"
    _override = ", int? divisor_override=None" * (_rank > 1)
    table.define(f"aten::avg_pool{_rank}d(Tensor self, int[{_rank}] kernel_size, int[{_rank}] stride=[], int[{_rank}] padding={_zero}, "
                 f"bool ceil_mode=False, bool count_include_pad=True{_override}) -> Tensor", _avg_pool(_rank), doc="Mean of every window.")
    if _rank > 1:
        table.define(f"aten::avg_pool{_rank}d_backward(Tensor grad_output, Tensor self, int[{_rank}] kernel_size, int[{_rank}] stride, "
                     f"int[{_rank}] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
                     _avg_pool_backward(_rank), doc="Gradient of the mean over windows.")


# ---- back to the places of maxima

def check_not_empty(name, but, x):
    """Raises torch's error for an empty dimension behind the first."""
    if 0 in x.shape[1:]:
        raise RunError(f"{name}: Expected input to have non-zero size for non-batch dimensions{but}{list(x.shape)} with dimension "
                       f"{x.shape.index(0, 1)} being empty.")


def unpooled(xp, self, indices, output_size, rank):
    """Zeros with every element at the place its index names."""
    if indices.dtype != xp.int64:
        raise RunError(f"elements in indices should be type int64 but got: {indices.dtype}")
    if len(output_size) != rank:
        raise RunError(f"There should be exactly {rank} elements in output_size, but got {len(output_size)} elements.")
    if self.ndim not in (rank + 1, rank + 2):
        raise RunError(f"Input to max_unpooling{rank}d should be a {rank + 1}d or {rank + 2}d Tensor, but got a tensor with {self.ndim} "
                       "dimensions.")
    if indices.shape != self.shape:
        raise RunError(f"Expected shape of indices to be same as that of the input tensor ({list(self.shape)}) but got indices tensor with "
                       f"shape: {list(indices.shape)}")
    check_not_empty(f"max_unpooling{rank}d_forward_out_cpu()", ", but got ", self)
    lead, plane = self.shape[:-rank], math.prod(output_size)
    result = xp.zeros((math.prod(lead), plane), self.dtype)
    flat = indices.reshape(result.shape[0], math.prod(self.shape[-rank:]))
    if not plane:
        return result.reshape((*lead, *output_size))
    if flat.size:
        only(f"max_unpool{rank}d", "f", self)
    if flat.size and (int(flat.min()) < 0 or int(flat.max()) >= plane):
        wrong = int(flat.min()) if int(flat.min()) < 0 else int(flat.max())
        raise RunError(f"Found an invalid max index: {wrong} (output volumes are of size {'x'.join(str(n) for n in output_size)})")
    result[xp.arange(result.shape[0])[:, None], flat] = self.reshape(flat.shape)
    return result.reshape((*lead, *output_size))


@table.op("aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor")
def max_unpool2d(xp, self, indices, output_size):
    """Inverse of max_pool2d: zeros with the maxima at their places."""
    return unpooled(xp, self, indices, output_size, 2)


@table.op("aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor")
def max_unpool3d(xp, self, indices, output_size, stride, padding):
    """Inverse of max_pool3d."""
    if min(stride) <= 0:
        raise RunError(f"strides should be greater than zero, but got stride: {list(stride)}")
    return unpooled(xp, self, indices, output_size, 3)


# ---- windows at random places

def _intervals(xp, sample, extent, count, size):
    if count == 1:
        return [extent - size]
    alpha = sample.dtype.type((extent - size) / (count - 1))
    starts = [int((place + sample) * alpha) - int(sample * alpha) for place in range(count - 1)]
    return [*starts, extent - size]


def _fractional(rank):
    def kernel(xp, self, kernel_size, output_size, random_samples):
        x = self if self.ndim == rank + 2 else self[None]
        extents = x.shape[2:]
        check_not_empty(f"fractional_max_pool{rank}d()", ", but got", x)
        for n, k, c in zip(extents, kernel_size, output_size, strict=True):
            if c + k - 1 > n - (rank == 3):     # in torch, the whole input is no window in three dimensions
                raise RunError(f"fractional_max_pool{rank}d(): pool height {k} too large relative to input height {n}")
        values = xp.empty((*x.shape[:2], *output_size), x.dtype)
        indices = xp.empty(values.shape, xp.int64)
        for plane in xp.ndindex(*x.shape[:2]):
            samples = random_samples[plane]
            # In two dimensions the first number is the width's, in three the depth's.
            order = samples[::-1] if rank == 2 else samples
            starts = [_intervals(xp, s, n, c, k) for s, n, c, k in zip(order, extents, output_size, kernel_size, strict=True)]
            for place in xp.ndindex(*output_size):
                corner = [interval_starts[p] for interval_starts, p in zip(starts, place, strict=True)]
                part = x[plane][tuple(slice(c, c + k) for c, k in zip(corner, kernel_size, strict=True))]
                inside = xp.unravel_index(int(part.argmax()), part.shape)
                values[plane][place] = part[inside]
                indices[plane][place] = _flat([c + int(i) for c, i in zip(corner, inside, strict=True)], extents)
        return (values, indices) if self.ndim == rank + 2 else (values[0], indices[0])
    return kernel


def _fractional_backward(rank):
    def kernel(xp, grad_output, self, kernel_size, output_size, indices):
        return spread_to_indices(xp, grad_output, self, indices, rank)
    return kernel


for _rank in (2, 3):
    table.define(f"aten::fractional_max_pool{_rank}d(Tensor self, int[{_rank}] kernel_size, int[{_rank}] output_size, Tensor "
                 f"random_samples) "
                 "-> (Tensor, Tensor)", _fractional(_rank), doc="Maximum over windows whose places come from random numbers, and indices.")
    table.define(f"aten::fractional_max_pool{_rank}d_backward(Tensor grad_output, Tensor self, int[{_rank}] kernel_size, int[{_rank}] "
                 "output_size, Tensor indices) -> Tensor", _fractional_backward(_rank), doc="Its gradient.")


# ---- dtypes that torch serves

table.takes("hf", "max_pool1d max_pool2d_with_indices_backward max_pool3d_with_indices_backward "
             "fractional_max_pool2d_backward fractional_max_pool3d_backward")
table.takes("hf=", "fractional_max_pool2d fractional_max_pool3d")
table.takes("lhf", "avg_pool1d avg_pool2d avg_pool2d_backward")
table.takes("lf", "avg_pool3d avg_pool3d_backward")
table.laid_out("L", "avg_pool1d")
table.laid_out("M", "max_pool2d max_pool3d max_pool2d_with_indices_backward avg_pool2d avg_pool2d_backward "
                    "max_unpool2d")
table.laid_out("LL", "max_pool1d_with_indices")
table.laid_out("MM", "max_pool2d_with_indices max_pool3d_with_indices")
