"""Bags of rows of a table: the bags of all places one behind the other, in one table for all or the tables of all places."""
from __future__ import annotations

from typing import Any

import numpy as np

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import rule
from irtool.dispatch.batching.others import offsets as table_offsets
from irtool.ir.errors import UnsupportedError
from irtool.ops.tensor import Tensor

SUM, MEAN, MAX = range(3)


def shifted_by(batch: Batch, value: Any, step: int, sign: int = 1) -> Any:
    """A whole tensor with `step` more (or less) at each place of the batch."""
    steps = Tensor(sign * step * np.arange(batch.length).reshape([batch.length, *[1] * (value.ndim - 1)]))
    return batch.do("aten::add", value, batch.do("aten::to", steps, value.dtype))


@rule("embedding_bag embedding_bag.padding_idx _embedding_bag _embedding_bag_forward_only")
def embedding_bag(batch: Batch, weight: Any, indices: Any, offsets: Any, scale: bool, mode: int, sparse: bool, scales: Any,
                  has_last: bool, *padding: Any) -> Any:
    """Indices go into the tables one behind the other, bags begin where those of the places before have ended.

    Where only the table is batched its rows become wider instead.
    """
    has_tables = batch.has(weight)
    if has_tables and not batch.has([indices, offsets, scales]):
        wide = batch.do("aten::flatten", batch.do("aten::movedim", batch.whole(weight), 0, 1), 1, 2)
        found = batch.same(wide, indices, offsets, scale, mode, sparse, scales, has_last, *padding)
        return tuple([batch.box(batch.do("aten::unflatten", each, 1, [batch.length, -1]), 1) if each.ndim == 2 else each
                      for each in found])
    if has_tables and any(each is not None and (each >= 0 or "padding" in batch.name) for each in padding):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported where the table is batched and has padding")
    rows, width = weight.shape
    table = batch.do("aten::reshape", batch.whole(weight), [-1, width]) if has_tables else weight
    flat = table_offsets(batch, indices, rows) if has_tables else batch.whole(indices)
    starts, count = offsets, indices.shape[0]
    if indices.ndim == 1:
        if has_last:
            offsets = batch.again("aten::narrow", offsets, 0, 0, offsets.shape[0] - 1)
        count = offsets.shape[0]
        starts = batch.do("aten::flatten", shifted_by(batch, batch.whole(offsets), indices.shape[0]))
        flat = batch.do("aten::flatten", flat)
    else:
        flat = batch.do("aten::flatten", flat, 0, 1)
    if scales is not None:
        scales = batch.do("aten::flatten", batch.whole(scales), 0, 1)
    result, bag_of, sizes, best = batch.same(table, flat, starts, scale, mode, sparse, scales, False, *padding)

    def apart(value: Any, length: int) -> Any:
        return batch.do("aten::unflatten", value, 0, [batch.length, length])

    result = batch.box(apart(result, count))
    bags = [] if bag_of.shape[0] == 0 else [batch.box(shifted_by(batch, apart(bag_of, indices.numel()), count, -1))]
    if mode == MAX:
        best = apart(best, count)
        if has_tables:
            best = batch.do("aten::clamp_min", shifted_by(batch, best, rows, -1), 0)     # an empty bag says 0
        best = batch.box(best)
        return result, *(bags or [bag_of]), batch.box(apart(sizes, count)), best
    if mode == SUM and has_last and indices.ndim == 1:
        shape = [batch.length, count + 1]
        sizes, best = (batch.do("aten::zeros", shape, dtype=each.dtype) for each in (sizes, best))
        return result, *(bags or [bag_of]), batch.box(sizes), batch.box(best)
    return result, *(bags or [bag_of]), batch.box(apart(sizes, count)), batch.box(apart(best, count))


@rule("embedding_renorm")
def embedding_renorm(batch: Batch, self: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Rows that are named, scaled down where they are too long."""
    places = batch.again("aten::unsqueeze", batch.again("aten::reshape", indices, [-1]), 0)
    all_rows = Tensor(np.arange(self.shape[0])[:, None])
    is_named = batch.again("aten::any", batch.again("aten::eq", places, all_rows), 1, True)
    powers = batch.again("aten::pow", batch.again("aten::abs", self), norm_type)
    norms = batch.again("aten::pow", batch.again("aten::sum", powers, [1], True), 1 / norm_type)
    scales = batch.again("aten::mul", batch.again("aten::reciprocal", batch.again("aten::add", norms, 1e-7)), max_norm)
    is_long = batch.again("aten::logical_and", batch.again("aten::gt", norms, max_norm), is_named)
    return batch.again("aten::where", is_long, batch.again("aten::mul", self, scales), self)
