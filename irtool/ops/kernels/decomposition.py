"""Matrix decompositions: LU, LDL, QR, eigenvalues and singular values, of stacks of matrices."""
import math

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.arrays import complex_of, on_host, real_of
from irtool.ops.checks import refuse, row_major
from irtool.ops.kernels.factorization import (
    adjoint,
    float_or_complex,
    lower_upper,
    lu_packed,
    matrices,
    permutation,
    reflect,
    singular_values,
    singular_vectors,
    square,
)
from irtool.ops.op import OpTable

table = OpTable("decomposition")


# ---- LU

def _checked_lu(xp, A, pivot, name):
    float_or_complex(name, A)
    matrices(name, A)
    if not pivot:
        raise RunError(f"{name}: LU without pivoting is not implemented on the CPU")
    return lu_packed(xp, A)


@table.op("aten::linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)")
def linalg_lu_factor(xp, A, pivot):
    """Packed LU and 1-based row swaps."""
    LU, pivots, info = _checked_lu(xp, A, pivot, "linalg.lu_factor")
    if info.any():
        raise RunError(f"torch.linalg.lu_factor: U[{int(info.max())},{int(info.max())}] is zero and using it on lu_solve would result in a "
                       "division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
                       "linalg.lu_factor_ex(A, pivot)")
    return LU, pivots


@table.op("aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)")
def linalg_lu_factor_ex(xp, A, pivot, check_errors):
    """Packed LU, row swaps, and the first zero on U's diagonal (0: none)."""
    LU, pivots, info = _checked_lu(xp, A, pivot, "linalg.lu_factor")
    if check_errors and info.any():
        linalg_lu_factor.kernel(xp, A, pivot)
    return LU, pivots, info


@table.op("aten::_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)")
def lu_with_info(xp, self, pivot, check_errors):
    """Packed LU, row swaps, and the first zero on U's diagonal (0: none): linalg_lu_factor_ex under its old name; nothing is checked."""
    return linalg_lu_factor_ex.kernel(xp, self, pivot, False)


def _permutation_matrix(xp, pivots, rows, dtype):
    order = permutation(xp, pivots, rows)
    return row_major(xp, (xp.arange(rows)[:, None] == order[..., None, :]).astype(dtype))


@table.op("aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)")
def linalg_lu(xp, A, pivot):
    """P, L and U with A = P @ L @ U."""
    LU, pivots, _ = _checked_lu(xp, A, pivot, "linalg.lu")
    return (_permutation_matrix(xp, pivots, A.shape[-2], A.dtype), *lower_upper(xp, LU))


@table.op("aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, "
          "Tensor U)")
def lu_unpack(xp, LU_data, LU_pivots, unpack_data, unpack_pivots):
    """P, L and U from packed LU and row swaps; parts that are not wanted are empty."""
    if unpack_pivots and LU_pivots.dtype != xp.int32:
        raise RunError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")
    nothing = xp.empty(0, LU_data.dtype)
    swaps = LU_pivots[..., :min(LU_data.shape[-2:])]
    P = _permutation_matrix(xp, swaps, LU_data.shape[-2], LU_data.dtype) if unpack_pivots else nothing
    return (P, *lower_upper(xp, LU_data)) if unpack_data else (P, nothing, nothing)


# ---- LDL: symmetric indefinite, LAPACK's own

def _lapack(names, dtype):
    """LAPACK routines of SciPy for a dtype. Raises UnsupportedError without SciPy."""
    try:
        from scipy.linalg import get_lapack_funcs
    except ImportError:
        raise UnsupportedError("aten::linalg_ldl needs SciPy (pip install scipy)") from None
    return get_lapack_funcs(names, dtype=dtype)


def _ldl(xp, A, hermitian):
    float_or_complex("torch.linalg.ldl_factor", A)
    square("torch.linalg.ldl_factor", A)
    name = "hetrf" if hermitian and A.dtype.kind == "c" else "sytrf"
    (routine,) = _lapack((name,), A.dtype)
    LD, lead = xp.tril(A), A.shape[:-2]
    pivots, info = xp.empty((*lead, A.shape[-1]), xp.int32), xp.zeros(lead, xp.int32)
    for place in xp.ndindex(*lead):
        if A.shape[-1]:
            packed, swaps, code = routine(on_host(A[place]), lower=1)
            LD[place] = xp.tril(xp.asarray(packed))
            pivots[place], info[place] = xp.asarray(swaps), code
    return LD, pivots, info


@table.op("aten::linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, "
          "Tensor info)")
def linalg_ldl_factor_ex(xp, self, hermitian, check_errors):
    """Packed L and D of a symmetric matrix, pivots and a status, as LAPACK's sytrf returns them."""
    LD, pivots, info = _ldl(xp, self, hermitian)
    if check_errors and info.any():
        raise RunError("torch.linalg.ldl_factor_ex: The factorization could not be completed because the input matrix is singular.")
    return LD, pivots, info


@table.op("aten::linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)")
def linalg_ldl_factor(xp, self, hermitian):
    """Packed L and D, and pivots."""
    LD, pivots, _ = linalg_ldl_factor_ex.kernel(xp, self, hermitian, True)
    return LD, pivots


@table.op("aten::linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor")
def linalg_ldl_solve(xp, LD, pivots, B, hermitian):
    """X with A @ X = B from the LDL factorization of A."""
    (routine,) = _lapack(("hetrs" if hermitian and LD.dtype.kind == "c" else "sytrs",), LD.dtype)
    lead = xp.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    LD, X = xp.broadcast_to(LD, lead + LD.shape[-2:]), xp.broadcast_to(B, lead + B.shape[-2:]).copy()
    swaps = xp.broadcast_to(pivots, lead + pivots.shape[-1:])
    if X.size:
        for place in xp.ndindex(*lead):
            solved, _ = routine(on_host(LD[place]), on_host(swaps[place]), on_host(X[place]), lower=1)
            X[place] = xp.asarray(solved)
    return X


# ---- QR

def _only_float(name, A):
    if A.dtype.kind not in "fc" or A.dtype.itemsize == 2:
        refuse(name, A)


@table.op("aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)")
def linalg_qr(xp, A, mode):
    """Q and R with A = Q @ R: `reduced`, `complete`, or only R with `r`."""
    matrices("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RunError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    _only_float("geqrf_cpu", A)
    if mode == "r":
        return xp.empty(0, A.dtype), xp.linalg.qr(A, "r")
    Q, R = xp.linalg.qr(A, mode)
    return Q, R


@table.op("aten::qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)")
def qr(xp, self, some):
    """Q and R with A = Q @ R; complete unless `some`."""
    return linalg_qr.kernel(xp, self, "reduced" if some else "complete")


@table.op("aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)")
def geqrf(xp, self):
    """R above, Householder vectors below the diagonal, and their factors."""
    matrices("torch.geqrf", self, "input")
    _only_float("geqrf_cpu", self)
    transposed, tau = xp.linalg.qr(self, "raw")
    return row_major(xp, transposed.swapaxes(-1, -2)).astype(self.dtype, copy=False), tau.astype(self.dtype, copy=False)


def _householder_product(xp, input, tau):
    matrices("torch.linalg.householder_product", input, "input")
    rows, columns = input.shape[-2:]
    if rows < columns:
        raise RunError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]")
    unit = xp.broadcast_to(xp.eye(rows, columns, dtype=input.dtype), input.shape)
    return reflect(xp, input, tau, unit)


table.define("aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor", _householder_product,
             doc="First columns of a product of Householder reflections.")
table.define("aten::orgqr(Tensor self, Tensor input2) -> Tensor", _householder_product, doc="The same under its old name.")


@table.op("aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor")
def ormqr(xp, self, input2, input3, left, transpose):
    """Q @ C (C @ Q), or with Q's adjoint, Q being a product of Householder reflections."""
    if left:
        return reflect(xp, self, input2, input3, reverse=transpose, conjugate=transpose)
    flipped = reflect(xp, self, input2, adjoint(xp, input3), reverse=not transpose, conjugate=not transpose)
    return row_major(xp, adjoint(xp, flipped))


# ---- eigenvalues

def _finite(A, name):
    if A.size and not bool((abs(A) < math.inf).all()):
        raise RunError(f"torch.linalg.{name}: input tensor should not contain infs or NaNs.")


@table.op("aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)")
def linalg_eig(xp, self):
    """Complex eigenvalues and eigenvectors."""
    float_or_complex("linalg.eig", self)
    square("linalg.eig", self)
    _finite(self, "eig")
    values, vectors = xp.linalg.eig(self)
    return values.astype(complex_of(self.dtype)), vectors.astype(complex_of(self.dtype))


def _eigvals(xp, self):
    float_or_complex("linalg.eigvals", self)
    square("linalg.eigvals", self)
    _finite(self, "eigvals")
    return xp.linalg.eigvals(self).astype(complex_of(self.dtype))


table.define(("aten::linalg_eigvals(Tensor self) -> Tensor", "aten::_linalg_eigvals(Tensor self) -> Tensor"), _eigvals,
             doc="Complex eigenvalues.")


def _uplo(text):
    upper = text.upper()
    if upper not in ("L", "U"):
        raise RunError(f"Expected UPLO argument to be 'L' or 'U', but got {text}")
    return upper


@table.op("aten::linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)")
def linalg_eigh(xp, self, UPLO):
    """Real eigenvalues, ascending, and eigenvectors of a Hermitian matrix, of which one triangle is read."""
    square("linalg.eigh", self)
    _only_float("linalg_eigh_cpu", self)
    values, vectors = xp.linalg.eigh(self, _uplo(UPLO))
    return values.astype(real_of(self.dtype), copy=False), vectors


@table.op("aten::_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)")
def linalg_eigh_optional(xp, A, UPLO, compute_v):
    """Eigenvalues, ascending, of a Hermitian matrix, and eigenvectors; these are empty without `compute_v`."""
    if compute_v:
        return linalg_eigh.kernel(xp, A, UPLO)
    return linalg_eigvalsh.kernel(xp, A, UPLO), xp.empty(0, A.dtype)


@table.op("aten::linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor")
def linalg_eigvalsh(xp, self, UPLO):
    """Real eigenvalues of a Hermitian matrix, ascending."""
    square("linalg.eigvalsh", self)
    _only_float("linalg_eigh_cpu", self)
    return xp.linalg.eigvalsh(self, _uplo(UPLO)).astype(real_of(self.dtype), copy=False)


# ---- singular values

def _svd(xp, A, full):
    matrices("linalg.svd", A)
    _only_float("linalg_svd_cpu", A)
    return singular_vectors(xp, A, full)


@table.op("aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)")
def linalg_svd(xp, A, full_matrices, driver):
    """U, S and Vh with A = U @ diag(S) @ Vh."""
    refuse_driver(driver)
    U, S, Vh = _svd(xp, A, full_matrices)
    return U, S, Vh


def refuse_driver(driver):
    """Raises torch's error for a choice of the algorithm, which only GPUs have."""
    if driver is not None:
        raise RunError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")


@table.op("aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, "
          "Tensor Vh)")
def linalg_svd_optional(xp, A, full_matrices, compute_uv, driver):
    """S of A = U @ diag(S) @ Vh, with U and Vh; these are empty without `compute_uv`."""
    if compute_uv:
        return linalg_svd.kernel(xp, A, full_matrices, driver)
    return xp.empty(0, A.dtype), linalg_svdvals.kernel(xp, A, driver), xp.empty(0, A.dtype)


@table.op("aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor")
def linalg_svdvals(xp, A, driver):
    """Singular values, descending."""
    refuse_driver(driver)
    matrices("linalg.svdvals", A)
    _only_float("linalg_svd_cpu", A)
    return singular_values(xp, A)


@table.op("aten::svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)")
def svd(xp, self, some, compute_uv):
    """U, S and V (not its adjoint); zeros for U and V without compute_uv."""
    matrices("linalg.svd", self)
    if not compute_uv:
        lead, (rows, columns) = self.shape[:-2], self.shape[-2:]
        return (xp.zeros((*lead, rows, rows), self.dtype), linalg_svdvals.kernel(xp, self, None),
                xp.zeros((*lead, columns, columns), self.dtype))
    U, S, Vh = _svd(xp, self, not some)
    return U, S, row_major(xp, adjoint(xp, Vh))


# ---- dtypes that torch serves

table.takes("fc=", "linalg_householder_product orgqr ormqr")
table.laid_out("-F", "linalg_eig linalg_eigh _linalg_eigh")
table.laid_out("F", "linalg_householder_product orgqr ormqr")
table.laid_out("F-", "linalg_lu_factor linalg_ldl_factor")
table.laid_out("F--", "linalg_ldl_factor_ex linalg_lu_factor_ex _lu_with_info svd")
table.laid_out("F-F", "linalg_svd _linalg_svd")
table.laid_out("FF", "linalg_qr qr")
