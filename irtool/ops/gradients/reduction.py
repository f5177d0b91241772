"""Gradients of reductions. Equal extremes share a gradient equally; an extreme along one dimension gives all to the first."""
from __future__ import annotations

from irtool.ops.gradients.parts import along, shares, with_ones
from irtool.ops.kernels.reduction import table
from irtool.ops.tensor import Tensor, torch

table.derivative("sum sum_to_size _grad_sum_to_size", lambda grad, self_size: grad.expand(self_size))
table.derivative("sum.dim_IntList", lambda grad, dim, keepdim, self_size: with_ones(grad, dim, keepdim, self_size).expand(self_size))
table.derivative("mean", lambda grad, self_size, self_numel: grad.expand(self_size) / self_numel)


@table.gradient("mean.dim")
def mean_dims_gradient(self: Tensor, dim: list[int] | None, keepdim: bool, dtype: int | None):
    size, result = self.size(), torch.mean(self, dim, keepdim, dtype=dtype)
    count = self.numel() // max(result.numel(), 1)

    def backward(grad: Tensor):
        return with_ones(grad, dim, keepdim, size).expand(size) / count, None, None, None

    return result, backward


@table.gradient("nansum")
def nansum_gradient(self: Tensor, dim: list[int] | None, keepdim: bool, dtype: int | None):
    size, counted = self.size(), ~self.isnan()

    def backward(grad: Tensor):
        return with_ones(grad, dim, keepdim, size).expand(size) * counted, None, None, None

    return torch.nansum(self, dim, keepdim, dtype=dtype), backward


@table.gradient("nanmean")
def nanmean_gradient(self: Tensor, dim: list[int] | None, keepdim: bool, dtype: int | None):
    size, counted = self.size(), ~self.isnan()

    def backward(grad: Tensor):
        count = torch.sum(counted, dim, keepdim)
        return with_ones(grad / count, dim, keepdim, size).expand(size) * counted, None, None, None

    return torch.nanmean(self, dim, keepdim, dtype=dtype), backward


def product_of_others(values: Tensor, dim: int) -> Tensor:
    """At each place, the product of all other places along a dimension."""
    unit = torch.ones_like(torch.slice(values, dim, 0, 1))
    before = torch.cat([unit, torch.slice(values, dim, 0, -1)], dim).cumprod(dim)
    turned = values.flip([dim])
    after = torch.cat([unit, torch.slice(turned, dim, 0, -1)], dim).cumprod(dim).flip([dim])
    return before * after


@table.derivative("prod")
def prod_gradient(grad, self, self_size):
    flat = self.reshape([-1])
    if flat.numel() == 0:
        for_self = torch.zeros_like(self)
    else:
        for_self = (product_of_others(flat, 0) * grad).reshape(self_size)
    return for_self


@table.derivative("prod.dim_int")
def prod_dim_gradient(grad, self, dim, keepdim, self_size):
    if len(self_size) == 0:
        for_self = grad
    elif self.numel() == 0:
        for_self = torch.zeros_like(self)
    else:
        for_self = product_of_others(self, dim) * along(grad, dim, keepdim, self_size)
    return for_self


@table.gradient("amax")
def amax_gradient(self: Tensor, dim: list[int], keepdim: bool):
    size, result = self.size(), torch.amax(self, dim, keepdim)

    def backward(grad: Tensor):
        mask = self == with_ones(result, dim, keepdim, size)
        return shares(mask, dim, with_ones(grad, dim, keepdim, size)), None, None

    return result, backward


@table.gradient("amin")
def amin_gradient(self: Tensor, dim: list[int], keepdim: bool):
    size, result = self.size(), torch.amin(self, dim, keepdim)

    def backward(grad: Tensor):
        mask = self == with_ones(result, dim, keepdim, size)
        return shares(mask, dim, with_ones(grad, dim, keepdim, size)), None, None

    return result, backward


@table.derivative("max")
def max_gradient(grad, self, result):
    mask = self == result
    return mask * (grad / mask.sum())


@table.derivative("min")
def min_gradient(grad, self, result):
    mask = self == result
    return mask * (grad / mask.sum())


@table.derivative("max.dim")
def max_dim_gradient(grad, dim, keepdim, indices, self_size):
    places = along(indices, dim, keepdim, self_size)
    return torch.scatter(grad.new_zeros(self_size), dim, places, along(grad, dim, keepdim, self_size))


@table.derivative("min.dim")
def min_dim_gradient(grad, dim, keepdim, indices, self_size):
    places = along(indices, dim, keepdim, self_size)
    return torch.scatter(grad.new_zeros(self_size), dim, places, along(grad, dim, keepdim, self_size))


def extremes_back(self: Tensor, low: Tensor, high: Tensor, low_grad: Tensor | None, high_grad: Tensor | None, dims: list[int],
                  keepdim: bool) -> Tensor:
    """Gradient of the smallest and the largest element; where several are equal they share."""
    size = self.size()
    for_self = torch.zeros_like(self)
    if low_grad is not None:
        mask = self == with_ones(low, dims, keepdim, size)
        for_self = for_self + shares(mask, dims, with_ones(low_grad, dims, keepdim, size))
    if high_grad is not None:
        mask = self == with_ones(high, dims, keepdim, size)
        for_self = for_self + shares(mask, dims, with_ones(high_grad, dims, keepdim, size))
    return for_self


@table.gradient("aminmax")
def aminmax_gradient(self: Tensor, dim: int | None, keepdim: bool):
    low, high = torch.aminmax(self, dim=dim, keepdim=keepdim)

    def backward(low_grad: Tensor | None, high_grad: Tensor | None):
        dims: list[int] = []
        if dim is not None:
            dims = [dim]
        return extremes_back(self, low, high, low_grad, high_grad, dims, keepdim), None, None

    return low, high, backward


@table.gradient("aten::_aminmax")
def aminmax_of_all_gradient(self: Tensor):
    low, high = torch._aminmax(self)

    def backward(low_grad: Tensor | None, high_grad: Tensor | None):
        dims: list[int] = []
        return extremes_back(self, low, high, low_grad, high_grad, dims, False)

    return low, high, backward


@table.gradient("_aminmax.dim")
def aminmax_along_gradient(self: Tensor, dim: int, keepdim: bool):
    low, high = torch._aminmax(self, dim, keepdim)

    def backward(low_grad: Tensor | None, high_grad: Tensor | None):
        return extremes_back(self, low, high, low_grad, high_grad, [dim], keepdim), None, None

    return low, high, backward


@table.gradient("logsumexp special_logsumexp")
def logsumexp_gradient(self: Tensor, dim: list[int], keepdim: bool):
    size, result = self.size(), torch.logsumexp(self, dim, keepdim)

    def backward(grad: Tensor):
        weight = (self - with_ones(result, dim, keepdim, size)).exp()
        return with_ones(grad, dim, keepdim, size) * weight, None, None

    return result, backward


table.no_gradient("truth values, counts and hashes", "all any count_nonzero hash_tensor")
table.no_gradient("indices are whole numbers", "argmax argmin")
