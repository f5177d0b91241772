"""Gradients of distances."""
from __future__ import annotations

from irtool.ops.kernels.distance import table
from irtool.ops.tensor import Tensor, torch

CONJUGATED = True      # conj() is spelt out, as in torch


def norm_slope(x: Tensor, norm: Tensor, p: float) -> Tensor:
    """Slope of the p-norm along the last dimension, whose result `norm` has that dimension with size 1; 0 where the norm is 0; positions
    of a maximum, for -inf of a minimum, share."""
    if p == 0.0:
        return torch.zeros_like(x)
    if p == 1.0:
        return x.sgn()
    if p == 2.0:
        return x / norm.masked_fill(norm == 0, float("inf"))
    if p == float("inf") or p == float("-inf"):
        largest = ((x.abs() == norm) | ((x != x) & (norm != norm))).to(x.dtype)
        return x.sgn() * largest / largest.sum([-1], True)
    if p < 1.0:
        return torch.where(x == 0, torch.zeros_like(x), x.sgn() * x.abs().pow(p - 1)) * norm.pow(1 - p)
    if p < 2.0:
        return (x.sgn() * x.abs().pow(p - 1) / norm.pow(p - 1)).masked_fill(norm == 0, 0).masked_fill((x == 0) & (norm == norm), 0)
    return (x * x.abs().pow(p - 2) / norm.pow(p - 1)).masked_fill(norm == 0, 0)


def distance_slope(x: Tensor, norm: Tensor, p: float) -> Tensor:
    """The same as torch's kernels of cdist and pdist give it: every position of a maximum has all of it, a difference of nan has nan."""
    if p == 1.0:
        return x.sgn().masked_fill(x != x, float("nan"))
    if p == float("inf"):
        below = x.abs() - norm
        return (x.sgn() * (below == 0)).masked_fill(below != below, float("nan"))
    slope = norm_slope(x, norm, p)
    return slope.masked_fill(x == 0, 0) if p < 1.0 else slope


@table.derivative("pairwise_distance")
def pairwise_distance_gradient(grad, x1, x2, p, eps, keepdim, result):
    difference = x1 - x2 + eps
    real = torch.real(grad)
    slope = norm_slope(difference, result if keepdim else result.unsqueeze(-1), p) * (real if keepdim else real.unsqueeze(-1))
    has_slope = p != 0.0        # else it counts what is not 0
    return slope.sum_to_size(x1.size()) if has_slope else None, (-slope).sum_to_size(x2.size()) if has_slope else None


@table.derivative("dist")
def dist_gradient(grad, self, other, p, result):
    difference = self - other
    slope = torch.real(grad) * norm_slope(difference.flatten(), result.unsqueeze(0), float(p)).reshape(difference.size())
    return slope.sum_to_size(self.size()), (-slope).sum_to_size(other.size())


def at_least(norm: Tensor, eps: float) -> Tensor:
    """eps where the norm is less. It moves with the norm there, too: torch raises norms where gradients are off."""
    return torch.where(norm >= eps, norm, norm - norm.detach() + eps)


@table.derivative("cosine_similarity")
def cosine_similarity_gradient(grad, x1, x2, dim, eps):
    wide = torch.broadcast_tensors([x1.type_as(grad), x2.type_as(grad)])        # one may be of whole numbers
    left, right = wide[0], wide[1]
    one = torch.linalg_vector_norm(left, 2, [dim], True)
    two = torch.linalg_vector_norm(right, 2, [dim], True)
    first, second = at_least(one, eps), at_least(two, eps)
    unit, other = left / first, right / second      # products of these fit half precision
    cosine = (unit * other).sum([dim], True)
    slope = grad.unsqueeze(dim)
    for_one = slope * ((other - cosine * (left / one.masked_fill(one == 0, float("inf")))) / first)
    for_two = slope * ((unit - cosine * (right / two.masked_fill(two == 0, float("inf")))) / second)
    return for_one.sum_to_size(x1.size()), for_two.sum_to_size(x2.size())


@table.derivative("cdist _cdist_forward")
def cdist_gradient(grad, x1, x2, p, result):
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    slope = grad.unsqueeze(-1) * distance_slope(difference, result.unsqueeze(-1), p)
    return slope.sum([-2]).sum_to_size(x1.size()), -slope.sum([-3]).sum_to_size(x2.size())


@table.derivative("_euclidean_dist")
def euclidean_dist_gradient(grad, x1, x2, result):
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    slope = grad.unsqueeze(-1) * norm_slope(difference, result.unsqueeze(-1), 2.0)
    return slope.sum([-2]).sum_to_size(x1.size()), -slope.sum([-3]).sum_to_size(x2.size())


@table.derivative("pdist _pdist_forward")
def pdist_gradient(grad, self, p, result):
    pairs = torch.triu_indices(self.size(0), self.size(0), 1)
    first, second = pairs.select(0, 0), pairs.select(0, 1)
    difference = self.index_select(0, first) - self.index_select(0, second)
    slope = grad.unsqueeze(-1) * distance_slope(difference, result.unsqueeze(-1), p)
    return torch.zeros_like(self).index_add(0, first, slope).index_add(0, second, -slope)


@table.derivative("renorm")
def renorm_gradient(grad, self, p, dim, maxnorm):
    moved = self.transpose(0, dim)
    rows = moved.flatten(1)
    grads = grad.transpose(0, dim).flatten(1)
    norm = torch.linalg_vector_norm(rows, p, [1], True)
    over = norm > maxnorm
    factor = (norm + 1e-7).reciprocal() * maxnorm
    through = torch.real(grads * rows.conj()).sum([1], True) * factor / (norm + 1e-7)
    scaled = grads * factor - through * norm_slope(rows, norm, float(p))
    return torch.where(over, scaled, grads).reshape(moved.size()).transpose(0, dim)
