"""Batching rules of indexing. If indices are batched, the position in the batch is one more index."""
from __future__ import annotations

from math import prod
from typing import Any

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.array_library import np
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import LONG, aligned, ravel, shifted, wrapped_dim, zeros_where
from irtool.ops.batching.diagonal import gradient_of_part
from irtool.ops.batching.histogram import counts
from irtool.ops.kernels.indexing import table
from irtool.ops.tensor import Tensor


@table.batch("nonzero_static")
def nonzero_static(batch: Batch, self: Any, size: int, fill: int) -> Any:
    """(size, ndim): places of the first `size` nonzeros, by a sort of their flat places; `fill` behind them."""
    total = prod(self.shape)
    nonzero = ravel(batch, batch.again("aten::ne", self, 0))
    order = batch.again("aten::where", nonzero, Tensor(np.arange(total)), Tensor(np.full(total, total)))
    order = batch.again("aten::sort", order)[0]
    if size > total:
        order = batch.again("aten::constant_pad_nd", order, [0, size - total], total)
    order = batch.again("aten::unsqueeze", batch.again("aten::narrow", order, 0, 0, size), 1)
    steps = [max(prod(self.shape[dim + 1:]), 1) for dim in range(self.ndim)]
    indices = batch.again("aten::remainder", batch.again("aten::floor_divide", order, Tensor(np.array(steps, np.int64))),
                        Tensor(np.maximum(self.shape, 1).astype(np.int64)))
    return batch.again("aten::where", batch.again("aten::lt", order, total), indices, Tensor(np.asarray(fill)))


def places_of(batch: Batch, mask: Any, extent: int) -> Any:
    """mask (n) -> (n): how many elements before each are true, at most extent - 1."""
    before = batch.again("aten::sub", batch.again("aten::cumsum", batch.again("aten::to", mask, LONG), 0), 1)
    return batch.again("aten::clamp", before, 0, max(extent - 1, 0))


@table.batch("masked_scatter")
def masked_scatter(batch: Batch, self: Any, mask: Any, source: Any) -> Any:
    """Element k of source goes to the k-th true place of mask. That source is long enough is not checked."""
    shape = list(np.broadcast_shapes(tuple(self.shape), tuple(mask.shape)))
    x, where = (ravel(batch, batch.again("aten::expand", each, shape)) for each in (self, mask))
    total = prod(source.shape)
    if not total or not prod(shape):
        return batch.again("aten::reshape", x, shape)
    taken = batch.again("aten::take", source, places_of(batch, where, total))
    return batch.again("aten::reshape", batch.again("aten::where", where, taken, x), shape)


@table.batch("masked_scatter_backward")
def masked_scatter_backward(batch: Batch, grad: Any, mask: Any, sizes: Any) -> Any:
    """grad where mask is true, in order, then zeros -> sizes."""
    where = ravel(batch, batch.again("aten::expand", mask, list(grad.shape)))
    total = prod(sizes)
    values = zeros_where(batch, where, ravel(batch, grad))
    return batch.again("aten::reshape", counts(batch, places_of(batch, where, total), values, total), list(sizes))


@table.batch("masked_select_backward")
def masked_select_backward(batch: Batch, grad: Any, input: Any, mask: Any) -> Any:
    """grad's elements to the true places of mask, in zeros of the broadcast shape. Raises UnsupportedError for a batched mask."""
    if batch.has(mask):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported where the mask is batched", code="E0504")
    shape = list(np.broadcast_shapes(tuple(input.shape), tuple(mask.shape)))
    return batch.again("aten::masked_scatter", batch.again("aten::new_zeros", grad, shape), mask, grad)


@table.batch("masked_fill")
def masked_fill(batch: Batch, self: Any, mask: Any, value: Any) -> Any:
    """mask and self aligned to one rank, so that they broadcast; a batched value goes through `where`."""
    if not batch.has([self, mask]):     # only the value is batched
        return batch.again("aten::where", mask, batch.again("aten::to", value, self.dtype), self)
    if isinstance(value, Tensor) and batch.has(value):
        return batch.again("aten::where", mask, batch.again("aten::to", value, self.dtype), self)
    rank = max(self.ndim, mask.ndim)
    return batch.box(batch.do(batch.kind, aligned(batch, self, rank), aligned(batch, mask, rank), value))


def rows(batch: Batch) -> Any:
    """(B): 0, 1, ..., B - 1."""
    return Tensor(np.arange(batch.length))


@table.batch("index_select")
def index_select(batch: Batch, self: Any, dim: int, index: Any) -> Any:
    """index (n) for all: dim + 1. A batched index: expanded to self's shape, by gather."""
    if not self.ndim:
        return batch.again("aten::reshape", batch.again("aten::index_select", batch.again("aten::reshape", self, [1]), 0, index), [])
    if not batch.has(index):
        return batch.box(batch.same(batch.front(self), shifted(dim, self), index))
    dim = wrapped_dim(dim, self.ndim)
    places = batch.again("aten::reshape", index, [1] * dim + [-1] + [1] * (self.ndim - dim - 1))
    shape = list(self.shape)
    shape[dim] = places.shape[dim]
    return batch.again("aten::gather", self, dim, batch.again("aten::expand", places, shape))


@table.batch("gather take_along_dim")
def gather(batch: Batch, self: Any, *args: Any) -> Any:
    """All operands (B, ...), dim + 1. A 0-d operand is reshaped to (1) first."""
    if batch.kind == "aten::take_along_dim":
        index, dim = args
        if dim is None:
            return batch.again("aten::gather", batch.again("aten::reshape", self, [-1]), 0, batch.again("aten::reshape", index, [-1]))
        shapes = [list(self.shape), list(index.shape)]
        place = wrapped_dim(dim, self.ndim)
        common = list(np.broadcast_shapes(*[tuple(1 if i == place else n for i, n in enumerate(shape)) for shape in shapes]))
        index = batch.again("aten::remainder", index, max(shapes[0][place], 1))
        self = batch.again("aten::expand", self, [shapes[0][place] if i == place else n for i, n in enumerate(common)])
        index = batch.again("aten::expand", index, [shapes[1][place] if i == place else n for i, n in enumerate(common)])
        return batch.again("aten::gather", self, dim, index)
    dim, *rest = args
    tensors = [self, *[each for each in rest if isinstance(each, Tensor)]]
    if any(not each.ndim for each in tensors):
        result = batch.again(batch.kind, *_lifted(batch, [self, dim, *rest]), **_named(batch, rest))
        return batch.again("aten::reshape", result, list((rest[0] if batch.kind == "aten::gather" else self).shape))
    others = [batch.whole(each) if isinstance(each, Tensor) else each for each in rest]
    return batch.box(batch.same(batch.whole(self), shifted(dim, self), *others))


def _lifted(batch: Batch, args: list[Any]) -> list[Any]:
    """The positional arguments, with 0-d tensors as (1)."""
    count = sum(not argument.keyword_only for argument in batch.schema.arguments)
    return [batch.again("aten::reshape", each, [1]) if isinstance(each, Tensor) and not each.ndim else each for each in args[:count]]


def _named(batch: Batch, rest: list[Any]) -> dict[str, Any]:
    """The arguments after `*` in the schema, by name."""
    arguments = batch.schema.arguments
    return {argument.name: value for argument, value in zip(arguments[2:], rest, strict=False) if argument.keyword_only}


def by_place(batch: Batch, self: Any, dim: int, index: Any, shape: list[int]) -> Any:
    """index (n) along `dim` -> `shape`, as gather and scatter take it."""
    column = batch.again("aten::reshape", index, [-1 if place == dim else 1 for place in range(self.ndim)])
    return batch.again("aten::expand", column, shape)


@table.batch("index_add index_copy")
def index_add(batch: Batch, self: Any, dim: int, index: Any, source: Any, *rest: Any) -> Any:
    """index (n) for all: dim + 1. A batched index: expanded to source's shape, by scatter, scatter_reduce or scatter_add."""
    if not self.ndim:
        one = [batch.again("aten::reshape", each, [-1]) for each in (self, source)]
        return batch.again("aten::reshape", index_add(batch, one[0], 0, index, one[1], *rest), [])
    if not source.ndim:
        source = batch.again("aten::reshape", source, [1] * self.ndim)
    if not batch.has(index):
        return batch.box(batch.same(batch.whole(self), shifted(dim, self), index, batch.whole(source), *rest))
    dim = wrapped_dim(dim, self.ndim)
    places = by_place(batch, self, dim, index, list(source.shape))
    if batch.kind == "aten::index_copy":
        return batch.again("aten::scatter", self, dim, places, source)
    if batch.kind == "aten::index_reduce":
        return batch.again("aten::scatter_reduce", self, dim, places, source, rest[0], include_self=rest[1])
    return batch.again("aten::scatter_add", self, dim, places, source if rest[0] == 1 else batch.again("aten::mul", source, rest[0]))


@table.batch("index_fill")
def index_fill(batch: Batch, self: Any, dim: int, index: Any, value: Any) -> Any:
    """index (n) for all: dim + 1. A batched index or value: expanded, by scatter."""
    if not self.ndim:
        return batch.again("aten::reshape", index_fill(batch, batch.again("aten::reshape", self, [1]), 0, index, value), [])
    shape = list(self.shape)
    place = wrapped_dim(dim, self.ndim)
    shape[place] = index.shape[0] if index.ndim else 1
    if batch.has([value, index]):
        index = from_start(batch, index, self.shape[place])
        filling = value if isinstance(value, Tensor) else batch.again("aten::new_full", self, [], value)
        filling = batch.again("aten::expand", batch.again("aten::to", filling, self.dtype), shape)
        return batch.again("aten::scatter", self, place, by_place(batch, self, place, index, shape), filling)
    return batch.box(batch.same(batch.whole(self), shifted(dim, self), index, value))


@table.batch("_unsafe_masked_index")
def masked_index(batch: Batch, self: Any, mask: Any, indices: Any, fill: Any) -> Any:
    """self[indices], `fill` where mask is false; indices there are 0, so that none is out of range."""
    taken = batch.again("aten::index", self, _masked(batch, mask, indices))
    return batch.again("aten::where", mask, taken, batch.again("aten::new_full", taken, [], fill))


@table.batch("_unsafe_masked_index_put_accumulate")
def masked_index_put(batch: Batch, self: Any, mask: Any, indices: Any, values: Any) -> Any:
    """values, zeros where mask is false, added at indices."""
    masked = batch.again("aten::where", mask, values, batch.again("aten::zeros_like", values))
    return batch.again("aten::index_put", self, _masked(batch, mask, indices), masked, True)


def _masked(batch: Batch, mask: Any, indices: Any) -> list[Any]:
    """Indices, 0 where mask is false."""
    return [batch.again("aten::where", mask, each, batch.again("aten::zeros_like", each)) if isinstance(each, Tensor) else None
            for each in indices]


@table.batch("take")
def take(batch: Batch, self: Any, index: Any) -> Any:
    """self -> (n), by gather; the result has index's shape."""
    flat = batch.again("aten::reshape", self, [-1])
    taken = batch.again("aten::gather", flat, 0, from_start(batch, batch.again("aten::reshape", index, [-1]), flat.shape[0]))
    return batch.again("aten::reshape", taken, list(index.shape))


def from_start(batch: Batch, index: Any, extent: int) -> Any:
    """Indices that count from the end, counted from the start."""
    return batch.again("aten::where", batch.again("aten::lt", index, 0), batch.again("aten::add", index, extent), index)


@table.batch("index _unsafe_index")
def index(batch: Batch, self: Any, indices: Any) -> Any:
    """Batched indices: one more index (B, 1, ...) in front, the place in the batch. Raises UnsupportedError for masks among them."""
    indices = [each if isinstance(each, Tensor) else None for each in indices]
    if not batch.has(indices):
        return _index_same(batch, self, indices)
    if any(map(is_mask, indices)):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported with masks among batched indices", code="E0504")
    rank = max(each.ndim for each in indices if each is not None)
    lined_up = [None if each is None else aligned(batch, each, rank) for each in indices]
    first = batch.do("aten::reshape", rows(batch), [batch.length, *[1] * rank])
    places = [place for place, each in enumerate(indices) if each is not None]
    is_together = places == list(range(places[0], places[-1] + 1))
    if not batch.has(self):
        taken = batch.do(batch.kind, self, lined_up)
        return batch.box(taken, places[0] if is_together else 0)
    taken = batch.do(batch.kind, batch.front(self), [first, *lined_up])
    if is_together and places[0]:       # the new dimensions came first, since an index that is not beside them was added
        taken = batch.do("aten::movedim", taken, list(range(1, 1 + rank)), list(range(1 + places[0], 1 + places[0] + rank)))
    return batch.box(taken)


def is_mask(index: Any) -> bool:
    """Is an index a tensor of bools (or bytes, which count as such)?"""
    return index is not None and index.dtype in (0, 11)


def _index_same(batch: Batch, self: Any, indices: list[Any]) -> Any:
    """Indices that are not batched: [:, *indices] of self (B, ...)."""
    x = batch.front(self)
    tensors = [each for each in indices if each is not None]
    places = [place for place, each in enumerate(indices) if each is not None]
    taken = batch.do(batch.kind, x, [None, *indices])
    if places and places != list(range(places[0], places[-1] + 1)):
        shapes = [tuple(each.shape) for each in tensors if not is_mask(each)]
        rank = max(len(np.broadcast_shapes(*shapes)), int(any(map(is_mask, tensors))))
        return batch.box(taken, rank)       # indices apart: their dimensions come first, before B
    return batch.box(taken)


@table.batch("index_put index_put.hacked_twin _unsafe_index_put _unsafe_index_put.hacked_twin _index_put_impl")
def index_put(batch: Batch, self: Any, indices: Any, values: Any, accumulate: bool, *rest: Any) -> Any:
    """self (B, ...): indices that are not batched at [:, *indices], others with one more index (B, 1, ...) in front; a batched mask by
    `where`. Raises UnsupportedError for a batched mask beside other indices, or with a value for each of its places."""
    indices = [each if isinstance(each, Tensor) else None for each in indices]
    places = [place for place, each in enumerate(indices) if each is not None]
    present = [indices[place] for place in places]
    if len(present) == 1 and is_mask(present[0]) and prod(values.shape) == 1 and not accumulate:
        return _put_where(batch, self, present, places[0], values, accumulate)      # the value may have another dtype
    used = sum(each.ndim if is_mask(each) else 1 for each in present)
    shape = np.broadcast_shapes(*[(1,) if is_mask(each) else tuple(each.shape) for each in present])
    width, rank = len(shape), self.ndim - used + len(shape)
    is_together = places == list(range(places[0], places[-1] + 1))
    if not batch.has(indices):
        spread = _of_rank(batch, values, rank)
        if not is_together:     # indices apart: their dimensions come first, before B
            spread = batch.do("aten::movedim", spread, 0, width)
        return batch.box(batch.do("aten::index_put", batch.whole(self), [None, *indices], spread, accumulate))
    if any(map(is_mask, present)):
        return _put_where(batch, self, present, places[0], values, accumulate)
    lined_up = [None if each is None else aligned(batch, each, width) for each in indices]
    first = batch.do("aten::reshape", rows(batch), [batch.length, *[1] * width])
    spread = aligned(batch, values, rank) if batch.has(values) else values
    if is_together and places[0]:       # the dimensions of the indices come first, since an index that is not beside them was added
        spread = batch.do("aten::movedim", _of_rank(batch, values, rank), list(range(1 + places[0], 1 + places[0] + width)),
                          list(range(1, 1 + width)))
    return batch.box(batch.do("aten::index_put", batch.whole(self), [first, *lined_up], spread, accumulate))


def _of_rank(batch: Batch, value: Any, rank: int) -> Any:
    """(*shape) -> (B, 1, ..., 1, *shape) of rank + 1 dimensions."""
    return batch.do("aten::reshape", batch.whole(value), [batch.length, *[1] * (rank - value.ndim), *value.shape])


def _put_where(batch: Batch, self: Any, present: list[Any], before: int, values: Any, accumulate: bool) -> Any:
    """Values that are the same at all places of a batched mask, which covers dimensions of self from `before` on."""
    mask = present[0]
    behind = self.ndim - before - mask.ndim
    sizes = list(values.shape)
    if len(present) > 1 or len(sizes) > behind and sizes[-1 - behind] != 1:
        raise UnsupportedError(f"{batch.kind} under vmap is not supported with masks among batched indices", code="E0504")
    mask = batch.again("aten::to", batch.again("aten::reshape", mask, [*mask.shape, *[1] * behind]), 11)
    if prod(sizes) == 1 and not accumulate:
        return batch.again("aten::masked_fill", self, mask, batch.again("aten::reshape", values, []))
    if values.dtype != self.dtype:
        raise RunError("Index put requires the source and destination dtypes match")
    if len(sizes) > behind:
        values = batch.again("aten::reshape", values, [*sizes[:-1 - behind], *[1] * present[0].ndim, *sizes[len(sizes) - behind:]])
    return batch.again("aten::where", mask, batch.again("aten::add", self, values) if accumulate else values, self)



@table.batch("gather_backward")
def gather_backward(batch: Batch, grad: Any, self: Any, dim: int, index: Any, sparse_grad: bool) -> Any:
    """grad added by index into zeros like self."""
    return batch.again("aten::scatter_add", batch.again("aten::zeros_like", self), dim, index, grad)


@table.batch("put")
def put(batch: Batch, self: Any, index: Any, source: Any, accumulate: bool) -> Any:
    """self -> (n), by scatter or scatter_add, and back."""
    flat, place, values = (batch.again("aten::reshape", each, [-1]) for each in (self, index, source))
    place = from_start(batch, place, flat.shape[0])
    result = batch.again("aten::scatter_add" if accumulate else "aten::scatter", flat, 0, place, values)
    return batch.again("aten::reshape", result, list(self.shape))


table.batch("index_select_backward")(gradient_of_part)
table.not_batched("its sizes depend on the values", "nonzero nonzero_numpy argwhere masked_select where")
