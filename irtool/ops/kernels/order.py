"""Quantiles, distinct values, and search in sorted sequences."""
from irtool.ir.errors import RunError
from irtool.ops.arrays import as_array, astype, title, wrap_dim
from irtool.ops.checks import only, refuse, row_major
from irtool.ops.kernels.sort import order
from irtool.ops.op import OpTable
from irtool.ops.promotion import result_type

table = OpTable("order")


# ---- quantiles

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(name, x, q, interpolation):
    if x.size == 0:
        raise RunError(f"{name}() input tensor must be non-empty")
    if q.ndim > 1:
        raise RunError(f"{name}() q must be a scalar or 1D tensor")
    if x.dtype.name not in ("float32", "float64"):
        raise RunError(f"{name}() input tensor must be either float or double dtype")
    if x.dtype != q.dtype:
        raise RunError(f"{name}() q tensor must be same dtype as the input tensor", code="E0409")
    if interpolation not in INTERPOLATIONS:
        raise RunError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}")
    if not ((q >= 0) & (q <= 1)).all():
        raise RunError(f"{name}() q values must be in the range [0, 1]")


def _quantile(xp, name, x, q, dim, keepdim, interpolation):
    """Values at the ranks q * (n - 1) of the sorted rows; dimension q first when q has one."""
    _check_quantile(name, x, q, interpolation)
    shape = x.shape
    if dim is None:
        rows, with_ones = x.reshape(1, -1), (1,) * x.ndim
    else:
        axis = wrap_dim(dim, x.ndim)
        rows = xp.moveaxis(x, axis, -1) if x.ndim else x.reshape(1)
        with_ones = shape[:axis] + (1,) * bool(x.ndim) + shape[axis + 1:]
        rows = rows.reshape(-1, rows.shape[-1])
    rows = xp.sort(rows, axis=-1)
    nans = xp.sum(rows != rows, axis=-1, keepdims=True)
    last = rows.shape[-1] - 1
    if name == "nanquantile":
        ranks = q.reshape(1, -1) * xp.maximum(last - nans, 0).astype(x.dtype)
    else:
        ranks = xp.where(nans > 0, x.dtype.type(last), q.reshape(1, -1) * x.dtype.type(last))
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": xp.floor, "higher": xp.ceil, "nearest": xp.rint}[interpolation](ranks)
    below = ranks.astype(xp.int64)
    result = xp.take_along_axis(rows, below, -1)
    if interpolation in ("linear", "midpoint"):
        weight = xp.full(ranks.shape, 0.5, x.dtype) if interpolation == "midpoint" else (ranks - below).astype(x.dtype)
        upper = xp.take_along_axis(rows, xp.ceil(ranks).astype(xp.int64), -1)
        result = xp.where(weight < 0.5, result + weight * (upper - result), upper - (upper - result) * (1 - weight))
    others = [shape[i] for i in range(len(shape)) if dim is not None and i != axis]
    sizes = with_ones if keepdim else others
    result = result.T.reshape(q.size, *(int(size) for size in sizes))
    return result if q.ndim else result[0]


for _name in ("quantile", "nanquantile"):
    _tail = 'int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor'
    table.define(f"aten::{_name}(Tensor self, Tensor q, {_tail}",
                 lambda xp, self, q, dim, keepdim, interpolation, name=_name: _quantile(xp, name, self, q, dim, keepdim, interpolation),
                 doc="Values at shares q of the order along a dimension, or of all; " + ("nan skipped." if "nan" in _name else "nan wins."))

    def _of_number(xp, self, q, dim, keepdim, interpolation, name=_name):
        if not 0 <= q <= 1:
            raise RunError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        return _quantile(xp, name, self, as_array(q, self.dtype), dim, keepdim, interpolation)

    table.define(f"aten::{_name}.scalar(Tensor self, float q, {_tail}", _of_number, doc="Value at a share q of the order.")


# ---- distinct values; nan is equal to nothing, so each stays

def _runs(xp, differs):
    """(first positions, inverse, counts) of the runs that begin where `differs` (the first position always begins one)."""
    begins = xp.concatenate([xp.ones(1, bool), differs])
    first = xp.flatnonzero(begins)
    counts = xp.diff(xp.concatenate([first, xp.asarray([len(begins)])]))
    return first, xp.cumsum(begins) - 1, counts


def _no_places(xp):
    return xp.empty(0, xp.int64)


def _unique(xp, self, return_inverse, return_counts):
    """Sorted distinct elements, for each element which one it is (in self's shape), and how often each occurs; int64."""
    if self.dtype.kind == "c":
        refuse("unique", self)
    flat = self.reshape(-1)
    if flat.size == 0:
        return flat.copy(), xp.empty(self.shape if return_inverse else 0, xp.int64), _no_places(xp)
    sorting = order(xp, flat, 0)
    ordered = flat[sorting]
    first, which, counts = _runs(xp, ordered[1:] != ordered[:-1])
    inverse = _no_places(xp)
    if return_inverse:
        inverse = xp.empty(flat.size, xp.int64)
        inverse[sorting] = which
        inverse = inverse.reshape(self.shape)
    return ordered[first], inverse, counts.astype(xp.int64) if return_counts else _no_places(xp)


table.define("aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False)"
             " -> (Tensor, Tensor, Tensor)",
             lambda xp, self, sorted, return_inverse, return_counts: _unique(xp, self, return_inverse, return_counts),
             doc="Distinct elements (always sorted here), inverse and counts; what is not asked for is empty.")
table.define("aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
             lambda xp, self, sorted, return_inverse: _unique(xp, self, return_inverse, False)[:2],
             doc="Distinct elements (always sorted here) and inverse.")


@table.op("aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None)"
          " -> (Tensor, Tensor, Tensor)")
def unique_consecutive(xp, self, return_inverse, return_counts, dim):
    """One of each run of equal elements (of equal slices along `dim`), inverse and counts; parts that are not wanted are empty."""
    if dim is not None and (dim, self.ndim) != (0, 1):
        return _unique_slices(xp, self, dim, False)
    if self.dtype.kind == "c":
        refuse("unique", self)
    flat = self.reshape(-1)
    if flat.size == 0:
        return flat.copy(), xp.empty(self.shape if return_inverse else 0, xp.int64), _no_places(xp)
    first, which, counts = _runs(xp, flat[1:] != flat[:-1])
    return (flat[first], which.reshape(self.shape).astype(xp.int64) if return_inverse else _no_places(xp),
            counts.astype(xp.int64) if return_counts else _no_places(xp))


def _unique_slices(xp, self, dim, sorting):
    """Distinct slices along `dim`, in lexicographic order when `sorting`, else one of each run; inverse and counts, always."""
    if self.dtype.kind == "c":
        refuse("unique_dim", self)
    if self.ndim == 0:
        raise RunError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = wrap_dim(dim, self.ndim)
    if self.size == 0:
        if self.shape[axis] and sum(size == 0 for size in self.shape) != 1:
            raise RunError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
        if self.shape[axis] == 0:
            return self.copy(), _no_places(xp), _no_places(xp)
        raise RunError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    slices = xp.moveaxis(self, axis, 0)
    rows = slices.reshape(len(slices), -1)
    ranking = xp.lexsort(rows.T[::-1]) if sorting else xp.arange(len(rows))
    ordered = rows[ranking]
    first, which, counts = _runs(xp, (ordered[1:] != ordered[:-1]).any(axis=1))
    inverse = xp.empty(len(rows), xp.int64)
    inverse[ranking] = which
    values = xp.moveaxis(row_major(xp, slices[ranking[first]]), 0, axis)
    return values, inverse, counts.astype(xp.int64)


table.define("aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False)"
             " -> (Tensor, Tensor, Tensor)",
             lambda xp, self, dim, sorted, return_inverse, return_counts: _unique_slices(xp, self, dim, True),
             doc="Distinct slices along a dimension in lexicographic order, inverse and counts.")
table.define("aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False)"
             " -> (Tensor, Tensor, Tensor)",
             lambda xp, self, dim, return_inverse, return_counts: _unique_slices(xp, self, dim, False),
             doc="One of each run of equal slices along a dimension, inverse and counts.")


# ---- search

def _search(xp, edges, values, right):
    """Positions at which `values` belong in the sorted last dimension of `edges`, by torch's own bisection (which determines the place
    of nan)."""
    low = xp.zeros(values.shape, xp.int64)
    high = xp.full(values.shape, edges.shape[-1], xp.int64)
    for _ in range(max(edges.shape[-1], 1).bit_length()):
        middle = low + ((high - low) >> 1)
        probe = xp.minimum(middle, max(edges.shape[-1] - 1, 0))
        if edges.shape[-1] == 0:
            return low
        edge = edges[probe] if edges.ndim == 1 else xp.take_along_axis(edges, probe, -1)
        further = ~(edge > values) if right else ~(edge >= values)
        going = low < high
        low, high = xp.where(going & further, middle + 1, low), xp.where(going & ~further, middle, high)
    return low


def _search_sorted(xp, edges, values, out_int32, right, side, sorter):
    if side not in (None, "left", "right"):
        raise RunError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RunError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    if edges.ndim == 0:
        raise RunError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if edges.ndim > 1 and edges.shape[:-1] != values.shape[:-1]:
        raise RunError("torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and "
                       f"input value tensor must match, but we got boundaries tensor {list(edges.shape)} and input value tensor "
                       f"{list(values.shape)}")
    if sorter is not None:
        if sorter.shape != edges.shape:
            raise RunError("torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                           f"{list(edges.shape)}and got sorter tensor {list(sorter.shape)}")
        if sorter.dtype != xp.int64:
            raise RunError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {title(sorter.dtype)}")
        edges = xp.take_along_axis(edges, sorter, -1)
    if values.size == 0:
        return xp.zeros(values.shape, xp.int32 if out_int32 else xp.int64)
    dtype = result_type([edges, values])
    edges, values = astype(edges, dtype), astype(values, dtype)
    only("searchsorted_out_cpu", "iuf", edges)
    places = _search(xp, edges, values, right or side == "right")
    return places.astype(xp.int32) if out_int32 else places


SEARCH = "*, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor"


@table.op(f"aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, {SEARCH}")
def searchsorted(xp, sorted_sequence, self, out_int32, right, side, sorter):
    """The position of each value in the sorted last dimension: before equal ones, after them with `right`."""
    return _search_sorted(xp, sorted_sequence, self, out_int32, right, side, sorter)


@table.op(f"aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, {SEARCH}")
def searchsorted_number(xp, sorted_sequence, self, out_int32, right, side, sorter):
    """The position of a number in a sorted 1-D sequence; 0-dim."""
    dtype = result_type([sorted_sequence, self])
    return _search_sorted(xp, astype(sorted_sequence, dtype), as_array(self, dtype), out_int32, right, side, sorter)


def _bucketize(xp, values, boundaries, out_int32, right):
    dtype = result_type([values, boundaries])
    values, boundaries = as_array(values, dtype), astype(boundaries, dtype)
    if boundaries.ndim != 1:
        raise RunError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return _search_sorted(xp, boundaries, values, out_int32, right, None, None)


BUCKET = "Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor"
table.define(f"aten::bucketize.Tensor(Tensor self, {BUCKET}",
             lambda xp, self, boundaries, out_int32, right: _bucketize(xp, self, boundaries, out_int32, right),
             doc="Which bucket between sorted 1-D boundaries each value falls into.")
table.define(f"aten::bucketize.Scalar(Scalar self, {BUCKET}",
             lambda xp, self, boundaries, out_int32, right: _bucketize(xp, self, boundaries, out_int32, right),
             doc="Which bucket between sorted 1-D boundaries a number falls into.")
