"""Gradients of decompositions. If a factor takes no part, its gradient is None, and its terms are omitted."""
from __future__ import annotations

from irtool.ops.kernels.decomposition import table
from irtool.ops.tensor import Tensor, torch

CONJUGATED = True

# ---- LU


def lu_back(for_lower: Tensor, for_upper: Tensor, permutation: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Gradient for A of A = permutation @ lower @ upper, of any shape."""
    rows, columns = lower.size(-2), upper.size(-1)
    extent = min(rows, columns)
    top = lower.narrow(-2, 0, extent)
    left = upper.narrow(-1, 0, extent)
    lower_part = top.mH @ for_lower.narrow(-2, 0, extent)
    upper_part = for_upper.narrow(-1, 0, extent) @ left.mH
    if columns > rows:
        lower_part = lower_part - for_upper.narrow(-1, extent, columns - extent) @ upper.narrow(-1, extent, columns - extent).mH
    if rows > columns:
        upper_part = upper_part - lower.narrow(-2, extent, rows - extent).mH @ for_lower.narrow(-2, extent, rows - extent)
    core = lower_part.tril(-1) + upper_part.triu()
    core = torch.linalg_solve_triangular(left.mH, core, upper=False, left=False)
    whole = torch.linalg_solve_triangular(top.mH, core, upper=True, left=True, unitriangular=True)
    if columns > rows:
        rest = for_upper.narrow(-1, extent, columns - extent)
        whole = torch.cat([whole, torch.linalg_solve_triangular(top.mH, rest, upper=True, left=True, unitriangular=True)], -1)
    if rows > columns:
        rest = for_lower.narrow(-2, extent, rows - extent)
        whole = torch.cat([whole, torch.linalg_solve_triangular(left.mH, rest, upper=False, left=False)], -2)
    return permutation @ whole


def packed_back(grad: Tensor, factors: Tensor, pivots: Tensor) -> Tensor:
    """As `lu_back`, for the gradient of packed factors."""
    permutation, lower, upper = torch.lu_unpack(factors, pivots)
    extent = lower.size(-1)
    for_lower = grad.narrow(-1, 0, extent).tril(-1)
    for_upper = grad.narrow(-2, 0, extent).triu()
    return lu_back(for_lower, for_upper, permutation, lower, upper)


table.derivative("linalg_lu_factor linalg_lu_factor_ex", lambda grad, LU, pivots: packed_back(grad, LU, pivots))
table.derivative("_lu_with_info", lambda grad, LU, pivots: packed_back(grad, LU, pivots))


@table.derivative("linalg_lu")
def lu_gradient(grad_permutation, grad_lower, grad_upper, P, L, U):
    for_lower = torch.zeros_like(L) if grad_lower is None else grad_lower
    for_upper = torch.zeros_like(U) if grad_upper is None else grad_upper
    return lu_back(for_lower, for_upper, P, L, U)


@table.derivative("lu_unpack")
def lu_unpack_gradient(grad_permutation, grad_lower, grad_upper, LU_data):
    rows, columns = LU_data.size(-2), LU_data.size(-1)
    total = torch.zeros_like(LU_data)
    if grad_lower is not None:
        total = total + torch.constant_pad_nd(grad_lower.tril(-1), [0, columns - min(rows, columns)], 0)
    if grad_upper is not None:
        total = total + torch.constant_pad_nd(grad_upper.triu(), [0, 0, 0, rows - min(rows, columns)], 0)
    return total, None


# ---- QR

def doubled(x: Tensor) -> Tensor:
    """x + its conjugate transpose, the diagonal once."""
    both = x + x.mH
    return both - torch.diag_embed(both.diagonal(0, -2, -1)) * 0.5


def square_qr_back(for_q: Tensor, for_r: Tensor, q: Tensor, r: Tensor) -> Tensor:
    """Gradient of a reduced QR of a matrix that is not wide."""
    core = doubled((for_r @ r.mH - q.mH @ for_q).triu())
    return torch.linalg_solve_triangular(r.mH, for_q + q @ core, upper=False, left=False)


def qr_back(grad_q: Tensor | None, grad_r: Tensor | None, A: Tensor, q: Tensor, r: Tensor) -> Tensor:
    """Gradient of QR; a wide matrix consists of its square part and further columns."""
    for_q = torch.zeros_like(q) if grad_q is None else grad_q
    for_r = torch.zeros_like(r) if grad_r is None else grad_r
    rows, columns = A.size(-2), A.size(-1)
    if rows >= columns:
        return square_qr_back(for_q, for_r, q, r)
    beside = A.narrow(-1, rows, columns - rows)
    for_beside = for_r.narrow(-1, rows, columns - rows)
    square = square_qr_back(for_q + beside @ for_beside.mH, for_r.narrow(-1, 0, rows), q, r.narrow(-1, 0, rows))
    return torch.cat([square, q @ for_beside], -1)


@table.gradient("linalg_qr")
def linalg_qr_gradient(A: Tensor, mode: str):
    q, r = torch.linalg_qr(A, mode)
    base = q
    if mode == "r":     # no q is asked for, but needed
        base, _ = torch.linalg_qr(A, "reduced")

    def backward(grad_q: Tensor | None, grad_r: Tensor | None):
        return qr_back(None if mode == "r" else grad_q, grad_r, A, base, r), None

    return q, r, backward


table.derivative("aten::qr", lambda grad_q, grad_r, self, Q, R: qr_back(grad_q, grad_r, self, Q, R))


# ---- eigenvalues

def eigh_back(grad_values: Tensor | None, grad_vectors: Tensor | None, values: Tensor, vectors: Tensor) -> Tensor:
    """Gradient of the eigenvalues and eigenvectors of a Hermitian matrix."""
    core = torch.zeros_like(vectors)
    if grad_values is not None:
        core = core + torch.diag_embed(torch.real(grad_values))
    if grad_vectors is not None:
        gaps = values.unsqueeze(-2) - values.unsqueeze(-1) + torch.diag_embed(torch.full_like(values, float("inf")))
        part = (vectors.mH @ grad_vectors) / gaps
        core = core + (part + part.mH) * 0.5
    return vectors @ core @ vectors.mH


@table.derivative("linalg_eigh")
def eigh_gradient(grad_values, grad_vectors, eigenvalues, eigenvectors):
    return eigh_back(grad_values, grad_vectors, eigenvalues, eigenvectors)


@table.gradient("_linalg_eigh")
def plain_eigh_gradient(A: Tensor, UPLO: str, compute_v: bool):
    values, vectors = torch._linalg_eigh(A, UPLO, True)

    def backward(grad_values: Tensor | None, grad_vectors: Tensor | None):
        return eigh_back(grad_values, grad_vectors, values, vectors), None, None

    return values, vectors, backward


@table.derivative("linalg_eigvalsh", through="linalg_eigh")
def eigvalsh_gradient(grad, eigenvectors):
    return (eigenvectors * torch.real(grad).unsqueeze(-2)) @ eigenvectors.mH


@table.derivative("linalg_eig")
def eig_gradient(grad_values, grad_vectors, eigenvalues, eigenvectors):
    core = torch.zeros_like(eigenvectors)
    if grad_values is not None:
        core = core + torch.diag_embed(grad_values)
    if grad_vectors is not None:
        part = eigenvectors.mH @ grad_vectors
        part = part - eigenvectors.mH @ (eigenvectors * torch.real(part.diagonal(0, -2, -1)).unsqueeze(-2))
        ones = torch.diag_embed(torch.ones_like(eigenvalues))
        gaps = (eigenvalues.unsqueeze(-2) - eigenvalues.unsqueeze(-1)).conj() + ones
        core = core + part * (1 - ones) / gaps
    return torch.linalg_solve(eigenvectors.mH, core @ eigenvectors.mH)


@table.derivative("linalg_eigvals _linalg_eigvals", through="linalg_eig")
def eigvals_gradient(grad, eigenvectors):
    return torch.linalg_solve(eigenvectors.mH, grad.unsqueeze(-1) * eigenvectors.mH)


# ---- singular values

def svd_back(grad_u: Tensor | None, grad_s: Tensor | None, grad_vh: Tensor | None, u: Tensor, s: Tensor, vh: Tensor) -> Tensor:
    """Gradient of a singular value decomposition; of square factors only the first columns count."""
    extent = s.size(-1)
    u, vh = u.narrow(-1, 0, extent), vh.narrow(-2, 0, extent)
    rows, columns = u.size(-2), vh.size(-1)
    core = torch.zeros_like(vh.narrow(-1, 0, extent))
    if grad_s is not None:
        core = core + torch.diag_embed(torch.real(grad_s))
    squares = s * s
    ones = torch.diag_embed(torch.ones_like(s))
    gaps = squares.unsqueeze(-2) - squares.unsqueeze(-1) + ones
    if grad_u is not None:
        turned = u.mH @ grad_u.narrow(-1, 0, extent)
        turned = turned - turned.mH
        core = core + turned / gaps * (1 - ones) * s.unsqueeze(-2)
        if u.is_complex():
            core = core + torch.diag_embed(turned.diagonal(0, -2, -1) / (2 * s))
    if grad_vh is not None:
        turned = vh @ grad_vh.narrow(-2, 0, extent).mH
        core = core + s.unsqueeze(-1) * ((turned - turned.mH) / gaps) * (1 - ones)
    result = u @ core @ vh
    if rows > extent and grad_u is not None:
        for_u = grad_u.narrow(-1, 0, extent)
        result = result + ((for_u - u @ (u.mH @ for_u)) / s.unsqueeze(-2)) @ vh
    if columns > extent and grad_vh is not None:
        for_vh = grad_vh.narrow(-2, 0, extent)
        result = result + u @ ((for_vh - (for_vh @ vh.mH) @ vh) / s.unsqueeze(-1))
    return result


table.derivative("linalg_svd", lambda grad_u, grad_s, grad_vh, U, S, Vh: svd_back(grad_u, grad_s, grad_vh, U, S, Vh))


@table.gradient("_linalg_svd")
def plain_svd_gradient(A: Tensor, full_matrices: bool, compute_uv: bool, driver: str | None):
    u, s, vh = torch._linalg_svd(A, full_matrices, True, driver=driver)

    def backward(grad_u: Tensor | None, grad_s: Tensor | None, grad_vh: Tensor | None):
        return svd_back(grad_u, grad_s, grad_vh, u, s, vh), None, None, None

    return u, s, vh, backward


@table.gradient("aten::svd")
def svd_gradient(self: Tensor, some: bool, compute_uv: bool):
    u, s, vh = torch.linalg_svd(self, not some)
    first, last = (u, vh.mH) if compute_uv else (torch.zeros_like(u), torch.zeros_like(vh.mH))

    def backward(grad_u: Tensor | None, grad_s: Tensor | None, grad_v: Tensor | None):
        for_vh: Tensor | None = None
        for_u: Tensor | None = None
        if compute_uv:
            for_u = grad_u
            if grad_v is not None:
                for_vh = grad_v.mH
        return svd_back(for_u, grad_s, for_vh, u, s, vh), None, None

    return first, s, last, backward


@table.gradient("linalg_svdvals")
def svdvals_gradient(A: Tensor, driver: str | None):
    u, s, vh = torch.linalg_svd(A, False, driver=driver)

    def backward(grad: Tensor):
        return (u * torch.real(grad).unsqueeze(-2)) @ vh, None

    return s, backward


# ---- reflections

def reflector(input: Tensor, place: int) -> Tensor:
    """The vector of one reflection as a column: zeros, 1, and the elements below the diagonal."""
    rows = torch.arange(input.size(-2))
    column = input.select(-1, place)
    return torch.where(rows > place, column, (rows == place).to(input.dtype)).unsqueeze(-1)


@table.gradient("linalg_householder_product orgqr")
def householder_product_gradient(input: Tensor, tau: Tensor):
    result = torch.linalg_householder_product(input, tau)

    def backward(grad: Tensor):
        count = tau.size(-1)
        product = torch.eye(input.size(-2), dtype=input.dtype).narrow(-1, 0, input.size(-1)).expand_as(input)
        products: list[Tensor] = []     # behind each reflection, from the last to the first
        for back in range(count):
            products.append(product)
            place = count - 1 - back
            vector = reflector(input, place)
            product = product - tau.narrow(-1, place, 1).unsqueeze(-1) * (vector @ (vector.mH @ product))
        slope = grad
        for_input = torch.zeros_like(input)
        columns: list[Tensor] = []
        factors: list[Tensor] = []
        for place in range(count):
            vector = reflector(input, place)
            behind = products[count - 1 - place]
            factor = tau.narrow(-1, place, 1).unsqueeze(-1)
            along = vector.mH @ slope
            across = vector.mH @ behind
            factors.append(-(along @ across.mH).squeeze(-1))
            columns.append(-(factor.conj() * (slope @ across.mH)) - factor * (behind @ along.mH))
            slope = slope - factor.conj() * (vector @ along)
        if count > 0:
            width = input.size(-1) - count
            for_input = torch.constant_pad_nd(torch.cat(columns, -1), [0, width], 0).tril(-1)
            return for_input, torch.cat(factors, -1)
        return for_input, torch.zeros_like(tau)

    return result, backward


def reflect_back(grad: Tensor, reflectors: Tensor, tau: Tensor, x: Tensor, reverse: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of a product of reflections times x, for reflectors, tau and x. `reverse`: of the adjoint of the product."""
    count = tau.size(-1)
    states: list[Tensor] = []       # the operands of the reflections, in order
    state = x
    for step in range(count):
        states.append(state)
        place = step if reverse else count - 1 - step
        vector = reflector(reflectors, place)
        factor = tau.narrow(-1, place, 1).unsqueeze(-1)
        if reverse:
            factor = factor.conj()
        state = state - factor * (vector @ (vector.mH @ state))
    slope = grad
    for_reflectors = torch.zeros_like(reflectors)
    for_tau = torch.zeros_like(tau)
    for back in range(count):
        step = count - 1 - back
        place = step if reverse else count - 1 - step
        vector = reflector(reflectors, place)
        factor = tau.narrow(-1, place, 1).unsqueeze(-1)
        if reverse:
            factor = factor.conj()
        along = vector.mH @ slope
        across = vector.mH @ states[step]
        for_factor = -(along @ across.mH).squeeze(-1)
        column = -(factor.conj() * (slope @ across.mH)) - factor * (states[step] @ along.mH)
        for_tau = for_tau + torch.constant_pad_nd(for_factor.conj() if reverse else for_factor, [place, count - 1 - place], 0)
        for_reflectors = for_reflectors + torch.constant_pad_nd(column, [place, reflectors.size(-1) - 1 - place], 0)
        slope = slope - factor.conj() * (vector @ along)
    return for_reflectors.tril(-1), for_tau, slope


@table.derivative("ormqr")
def ormqr_gradient(grad, self, input2, input3, left, transpose):
    if left:
        for_self, for_tau, for_x = reflect_back(grad, self, input2, input3, transpose)
    else:       # x @ Q is the adjoint of Q's adjoint @ x's
        for_self, for_tau, turned = reflect_back(grad.mH, self, input2, input3.mH, not transpose)
        for_x = turned.mH
    return for_self, for_tau, for_x


table.unsupported("torch has none either", "geqrf linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve")
