"""Gradients of variances and norms. Where a standard deviation or a norm is 0, its gradient is 0."""
from __future__ import annotations

from irtool.ops.gradients.parts import ratio_or_zero, with_ones
from irtool.ops.kernels.statistics import table
from irtool.ops.tensor import Tensor, number, torch


def var_slope(self: Tensor, grad: Tensor, dim: list[int] | None, correction: number, keepdim: bool) -> Tensor:
    """The gradient of a variance. Of all elements with no degree of freedom left, torch has infinity and, at the mean, nan."""
    size = self.size()
    spread = torch.real(with_ones(grad, dim, keepdim, size))
    count = self.numel() // max(grad.numel(), 1)
    if (dim is None or self.dim() == 0) and count <= correction:
        slope = (spread * torch.where(self == self.mean(), float("nan"), float("inf"))).to(self.dtype)
    else:
        slope = spread * (self - self.mean(dim, True)).conj() * 2 / torch.scalar_tensor(count - correction, dtype=self.dtype)
    return slope


def std_slope(self: Tensor, grad: Tensor, result: Tensor, dim: list[int] | None, correction: number, keepdim: bool) -> Tensor:
    """The gradient of a standard deviation."""
    return var_slope(self, ratio_or_zero(torch.real(grad), result * 2), dim, correction, keepdim)


def known(correction: number | None) -> number:
    """The correction of the degrees of freedom, by default 1."""
    if correction is None:
        return 1
    return correction


table.derivative("var", lambda grad, self, unbiased: var_slope(self, grad, None, int(unbiased), False))
table.derivative("var.dim", lambda grad, self, dim, unbiased, keepdim: var_slope(self, grad, dim, int(unbiased), keepdim))
table.derivative("var.correction", lambda grad, self, dim, correction, keepdim: var_slope(self, grad, dim, known(correction), keepdim))
table.derivative("std", lambda grad, self, unbiased, result: std_slope(self, grad, result, None, int(unbiased), False))
table.derivative("std.dim", lambda grad, self, dim, unbiased, keepdim, result: std_slope(self, grad, result, dim, int(unbiased), keepdim))
table.derivative("std.correction",
                 lambda grad, self, dim, correction, keepdim, result: std_slope(self, grad, result, dim, known(correction), keepdim))


def mean_slope(self: Tensor, grad: Tensor, dim: list[int] | None, keepdim: bool) -> Tensor:
    """The gradient of a mean."""
    size = self.size()
    return with_ones(grad, dim, keepdim, size).expand(size) / (self.numel() // max(grad.numel(), 1))


def both_slopes(self: Tensor, spread_grad: Tensor | None, std: Tensor | None, mean_grad: Tensor | None, dim: list[int] | None,
                correction: number, keepdim: bool) -> Tensor:
    """The gradient of a variance, or of the standard deviation `std`, and of a mean."""
    for_self = torch.zeros_like(self)
    if spread_grad is not None:
        slope = var_slope(self, spread_grad, dim, correction, keepdim) if std is None else std_slope(
            self, spread_grad, std, dim, correction, keepdim)
        for_self = for_self + slope
    if mean_grad is not None:
        for_self = for_self + mean_slope(self, mean_grad, dim, keepdim)
    return for_self


table.derivative("var_mean", lambda var_grad, mean_grad, self, unbiased: both_slopes(
    self, var_grad, None, mean_grad, None, int(unbiased), False))
table.derivative("var_mean.dim", lambda var_grad, mean_grad, self, dim, unbiased, keepdim: both_slopes(
    self, var_grad, None, mean_grad, dim, int(unbiased), keepdim))
table.derivative("var_mean.correction", lambda var_grad, mean_grad, self, dim, correction, keepdim: both_slopes(
    self, var_grad, None, mean_grad, dim, known(correction), keepdim))
table.derivative("std_mean", lambda std_grad, mean_grad, self, unbiased, result0: both_slopes(
    self, std_grad, result0, mean_grad, None, int(unbiased), False))
table.derivative("std_mean.dim", lambda std_grad, mean_grad, self, dim, unbiased, keepdim, result0: both_slopes(
    self, std_grad, result0, mean_grad, dim, int(unbiased), keepdim))
table.derivative("std_mean.correction", lambda std_grad, mean_grad, self, dim, correction, keepdim, result0: both_slopes(
    self, std_grad, result0, mean_grad, dim, known(correction), keepdim))


# ---- covariances

def as_rows(self: Tensor) -> Tensor:
    """A variable per row."""
    return self.reshape([1, -1]) if self.dim() < 2 else self


def covariance_slope(whole: Tensor, centred: Tensor) -> Tensor:
    """The gradient of centred @ centred^H for the centred rows."""
    return whole @ centred.conj() + (whole.mT @ centred).conj()


@table.derivative("cov")
def cov_gradient(grad, self, correction, fweights, aweights):
    rows = as_rows(self)
    weights = torch.real(rows.new_ones([rows.size(1)]))
    if fweights is not None:
        weights = weights * fweights
    counts = weights
    if aweights is not None:
        weights = weights * aweights
    total = weights.sum()
    factor = total - correction
    share = torch.zeros_like(total)     # of the total that the weights' unevenness takes
    if aweights is not None and correction != 0:
        share = (weights * aweights).sum() / total
        factor = total - share * correction
    factor = factor.clamp_min(0)
    centred = rows - (rows * weights).sum([1], True) / total
    whole = grad.reshape([rows.size(0), rows.size(0)]) / factor
    slope = covariance_slope(whole, centred) * weights
    for_aweights: Tensor | None = None
    if aweights is not None:
        each = torch.real(centred.conj() * (whole.mT @ centred)).sum([0])
        for_factor = -(each * weights).sum() / factor
        moved = for_factor.expand(weights.size())
        direct = torch.zeros_like(weights)
        if correction != 0:
            moved = for_factor * (1 - (aweights - share) / total * correction)
            direct = -for_factor * weights / total * correction
        for_aweights = (each + moved) * counts + direct
    return slope.reshape(self.size()), None, for_aweights


@table.derivative("corrcoef")
def corrcoef_gradient(grad, self):
    rows = as_rows(self)
    count = rows.size(0)
    centred = rows - rows.mean([1], True)
    covariance = centred @ centred.mH
    spread = torch.real(covariance.diagonal()).sqrt()
    product = spread.unsqueeze(1) * spread.unsqueeze(0)
    ratio = covariance / product
    whole = grad.reshape([count, count])
    for_spread = -torch.real(whole * ratio)
    for_spread = (for_spread.sum([0]) + for_spread.sum([1])) / (spread * spread * 2)
    return covariance_slope(whole / product + torch.diag_embed(for_spread), centred).reshape(self.size())


# ---- norms

def norm_slope(self: Tensor, grad: Tensor, norm: Tensor, p: float, dim: list[int] | None, keepdim: bool) -> Tensor | None:
    """The gradient of the p-norm along dimensions; for p = 0, the count of what is not 0, there is none."""
    size = self.size()
    spread, length = torch.real(with_ones(grad, dim, keepdim, size)), with_ones(norm, dim, keepdim, size)
    self = self.conj()
    nothing = torch.zeros_like(self)
    if p == 0.0:
        return None
    elif p == 1.0:
        slope = self.sgn() * spread
    elif p == 2.0:
        slope = ratio_or_zero(self, length) * spread
    elif p == float("inf") or p == float("-inf"):
        mask = (self.abs() == length) | ((self != self) & (length != length))
        slope = self.sgn() * (mask * (spread / mask.sum(dim, True)))
    elif p < 1.0:
        slope = torch.where(self == 0, nothing, self.sgn() * self.abs().pow(p - 1.0)) * spread * length.pow(1.0 - p)
    elif p < 2.0:
        slope = self.sgn() * self.abs().pow(p - 1.0) * ratio_or_zero(spread, length.pow(p - 1.0))
    else:
        slope = self * self.abs().pow(p - 2.0) * ratio_or_zero(spread, length.pow(p - 1.0))
    return slope


table.derivative("linalg_vector_norm",
                 lambda grad, self, ord, dim, keepdim, result: norm_slope(self, grad, result, float(ord), dim, keepdim))
table.derivative("norm.Scalar native_norm", lambda grad, self, p, result: norm_slope(self, grad, result, float(p), None, False))


def order_of(p: number | None) -> float:
    """The order of a norm, by default 2."""
    if p is None:
        return 2.0
    return float(p)


table.derivative("norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype native_norm.ScalarOpt_dim_dtype",
                 lambda grad, self, p, dim, keepdim, result: norm_slope(self, grad, result, order_of(p), dim, keepdim))
table.derivative("norm.ScalarOpt_dtype", lambda grad, self, p, result: norm_slope(self, grad, result, order_of(p), None, False))
table.derivative("frobenius_norm.dim", lambda grad, self, dim, keepdim, result: norm_slope(self, grad, result, 2.0, dim, keepdim))
