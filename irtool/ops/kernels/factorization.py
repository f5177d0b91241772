"""Factorizations of stacks of matrices written out in array operations, one step per column: LU, Cholesky, Householder, substitution.

NumPy has no LU, no triangular solver and no failed-at report. Every function here takes (..., rows, columns) arrays and works on all
matrices of the stack at once.
"""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import real_of, title


def square(name, A):
    """Raises torch's error unless A is a stack of square matrices."""
    matrices(name, A)
    if A.shape[-1] != A.shape[-2]:
        raise RunError(f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices")


def matrices(name, A, argument="A"):
    """Raises torch's error unless A has at least two dimensions."""
    if A.ndim < 2:
        raise RunError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def float_or_complex(name, A):
    """Raises torch's error for integers and bools."""
    if A.dtype.kind not in "fc":
        raise RunError(f"{name}: Expected a floating point or complex tensor as input. Got {title(A.dtype)}")
    if A.dtype.itemsize == 2:
        raise RunError(f"{name}: Low precision dtypes not supported. Got {title(A.dtype)}")


def adjoint(xp, A):
    """Conjugate transpose, a view when real."""
    T = A.swapaxes(-1, -2)
    return xp.conj(T) if A.dtype.kind == "c" else T


def diagonal_of(xp, A):
    """Main diagonals."""
    return xp.diagonal(A, axis1=-2, axis2=-1)


# ---- singular values

def singular_vectors(xp, A, full):
    """U, S and Vh with A = U @ diag(S) @ Vh; nan for a matrix with an infinite element, on which LAPACK may not come to an end.

    Raises RunError for a matrix with nan, in torch's words.
    """
    infinite, A = _without_infinities(xp, A)
    results = _decomposed(xp, A, full_matrices=full)
    return tuple([_nan_where(xp, infinite, part) for part in results])


def singular_values(xp, A):
    """S alone, with the nan and the error of `singular_vectors`."""
    infinite, A = _without_infinities(xp, A)
    return _nan_where(xp, infinite, _decomposed(xp, A, compute_uv=False))


def _decomposed(xp, A, **options):
    try:
        return xp.linalg.svd(A, **options)
    except xp.linalg.LinAlgError:
        raise RunError("linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.") from None


def _without_infinities(xp, A):
    """Which matrices have infinite elements and no nan, and A with zeros in their place."""
    infinite = xp.isinf(A).any((-2, -1))
    if not infinite.any():
        return infinite, A
    infinite &= ~xp.isnan(A).any((-2, -1))
    return infinite, xp.where(infinite[..., None, None], A.dtype.type(0), A)


def _nan_where(xp, chosen, part):
    """A part of a decomposition, nan for the chosen matrices."""
    if not chosen.any():
        return part
    return xp.where(chosen.reshape(*chosen.shape, *[1] * (part.ndim - chosen.ndim)), part.dtype.type(math.nan), part)


# ---- LU

def lu_packed(xp, A):
    """(LU, pivots, info): L below the diagonal, U on and above, 1-based int32 row swaps, and the first zero of U's diagonal (0: none)."""
    LU = xp.array(A, order="C")
    rows, columns = A.shape[-2:]
    steps = min(rows, columns)
    flat = LU.reshape(-1, rows, columns) if LU.size else xp.empty((math.prod(A.shape[:-2]), rows, columns), A.dtype)
    batch = xp.arange(len(flat))
    pivots = xp.empty((len(flat), steps), xp.int32)
    for k in range(steps):
        column = flat[:, k:, k]
        # LAPACK measures complex numbers by |re| + |im|
        sizes = xp.abs(column.real) + xp.abs(column.imag) if A.dtype.kind == "c" else xp.abs(column)
        best = sizes.argmax(1) + k
        pivots[:, k] = best + 1
        chosen = flat[batch, best].copy()
        flat[batch, best] = flat[:, k]
        flat[:, k] = chosen
        head = flat[:, k, k]
        safe = xp.where(head == 0, head.dtype.type(1), head)
        flat[:, k + 1:, k] = xp.where((head == 0)[:, None], flat[:, k + 1:, k], flat[:, k + 1:, k] / safe[:, None])
        flat[:, k + 1:, k + 1:] -= flat[:, k + 1:, k, None] * flat[:, k, None, k + 1:]
    zero = diagonal_of(xp, flat) == 0
    info = xp.where(zero.any(1), zero.argmax(1) + 1, 0).astype(xp.int32) if steps else xp.zeros(len(flat), xp.int32)
    lead = A.shape[:-2]
    return flat.reshape(A.shape), pivots.reshape((*lead, steps)), info.reshape(lead)


def permutation(xp, pivots, rows):
    """Row order (..., rows) that a sequence of 1-based swaps makes of 0, 1, 2, ..."""
    order = xp.broadcast_to(xp.arange(rows), (*pivots.shape[:-1], rows)).copy()
    count = math.prod(pivots.shape[:-1])
    flat, swaps = order.reshape(count, rows), pivots.reshape(count, pivots.shape[-1])
    batch = xp.arange(len(flat))
    for k in range(pivots.shape[-1]):
        other = swaps[:, k] - 1
        saved = flat[batch, other].copy()
        flat[batch, other] = flat[:, k]
        flat[:, k] = saved
    return flat.reshape(order.shape)


def lower_upper(xp, LU):
    """The two factors of packed LU."""
    rows, columns = LU.shape[-2:]
    steps = min(rows, columns)
    lower = xp.tril(LU[..., :, :steps], -1) + xp.eye(rows, steps, dtype=LU.dtype)
    return lower, xp.triu(LU[..., :steps, :])


# ---- triangles

def substitute(xp, A, B, upper, unit=False):
    """X with A @ X = B for triangular A (the other triangle is not read); zeros on the diagonal result in inf and nan."""
    size = A.shape[-1]
    lead = xp.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    X = xp.array(xp.broadcast_to(B, lead + B.shape[-2:]), order="C")
    for k in reversed(range(size)) if upper else range(size):
        if not unit:
            X[..., k, :] = X[..., k, :] / A[..., k, k, None]
        rest = slice(0, k) if upper else slice(k + 1, size)
        X[..., rest, :] -= A[..., rest, k, None] * X[..., k, None, :]
    return X


# ---- Cholesky

def cholesky_lower(xp, A):
    """(L, info): A = L @ L^H from the lower triangle, and the order of the first minor that is not positive (0: none)."""
    lower = xp.tril(A)
    flat = lower.reshape(-1, *A.shape[-2:]) if A.size else xp.empty((math.prod(A.shape[:-2]), *A.shape[-2:]), A.dtype)
    flat = flat.copy()
    info = xp.zeros(len(flat), xp.int32)
    for k in range(A.shape[-1]):
        head = flat[:, k, k].real
        failed = (info == 0) & ~(head > 0)
        info[failed] = k + 1
        root = xp.sqrt(xp.where(head > 0, head, head.dtype.type(1)))
        flat[:, k, k] = xp.where(info == 0, root, flat[:, k, k])
        column = flat[:, k + 1:, k] / root[:, None]
        flat[:, k + 1:, k] = column
        flat[:, k + 1:, k + 1:] -= xp.tril(column[:, :, None] * xp.conj(column)[:, None, :])
    return flat.reshape(A.shape), info.reshape(A.shape[:-2])


# ---- Householder reflections

def reflect(xp, V, tau, C, reverse=False, conjugate=False):
    """H(1) H(2) ... H(k) @ C (in the other order with `reverse`): H(i) = 1 - tau[i] v v^H, v below the diagonal of V, 1 on it."""
    count, rows = tau.shape[-1], V.shape[-2]
    C = xp.array(C, order="C")
    for k in range(count) if reverse else reversed(range(count)):
        v = xp.concatenate([xp.ones((*V.shape[:-2], 1), V.dtype), V[..., k + 1:, k]], -1)
        factor = xp.conj(tau[..., k]) if conjugate else tau[..., k]
        part = C[..., k:rows, :]
        along = (xp.conj(v)[..., None, :] @ part)
        C[..., k:rows, :] = part - factor[..., None, None] * v[..., :, None] * along
    return C


# ---- exponential

PADE = (64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800., 129060195264000., 10559470521600., 670442572800.,
        33522128640., 1323241920., 40840800., 960960., 16380., 182., 1.)


def exponential(xp, A):
    """exp of square matrices: Pade approximant of order 13 after scaling each matrix by its norm, then squaring (Higham 2005); nan for
    matrices with elements that are not finite."""
    wide = A.astype(xp.complex128 if A.dtype.kind == "c" else xp.float64)
    norm = xp.abs(wide).sum(-2).max(-1) if A.size else xp.zeros(A.shape[:-2])
    is_finite = xp.isfinite(norm)
    squarings = xp.maximum(xp.ceil(xp.log2(xp.where(is_finite & (norm > 0), norm, 1) / 5.371920351148152)), 0)
    wide = xp.where(is_finite[..., None, None], wide, 0) * xp.exp2(-squarings)[..., None, None]
    unit = xp.eye(A.shape[-1], dtype=wide.dtype)
    A2 = wide @ wide
    A4 = A2 @ A2
    A6 = A4 @ A2
    b = PADE
    U = wide @ (A6 @ (b[13] * A6 + b[11] * A4 + b[9] * A2) + b[7] * A6 + b[5] * A4 + b[3] * A2 + b[1] * unit)
    V = A6 @ (b[12] * A6 + b[10] * A4 + b[8] * A2) + b[6] * A6 + b[4] * A4 + b[2] * A2 + b[0] * unit
    result = xp.linalg.solve(V - U, V + U)
    for done in range(int(squarings.max()) if squarings.size else 0):
        result = xp.where((squarings > done)[..., None, None], result @ result, result)
    return xp.where(is_finite[..., None, None], result, math.nan).astype(A.dtype)


def epsilon(xp, dtype):
    """Spacing of numbers near 1."""
    return float(xp.finfo(real_of(dtype)).eps)
