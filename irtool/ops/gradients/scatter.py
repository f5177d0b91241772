"""Gradients of scattering."""
from __future__ import annotations

from irtool.ops.kernels.scatter import table
from irtool.ops.tensor import Tensor, torch


@table.derivative("scatter.src")
def scatter_gradient(grad, dim, index, src_size):
    taken = torch.gather(grad, dim, index)
    return torch.scatter(grad, dim, index, 0), None, filled(taken, src_size)


def filled(taken: Tensor, size: list[int]) -> Tensor:
    """The gradient of a source of which only the beginning was used. An index of no elements, or of one, may have another rank."""
    if taken.size() == size:
        return taken
    if taken.numel() == 0:
        return taken.new_zeros(size)
    if len(size) == 0:
        return taken.reshape(size)
    if taken.dim() == 0:
        taken = taken.reshape([1])
    pad: list[int] = []
    for place in range(len(size)):
        at = len(size) - 1 - place
        pad.append(0)
        pad.append(size[at] - taken.size(at))
    return torch.constant_pad_nd(taken, pad)


def beginning(src: Tensor, size: list[int]) -> Tensor:
    """What an index of this size uses of a source."""
    if src.size() == size:
        return src
    if 0 in size:
        return src.new_zeros(size)
    if src.dim() == 0:
        return src.reshape(size)
    if len(size) == 0:
        return src.narrow(0, 0, 1).reshape(size)
    for place in range(len(size)):
        src = src.narrow(place, 0, size[place])
    return src


table.derivative("scatter.value", lambda grad, dim, index: (torch.scatter(grad, dim, index, 0), None))


@table.derivative("scatter.reduce")
def scatter_reduce_gradient(grad, dim, index, reduce, src_size):
    if reduce != "add":
        raise NotImplementedError("scatter with multiplication has no gradient")
    return grad, None, filled(torch.gather(grad, dim, index), src_size)


@table.derivative("scatter.value_reduce")
def scatter_value_reduce_gradient(grad, reduce):
    if reduce != "add":
        raise NotImplementedError("scatter with multiplication has no gradient")
    return grad, None


table.derivative("scatter_add", lambda grad, dim, index, src_size: (grad, None, filled(torch.gather(grad, dim, index), src_size)))


@table.derivative("scatter_reduce.two")
def scatter_reduce_two_gradient(grad, self, dim, index, src, reduce, include_self, result):
    for_self = grad
    for_src = grad
    used = beginning(src, index.size())
    if reduce == "sum":
        for_src = grad.gather(dim, index)
    elif reduce == "mean":
        count = torch.ones_like(grad) if include_self else torch.zeros_like(grad)
        count = count.scatter_add(dim, index, torch.ones_like(used))
        for_self = grad / count.masked_fill(count == 0, 1)
        for_src = for_self.gather(dim, index)
    elif reduce == "prod":
        of_others = self.masked_fill(self == 0, 1)
        for_self = grad * torch.scatter_reduce(of_others, dim, index, used, reduce, include_self=include_self) / of_others
        is_zero = used == 0
        zeros = torch.zeros_like(self).scatter_add(dim, index, is_zero.to(self.dtype)).gather(dim, index)
        is_only_zero = is_zero & (zeros == 1)
        without = torch.scatter_reduce(self, dim, index, used.masked_fill(is_only_zero, 1), reduce, include_self=include_self)
        others = (grad * result).gather(dim, index) / used.masked_fill(is_zero, 1)
        for_src = torch.where(is_only_zero, (grad * without).gather(dim, index), others)
    else:
        is_self = (self == result).to(self.dtype)
        is_src = (used == result.gather(dim, index)).to(src.dtype)
        share = grad / is_self.scatter_add(dim, index, is_src)
        for_self = is_self * share
        for_src = is_src * share.gather(dim, index)
    if not include_self:
        for_self = for_self.scatter(dim, index, 0)
    return for_self, None, filled(for_src, src.size())
