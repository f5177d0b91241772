"""Order along a dimension: sort, topk, kthvalue, median, mode. Sorting is stable, descending too; nan is the largest."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import wrap_dim
from irtool.ops.checks import only
from irtool.ops.kernels.reduction import need_elements
from irtool.ops.op import OpTable

table = OpTable("sort")


def order(xp, x, axis, descending=False):
    """Indices that sort x along `axis`, stable in both directions, nan counted as largest."""
    if not descending:
        return xp.argsort(x, axis=axis, kind="stable").astype(xp.int64)
    backwards = xp.argsort(xp.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - xp.flip(backwards, axis).astype(xp.int64)


def _sort(xp, self, dim, descending):
    if self.dtype.kind == "c":
        raise RunError("Sort does not support complex dtypes on CPU")
    axis = wrap_dim(dim, self.ndim)
    if self.ndim == 0:
        return self.copy(), xp.zeros((), xp.int64)
    indices = order(xp, self, axis, descending)
    return xp.take_along_axis(self, indices, axis), indices


table.define("aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", _sort,
             doc="Sorted values along a dimension and where each came from.")
table.define("aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
             lambda xp, self, stable, dim, descending: _sort(xp, self, dim, descending), doc="The same; always stable here.")
table.define("aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
             lambda xp, self, dim, descending: _sort(xp, self, dim, descending)[1], doc="Indices that sort along a dimension.")
table.define("aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
             lambda xp, self, stable, dim, descending: _sort(xp, self, dim, descending)[1], doc="Indices that sort along a dimension.")
table.define("aten::msort(Tensor self) -> Tensor", lambda xp, self: _sort(xp, self, 0, False)[0],
             doc="Sorted values along the first dimension.")


def _first(xp, x, indices, axis, length):
    """The first `length` of the sorted values and indices along `axis`."""
    chosen = indices[(slice(None),) * axis + (slice(None, length),)]
    return xp.take_along_axis(x, chosen, axis), chosen.copy()


@table.op("aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)")
def topk(xp, self, k, dim, largest, sorted):
    """The k largest (smallest) values along a dimension, in order, and their indices; nan is the largest."""
    axis = wrap_dim(dim, self.ndim)
    if not 0 <= k <= (self.shape[axis] if self.ndim else 1):
        raise RunError("selected index k out of range", code="E0408")
    only("topk_cpu", "biuf", self)
    if self.ndim == 0:
        return self.copy(), xp.zeros((), xp.int64)
    return _first(xp, self, order(xp, self, axis, largest), axis, k)


def _at_rank(xp, self, ranks, axis, keepdim):
    """Value and index at `ranks` (int, or array that keeps `axis`) of the sorted order along `axis`."""
    indices = order(xp, self, axis)
    chosen = xp.take(indices, xp.asarray([ranks]), axis) if isinstance(ranks, int) else xp.take_along_axis(indices, ranks, axis)
    values = xp.take_along_axis(self, chosen, axis)
    return (values, chosen) if keepdim else (xp.squeeze(values, axis), xp.squeeze(chosen, axis))


@table.op("aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
def kthvalue(xp, self, k, dim, keepdim):
    """The k-th smallest value along a dimension, k from 1, and its index."""
    axis = wrap_dim(dim, self.ndim)
    need_elements("kthvalue()", self, (axis,), True)
    if not 1 <= k <= (self.shape[axis] if self.ndim else 1):
        raise RunError("kthvalue(): selected number k out of range for dimension " + str(axis), code="E0408")
    if self.ndim == 0:
        return self.copy(), xp.zeros((), xp.int64)
    only("kthvalue_cpu", "iuf", self)
    return _at_rank(xp, self, k - 1, axis, keepdim)


def _median_rank(xp, x, axis, skip_nan):
    """Rank of the lower middle element per row; the first nan's, unless those are skipped."""
    nans = xp.sum(x != x, axis=axis, keepdims=True)
    numbers = x.shape[axis] - nans
    if skip_nan:
        return xp.maximum((numbers - 1) // 2, 0)
    return xp.where(nans > 0, numbers, (numbers - 1) // 2)


def _median(name, skip_nan):
    def along(xp, self, dim, keepdim):
        axis = wrap_dim(dim, self.ndim)
        need_elements(f"{name}()", self, (axis,), True)
        only("median_out", "iuf", self)
        if self.ndim == 0:
            return self.copy(), xp.zeros((), xp.int64)
        return _at_rank(xp, self, _median_rank(xp, self, axis, skip_nan), axis, keepdim)

    def of_all(xp, self):
        if self.size == 0:      # of any dtype; a nan as a bool is True
            if self.dtype.kind not in "iu":
                return xp.full((), math.nan, self.dtype)
            # a nan cast in C++, by way of 32 bits if the dtype is shorter
            return xp.full((), xp.iinfo(self.dtype).min if self.dtype.itemsize >= 4 else 0, self.dtype)
        only("median_cpu", "iuf", self)
        return along(xp, self.reshape(-1), 0, False)[0]

    table.define(f"aten::{name}(Tensor self) -> Tensor", of_all,
                 doc="The lower middle element of all, 0-dim; " + ("nan is skipped." if skip_nan else "nan when there is one."))
    table.define(f"aten::{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", along,
                 doc="The lower middle element along a dimension and its index.")


_median("median", False)
_median("nanmedian", True)


INSERTED = 16
"""The rows that C++ sorts by inserting one element after the other."""


def _inserted(row):
    """Indices that sort a row with nan as C++ does it. nan has no order: where it leaves the others is known of short rows."""
    if len(row) > INSERTED:
        raise RunError(f"the mode of more than {INSERTED} numbers, one of them nan, depends on torch's compiler")
    numbers, placed = row.tolist(), []
    for index, number in enumerate(numbers):
        place = 0 if placed and number < numbers[placed[0]] else len(placed)
        while place and number < numbers[placed[place - 1]]:
            place -= 1
        placed.insert(place, index)
    return placed


@table.op("aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
def mode(xp, self, dim, keepdim):
    """The most frequent value along a dimension, the smallest of several, and its last index."""
    axis = wrap_dim(dim, self.ndim)
    need_elements("mode()", self, (axis,), True)
    if self.ndim == 0:
        return self.copy(), xp.zeros((), xp.int64)
    only("mode_cpu", "biuf", self)
    indices = order(xp, self, axis)
    if self.dtype.kind == "f" and xp.isnan(self).any():
        flat, sorted_flat = xp.moveaxis(self, axis, -1), xp.moveaxis(indices, axis, -1)
        for row in map(tuple, xp.argwhere(xp.isnan(flat).any(axis=-1)).tolist()):
            sorted_flat[row] = xp.asarray(_inserted(flat[row]), xp.int64)
    rows, places = (xp.moveaxis(array, axis, -1) for array in (xp.take_along_axis(self, indices, axis), indices))
    length = xp.ones(rows.shape, xp.int64)
    for place in range(1, rows.shape[-1]):
        length[..., place] = xp.where(rows[..., place] == rows[..., place - 1], length[..., place - 1] + 1, 1)
    best = xp.argmax(length, axis=-1)[..., None]
    values, chosen = xp.take_along_axis(rows, best, -1), xp.take_along_axis(places, best, -1)
    if keepdim:
        return xp.moveaxis(values, -1, axis), xp.moveaxis(chosen, -1, axis)
    return values[..., 0], chosen[..., 0]


# ---- dtypes that torch serves

table.takes("uilhf", "topk")
table.laid_out("K", "msort argsort")
table.laid_out("KK", "sort")

# whatever the memory order of the operand, as in torch
table.laid_out("CC", "kthvalue median.dim nanmedian.dim mode")
