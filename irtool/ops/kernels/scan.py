"""Running sums, products and extremes along a dimension; differences, integrals by the trapezoid rule, numerical gradients."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import as_array, astype, copied, dtype_of, to_number, wrap_dim
from irtool.ops.checks import c_name, only, refuse_windows, row_major, wrap_dims
from irtool.ops.kernels.pointwise_binary import log_add
from irtool.ops.kernels.reduction import add_up, as_summed
from irtool.ops.op import OpTable
from irtool.ops.promotion import float_of, result_type

table = OpTable("scan")


def _running(name, function, doc):
    """cumsum or cumprod: like sum and prod in dtype, accumulated in double precision as torch's CPU kernels."""
    def kernel(xp, self, dim, dtype):
        x = as_summed(self, dtype, xp)
        axis = wrap_dim(dim, x.ndim)
        if x.ndim and x.size:
            only(f"{name}_out_cpu", "iufc", x)
        return x.copy() if x.ndim == 0 else _run(xp, function, x, axis)

    def in_place(xp, self, dim, dtype):
        if dtype is not None and dtype_of(dtype) != self.dtype:
            raise RunError(f"Bad in-place call: input tensor dtype {c_name(self.dtype)} and output tensor dtype {c_name(dtype_of(dtype))} "
                           "should match")
        axis = wrap_dim(dim, self.ndim)
        if self.ndim and self.size:     # even for one bool, since there is nothing to add
            only(f"{name}_out_cpu", "iufc", self)
            refuse_windows(f"aten::{name}_", self)
            self[...] = _run(xp, function, self, axis)
        return self
    table.define(f"aten::{name}(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", kernel, doc=doc)
    table.define(f"aten::{name}_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)", in_place,
                 doc=f"As {name}, in the dtype of self, into self.")


def _run(xp, function, x, axis):
    wide = {"float16": xp.float32, "float32": xp.float64, "complex64": xp.complex128}.get(x.dtype.name, x.dtype)
    return astype(getattr(xp, function)(x, axis=axis, dtype=wide), x.dtype)


_running("cumsum", "cumsum", "Running sum along a dimension; whole numbers in int64.")
_running("cumprod", "cumprod", "Running product along a dimension; whole numbers in int64.")


def _running_extreme(name, function, beats):
    """Running extremes, and the index at which each was last reached. From a nan on, all are nan, with the index of the latest nan."""
    def kernel(xp, self, dim):
        if not self.size:       # whatever `dim` is
            return self.copy(), xp.zeros(self.shape, xp.int64)
        axis = wrap_dim(dim, self.ndim)
        if self.ndim == 0:
            return self.copy(), xp.zeros(self.shape, xp.int64)
        only(name, "biuf", self)
        values = getattr(xp, function).accumulate(self, axis=axis)
        reached = (self == values) | (self != self)
        places = xp.arange(self.shape[axis]).reshape([-1 if place == axis else 1 for place in range(self.ndim)])
        indices = xp.where(reached, places, 0)
        return values, xp.maximum.accumulate(indices, axis=axis)
    table.define(f"aten::{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)", kernel,
                 doc=f"Running {beats} along a dimension and the index it was last reached at; nan wins.")


_running_extreme("cummax", "maximum", "maximum")
_running_extreme("cummin", "minimum", "minimum")


@table.op("aten::logcumsumexp(Tensor self, int dim) -> Tensor", "aten::_logcumsumexp(Tensor self, int dim) -> Tensor")
def logcumsumexp(xp, self, dim):
    """log of the running sum of exp(self), without overflow. Floats and complex."""
    only("logcumsumexp_out_cpu", "fc", self)
    axis = wrap_dim(dim, self.ndim)
    if self.ndim == 0 or self.size == 0:
        return self.copy()
    if self.dtype.kind == "f":
        return astype(xp.logaddexp.accumulate(self.astype(xp.float64), axis=axis), self.dtype)
    rows = xp.moveaxis(self.astype(xp.complex128), axis, 0)
    result = xp.empty_like(rows)
    total = xp.full(rows.shape[1:], -math.inf, rows.dtype)
    for place in range(len(rows)):
        result[place] = total = log_add(xp, rows[place], total)
    return astype(xp.moveaxis(result, 0, axis), self.dtype)


# ---- differences

def _along(axis, begin, end):
    return (slice(None),) * axis + (slice(begin, end),)


@table.op("aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor")
def diff(xp, self, n, dim, prepend, append):
    """n-th differences along a dimension, after joining `prepend` and `append` to it; of bools: exclusive or."""
    if self.ndim == 0:
        raise RunError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RunError(f"order must be non-negative but got {n}")
    axis = wrap_dim(dim, self.ndim)
    joined = [x for x in (prepend, self, append) if x is not None]
    if any(x.ndim != self.ndim for x in joined):
        raise RunError("diff expects prepend or append to be the same dimension as input")
    for other in joined:
        for place, (own_size, size) in enumerate(zip(self.shape, other.shape, strict=True)):
            if place != axis and own_size != size:
                raise RunError("diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
                               f"dimension; input.size({place}) = {own_size}, but got tensor.size({place}) = {size}")
    if n == 0:
        return copied(self)
    dtype = result_type(joined)
    x = row_major(xp, xp.concatenate([astype(part, dtype) for part in joined], axis)) if len(joined) > 1 else self
    for _ in range(min(n, x.shape[axis])):
        right, left = x[_along(axis, 1, None)], x[_along(axis, None, -1)]
        x = right ^ left if dtype.kind == "b" else right - left
    return x


# ---- integrals by the trapezoid rule

def _neighbours(xp, y, axis):
    """Sums of neighbours along `axis`."""
    return y[_along(axis, 1, None)] + y[_along(axis, None, -1)]


def _steps(xp, y, x, axis):
    """Distances between the sample points `x`, shaped to broadcast with y along `axis`."""
    if x.ndim == 1:
        if x.shape[0] != y.shape[axis]:
            raise RunError("trapezoid: There must be one `x` value for each sample point")
        x = x.reshape([-1 if place == axis else 1 for place in range(y.ndim)])
    elif x.ndim < y.ndim:
        x = x.reshape((1,) * (y.ndim - x.ndim) + x.shape)
    place = axis - max(x.ndim, y.ndim)
    return x[(..., slice(1, None)) + (slice(None),) * (-place - 1)] - x[(..., slice(None, -1)) + (slice(None),) * (-place - 1)]


def _product(xp, a, b):
    """a * b in their common dtype."""
    dtype = result_type([a, b])
    return as_array(a, dtype) * as_array(b, dtype)


def _halved(xp, x):
    x = astype(xp.asarray(x), float_of(x.dtype))
    return xp.asarray(x / x.dtype.type(2))


def _check_trapezoid(name, y, x, dx):
    if isinstance(dx, bool):
        raise RunError(f"{name}: Currently, we only support dx as a real number.")
    if y.dtype.kind == "b" or (x is not None and x.dtype.kind == "b"):
        raise RunError(f"{name}: received a bool input for `{'y' if y.dtype.kind == 'b' else 'x'}`, but bool is not supported")


def _trapezoid(xp, y, x, dx, dim):
    axis = wrap_dim(dim, y.ndim)
    if y.ndim == 0:
        raise RunError(f"Dimension specified as {dim} but tensor has no dimensions")
    if y.shape[axis] == 0:
        return xp.zeros(y.shape[:axis] + y.shape[axis + 1:], y.dtype)
    _check_trapezoid("trapezoid", y, x, dx)
    between = _neighbours(xp, y, axis)
    if x is not None:
        areas = _product(xp, between, _steps(xp, y, x, axis))
        return _halved(xp, add_up(xp, as_summed(areas, None, xp), (axis,)))
    total = add_up(xp, as_summed(y, None, xp), (axis,))
    ends = y[_along(axis, 0, 1)] + y[_along(axis, y.shape[axis] - 1, None)]
    return _product(xp, xp.asarray(astype(xp.asarray(total), float_of(y.dtype)) - _halved(xp, xp.squeeze(ends, axis))), float(dx))


def _cumulative_trapezoid(xp, y, x, dx, dim):
    _check_trapezoid("cumulative_trapezoid", y, x, dx)
    axis = wrap_dim(dim, y.ndim)
    between = _neighbours(xp, y, axis)
    if x is None:
        areas = _product(xp, between, dx / 2)
        return xp.cumsum(areas, axis=axis, dtype=areas.dtype)
    areas = as_summed(_product(xp, between, _steps(xp, y, x, axis)), None, xp)
    return _halved(xp, xp.cumsum(areas, axis=axis, dtype=areas.dtype))


for _name, _kernel, _number in (("trapezoid", _trapezoid, "Scalar dx=1"), ("trapz", _trapezoid, "float dx=1."),
                                ("cumulative_trapezoid", _cumulative_trapezoid, "Scalar dx=1")):
    table.define(f"aten::{_name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
                 lambda xp, y, x, dim, kernel=_kernel: kernel(xp, y, x, None, dim), doc="Trapezoid rule over sample points x.")
    table.define(f"aten::{_name}.dx(Tensor y, *, {_number}, int dim=-1) -> Tensor",
                 lambda xp, y, dx, dim, kernel=_kernel: kernel(xp, y, None, dx, dim), doc="Trapezoid rule over equal steps dx.")


# ---- gradients from samples

def _gradient_along(xp, x, spacing, axis, edge_order):
    """Second-order differences along `axis`; `spacing` is a number or the coordinates of the samples."""
    if x.ndim == 0:
        raise RunError("Dimension specified as 0 but tensor has no dimensions")
    size = x.shape[axis]
    if size < edge_order + 1:
        raise RunError("torch.gradient expected each dimension size to be at least edge_order+1")
    dtype = float_of(result_type([x, spacing]) if hasattr(spacing, "dtype") else x.dtype)
    steps = xp.diff(spacing) if hasattr(spacing, "dtype") and spacing.ndim else None
    if steps is not None and steps.dtype.kind in "iu":      # quotients of whole steps are float32, by which x is multiplied
        dtype = result_type([x, xp.empty(1, xp.float32)])
    shape = [-1 if place == axis else 1 for place in range(x.ndim)]
    # at the ends coordinates are single numbers, which do not promote; differences of integers may wrap round, as in torch
    ends = dtype if steps is None else float_of(result_type([x, xp.asarray(steps[0])]))

    def rows(begin, end=None):
        return x[_along(axis, begin, end)]

    def times(number, part):
        return astype(xp.asarray(number), ends) * astype(part, ends)

    def divided(part, number):
        inside = xp.dtype(xp.float32) if ends == xp.float16 else ends       # what divides float16 is not rounded to it
        return astype(astype(part, inside) / astype(xp.asarray(number), inside), ends)

    def quotient(of_steps, by):
        """Of whole numbers a float32, as in torch."""
        return of_steps.astype(xp.float32) / by.astype(xp.float32) if of_steps.dtype.kind in "iu" else of_steps / by

    if steps is None:
        middle = divided(rows(2) - rows(None, -2), 2 * spacing)
        first = last = spacing
    else:
        before_each, after_each = steps[:-1].reshape(shape), steps[1:].reshape(shape)
        wide = astype(x, dtype)
        both = before_each + after_each
        middle = (quotient(-after_each, before_each * both) * wide[_along(axis, None, -2)]
                  + quotient(after_each - before_each, before_each * after_each) * wide[_along(axis, 1, -1)]
                  + quotient(before_each, after_each * both) * wide[_along(axis, 2, None)])
        first, last = steps[0], steps[-1]
    if edge_order == 1:
        begin, end = divided(rows(1, 2) - rows(0, 1), first), divided(rows(-1) - rows(-2, -1), last)
    elif steps is None:
        two = x.dtype.type(2)
        begin = divided(times(-1.5, rows(0, 1)) + two * rows(1, 2) - times(0.5, rows(2, 3)), spacing)
        end = divided(times(0.5, rows(-3, -2)) - two * rows(-2, -1) + times(1.5, rows(-1)), spacing)
    else:
        second, before = steps[1], steps[-2]
        begin = (times(quotient(-(2 * first + second), first * (first + second)), rows(0, 1))
                 + times(quotient(first + second, first * second), rows(1, 2))
                 - times(quotient(first, second * (first + second)), rows(2, 3)))
        end = (times(quotient(last, before * (before + last)), rows(-3, -2))
               - times(quotient(before + last, before * last), rows(-2, -1))
               + times(quotient(2 * last + before, last * (last + before)), rows(-1)))
    return astype(xp.concatenate([astype(part, dtype) for part in (begin, middle, end)], axis), dtype)


def _gradient(xp, self, spacings, dims, edge_order, is_list=False):
    if self.dtype == xp.uint8:
        raise RunError("torch.gradient does not support uint8 input.")
    if self.dtype.kind == "b":
        raise RunError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
                       "operator instead.")
    if edge_order not in (1, 2):
        raise RunError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if len(spacings) not in (1, len(dims)) or is_list and len(spacings) != len(dims):
        raise RunError("torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same "
                       f"length, but got a spacing argument of length {len(spacings)} and a dim argument of length {len(dims)}.")
    if len(spacings) == 1:
        spacings = spacings * len(dims)
    for spacing, axis in zip(spacings, dims, strict=True):
        if hasattr(spacing, "ndim") and spacing.ndim != 1:
            raise RunError("torch.gradient expected each element of spacing to have one dimension, but got an element with "
                           f"{spacing.ndim} dimensions!")
        if hasattr(spacing, "dtype") and spacing.ndim == 1 and spacing.shape[0] != self.shape[axis]:
            raise RunError("torch.gradient expected each dimension of spacing to have the same number of elements as the input")
    return [_gradient_along(xp, self, spacing, axis, edge_order) for spacing, axis in zip(spacings, dims, strict=True)]


def _gradient_dims(self, dim):
    if dim is not None and not isinstance(dim, int) and not len(dim):
        return ()
    return wrap_dims(None if dim is None else dim, self.ndim) if self.ndim or dim is None else (0,)


table.define("aten::gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
             lambda xp, self, spacing, dim, edge_order:
             _gradient(xp, self, [1 if spacing is None else spacing], _gradient_dims(self, dim), edge_order),
             doc="Numerical gradient along each dimension, or one, by second-order differences at equal spacing.")
table.define("aten::gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
             lambda xp, self, spacing, dim, edge_order: _gradient(xp, self, [spacing], _gradient_dims(self, dim), edge_order),
             doc="Numerical gradient along dimensions, equal spacing.")
table.define("aten::gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]",
             lambda xp, self, dim, edge_order: _gradient(xp, self, [1], _gradient_dims(self, dim), edge_order),
             doc="Numerical gradient along dimensions, spacing 1.")
table.define(("aten::gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
              "aten::gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]"),
             lambda xp, self, spacing, dim, edge_order:
             _gradient(xp, self, [to_number(s) for s in spacing], _gradient_dims(self, dim), edge_order, True),
             doc="Numerical gradient along dimensions, one spacing each.")
table.define(("aten::gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
              "aten::gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]"),
             lambda xp, self, spacing, dim, edge_order: _gradient(xp, self, list(spacing), _gradient_dims(self, dim), edge_order, True),
             doc="Numerical gradient along dimensions, samples at the given coordinates.")


table.laid_out("C", "cumsum cumprod logcumsumexp cumulative_trapezoid trapezoid trapz")
table.laid_out("CC", "cummax cummin")
table.laid_out("C", "gradient")
