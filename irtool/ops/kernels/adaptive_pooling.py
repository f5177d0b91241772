"""Maximum and average over windows chosen so that the result has a given size."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import mean_over
from irtool.ops.checks import only, row_major
from irtool.ops.kernels.pooling import spread_to_indices
from irtool.ops.op import OpTable

table = OpTable("adaptive_pooling")


def _bounds(extent, count):
    """The begin and the end of each of `count` windows over `extent` positions."""
    return [(place * extent // count, -(-(place + 1) * extent // count)) for place in range(count)]


def _sizes(name, x, output_size, rank, first=1):
    """The sizes of the result, per dimension. first: the dimension of a batch from which on none may be empty."""
    if x.ndim not in (rank + 1, rank + 2):
        raise RunError(f"{name}: Expected {rank + 1}D or {rank + 2}D tensor, but got {list(x.shape)}")
    sizes = list(output_size) * (rank if len(output_size) == 1 else 1)
    if len(sizes) != rank:
        raise RunError(f"{name}: output_size must be {rank}")
    if min(sizes) < 0:
        raise RunError(f"{name}: elements of output_size must be greater than or equal to 0")
    for axis in range(1 if x.ndim == rank + 1 else first, x.ndim):
        if not x.shape[axis]:
            raise RunError(f"{name}: Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(x.shape)} "
                           f"with dimension {axis} being empty")
    return sizes


def _average(xp, x, sizes):
    rank = len(sizes)
    if all(count == 1 for count in sizes):
        return row_major(xp, mean_over(x, tuple(range(x.ndim - rank, x.ndim))))
    for axis, count in enumerate(sizes):
        place = x.ndim - rank + axis
        extent = x.shape[place]
        if count == extent:
            continue
        if count and extent % count == 0:
            x = x.reshape((*x.shape[:place], count, extent // count, *x.shape[place + 1:])).mean(place + 1, dtype=x.dtype)
        else:
            lead = (slice(None),) * place
            parts = [x[(*lead, slice(a, b))].mean(place, dtype=x.dtype) for a, b in _bounds(extent, count)]
            x = xp.stack(parts, place) if parts else xp.empty((*x.shape[:place], 0, *x.shape[place + 1:]), x.dtype)
    return row_major(xp, x)


def _average_backward(xp, grad, shape, rank):
    for axis in range(rank):
        place = len(shape) - rank + axis
        lead, extent = (slice(None),) * place, shape[place]
        result = xp.zeros((*grad.shape[:place], extent, *grad.shape[place + 1:]), grad.dtype)
        for index, (a, b) in enumerate(_bounds(extent, grad.shape[place])):
            result[(*lead, slice(a, b))] += grad[(*lead, slice(index, index + 1))] / grad.dtype.type(b - a)
        grad = result
    return grad


def _last_nan_or_largest(xp, part):
    best = part.argmax(-1)
    nan = part != part
    if nan.any():       # of several nan torch's index is the last one's
        best = xp.where(nan.any(-1), part.shape[-1] - 1 - nan[..., ::-1].argmax(-1), best)
    return best


def _maximum(xp, x, sizes):
    rank = len(sizes)
    extents = x.shape[-rank:]
    values = xp.empty((*x.shape[:-rank], *sizes), x.dtype)
    indices = xp.empty(values.shape, xp.int64)
    bounds = [_bounds(n, c) for n, c in zip(extents, sizes, strict=True)]
    flat = xp.arange(math.prod(extents)).reshape(extents)
    for place in xp.ndindex(*sizes):
        window = tuple(slice(*ranges[p]) for ranges, p in zip(bounds, place, strict=True))
        part = x[(..., *window)]
        part = part.reshape(*x.shape[:-rank], math.prod(part.shape[-rank:]))
        best = _last_nan_or_largest(xp, part)
        values[(..., *place)] = xp.take_along_axis(part, best[..., None], -1)[..., 0]
        indices[(..., *place)] = flat[window].reshape(-1)[best]
    return values, indices


def _by_rank(rank):
    def average(xp, self, output_size):
        sizes = _sizes(f"adaptive_avg_pool{rank}d()", self, output_size, rank, 1 if rank == 3 else 2)
        if (self.size or set(sizes) == {1}) and 0 not in sizes or rank == 3:       # one window is a mean, which has no other dtypes
            only(f"adaptive_avg_pool{rank}d", "f", self)
        return averaged(xp, self, sizes)

    def averaged(xp, self, sizes):
        wide = self.astype(xp.float32) if self.dtype == xp.float16 else self
        return _average(xp, wide, sizes).astype(self.dtype, copy=False)

    def average_or_mean(xp, self, output_size):
        is_mean = set(output_size) == {1} and len(output_size) == rank and (self.ndim >= rank > 1 or self.ndim in (2, 3))
        return averaged(xp, self, output_size) if is_mean and self.dtype.kind in "fc" else average(xp, self, output_size)

    def average_backward(xp, grad_output, self):
        return _average_backward(xp, grad_output, self.shape, rank)

    def maximum(xp, self, output_size):
        only(f"adaptive_max_pool{rank}d", "f", self)
        return _maximum(xp, self, _sizes(f"adaptive_max_pool{rank}d()", self, output_size, rank))

    def maximum_backward(xp, grad_output, self, indices):
        return spread_to_indices(xp, grad_output, self, indices, rank)

    number = "int" if rank == 1 else "SymInt"
    table.define(f"aten::adaptive_avg_pool{rank}d(Tensor self, {number}[{rank}] output_size) -> Tensor", average_or_mean,
                 doc="Means over windows, as many as asked for. One window is the mean of what there is, if only nan.")
    table.define(f"aten::adaptive_max_pool{rank}d(Tensor self, int[{rank}] output_size) -> (Tensor, Tensor)", maximum,
                 doc="Largest elements of windows, as many as asked for, and their places in the flattened plane.")
    if rank > 1:
        table.define(f"aten::_adaptive_avg_pool{rank}d(Tensor self, SymInt[{rank}] output_size) -> Tensor", average,
                     doc="Means over windows, as many as asked for.")
        table.define(f"aten::_adaptive_avg_pool{rank}d_backward(Tensor grad_output, Tensor self) -> Tensor", average_backward,
                     doc="Gradient of the mean over windows.")
        table.define(f"aten::adaptive_max_pool{rank}d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
                     maximum_backward, doc="Gradient of the maximum over windows.")


for _rank in (1, 2, 3):
    _by_rank(_rank)


# ---- dtypes that torch serves

table.takes("hf", "_adaptive_avg_pool2d_backward adaptive_max_pool2d_backward _adaptive_avg_pool3d_backward adaptive_max_pool3d_backward")
table.laid_out("M", "adaptive_avg_pool2d _adaptive_avg_pool2d _adaptive_avg_pool2d_backward")
table.laid_out("MM", "adaptive_max_pool2d")
table.laid_out("L", "adaptive_avg_pool1d")
table.laid_out("LL", "adaptive_max_pool1d")
