"""Gradients of reductions. Equal extremes share a gradient equally; with an extreme along one dimension, the first has all of it."""
from __future__ import annotations

from irtool.ops.gradients.parts import along, shares, with_ones
from irtool.ops.kernels.reduction import table
from irtool.ops.tensor import Tensor, torch

table.derivative("sum sum_to_size _grad_sum_to_size", lambda grad, self_size: grad.expand(self_size))
table.derivative("sum.dim_IntList", lambda grad, dim, keepdim, self_size: with_ones(grad, dim, keepdim, self_size).expand(self_size))
table.derivative("mean", lambda grad, self_size, self_numel: grad.expand(self_size) / self_numel)


@table.derivative("mean.dim")
def mean_dims_gradient(grad, dim, keepdim, self_size, self_numel):
    return with_ones(grad, dim, keepdim, self_size).expand(self_size) / (self_numel // max(grad.numel(), 1))


@table.derivative("nansum")
def nansum_gradient(grad, dim, keepdim, self_size, self_isnan):
    return with_ones(grad, dim, keepdim, self_size).expand(self_size) * ~self_isnan


@table.derivative("nanmean")
def nanmean_gradient(grad, dim, keepdim, self_size, self_isnan):
    count = torch.sum(~self_isnan, dim, keepdim)
    return with_ones(grad / count, dim, keepdim, self_size).expand(self_size) * ~self_isnan


def product_of_others(values: Tensor, dim: int) -> Tensor:
    """At each place, the product of all other places along a dimension."""
    unit = torch.ones_like(torch.slice(values, dim, 0, 1))
    before = torch.cat([unit, torch.slice(values, dim, 0, -1)], dim).cumprod(dim)
    turned = values.flip([dim])
    after = torch.cat([unit, torch.slice(turned, dim, 0, -1)], dim).cumprod(dim).flip([dim])
    return before * after


def product_slope(values: Tensor, result: Tensor, dim: int) -> Tensor:
    """The gradient of a product along a dimension, as torch computes it: the product divided by each factor, unless one of all is 0."""
    if bool((values == 0).any()):
        return product_of_others(values, dim)
    return result / values.masked_fill(values == 0, 1)      # under vmap, both ways are computed and differentiated


@table.derivative("prod")
def prod_gradient(grad, self, dtype, result, self_size):
    flat = (self if dtype is None else self.to(dtype)).reshape([-1])
    if flat.numel() == 0:
        for_self = torch.zeros_like(self)
    else:
        slope = product_slope(flat, result, 0)
        if bool((flat == 0).sum() > 1):     # 0 also for what is infinite or no number, as in torch; not along a dimension
            slope = slope.masked_fill(slope.isnan(), 0)
        for_self = (slope * grad).reshape(self_size)
    return for_self


@table.derivative("prod.dim_int")
def prod_dim_gradient(grad, self, dim, keepdim, dtype, result, self_size):
    if len(self_size) == 0:
        for_self = grad
    elif self.numel() == 0:
        for_self = torch.zeros_like(self)
    else:
        factors = self if dtype is None else self.to(dtype)
        for_self = product_slope(factors, along(result, dim, keepdim, self_size), dim) * along(grad, dim, keepdim, self_size)
    return for_self


@table.derivative("amax amin")
def amax_gradient(grad, self, dim, keepdim, result, self_size):
    mask = self == with_ones(result, dim, keepdim, self_size)
    return shares(mask, dim, with_ones(grad, dim, keepdim, self_size))


@table.derivative("max min")
def max_gradient(grad, self, result):
    mask = (self == result) | (self != self)        # nan wins
    return mask * (grad / mask.sum())


@table.derivative("max.dim min.dim")
def max_dim_gradient(grad, dim, keepdim, indices, self_size):
    places = along(indices, dim, keepdim, self_size)
    return torch.scatter(grad.new_zeros(self_size), dim, places, along(grad, dim, keepdim, self_size))


def extremes_back(self: Tensor, low: Tensor, high: Tensor, low_grad: Tensor | None, high_grad: Tensor | None, dims: list[int],
                  keepdim: bool) -> Tensor:
    """Gradient of the smallest and the largest element; equal ones share it."""
    size = self.size()
    for_self = torch.zeros_like(self)
    if low_grad is not None:
        mask = self == with_ones(low, dims, keepdim, size)
        for_self = for_self + shares(mask, dims, with_ones(low_grad, dims, keepdim, size))
    if high_grad is not None:
        mask = self == with_ones(high, dims, keepdim, size)
        for_self = for_self + shares(mask, dims, with_ones(high_grad, dims, keepdim, size))
    return for_self


@table.derivative("aminmax")
def aminmax_gradient(low_grad, high_grad, self, dim, keepdim, min, max):
    dims: list[int] = []
    if dim is not None:
        dims = [dim]
    return extremes_back(self, min, max, low_grad, high_grad, dims, keepdim)


@table.derivative("aten::_aminmax")
def aminmax_of_all_gradient(low_grad, high_grad, self, result0, result1):
    dims: list[int] = []
    return extremes_back(self, result0, result1, low_grad, high_grad, dims, False)


@table.derivative("_aminmax.dim")
def aminmax_along_gradient(low_grad, high_grad, self, dim, keepdim, result0, result1):
    return extremes_back(self, result0, result1, low_grad, high_grad, [dim], keepdim)


@table.derivative("logsumexp special_logsumexp")
def logsumexp_gradient(grad, self, dim, keepdim, result, self_size):
    weight = (self - with_ones(result, dim, keepdim, self_size)).exp()
    return with_ones(grad, dim, keepdim, self_size) * weight


table.no_gradient("truth values, counts and hashes", "all any count_nonzero hash_tensor")
table.no_gradient("indices are whole numbers", "argmax argmin")
