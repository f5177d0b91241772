"""Batching rules of joining, splitting and repeating."""
from __future__ import annotations

import itertools
from typing import Any

from irtool.ir.errors import UnsupportedError
from irtool.ops.array_library import np
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import along, numbers_of, of_ranks, promoted_dtype, shifted, wrapped_dim
from irtool.ops.batching.diagonal import gradient_of_part
from irtool.ops.batching.shape import reshape
from irtool.ops.kernels.joining import table
from irtool.ops.tensor import Tensor


@table.batch("tensor_split.tensor_indices_or_sections")
def tensor_split(batch: Batch, self: Any, where: Any, dim: int) -> Any:
    """At numbers of a tensor that is not batched."""
    return batch.again("aten::tensor_split", self, numbers_of(batch, where), dim)


@table.batch("norm_except_dim")
def norm_except_dim(batch: Batch, v: Any, pow: int, dim: int) -> Any:
    """v (...) -> (1, ..., n, ..., 1): norms over all dimensions but `dim`; () where dim is -1."""
    dims = [place for place in range(v.ndim) if dim == -1 or place != dim]
    norm = batch.again("aten::linalg_vector_norm", v, pow, dims, True)
    return batch.again("aten::reshape", norm, []) if dim == -1 else norm


@table.batch("_weight_norm _weight_norm_interface")
def weight_norm(batch: Batch, v: Any, g: Any, dim: int) -> Any:
    """v * (g / norm), and the norm."""
    norm = batch.again("aten::norm_except_dim", v, 2, dim)
    scaled = batch.again("aten::mul", v, batch.again("aten::div", g, norm))
    return scaled if batch.kind == "aten::_weight_norm" else (scaled, norm)


@table.batch("block_diag")
def block_diag(batch: Batch, tensors: Any) -> Any:
    """Each (n, m) padded to the whole size; the sum of them."""
    blocks = [batch.again("aten::reshape", each, [1] * (2 - each.ndim) + list(each.shape)) if each.ndim < 2 else each for each in tensors]
    rows, columns = sum(each.shape[0] for each in blocks), sum(each.shape[1] for each in blocks)
    total, row, column = None, 0, 0
    for each in blocks:
        height, width = each.shape
        block = batch.again("aten::constant_pad_nd", each, [column, columns - column - width, row, rows - row - height], 0)
        total = block if total is None else batch.again("aten::add", total, block)
        row, column = row + height, column + width
    dtype = promoted_dtype(tensors)     # that of the blocks may be wider, since numbers have become matrices
    return total if total is None or total.dtype == dtype else batch.again("aten::to", total, dtype)


@table.batch("cartesian_prod")
def cartesian_prod(batch: Batch, tensors: Any) -> Any:
    """r tensors (n) -> (n * ..., r), by meshgrid."""
    if len(tensors) == 1:
        return tensors[0]
    grids = batch.again("aten::meshgrid", tensors)
    return batch.again("aten::stack", [batch.again("aten::reshape", each, [-1]) for each in grids], 1)


@table.batch("combinations")
@of_ranks(1, 1)
def combinations(batch: Batch, self: Any, r: int, with_replacement: bool) -> Any:
    """(n) -> (rows, r): elements by a table of places."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(range(self.shape[0]), r)), np.int64).reshape(-1, r)
    return batch.again("aten::take", self, Tensor(places))


def padded(batch: Batch, x: Any, dim: int, before: int, after: int, value: float = 0.0) -> Any:
    """`before` and `after` more places at both ends of dimension `dim`."""
    return batch.again("aten::constant_pad_nd", x, [0, 0] * (x.ndim - 1 - dim) + [before, after], value)


@table.batch("pad_sequence")
def pad_sequence(batch: Batch, sequences: Any, batch_first: bool, value: float, side: str) -> Any:
    """Tensors (n, ...) in the dtype of the first, padded to the longest, stacked."""
    tail, dtype = list(sequences[0].shape[1:]), sequences[0].dtype
    sequences = [each if each.dtype == dtype else batch.again("aten::to", each, dtype) for each in sequences]
    sequences = [each if list(each.shape[1:]) == tail else batch.again("aten::expand", each, [each.shape[0], *tail]) for each in sequences]
    longest = max(each.shape[0] for each in sequences)
    rooms = [longest - each.shape[0] for each in sequences]
    rows = [padded(batch, each, 0, room if side == "left" else 0, 0 if side == "left" else room, value)
            for each, room in zip(sequences, rooms, strict=True)]
    return batch.again("aten::stack", rows, 0 if batch_first else 1)


@table.batch("_chunk_cat")
def chunk_cat(batch: Batch, tensors: Any, dim: int, num_chunks: int) -> Any:
    """Each padded to num_chunks chunks of one size -> (..., num_chunks, -1); then joined behind `dim`."""
    dim = wrapped_dim(dim, tensors[0].ndim)
    pieces = []
    for each in tensors:
        size = -(-each.shape[dim] // num_chunks)
        room = padded(batch, each, dim, 0, size * num_chunks - each.shape[dim])
        pieces.append(batch.again("aten::reshape", room, [*each.shape[:dim], num_chunks, -1]))
    return batch.again("aten::cat", pieces, dim + 1)


@table.batch("flatten_dense_tensors")
def flatten_dense_tensors(batch: Batch, tensors: Any) -> Any:
    """Each (...) -> (n), joined."""
    parts = [batch.again("aten::reshape", batch.again("aten::contiguous", each), [-1]) for each in tensors]
    return parts[0] if len(parts) == 1 else batch.again("aten::cat", parts, 0)


@table.batch("unflatten_dense_tensors")
def unflatten_dense_tensors(batch: Batch, flat: Any, tensors: Any) -> Any:
    """(n) cut into pieces of the shapes of `tensors`."""
    parts, start = [], 0
    for each in tensors:
        count = each.numel()
        parts.append(batch.again("aten::reshape", batch.again("aten::narrow", flat, 0, start, count), list(each.shape)))
        start += count
    return parts


def fronts(batch: Batch, tensors: Any) -> list[Any]:
    """Each (...) -> (B, ...)."""
    return [batch.whole(each) for each in tensors]


@table.batch("cat concat concatenate")
def cat(batch: Batch, tensors: Any, dim: int) -> Any:
    """dim + 1 of (B, ...). Tensors of shape (0) are left out, as torch does, but for their dtype; of such alone any `dim` will do."""
    rank = max(each.ndim for each in tensors)
    counted = [each for each in tensors if each.ndim == rank or each.shape != [0]]
    joined = batch.box(batch.do("aten::cat", fronts(batch, counted), 1 if all(each.shape == [0] for each in tensors)
                                else wrapped_dim(dim, rank) + 1))
    return batch.again("aten::to", joined, promoted_dtype(tensors)) if len(counted) < len(tensors) else joined


@table.batch("stack")
def stack(batch: Batch, tensors: Any, dim: int) -> Any:
    """dim, counted in the result of one rank more, + 1."""
    return batch.box(batch.do("aten::stack", fronts(batch, tensors), wrapped_dim(dim, tensors[0].ndim + 1) + 1))


def at_least(batch: Batch, self: Any, rank: int) -> Any:
    """() -> (1), (n) -> (1, n), ...: at least `rank` dimensions; for rank 3 (n) -> (1, n, 1) and (n, m) -> (n, m, 1)."""
    shape = list(self.shape)
    if len(shape) < rank:
        if rank == 3 and len(shape) == 2:
            shape = [*shape, 1]
        elif rank == 3 and len(shape) == 1:
            shape = [1, *shape, 1]
        else:
            shape = [1] * (rank - len(shape)) + shape
        return batch.again("aten::reshape", self, shape) if batch.has(self) else batch.do("aten::reshape", self, shape)
    return self


@table.batch("atleast_1d atleast_2d atleast_3d")
def atleast(batch: Batch, self: Any) -> Any:
    """One tensor of at least 1, 2 or 3 dimensions."""
    return at_least(batch, self, int(batch.kind[-2]))


@table.batch("atleast_1d.Sequence atleast_2d.Sequence atleast_3d.Sequence")
def all_at_least(batch: Batch, tensors: Any) -> Any:
    """Each of a list."""
    return [at_least(batch, each, int(batch.kind[-2])) for each in tensors]


@table.batch("hstack vstack row_stack dstack column_stack")
def stacks(batch: Batch, tensors: Any) -> Any:
    """Dimensions put in as the kind says, then `cat`."""
    kind = batch.kind.removeprefix("aten::")
    if kind == "hstack":
        operands = [at_least(batch, each, 1) for each in tensors]
        return cat(Batch(batch.layer, "aten::cat"), operands, 0 if operands[0].ndim == 1 else 1)
    if kind == "column_stack":
        operands = [batch.again("aten::reshape", each, [-1, 1]) if each.ndim <= 1 else each for each in tensors]
        return cat(Batch(batch.layer, "aten::cat"), operands, 1)
    rank, dim = (3, 2) if kind == "dstack" else (2, 0)
    return cat(Batch(batch.layer, "aten::cat"), [at_least(batch, each, rank) for each in tensors], dim)


@table.batch("split.Tensor split.sizes split split_with_sizes chunk split_copy unsafe_split split_with_sizes_copy unsafe_split_with_sizes "
             "unsafe_chunk tensor_split.sections tensor_split.indices")
def split(batch: Batch, self: Any, sizes: Any, dim: int = 0) -> Any:
    """(B, ...), dim + 1."""
    return batch.box(batch.same(batch.front(self), sizes, shifted(dim, self)))


@table.batch("hsplit vsplit dsplit")
@of_ranks(1)
def split_at(batch: Batch, self: Any, sections: Any) -> Any:
    """Along dimension 0, 1 or 2, as the kind says."""
    dim = {"h": 0 if self.ndim == 1 else 1, "v": 0, "d": 2}[batch.kind.removeprefix("aten::")[0]]
    return batch.again("aten::tensor_split", self, sections, dim)


@table.batch("repeat tile")
def repeat(batch: Batch, self: Any, repeats: Any) -> Any:
    """(B, 1, ..., *shape) repeated (1, *repeats)."""
    repeats = list(repeats)
    if batch.kind == "aten::tile":
        repeats = [1] * (self.ndim - len(repeats)) + repeats
    x = batch.do("aten::reshape", batch.front(self), [batch.length, *[1] * (len(repeats) - self.ndim), *self.shape])
    return batch.box(batch.do("aten::repeat", x, [1, *repeats]))


@table.batch("repeat_interleave.self_int")
def repeat_interleave(batch: Batch, self: Any, repeats: int, dim: Any, output_size: Any) -> Any:
    """(B, ...), dim + 1; without dim of the flattened self."""
    if dim is None:
        self, dim = batch.again("aten::reshape", self, [-1]), 0
    return batch.box(batch.same(batch.front(self), repeats, shifted(dim, self), output_size))


@table.batch("repeat_interleave.self_Tensor")
def repeat_by(batch: Batch, self: Any, repeats: Any, dim: Any, output_size: Any) -> Any:
    """The same with a tensor of counts. Raises UnsupportedError for batched counts: sizes would differ."""
    if batch.has(repeats):
        raise UnsupportedError("aten::repeat_interleave under vmap is not supported where the counts are batched: sizes would differ",
                               code="E0504")
    if dim is None:
        self, dim = batch.again("aten::reshape", self, [-1]), 0
    return batch.box(batch.same(batch.front(self), repeats, shifted(dim, self), output_size))


table.batch("fliplr")(of_ranks(2)(lambda batch, self: batch.again("aten::flip", self, [1])))
table.batch("flipud")(of_ranks(1)(lambda batch, self: batch.again("aten::flip", self, [0])))


@table.batch("roll")
def roll(batch: Batch, self: Any, shifts: Any, dims: Any) -> Any:
    """(B, ...), dims + 1; without dims of the flattened self."""
    if not dims:
        flat = batch.again("aten::roll", batch.again("aten::reshape", self, [-1]), shifts, [0])
        return batch.again("aten::reshape", flat, list(self.shape))
    return batch.box(batch.same(batch.front(self), shifts, shifted(dims, self)))


@table.batch("rot90")
def rot90(batch: Batch, self: Any, k: int, dims: Any) -> Any:
    """(B, ...), both dims + 1."""
    return batch.box(batch.same(batch.front(self), k, shifted(list(dims), self)))


@table.batch("broadcast_tensors")
def broadcast_tensors(batch: Batch, tensors: Any) -> Any:
    """Each expanded to their broadcast shape."""
    shape = list(np.broadcast_shapes(*[tuple(each.shape) for each in tensors]))
    return [each if list(each.shape) == shape else batch.again("aten::expand", each, shape) for each in tensors]


@table.batch("meshgrid meshgrid.indexing")
def meshgrid(batch: Batch, tensors: Any, indexing: str = "ij") -> Any:
    """Tensor k, (n_k) -> (1, ..., n_k, ..., 1) -> (n_0, n_1, ...), as a view."""
    rank = len(tensors)
    order = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    shape = [1 if not each.ndim else each.shape[0] for each in tensors]
    grids = []
    for place, each in enumerate(tensors):
        sizes = [1] * rank
        sizes[place] = -1
        grids.append(batch.again("aten::permute", batch.again("aten::expand", batch.again("aten::reshape", each, sizes), shape), order))
    return grids


table.batch("flip unbind unbind_copy")(along)
table.batch("unfold_backward")(gradient_of_part)
table.batch("_reshape_copy")(reshape)
table.not_batched("its sizes depend on the values", "repeat_interleave.Tensor")
