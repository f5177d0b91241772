"""Batching rules of diagonals (those of copies of views are the views'), of gradients and of writes that put a part into a whole."""
from __future__ import annotations

from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import flat_places, of_ranks, shifted, untouched, wrapped_dim
from irtool.ops.kernels.diagonal import table


@table.batch("select_backward slice_backward diagonal_backward trace_backward")
def gradient_of_part(batch: Batch, grad: Any, sizes: Any, *rest: Any) -> Any:
    """Zeros (B, *sizes) with grad at the place of the part; if the index is batched, by index_add."""
    name = batch.kind.removeprefix("aten::")
    if name == "trace_backward":
        return batch.box(batch.do("aten::diagonal_backward", batch.do("aten::expand", batch.do("aten::unsqueeze", batch.front(grad), 1),
                                                                      [batch.length, min(sizes)]), [batch.length, *sizes], 0, 1, 2))
    rank = len(sizes)
    if name == "diagonal_backward":
        offset, first, second = rest
        whole = batch.front(grad)
        for _ in range(rank - 1 - grad.ndim):       # so that it is broadcast to the diagonal at each place
            whole = batch.do("aten::unsqueeze", whole, 1)
        return batch.box(batch.same(whole, [batch.length, *sizes], offset, wrapped_dim(first, rank) + 1,
                                    wrapped_dim(second, rank) + 1))
    dim, *others = rest
    if any(batch.has(each) for each in others):
        return batch.again("aten::index_add", batch.again("aten::new_zeros", grad, list(sizes)), dim, others[0], grad)
    return batch.box(batch.same(batch.front(grad), [batch.length, *sizes], wrapped_dim(dim, rank) + 1, *others))


@table.batch("select_scatter slice_scatter diagonal_scatter")
def put_back(batch: Batch, self: Any, src: Any, *rest: Any) -> Any:
    """self (B, ...) and src (B, ...): the dimensions named move up by one."""
    name = batch.kind.removeprefix("aten::")
    if name == "diagonal_scatter":
        offset, first, second = rest
        return batch.box(batch.same(batch.whole(self), batch.whole(src), offset, shifted(first, self), shifted(second, self)))
    dim, *others = rest
    return batch.box(batch.same(batch.whole(self), batch.whole(src), shifted(dim, self), *others))


@table.batch("as_strided_scatter")
def as_strided_scatter(batch: Batch, self: Any, src: Any, size: Any, stride: Any, offset: Any) -> Any:
    """By `put` at the places that size and stride name in the flattened self."""
    return batch.again("aten::put", self, flat_places(size, stride, offset), src)


@table.batch("unfold_copy")
def unfold(batch: Batch, self: Any, dimension: int, size: int, step: int) -> Any:
    """A copy of `unfold`, which is a view."""
    return batch.again("aten::clone", batch.again("aten::unfold", self, dimension, size, step))


@table.batch("diag_embed")
def diag_embed(batch: Batch, self: Any, offset: int, first: int, second: int) -> Any:
    """(..., n) -> (..., n, n): both dimensions are counted in the result, of one rank more."""
    rank = self.ndim + 1
    return batch.box(batch.same(batch.front(self), offset, wrapped_dim(first, rank) + 1, wrapped_dim(second, rank) + 1))


@table.batch("diag")
@of_ranks(1, 2)
def diag(batch: Batch, self: Any, diagonal: int) -> Any:
    """(n) -> (n, n), or (n, m) -> its diagonal."""
    return batch.again("aten::diag_embed", self, diagonal) if self.ndim == 1 else batch.again("aten::diagonal_copy", self, diagonal)


@table.batch("diagflat")
def diagflat(batch: Batch, self: Any, offset: int) -> Any:
    """(...) -> (n) -> (n, n)."""
    return batch.again("aten::diag_embed", batch.again("aten::reshape", self, [-1]), offset)


@table.batch("trace")
@of_ranks(2, 2)
def trace(batch: Batch, self: Any) -> Any:
    """(n, m) -> (), the sum of the diagonal."""
    return batch.again("aten::sum", batch.again("aten::diagonal", self, 0, 0, 1), [-1])


table.batch("tril triu")(of_ranks(2)(untouched))
