"""Gradients of norms of matrices; equal largest singular values or sums share the gradient."""
from __future__ import annotations

from irtool.ops.kernels import statistics
from irtool.ops.kernels.matrix_norm import table
from irtool.ops.tensor import Tensor, number, torch

CONJUGATED = True      # mH and conj() are spelt out, as in torch


def extreme_shares(values: Tensor, dim: int, largest: bool) -> Tensor:
    """One over the number of extreme values at their places, 0 elsewhere."""
    extreme = values.amax([dim], True) if largest else values.amin([dim], True)
    mask = (values == extreme).to(values.dtype)
    return mask / mask.sum([dim], True)


def frobenius_slope(x: Tensor) -> Tensor:
    """x / |x| over the last two dimensions, 0 at 0."""
    norm = torch.linalg_vector_norm(x, 2, [-2, -1], True)
    return x / norm.masked_fill(norm == 0, float("inf"))


def norm_slope_of_matrices(x: Tensor, order: float) -> Tensor:
    """Slope of a matrix norm with a numeric order over the last two dimensions."""
    if x.numel() == 0:
        return torch.zeros_like(x)
    if abs(order) == 2:
        u, s, vh = torch.linalg_svd(x, False)
        return (u * extreme_shares(s, -1, order > 0).unsqueeze(-2)) @ vh
    sums_over = -2 if abs(order) == 1 else -1
    sums = x.abs().sum([sums_over], True)
    return x.sgn() * extreme_shares(sums, -3 - sums_over, order > 0)


def nuclear_slope(x: Tensor) -> Tensor:
    """Slope of the sum of singular values."""
    u, s, vh = torch.linalg_svd(x, False)
    return u @ vh


def matrices(self: Tensor, dim: list[int]) -> Tensor:
    """The two dimensions last."""
    return self.movedim(dim, [-2, -1])


def put_back(slope: Tensor, grad: Tensor, dim: list[int], keepdim: bool) -> Tensor:
    """Slopes of matrices times the gradient of their norms, with the original order of dimensions."""
    real = torch.real(grad)
    each = real.movedim(dim, [-2, -1]) if keepdim else real.unsqueeze(-1).unsqueeze(-1)
    return (slope * each).movedim([-2, -1], dim)


@table.derivative("aten::linalg_matrix_norm")
def matrix_norm_gradient(grad, self, ord, dim, keepdim):
    slope = norm_slope_of_matrices(matrices(self.to(grad.dtype) if not self.is_complex() else self, dim), float(ord))
    return put_back(slope, grad, dim, keepdim)


@table.derivative("linalg_matrix_norm.str_ord")
def matrix_norm_by_name_gradient(grad, self, ord, dim, keepdim):
    x = matrices(self, dim)
    return put_back(nuclear_slope(x) if ord == "nuc" else frobenius_slope(x), grad, dim, keepdim)


def vector_slope(self: Tensor, order: float, dim: list[int] | None) -> Tensor:
    """Slope of a vector norm over some dimensions, or all."""
    chosen = dim if dim is not None else list(range(self.dim()))
    norm = torch.linalg_vector_norm(self, order, chosen, True)
    if order == 0:
        return torch.zeros_like(self)
    if order == 1:
        return self.sgn()
    if order == 2:
        return self / norm.masked_fill(norm == 0, float("inf"))
    if abs(order) == float("inf"):
        mask = (self.abs() == norm).to(norm.dtype)
        return self.sgn() * mask / mask.sum(chosen, True)
    if order < 2:
        return (self.sgn() * self.abs().pow(order - 1) / norm.pow(order - 1)).masked_fill(self == 0, 0)
    return (self * self.abs().pow(order - 2) / norm.pow(order - 1)).masked_fill(norm == 0, 0)


@table.gradient("aten::linalg_norm")
def norm_gradient(self: Tensor, ord: number | None, dim: list[int] | None, keepdim: bool, dtype: int | None):
    result = torch.linalg_norm(self, ord, dim, keepdim, dtype=dtype)

    def backward(grad: Tensor):
        of_matrices = False
        pair = [-2, -1]
        if dim is not None:
            of_matrices = len(dim) == 2 and ord is not None
            if len(dim) == 2:
                pair = dim
        else:
            of_matrices = self.dim() == 2 and ord is not None
        order = 2.0 if ord is None else float(ord)
        if of_matrices:
            return put_back(norm_slope_of_matrices(matrices(self, pair), order), grad, pair, keepdim), None, None, None, None
        each = torch.real(grad)
        if not keepdim and dim is not None and self.dim() > 0:
            shape = self.size()
            for place in dim:
                shape[place] = 1
            each = each.reshape(shape)
        return None if order == 0.0 else each * vector_slope(self, order, dim), None, None, None, None      # of order 0 it counts

    return result, backward


@table.derivative("linalg_norm.ord_str")
def norm_by_name_gradient(grad, self, ord, dim, keepdim):
    pair = dim if dim is not None else [-2, -1]
    x = matrices(self, pair)
    return put_back(nuclear_slope(x) if ord == "nuc" else frobenius_slope(x), grad, pair, keepdim)


# ---- nuclear norms under their old name

@statistics.table.gradient("aten::nuclear_norm")
def nuclear_norm_gradient(self: Tensor, keepdim: bool):
    def backward(grad: Tensor):
        return put_back(nuclear_slope(self), grad, [-2, -1], keepdim), None

    return torch.nuclear_norm(self, keepdim), backward


@statistics.table.gradient("nuclear_norm.dim")
def nuclear_norm_dims_gradient(self: Tensor, dim: list[int], keepdim: bool):
    def backward(grad: Tensor):
        return put_back(nuclear_slope(matrices(self, dim)), grad, dim, keepdim), None, None

    return torch.nuclear_norm(self, dim, keepdim), backward


# ---- condition numbers

def ratio_back(self: Tensor, grad: Tensor, is_inverted: bool) -> Tensor:
    """Gradient of the largest singular value over the smallest one, or the inverse of that."""
    u, s, vh = torch.linalg_svd(self, False)
    last = s.size(-1) - 1
    top, bottom = (s.narrow(-1, last, 1), s.narrow(-1, 0, 1)) if is_inverted else (s.narrow(-1, 0, 1), s.narrow(-1, last, 1))
    zero = s.new_zeros(s.size()[:-1] + [s.size(-1) - 1])
    for_top = grad.unsqueeze(-1) / bottom
    for_bottom = -(for_top * top / bottom)
    if is_inverted:
        for_values = torch.cat([for_bottom, zero], -1) + torch.cat([zero, for_top], -1)
    else:
        for_values = torch.cat([for_top, zero], -1) + torch.cat([zero, for_bottom], -1)
    return (u * for_values.unsqueeze(-2)) @ vh


def norms_back(grad: Tensor, inverse: Tensor, norm: Tensor, slope: Tensor, norm_of_inverse: Tensor, slope_of_inverse: Tensor) -> Tensor:
    """Gradient of the norm of a matrix times the norm of its inverse."""
    through = inverse.mH @ ((grad * norm).unsqueeze(-1).unsqueeze(-1) * slope_of_inverse) @ inverse.mH
    return (grad * norm_of_inverse).unsqueeze(-1).unsqueeze(-1) * slope - through


@table.gradient("aten::linalg_cond")
def cond_gradient(self: Tensor, p: number | None):
    def backward(grad: Tensor):
        if self.numel() == 0:
            return torch.zeros_like(self), None
        order = float(p) if p is not None else 2.0
        if abs(order) == 2:
            return ratio_back(self, grad, order < 0), None
        inverse = torch.linalg_inv(self)
        return norms_back(grad, inverse, torch.linalg_matrix_norm(self, order), norm_slope_of_matrices(self, order),
                          torch.linalg_matrix_norm(inverse, order), norm_slope_of_matrices(inverse, order)), None

    return torch.linalg_cond(self, p), backward


@table.derivative("linalg_cond.p_str")
def cond_by_name_gradient(grad, self, p):
    inverse = torch.linalg_inv(self)
    slope, slope_of_inverse = frobenius_slope(self), frobenius_slope(inverse)
    if p == "nuc":
        slope, slope_of_inverse = nuclear_slope(self), nuclear_slope(inverse)
    return norms_back(grad, inverse, torch.linalg_matrix_norm(self, p), slope, torch.linalg_matrix_norm(inverse, p), slope_of_inverse)
