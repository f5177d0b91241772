"""Fourier transforms. Whole numbers become float32; float16 is refused, as torch refuses it on the CPU."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import astype, complex_of, real_of, title, wrap_dim
from irtool.ops.checks import channels_last, in_memory_order, wrap_dims
from irtool.ops.kernels.shape import rolled
from irtool.ops.op import OpTable
from irtool.ops.promotion import float_of

table = OpTable("fft")

NORMS = (None, "backward", "forward", "ortho")


def _input(xp, name, x, norm, real=False):
    """x as float or complex. Raises torch's error for other dtypes."""
    if norm not in NORMS:
        raise RunError(f'Invalid normalization mode: "{norm}"')
    if real and x.dtype.kind == "c":
        raise RunError(f"{name} expects a real input tensor, but got {title(x.dtype)}")
    if x.dtype == xp.float16:
        raise RunError("Unsupported dtype Half")
    return astype(x, float_of(x.dtype))


def _axis(name, x, dim):
    if x.ndim == 0:
        raise RunError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, x.ndim)


def _points(n):
    if n < 1:
        raise RunError(f"Invalid number of data points ({n}) specified")
    return n


def _one(name, real_input=False, halved=None):
    """A transform along one dimension; `halved` says that the default length of the result is 2 (size - 1)."""
    def kernel(xp, self, n, dim, norm):
        x = _input(xp, name, self, norm, real_input)
        axis = _axis(name, x, dim)
        length = n if n is not None else 2 * (x.shape[axis] - 1) if halved else x.shape[axis]
        length = _points(length)
        result = _rounded(xp, getattr(xp.fft, name)(_not_empty(xp, x, (axis,)), length, axis, norm), x)
        return _laid_out(xp, result, x, [axis], is_padded=(length // 2 + 1 if halved else length) > x.shape[axis])
    table.define(f"aten::fft_{name}(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", kernel,
                 doc=f"{name} along one dimension, cut or padded with zeros to n.")


def _not_empty(xp, x, axes):
    """An empty axis counts as one zero: NumPy (2.4) reads foreign memory there."""
    if all(x.shape[axis] for axis in axes):
        return x
    return xp.zeros([1 if axis in axes and size == 0 else size for axis, size in enumerate(x.shape)], x.dtype)


def _rounded(xp, result, x):
    """The result in the precision of x."""
    wanted = complex_of(x.dtype) if result.dtype.kind == "c" else real_of(x.dtype)
    return astype(result, wanted)


def _laid_out(xp, result, x, axes, last=None, is_padded=False):
    """The order of dimensions in torch's result: those that are no axes as in x (padded, if torch pads it), then the axes, with the last
    one at the end."""
    order = channels_last(x) if is_padded else sorted(range(x.ndim), key=lambda place: -abs(x.strides[place]))
    return in_memory_order(xp, result, sorted(order, key=lambda place: (place in axes) + (place == last)))


_one("fft")
_one("ifft")
_one("rfft", real_input=True)
_one("irfft", halved=True)
_one("hfft", halved=True)
_one("ihfft", real_input=True)


def _shape_and_dims(x, s, dim):
    """Axes of an n-dimensional transform and the sizes along them; without `dim` the last len(s) ones."""
    if dim and x.ndim == 0:
        raise RunError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
    if dim is not None:
        axes = wrap_dims(dim, x.ndim) if dim else ()
        if s is not None and len(s) != len(axes):
            raise RunError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > x.ndim:
            raise RunError(f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions.")
        axes = tuple(range(x.ndim - len(s), x.ndim))
    else:
        axes = tuple(range(x.ndim))
    sizes = [x.shape[axis] for axis in axes] if s is None else [x.shape[axis] if n == -1 else n for axis, n in zip(axes, s, strict=True)]
    return axes, [None if n is None else _points(n) for n in sizes]


def _last_size(x, s, axes, sizes):
    """Transforms to half a spectrum's real signal: without sizes the last is 2 (size - 1)."""
    if axes and (s is None or s[-1] == -1):
        sizes = [*sizes[:-1], _points(2 * (x.shape[axes[-1]] - 1))]
    return sizes


def _complex_nd(xp, x, sizes, axes, norm, name):
    return getattr(xp.fft, name)(x, sizes, axes, norm) if axes else x


def _several(name, real_input=False):
    def compute(xp, self, s, dim, norm):
        x = _input(xp, name, self, norm, real_input)
        axes, sizes = _shape_and_dims(x, s, dim)
        if name in ("irfftn", "hfftn"):
            sizes = _last_size(x, s, axes, sizes)
        if not axes:
            if real_input or name in ("irfftn", "hfftn"):
                raise RunError(f"{name} must transform at least one axis")
            return astype(x, complex_of(x.dtype))
        result = _rounded(xp, COMPUTE[name](xp, _not_empty(xp, x, axes), sizes, axes, norm), x)
        needed = [*sizes[:-1], sizes[-1] // 2 + 1] if name in ("irfftn", "hfftn") else sizes
        is_padded = any(size > x.shape[axis] for size, axis in zip(needed, axes, strict=True))
        if name == "ihfftn" and len(axes) > 1:      # torch transforms the last axis first, and then the others
            return _laid_out(xp, result, _laid_out(xp, result, x, axes[-1:], None, is_padded), axes[:-1])
        return _laid_out(xp, result, x, axes, axes[-1] if "r" in name or "h" in name else None, is_padded)

    table.define(f"aten::fft_{name}(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", compute,
                 doc=f"{name[:-1]} along several dimensions (all by default), cut or padded with zeros to sizes s.")
    two = name[:-1] + "2"
    table.define(f"aten::fft_{two}(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", compute,
                 doc=f"{name[:-1]} along two dimensions.")


def _hfftn(xp, x, sizes, axes, norm):
    return xp.fft.hfft(_complex_nd(xp, x, sizes[:-1], axes[:-1], norm, "fftn"), sizes[-1], axes[-1], norm)


def _ihfftn(xp, x, sizes, axes, norm):
    return _complex_nd(xp, xp.fft.ihfft(x, sizes[-1], axes[-1], norm), sizes[:-1], axes[:-1], norm, "ifftn")


COMPUTE = {
    "fftn": lambda xp, x, sizes, axes, norm: xp.fft.fftn(x, sizes, axes, norm),
    "ifftn": lambda xp, x, sizes, axes, norm: xp.fft.ifftn(x, sizes, axes, norm),
    "rfftn": lambda xp, x, sizes, axes, norm: xp.fft.rfftn(x, sizes, axes, norm),
    "irfftn": lambda xp, x, sizes, axes, norm: xp.fft.irfftn(x, sizes, axes, norm),
    "hfftn": _hfftn,
    "ihfftn": _ihfftn,
}
for _name in COMPUTE:
    _several(_name, _name in ("rfftn", "ihfftn"))


def _shift(name, up):
    def kernel(xp, self, dim):
        if self.ndim == 0:
            raise RunError(f"Dimension specified as {dim[0]} but tensor has no dimensions" if dim else "`shifts` required")
        if dim is not None and not len(dim):
            raise RunError("`shifts` required")
        axes = range(self.ndim) if dim is None else [wrap_dim(axis, self.ndim) for axis in dim]      # one named twice moves twice
        return rolled(xp, self, tuple((self.shape[axis] + up) // 2 for axis in axes), tuple(axes))
    table.define(f"aten::fft_{name}(Tensor self, int[1]? dim=None) -> Tensor", kernel,
                 doc="The zero frequency moved to the middle, or back.")


_shift("fftshift", 0)
_shift("ifftshift", 1)


# ---- the transforms below: normalization 0 none, 1 by the root of the number of points, 2 by that number

def _normalized(x, normalization, points):
    return x / x.real.dtype.type((1, math.sqrt(points), points)[normalization])


@table.op("aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor")
def fft_c2c(xp, self, dim, normalization, forward):
    """Complex to complex along dimensions, forward or backward."""
    axes = wrap_dims(dim, self.ndim)
    norm = "backward" if forward else "forward"
    result = (xp.fft.fftn if forward else xp.fft.ifftn)(self, None, axes, norm)
    return _laid_out(xp, _rounded(xp, _normalized(result, normalization, math.prod(self.shape[axis] for axis in axes)), self), self, axes)


@table.op("aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor")
def fft_r2c(xp, self, dim, normalization, onesided):
    """Real to complex along dimensions; `onesided` omits the half of the last dimension that follows by symmetry."""
    axes = wrap_dims(dim, self.ndim)
    result = (xp.fft.rfftn if onesided else xp.fft.fftn)(self, None, axes)
    return _rounded(xp, _normalized(result, normalization, math.prod(self.shape[axis] for axis in axes)), self)


@table.op("aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor")
def fft_c2r(xp, self, dim, normalization, last_dim_size):
    """Complex to real along dimensions, `last_dim_size` points in the last."""
    axes = wrap_dims(dim, self.ndim)
    sizes = [self.shape[axis] for axis in axes[:-1]] + [last_dim_size]
    result = xp.fft.irfftn(self, sizes, axes, "forward")
    return _rounded(xp, _normalized(result, normalization, math.prod(sizes)), self)


# ---- dtypes that torch serves

table.takes("c", "_fft_c2c _fft_c2r")
table.takes("f", "_fft_r2c")
table.laid_out("C", "_fft_r2c _fft_c2r")
