"""Gradients of linear algebra. Products use the conjugate transpose (mH), as torch's convention for complex numbers asks."""
from __future__ import annotations

from irtool.ops.kernels.linalg import table
from irtool.ops.tensor import Tensor, torch

CONJUGATED = True

# ---- inverses and determinants

@table.gradient("linalg_inv inverse")
def inv_gradient(A: Tensor):
    result = torch.linalg_inv(A)

    def backward(grad: Tensor):
        adjoint = result.mH
        return -(adjoint @ grad @ adjoint)

    return result, backward


@table.gradient("linalg_inv_ex")
def inv_ex_gradient(A: Tensor, check_errors: bool):
    result, info = torch.linalg_inv_ex(A, check_errors=check_errors)

    def backward(grad: Tensor):
        adjoint = result.mH
        return -(adjoint @ grad @ adjoint), None

    return result, info, backward


def det_slope(A: Tensor, det: Tensor) -> Tensor:
    """The matrix of cofactors: by the inverse, or by singular values where there is none."""
    if A.size(-1) == 0:
        return torch.zeros_like(A)
    if bool((det == 0).any()):
        u, s, vh = torch.linalg_svd(A, False)
        others = torch.ones_like(s).unsqueeze(-1).expand_as(A.abs()) * s.unsqueeze(-2)
        others = others - torch.diag_embed(s) + torch.diag_embed(torch.ones_like(s))
        sign = (torch.linalg_det(u) * torch.linalg_det(vh)).conj()
        return sign.unsqueeze(-1).unsqueeze(-1) * ((u * others.prod(dim=-1).unsqueeze(-2)) @ vh)
    return torch.linalg_inv(A).mH * det.conj().unsqueeze(-1).unsqueeze(-1)


@table.gradient("linalg_det det")
def det_gradient(A: Tensor):
    result = torch.linalg_det(A)

    def backward(grad: Tensor):
        return grad.unsqueeze(-1).unsqueeze(-1) * det_slope(A, result)

    return result, backward


@table.gradient("_linalg_det")
def det_with_factors_gradient(A: Tensor):
    result, factors, pivots = torch._linalg_det(A)

    def backward(grad: Tensor):
        return grad.unsqueeze(-1).unsqueeze(-1) * det_slope(A, result)

    return result, factors, pivots, backward


def slogdet_back(A: Tensor, sign: Tensor, grad_sign: Tensor | None, grad_log: Tensor | None) -> Tensor:
    """Gradient of slogdet; the sign of a real determinant does not move."""
    scale = torch.zeros_like(sign)
    if grad_log is not None:
        scale = scale + grad_log
    if grad_sign is not None and A.is_complex():
        turn = torch.imag(sign.conj() * grad_sign)
        scale = scale + torch.complex(torch.zeros_like(turn), turn)
    return scale.unsqueeze(-1).unsqueeze(-1) * torch.linalg_inv(A).mH


@table.gradient("linalg_slogdet slogdet")
def slogdet_gradient(A: Tensor):
    sign, logabsdet = torch.linalg_slogdet(A)

    def backward(grad_sign: Tensor | None, grad_log: Tensor | None):
        return slogdet_back(A, sign, grad_sign, grad_log)

    return sign, logabsdet, backward


@table.gradient("_linalg_slogdet")
def slogdet_with_factors_gradient(A: Tensor):
    sign, logabsdet, factors, pivots = torch._linalg_slogdet(A)

    def backward(grad_sign: Tensor | None, grad_log: Tensor | None):
        return slogdet_back(A, sign, grad_sign, grad_log)

    return sign, logabsdet, factors, pivots, backward


@table.gradient("logdet")
def logdet_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad.unsqueeze(-1).unsqueeze(-1) * torch.linalg_inv(self).mH

    return torch.logdet(self), backward


# ---- systems of equations

def solve_back(grad: Tensor, A: Tensor, B: Tensor, result: Tensor, left: bool) -> tuple[Tensor, Tensor]:
    """Gradients of linalg_solve for A and B."""
    vector = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.size() == A.size()[:-1])
    if vector:
        grad = grad.unsqueeze(-1)
        result = result.unsqueeze(-1)
    for_b = torch.linalg_solve(A.mH, grad, left=left)
    for_a = -(for_b @ result.mH) if left else -(result.mH @ for_b)
    if vector:
        for_b = for_b.squeeze(-1)
    return for_a.sum_to_size(A.size()), for_b.sum_to_size(B.size())


@table.gradient("linalg_solve")
def solve_gradient(A: Tensor, B: Tensor, left: bool):
    result = torch.linalg_solve(A, B, left=left)

    def backward(grad: Tensor):
        for_a, for_b = solve_back(grad, A, B, result, left)
        return for_a, for_b, None

    return result, backward


@table.gradient("linalg_solve_ex")
def solve_ex_gradient(A: Tensor, B: Tensor, left: bool, check_errors: bool):
    result, info = torch.linalg_solve_ex(A, B, left=left, check_errors=check_errors)

    def backward(grad: Tensor):
        for_a, for_b = solve_back(grad, A, B, result, left)
        return for_a, for_b, None, None

    return result, info, backward


@table.gradient("_linalg_solve_ex")
def solve_with_factors_gradient(A: Tensor, B: Tensor, left: bool, check_errors: bool):
    result, factors, pivots, info = torch._linalg_solve_ex(A, B, left=left, check_errors=check_errors)

    def backward(grad: Tensor):
        for_a, for_b = solve_back(grad, A, B, result, left)
        return for_a, for_b, None, None

    return result, factors, pivots, info, backward


def triangle(x: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """The part of a matrix that a triangular solver reads."""
    if upper:
        return x.triu(1 if unitriangular else 0)
    return x.tril(-1 if unitriangular else 0)


@table.gradient("linalg_solve_triangular")
def solve_triangular_gradient(self: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool):
    result = torch.linalg_solve_triangular(self, B, upper=upper, left=left, unitriangular=unitriangular)

    def backward(grad: Tensor):
        for_b = torch.linalg_solve_triangular(self.mH, grad, upper=not upper, left=left, unitriangular=unitriangular)
        whole = -(for_b @ result.mH) if left else -(result.mH @ for_b)
        return triangle(whole, upper, unitriangular).sum_to_size(self.size()), for_b.sum_to_size(B.size()), None, None, None

    return result, backward


@table.gradient("triangular_solve")
def old_triangular_solve_gradient(self: Tensor, A: Tensor, upper: bool, transpose: bool, unitriangular: bool):
    result, copied = torch.triangular_solve(self, A, upper, transpose, unitriangular)

    def backward(grad: Tensor | None, grad_copy: Tensor | None):
        for_b = torch.zeros_like(self)
        for_a = torch.zeros_like(A)
        if grad is not None:
            wide = torch.triangular_solve(grad, A.conj(), upper, not transpose, unitriangular)[0]
            whole = -(result.conj() @ wide.mT) if transpose else -(wide @ result.mH)
            for_a = triangle(whole, upper, unitriangular).sum_to_size(A.size())
            for_b = wide.sum_to_size(self.size())
        if grad_copy is not None:
            for_a = for_a + grad_copy.sum_to_size(A.size())
        return for_b, for_a, None, None, None

    return result, copied, backward


@table.gradient("cholesky_solve")
def cholesky_solve_gradient(self: Tensor, input2: Tensor, upper: bool):
    result = torch.cholesky_solve(self, input2, upper)

    def backward(grad: Tensor):
        for_b = torch.cholesky_solve(grad, input2, upper)
        common = for_b @ result.mH
        common = common + common.mH
        for_factor = -(input2 @ common) if upper else -(common @ input2)
        return for_b.sum_to_size(self.size()), for_factor.sum_to_size(input2.size()), None

    return result, backward


@table.gradient("cholesky_inverse")
def cholesky_inverse_gradient(self: Tensor, upper: bool):
    result = torch.cholesky_inverse(self, upper)

    def backward(grad: Tensor):
        common = result @ (grad + grad.mH) @ result
        return -(self @ common) if upper else -(common @ self), None

    return result, backward


def cholesky_back(grad: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """Gradient of the Cholesky factor, symmetric."""
    lower, grads = (factor.mH, grad.mH) if upper else (factor, grad)
    part = lower.mH @ grads
    part = (part.tril() + part.tril(-1).mH) * 0.5
    part = torch.linalg_solve_triangular(lower.mH, part, upper=True, left=True)
    return torch.linalg_solve_triangular(lower, part, upper=False, left=False)


@table.gradient("linalg_cholesky")
def cholesky_gradient(self: Tensor, upper: bool):
    result = torch.linalg_cholesky(self, upper=upper)

    def backward(grad: Tensor):
        return cholesky_back(grad, result, upper), None

    return result, backward


@table.gradient("aten::cholesky")
def old_cholesky_gradient(self: Tensor, upper: bool):
    result = torch.cholesky(self, upper)

    def backward(grad: Tensor):
        return cholesky_back(grad, result, upper), None

    return result, backward


@table.gradient("linalg_cholesky_ex")
def cholesky_ex_gradient(self: Tensor, upper: bool, check_errors: bool):
    result, info = torch.linalg_cholesky_ex(self, upper=upper, check_errors=check_errors)

    def backward(grad: Tensor):
        return cholesky_back(grad, result, upper), None, None

    return result, info, backward


def lu_solve_back(grad: Tensor, factors: Tensor, pivots: Tensor, B: Tensor, result: Tensor, left: bool,
                  adjoint: bool) -> tuple[Tensor, Tensor]:
    """Gradients of linalg_lu_solve for the packed factors and B."""
    for_b = torch.linalg_lu_solve(factors, pivots, grad, left=left, adjoint=not adjoint)
    if left:
        for_a = -(result @ for_b.mH) if adjoint else -(for_b @ result.mH)
    else:
        for_a = -(for_b.mH @ result) if adjoint else -(result.mH @ for_b)
    permutation, lower, upper = torch.lu_unpack(factors, pivots)
    moved = permutation.mH @ for_a
    for_factors = (moved @ upper.mH).tril(-1) + (lower.mH @ moved).triu()
    return for_factors.sum_to_size(factors.size()), for_b.sum_to_size(B.size())


@table.gradient("linalg_lu_solve")
def lu_solve_gradient(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool):
    result = torch.linalg_lu_solve(LU, pivots, B, left=left, adjoint=adjoint)

    def backward(grad: Tensor):
        for_factors, for_b = lu_solve_back(grad, LU, pivots, B, result, left, adjoint)
        return for_factors, None, for_b, None, None

    return result, backward


@table.gradient("lu_solve")
def old_lu_solve_gradient(self: Tensor, LU_data: Tensor, LU_pivots: Tensor):
    result = torch.lu_solve(self, LU_data, LU_pivots)

    def backward(grad: Tensor):
        for_factors, for_b = lu_solve_back(grad, LU_data, LU_pivots, self, result, True, False)
        return for_b, for_factors, None

    return result, backward


# ---- pseudo-inverses and least squares

def pinv_back(grad: Tensor, result: Tensor, A: Tensor) -> Tensor:
    """Gradient of the pseudo-inverse (Golub and Pereyra)."""
    adjoint, flipped = result.mH, grad.mH
    if A.size(-2) <= A.size(-1):
        k = flipped @ result
        right = k @ adjoint
        return -(result @ k).mH + right - (A @ result) @ right + (adjoint @ result) @ (flipped - k @ A)
    k = result @ flipped
    left = adjoint @ k
    return -(k @ result).mH + (flipped - A @ k) @ result @ adjoint + left - (left @ result) @ A


@table.gradient("linalg_pinv.atol_rtol_float")
def pinv_float_gradient(self: Tensor, atol: float | None, rtol: float | None, hermitian: bool):
    result = torch.linalg_pinv(self, atol=atol, rtol=rtol, hermitian=hermitian)

    def backward(grad: Tensor):
        return pinv_back(grad, result, self), None, None, None

    return result, backward


@table.gradient("linalg_pinv.atol_rtol_tensor")
def pinv_tensor_gradient(self: Tensor, atol: Tensor | None, rtol: Tensor | None, hermitian: bool):
    result = torch.linalg_pinv(self, atol=atol, rtol=rtol, hermitian=hermitian)

    def backward(grad: Tensor):
        return pinv_back(grad, result, self), None, None, None

    return result, backward


@table.gradient("aten::linalg_pinv")
def pinv_gradient(self: Tensor, rcond: float, hermitian: bool):
    result = torch.linalg_pinv(self, rcond, hermitian)

    def backward(grad: Tensor):
        return pinv_back(grad, result, self), None, None

    return result, backward


@table.gradient("linalg_pinv.rcond_tensor")
def pinv_rcond_gradient(self: Tensor, rcond: Tensor, hermitian: bool):
    result = torch.linalg_pinv(self, rcond, hermitian)

    def backward(grad: Tensor):
        return pinv_back(grad, result, self), None, None

    return result, backward


@table.gradient("pinverse")
def pinverse_gradient(self: Tensor, rcond: float):
    result = torch.pinverse(self, rcond)

    def backward(grad: Tensor):
        return pinv_back(grad, result, self), None

    return result, backward


# ---- powers, products, tensors as matrices

@table.gradient("linalg_matrix_power matrix_power")
def matrix_power_gradient(self: Tensor, n: int):
    def backward(grad: Tensor):
        base = torch.linalg_inv(self) if n < 0 else self
        total = torch.zeros_like(self)
        for k in range(abs(n)):
            total = total + torch.linalg_matrix_power(base, k).mH @ grad @ torch.linalg_matrix_power(base, abs(n) - 1 - k).mH
        if n < 0:
            total = -(base.mH @ total @ base.mH)
        return total, None

    return torch.linalg_matrix_power(self, n), backward


@table.gradient("linalg_matrix_exp matrix_exp")
def matrix_exp_gradient(self: Tensor):
    def backward(grad: Tensor):     # the exponential of [[A, g], [0, A]] has the derivative in its corner
        extent = self.size(-1)
        adjoint = self.mH
        above = torch.cat([adjoint, grad], -1)
        below = torch.cat([torch.zeros_like(adjoint), adjoint], -1)
        whole = torch.linalg_matrix_exp(torch.cat([above, below], -2))
        return whole.narrow(-2, 0, extent).narrow(-1, extent, extent)

    return torch.linalg_matrix_exp(self), backward


def vander_slope(x: Tensor, count: int) -> Tensor:
    """Derivatives of the powers 0 to count - 1."""
    powers = torch.arange(count)
    return powers * x.unsqueeze(-1).pow((powers - 1).clamp_min(0))


@table.gradient("linalg_vander")
def linalg_vander_gradient(x: Tensor, N: int | None):
    result = torch.linalg_vander(x, N=N)

    def backward(grad: Tensor):
        return (grad * vander_slope(x, result.size(-1)).conj()).sum([-1]).sum_to_size(x.size()), None

    return result, backward


@table.gradient("aten::vander")
def vander_gradient(x: Tensor, N: int | None, increasing: bool):
    result = torch.vander(x, N, increasing)

    def backward(grad: Tensor):
        rising = grad if increasing else grad.flip([-1])
        return (rising * vander_slope(x, result.size(-1)).conj()).sum([-1]).sum_to_size(x.size()), None, None

    return result, backward


@table.gradient("linalg_vecdot")
def vecdot_gradient(x: Tensor, y: Tensor, dim: int):
    def backward(grad: Tensor):
        each = grad.unsqueeze(dim)
        return (each.conj() * y).sum_to_size(x.size()), (each * x).sum_to_size(y.size()), None

    return torch.linalg_vecdot(x, y, dim=dim), backward


@table.gradient("linalg_cross")
def linalg_cross_gradient(self: Tensor, other: Tensor, dim: int):
    def backward(grad: Tensor):
        return (torch.linalg_cross(other.conj(), grad, dim=dim).sum_to_size(self.size()),
                torch.linalg_cross(grad, self.conj(), dim=dim).sum_to_size(other.size()), None)

    return torch.linalg_cross(self, other, dim=dim), backward


@table.gradient("aten::cross")
def cross_gradient(self: Tensor, other: Tensor, dim: int | None):
    def backward(grad: Tensor):
        for_self = torch.cross(other.conj(), grad, dim)
        for_other = torch.cross(grad, self.conj(), dim)
        return for_self.sum_to_size(self.size()), for_other.sum_to_size(other.size()), None

    return torch.cross(self, other, dim), backward


@table.gradient("linalg_tensorinv")
def tensorinv_gradient(self: Tensor, ind: int):
    result = torch.linalg_tensorinv(self, ind)

    def backward(grad: Tensor):
        sizes = self.size()
        extent = 1
        for size in sizes[:ind]:
            extent *= size
        adjoint = result.reshape([extent, extent]).mH
        return -(adjoint @ grad.reshape([extent, extent]) @ adjoint).reshape(sizes), None

    return result, backward


@table.gradient("linalg_tensorsolve")
def tensorsolve_gradient(self: Tensor, other: Tensor, dims: list[int] | None):
    result = torch.linalg_tensorsolve(self, other, dims)

    def backward(grad: Tensor):
        rank = self.dim()
        last: list[int] = []
        if dims is not None:
            last = [dim if dim >= 0 else dim + rank for dim in dims]
        order: list[int] = []
        for dim in range(rank):
            if dim not in last:
                order.append(dim)
        order = order + last
        moved = self.permute(order)
        extent = other.numel()
        for_other = torch.linalg_solve(moved.reshape([extent, extent]).mH, grad.reshape([-1]))
        for_moved = -(for_other.unsqueeze(1) * result.reshape([1, -1]).conj()).reshape(moved.size())
        back = [0 for dim in order]
        for place, dim in enumerate(order):
            back[dim] = place
        return for_moved.permute(back), for_other.reshape(other.size()), None

    return result, backward


@table.gradient("linalg_lstsq")
def lstsq_gradient(self: Tensor, b: Tensor, rcond: float | None, driver: str | None):
    solution, residuals, rank, singular_values = torch.linalg_lstsq(self, b, rcond, driver=driver)

    def backward(grad: Tensor | None, grad_residuals: Tensor | None):
        inverse = torch.linalg_pinv(self)
        vector = b.dim() == 1 or (b.dim() == self.dim() - 1 and b.size() == self.size()[:-1])
        right = b.unsqueeze(-1) if vector else b
        for_a = torch.zeros_like(self)
        for_b = torch.zeros_like(right)
        if grad is not None:
            slope = grad.unsqueeze(-1) if vector else grad
            for_a = pinv_back(slope @ right.mH, inverse, self)
            for_b = inverse.mH @ slope
        if grad_residuals is not None and residuals.numel() > 0:
            columns = solution.unsqueeze(-1) if vector else solution
            slope = 2 * grad_residuals.reshape(right.size()[:-2] + [1, right.size(-1)]) * (self @ columns - right)
            for_a = for_a + slope @ columns.mH
            for_b = for_b - slope
        if vector:
            for_b = for_b.squeeze(-1)
        return for_a.sum_to_size(self.size()), for_b.sum_to_size(b.size()), None, None

    return solution, residuals, rank, singular_values, backward


table.no_gradient("a rank is a whole number", "linalg_matrix_rank")
table.no_gradient("it gives nothing", "_linalg_check_errors")
