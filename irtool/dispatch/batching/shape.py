"""Views and other shapes of the same numbers, questions about tensors, and tensors made like others."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import no_rule, rule, shifted, wrapped_dim
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.tensor import Tensor

# ---- questions: what shows


@rule("size sym_size _shape_as_tensor")
def size(batch: Batch, self: Any) -> Any:
    """The sizes that show."""
    from irtool.ops.tensor import wrapped

    if batch.kind == "aten::_shape_as_tensor":
        import numpy as np

        return wrapped(np.array(self.shape, np.int64))
    return list(self.shape)


@rule("size.int sym_size.int")
def size_of(batch: Batch, self: Any, dim: int) -> Any:
    """One of them."""
    if not self.ndim:
        raise RunError(f"Dimension specified as {dim} but tensor has no dimensions")
    return self.shape[wrapped_dim(dim, self.ndim)]


@rule("dim len.Tensor numel sym_numel")
def count(batch: Batch, self: Any) -> Any:
    """How many dimensions, rows, elements show."""
    if batch.kind == "aten::dim":
        return self.ndim
    if batch.kind == "aten::len":
        return self.shape[0]
    return math.prod(self.shape)


@rule("is_same_size")
def is_same_size(batch: Batch, self: Any, other: Any) -> Any:
    """Do they show the same sizes?"""
    return self.shape == other.shape


@rule("""is_floating_point is_complex is_signed prim::dtype prim::device prim::layout prim::itemsize prim::requires_grad prim::is_cpu
         prim::is_cuda is_conj is_neg is_inference is_distributed is_coalesced is_pinned element_size prim::is_ipu prim::is_maia
         prim::is_meta prim::is_mkldnn
         prim::is_mps prim::is_mtia prim::is_nested prim::is_quantized prim::is_sparse prim::is_sparse_csr prim::is_vulkan
         prim::is_xla prim::is_xpu prim::name""")
def fact(batch: Batch, self: Any) -> Any:
    """What has nothing to do with sizes."""
    return batch.same(batch.front(self))


@rule("is_contiguous is_non_overlapping_and_dense")
def is_contiguous(batch: Batch, self: Any) -> Any:
    """Of the whole batch."""
    return batch.same(batch.front(self))


@rule("is_contiguous.memory_format")
def is_in_format(batch: Batch, self: Any, memory_format: Any) -> Any:
    """Of the whole batch, row by row."""
    return batch.do("aten::is_contiguous", batch.front(self))


@rule("stride sym_stride")
def stride(batch: Batch, self: Any) -> Any:
    """The strides that show."""
    return list(batch.same(batch.front(self))[1:])


@rule("stride.int sym_stride.int")
def stride_of(batch: Batch, self: Any, dim: int) -> Any:
    """One of them."""
    return batch.same(batch.front(self), shifted(dim, self))


# ---- other shapes

@rule("view _unsafe_view reshape expand broadcast_to view_copy expand_copy _reshape_copy")
def reshape(batch: Batch, self: Any, shape: Any, *rest: Any) -> Any:
    """The hidden dimension stays in front."""
    x = batch.front(self)
    kind = batch.kind.removesuffix("_copy").removeprefix("aten::")
    if kind in ("expand", "broadcast_to"):
        missing = len(shape) - self.ndim
        if missing > 0:
            x = batch.do("aten::reshape", x, [batch.length, *[1] * missing, *self.shape])
        return batch.box(batch.same(x, [batch.length, *shape], *rest))
    shape = list(shape)
    if shape.count(-1) == 1:       # of what shows
        known = 1
        for extent in shape:
            known *= extent if extent != -1 else 1
        total = math.prod(self.shape)
        if known and total % known == 0:
            shape[shape.index(-1)] = total // known
    return batch.box(batch.do("aten::reshape", x, [batch.length, *shape]))


@rule("view_as reshape_as expand_as")
def as_other(batch: Batch, self: Any, other: Any) -> Any:
    """In the shape that another shows."""
    if not batch.has(self):
        return batch.same(self, batch.front(other)) if not batch.has(other) else batch.do(
            "aten::expand" if batch.kind == "aten::expand_as" else "aten::reshape", self, list(other.shape))
    return batch.again("aten::expand" if batch.kind == "aten::expand_as" else "aten::reshape", self, list(other.shape))


@rule("ravel")
def ravel(batch: Batch, self: Any) -> Any:
    """All that shows in one dimension."""
    return batch.again("aten::reshape", self, [-1])


@rule("flatten.using_ints")
def flatten(batch: Batch, self: Any, start: int, end: int) -> Any:
    """A 0-d tensor becomes 1-d."""
    if not self.ndim:
        return batch.again("aten::reshape", self, [1])
    return batch.box(batch.same(batch.front(self), shifted(start, self), shifted(end, self)))


@rule("""unflatten.int select.int slice.Tensor narrow unfold squeeze.dim squeeze.dims select_copy.int slice_copy.Tensor
         narrow_copy squeeze_copy.dim squeeze_copy.dims""")
def at_dim(batch: Batch, self: Any, dim: Any, *rest: Any) -> Any:
    """Its dimension moves up. (A 0-d tensor has none to squeeze, and unfolds as one of one element.)"""
    if not self.ndim:
        if "squeeze" in batch.kind:
            return self
        if batch.kind == "aten::unfold":
            return batch.again("aten::reshape", self, [1]) if rest[0] else batch.again("aten::reshape", batch.again(
                "aten::slice", batch.again("aten::reshape", self, [1]), 0, 0, 0, 1), [0])
    return batch.box(batch.same(batch.front(self), shifted(dim, self), *rest))


@rule("narrow.Tensor")
def narrow(batch: Batch, self: Any, dim: int, start: Any, length: int) -> Any:
    """From a place on; by index where that is batched."""
    if batch.has(start):
        first = batch.again("aten::reshape", start, [1])
        first = batch.again("aten::where", batch.again("aten::lt", first, 0), batch.again("aten::add", first, self.shape[dim]), first)
        return batch.again("aten::index_select", self, dim, batch.again("aten::add", first, Tensor(np.arange(length))))
    return batch.box(batch.same(batch.front(self), shifted(dim, self), start, length))


@rule("unsqueeze unsqueeze_copy")
def unsqueeze(batch: Batch, self: Any, dim: int) -> Any:
    """Among one more dimension than show."""
    return batch.box(batch.same(batch.front(self), wrapped_dim(dim, self.ndim + 1) + 1))


@rule("squeeze squeeze_copy")
def squeeze(batch: Batch, self: Any) -> Any:
    """Of all that show: the hidden one stays, be it one."""
    return batch.box(batch.do("aten::squeeze", batch.front(self), [place for place, extent in enumerate(self.shape, 1) if extent == 1]))


@rule("transpose.int swapaxes swapdims transpose_copy.int")
def transpose(batch: Batch, self: Any, first: int, second: int) -> Any:
    """Both dimensions move up."""
    if not self.ndim:
        wrapped_dim(first, 0), wrapped_dim(second, 0)
        return self
    return batch.box(batch.same(batch.front(self), shifted(first, self), shifted(second, self)))


@rule("t t_copy")
def t(batch: Batch, self: Any) -> Any:
    """Of a matrix; less is left as it is."""
    if self.ndim > 2:
        raise RunError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return batch.again("aten::transpose", self, 0, 1) if self.ndim == 2 else self


@rule("mT mT.a mH mH.a adjoint matrix_H matrix_H.a")
def matrix_transpose(batch: Batch, self: Any) -> Any:
    """The last two dimensions."""
    if self.ndim == 0:
        return self if "mT" in batch.kind else batch.again("aten::conj", self)
    if self.ndim == 1:
        raise RunError(f"tensor.{batch.kind.removeprefix('aten::')} is only supported on matrices or batches of matrices. "
                       f"Got {self.ndim}-D tensor.")
    return batch.box(batch.do("aten::mT" if "mT" in batch.kind else "aten::mH", batch.front(self)))


@rule("numpy_T numpy_T.a")
def reverse_dims(batch: Batch, self: Any) -> Any:
    """All that show, the other way round."""
    return batch.again("aten::permute", self, list(range(self.ndim))[::-1])


@rule("permute permute_copy")
def permute(batch: Batch, self: Any, dims: Any) -> Any:
    """The hidden dimension stays in front."""
    return batch.box(batch.same(batch.front(self), [0, *shifted(list(dims), self)]))


@rule("movedim.int movedim.intlist moveaxis.int moveaxis.intlist")
def movedim(batch: Batch, self: Any, source: Any, destination: Any) -> Any:
    """Sources and destinations move up."""
    if not self.ndim:
        return self
    return batch.box(batch.same(batch.front(self), shifted(source, self), shifted(destination, self)))


@rule("diagonal linalg_diagonal diagonal_copy")
def diagonal(batch: Batch, self: Any, *args: Any) -> Any:
    """linalg_diagonal has its offset by keyword, but in the same place."""
    offset, first, second = args
    return batch.box(batch.same(batch.front(self), offset, shifted(first, self), shifted(second, self)))


@rule("tril triu view_as_real real imag conj _conj resolve_conj resolve_neg positive alias detach contiguous lift_fresh "
      "pin_memory _pin_memory cpu alias_copy to.dtype_layout to.prim_Device to.prim_dtype to.prim_other view_as_real_copy "
      "_autocast_to_full_precision _autocast_to_reduced_precision view.dtype view_copy.dtype chalf data prim::data "
      "frexp.Tensor mvlgamma special_multigammaln isreal")
def untouched(batch: Batch, *args: Any) -> Any:
    """Nothing is done to sizes in front."""
    return batch.box(batch.same(*[_front(batch, each) for each in args]))


def _front(batch: Batch, value: Any) -> Any:
    return batch.front(value) if isinstance(value, Tensor) else value


@rule("view_as_complex view_as_complex_copy")
def view_as_complex(batch: Batch, self: Any) -> Any:
    """Pairs must lie together."""
    return batch.box(batch.same(batch.do("aten::contiguous", batch.front(self))))


@rule("to.other type_as")
def to_other(batch: Batch, self: Any, other: Any, *rest: Any) -> Any:
    """Only the other's dtype counts."""
    return batch.again("aten::to", self, other.dtype, *rest[:2])


@rule("diag_embed")
def diag_embed(batch: Batch, self: Any, offset: int, first: int, second: int) -> Any:
    """Among one more dimension than show."""
    rank = self.ndim + 1
    return batch.box(batch.same(batch.front(self), offset, wrapped_dim(first, rank) + 1, wrapped_dim(second, rank) + 1))


@rule("diag")
def diag(batch: Batch, self: Any, diagonal: int) -> Any:
    """A matrix of a vector, or the vector of a matrix."""
    return batch.again("aten::diag_embed", self, diagonal) if self.ndim == 1 else batch.again("aten::diagonal", self, diagonal)


@rule("diagflat")
def diagflat(batch: Batch, self: Any, offset: int) -> Any:
    """A matrix of all that shows."""
    return batch.again("aten::diag_embed", batch.again("aten::reshape", self, [-1]), offset)


@rule("trace")
def trace(batch: Batch, self: Any) -> Any:
    """The sum of the diagonal."""
    return batch.again("aten::sum", batch.again("aten::diagonal", self, 0, 0, 1), [-1])


# ---- tensors made like others

@rule("zeros_like ones_like empty_like full_like")
def like(batch: Batch, self: Any, *rest: Any) -> Any:
    """In the shape of the whole batch."""
    return batch.box(batch.same(batch.front(self), *rest))


@rule("new_zeros new_ones new_empty new_full new_empty_strided")
def new(batch: Batch, self: Any, size: Any, *rest: Any) -> Any:
    """In a shape of its own: the same for all."""
    return batch.same(batch.front(self), size, *rest)


# ---- joining and parting

def fronts(batch: Batch, tensors: Any) -> list[Any]:
    """A list of tensors, each with the hidden dimension in front."""
    return [batch.whole(each) for each in tensors]


@rule("cat concat concatenate")
def cat(batch: Batch, tensors: Any, dim: int) -> Any:
    """Empty 1-d tensors do not count, as ever."""
    rank = max(each.ndim for each in tensors)
    kept = [each for each in tensors if each.ndim == rank or each.shape != [0]]
    return batch.box(batch.do("aten::cat", fronts(batch, kept), wrapped_dim(dim, rank) + 1))


@rule("stack")
def stack(batch: Batch, tensors: Any, dim: int) -> Any:
    """Among one more dimension than show."""
    return batch.box(batch.do("aten::stack", fronts(batch, tensors), wrapped_dim(dim, tensors[0].ndim + 1) + 1))


def at_least(batch: Batch, self: Any, rank: int) -> Any:
    """A tensor that shows at least `rank` dimensions, as atleast_1d, 2d and 3d put them in."""
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


@rule("atleast_1d atleast_2d atleast_3d")
def atleast(batch: Batch, self: Any) -> Any:
    """New dimensions among those that show."""
    return at_least(batch, self, int(batch.kind[-2]))


@rule("atleast_1d.Sequence atleast_2d.Sequence atleast_3d.Sequence")
def all_at_least(batch: Batch, tensors: Any) -> Any:
    """Each of a list."""
    return [at_least(batch, each, int(batch.kind[-2])) for each in tensors]


@rule("hstack vstack row_stack dstack column_stack")
def stacks(batch: Batch, tensors: Any) -> Any:
    """By their parts: dimensions put in, then joined."""
    kind = batch.kind.removeprefix("aten::")
    if kind == "hstack":
        given = [at_least(batch, each, 1) for each in tensors]
        return cat(Batch(batch.layer, "aten::cat"), given, 0 if given[0].ndim == 1 else 1)
    if kind == "column_stack":
        given = [batch.again("aten::reshape", each, [-1, 1]) if each.ndim <= 1 else each for each in tensors]
        return cat(Batch(batch.layer, "aten::cat"), given, 1)
    rank, dim = (3, 2) if kind == "dstack" else (2, 0)
    return cat(Batch(batch.layer, "aten::cat"), [at_least(batch, each, rank) for each in tensors], dim)


@rule("""split.Tensor split.sizes split split_with_sizes chunk split_copy.Tensor unsafe_split.Tensor split_with_sizes_copy
         unsafe_split_with_sizes unsafe_chunk tensor_split.sections tensor_split.indices""")
def split(batch: Batch, self: Any, sizes: Any, dim: int = 0) -> Any:
    """Along a dimension that shows."""
    return batch.box(batch.same(batch.front(self), sizes, shifted(dim, self)))


@rule("hsplit.int hsplit.array vsplit.int vsplit.array dsplit.int dsplit.array")
def split_at(batch: Batch, self: Any, sections: Any) -> Any:
    """Along the dimension that the name says."""
    dim = {"h": 0 if self.ndim == 1 else 1, "v": 0, "d": 2}[batch.kind.removeprefix("aten::")[0]]
    return batch.again("aten::tensor_split", self, sections, dim)


@rule("repeat tile")
def repeat(batch: Batch, self: Any, repeats: Any) -> Any:
    """Dimensions put in among those that show."""
    repeats = list(repeats)
    if batch.kind == "aten::tile":
        repeats = [1] * (self.ndim - len(repeats)) + repeats
    x = batch.do("aten::reshape", batch.front(self), [batch.length, *[1] * (len(repeats) - self.ndim), *self.shape])
    return batch.box(batch.do("aten::repeat", x, [1, *repeats]))


@rule("repeat_interleave.self_int")
def repeat_interleave(batch: Batch, self: Any, repeats: int, dim: Any, output_size: Any) -> Any:
    """Along a dimension, or all that shows in one."""
    if dim is None:
        self, dim = batch.again("aten::reshape", self, [-1]), 0
    return batch.box(batch.same(batch.front(self), repeats, shifted(dim, self), output_size))


@rule("repeat_interleave.self_Tensor")
def repeat_by(batch: Batch, self: Any, repeats: Any, dim: Any, output_size: Any) -> Any:
    """As often as a tensor says that is the same for the whole batch."""
    if batch.has(repeats):
        raise UnsupportedError("aten::repeat_interleave under vmap is not supported where the counts are batched: sizes would differ")
    if dim is None:
        self, dim = batch.again("aten::reshape", self, [-1]), 0
    return batch.box(batch.same(batch.front(self), repeats, shifted(dim, self), output_size))


@rule("fliplr flipud")
def flip_side(batch: Batch, self: Any) -> Any:
    """Along the second or the first dimension."""
    return batch.again("aten::flip", self, [1 if batch.kind == "aten::fliplr" else 0])


@rule("roll")
def roll(batch: Batch, self: Any, shifts: Any, dims: Any) -> Any:
    """Along dimensions, or all that shows in one."""
    if not dims:
        flat = batch.again("aten::roll", batch.again("aten::reshape", self, [-1]), shifts, [0])
        return batch.again("aten::reshape", flat, list(self.shape))
    return batch.box(batch.same(batch.front(self), shifts, shifted(dims, self)))


@rule("rot90")
def rot90(batch: Batch, self: Any, k: int, dims: Any) -> Any:
    """In the plane of two dimensions that show."""
    return batch.box(batch.same(batch.front(self), k, shifted(list(dims), self)))


@rule("broadcast_tensors")
def broadcast_tensors(batch: Batch, tensors: Any) -> Any:
    """To the shape they show together."""
    import numpy as np

    shape = list(np.broadcast_shapes(*[tuple(each.shape) for each in tensors]))
    return [batch.again("aten::expand", each, shape) for each in tensors]


@rule("meshgrid meshgrid.indexing")
def meshgrid(batch: Batch, tensors: Any, indexing: str = "ij") -> Any:
    """By views: each along a dimension of its own."""
    rank = len(tensors)
    order = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    shape = [1 if not each.ndim else each.shape[0] for each in tensors]
    found = []
    for place, each in enumerate(tensors):
        own = [1] * rank
        own[place] = -1
        found.append(batch.again("aten::permute", batch.again("aten::expand", batch.again("aten::reshape", each, own), shape), order))
    return found


no_rule("its sizes depend on the values", "nonzero nonzero_numpy argwhere masked_select unique_dim unique_dim_consecutive "
        "_unique _unique2 unique_consecutive repeat_interleave.Tensor bincount where")
no_rule("it makes a Python number of elements", "is_nonzero item _local_scalar_dense Int.Tensor Float.Tensor Bool.Tensor ScalarImplicit "
        "IntImplicit FloatImplicit ComplexImplicit equal allclose _tensor_to_list Complex.Tensor_Tensor Complex.Tensor_bool "
        "Complex.Tensor_float Complex.Tensor_int Complex.bool_Tensor Complex.float_Tensor Complex.int_Tensor")
no_rule("it asks about a tensor, not about its elements", "get_device is_leaf retains_grad")
