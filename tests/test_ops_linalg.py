"""Linear algebra: factors multiply back, solutions solve, and torch's words for what cannot be done."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irtool import RunError
from irtool.ops.call import call_op

RNG = np.random.default_rng(3)
DTYPES = ("float32", "float64", "complex64", "complex128")


def call(name: str, *args: Any, **named: Any) -> Any:
    return call_op(f"aten::{name}", list(args), **named)


def matrices(dtype: str, *shape: int) -> np.ndarray:
    values = RNG.standard_normal(shape)
    return (values + 1j * RNG.standard_normal(shape) if dtype.startswith("c") else values).astype(dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    turned: np.ndarray = np.conj(np.swapaxes(x, -1, -2))
    return turned


def near(a: np.ndarray, b: np.ndarray) -> bool:
    tolerance = 2e-4 if a.dtype in ("float32", "complex64") else 1e-9
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=tolerance, atol=tolerance))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (2, 1, 3, 5)])
def test_factors_multiply_back(dtype: str, shape: tuple[int, ...]) -> None:
    A = matrices(dtype, *shape)
    P, L, U = call("linalg_lu", A)
    assert near(P @ L @ U, A)
    Q, R = call("linalg_qr", A)
    assert near(Q @ R, A)
    U, S, Vh = call("linalg_svd", A, False)
    assert near((U * S[..., None, :]) @ Vh, A)
    packed, tau = call("geqrf", A)
    k = min(shape[-2:])
    if shape[-2] >= shape[-1]:
        product = call("linalg_householder_product", packed, tau)
        assert near(product @ np.triu(packed)[..., :k, :], A)
    assert near(call("linalg_pinv.atol_rtol_float", A) @ A @ call("linalg_pinv.atol_rtol_float", A), call("linalg_pinv.atol_rtol_float", A))


@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_solve(dtype: str) -> None:
    A, B = matrices(dtype, 2, 4, 4), matrices(dtype, 2, 4, 3)
    assert near(A @ call("linalg_solve", A, B), B)
    assert near(call("linalg_solve", A, adjoint(B), left=False) @ A, adjoint(B))
    LU, pivots = call("linalg_lu_factor", A)
    assert near(A @ call("linalg_lu_solve", LU, pivots, B), B)
    assert near(adjoint(A) @ call("linalg_lu_solve", LU, pivots, B, adjoint=True), B)
    assert near(np.triu(A) @ call("linalg_solve_triangular", A, B, upper=True), B)
    H = A @ adjoint(A) + 4 * np.eye(4, dtype=dtype)
    L = call("linalg_cholesky", H)
    assert near(L @ adjoint(L), H) and near(H @ call("cholesky_solve", B, L), B)
    assert near(H @ call("cholesky_inverse", L), np.broadcast_to(np.eye(4, dtype=dtype), H.shape))
    values, vectors = call("linalg_eigh", H)
    assert near((vectors * values[..., None, :]) @ adjoint(vectors), H)


def test_determinants_powers_and_exponentials() -> None:
    A = matrices("float64", 3, 3)
    sign, logarithm = call("linalg_slogdet", A)
    assert np.isclose(sign * np.exp(logarithm), call("linalg_det", A))
    assert np.allclose(call("linalg_matrix_power", A, -2) @ A @ A, np.eye(3))
    assert np.allclose(call("linalg_matrix_exp", A) @ call("linalg_matrix_exp", -A), np.eye(3))
    assert np.isclose(call("linalg_det", call("linalg_matrix_exp", A)), np.exp(np.trace(A)))


def test_powers_of_small_integers_do_not_wrap() -> None:
    found = call("linalg_vander", np.array([100, -3], np.int8), N=4)
    assert found.dtype == np.int64 and found.tolist() == [[1, 100, 10**4, 10**6], [1, -3, 9, -27]]


def test_distances_agree_by_either_way() -> None:
    a, b = matrices("float64", 30, 4), matrices("float64", 28, 4)
    plain = np.linalg.norm(a[:, None] - b, axis=-1)
    assert np.allclose(call("cdist", a, b, 2.0, 1), plain) and np.allclose(call("cdist", a, b, 2.0, 2), plain)
    rows, columns = np.triu_indices(30, 1)
    assert np.allclose(call("pdist", a), call("cdist", a, a, 2.0, 2)[rows, columns])


@pytest.mark.parametrize(("name", "matrix", "message"), [
    ("linalg_inv", np.zeros((2, 2)), "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the input "
                                     "matrix is singular."),
    ("linalg_inv", np.zeros((2, 3)), "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices"),
    ("linalg_inv", np.zeros(3), "linalg.inv: The input tensor A must have at least 2 dimensions."),
    ("linalg_inv", np.zeros((2, 2), np.int64), "linalg.inv: Expected a floating point or complex tensor as input. Got Long"),
    ("linalg_cholesky", -np.eye(2), "linalg.cholesky: The factorization could not be completed because the input is not positive-definite "
                                    "(the leading minor of order 1 is not positive-definite)."),
    ("linalg_eigh", np.zeros((2, 2), np.int64), "\"linalg_eigh_cpu\" not implemented for 'Long'"),
    ("linalg_eig", np.full((2, 2), np.nan), "torch.linalg.eig: input tensor should not contain infs or NaNs."),
])
def test_what_cannot_be_done_is_said_as_torch_says_it(name: str, matrix: np.ndarray, message: str) -> None:
    with pytest.raises(RunError) as raised:
        call(name, matrix)
    assert raised.value.message == message


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 3), (5, 4), (2, 3, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_decomposition_of_infinities_ends(shape: tuple[int, ...], dtype: str) -> None:
    """LAPACK may not come to an end on them; singular values are nan, as in torch, of the matrix that has them alone."""
    matrix = np.random.default_rng(3).normal(size=shape).astype(dtype)
    for place in range(matrix.size // 2, matrix.size):      # of a stack, the last matrix
        bad = matrix.copy()
        bad.flat[place] = -np.inf
        u, values, vh = call_op("aten::linalg_svd", [bad, False, None])
        assert np.isnan(values).sum() == min(shape[-2:]) and values.shape == (*shape[:-2], min(shape[-2:]))
        np.testing.assert_array_equal(np.isnan(call_op("aten::linalg_svdvals", [bad, None])), np.isnan(values))
        for name, rest in {"linalg_pinv": [1e-6, False], "linalg_cond": [None],
                           "linalg_matrix_norm.str_ord": ["nuc", [-2, -1], False, None],
                           "linalg_matrix_rank": [1e-6, False], "linalg_lstsq": [bad, None, "gelsd"]}.items():
            call_op(f"aten::{name}", [bad, *rest])
        bad.flat[place] = np.nan
        with pytest.raises(RunError, match="contained non-finite values"):
            call_op("aten::linalg_svdvals", [bad, None])
