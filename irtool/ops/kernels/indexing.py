"""Reading and writing by index tensors and masks: index, index_put, gather, take, masked_*, nonzero.

Indices are checked here (NumPy raises too, other namespaces wrap silently) and count from the end when negative where torch lets them.
"""
from irtool.ir.errors import RunError
from irtool.ir.shapes import expanded_strides, pointwise_strides, view_strides
from irtool.ir.types import contiguous_strides
from irtool.ops.arrays import add_at, as_array, element_strides, is_array, title, to_number, wrap_dim
from irtool.ops.checks import c_name, fit, in_memory_order, refuse_partial_overlap, row_major
from irtool.ops.kernels.factory import like
from irtool.ops.kernels.index_checks import check_added, check_copied, slices_have_elements
from irtool.ops.kernels.shape import view_as_shape
from irtool.ops.op import OpTable

table = OpTable("indexing")


# ---- index: a list of optional index tensors, as x[a, :, b]

def index_tuple(xp, x, indices):
    """NumPy's index for torch's `indices` (None: the whole dimension; bool and uint8 masks; negative numbers), checked, and the
    rank-aligned place of the result: NumPy and torch agree on where the indexed dimensions go."""
    result, dim = [], 0
    if len(indices) > x.ndim:
        raise RunError(f"too many indices for tensor of dimension {x.ndim} (got {len(indices)})")
    for index in indices:
        if index is None:
            result.append(slice(None))
            dim += 1
        elif index.dtype.kind == "b" or index.dtype == xp.uint8:
            for place in range(index.ndim):
                if dim + place >= x.ndim or x.shape[dim + place] != index.shape[place]:
                    raise RunError(f"The shape of the mask {list(index.shape)} at index {place} does not match the shape of the indexed "
                                   f"tensor {list(x.shape)} at index {dim + place}")
            if index.ndim:      # one without dimensions names no places, and is passed over
                result.extend(index.astype(bool).nonzero())
            dim += index.ndim
        else:
            result.append(index)
            dim += 1
    if dim > x.ndim:
        raise RunError(f"too many indices for tensor of dimension {x.ndim}")
    if x.size and all(isinstance(index, slice) for index in result):
        raise RunError("indexing by nothing that has dimensions: torch ends in an internal error")
    indexed_places = [place for place, index in enumerate(result) if not isinstance(index, slice)]
    if not x.size and all(x.shape[place] for place in indexed_places):      # torch reads no index if there are no elements
        for place in indexed_places:
            result[place] = xp.zeros_like(result[place])
    for place in indexed_places:
        check_index(result[place], x.shape[place], place)
    _check_broadcast(xp, [result[place] for place in indexed_places])
    return tuple(result)


def _check_broadcast(xp, indices):
    if len(indices) > 1:
        try:
            xp.broadcast_shapes(*(i.shape for i in indices))
        except ValueError:
            shapes = ", ".join(str(list(i.shape)) for i in indices)
            raise RunError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}") from None


def check_index(index, extent, dim):
    """Raises torch's error unless every element of an index tensor lies in a dimension of size `extent`."""
    if index.dtype not in ("int64", "int32", "uint8"):
        raise RunError("tensors used as indices must be long, int, byte or bool tensors")
    if index.size:
        low, high = int(index.min()), int(index.max())
        if low < -extent or high >= extent:
            raise RunError(f"index {low if low < -extent else high} is out of bounds for dimension {dim} with size {extent}", code="E0408")


def indexed(xp, self, indices):
    """self[indices], a new tensor."""
    if not indices:
        raise RunError("at least one index must be provided")
    index = index_tuple(xp, self, indices)
    result = self[index]
    if _is_plain(self) and all(isinstance(each, slice) or _is_plain(each) for each in index):
        return row_major(xp, result)
    return _laid_out(xp, self, index, result)


def _is_plain(x):
    """Has an array the strides of a new one, those of dimensions of size 1 included?"""
    return x.flags.c_contiguous and (1 not in x.shape or element_strides(x) == contiguous_strides(x.shape))


def _laid_out(xp, self, index, result):
    """The result with its dimensions in the order in memory that torch's iterator gives them: that of the dimensions that stay, and, of
    those which the index tensors bring, that of these (aten/src/ATen/native/TensorAdvancedIndexing.cpp, AdvancedIndex)."""
    index = [*index, *[slice(None)] * (self.ndim - len(index))]
    places = [place for place, each in enumerate(index) if not isinstance(each, slice)]
    brought = xp.broadcast_shapes(*[index[place].shape for place in places])
    stay = [step for place, step in enumerate(element_strides(self)) if place not in places]
    before = places[0] if places == list(range(places[0], places[-1] + 1)) else 0
    after = len(stay) - before
    is_mixed = any(index[place].dtype != index[places[0]].dtype for place in places)
    operands = [(result.shape, (*stay[:before], *[0] * len(brought), *stay[before:]))]
    inner = (*[1] * before, *brought, *[1] * after)
    for place in places:
        steps = expanded_strides(index[place].shape, element_strides(index[place]), brought)
        if index[place].dtype != xp.int64 and is_mixed:     # converted, which makes a new tensor
            steps = pointwise_strides(brought, [(brought, steps)])
        operands.append((inner, view_strides(brought, steps, inner)))
    strides = pointwise_strides(result.shape, operands)
    return in_memory_order(xp, result, sorted(range(result.ndim), key=lambda place: -strides[place]))


def _index(xp, self, indices):
    return indexed(xp, self, indices)


def _index_by_places(xp, self, indices):
    _no_masks("_unsafe_index", indices)
    return indexed(xp, self, indices)


def _no_masks(name, indices):
    for each in indices:
        if each is not None and each.dtype not in ("int32", "int64"):
            raise RunError(f"{name} found unexpected index type {title(each.dtype)}", code="E0409")


table.define(("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
              "aten::index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor"), _index,
             doc="Elements at the places that index tensors name; masks stand for the places where they are true.")
table.define(("aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
              "aten::_unsafe_index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor"), _index_by_places,
             doc="Elements at the places that index tensors name, which are no masks.")


def put_at(xp, target, indices, values, accumulate):
    """target[indices] = values, or += with every repetition counted. Writes into `target`."""
    if (mask := fill_mask(xp, indices, values, accumulate)) is not None:
        return _put_where(xp, target, indices, mask, values)
    if values.dtype != target.dtype:
        raise RunError(f"Index put requires the source and destination dtypes match, got {title(target.dtype)} for the destination "
                       f"and {title(values.dtype)} for the source.")
    index = index_tuple(xp, target, indices)
    room = target[index].shape
    try:
        fits = xp.broadcast_shapes(values.shape, room) == room
    except ValueError:
        fits = False
    if not fits:
        raise RunError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape "
                       f"{list(room)}")
    if not accumulate:
        target[index] = values
    elif target.dtype.kind == "b":
        xp.logical_or.at(target, index, values)
    else:
        add_at(target, index, values)
    return target


def fill_mask(xp, indices, values, accumulate):
    """The mask, if index_put writes one number where it is true, else None. As in torch, it reads the number first."""
    masks = [index for index in indices if index is not None]
    return masks[0] if values.size == 1 and not accumulate and len(masks) == 1 and masks[0].dtype in (xp.bool_, xp.uint8) else None


def _put_where(xp, target, indices, mask, values):
    """Write one number where a single mask is true, as torch does: of any dtype, and also for a mask without dimensions."""
    before = next(place for place, index in enumerate(indices) if index is not None)
    if len(indices) > target.ndim:
        raise RunError(f"too many indices for tensor of dimension {target.ndim} (got {len(indices)})")
    for place, extent in enumerate(mask.shape):
        if before + place >= target.ndim or target.shape[before + place] != extent:
            raise RunError(f"The shape of the mask {list(mask.shape)} at index {place} does not match the shape of the indexed "
                           f"tensor {list(target.shape)} at index {before + place}")
    filled = _masked_fill(xp, target, mask.reshape(mask.shape + (1,) * (target.ndim - before - mask.ndim)), values.reshape(()))
    target[...] = filled
    return target


def _index_put(xp, self, indices, values, accumulate, unsafe=False):
    return put_at(xp, self.copy(), indices, values, accumulate)


def _index_put_in_place(xp, self, indices, values, accumulate, unsafe=False):
    if fill_mask(xp, indices, values, accumulate) is None:
        refuse_partial_overlap(self, (values, *indices), True)
    return put_at(xp, self, indices, values, accumulate)


for _name, _tail in (("index_put", "bool accumulate=False"), ("_index_put_impl", "bool accumulate=False, bool unsafe=False")):
    _plain = [f"aten::{_name}(Tensor self, Tensor?[] indices, Tensor values, {_tail}) -> Tensor"]
    _in_place = [f"aten::{_name}_(Tensor(a!) self, Tensor?[] indices, Tensor values, {_tail}) -> Tensor(a!)",
                 f"aten::{_name}_.hacked_twin(Tensor(a!) self, Tensor[] indices, Tensor values, {_tail}) -> Tensor(a!)"]
    if _name == "index_put":
        _plain += ["aten::index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
                   "aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
                   "aten::_unsafe_index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor"]
    table.define(_plain, _index_put, doc="A copy with values written, or added, at the places that index tensors name.")
    # Not derived from the plain form: copying a large tensor to write one row would make a loop of writes quadratic.
    table.define(_in_place, _index_put_in_place, doc="Values written, or added, at the places that index tensors name.")


def _masked_places(xp, self, mask, indices):
    """Indices with every place outside the tensor, or masked out, made 0."""
    return [None if i is None else xp.where(mask, i, 0) for i in indices]


@table.op("aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor")
def masked_index(xp, self, mask, indices, fill):
    """self[indices] where the mask is true, `fill` elsewhere."""
    taken = indexed(xp, self, _masked_places(xp, self, mask, indices))
    return xp.where(mask, taken, as_array(fill, self.dtype))


@table.op("aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor")
def masked_index_put(xp, self, mask, indices, values):
    """A copy with values added at indices where the mask is true."""
    chosen = xp.where(mask, values, values.dtype.type(0))
    return put_at(xp, self.copy(), _masked_places(xp, self, mask, indices), chosen, True)


# ---- one dimension

@table.op("aten::index_select(Tensor self, int dim, Tensor index) -> Tensor")
def index_select(xp, self, dim, index):
    """Places of a dimension, in the order an index vector names them."""
    dim = wrap_dim(dim, self.ndim)
    if index.ndim > 1:
        raise RunError("index_select(): Index is supposed to be a vector")
    if index.dtype not in ("int32", "int64"):
        raise RunError(f"index_select(): Expected dtype int32 or int64 for index but got: {title(index.dtype)}", code="E0409")
    extent = self.shape[dim] if self.ndim else 1
    if index.size and (int(index.min()) < 0 or int(index.max()) >= extent):
        raise RunError("index out of range in self", code="E0408")
    if not self.ndim and index.size != 1:
        raise RunError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
    if not self.ndim:
        return self.copy()
    return row_major(xp, xp.take(self, index.reshape(-1), dim))


@table.op("aten::index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor")
def index_select_backward(xp, grad, self_sizes, dim, index):
    """Gradient of index_select."""
    result = xp.zeros(self_sizes, grad.dtype)
    return _added_at(xp, result, check_added("index_add_", result, dim, index, grad), index, grad)


def _along(dim, index):
    return (slice(None),) * dim + (index,)


def _added_at(xp, target, dim, index, source):
    if not target.ndim:
        return target + source.sum(dtype=source.dtype)
    dim = wrap_dim(dim, target.ndim)
    if source.ndim > target.ndim:       # NumPy crashes
        raise RunError(f"expected a source of at most {target.ndim} dimensions, got {source.ndim}")
    add_at(target, _along(dim, index.reshape(-1)), source)
    return target


@table.op("aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", fits="alpha")
def index_add(xp, self, dim, index, source, alpha):
    """A copy with alpha * source added along a dimension at the places of an index vector, repetitions included."""
    dim = check_added("index_add_", self, dim, index, source)
    if not self.size:
        return self.copy()
    if alpha != 1:
        source = source * as_array(alpha, self.dtype)
    if self.dtype.kind == "b":
        result = self.copy()
        xp.logical_or.at(result.reshape(1) if not self.ndim else result, _along(dim, index.reshape(-1)), source)
        return result
    if not self.ndim:
        return self + source.sum(dtype=source.dtype)
    return _added_at(xp, self.copy(), dim, index, source)


@table.op("aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor")
def index_copy(xp, self, dim, index, source):
    """A copy with the places of an index vector overwritten."""
    dim = check_copied(self, dim, index, source)
    result = self.copy()
    if slices_have_elements(self, dim):
        target = result if self.ndim else result.reshape(1)
        target[_along(dim, index.reshape(-1))] = source
    return result


def _fitting(value, dtype):
    """A number, or the element of a 0-d array, in a dtype that can represent it."""
    return value if is_array(value) and value.dtype == dtype else as_array(fit(to_number(value), dtype), dtype)


def _index_fill(xp, self, dim, index, value):
    dim = wrap_dim(dim, self.ndim)
    if index.dtype != xp.int64:
        raise RunError("index_fill_(): Expected dtype int64 for index.", code="E0409")
    if index.ndim > 1:
        raise RunError("Index has to be a vector/scalar")
    if getattr(value, "ndim", 0):
        raise RunError(f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s).")
    kind = value.dtype.kind if hasattr(value, "dtype") else "c" if isinstance(value, complex) else "i"
    if kind == "c" and self.dtype.kind != "c":
        raise RunError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    value, result = _fitting(value, self.dtype), self.copy()
    if slices_have_elements(self, dim):
        check_index(index, self.shape[dim] if self.ndim else 1, dim)
        target = result if self.ndim else result.reshape(1)
        target[_along(dim, index.reshape(-1))] = value
    return result


table.define(("aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
              "aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor"), _index_fill,
             doc="A copy with the places of an index vector along a dimension set to one value.")


# ---- gather and take

def grid_index(xp, x, dim, index):
    """NumPy's index for torch's gather: along `dim` the elements of `index`, along other dimensions their own place."""
    places = [xp.arange(n).reshape((1,) * p + (n,) + (1,) * (index.ndim - p - 1)) for p, n in enumerate(index.shape)]
    places[dim] = index
    return tuple(places)


def check_gather(name, self, dim, index, other=None):
    """The checks that gather and scatter share."""
    if index.size and index.dtype not in ("int64", "int32"):
        raise RunError(f"{name}(): Expected dtype int32/int64 for index", code="E0409")
    if max(self.ndim, 1) != max(index.ndim, 1) and index.size:
        raise RunError("Index tensor must have the same number of dimensions as " + ("input" if name == "gather" else "self") + " tensor")
    if not index.size:
        return
    if other is not None and max(other.ndim, 1) != max(index.ndim, 1):
        raise RunError("Index tensor must have the same number of dimensions as src tensor")
    for place in range(index.ndim):
        limit = self.shape[place] if self.ndim else 1
        if place != dim and index.shape[place] > limit or other is not None and index.shape[place] > (other.shape or (1,))[place]:
            suffix = (f"and to be no larger size than src {list(other.shape)}" if other is not None else "").strip()
            raise RunError(f"Expected index {list(index.shape)} to be no larger than self {list(self.shape)} apart from dimension {dim}"
                           f" {suffix}".rstrip() if name != "gather" else
                           f"Size does not match at dimension {place} expected index {list(index.shape)} to be no larger than self "
                           f"{list(self.shape)} apart from dimension {dim}")
    extent = self.shape[dim] if self.ndim else 1
    low, high = int(index.min()), int(index.max())
    if low < 0 or high >= extent:
        raise RunError(f"index {low if low < 0 else high} is out of bounds for dimension {dim} with size {extent}", code="E0408")


@table.op("aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor")
def gather(xp, self, dim, index, sparse_grad):
    """Along `dim` the elements that `index` names, of `index`'s shape."""
    dim = wrap_dim(dim, self.ndim)
    check_gather("gather", self, dim, index)
    if not index.size:
        return xp.empty(index.shape, self.dtype)
    if not self.ndim or not index.ndim:
        return self.reshape(-1)[index]
    return self[grid_index(xp, self, dim, xp.ascontiguousarray(index))]      # the result has the order of the places


@table.op("aten::gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor")
def gather_backward(xp, grad, self, dim, index, sparse_grad):
    """Gradient of gather."""
    result = xp.zeros(self.shape, grad.dtype)
    if not self.ndim:
        return result + grad.sum(dtype=grad.dtype)
    if grad.size:
        add_at(result, grid_index(xp, self, wrap_dim(dim, self.ndim), index), grad)
    return result


@table.op("aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor")
def take_along_dim(xp, self, indices, dim):
    """As gather, both broadcast against each other outside `dim`; of the flattened tensor without one."""
    if indices.dtype.kind not in "iu" or indices.dtype != xp.int64:
        raise RunError("torch.take_along_dim(): dtype of indices should be Long but got " + title(indices.dtype))
    if dim is None:
        return gather.kernel(xp, view_as_shape(xp, self, (self.size,)), 0, view_as_shape(xp, indices, (indices.size,)), False)
    if self.ndim != indices.ndim:
        raise RunError("torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
                       f"{self.ndim} dimensions for input, and {indices.ndim} dimensions for indices")
    dim = wrap_dim(dim, self.ndim)
    if not self.ndim:
        raise RunError("Dimension specified as 0 but tensor has no dimensions")
    if indices.size and not self.shape[dim]:
        raise RunError("ZeroDivisionError")
    a = [1 if p == dim else n for p, n in enumerate(self.shape)]
    b = [1 if p == dim else n for p, n in enumerate(indices.shape)]
    both = list(xp.broadcast_shapes(a, b))
    indices = xp.remainder(indices, self.shape[dim] or 1)       # any number goes round
    shape, other = list(both), list(both)
    shape[dim], other[dim] = self.shape[dim], indices.shape[dim]
    return gather.kernel(xp, xp.broadcast_to(self, shape), dim, row_major(xp, xp.broadcast_to(indices, other)), False)


def _flat_index(self, index, name):
    if index.dtype != "int64":
        raise RunError(f"{name}(): Expected a long tensor for index, but got {title(index.dtype)}")
    if index.size:
        if not self.size:
            raise RunError(f"{name}(): tried to {'take' if name == 'take' else 'put elements'} from an empty tensor")
        low, high = int(index.min()), int(index.max())
        if low < -self.size or high >= self.size:
            raise RunError(f"out of range: tried to access index {low if low < -self.size else high} on a tensor of {self.size} elements.",
                           code="E0408")
    return index


@table.op("aten::take(Tensor self, Tensor index) -> Tensor")
def take(xp, self, index):
    """Elements of the flattened tensor."""
    return self.reshape(-1)[_flat_index(self, index, "take")]


@table.op("aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor")
def put(xp, self, index, source, accumulate):
    """A copy with elements written, or added, at places of the flattened tensor."""
    if self.dtype != source.dtype:
        raise RunError(f"put_(): self and source expected to have the same dtype, but got self.dtype = {title(self.dtype)} and "
                       f"source.dtype = {title(source.dtype)}", code="E0409")
    if index.size != source.size:
        raise RunError(f"put_(): Expected source and index to have the same number of elements, but got source.numel() = {source.size}, "
                       f"index.numel() = {index.size}")
    flat = self.reshape(-1).copy()
    places = _flat_index(self, index, "put_").reshape(-1)
    if accumulate:
        add_at(flat, places, source.reshape(-1))
    else:
        flat[places] = source.reshape(-1)
    return flat.reshape(self.shape)


# ---- masks

def _masked_fill(xp, self, mask, value):
    if mask.dtype.kind != "b":
        raise RunError("masked_fill_ only supports boolean masks, but got mask with dtype " + c_name(mask.dtype))
    if getattr(value, "ndim", 0):
        raise RunError(f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s).")
    fill = _fitting(value, self.dtype)
    if mask.shape == self.shape:
        result = xp.array(self, order="C")
        xp.copyto(result, fill, where=mask)
        return result
    return xp.where(mask, fill, self)


table.define(("aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
              "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor"), _masked_fill,
             doc="A value where a mask is true, both broadcast.")


@table.op("aten::masked_select(Tensor self, Tensor mask) -> Tensor")
def masked_select(xp, self, mask):
    """Elements where a mask is true, in one dimension; both broadcast."""
    if mask.dtype.kind != "b":
        raise RunError("masked_select: expected BoolTensor for mask")
    shape = xp.broadcast_shapes(self.shape, mask.shape)
    return xp.broadcast_to(self, shape)[xp.broadcast_to(mask, shape)].reshape(-1)


@table.op("aten::masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor")
def masked_select_backward(xp, grad, input, mask):
    """Gradient of masked_select."""
    shape = xp.broadcast_shapes(input.shape, mask.shape)
    result = like(xp, xp.broadcast_to(input, shape), 0, grad.dtype)
    result[xp.broadcast_to(mask, shape)] = grad
    return result


@table.op("aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor")
def masked_scatter(xp, self, mask, source):
    """The elements of `source`, in order, where a mask is true."""
    if self.dtype != source.dtype:
        raise RunError(f"masked_scatter: expected self and source to have same dtypes but got {title(self.dtype)} and "
                       f"{title(source.dtype)}", code="E0409")
    if mask.dtype.kind != "b":
        raise RunError("masked_scatter_ only supports boolean masks, but got mask with dtype " + title(mask.dtype))
    shape = xp.broadcast_shapes(self.shape, mask.shape)
    mask = xp.broadcast_to(mask, shape)
    count = int(xp.count_nonzero(mask))
    if source.size < count:
        raise RunError("Number of elements of source < number of ones in mask")
    result = xp.broadcast_to(self, shape).copy()
    result[mask] = source.reshape(-1)[:count]
    return result


@table.op("aten::masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor")
def masked_scatter_backward(xp, grad_output, mask, sizes):
    """Gradient of masked_scatter for its source."""
    result = xp.zeros(sizes, grad_output.dtype)
    taken = xp.broadcast_to(grad_output, xp.broadcast_shapes(grad_output.shape, mask.shape))[xp.broadcast_to(mask, grad_output.shape)]
    result.reshape(-1)[:taken.size] = taken
    return result


# ---- positions of elements that are not zero

def _places_in_rows(xp, self):
    return xp.stack((self if self.ndim else self.reshape(-1)).nonzero()).astype(xp.int64, copy=False)


def _places(xp, self):
    return _places_in_rows(xp, self)[:self.ndim].T


def _places_by_dim(xp, self):
    return list(_places_in_rows(xp, self))


table.define(("aten::nonzero(Tensor self) -> Tensor", "aten::argwhere(Tensor self) -> Tensor"), _places,
             doc="Indices of the elements that are not zero, one row each.")


table.define(("aten::nonzero_numpy(Tensor self) -> Tensor[]", "aten::where(Tensor condition) -> Tensor[]"), _places_by_dim,
             doc="Indices of the elements that are not zero, one vector per dimension.")


@table.op("aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor")
def nonzero_static(xp, self, size, fill_value):
    """nonzero cut or filled up to `size` rows."""
    if size < 0:
        raise RunError("nonzero_static: 'size' must be an non-negative integer")
    places = _places(xp, self)
    result = xp.full((size, self.ndim), fill_value, xp.int64)
    result[:len(places)] = places[:size]
    return result


table.laid_out("K", "index_put _unsafe_index_put _index_put_impl _unsafe_masked_index_put_accumulate index_fill put")
table.laid_out("C", "masked_fill take")
