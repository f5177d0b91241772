"""Norms and condition numbers of stacks of matrices."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import astype, dtype_of, real_of, title, wrap_dim
from irtool.ops.kernels.factorization import lu_packed, matrices, singular_values, square
from irtool.ops.kernels.statistics import check_norm_dtype, vector_norm
from irtool.ops.op import OpTable

table = OpTable("matrix_norm")


def matrix_norm(xp, A, order, dims, keepdim, dtype):
    """Norm of the matrices that two dimensions form: fro, nuc, 2, -2 by singular values, 1, -1, inf, -inf by absolute sums."""
    if A.ndim < 2:
        raise RunError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if A.dtype.kind not in "fc":
        raise RunError(f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {title(A.dtype)}")
    if len(dims) != 2:
        raise RunError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(str(d) for d in dims)}")
    first, second = (wrap_dim(d, A.ndim) for d in dims)
    if first == second:
        raise RunError(f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})")
    if dtype is not None:
        check_norm_dtype("matrix", A, dtype_of(dtype))
        A = astype(A, dtype_of(dtype))
    if order == "fro":
        return vector_norm(xp, A, 2, [first, second], keepdim)
    M = xp.moveaxis(A, (first, second), (-2, -1))
    if order in ("nuc", 2, -2):
        sizes = singular_values(xp, M)
        result = sizes.sum(-1, dtype=sizes.dtype) if order == "nuc" else _extreme(xp, sizes, -1, order > 0)
    elif abs(order) == 1 or abs(order) == math.inf:
        sums = xp.abs(M).sum(-2 if abs(order) == 1 else -1, dtype=real_of(M.dtype))
        result = _extreme(xp, sums, -1, order > 0)
    else:
        raise RunError(f"linalg.matrix_norm: Order {order} not supported.")
    result = xp.asarray(result).astype(real_of(A.dtype), copy=False)
    return xp.expand_dims(result, (first, second)) if keepdim else result


def _extreme(xp, values, axis, largest):
    if not values.shape[axis]:
        if largest:
            return xp.zeros(values.shape[:-1], values.dtype)
        raise RunError("linalg.matrix_norm(): Expected reduction dim to have non-zero size.")
    return values.max(axis) if largest else values.min(axis)


def _matrix_norm(xp, self, ord, dim, keepdim, dtype):
    return matrix_norm(xp, self, ord, dim, keepdim, dtype)


table.define("aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> "
             "Tensor",
             _matrix_norm, doc="Norm of matrices.")
table.define("aten::linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? "
             "dtype=None) -> Tensor", _matrix_norm, doc="Norm of matrices: `fro` or `nuc`.")


def _linalg_norm(xp, self, ord, dim, keepdim, dtype):
    if dim is not None and len(dim) not in (1, 2):
        raise RunError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if dim is None and ord is not None and self.ndim not in (1, 2):
        raise RunError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.ndim}D.")
    if ord is not None and (len(dim) == 2 if dim is not None else self.ndim == 2):
        return matrix_norm(xp, self, ord, dim if dim is not None else [0, 1], keepdim, dtype)
    if isinstance(ord, str):
        raise RunError(f"linalg.norm: Order {ord} not supported for vectors" if dim is None else
                       "linalg.matrix_norm: dim must be a 2-tuple. Got " + " ".join(str(d) for d in dim))
    return vector_norm(xp, self, 2 if ord is None else ord, dim, keepdim, dtype)


table.define("aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
             _linalg_norm, doc="Vector norm over one dimension (or all), matrix norm over two.")
table.define("aten::linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
             _linalg_norm, doc="Matrix norm: `fro` or `nuc`.")


@table.op("aten::linalg_cond(Tensor self, Scalar? p=None) -> Tensor", "aten::linalg_cond.p_str(Tensor self, str p) -> Tensor")
def linalg_cond(xp, self, p):
    """Condition number: norm of the matrix times norm of its inverse; inf where singular."""
    matrices("linalg.cond", self)
    if isinstance(p, str):
        square(f"linalg.cond(ord={p})", self)
    if p not in (None, 1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc"):
        raise RunError(f"linalg.cond got an invalid norm type: {p}")
    if not self.size and not isinstance(p, str):
        return xp.zeros(self.shape[:-2], real_of(self.dtype))
    if p in (None, 2, -2):
        sizes = singular_values(xp, self)
        return xp.asarray(sizes[..., -1] / sizes[..., 0] if p == -2 else sizes[..., 0] / sizes[..., -1])
    square("linalg.cond", self)
    _, _, info = lu_packed(xp, self)
    safe = xp.where((info != 0)[..., None, None], xp.eye(self.shape[-1], dtype=self.dtype), self)
    result = matrix_norm(xp, self, p, [-2, -1], False, None) * matrix_norm(xp, xp.linalg.inv(safe), p, [-2, -1], False, None)
    return xp.where(info != 0, result.dtype.type(math.inf), result)


# ---- dtypes that torch serves

table.takes("fc", "linalg_cond")

# whatever the memory order of the operand, as in torch
table.laid_out("C", "linalg_matrix_norm linalg_norm linalg_cond")
