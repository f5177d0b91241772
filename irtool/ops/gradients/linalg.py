"""Gradients of linear algebra. Products use the conjugate transpose (mH), as torch's convention for complex numbers asks."""
from __future__ import annotations

from irtool.ops.kernels.linalg import table
from irtool.ops.tensor import Tensor, torch

CONJUGATED = True

# ---- inverses and determinants

@table.derivative("linalg_inv inverse")
def inv_gradient(grad, result):
    adjoint = result.mH
    return -(adjoint @ grad @ adjoint)


@table.derivative("linalg_inv_ex")
def inv_ex_gradient(grad, inverse):
    adjoint = inverse.mH
    return -(adjoint @ grad @ adjoint)


def det_slope(A: Tensor, det: Tensor) -> Tensor:
    """The matrix of cofactors: from the inverse, or from singular values if there is no inverse."""
    if A.size(-1) == 0:
        return torch.zeros_like(A)
    if bool((det == 0).any()):
        u, s, vh = torch.linalg_svd(A, False)
        others = torch.ones_like(s).unsqueeze(-1).expand_as(A.abs()) * s.unsqueeze(-2)
        others = others - torch.diag_embed(s) + torch.diag_embed(torch.ones_like(s))
        sign = (torch.linalg_det(u) * torch.linalg_det(vh)).conj()
        return sign.unsqueeze(-1).unsqueeze(-1) * ((u * others.prod(dim=-1).unsqueeze(-2)) @ vh)
    # a trace, and a batch of which some have no inverse, compute both branches, and take what is right at each place
    regular = torch.where((det == 0).unsqueeze(-1).unsqueeze(-1), torch.eye(A.size(-1), dtype=A.dtype, device=A.device), A)
    inverse, _ = torch.linalg_inv_ex(regular)
    return inverse.mH * det.conj().unsqueeze(-1).unsqueeze(-1)


table.derivative("linalg_det det _linalg_det", lambda grad, A, result: grad.unsqueeze(-1).unsqueeze(-1) * det_slope(A, result))


def log_slope(A: Tensor, logabsdet: Tensor) -> Tensor:
    """The gradient of the logarithm of a determinant; of a singular matrix infinities, by a division by zero, as in torch."""
    singular = (logabsdet == float("-inf")).unsqueeze(-1).unsqueeze(-1)
    unit = torch.diag_embed(torch.ones_like(torch.diagonal(A, 0, -2, -1)))
    slope = torch.linalg_inv(torch.where(singular, unit, A)).mH
    if bool(singular.any()):
        lu, pivots, _ = torch.linalg_lu_factor_ex(A if A.is_complex() else A.mT)        # the signs depend on which is taken apart
        slope = torch.where(singular, torch.linalg_lu_solve(lu, pivots, unit, adjoint=A.is_complex()), slope)
    return slope


def slogdet_back(A: Tensor, sign: Tensor, logabsdet: Tensor, grad_sign: Tensor | None, grad_log: Tensor | None) -> Tensor:
    """Gradient of slogdet; the sign of a real determinant does not move."""
    scale = torch.zeros_like(sign)
    if grad_log is not None:
        scale = scale + grad_log
    if grad_sign is not None and A.is_complex():
        turn = torch.imag(sign.conj() * grad_sign)
        scale = scale + torch.complex(torch.zeros_like(turn), turn)
    return scale.unsqueeze(-1).unsqueeze(-1) * log_slope(A, logabsdet)


table.derivative("linalg_slogdet slogdet _linalg_slogdet", lambda grad_sign, grad_log, A, sign, logabsdet: slogdet_back(
    A, sign, logabsdet, grad_sign, grad_log))


@table.derivative("logdet")
def logdet_gradient(grad, self, result):
    if not self.is_complex():       # nan where the determinant is negative: no gradient flows there
        grad = torch.where(torch.linalg_det(self) < 0, torch.zeros_like(grad), grad)
    return grad.unsqueeze(-1).unsqueeze(-1) * log_slope(self, torch.real(result))


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


table.derivative("linalg_solve linalg_solve_ex _linalg_solve_ex", lambda grad, A, B, left, result: solve_back(grad, A, B, result, left))


def triangle(x: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """The part of a matrix that a triangular solver reads."""
    if upper:
        return x.triu(1 if unitriangular else 0)
    return x.tril(-1 if unitriangular else 0)


@table.derivative("linalg_solve_triangular")
def solve_triangular_gradient(grad, self, B, upper, left, unitriangular, result):
    for_b = torch.linalg_solve_triangular(self.mH, grad, upper=not upper, left=left, unitriangular=unitriangular)
    whole = -(for_b @ result.mH) if left else -(result.mH @ for_b)
    return triangle(whole, upper, unitriangular).sum_to_size(self.size()), for_b.sum_to_size(B.size())


@table.derivative("triangular_solve")
def old_triangular_solve_gradient(grad, grad_copy, self, A, upper, transpose, unitriangular, solution):
    for_b = torch.zeros_like(self)
    for_a = torch.zeros_like(A)
    if grad is not None:
        wide = torch.triangular_solve(grad, A.conj(), upper, not transpose, unitriangular)[0]
        whole = -(solution.conj() @ wide.mT) if transpose else -(wide @ solution.mH)
        for_a = triangle(whole, upper, unitriangular).sum_to_size(A.size())
        for_b = wide.sum_to_size(self.size())
    if grad_copy is not None:
        for_a = for_a + grad_copy.sum_to_size(A.size())
    return for_b, for_a


@table.derivative("cholesky_solve")
def cholesky_solve_gradient(grad, self, input2, upper, result):
    for_b = torch.cholesky_solve(grad, input2, upper)
    common = for_b @ result.mH
    common = common + common.mH
    for_factor = -(input2 @ common) if upper else -(common @ input2)
    return for_b.sum_to_size(self.size()), for_factor.sum_to_size(input2.size())


@table.derivative("cholesky_inverse")
def cholesky_inverse_gradient(grad, self, upper, result):
    common = result @ (grad + grad.mH) @ result
    return -(self @ common) if upper else -(common @ self)


def cholesky_back(grad: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """Gradient of the Cholesky factor, symmetric."""
    lower, grads = (factor.mH, grad.mH) if upper else (factor, grad)
    part = lower.mH @ grads
    part = (part.tril() + part.tril(-1).mH) * 0.5
    part = torch.linalg_solve_triangular(lower.mH, part, upper=True, left=True)
    return torch.linalg_solve_triangular(lower, part, upper=False, left=False)


table.derivative("linalg_cholesky aten::cholesky", lambda grad, upper, result: cholesky_back(grad, result, upper))
table.derivative("linalg_cholesky_ex", lambda grad, upper, L: cholesky_back(grad, L, upper))


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


@table.derivative("linalg_lu_solve")
def lu_solve_gradient(grad, LU, pivots, B, left, adjoint, result):
    for_factors, for_b = lu_solve_back(grad, LU, pivots, B, result, left, adjoint)
    return for_factors, None, for_b


@table.derivative("lu_solve")
def old_lu_solve_gradient(grad, self, LU_data, LU_pivots, result):
    for_factors, for_b = lu_solve_back(grad, LU_data, LU_pivots, self, result, True, False)
    return for_b, for_factors, None


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


table.derivative("linalg_pinv.atol_rtol_float aten::linalg_pinv pinverse", lambda grad, self, result: pinv_back(grad, result, self))
table.derivative("linalg_pinv.atol_rtol_tensor", lambda grad, self, self_size, result: (
    pinv_back(grad, result, self).sum_to_size(self_size), None, None))
table.derivative("linalg_pinv.rcond_tensor", lambda grad, self, self_size, result: (
    pinv_back(grad, result, self).sum_to_size(self_size), None))


# ---- powers, products, tensors as matrices

@table.derivative("linalg_matrix_power matrix_power")
def matrix_power_gradient(grad, self, n):
    base = torch.linalg_inv(self) if n < 0 else self
    total = torch.zeros_like(self)
    for k in range(abs(n)):
        total = total + torch.linalg_matrix_power(base, k).mH @ grad @ torch.linalg_matrix_power(base, abs(n) - 1 - k).mH
    if n < 0:
        total = -(base.mH @ total @ base.mH)
    return total


@table.derivative("linalg_matrix_exp matrix_exp")
def matrix_exp_gradient(grad, self):
    extent = self.size(-1)
    adjoint = self.mH
    above = torch.cat([adjoint, grad], -1)
    below = torch.cat([torch.zeros_like(adjoint), adjoint], -1)
    whole = torch.linalg_matrix_exp(torch.cat([above, below], -2))
    return whole.narrow(-2, 0, extent).narrow(-1, extent, extent)


def vander_slope(x: Tensor, count: int) -> Tensor:
    """Derivatives of the powers 0 to count - 1."""
    zero = torch.zeros_like(x).unsqueeze(-1)
    if count < 3:
        return torch.cat([zero, zero + 1], -1).narrow(-1, 0, count)
    lower = torch.linalg_vander(x, N=count - 1).reshape(x.size() + [count - 1])     # a complex 0 to the power of 0 is nan in `pow`
    return torch.arange(count) * torch.cat([zero, lower], -1)


table.derivative("linalg_vander", lambda grad, x, result: (grad * vander_slope(x, result.size(-1)).conj()).sum([-1]).sum_to_size(x.size()))


@table.derivative("aten::vander")
def vander_gradient(grad, x, increasing, result):
    rising = grad if increasing else grad.flip([-1])
    return None if result.size(-1) < 2 else (rising * vander_slope(x, result.size(-1)).conj()).sum([-1]).sum_to_size(x.size())


@table.derivative("linalg_vecdot")
def vecdot_gradient(grad, x, y, dim):
    each = grad.unsqueeze(dim) if grad.dim() > 0 else grad      # for vectors torch does not look at dim
    wide_x, wide_y = torch.broadcast_tensors([x, y])
    return (each.conj() * wide_y).sum_to_size(x.size()), (each * wide_x).sum_to_size(y.size())


@table.derivative("linalg_cross")
def linalg_cross_gradient(grad, self, other, dim):
    return (torch.linalg_cross(other.conj(), grad, dim=dim).sum_to_size(self.size()),
            torch.linalg_cross(grad, self.conj(), dim=dim).sum_to_size(other.size()))


@table.derivative("aten::cross")
def cross_gradient(grad, self, other, dim):
    for_self = torch.cross(other.conj(), grad, dim)
    for_other = torch.cross(grad, self.conj(), dim)
    return for_self.sum_to_size(self.size()), for_other.sum_to_size(other.size())


@table.derivative("linalg_tensorinv")
def tensorinv_gradient(grad, self, ind, result):
    sizes = self.size()
    extent = 1
    for size in sizes[:ind]:
        extent *= size
    adjoint = result.reshape([extent, extent]).mH
    return -(adjoint @ grad.reshape([extent, extent]) @ adjoint).reshape(sizes)


@table.derivative("linalg_tensorsolve")
def tensorsolve_gradient(grad, self, other, dims, result):
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
    return for_moved.permute(back), for_other.reshape(other.size())


@table.derivative("linalg_lstsq")
def lstsq_gradient(grad, grad_residuals, self, b, solution, residuals):
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
    return for_a.sum_to_size(self.size()), for_b.sum_to_size(b.size())


table.no_gradient("a rank is a whole number", "linalg_matrix_rank")
table.no_gradient("it gives nothing", "_linalg_check_errors")


table.no_gradient_for("atol rtol", "torch has none either", "linalg_pinv.atol_rtol_tensor")
table.no_gradient_for("rcond", "torch has none either", "linalg_pinv.rcond_tensor")
