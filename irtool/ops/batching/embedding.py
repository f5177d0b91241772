"""Batching rules of embeddings: B tables are one table of B * rows, whose indices are shifted by B's place times rows."""
from __future__ import annotations

from typing import Any

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.array_library import np
from irtool.ops.batch import Batch
from irtool.ops.kernels.embedding import table
from irtool.ops.tensor import Tensor

SUM, MEAN, MAX = range(3)


def shifted_by(batch: Batch, value: Any, step: int, sign: int = 1) -> Any:
    """value (B, ...) + sign * step * (0, 1, ..., B - 1), one number for each place in the batch."""
    steps = Tensor(sign * step * np.arange(batch.length).reshape([batch.length, *[1] * (value.ndim - 1)]))
    return batch.do("aten::add", value, batch.do("aten::to", steps, value.dtype))


@table.batch("embedding_bag embedding_bag.padding_idx _embedding_bag _embedding_bag_forward_only")
def embedding_bag(batch: Batch, weight: Any, indices: Any, offsets: Any, scale: bool, mode: int, sparse: bool, scales: Any,
                  has_last: bool, *padding: Any) -> Any:
    """The tables (B, rows, width) become one of B * rows, the indices and bags of the batch stand one behind the other.

    Where only the table is batched: (rows, B * width), as one call with wider rows.
    """
    has_tables = batch.has(weight)
    if has_tables and not batch.has([indices, offsets, scales]):
        wide = batch.do("aten::flatten", batch.do("aten::movedim", batch.whole(weight), 0, 1), 1, 2)
        results = batch.same(wide, indices, offsets, scale, mode, sparse, scales, has_last, *padding)
        return tuple([batch.box(batch.do("aten::unflatten", each, 1, [batch.length, -1]), 1) if each.ndim == 2 else each
                      for each in results])
    if has_tables and any(each is not None and (each >= 0 or "padding" in batch.name) for each in padding):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported where the table is batched and has padding", code="E0504")
    rows, width = weight.shape
    one_table = batch.do("aten::flatten", batch.whole(weight), 0, 1) if has_tables else weight
    flat = into_one_table(batch, indices, rows) if has_tables else batch.whole(indices)
    if offsets.ndim != 1:
        raise RunError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets.ndim}")
    if has_last:
        offsets = batch.again("aten::narrow", offsets, 0, 0, offsets.shape[0] - 1)
    count = offsets.shape[0]
    starts = batch.do("aten::flatten", shifted_by(batch, batch.whole(offsets), indices.numel()))
    flat = batch.do("aten::flatten", flat, 0, 1)
    if scales is not None:
        scales = batch.do("aten::flatten", batch.whole(scales), 0, 1)
    result, bag_of, sizes, best = batch.same(one_table, flat, starts, scale, mode, sparse, scales, False, *padding)

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


@table.batch("embedding_renorm")
def embedding_renorm(batch: Batch, self: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Rows of self that indices name and whose norm is over max_norm, times max_norm / norm."""
    places = batch.again("aten::unsqueeze", batch.again("aten::reshape", indices, [-1]), 0)
    all_rows = Tensor(np.arange(self.shape[0])[:, None])
    is_named = batch.again("aten::any", batch.again("aten::eq", places, all_rows), 1, True)
    powers = batch.again("aten::pow", batch.again("aten::abs", self), norm_type)
    norms = batch.again("aten::pow", batch.again("aten::sum", powers, [1], True), 1 / norm_type)
    scales = batch.again("aten::mul", batch.again("aten::reciprocal", batch.again("aten::add", norms, 1e-7)), max_norm)
    is_long = batch.again("aten::logical_and", batch.again("aten::gt", norms, max_norm), is_named)
    return batch.again("aten::where", is_long, batch.again("aten::mul", self, scales), self)


def into_one_table(batch: Batch, indices: Any, count: int) -> Any:
    """indices (...) of tables (B, count, width) -> (B, ...) of the table (B * count, width)."""
    step = batch.do("aten::reshape", Tensor(np.arange(batch.length) * count), [batch.length, *[1] * indices.ndim])
    return batch.do("aten::add", batch.whole(indices), step)


@table.batch("embedding")
def embedding(batch: Batch, weight: Any, indices: Any, padding_idx: int, scale: bool, sparse: bool) -> Any:
    """One table: indices (B, ...). A table per place in the batch: one of (B * rows, width)."""
    if not batch.has(weight):
        return batch.box(batch.same(weight, batch.front(indices), padding_idx, scale, sparse))
    one_table = batch.do("aten::flatten", batch.whole(weight), 0, 1)
    rows = batch.box(batch.do("aten::embedding", one_table, into_one_table(batch, indices, weight.shape[0]), -1, scale))
    if padding_idx < 0:
        return rows
    is_padding = batch.again("aten::unsqueeze", batch.again("aten::eq", indices, padding_idx), -1)
    return batch.again("aten::where", is_padding, batch.again("aten::detach", rows), rows)     # padding has no gradient


@table.batch("embedding_dense_backward embedding_backward")
def embedding_backward(batch: Batch, grad: Any, indices: Any, count: int, padding_idx: int, scale: bool, *sparse: bool) -> Any:
    """grad (..., width) -> (B * count, width) -> (count, width) for each; the row of the padding gets zeros."""
    if padding_idx >= 0:
        is_counted = batch.again("aten::unsqueeze", batch.again("aten::ne", indices, padding_idx), -1)
        grad = batch.again("aten::mul", grad, batch.again("aten::to", is_counted, grad.dtype))
    places = into_one_table(batch, indices, count)
    grads = batch.do("aten::embedding_dense_backward", batch.whole(grad), places, batch.length * count, -1, scale)
    return batch.box(batch.do("aten::reshape", grads, [batch.length, count, grads.shape[1]]))


@table.batch("one_hot")
def one_hot(batch: Batch, self: Any, num_classes: int) -> Any:
    """(...) -> (..., num_classes). Raises UnsupportedError if num_classes depends on the elements."""
    if num_classes < 0:
        raise UnsupportedError("aten::one_hot under vmap is not supported without num_classes: how many there are depends on the values",
                               code="E0504")
    return batch.box(batch.same(batch.front(self), num_classes))
