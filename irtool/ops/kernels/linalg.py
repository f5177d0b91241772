"""Linear systems, inverses, determinants and powers of stacks of matrices. Norms are in matrix_norm, factorizations in decomposition."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.arrays import astype, real_of, title, wrap_dim
from irtool.ops.checks import in_memory_order, only, row_major, same_dtype
from irtool.ops.kernels.factorization import (
    adjoint,
    cholesky_lower,
    epsilon,
    exponential,
    float_or_complex,
    lower_upper,
    lu_packed,
    matrices,
    permutation,
    singular_values,
    singular_vectors,
    square,
    substitute,
)
from irtool.ops.op import OpTable
from irtool.ops.promotion import result_type

table = OpTable("linalg")


# ---- systems

def _is_vector(A, B):
    """Is B one vector per matrix rather than a matrix of columns?"""
    return B.ndim == 1 or A.ndim - 1 == B.ndim and B.shape == A.shape[:-1]


def batch_text(xp, info, rank):
    """`(Batch element 2): ` for the first failure of a stack, nothing for one matrix."""
    return f"(Batch element {int((info.reshape(-1) != 0).argmax())}): " if rank > 2 else ""


def _solve(xp, A, B, left, name):
    float_or_complex(name, A)
    square(name, A)
    if A.dtype != B.dtype:
        raise RunError(f"{name}: Expected A and B to have the same dtype, but found A of type {title(A.dtype)} and B of type "
                       f"{title(B.dtype)} instead", code="E0409")
    vector = left and _is_vector(A, B)
    C = B[..., None] if vector else B
    side = -2 if left else -1
    if C.ndim < 2 or A.shape[-1] != C.shape[side]:
        raise RunError(f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                       f"({A.shape[-2]}x{A.shape[-1]} and {C.shape[-2]}x{C.shape[-1]})")
    if left:
        lead = xp.broadcast_shapes(A.shape[:-2], C.shape[:-2])
    else:
        A, C = A.swapaxes(-1, -2), C.swapaxes(-1, -2)
        lead = xp.broadcast_shapes(A.shape[:-2], C.shape[:-2])
    info = xp.zeros(A.shape[:-2], xp.int32)
    try:
        X = xp.linalg.solve(xp.broadcast_to(A, lead + A.shape[-2:]), xp.broadcast_to(C, lead + C.shape[-2:]))
    except xp.linalg.LinAlgError:
        _, _, info = lu_packed(xp, A)
        X = None
    if X is not None:
        X = row_major(xp, X.swapaxes(-1, -2))
        X = X.swapaxes(-1, -2) if left else X
    return (X[..., 0] if vector and X is not None else X), info


def _singular(name, xp, info, rank):
    first = int(info.reshape(-1)[int((info.reshape(-1) != 0).argmax())])
    if name == "linalg.inv":
        return RunError(f"linalg.inv: {batch_text(xp, info, rank)}The diagonal element {first} is zero, the inversion could not be "
                        "completed because the input matrix is singular.")
    return RunError(f"torch.linalg.solve: {batch_text(xp, info, rank)}The solver failed because the input matrix is singular.")


@table.op("aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor")
def linalg_solve(xp, A, B, left):
    """X with A @ X = B (X @ A = B with left=False)."""
    X, info = _solve(xp, A, B, left, "linalg.solve")
    if X is None:
        raise _singular("linalg.solve", xp, info, A.ndim)
    return X


@table.op("aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)")
def linalg_solve_ex(xp, A, B, left, check_errors):
    """linalg_solve with a report instead of an error; a singular matrix is refused."""
    X, info = _solve(xp, A, B, left, "linalg.solve")
    if X is None:
        if check_errors:
            raise _singular("linalg.solve", xp, info, A.ndim)
        raise UnsupportedError("aten::linalg_solve_ex of a singular matrix is not supported")
    return X, info


@table.op("aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, "
          "Tensor pivots, Tensor info)")
def linalg_solve_with_lu(xp, A, B, left, check_errors):
    """linalg_solve_ex with the LU factorization that the result comes from."""
    X, info = linalg_solve_ex.kernel(xp, A, B, left, check_errors)
    LU, pivots, _ = lu_packed(xp, A if left else A.swapaxes(-1, -2))
    return X, LU, pivots, info


def solvable(name, A, B):
    """Raises torch's error unless matrices A are square, with as many rows as B."""
    if A.shape[-2] != A.shape[-1]:
        raise RunError(f"A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices")
    if A.shape[-2] != B.shape[-2]:
        raise RunError(f"Incompatible matrix sizes for {name}: each A matrix is {A.shape[-2]} by {A.shape[-1]} but each b matrix is "
                       f"{B.shape[-2]} by {B.shape[-1]}")


@table.op("aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor")
def linalg_solve_triangular(xp, self, B, upper, left, unitriangular):
    """X with A @ X = B (X @ A = B) for a triangular A."""
    square("linalg.solve_triangular", self)
    B = astype(B, self.dtype)       # torch converts without a word, also from complex numbers
    solvable("linalg.solve_triangular", self, B if left else B.swapaxes(-1, -2))
    if left:
        return substitute(xp, self, B, upper, unitriangular)
    return row_major(xp, substitute(xp, self.swapaxes(-1, -2), B.swapaxes(-1, -2), not upper, unitriangular).swapaxes(-1, -2))


@table.op("aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
          "(Tensor solution, Tensor cloned_coefficient)")
def triangular_solve(xp, self, A, upper, transpose, unitriangular):
    """X with A @ X = self for a triangular A (or its transpose), and a copy of A."""
    solvable("triangular_solve", A, self)
    lead = xp.broadcast_shapes(A.shape[:-2], self.shape[:-2])
    matrix = A.swapaxes(-1, -2) if transpose else A
    return substitute(xp, matrix, self, upper != transpose, unitriangular), xp.broadcast_to(A, lead + A.shape[-2:]).copy()


@table.op("aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor")
def cholesky_solve(xp, self, input2, upper):
    """X with A @ X = self, A given by its Cholesky factor."""
    solvable("cholesky_solve", input2, self)
    if upper:
        return substitute(xp, input2, substitute(xp, adjoint(xp, input2), self, False), True)
    return substitute(xp, adjoint(xp, input2), substitute(xp, input2, self, False), True)


@table.op("aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor")
def cholesky_inverse(xp, self, upper):
    """The inverse of A, given by its Cholesky factor."""
    square("cholesky_inverse", self)
    unit = xp.broadcast_to(xp.eye(self.shape[-1], dtype=self.dtype), self.shape)
    return cholesky_solve.kernel(xp, unit, self, upper)


def lu_solved(xp, LU, pivots, B, left, conjugated):
    """X with A @ X = B (X @ A = B), A (or its adjoint) given by packed LU and pivots. Raises RunError unless LU and B have one dtype."""
    same_dtype("linalg.lu_solve", LU, B)
    if pivots.dtype != xp.int32:
        raise RunError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if pivots.shape != LU.shape[:-1]:
        raise RunError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix, expected pivots of "
                       f"shape {list(LU.shape[:-1])}, but got {list(pivots.shape)}")
    if pivots.size and not 1 <= int(pivots.min()) <= int(pivots.max()) <= LU.shape[-1]:
        raise RunError(f"Pivots given to lu_solve must all be between 1 and {LU.shape[-1]}. Did you properly pass the result of lu_factor?")
    if left and B.ndim > 1 and B.shape[-2] != LU.shape[-1]:
        raise RunError("linalg.lu_solve: Incompatible shapes of A and B for the equation AX = B "
                       f"({LU.shape[-2]}x{LU.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})")
    if not left:
        return row_major(xp, adjoint(xp, lu_solved(xp, LU, pivots, adjoint(xp, B), True, not conjugated)))
    lower, upper = lower_upper(xp, LU)
    order = permutation(xp, pivots, LU.shape[-2])
    lead = xp.broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    order = xp.broadcast_to(order, (*lead, order.shape[-1]))[..., None]
    B = xp.broadcast_to(B, lead + B.shape[-2:])
    if not conjugated:
        return substitute(xp, upper, substitute(xp, lower, xp.take_along_axis(B, order, -2), False, True), True)
    Y = substitute(xp, adjoint(xp, lower), substitute(xp, adjoint(xp, upper), B, False), True, True)
    return xp.take_along_axis(Y, xp.argsort(order, -2), -2)


@table.op("aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor")
def linalg_lu_solve(xp, LU, pivots, B, left, adjoint):
    """X with A @ X = B from the LU factorization of A."""
    X = lu_solved(xp, LU, pivots, B, left, adjoint)
    return row_major(xp, X.swapaxes(-1, -2)).swapaxes(-1, -2) if left else row_major(xp, X)


@table.op("aten::lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor")
def lu_solve(xp, self, LU_data, LU_pivots):
    """X with A @ X = self from the LU factorization of A: linalg_lu_solve with the old order of arguments."""
    return lu_solved(xp, LU_data, LU_pivots, self, True, False)


# ---- inverses and determinants

def inverse(xp, A, name="linalg.inv"):
    """(inverse or None, info)."""
    float_or_complex(name, A)
    square(name, A)
    try:
        return xp.linalg.inv(A), xp.zeros(A.shape[:-2], xp.int32)
    except xp.linalg.LinAlgError:
        return None, lu_packed(xp, A)[2]


def _inv(xp, A):
    result, info = inverse(xp, A)
    if result is None:
        raise _singular("linalg.inv", xp, info, A.ndim)
    return result


table.define(("aten::linalg_inv(Tensor A) -> Tensor", "aten::inverse(Tensor self) -> Tensor"), _inv, doc="Inverse.")


@table.op("aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)")
def linalg_inv_ex(xp, A, check_errors):
    """Inverse with a report instead of an error; a singular matrix is refused."""
    result, info = inverse(xp, A)
    if result is None:
        if check_errors:
            raise _singular("linalg.inv", xp, info, A.ndim)
        raise UnsupportedError("aten::linalg_inv_ex of a singular matrix is not supported")
    return result, info


def _det(xp, A):
    float_or_complex("linalg.det", A)
    square("linalg.det", A)
    return xp.asarray(xp.linalg.det(A)).astype(A.dtype, copy=False)


table.define(("aten::linalg_det(Tensor A) -> Tensor", "aten::det(Tensor self) -> Tensor"), _det, doc="Determinant.")


def _as_lapack_has_it(A):
    """torch factorizes the transpose of a contiguous real matrix, whose determinant is the same, to save a copy."""
    return A.swapaxes(-1, -2) if A.dtype.kind == "f" and A.flags.c_contiguous else A


@table.op("aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)")
def det_with_lu(xp, A):
    """Determinant and the factorization it rests on."""
    LU, pivots, _ = lu_packed(xp, _as_lapack_has_it(A))
    return _det(xp, A), LU, pivots


def _slogdet(xp, A):
    float_or_complex("linalg.slogdet", A)
    square("linalg.slogdet", A)
    sign, logarithm = xp.linalg.slogdet(A)
    return xp.asarray(sign).astype(A.dtype, copy=False), xp.asarray(logarithm).astype(real_of(A.dtype), copy=False)


table.define(("aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", "aten::slogdet(Tensor self) -> (Tensor sign, Tensor "
              "logabsdet)"), _slogdet, doc="Sign of the determinant and logarithm of its magnitude.")


@table.op("aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)")
def slogdet_with_lu(xp, A):
    """slogdet and the factorization it rests on."""
    LU, pivots, _ = lu_packed(xp, _as_lapack_has_it(A))
    return (*_slogdet(xp, A), LU, pivots)


@table.op("aten::logdet(Tensor self) -> Tensor")
def logdet(xp, self):
    """Logarithm of the determinant; nan when that is negative."""
    sign, logarithm = _slogdet(xp, self)
    return xp.log(sign) + logarithm


def pseudo_inverse(xp, A, atol, rtol, hermitian):
    """The inverse on the space of singular values above max(atol, rtol * largest)."""
    float_or_complex("linalg.pinv", A)
    matrices("linalg.pinv", A)
    if not A.size:
        return xp.empty((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)
    if hermitian:
        values, vectors = xp.linalg.eigh(A)
        sizes = xp.abs(values)
        largest = sizes.max(-1, keepdims=True)
    else:
        U, sizes, Vh = singular_vectors(xp, A, False)
        values, largest = sizes, sizes[..., :1]
    cutoff = _cutoff(xp, A, atol, rtol, largest)
    inverted = xp.where(sizes > cutoff, 1 / xp.where(values == 0, values.dtype.type(1), values), values.dtype.type(0))
    if hermitian:
        return (vectors * inverted[..., None, :]) @ adjoint(xp, vectors)
    return row_major(xp, (adjoint(xp, Vh) * inverted[..., None, :]) @ adjoint(xp, U))


def _cutoff(xp, A, atol, rtol, largest):
    """max(atol, rtol * largest); rtol is epsilon times the larger extent unless an atol is given."""
    def column(value):
        return value[..., None] if hasattr(value, "ndim") else value
    if rtol is None:
        default = epsilon(xp, A.dtype) * max(A.shape[-2:])
        if atol is None:
            rtol = default
        elif hasattr(atol, "ndim"):
            rtol = xp.where(atol > 0, 0.0, default)
        else:
            rtol = 0.0 if atol > 0 else default
    return xp.maximum(column(0.0 if atol is None else atol), column(rtol) * largest)


def real_tolerances(operator, **tolerances):
    """Raises RunError, in torch's words, for complex tensors as tolerances."""
    for name, value in tolerances.items():
        if hasattr(value, "dtype") and value.dtype.kind == "c":
            raise RunError(f"{operator}: {name} tensor of complex type is not supported. Got {title(value.dtype)}")


def _pinv_tolerances(xp, self, atol, rtol, hermitian):
    real_tolerances("torch.linalg.pinv", atol=atol, rtol=rtol)
    return pseudo_inverse(xp, self, atol, rtol, hermitian)


def _pinv_rcond(xp, self, rcond, hermitian=False):
    real_tolerances("torch.linalg.pinv", rcond=rcond)
    return pseudo_inverse(xp, self, 0.0, rcond, hermitian)


_PINV: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False)", _pinv_tolerances),
    ("linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False)", _pinv_tolerances),
    ("linalg_pinv(Tensor self, float rcond, bool hermitian=False)", _pinv_rcond),
    ("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False)", _pinv_rcond),
    ("pinverse(Tensor self, float rcond=1.0000000000000001e-15)", _pinv_rcond),
)
for _schema, _kernel in _PINV:
    table.define(f"aten::{_schema} -> Tensor", _kernel, doc="Pseudo-inverse.")


def matrix_rank(xp, A, atol, rtol, hermitian):
    """Number of singular values above max(atol, rtol * largest)."""
    matrices("linalg.matrix_rank", A)
    if not A.size:
        return xp.zeros(A.shape[:-2], xp.int64)
    sizes = xp.abs(xp.linalg.eigvalsh(A)) if hermitian else singular_values(xp, A)
    cutoff = _cutoff(xp, A, atol, rtol, sizes.max(-1, keepdims=True))
    return xp.asarray((sizes > cutoff).sum(-1, dtype=xp.int64))


def _rank_tolerances(xp, self, atol, rtol, hermitian):
    real_tolerances("torch.linalg.matrix_rank", atol=atol, rtol=rtol)
    return matrix_rank(xp, self, atol, rtol, hermitian)


def _rank_tol(xp, self, tol, hermitian):
    real_tolerances("torch.linalg.matrix_rank", atol=tol)
    return matrix_rank(xp, self, tol, 0.0, hermitian)


_RANK: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False)", _rank_tolerances),
    ("linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False)", _rank_tolerances),
    ("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False)", _rank_tol),
    ("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False)", _rank_tol),
)
for _schema, _kernel in _RANK:
    table.define(f"aten::{_schema} -> Tensor", _kernel, doc="Rank.")


# ---- least squares

@table.op("aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, "
          "Tensor rank, Tensor singular_values)")
def linalg_lstsq(xp, self, b, rcond, driver):
    """X that makes |A @ X - b| smallest; residuals, rank and singular values if the driver computes them."""
    float_or_complex("torch.linalg.lstsq", self)
    same_dtype("torch.linalg.lstsq", self, b)
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RunError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    if not 0 <= self.ndim - b.ndim <= 1:
        raise RunError("torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1")
    vector = self.ndim > b.ndim
    if vector and self.shape[:-1] != b.shape:
        raise RunError(f"torch.linalg.lstsq: one right-hand side per matrix of shape {list(self.shape)} has not the shape {list(b.shape)}")
    B = b[..., None] if vector else b
    rows, columns = self.shape[-2:]
    lead = xp.broadcast_shapes(self.shape[:-2], B.shape[:-2])
    A, B = xp.broadcast_to(self, lead + self.shape[-2:]), xp.broadcast_to(B, lead + B.shape[-2:])
    tolerance = epsilon(xp, self.dtype) * max(rows, columns) if rcond is None else rcond
    if driver == "gelsd" and tolerance >= 1:        # LAPACK's xLALSD takes what is not below 1 for no tolerance
        tolerance = epsilon(xp, self.dtype)
    if driver in ("gelsd", "gelss") and tolerance != tolerance:
        tolerance = 0.0
    solution = pseudo_inverse(xp, A, 0.0, 0.0 if driver == "gels" else tolerance, False) @ B
    buffer = xp.empty((*lead, B.shape[-1], max(rows, columns)), solution.dtype).swapaxes(-1, -2)     # LAPACK's, which takes B, too
    buffer[..., :columns, :] = solution
    solution = buffer[..., :columns, :]
    real = real_of(self.dtype)
    ranks = matrix_rank(xp, self, 0.0, tolerance, False) if driver != "gels" else xp.empty(0, xp.int64)
    sizes = singular_values(xp, self) if driver in ("gelsd", "gelss") else xp.empty(0, real)
    residuals = xp.empty(0, real)
    if rows > columns and driver != "gelsy" and (driver == "gels" or bool((ranks == columns).all())):
        residuals = xp.square(xp.abs(A @ solution - B)).sum(-2, dtype=real)
        residuals = residuals[..., 0] if vector and not lead else residuals
    return (solution[..., 0] if vector else solution), residuals, ranks, sizes


# ---- powers and functions of matrices

def _matrix_power(xp, self, n):
    square("linalg.matrix_power", self)
    if n < 0:
        self, n = _inv(xp, self), -n
    if n > 1:
        only("addmm_impl_cpu_", "iufc", self)
    result = None
    base = self
    while n:
        if n & 1:
            result = base if result is None else result @ base
        n >>= 1
        if n:
            base = base @ base
    if result is None:
        return xp.broadcast_to(xp.eye(self.shape[-1], dtype=self.dtype), self.shape).copy()
    return result.copy() if result is self else result


table.define(("aten::linalg_matrix_power(Tensor self, int n) -> Tensor", "aten::matrix_power(Tensor self, int n) -> Tensor"), _matrix_power,
             doc="Product of n factors; of the inverse for negative n.")


def _matrix_exp(xp, self):
    if self.dtype == xp.float16:
        raise UnsupportedError("aten::linalg_matrix_exp of float16 is not supported: torch's own overflows")
    float_or_complex("linalg.matrix_exp", self)
    square("linalg.matrix_exp", self)
    return exponential(xp, self) if self.size else self.copy()


table.define(("aten::linalg_matrix_exp(Tensor self) -> Tensor", "aten::matrix_exp(Tensor self) -> Tensor"), _matrix_exp,
             doc="Exponential of matrices.")


@table.op("aten::linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor")
def linalg_vander(xp, x, N):
    """Powers 0 to N - 1 of each element as rows."""
    if x.dtype.kind == "b" or x.dtype == xp.float16:
        raise RunError(f"linalg.vander supports floating point, complex, and integer tensors, but got {title(x.dtype)}", code="E0409")
    count = (x.shape[-1] if x.ndim else 1) if N is None else N
    if count <= 1:
        raise RunError("N must be greater than 1.")
    return _powers(xp, x if x.ndim else x.reshape(1), count)


def _powers(xp, x, count):
    """Powers 0 to count - 1 of each element as rows."""
    x = x.astype(xp.int64) if x.dtype.kind in "biu" else x
    columns = [xp.ones(x.shape, x.dtype)]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    return xp.stack(columns[:count], -1)


@table.op("aten::vander(Tensor x, int? N=None, bool increasing=False) -> Tensor")
def vander(xp, x, N, increasing):
    """Powers 0 to N - 1 of each element as rows, the highest power first unless `increasing`."""
    if x.ndim != 1:
        raise RunError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RunError("N must be non-negative.")
    result = _powers(xp, x, max(count, 1))[:, :count]
    return result if increasing and count else row_major(xp, result[..., ::-1])


@table.op("aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor")
def linalg_vecdot(xp, x, y, dim):
    """Sum of conj(x) * y along a dimension."""
    if x.dtype.kind not in "fc":
        raise RunError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {title(x.dtype)}")
    if x.dtype != y.dtype:
        raise RunError(f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {title(x.dtype)} and y of type "
                       f"{title(y.dtype)} instead", code="E0409")
    if x.ndim == y.ndim == 1:
        if x.size != y.size:
            raise RunError(f"inconsistent tensor size, expected tensor [{x.size}] and src [{y.size}] to have the same number of elements, "
                           f"but got {x.size} and {y.size} elements respectively")
        dim = 0         # torch takes their product, and does not look at it
    product = xp.conj(x) * y
    axis = wrap_dim(dim, product.ndim)
    return row_major(xp, xp.asarray(product.sum(axis if product.ndim else None, dtype=product.dtype)))


@table.op("aten::linalg_tensorinv(Tensor self, int ind=2) -> Tensor")
def linalg_tensorinv(xp, self, ind):
    """Inverse of a tensor seen as a matrix of its first `ind` dimensions by the others."""
    if ind <= 0:
        raise RunError("Expected a strictly positive integer for 'ind'.")
    if ind > self.ndim:
        raise RunError(f"ArrayRef: invalid slice, N = {ind}; size = {self.ndim}")
    rows, columns = math.prod(self.shape[:ind]), math.prod(self.shape[ind:])
    if rows != columns:
        raise RunError(f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {columns} != "
                       f"{rows}.")
    inverse = in_memory_order(xp, _inv(xp, self.reshape(rows, columns)), [1, 0])
    return inverse.reshape(self.shape[ind:] + self.shape[:ind])


@table.op("aten::linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor")
def linalg_tensorsolve(xp, self, other, dims):
    """X with tensordot(self, X, X.ndim) = other."""
    if dims is not None:
        moved = [wrap_dim(d, self.ndim) for d in dims]
        if len(moved) > max(self.ndim, 1):
            wrap_dim(self.ndim - len(moved), self.ndim)     # raises
        if len(set(moved)) < len(moved):
            raise RunError(f"movedim: repeated dim in `source` ({list(dims)})")
        self = self.transpose([p for p in range(self.ndim) if p not in moved] + moved) if self.ndim else self
    shape = self.shape[other.ndim:]
    if self.size != other.size * math.prod(shape) or math.prod(shape) != other.size:
        raise RunError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
                       f"{math.prod(shape)} != {other.size}")
    matrix = self.reshape(other.size, math.prod(shape))
    return linalg_solve.kernel(xp, matrix, other.reshape(-1), True).reshape(shape)


# ---- products of three-vectors

@table.op("aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor")
def linalg_cross(xp, self, other, dim):
    """Vector product along a dimension of size 3."""
    if self.ndim != other.ndim:
        raise RunError("linalg.cross: inputs must have the same number of dimensions.")
    dtype = result_type([self, other])
    if self.shape[wrap_dim(dim, self.ndim)] != 3 or other.shape[wrap_dim(dim, other.ndim)] != 3:
        raise RunError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.shape[dim]} and {other.shape[dim]}")
    axis = wrap_dim(dim, self.ndim)
    shape = xp.broadcast_shapes(self.shape, other.shape)
    a, b = (xp.moveaxis(xp.broadcast_to(astype(x, dtype), shape), axis, 0) for x in (self, other))
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return xp.stack(parts, axis)


@table.op("aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor")
def cross(xp, self, other, dim):
    """Vector product along `dim`; without `dim` along the first dimension of size 3."""
    if dim is None:
        if 3 not in self.shape:
            raise RunError("no dimension of size 3 in input")
        dim = self.shape.index(3)
    return linalg_cross.kernel(xp, self, other, dim)


def cholesky(xp, A, upper, name):
    """(factor, info); the factor is upper or lower, zeros in the other triangle."""
    float_or_complex(name, A)
    square(name, A)
    source = adjoint(xp, A) if upper else A
    lower, info = cholesky_lower(xp, source)
    return (row_major(xp, adjoint(xp, lower)) if upper else lower), info


def _cholesky(name):
    def kernel(xp, self, upper):
        if name == "cholesky" and not self.size:
            return self.copy()
        factor, info = cholesky(xp, self, upper, name)
        if info.any():
            first = int(info.reshape(-1)[int((info.reshape(-1) != 0).argmax())])
            raise RunError(f"{name}: {batch_text(xp, info, self.ndim)}The factorization could not be completed because the input is not "
                           f"positive-definite (the leading minor of order {first} is not positive-definite).")
        return factor
    return kernel


table.define("aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", _cholesky("linalg.cholesky"), doc="Cholesky factor.")
table.define("aten::cholesky(Tensor self, bool upper=False) -> Tensor", _cholesky("cholesky"), doc="Cholesky factor.")


@table.op("aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)")
def linalg_cholesky_ex(xp, self, upper, check_errors):
    """Cholesky factor and the order of the first minor that is not positive definite (0: none)."""
    factor, info = cholesky(xp, self, upper, "linalg.cholesky_ex")
    if check_errors and info.any():
        return _cholesky("linalg.cholesky_ex")(xp, self, upper), info
    return factor, info


@table.op("aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()")
def linalg_check_errors(xp, info, api_name, is_matrix):
    """Raises when a factorization reported a failure."""
    if info.any():
        raise RunError(f"{api_name}: the input matrix is singular or the algorithm failed (info {int(info.max())})")


# ---- dtypes that torch serves

table.takes("fc=", "triangular_solve cholesky_solve cholesky_inverse")
table.takes("fc", "linalg_solve_triangular linalg_lu_solve lu_solve")
table.takes("uilhfc=", "cross linalg_cross")
table.takes("fc", "linalg_matrix_rank")
table.laid_out("F", "linalg_solve_triangular cholesky_solve cholesky_inverse lu_solve linalg_inv linalg_cholesky cholesky")
table.laid_out("FF", "triangular_solve")
table.laid_out("C", "cross linalg_cross")
table.laid_out("F-", "linalg_inv_ex linalg_cholesky_ex")
table.laid_out("-F--", "_linalg_solve_ex")
table.laid_out("-F-", "_linalg_det")
table.laid_out("--F-", "_linalg_slogdet")
