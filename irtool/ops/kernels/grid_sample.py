"""Images read at arbitrary points (grid_sampler), and the grids of affine maps."""
from irtool.ir.errors import RunError
from irtool.ops.checks import only
from irtool.ops.kernels.matmul import product
from irtool.ops.kernels.resample import CUBIC, cubic_weights
from irtool.ops.kernels.windows import positions
from irtool.ops.op import OpTable

table = OpTable("grid_sample")

BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2


def _unnormalized(xp, coordinate, extent, align_corners):
    """[-1, 1] as positions: the centres of the first and last pixel with align_corners, else their outer edges."""
    if align_corners:
        return (coordinate + 1) / 2 * (extent - 1)
    return ((coordinate + 1) * extent - 1) / 2


def _reflected(xp, x, low2, high2):
    """Mirrored at low2 / 2 and high2 / 2 until inside."""
    if low2 == high2:
        return xp.zeros_like(x)
    low, span = low2 / 2, (high2 - low2) / 2
    away = xp.abs(x - low)
    extra = xp.fmod(away, x.dtype.type(span))
    flips = xp.floor(away / x.dtype.type(span))
    return xp.where(flips % 2 == 0, extra + low, span - extra + low).astype(x.dtype)


def _inside(xp, x, extent, padding_mode, align_corners, is_volume=False):
    """A position moved into the image or volume according to the padding mode; unchanged for zeros."""
    if padding_mode == ZEROS:
        return x
    if padding_mode == REFLECTION:
        x = _reflected(xp, x, 0, 2 * (extent - 1)) if align_corners else _reflected(xp, x, -1, 2 * extent - 1)
    # nan, which inf becomes when it is mirrored, ends at the first place of an image and at the last of a volume, as torch's clips do
    if is_volume:
        return xp.maximum(xp.fmin(x, x.dtype.type(extent - 1)), x.dtype.type(0))
    return xp.minimum(xp.fmax(x, x.dtype.type(0)), x.dtype.type(extent - 1))


def _read(xp, image, places):
    """image (channels, *extents) at integer places (*points) per dimension; 0 outside. (channels, *points)."""
    valid, index = True, 0
    for place, extent in zip(places, image.shape[1:], strict=True):
        valid = valid & (place >= 0) & (place < extent)
        index = index * extent + xp.clip(place, 0, extent - 1)
    return xp.where(valid, image.reshape(image.shape[0], -1)[:, index], image.dtype.type(0))


def _integer(xp, x):
    """Integral floats as int64; those that no image can contain become -1, outside."""
    return xp.where(xp.isfinite(x) & (xp.abs(x) < 2**31), x, -1).astype(xp.int64)


def _points(xp, grid, extents, padding_mode, align_corners, moved=True):
    """Places per dimension, slowest dimension first (the grid names the fastest first)."""
    result = []
    for axis, extent in enumerate(extents):
        x = _unnormalized(xp, grid[..., len(extents) - 1 - axis], extent, align_corners)
        result.append(_inside(xp, x, extent, padding_mode, align_corners, len(extents) == 3) if moved else x)
    return result


def _linear_corners(xp, points):
    """Each corner around the points: (places, weight)."""
    lows = [xp.floor(p) for p in points]
    for corner in positions((2,) * len(points)):
        weight = 1
        for p, low, high in zip(points, lows, corner, strict=True):
            weight = weight * (p - low if high else low + 1 - p)
        if len(points) == 3:        # in a volume, corners outside count for nothing; in an image nan times zero remains nan
            weight = xp.where(xp.isnan(weight), weight.dtype.type(0), weight)
        yield [_integer(xp, low + high) for low, high in zip(lows, corner, strict=True)], weight


def _cubic_corners(xp, points, extents, padding_mode, align_corners):
    lows = [xp.floor(p) for p in points]
    weights = [cubic_weights(xp, p - low, p.dtype.type(CUBIC)) for p, low in zip(points, lows, strict=True)]
    for corner in positions((4, 4)):
        places = [_integer(xp, _inside(xp, low + (c - 1), n, padding_mode, align_corners))
                  for low, c, n in zip(lows, corner, extents, strict=True)]
        yield places, weights[0][..., corner[0]] * weights[1][..., corner[1]]


def _corners(xp, grid, extents, mode, padding_mode, align_corners):
    points = _points(xp, grid, extents, padding_mode, align_corners, moved=mode != BICUBIC)
    if mode == NEAREST:
        return [([_integer(xp, xp.rint(p)) for p in points], None)]
    if mode == BILINEAR:
        return _linear_corners(xp, points)
    return _cubic_corners(xp, points, extents, padding_mode, align_corners)


def sampled(xp, input, grid, mode, padding_mode, align_corners):
    """input (n, channels, *extents) at the points of grid (n, *points, rank), numbers in [-1, 1]."""
    rank = input.ndim - 2
    if input.dtype != grid.dtype:
        raise RunError(f"grid_sampler(): expected input and grid to have same dtype, but input has {input.dtype} and grid has {grid.dtype}",
                       code="E0409")
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise RunError("grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
                       f"{list(input.shape)} and grid with sizes {list(grid.shape)}")
    if input.shape[0] != grid.shape[0]:
        raise RunError("grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
                       f"{list(input.shape)} and grid with sizes {list(grid.shape)}")
    if grid.shape[-1] != rank:
        raise RunError(f"grid_sampler(): expected grid to have size {rank} in last dimension, but got grid with sizes {list(grid.shape)}")
    if not all(input.shape[2:]):
        raise RunError("grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                       f"{list(input.shape)} with dimension {input.shape.index(0, 2)} being empty")
    if mode not in (BILINEAR, NEAREST, BICUBIC) or padding_mode not in (ZEROS, BORDER, REFLECTION):      # torch reads memory nobody filled
        raise RunError(f"grid_sampler(): no interpolation mode {mode} or padding mode {padding_mode}")
    if rank == 3 and mode == BICUBIC:
        raise RunError("grid_sampler(): bicubic interpolation only supports 4D input")
    only("grid_sampler", "f", input)
    result = xp.zeros((input.shape[0], input.shape[1], *grid.shape[1:-1]), input.dtype)
    for sample in range(input.shape[0]):
        for places, weight in _corners(xp, grid[sample], input.shape[2:], mode, padding_mode, align_corners):
            read = _read(xp, input[sample], places)
            result[sample] += read if weight is None else read * weight
    return result


def _grid_sampler(rank):
    def kernel(xp, input, grid, interpolation_mode, padding_mode, align_corners):
        if rank and (input.ndim != rank or grid.ndim != rank):
            raise RunError(f"grid_sampler(): expected {rank}D input and grid with same number of dimensions, but got input with sizes "
                           f"{list(input.shape)} and grid with sizes {list(grid.shape)}")
        return sampled(xp, input, grid, interpolation_mode, padding_mode, align_corners)
    return kernel


_ARGUMENTS = "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor"
for _names, _rank in (("grid_sampler",), 0), (("grid_sampler_2d", "_grid_sampler_2d_cpu_fallback"), 4), (("grid_sampler_3d",), 5):
    table.define([f"aten::{name}{_ARGUMENTS}" for name in _names], _grid_sampler(_rank),
                 doc="An image read at the points of a grid; bilinear, nearest or bicubic; zeros, border or reflection outside.")


@table.op("aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor")
def affine_grid_generator(xp, theta, size, align_corners):
    """The grid of the images of the points of an even grid under affine maps theta (n, rank, rank + 1)."""
    if len(size) not in (4, 5):
        raise RunError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    if theta.ndim != 3 or len(theta) != size[0]:
        raise RunError(f"Expected a batch of {size[0]} affine matrices, but got {list(theta.shape)} for output size {list(size)}")
    extents = size[2:]
    axes = []
    for extent in extents:
        line = xp.linspace(-1, 1, extent, dtype=theta.dtype) if extent > 1 else xp.zeros(extent, theta.dtype)
        axes.append(line if align_corners else line * theta.dtype.type((extent - 1) / max(extent, 1)))
    grids = xp.meshgrid(*axes, indexing="ij")
    base = xp.stack([*grids[::-1], xp.ones(grids[0].shape, theta.dtype)], -1).reshape(-1, len(extents) + 1)
    return xp.matmul(base, theta.swapaxes(1, 2)).reshape(size[0], *extents, len(extents))


@table.op("aten::affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor")
def affine_grid_generator_backward(xp, grad, size, align_corners):
    """Gradient of affine_grid_generator."""
    rank = len(size) - 2
    unit = xp.broadcast_to(xp.eye(rank, rank + 1, dtype=grad.dtype), (1, rank, rank + 1))
    base = affine_grid_generator.kernel(xp, unit, [1, *size[1:]], align_corners).reshape(-1, rank)
    base = xp.concatenate([base, xp.ones((len(base), 1), grad.dtype)], 1)
    return product(xp, grad.reshape(size[0], -1, rank).swapaxes(1, 2), base)


# ---- dtypes that torch serves

table.takes("uilhfc", "affine_grid_generator")
table.laid_out("F", "affine_grid_generator_backward")
