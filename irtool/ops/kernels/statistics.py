"""Spread and size: variance, standard deviation, vector and matrix norms, covariance."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import astype, convert, dtype_of, mean_over, real_of, title
from irtool.ops.checks import wrap_dims
from irtool.ops.kernels.factorization import singular_values
from irtool.ops.kernels.reduction import add_up, average, count
from irtool.ops.op import OpTable
from irtool.ops.powers import power_in
from irtool.ops.promotion import float_of, promote_types, result_type

table = OpTable("statistics")


def variance(xp, x, axes, correction, keepdim):
    """(variance, mean) over `axes`, both computed in at least float32; the squares are divided by n - correction."""
    wide = x.astype(xp.float32) if x.dtype == xp.float16 else x
    mean = average(xp, wide, axes, True)
    away = wide - mean
    number = count(x.shape, axes)
    divisor = max(0, number - correction) if number else 0      # 0 of a nan, too
    value = _mean_square(xp, away.real, axes, keepdim, divisor)
    if x.dtype.kind == "c":
        value = value + _mean_square(xp, away.imag, axes, keepdim, divisor)
    return value, mean if keepdim else xp.squeeze(mean, axes)


def _mean_square(xp, x, axes, keepdim, divisor):
    total = xp.asarray(add_up(xp, x * x, axes, keepdim))
    return total / total.dtype.type(divisor)


def _spread(name, root, with_mean):
    """The overloads of std, var, std_mean and var_mean."""
    def compute(xp, self, dim, correction, keepdim):
        if self.dtype.kind not in "fc":
            who = name if with_mean else "std and var"
            raise RunError(f"{who} only support floating point and complex dtypes")
        # as in torch: the square of a float32 may be no float32
        wide = astype(self, xp.float64) if root and self.dtype == xp.float32 else self
        value, mean = variance(xp, wide, wrap_dims(dim, self.ndim), correction, keepdim)
        value = astype(xp.asarray(xp.sqrt(value) if root else value), real_of(self.dtype))
        return (value, astype(xp.asarray(mean), self.dtype)) if with_mean else value

    result = "(Tensor, Tensor)" if with_mean else "Tensor"
    what = ("Standard deviation" if root else "Variance") + (" and mean" if with_mean else "")
    table.define(f"aten::{name}(Tensor self, bool unbiased=True) -> {result}",
                 lambda xp, self, unbiased: compute(xp, self, None, 1 if unbiased else 0, False), doc=f"{what} of all elements.")
    table.define(f"aten::{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> {result}",
                 lambda xp, self, dim, unbiased, keepdim: compute(xp, self, dim, 1 if unbiased else 0, keepdim),
                 doc=f"{what} over dimensions.")
    table.define(f"aten::{name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> {result}",
                 lambda xp, self, dim, correction, keepdim: compute(xp, self, dim, 1 if correction is None else correction, keepdim),
                 doc=f"{what} over dimensions, the squares divided by n - correction (1 when None).")


_spread("std", True, False)
_spread("var", False, False)
_spread("std_mean", True, True)
_spread("var_mean", False, True)


# ---- norms

def vector_norm(xp, x, order, dims, keepdim, dtype=None):
    """(sum |x| ** order) ** (1 / order) over `dims`, real. order 0 counts the elements that are not 0; inf and -inf are extremes of |x|."""
    if x.dtype.kind not in "fc":
        raise RunError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {title(x.dtype)}")
    if dtype is not None:
        check_norm_dtype("vector", x, dtype_of(dtype))
        x = convert(x, dtype)
    axes = wrap_dims(dims, x.ndim)
    if order == math.inf or order < 0:
        _need_identity(x, order, axes, bool(dims))
    result_dtype = real_of(x.dtype)
    sizes = xp.abs(x)
    if sizes.dtype == xp.float16:
        sizes = sizes.astype(xp.float32)
    if abs(order) == math.inf or order != 0 and all(x.shape[axis] == 1 for axis in axes):
        # the norm of one number is its size, also where its power would not be a number any more
        result = (xp.max if order > 0 else xp.min)(sizes, axis=axes, keepdims=keepdim)
    elif order == 0:
        result = xp.sum(sizes != 0, axis=axes, keepdims=keepdim)
    elif order == 1:
        result = add_up(xp, sizes, axes, keepdim)
    elif order == 2:
        result = xp.sqrt(add_up(xp, sizes * sizes, axes, keepdim))
    else:
        total = add_up(xp, power_in(xp, sizes, sizes.dtype.type(order)), axes, keepdim)
        result = power_in(xp, total, total.dtype.type(1 / order))
    return astype(xp.asarray(result), result_dtype)


def check_norm_dtype(what, x, dtype):
    """Raises torch's error for a dtype in which the norm of a vector or matrix is not computed."""
    if dtype.kind not in "fc":
        raise RunError(f"linalg.{what}_norm: dtype should be floating point or complex, but got {title(dtype)}")
    if (dtype.kind == "c") != (x.dtype.kind == "c"):
        kind = "complex" if x.dtype.kind == "c" else "real"
        raise RunError(f"linalg.{what}_norm: dtype should be {kind} for {kind} inputs, but got {title(dtype)}")
    if promote_types(x.dtype, dtype) != dtype:
        raise RunError(f"linalg.{what}_norm: the dtype of the input ({title(x.dtype)}) should be convertible without narrowing to the "
                       f"specified dtype ({title(dtype)})")


def _norm(xp, x, order, dims, keepdim, dtype=None):
    if dtype is not None and dtype_of(dtype).kind not in "fc":
        raise RunError("norm(): the desired output dtype should be either floating point or complex. Got "
                       f"{title(dtype_of(dtype))} instead.")
    return vector_norm(xp, x, 2 if order is None else order, dims, keepdim, dtype)


def _need_identity(x, order, axes, named):
    spelled = f"{order:g}"
    if x.size == 0 and not named:
        raise RunError(f"linalg.vector_norm cannot compute the {spelled} norm on an empty tensor because the operation does not have "
                       "an identity")
    for axis in axes:
        if x.shape[axis] == 0:
            raise RunError(f"linalg.vector_norm cannot compute the {spelled} norm on the dimension {axis}because this dimension is "
                           "empty and the operation does not have an identity")


@table.op("aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
def linalg_vector_norm(xp, self, ord, dim, keepdim, dtype):
    """Vector norm of order `ord` over dimensions (None and []: all)."""
    return vector_norm(xp, self, ord, dim, keepdim, dtype)


@table.op("aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor", "aten::native_norm(Tensor self, Scalar p=2) -> Tensor")
def norm(xp, self, p):
    """Vector norm of order p of all elements, 0-dim."""
    return vector_norm(xp, self, p, None, False)


@table.op("aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor")
def norm_dims(xp, self, p, dim, keepdim):
    """Vector norm of order p (None: 2) over dimensions."""
    return _norm(xp, self, p, dim, keepdim)


@table.op("aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor")
def norm_dtype(xp, self, p, dtype):
    """Vector norm of order p of all elements, computed in a dtype."""
    return _norm(xp, self, p, None, False, dtype)


@table.op("aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
          "aten::native_norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, ScalarType? dtype) -> Tensor")
def norm_dims_dtype(xp, self, p, dim, keepdim, dtype):
    """Vector norm of order p over dimensions, computed in a dtype."""
    return _norm(xp, self, p, dim, keepdim, dtype)


@table.op("aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
def frobenius_norm(xp, self, dim, keepdim):
    """Root of the sum of squares over one or two dimensions."""
    return vector_norm(xp, self, 2, dim, keepdim)


def _nuclear(xp, self, dim, keepdim):
    if self.ndim < 2:
        raise RunError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if self.dtype.kind not in "fc":
        raise RunError(f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {title(self.dtype)}")
    if len(dim) != 2:
        raise RunError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    axes = wrap_dims(dim, self.ndim)
    values = singular_values(xp, xp.moveaxis(self, axes, (-2, -1)))
    total = xp.asarray(xp.sum(values, axis=-1))
    return xp.expand_dims(total, tuple(sorted(axes))) if keepdim else total


table.define("aten::nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
             lambda xp, self, keepdim: _nuclear(xp, self, (-2, -1), keepdim), doc="Sum of the singular values of a matrix.")
table.define("aten::nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", _nuclear,
             doc="Sum of the singular values of the matrices in two dimensions.")


# ---- covariance: rows are variables, columns observations

@table.op("aten::cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor")
def cov(xp, self, correction, fweights, aweights):
    """Covariance matrix of the rows, observations repeated by `fweights` and weighed by `aweights`; 0-dim for one row."""
    if self.ndim > 2:
        raise RunError(f"cov(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions")
    if self.dtype.kind == "b":
        raise RunError("cov(): bool dtype is not supported for input")
    x = self.reshape(1, -1) if self.ndim < 2 else self
    weights = _weights(xp, x, fweights, aweights)
    is_whole = x.dtype.kind in "iu"
    exact = x.astype(xp.float64) if is_whole else x
    if weights is None:
        mean = x.sum(axis=1, dtype=xp.int64, keepdims=True) / x.shape[1] if is_whole and x.size else mean_over(exact, 1)
        norm_factor = x.shape[1] - correction
    else:
        total = weights.sum()
        if not total:
            raise RunError("cov(): weights sum to zero, can't be normalized")
        weighed = (x * weights).astype(xp.int64, copy=False) if is_whole and weights.dtype.kind in "iu" else exact * weights
        mean = weighed.sum(axis=1, keepdims=True) / total       # whole numbers are added as such, and may overflow, as in torch
        norm_factor = total - correction if correction == 0 or aweights is None else total - correction * (weights * aweights).sum() / total
    away = exact - mean
    product = xp.matmul(away if weights is None else away * weights, xp.conj(away.T))
    dtype = float_of(result_type([x, aweights]))
    result = astype(xp.asarray(product / xp.maximum(norm_factor, 0)), dtype)
    return result[0, 0] if x.shape[0] == 1 else result


def _weights(xp, x, fweights, aweights):
    """Product of both weights; each must be one number per observation."""
    for name, weights, kinds, what in (("fweights", fweights, "iu", "integral"), ("aweights", aweights, "f", "floating point")):
        if weights is None:
            continue
        if weights.ndim > 1:
            raise RunError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions")
        if weights.dtype.kind not in kinds:
            raise RunError(f"cov(): expected {name} to have {what} dtype but got {name} with {title(weights.dtype)} dtype")
        if weights.size != x.shape[1]:
            raise RunError(f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                           f"{weights.size} != {x.shape[1]}")
        if not (weights >= 0).all():        # nan, too
            raise RunError(f"cov(): {name} cannot be negative")
    if fweights is None or aweights is None:
        return aweights if fweights is None else fweights
    return fweights * aweights


@table.op("aten::corrcoef(Tensor self) -> Tensor")
def corrcoef(xp, self):
    """Correlation of the rows: the covariance divided by both standard deviations, clipped to [-1, 1]."""
    if self.ndim > 2:
        raise RunError(f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions")
    matrix = xp.asarray(cov.kernel(xp, self, 1, None, None))
    if matrix.ndim == 0:
        return matrix / matrix
    deviation = xp.sqrt(xp.diagonal(matrix).real)
    matrix = matrix / deviation[:, None] / deviation[None, :]
    if matrix.dtype.kind == "c":
        matrix.real, matrix.imag = xp.clip(matrix.real, -1, 1), xp.clip(matrix.imag, -1, 1)
        return matrix
    return xp.clip(matrix, -1, 1)

# whatever the memory order of the operand, as in torch
table.laid_out("C", "std var linalg_vector_norm norm frobenius_norm nuclear_norm")
table.laid_out("CC", "std_mean var_mean")
