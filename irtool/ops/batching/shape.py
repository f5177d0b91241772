"""Batching rules of questions about sizes, views and other shapes of the same elements."""
from __future__ import annotations

import math
from typing import Any

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.types import contiguous_strides
from irtool.ops.array_library import np
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import numbers_of, ravel, shifted, untouched, wrapped_dim
from irtool.ops.kernels.shape import table
from irtool.ops.tensor import Tensor, wrapped


@table.batch("as_strided")
def as_strided(batch: Batch, self: Any, size: Any, stride: Any, offset: Any) -> Any:
    """Of the memory of (B, ...), as in torch, if B comes first in it; else of a copy. Raises UnsupportedError where a place is permuted."""
    x = batch.front(self)
    steps = list(batch.do("aten::stride", x))
    if steps[0] < max(steps):
        if steps[1:] != sorted(steps[1:], reverse=True):
            raise UnsupportedError("aten::as_strided under vmap is not supported of permuted dimensions where the batch is not the first",
                                   code="E0504")
        x = batch.do("aten::clone", x, memory_format=0)
        steps = list(batch.do("aten::stride", x))
    return batch.box(batch.do("aten::as_strided", x, [batch.length, *size], [steps[0], *stride], offset))


@table.batch("storage_offset sym_storage_offset")
def storage_offset(batch: Batch, self: Any) -> int:
    """0: each place of the batch counts as contiguous."""
    return 0


@table.batch("_reshape_alias")
def reshape_alias(batch: Batch, self: Any, size: Any, stride: Any) -> Any:
    """as_strided from the first element."""
    return as_strided(batch, self, size, stride, None)


@table.batch("_reshape_from_tensor")
def reshape_from_tensor(batch: Batch, self: Any, shape: Any) -> Any:
    """reshape to numbers of a tensor that is not batched."""
    return batch.again("aten::reshape", self, numbers_of(batch, shape))


@table.batch("size sym_size _shape_as_tensor")
def size(batch: Batch, self: Any) -> Any:
    """Sizes without the batch dimension."""
    if batch.kind == "aten::_shape_as_tensor":
        return wrapped(np.array(self.shape, np.int64))
    return list(self.shape)


@table.batch("size.int sym_size.int")
def size_of(batch: Batch, self: Any, dim: int) -> Any:
    """One of them."""
    if not self.ndim:
        raise RunError(f"Dimension specified as {dim} but tensor has no dimensions", code="E0504")
    return self.shape[wrapped_dim(dim, self.ndim)]


@table.batch("dim len numel sym_numel")
def count(batch: Batch, self: Any) -> Any:
    """The number of dimensions, of rows, or of elements, without the batch dimension."""
    if batch.kind == "aten::dim":
        return self.ndim
    if batch.kind == "aten::len":
        return self.shape[0]
    return math.prod(self.shape)


@table.batch("is_same_size")
def is_same_size(batch: Batch, self: Any, other: Any) -> Any:
    """Are the sizes without the batch dimension equal?"""
    return self.shape == other.shape


def is_row_major(batch: Batch, x: Any) -> bool:
    """Of (B, ...): is one place of the batch contiguous? As torch.func counts strides, without that of the batch dimension."""
    sizes, strides = x.shape[1:], list(batch.do("aten::stride", x))[1:]
    expected = contiguous_strides(sizes)
    return 0 in sizes or all(size == 1 or stride == wanted for size, stride, wanted in zip(sizes, strides, expected, strict=True))


@table.batch("is_contiguous")
def is_contiguous(batch: Batch, self: Any) -> Any:
    """Of one place of the batch."""
    return is_row_major(batch, batch.front(self))


@table.batch("contiguous")
def contiguous(batch: Batch, self: Any, memory_format: Any = 0) -> Any:
    """(B, ...) -> (B, ...): the same memory where one place is contiguous, so that a write into the result reaches self."""
    x = batch.front(self)
    return batch.box(x if memory_format in (None, 0) and is_row_major(batch, x) else batch.same(x, memory_format))


@table.batch("is_non_overlapping_and_dense")
def is_dense(batch: Batch, self: Any) -> Any:
    """Of one place of the batch."""
    return of_one_place(batch, self)


def of_one_place(batch: Batch, self: Any, *args: Any) -> Any:
    """What the operator says of the first place of the batch; all lie alike in memory. Of a batch of none: are places in rows?"""
    x = batch.front(self)
    return batch.same(batch.do("aten::select", x, 0, 0), *args) if x.shape[0] else is_row_major(batch, x)


@table.batch("is_contiguous.memory_format")
def is_in_format(batch: Batch, self: Any, memory_format: Any) -> Any:
    """Of one place of the batch."""
    return of_one_place(batch, self, memory_format)


@table.batch("stride sym_stride")
def stride(batch: Batch, self: Any) -> Any:
    """Strides without that of the batch dimension."""
    return list(batch.same(batch.front(self))[1:])


@table.batch("stride.int sym_stride.int")
def stride_of(batch: Batch, self: Any, dim: int) -> Any:
    """One of them."""
    return batch.same(batch.front(self), shifted(dim, self))


@table.batch("view _unsafe_view reshape expand broadcast_to")
def reshape(batch: Batch, self: Any, shape: Any, *rest: Any) -> Any:
    """(B, *self.shape) -> (B, *shape)."""
    x = batch.front(self)
    kind = batch.kind.removesuffix("_copy").removeprefix("aten::")
    if kind in ("expand", "broadcast_to"):
        missing = len(shape) - self.ndim
        if missing > 0:
            x = batch.do("aten::reshape", x, [batch.length, *[1] * missing, *self.shape])
        return batch.box(batch.same(x, [batch.length, *shape], *rest))
    shape = list(shape)
    if shape.count(-1) == 1:       # computed of sizes without B
        known = 1
        for extent in shape:
            known *= extent if extent != -1 else 1
        total = math.prod(self.shape)
        if known and total % known == 0:
            shape[shape.index(-1)] = total // known
    return batch.box(batch.do("aten::reshape", x, [batch.length, *shape]))


@table.batch("view_as reshape_as expand_as")
def as_other(batch: Batch, self: Any, other: Any) -> Any:
    """self -> other's shape without the batch dimension."""
    if not batch.has(self):
        return batch.same(self, batch.front(other)) if not batch.has(other) else batch.do(
            "aten::expand" if batch.kind == "aten::expand_as" else "aten::reshape", self, list(other.shape))
    return batch.again("aten::expand" if batch.kind == "aten::expand_as" else "aten::reshape", self, list(other.shape))


@table.batch("flatten")
def flatten(batch: Batch, self: Any, start: int, end: int) -> Any:
    """(B, ...), start + 1 and end + 1. () -> (1)."""
    if not self.ndim:
        return batch.again("aten::reshape", self, [1])
    return batch.box(batch.same(batch.front(self), shifted(start, self), shifted(end, self)))


@table.batch("unflatten select slice narrow unfold squeeze.dim squeeze.dims")
def at_dim(batch: Batch, self: Any, dim: Any, *rest: Any) -> Any:
    """(B, ...), dim + 1. () has no dimension to squeeze, and unfolds as (1)."""
    if not self.ndim:
        if "squeeze" in batch.kind:
            return self
        if batch.kind == "aten::unfold":
            return batch.again("aten::reshape", self, [1]) if rest[0] else batch.again("aten::reshape", batch.again(
                "aten::slice", batch.again("aten::reshape", self, [1]), 0, 0, 0, 1), [0])
    return batch.box(batch.same(batch.front(self), shifted(dim, self), *rest))


@table.batch("narrow.Tensor")
def narrow(batch: Batch, self: Any, dim: int, start: Any, length: int) -> Any:
    """(B, ...), dim + 1. A batched start: index_select of start + (0, ..., length - 1)."""
    if batch.has(start):
        first = batch.again("aten::reshape", start, [1])
        first = batch.again("aten::where", batch.again("aten::lt", first, 0), batch.again("aten::add", first, self.shape[dim]), first)
        return batch.again("aten::index_select", self, dim, batch.again("aten::add", first, Tensor(np.arange(length))))
    return batch.box(batch.same(batch.front(self), shifted(dim, self), start, length))


@table.batch("unsqueeze")
def unsqueeze(batch: Batch, self: Any, dim: int) -> Any:
    """dim, counted in the result of one rank more, + 1."""
    return batch.box(batch.same(batch.front(self), wrapped_dim(dim, self.ndim + 1) + 1))


@table.batch("squeeze")
def squeeze(batch: Batch, self: Any) -> Any:
    """All dimensions of extent 1 but the batch dimension."""
    return batch.box(batch.do("aten::squeeze", batch.front(self), [place for place, extent in enumerate(self.shape, 1) if extent == 1]))


@table.batch("transpose swapaxes swapdims")
def transpose(batch: Batch, self: Any, first: int, second: int) -> Any:
    """(B, ...), both dims + 1."""
    if not self.ndim:
        wrapped_dim(first, 0), wrapped_dim(second, 0)
        return unchanged(batch, self)
    return batch.box(batch.same(batch.front(self), shifted(first, self), shifted(second, self)))


def unchanged(batch: Batch, self: Any) -> Any:
    """The operand; of an operator that copies, a copy."""
    return batch.again("aten::clone", self, None) if batch.kind.endswith("_copy") else self


@table.batch("t")
def t(batch: Batch, self: Any) -> Any:
    """(n, m) -> (m, n); () and (n) stay."""
    if self.ndim > 2:
        raise RunError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D", code="E0504")
    if self.ndim < 2:
        return unchanged(batch, self)
    return batch.again("aten::transpose_copy" if batch.kind.endswith("_copy") else "aten::transpose", self, 0, 1)


@table.batch("mT mT.a mH mH.a adjoint matrix_H matrix_H.a")
def matrix_transpose(batch: Batch, self: Any) -> Any:
    """(..., n, m) -> (..., m, n)."""
    if self.ndim == 0:
        return self if "mT" in batch.kind else batch.again("aten::conj", self)
    if self.ndim == 1 or self.ndim > 2 and "matrix_H" in batch.kind:
        raise RunError(f"tensor.{batch.kind.removeprefix('aten::')} is only supported on matrices or batches of matrices. "
                       f"Got {self.ndim}-D tensor.", code="E0504")
    return batch.box(batch.do("aten::mT" if "mT" in batch.kind else "aten::mH", batch.front(self)))


@table.batch("numpy_T numpy_T.a")
def reverse_dims(batch: Batch, self: Any) -> Any:
    """(a, b, c) -> (c, b, a)."""
    return batch.again("aten::permute", self, list(range(self.ndim))[::-1])


@table.batch("permute")
def permute(batch: Batch, self: Any, dims: Any) -> Any:
    """(0, *(dims + 1)) of (B, ...)."""
    return batch.box(batch.same(batch.front(self), [0, *shifted(list(dims), self)]))


@table.batch("movedim moveaxis")
def movedim(batch: Batch, self: Any, source: Any, destination: Any) -> Any:
    """(B, ...), source + 1 and destination + 1."""
    if not self.ndim:
        return self
    return batch.box(batch.same(batch.front(self), shifted(source, self), shifted(destination, self)))


@table.batch("diagonal linalg_diagonal")
def diagonal(batch: Batch, self: Any, *args: Any) -> Any:
    """(B, ...), both dims + 1."""
    offset, first, second = args
    return batch.box(batch.same(batch.front(self), offset, shifted(first, self), shifted(second, self)))


@table.batch("view_as_complex")
def view_as_complex(batch: Batch, self: Any) -> Any:
    """(..., 2) -> (B, ..., 2), contiguous, since pairs must be adjacent."""
    return batch.box(batch.same(batch.do("aten::contiguous", batch.front(self))))


table.batch("ravel")(lambda batch, self: ravel(batch, batch.again("aten::contiguous", self)))
table.batch("view.dtype view_as_real")(untouched)
