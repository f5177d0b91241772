"""Gradients of reductions over runs of places, and into places that an index names."""
from __future__ import annotations

from irtool.ops.kernels import reduction, scatter
from irtool.ops.tensor import Tensor, number, torch


@scatter.table.gradient("index_reduce")
def index_reduce_gradient(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool):
    result = torch.index_reduce(self, dim, index, source, reduce, include_self=include_self)

    def backward(grad: Tensor):
        for_self = grad
        for_source = grad
        if reduce == "mean":
            count = torch.ones_like(grad) if include_self else torch.zeros_like(grad)
            count = count.index_add(dim, index, torch.ones_like(source))
            for_self = grad / count.masked_fill(count == 0, 1)
            for_source = for_self.index_select(dim, index)
        elif reduce == "prod":
            of_others = self.masked_fill(self == 0, 1)
            for_self = grad * torch.index_reduce(of_others, dim, index, source, reduce, include_self=include_self) / of_others
            is_zero = source == 0
            zeros = torch.zeros_like(self).index_add(dim, index, is_zero.to(self.dtype)).index_select(dim, index)
            is_only_zero = is_zero & (zeros == 1)
            without = torch.index_reduce(self, dim, index, source.masked_fill(is_only_zero, 1), reduce, include_self=include_self)
            others = (grad * result).index_select(dim, index) / source.masked_fill(is_zero, 1)
            for_source = torch.where(is_only_zero, (grad * without).index_select(dim, index), others)
        else:
            is_self = (self == result).to(self.dtype)
            is_source = (source == result.index_select(dim, index)).to(source.dtype)
            share = grad / is_self.index_add(dim, index, is_source)
            for_self = is_self * share
            for_source = is_source * share.index_select(dim, index)
        if not include_self:
            for_self = for_self.index_fill(dim, index, 0)
        return for_self, None, None, for_source, None, None

    return result, backward


def runs_of(data: Tensor, lengths: Tensor | None, offsets: Tensor | None, axis: int) -> tuple[Tensor, Tensor]:
    """For each place of `data` its run, or the number of runs for one that is in none; and whether it is in one."""
    places = torch.arange(data.size(axis), device=data.device)
    if lengths is not None:
        ends = lengths.cumsum(-1)
        begin = torch.zeros_like(ends.narrow(-1, 0, 1))
    else:
        assert offsets is not None
        ends = offsets.narrow(-1, 1, offsets.size(-1) - 1)
        begin = offsets.narrow(-1, 0, 1)
    run = (places.unsqueeze(-1) >= ends.unsqueeze(-2)).sum([-1])
    is_inside = (run < ends.size(-1)) & (places >= begin)
    for _dim in range(data.dim() - run.dim()):
        run, is_inside = run.unsqueeze(-1), is_inside.unsqueeze(-1)
    return run.clamp(0, max(ends.size(-1) - 1, 0)).expand(data.size()), is_inside.expand(data.size())


@reduction.table.gradient("segment_reduce")
def segment_reduce_gradient(data: Tensor, reduce: str, lengths: Tensor | None, indices: Tensor | None, offsets: Tensor | None, axis: int,
                            unsafe: bool, initial: number | None):
    result = torch.segment_reduce(data, reduce, lengths=lengths, indices=indices, offsets=offsets, axis=axis, unsafe=unsafe,
                                  initial=initial)

    def backward(grad: Tensor):
        dim = axis if axis >= 0 else axis + data.dim()
        if grad.size(dim) == 0:
            return torch.zeros_like(data), None, None, None, None, None, None, None
        run, is_inside = runs_of(data, lengths, offsets, dim)
        ones = is_inside.to(data.dtype)
        for_data = grad.gather(dim, run) * ones
        if reduce == "mean":
            for_data = for_data / torch.zeros_like(grad).scatter_add(dim, run, ones).clamp_min(1).gather(dim, run)
        elif reduce == "prod":
            is_zero = data == 0
            zeros = torch.zeros_like(grad).scatter_add(dim, run, is_zero.to(data.dtype) * ones).gather(dim, run)
            others = data.masked_fill(is_zero, 1)
            start = torch.full_like(grad, float(initial)) if initial is not None else torch.ones_like(grad)
            factor = torch.where(is_inside, others, torch.ones_like(others))
            without = torch.scatter_reduce(start, dim, run, factor, "prod").gather(dim, run)
            for_data = for_data * torch.where(is_zero, without * (zeros == 1), result.gather(dim, run) / others)
        elif reduce == "max" or reduce == "min":
            extreme = (data == result.gather(dim, run)).to(data.dtype) * ones
            for_data = for_data * extreme / torch.zeros_like(grad).scatter_add(dim, run, extreme).clamp_min(1).gather(dim, run)
        return for_data, None, None, None, None, None, None, None

    return result, backward
