"""Gradients of reductions. Equal extremes share a gradient equally; an extreme along one dimension gives all to the first."""
from __future__ import annotations

from irtool.ops.gradients.parts import along, shares, with_ones
from irtool.ops.kernels.reduction import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("sum")
def sum_gradient(self: Tensor, dtype: int | None):
    size = self.size()

    def backward(grad: Tensor):
        return grad.expand(size), None

    return torch.sum(self, dtype=dtype), backward


@table.gradient("sum.dim_IntList")
def sum_dims_gradient(self: Tensor, dim: list[int] | None, keepdim: bool, dtype: int | None):
    size = self.size()

    def backward(grad: Tensor):
        return with_ones(grad, dim, keepdim, size).expand(size), None, None, None

    return torch.sum(self, dim, keepdim, dtype=dtype), backward


@table.gradient("mean")
def mean_gradient(self: Tensor, dtype: int | None):
    size, count = self.size(), self.numel()

    def backward(grad: Tensor):
        return grad.expand(size) / count, None

    return torch.mean(self, dtype=dtype), backward


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


@table.gradient("prod")
def prod_gradient(self: Tensor, dtype: int | None):
    size = self.size()

    def backward(grad: Tensor):
        flat = self.reshape([-1])
        if flat.numel() == 0:
            for_self = torch.zeros_like(self)
        else:
            for_self = (product_of_others(flat, 0) * grad).reshape(size)
        return for_self, None

    return torch.prod(self, dtype=dtype), backward


@table.gradient("prod.dim_int")
def prod_dim_gradient(self: Tensor, dim: int, keepdim: bool, dtype: int | None):
    size = self.size()

    def backward(grad: Tensor):
        if len(size) == 0:
            for_self = grad
        elif self.numel() == 0:
            for_self = torch.zeros_like(self)
        else:
            for_self = product_of_others(self, dim) * along(grad, dim, keepdim, size)
        return for_self, None, None, None

    return torch.prod(self, dim, keepdim, dtype=dtype), backward


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


@table.gradient("max")
def max_gradient(self: Tensor):
    result = torch.max(self)

    def backward(grad: Tensor):
        mask = self == result
        return mask * (grad / mask.sum())

    return result, backward


@table.gradient("min")
def min_gradient(self: Tensor):
    result = torch.min(self)

    def backward(grad: Tensor):
        mask = self == result
        return mask * (grad / mask.sum())

    return result, backward


@table.gradient("max.dim")
def max_dim_gradient(self: Tensor, dim: int, keepdim: bool):
    size = self.size()
    values, indices = torch.max(self, dim, keepdim)

    def backward(grad: Tensor):
        places = along(indices, dim, keepdim, size)
        return torch.scatter(grad.new_zeros(size), dim, places, along(grad, dim, keepdim, size)), None, None

    return values, indices, backward


@table.gradient("min.dim")
def min_dim_gradient(self: Tensor, dim: int, keepdim: bool):
    size = self.size()
    values, indices = torch.min(self, dim, keepdim)

    def backward(grad: Tensor):
        places = along(indices, dim, keepdim, size)
        return torch.scatter(grad.new_zeros(size), dim, places, along(grad, dim, keepdim, size)), None, None

    return values, indices, backward


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


@table.gradient("sum_to_size")
def sum_to_size_gradient(self: Tensor, size: list[int]):
    own_size = self.size()

    def backward(grad: Tensor):
        return grad.expand(own_size), None

    return self.sum_to_size(size), backward


@table.gradient("_grad_sum_to_size")
def grad_sum_to_size_gradient(self: Tensor, size: list[int] | None):
    own_size = self.size()

    def backward(grad: Tensor):
        return grad.expand(own_size), None

    return self._grad_sum_to_size(size), backward


table.no_gradient("truth values, counts and hashes", "all any count_nonzero hash_tensor")
table.no_gradient("indices are whole numbers", "argmax argmin")
