"""Taking and putting elements by index: a batch of indices takes the place in the batch along as one more index."""
from __future__ import annotations

from typing import Any

import numpy as np

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import no_rule, rule, shifted, wrapped_dim
from irtool.dispatch.batching.pointwise import aligned
from irtool.dispatch.stack import look_at
from irtool.ir.errors import UnsupportedError
from irtool.ops.tensor import Tensor


@rule("masked_fill.Scalar masked_fill.Tensor")
def masked_fill(batch: Batch, self: Any, mask: Any, value: Any) -> Any:
    """The mask broadcasts against what shows."""
    if not batch.has([self, mask]):     # only the value is batched
        return batch.again("aten::where", mask, batch.again("aten::to", value, self.dtype), self)
    if isinstance(value, Tensor) and batch.has(value):
        return batch.again("aten::where", mask, batch.again("aten::to", value, self.dtype), self)
    rank = max(self.ndim, mask.ndim)
    x = batch.whole(self) if batch.has(mask) and not batch.has(self) else aligned(batch, self, rank)
    return batch.box(batch.do(batch.kind, x, aligned(batch, mask, rank), value))


def rows(batch: Batch) -> Any:
    """The places in the batch."""
    return Tensor(np.arange(batch.length))


@rule("index_select")
def index_select(batch: Batch, self: Any, dim: int, index: Any) -> Any:
    """By one index for all, or each place by its own."""
    if not batch.has(index):
        if not self.ndim:
            return batch.again("aten::reshape", batch.again("aten::index_select", batch.again("aten::reshape", self, [1]), 0, index), [])
        return batch.box(batch.same(batch.front(self), shifted(dim, self), index))
    dim = wrapped_dim(dim, self.ndim)
    own = batch.again("aten::reshape", index, [1] * dim + [-1] + [1] * (self.ndim - dim - 1))
    shape = list(self.shape)
    shape[dim] = own.shape[dim]
    return batch.again("aten::gather", self, dim, batch.again("aten::expand", own, shape))


@rule("gather scatter.src scatter.value scatter.reduce scatter.value_reduce scatter_add scatter_reduce.two take_along_dim")
def gather(batch: Batch, self: Any, *args: Any) -> Any:
    """Everything gets the hidden dimension; a 0-d tensor counts as one of one element."""
    if batch.kind == "aten::take_along_dim":
        index, dim = args
        if dim is None:
            return batch.again("aten::gather", batch.again("aten::reshape", self, [-1]), 0, batch.again("aten::reshape", index, [-1]))
        shapes = [list(self.shape), list(index.shape)]
        place = wrapped_dim(dim, self.ndim)
        common = list(np.broadcast_shapes(*[tuple(1 if i == place else n for i, n in enumerate(shape)) for shape in shapes]))
        self = batch.again("aten::expand", self, [shapes[0][place] if i == place else n for i, n in enumerate(common)])
        index = batch.again("aten::expand", index, [shapes[1][place] if i == place else n for i, n in enumerate(common)])
        return batch.again("aten::gather", self, dim, index)
    dim, *rest = args
    tensors = [self, *[each for each in rest if isinstance(each, Tensor)]]
    if not self.ndim:
        found = batch.again(batch.kind, *_lifted(batch, [self, 0, *rest]), **_named(batch, rest))
        return batch.again("aten::reshape", found, [])
    if any(not each.ndim for each in tensors):
        return batch.again(batch.kind, *_lifted(batch, [self, dim, *rest]), **_named(batch, rest))
    given = [batch.whole(each) if isinstance(each, Tensor) else each for each in rest]
    return batch.box(batch.same(batch.whole(self), shifted(dim, self), *given))


def _lifted(batch: Batch, args: list[Any]) -> list[Any]:
    """Positional arguments, with 0-d tensors as tensors of one element."""
    count = sum(not argument.keyword_only for argument in batch.schema.arguments)
    return [batch.again("aten::reshape", each, [1]) if isinstance(each, Tensor) and not each.ndim else each for each in args[:count]]


def _named(batch: Batch, rest: list[Any]) -> dict[str, Any]:
    arguments = batch.schema.arguments
    return {argument.name: value for argument, value in zip(arguments[2:], rest, strict=False) if argument.keyword_only}


def by_place(batch: Batch, self: Any, dim: int, index: Any, shape: list[int]) -> Any:
    """An index along a dimension, as gather and scatter take it: of as many dimensions as the tensor."""
    own = batch.again("aten::reshape", index, [-1 if place == dim else 1 for place in range(self.ndim)])
    return batch.again("aten::expand", own, shape)


@rule("index_add index_copy index_reduce")
def index_add(batch: Batch, self: Any, dim: int, index: Any, source: Any, *rest: Any) -> Any:
    """With one index for all, or each place by its own."""
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


@rule("index_fill.int_Scalar index_fill.int_Tensor")
def index_fill(batch: Batch, self: Any, dim: int, index: Any, value: Any) -> Any:
    """With one index for all, or each place by its own."""
    if not self.ndim:
        return batch.again("aten::reshape", index_fill(batch, batch.again("aten::reshape", self, [1]), 0, index, value), [])
    shape = list(self.shape)
    place = wrapped_dim(dim, self.ndim)
    shape[place] = index.shape[0] if index.ndim else 1
    if batch.has([value, index]):
        given = value if isinstance(value, Tensor) else batch.again("aten::new_full", self, [], value)
        given = batch.again("aten::expand", batch.again("aten::to", given, self.dtype), shape)
        return batch.again("aten::scatter", self, place, by_place(batch, self, place, index, shape), given)
    return batch.box(batch.same(batch.whole(self), shifted(dim, self), index, value))


@rule("_unsafe_masked_index")
def masked_index(batch: Batch, self: Any, mask: Any, indices: Any, fill: Any) -> Any:
    """By index, and then by mask."""
    taken = batch.again("aten::index", self, _masked(batch, mask, indices))
    return batch.again("aten::where", mask, taken, batch.again("aten::new_full", taken, [], fill))


@rule("_unsafe_masked_index_put_accumulate")
def masked_index_put(batch: Batch, self: Any, mask: Any, indices: Any, values: Any) -> Any:
    """Values where the mask holds, added."""
    kept = batch.again("aten::where", mask, values, batch.again("aten::zeros_like", values))
    return batch.again("aten::index_put", self, _masked(batch, mask, indices), kept, True)


def _masked(batch: Batch, mask: Any, indices: Any) -> list[Any]:
    return [batch.again("aten::where", mask, each, batch.again("aten::zeros_like", each)) if isinstance(each, Tensor) else None
            for each in indices]


@rule("take")
def take(batch: Batch, self: Any, index: Any) -> Any:
    """Of all that shows in one dimension."""
    flat = batch.again("aten::reshape", self, [-1])
    found = batch.again("aten::gather", flat, 0, batch.again("aten::reshape", index, [-1]))
    return batch.again("aten::reshape", found, list(index.shape))


@rule("index.Tensor index.Tensor_hacked_twin _unsafe_index.Tensor _unsafe_index.Tensor_hacked_twin")
def index(batch: Batch, self: Any, indices: Any) -> Any:
    """With one more index, that of the place, where indices are batched; and then masks are not taken."""
    indices = [each if isinstance(each, Tensor) else None for each in indices]
    if not batch.has(indices):
        return _index_same(batch, self, indices)
    if any(each is not None and each.dtype in (0, 11) for each in indices):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported with masks among batched indices")
    rank = max(each.ndim for each in indices if each is not None)
    own = [None if each is None else aligned(batch, each, rank) for each in indices]
    first = batch.do("aten::reshape", rows(batch), [batch.length, *[1] * rank])
    places = [place for place, each in enumerate(indices) if each is not None]
    is_together = places == list(range(places[0], places[-1] + 1))
    if not batch.has(self):
        found = batch.do(batch.kind, self, own)
        return batch.box(found, places[0] if is_together else 0)
    found = batch.do(batch.kind, batch.front(self), [first, *own])
    if is_together and places[0]:       # the new dimensions came first, since an index that is not beside them was added
        found = batch.do("aten::movedim", found, list(range(1, 1 + rank)), list(range(1 + places[0], 1 + places[0] + rank)))
    return batch.box(found)


def _index_same(batch: Batch, self: Any, indices: list[Any]) -> Any:
    """By the same indices for all places."""
    x = batch.front(self)
    given = [each for each in indices if each is not None]
    places = [place for place, each in enumerate(indices) if each is not None]
    found = batch.do(batch.kind, x, [None, *indices])
    if places and places != list(range(places[0], places[-1] + 1)):
        rank = max(len(np.broadcast_shapes(*[tuple(each.shape) for each in given if each.dtype not in (0, 11)])) if any(
            each.dtype not in (0, 11) for each in given) else 0, 1 if any(each.dtype in (0, 11) for each in given) else 0)
        return batch.box(found, rank)       # indices apart: their dimensions come first, before the hidden one
    return batch.box(found)


@rule("index_put index_put.hacked_twin _unsafe_index_put _unsafe_index_put.hacked_twin _index_put_impl")
def index_put(batch: Batch, self: Any, indices: Any, values: Any, accumulate: bool, *rest: Any) -> Any:
    """With one more index, that of the place."""
    indices = [each if isinstance(each, Tensor) else None for each in indices]
    if any(each is None or each.dtype in (0, 11) for each in indices):
        places = [place for place, each in enumerate(indices) if each is not None]
        if batch.has(indices) or batch.has(values) and places != list(range(places[0], places[-1] + 1)):
            raise UnsupportedError(f"{batch.kind} under vmap is not supported with masks or whole dimensions among batched indices")
        given = [each for each in indices if each is not None]
        used = sum(each.ndim if each.dtype in (0, 11) else 1 for each in given)
        rank = self.ndim - used + max(1 if each.dtype in (0, 11) else each.ndim for each in given)
        return batch.box(batch.do("aten::index_put", batch.whole(self), [None, *indices], aligned(batch, values, rank), accumulate))
    shape = list(np.broadcast_shapes(*[tuple(each.shape) for each in indices]))
    own = [aligned(batch, each, len(shape)) for each in indices]
    first = batch.do("aten::reshape", rows(batch), [batch.length, *[1] * len(shape)])
    tail = list(self.shape[len(indices):])
    given = aligned(batch, values, len(shape) + len(tail)) if batch.has(values) else values
    return batch.box(batch.do("aten::index_put", batch.whole(self), [first, *own], given, accumulate))


@rule("gather_backward")
def gather_backward(batch: Batch, grad: Any, self: Any, dim: int, index: Any, sparse_grad: bool) -> Any:
    """Added into zeros."""
    return batch.again("aten::scatter_add", batch.again("aten::zeros_like", self), dim, index, grad)


@rule("index_select_backward select_backward slice_backward diagonal_backward trace_backward unfold_backward")
def backward(batch: Batch, grad: Any, sizes: Any, *rest: Any) -> Any:
    """Into zeros of the whole batch."""
    name = batch.kind.removeprefix("aten::")
    if name == "trace_backward":
        return batch.box(batch.do("aten::diagonal_backward", batch.do("aten::expand", batch.do("aten::unsqueeze", batch.front(grad), 1),
                                                                      [batch.length, min(sizes)]), [batch.length, *sizes], 0, 1, 2))
    rank = len(sizes)
    if name == "diagonal_backward":
        offset, first, second = rest
        return batch.box(batch.same(batch.front(grad), [batch.length, *sizes], offset, wrapped_dim(first, rank) + 1,
                                    wrapped_dim(second, rank) + 1))
    dim, *others = rest
    if any(batch.has(each) for each in others):
        return batch.again("aten::index_add", batch.again("aten::new_zeros", grad, list(sizes)), dim, others[0], grad)
    return batch.box(batch.same(batch.front(grad), [batch.length, *sizes], wrapped_dim(dim, rank) + 1, *others))


@rule("select_scatter slice_scatter diagonal_scatter")
def put_back(batch: Batch, self: Any, src: Any, *rest: Any) -> Any:
    """Into the whole batch."""
    name = batch.kind.removeprefix("aten::")
    if name == "diagonal_scatter":
        offset, first, second = rest
        return batch.box(batch.same(batch.whole(self), batch.whole(src), offset, shifted(first, self), shifted(second, self)))
    dim, *others = rest
    return batch.box(batch.same(batch.whole(self), batch.whole(src), shifted(dim, self), *others))


# ---- strided memory: that of one place is taken to lie in order

def flat_places(size: Any, stride: Any, offset: Any) -> Any:
    """Where the elements of a strided view lie."""
    places = np.asarray(offset or 0, np.int64)
    for extent, step in zip(size, stride, strict=True):
        places = places[..., None] + np.arange(extent) * step
    return Tensor(places)


@rule("as_strided as_strided_copy")
def as_strided(batch: Batch, self: Any, size: Any, stride: Any, offset: Any) -> Any:
    """Elements by place."""
    return batch.again("aten::take", self, flat_places(size, stride, offset))


@rule("as_strided_scatter")
def as_strided_scatter(batch: Batch, self: Any, src: Any, size: Any, stride: Any, offset: Any) -> Any:
    """Elements by place."""
    return batch.again("aten::put", self, flat_places(size, stride, offset), src)


@rule("storage_offset sym_storage_offset")
def storage_offset(batch: Batch, self: Any) -> int:
    """In order from the start."""
    return 0


@rule("_reshape_alias")
def reshape_alias(batch: Batch, self: Any, size: Any, stride: Any) -> Any:
    """Another shape."""
    return batch.again("aten::reshape", self, list(size))


def numbers_of(batch: Batch, value: Any) -> Any:
    """Numbers that sizes are made of. Raises UnsupportedError where they differ from place to place."""
    if batch.has(value):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported where sizes are batched")
    return look_at(value).tolist()


@rule("_reshape_from_tensor")
def reshape_from_tensor(batch: Batch, self: Any, shape: Any) -> Any:
    """To sizes that are the same for all."""
    return batch.again("aten::reshape", self, numbers_of(batch, shape))


@rule("tensor_split.tensor_indices_or_sections")
def tensor_split(batch: Batch, self: Any, where: Any, dim: int) -> Any:
    """At places that are the same for all."""
    return batch.again("aten::tensor_split", self, numbers_of(batch, where), dim)


no_rule("only for strided memory", "resize_ resize_as_")
