"""Images resized: nearest, linear, cubic, with antialiasing, in 1 to 3 dimensions; and the gradients.

Every mode is a linear map per dimension: an output element is a weighted sum of a few input elements. `taps` computes their positions and
weights, in the input's own precision as torch does, since the rounding of a position decides the result.
"""
import math

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.arrays import add_at
from irtool.ops.checks import refuse, row_major
from irtool.ops.kernels.windows import pieces
from irtool.ops.op import OpTable

table = OpTable("resample")

CUBIC, CUBIC_ANTIALIAS = -0.75, -0.5


# ---- places and weights of one dimension

def _scale(extent, size, align_corners, scale, kind):
    if align_corners:
        return kind((extent - 1) / (size - 1)) if size > 1 else kind(0)
    return kind(1 / scale) if scale is not None and scale > 0 else kind(kind(extent) / kind(size))


def _nearest(xp, extent, size, scale, exact, kind, doubles):
    places = xp.arange(size)
    if doubles and not exact and size in (extent, 2 * extent):
        return places if size == extent else places >> 1
    step = kind(1 / scale) if scale is not None and scale > 0 else kind(extent) / kind(size)
    at = (places + kind(0.5)).astype(kind) * step if exact else places.astype(kind) * step
    return xp.minimum(xp.floor(at).astype(xp.int64), extent - 1)


def _positions(xp, size, step, align_corners, kind):
    places = xp.arange(size).astype(kind)
    return places * step if align_corners else (places + kind(0.5)) * step - kind(0.5)


def _linear(xp, extent, size, step, align_corners, kind):
    at = xp.maximum(_positions(xp, size, step, align_corners, kind), kind(0))
    low = xp.minimum(at.astype(xp.int64), extent - 1)
    high = xp.minimum(low + 1, extent - 1)
    part = xp.clip(at - low.astype(kind), kind(0), kind(1))
    return xp.stack([low, high], 1), xp.stack([1 - part, part], 1)


def cubic_weights(xp, t, a):
    """Weights of the four neighbours of a point `t` past the second of them (cubic convolution)."""
    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return xp.stack([far(t + 1), near(t), near(1 - t), far(2 - t)], -1)


def _cubic(xp, extent, size, step, align_corners, kind):
    at = _positions(xp, size, step, align_corners, kind)
    low = xp.floor(at)
    weights = cubic_weights(xp, at - low, kind(CUBIC))
    places = low.astype(xp.int64)[:, None] + xp.arange(-1, 3)
    return xp.clip(places, 0, extent - 1), weights


def _triangle(xp, x):
    return xp.maximum(1 - abs(x), x.dtype.type(0))


def _cubic_filter(xp, x):
    x, a = abs(x), x.dtype.type(CUBIC_ANTIALIAS)
    return xp.where(x < 1, ((a + 2) * x - (a + 3)) * x * x + 1, xp.where(x < 2, (((x - 5) * x + 8) * x - 4) * a, x.dtype.type(0)))


def _lanczos_filter(xp, x):
    return xp.where(abs(x) < 3, xp.sinc(x) * xp.sinc(x / 3), x.dtype.type(0)).astype(x.dtype)


FILTERS = {"linear": (_triangle, 2), "cubic": (_cubic_filter, 4), "lanczos": (_lanczos_filter, 6)}


def _antialiased(xp, extent, size, step, kind, mode):
    function, width = FILTERS[mode]
    support = kind(width * 0.5) * step if step >= 1 else kind(width * 0.5)
    narrow = kind(1) / step if step >= 1 else kind(1)
    centre = step * (xp.arange(size).astype(kind) + kind(0.5))
    first = xp.maximum((centre - support + kind(0.5)).astype(xp.int64), 0)
    last = xp.minimum((centre + support + kind(0.5)).astype(xp.int64), extent)
    count = xp.clip(last - first, 0, math.ceil(support) * 2 + 1)
    offsets = xp.arange(max(int(count.max()), 1))
    inside = offsets < count[:, None]
    weights = function(xp, ((offsets + first[:, None]).astype(kind) - centre[:, None] + kind(0.5)) * narrow)
    weights = xp.where(inside, weights, kind(0))
    total = weights.sum(1, keepdims=True)
    weights = xp.where(total != 0, weights / total, weights)
    return xp.where(inside, first[:, None] + offsets, 0), weights


def taps(xp, mode, extent, size, align_corners, scale, kind, antialias=False, rank=2):
    """(positions, weights), both (size, taps): the input elements of each output element. Weights are None for nearest.

    torch's two-dimensional nearest ignores the scale if the size stays or doubles; its other ranks do not.
    """
    if mode in ("nearest", "exact"):
        return _nearest(xp, extent, size, scale, mode == "exact", xp.float32 if rank == 2 else kind, rank == 2)[:, None], None
    step = _scale(extent, size, align_corners, scale, kind)
    if antialias:
        return _antialiased(xp, extent, size, step, kind, mode)
    return (_linear if mode == "linear" else _cubic)(xp, extent, size, step, align_corners, kind)


def _weighted(xp, x, axis, places, weights):
    if weights is None:
        return xp.take(x, places[:, 0], axis)
    shape = (1,) * axis + (-1,) + (1,) * (x.ndim - axis - 1)
    result = None
    for tap in range(places.shape[1]):
        part = xp.take(x, places[:, tap], axis)
        part *= weights[:, tap].astype(x.dtype).reshape(shape)
        result = part if result is None else xp.add(result, part, out=result)
    return result


def _spread_back(xp, grad, axis, extent, places, weights):
    factor = max(places.size // extent, 1)
    if weights is None and places.size == extent * factor and bool((places[:, 0] == xp.arange(places.size) // factor).all()):
        each = xp.zeros((*grad.shape[:axis], extent, *grad.shape[axis + 1:]), grad.dtype)       # each place was taken `factor` times
        for first in range(factor):
            each += grad[(*[slice(None)] * axis, slice(first, None, factor))]
        return each
    moved = xp.moveaxis(grad, axis, 0)
    result = xp.zeros((extent, *moved.shape[1:]), grad.dtype)
    for tap in range(places.shape[1]):
        part = moved if weights is None else moved * weights[:, tap].astype(grad.dtype).reshape((-1,) + (1,) * (moved.ndim - 1))
        add_at(result, places[:, tap], part)
    return xp.moveaxis(result, 0, axis)


# ---- whole images

def _named(sizes):
    return ", ".join(f"{letter}: {size}" for letter, size in zip("DHW"[3 - len(sizes):], sizes, strict=True))


def _check(x, sizes, rank, name):
    if x.ndim != rank + 2 or not all(x.shape[1:]):
        raise RunError(f"Non-empty {rank + 2}D data tensor expected but got a tensor with sizes {list(x.shape)}" if x.ndim == rank + 2 else
                       f"It is expected input_size equals to {rank + 2}, but got size {x.ndim}")
    if min(sizes) <= 0:
        raise RunError(f"Input and output sizes should be greater than 0, but got input ({_named(x.shape[2:])}) output ({_named(sizes)})")
    if x.dtype.kind not in "f" and (name not in ("nearest", "exact") or x.dtype.kind == "c"):
        if x.dtype.kind == "u":
            raise UnsupportedError(f"aten::upsample ({name}) of uint8 is not supported yet")
        refuse(f"compute_indices_weights_{name}", x)


def resized(xp, x, mode, sizes, align_corners, scales, antialias=False):
    """`x` (n, channels, *extents) with its last dimensions resized to `sizes`."""
    rank = len(sizes)
    _check(x, sizes, rank, mode)
    if antialias and x.dtype == xp.float16 and list(x.shape[2:]) != list(sizes):
        refuse("compute_index_ranges_weights", x)
    wide = x.astype(xp.float32) if x.dtype == xp.float16 and mode not in ("nearest", "exact") else x
    kind = wide.dtype.type if wide.dtype.kind == "f" else xp.float32
    maps = []
    for axis in reversed(range(rank)):
        extent = x.shape[2 + axis]
        if extent == sizes[axis] and (antialias or mode == "linear"):
            continue        # torch does not resize such a dimension, whatever the scale
        maps.append((2 + axis, *taps(xp, mode, extent, sizes[axis], align_corners, scales[axis], kind, antialias, rank)))
    some = pieces((*x.shape[:2], *[max(pair) for pair in zip(x.shape[2:], sizes, strict=True)]), rank)
    if len(some) > 1 and any(weights is not None for *_, weights in maps):
        result = xp.empty((*x.shape[:2], *sizes), wide.dtype)
        for index in some:
            result[index] = _mapped(xp, wide[index], maps)
        return result.astype(x.dtype, copy=False)
    result = row_major(xp, _mapped(xp, wide, maps))
    return result.astype(x.dtype, copy=result is x)


def _mapped(xp, x, maps):
    for axis, places, weights in maps:
        x = _weighted(xp, x, axis, places, weights)
    return x


def resized_backward(xp, grad, mode, input_size, align_corners, scales, antialias=False):
    """Gradient of `resized` for an input of `input_size`."""
    rank = len(input_size) - 2
    kind = grad.dtype.type
    maps = []
    for axis in range(rank):
        extent = input_size[2 + axis]
        if extent == grad.shape[2 + axis] and (antialias or mode == "linear"):
            continue
        maps.append((2 + axis, extent, *taps(xp, mode, extent, grad.shape[2 + axis], align_corners, scales[axis], kind, antialias, rank)))
    some = pieces((*grad.shape[:2], *[max(pair) for pair in zip(grad.shape[2:], input_size[2:], strict=True)]), rank)
    if len(some) == 1 or not maps:
        return row_major(xp, _mapped_back(xp, grad, maps))
    result = xp.empty((*grad.shape[:2], *input_size[2:]), grad.dtype)
    for index in some:
        result[index] = _mapped_back(xp, grad[index], maps)
    return result


def _mapped_back(xp, grad, maps):
    for axis, extent, places, weights in maps:
        grad = _spread_back(xp, grad, axis, extent, places, weights)
    return grad


def _sizes_of(x, output_size, scale_factors):
    """Sizes and scales of the `.vec` overloads: given sizes, or the input's times factors, rounded down."""
    rank = x.ndim - 2
    if output_size is not None:
        if scale_factors is not None:
            raise RunError("Must specify exactly one of output_size and scale_factors")
        if len(output_size) != rank:
            raise RunError(f"It is expected output_size equals to {rank}, but got size {len(output_size)}")
        return output_size, [None] * rank
    if scale_factors is None:
        raise RunError("Must specify exactly one of output_size and scale_factors")
    return [int(n * factor) for n, factor in zip(x.shape[2:], scale_factors, strict=True)], scale_factors


def _define(name, rank, mode, antialias=False):
    """The three overloads of one resize: sizes with scales, sizes or factors, and the gradient."""
    corners = mode not in ("nearest", "exact")

    def split(options):
        return (options[0], options[1:]) if corners else (False, options)

    def check_rank(sizes):
        if len(sizes) != rank:
            raise RunError(f"It is expected output_size equals to {rank}, but got size {len(sizes)}")

    def forward(xp, self, output_size, *options):
        align_corners, scales = split(options)
        check_rank(output_size)
        return resized(xp, self, mode, output_size, align_corners, scales, antialias)

    def forward_by_factor(xp, input, output_size, *options):
        align_corners, (factors,) = split(options)
        sizes, scales = _sizes_of(input, output_size, factors)
        check_rank(sizes)
        return resized(xp, input, mode, sizes, align_corners, scales, antialias)

    def backward(xp, grad_output, output_size, input_size, *options):
        align_corners, scales = split(options)
        return resized_backward(xp, grad_output, mode, input_size, align_corners, scales, antialias)

    align = "bool align_corners, " if corners else ""
    scales = {1: "float? scales=None", 2: "float? scales_h=None, float? scales_w=None",
              3: "float? scales_d=None, float? scales_h=None, float? scales_w=None"}[rank]
    doc = f"Resized in {rank} dimension(s), {mode}{', with antialiasing' if antialias else ''}."
    table.define(f"aten::{name}(Tensor self, SymInt[{rank}] output_size, {align}{scales}) -> Tensor", forward, doc=doc)
    table.define(f"aten::{name}.vec(Tensor input, SymInt[]? output_size, {align}float[]? scale_factors) -> Tensor", forward_by_factor,
                 doc=doc)
    table.define(f"aten::{name}_backward(Tensor grad_output, SymInt[{rank}] output_size, SymInt[{rank + 2}] input_size, {align}{scales}) "
                 "-> Tensor", backward, doc=f"Gradient of {name}.")


for _name, _rank, _mode in (
    ("upsample_nearest1d", 1, "nearest"), ("upsample_nearest2d", 2, "nearest"), ("upsample_nearest3d", 3, "nearest"),
    ("_upsample_nearest_exact1d", 1, "exact"), ("_upsample_nearest_exact2d", 2, "exact"), ("_upsample_nearest_exact3d", 3, "exact"),
    ("upsample_linear1d", 1, "linear"), ("upsample_bilinear2d", 2, "linear"), ("upsample_trilinear3d", 3, "linear"),
    ("upsample_bicubic2d", 2, "cubic"),
):
    _define(_name, _rank, _mode)
for _name, _mode in (("_upsample_bilinear2d_aa", "linear"), ("_upsample_bicubic2d_aa", "cubic"), ("_upsample_lanczos2d_aa", "lanczos")):
    _define(_name, 2, _mode, True)


# ---- dtypes that torch serves

table.takes("uhf", "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
             "_upsample_nearest_exact3d")
table.takes("hf", "upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward _upsample_nearest_exact1d_backward "
             "_upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward upsample_linear1d_backward "
             "upsample_bilinear2d_backward upsample_trilinear3d_backward upsample_bicubic2d_backward")
table.takes("f", "_upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward _upsample_lanczos2d_aa_backward")
table.laid_out("M", "upsample_nearest2d upsample_nearest3d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d "
               "_upsample_nearest_exact2d _upsample_nearest_exact3d")
