"""Gradients of running sums, products and extremes, differences and integrals along a dimension."""
from __future__ import annotations

from irtool.ops.kernels.scan import table
from irtool.ops.tensor import Tensor, torch

CONJUGATED = True      # mH and conj() are spelt out, as in torch


def from_behind(grad: Tensor, dim: int) -> Tensor:
    """Running sum from the end."""
    return grad.flip([dim]).cumsum(dim).flip([dim])


table.derivative("cumsum", lambda grad, dim: from_behind(grad, dim))


@table.gradient("cumprod")
def cumprod_gradient(self: Tensor, dim: int, dtype: int | None):
    result = torch.cumprod(self, dim, dtype=dtype)

    def backward(grad: Tensor):
        if self.dim() == 0:
            return grad * torch.ones_like(self), None, None
        if bool((self == 0).any()):
            # before the position: all factors; after it: the products from there on, each with its gradient
            x = self.transpose(dim, -1)
            extent = x.size(-1)
            before = torch.cat([torch.ones_like(x[..., :1]), x[..., :-1]], -1).cumprod(-1).conj()
            above = torch.ones([extent, extent], dtype=torch.bool).triu(1)
            behind = torch.where(above, x.unsqueeze(-2).conj(), torch.ones_like(x).unsqueeze(-2)).cumprod(-1)
            total = (behind.triu() * grad.transpose(dim, -1).unsqueeze(-2)).sum([-1])
            return (before * total).transpose(dim, -1), None, None
        return from_behind(grad * result.conj(), dim) / self.conj(), None, None

    return result, backward


@table.gradient("logcumsumexp _logcumsumexp")
def logcumsumexp_gradient(self: Tensor, dim: int):
    result = torch.logcumsumexp(self, dim)

    def backward(grad: Tensor):
        if self.dim() == 0:
            return grad, None
        if self.is_complex():
            behind = (grad.conj().log() - result).flip([dim]).logcumsumexp(dim).flip([dim])
            return (behind + self).exp().conj(), None
        # positive and negative gradients apart, in logarithms
        least = torch.full_like(grad, float("-inf")).nan_to_num()       # the least number: differences of infinities are nan
        logs = torch.where(grad == 0, torch.ones_like(grad), grad.abs()).log()
        up = (torch.where(grad > 0, logs, least) - result).flip([dim]).logcumsumexp(dim).flip([dim])
        down = (torch.where(grad < 0, logs, least) - result).flip([dim]).logcumsumexp(dim).flip([dim])
        return (up + self).exp() - (down + self).exp(), None

    return result, backward


table.derivative("cummax cummin", lambda grad, dim, indices: torch.zeros_like(grad).scatter_add(dim, indices, grad))


# ---- differences and integrals

def difference_back(grad: Tensor, dim: int) -> Tensor:
    """Gradient of x[1:] - x[:-1]."""
    sizes = grad.size()
    sizes[dim] = 1
    zero = grad.new_zeros(sizes)
    return torch.cat([zero, grad], dim) - torch.cat([grad, zero], dim)


def mean_back(grad: Tensor, dim: int) -> Tensor:
    """Gradient of (x[1:] + x[:-1]) / 2."""
    sizes = grad.size()
    sizes[dim] = 1
    zero = grad.new_zeros(sizes)
    return (torch.cat([zero, grad], dim) + torch.cat([grad, zero], dim)) / 2


@table.derivative("diff")
def diff_gradient(grad, self, n, dim, prepend, append):
    before, behind = 0, 0
    if prepend is not None and n > 0:
        before = prepend.size(dim)
    if append is not None and n > 0:
        behind = append.size(dim)
    whole = before + self.size(dim) + behind
    sizes = self.size()
    sizes[dim] = whole
    for_whole = grad.new_zeros(sizes)
    if n < whole:
        for_whole = grad
        for _ in range(n):
            for_whole = difference_back(for_whole, dim)
    for_prepend: Tensor | None = None
    for_append: Tensor | None = None
    if prepend is not None:
        for_prepend = for_whole.narrow(dim, 0, before) if n > 0 else torch.zeros_like(prepend)
    if append is not None:
        for_append = for_whole.narrow(dim, whole - behind, behind) if n > 0 else torch.zeros_like(append)
    return for_whole.narrow(dim, before, self.size(dim)), for_prepend, for_append


def positions_like(x: Tensor, y: Tensor, dim: int) -> Tensor:
    """Positions with at least as many dimensions as y: a vector extends along `dim`, others along the last ones."""
    shape = [1] * max(y.dim() - x.dim(), 0) + x.size()
    if x.dim() == 1:
        shape = [1] * y.dim()
        shape[dim] = x.size(0)
    return x.reshape(shape)


def by_places(grad: Tensor, y: Tensor, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Gradients of the means between neighbours times steps, for y and x. dim: of y, not negative."""
    if y.size(dim) == 0:
        return torch.zeros_like(y), torch.zeros_like(x)
    places = positions_like(x, y, dim)
    steps = places.narrow(dim, 1, places.size(dim) - 1) - places.narrow(dim, 0, places.size(dim) - 1)
    between = (y.narrow(dim, 1, y.size(dim) - 1) + y.narrow(dim, 0, y.size(dim) - 1)) / 2
    for_y = mean_back((grad * steps.conj() + torch.zeros_like(between)).sum_to_size(between.size()), dim)
    for_steps = (grad * between.conj() + torch.zeros_like(steps)).sum_to_size(steps.size())
    return for_y, difference_back(for_steps, dim).reshape(x.size())


@table.gradient("trapezoid.x trapz.x")
def trapezoid_x_gradient(y: Tensor, x: Tensor, dim: int):
    result = torch.trapezoid(y, x, dim=dim)
    place = dim % y.dim()

    def backward(grad: Tensor):
        for_y, for_x = by_places(grad.unsqueeze(place), y, x, place)
        return for_y, for_x, None

    return result, backward


table.derivative("cumulative_trapezoid.x", lambda grad, y, x, dim: by_places(from_behind(grad, dim % y.dim()), y, x, dim % y.dim()))


@table.derivative("trapezoid.dx trapz.dx")
def trapezoid_dx_gradient(grad, dx, dim, y_size):
    between = [size for size in y_size]
    between[dim] = y_size[dim] - 1
    return grad.new_zeros(y_size) if y_size[dim] == 0 else mean_back((grad.unsqueeze(dim) * dx).expand(between), dim)


@table.derivative("cumulative_trapezoid.dx")
def cumulative_trapezoid_dx_gradient(grad, dx, dim, y_size):
    return grad.new_zeros(y_size) if y_size[dim] == 0 else mean_back(from_behind(grad, dim) * dx, dim)



table.unsupported("it writes into its operand: the same without writing has one", "cumsum_ cumprod_")
