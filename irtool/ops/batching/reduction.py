"""Batching rules of reductions: named dimensions move up by one, all dimensions are all but the first."""
from __future__ import annotations

from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import along, behind, flat, refuse_batched, wrapped_dim
from irtool.ops.kernels.reduction import table


@table.batch("sum mean prod")
def of_all(batch: Batch, self: Any, dtype: Any) -> Any:
    """(B, n), over dimension 1."""
    return batch.box(batch.do(batch.kind, flat(batch, self), 1 if batch.kind == "aten::prod" else [1], False, dtype=dtype))


@table.batch("all any")
def truth_of_all(batch: Batch, self: Any) -> Any:
    """(B, n), over dimension 1."""
    return batch.box(batch.do(batch.kind, flat(batch, self), 1, False))


@table.batch("max min")
def extreme_of_all(batch: Batch, self: Any) -> Any:
    """(B, n), over dimension 1, without the index."""
    return batch.box(batch.do(batch.kind, flat(batch, self), 1, False)[0])


@table.batch("argmax argmin")
def place_of_extreme(batch: Batch, self: Any, dim: Any, keepdim: bool) -> Any:
    """Along dim; without it (B, n), over dimension 1."""
    if dim is not None:
        return along(batch, self, dim, keepdim)
    index = batch.do(batch.kind, flat(batch, self), 1, False)
    return batch.box(batch.do("aten::reshape", index, [batch.length, *[1] * self.ndim]) if keepdim else index)


@table.batch("aminmax")
def both_extremes(batch: Batch, self: Any, dim: Any, keepdim: bool) -> Any:
    """Along dim; without it (B, n), over dimension 1."""
    if dim is not None:
        return along(batch, self, dim, keepdim)
    extremes = batch.do("aten::aminmax", flat(batch, self), dim=1)
    if keepdim:
        extremes = tuple(batch.do("aten::reshape", each, [batch.length, *[1] * self.ndim]) for each in extremes)
    return batch.box(extremes)


@table.batch("_aminmax")
def extremes_of_all(batch: Batch, self: Any) -> Any:
    """(B, n), over dimension 1."""
    return batch.box(batch.do("aten::aminmax", flat(batch, self), dim=1))


@table.batch("count_nonzero")
def count_nonzero(batch: Batch, self: Any, dim: Any) -> Any:
    """Along dim; without it (B, n), over dimension 1."""
    return along(batch, self, dim) if dim is not None else batch.box(batch.do("aten::count_nonzero", flat(batch, self), [1]))


@table.batch("sum_to_size _grad_sum_to_size")
def sum_to_size(batch: Batch, self: Any, size: Any) -> Any:
    """Sums over dimensions that were broadcast, counted behind B."""
    if size is None:
        return self
    x, rank = batch.front(self), self.ndim
    lead = rank - len(size)
    repeated = [1 + place for place in range(lead, rank) if size[place - lead] == 1 and self.shape[place] != 1]
    if repeated:
        x = batch.do("aten::sum", x, repeated, True)
    if lead:
        x = batch.do("aten::sum", x, list(range(1, 1 + lead)), False)
    elif not size:      # a sum also of one element, and so of long integers
        x = batch.do("aten::sum", batch.do("aten::unsqueeze", x, 1), [1], False)
    return batch.box(x)


@table.batch("segment_reduce")
def segment_reduce(batch: Batch, data: Any, reduce: str, lengths: Any, indices: Any, offsets: Any, axis: int, *rest: Any) -> Any:
    """data (n, ...) -> (n, ..., B): B goes along behind the segments."""
    refuse_batched(batch, [lengths, indices, offsets], "segments")
    result = batch.same(behind(batch, data), reduce, lengths, indices, offsets, wrapped_dim(axis, data.ndim), *rest)
    return batch.box(result, result.ndim - 1)


table.batch("sum.dim_IntList mean.dim nansum nanmean amax amin logsumexp special_logsumexp all.dims any.dims all.dim any.dim prod.dim_int "
            "max.dim min.dim _aminmax.dim count_nonzero.dim_IntList hash_tensor")(along)
