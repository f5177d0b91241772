"""Questions about shapes, and views of one tensor: NumPy views wherever torch returns a view, so that writes through them work.

Sizes and strides count elements. Operators that may copy (`reshape`, `contiguous`, `flatten`) copy only if they must.
"""
import math

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.types import contiguous_strides
from irtool.ops.arrays import broadcast_view, complex_of, dtype_of, element_strides, is_contiguous, real_of, title, wrap_dim
from irtool.ops.checks import channels_last, in_memory_order, row_major
from irtool.ops.conjugates import conjugated
from irtool.ops.op import OpTable

table = OpTable("shape")

CHANNELS_LAST, CHANNELS_LAST_3D = 2, 3


# ---- questions

@table.op("aten::size(Tensor self) -> int[]", "aten::sym_size(Tensor self) -> SymInt[]")
def size(xp, self):
    """Sizes of all dimensions, a list. Of an undefined gradient, whose size is never read: `[0]`."""
    return [0] if self is None else list(self.shape)


@table.op("aten::size.int(Tensor self, int dim) -> int", "aten::sym_size.int(Tensor self, int dim) -> SymInt")
def size_of_dim(xp, self, dim):
    """Size of one dimension."""
    if not self.ndim:
        raise RunError(f"Dimension specified as {dim} but tensor has no dimensions")
    return self.shape[wrap_dim(dim, self.ndim)]


@table.op("aten::len.Tensor(Tensor t) -> int")
def length(xp, self):
    """Size of the first dimension."""
    if not self.ndim:
        raise RunError("len() of a 0-d tensor")
    return self.shape[0]


@table.op("aten::dim(Tensor self) -> int")
def dim(xp, self):
    """Number of dimensions."""
    return self.ndim


@table.op("aten::numel(Tensor self) -> int", "aten::sym_numel(Tensor self) -> SymInt")
def numel(xp, self):
    """Number of elements."""
    return int(self.size)


@table.op("aten::_shape_as_tensor(Tensor self) -> Tensor")
def shape_as_tensor(xp, self):
    """Sizes of all dimensions, int64."""
    return xp.array(self.shape, xp.int64)


def strides_of(x):
    """Strides in elements as torch would have them: a dimension whose stride does not matter gets that of a contiguous array."""
    if is_contiguous(x):
        return contiguous_strides(x.shape)
    return element_strides(x)


@table.op("aten::stride(Tensor self) -> int[]", "aten::sym_stride(Tensor self) -> SymInt[]")
def stride(xp, self):
    """Strides in elements, a list."""
    return list(strides_of(self))


@table.op("aten::stride.int(Tensor self, int dim) -> int", "aten::sym_stride.int(Tensor self, int dim) -> SymInt")
def stride_of_dim(xp, self, dim):
    """Stride in elements of one dimension."""
    if not self.ndim:
        raise RunError(f"Dimension specified as {dim} but tensor has no dimensions")
    return strides_of(self)[wrap_dim(dim, self.ndim)]


def _storage(x):
    """The array that owns the memory `x` looks into."""
    root, base = x, x.base
    while base is not None:
        if hasattr(base, "flags"):      # an array of NumPy: below it may be one of another library
            root = base
        base = getattr(base, "base", None)
    return root


def _address(x):
    return x.__array_interface__["data"][0] if hasattr(x, "__array_interface__") else x.data.ptr        # the latter on a device


def _offset(x):
    """Distance in elements of `x`'s first element from the start of its storage."""
    return (_address(x) - _address(_storage(x))) // x.itemsize


@table.op("aten::storage_offset(Tensor self) -> int", "aten::sym_storage_offset(Tensor self) -> SymInt")
def storage_offset(xp, self):
    """Elements before the tensor's first one in its storage."""
    return int(_offset(self))


def _ordered_for(x, memory_format):
    """Axes in the order in which a memory format lays them out, None for the plain one."""
    if memory_format == CHANNELS_LAST and x.ndim == 4:
        return (0, 2, 3, 1)
    if memory_format == CHANNELS_LAST_3D and x.ndim == 5:
        return (0, 2, 3, 4, 1)
    if memory_format in (CHANNELS_LAST, CHANNELS_LAST_3D):
        raise RunError(f"required rank {memory_format + 2} tensor to use channels_last{'_3d' * (memory_format == 3)} format")
    return None


@table.op("aten::is_contiguous(Tensor self) -> bool")
def contiguous_layout(xp, self):
    """Row-major without gaps?"""
    return is_contiguous(self)


@table.op("aten::is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool")
def contiguous_layout_in(xp, self, memory_format):
    """Laid out without gaps in this memory format?"""
    order = _ordered_for(self, memory_format) if self.ndim in (4, 5) else None
    if order is None:
        return memory_format not in (CHANNELS_LAST, CHANNELS_LAST_3D) and is_contiguous(self)
    return is_contiguous(self.transpose(order))


@table.op("aten::is_non_overlapping_and_dense(Tensor self) -> bool")
def non_overlapping_and_dense(xp, self):
    """Has every place in a gapless memory exactly one element?"""
    step = 1
    for distance, extent in sorted((s, n) for s, n in zip(strides_of(self), self.shape, strict=True) if n > 1):
        if distance != step:
            return False
        step *= extent
    return True


@table.op("aten::is_same_size(Tensor self, Tensor other) -> bool")
def same_size(xp, self, other):
    """Equal shapes?"""
    return self.shape == other.shape


# ---- other shapes of the same elements

def rolled(xp, x, shifts, dims):
    """Moved round along dimensions. As in memory where parts are joined: in rows, if the second part has no elements."""
    result = xp.roll(x, shifts, dims)
    if 0 not in x.shape and all(shift % x.shape[dim] for shift, dim in zip(shifts, dims, strict=True)):
        return in_memory_order(xp, result, list(channels_last(x)))
    return row_major(xp, result)


def infer_shape(shape, count):
    """`shape` with its -1 worked out for `count` elements. Raises RunError with torch's messages."""
    shape = list(shape)
    known, open_place = 1, None
    for place, extent in enumerate(shape):
        if extent == -1:
            if open_place is not None:
                raise RunError("only one dimension can be inferred")
            open_place = place
        elif extent < 0:
            raise RunError(f"invalid shape dimension {extent} at index {place} of shape {shape}")
        else:
            known *= extent
    if open_place is not None and known and count % known == 0:
        shape[open_place] = count // known
    elif open_place is not None and not known and not count:
        raise RunError(f"cannot reshape tensor of 0 elements into shape {shape} because the unspecified dimension size -1 can be any "
                       "value and is ambiguous")
    elif open_place is not None or known != count:
        raise RunError(f"shape '{shape}' is invalid for input of size {count}", code="E0407")
    return tuple(shape)


def view_as_shape(xp, x, shape):
    """`x` in another shape, never a copy. Raises RunError if only a copy can have that shape."""
    shape = infer_shape(shape, x.size)
    result = x.reshape(shape)
    if x.size and not x.flags.c_contiguous and not xp.may_share_memory(result, x):
        raise RunError("view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
                       "contiguous subspaces). Use .reshape(...) instead.")
    return result


@table.op("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)", "aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor")
def view(xp, self, size):
    """The same memory in another shape; -1 is worked out."""
    return view_as_shape(xp, self, size)


@table.op("aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)")
def view_as(xp, self, other):
    """The same memory in `other`'s shape."""
    return view_as_shape(xp, self, other.shape)


def _view_dtype(xp, self, dtype):
    dtype = dtype_of(dtype)
    if not self.ndim and dtype.itemsize != self.itemsize:
        raise RunError(f"self.dim() cannot be 0 to view {self.dtype} as {dtype} (different element sizes)")
    if dtype.itemsize != self.itemsize and self.shape[-1] != 1 and self.size and self.strides[-1] != self.itemsize:
        raise RunError("self.stride(-1) must be 1 to view a tensor as a dtype of another element size")
    return self.view(dtype)


view_dtype = table.define("aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", _view_dtype,
                          doc="The same bytes read as another dtype.")


def _reshape(xp, self, shape):
    return self.reshape(infer_shape(shape, self.size))


reshape = table.define("aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", _reshape,
                       doc="Another shape, a view where the layout allows.")


@table.op("aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)")
def reshape_as(xp, self, other):
    """`other`'s shape, a view if the strides allow it."""
    return _reshape(xp, self, other.shape)


@table.op("aten::_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)")
def reshape_alias(xp, self, size, stride):
    """The same memory in a shape with the given strides."""
    view = self.reshape(size) if math.prod(size) == self.size and is_contiguous(self) else None
    is_plain = view is not None and all(n == 1 or s == t for n, s, t in zip(size, stride, element_strides(view), strict=True))
    return view if is_plain else as_strided.kernel(xp, self, size, stride, None)


@table.op("aten::_reshape_from_tensor(Tensor self, Tensor shape) -> Tensor")
def reshape_from_tensor(xp, self, shape):
    """reshape to the sizes held by a tensor."""
    return _reshape(xp, self, [int(extent) for extent in shape])


@table.op("aten::ravel(Tensor(a) self) -> Tensor(a)")
def ravel(xp, self):
    """One dimension, a view of a row-major tensor. Of any other it is a copy, also where `reshape` gives a view."""
    return row_major(xp, self).reshape(-1)


@table.op("aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
def flatten(xp, self, start_dim, end_dim):
    """Dimensions start_dim to end_dim joined into one."""
    start, end = wrap_dim(start_dim, self.ndim), wrap_dim(end_dim, self.ndim)
    if start > end:
        raise RunError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not self.ndim:
        return self.reshape(1)
    if start == end:
        return self
    return self.reshape(self.shape[:start] + (math.prod(self.shape[start:end + 1]),) + self.shape[end + 1:])


@table.op("aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)")
def unflatten(xp, self, dim, sizes):
    """One dimension taken apart into several."""
    dim = wrap_dim(dim, self.ndim)
    if not sizes:
        raise RunError("unflatten: sizes must be non-empty")
    if not self.ndim:
        raise RunError("unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions")
    extent = self.shape[dim]
    known = math.prod(s for s in sizes if s != -1)
    if (-1 in sizes and (not known or extent % known)) or (-1 not in sizes and known != extent):
        raise RunError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({extent}) in the input tensor")
    return view_as_shape(xp, self, self.shape[:dim] + infer_shape(sizes, extent) + self.shape[dim + 1:])


@table.op("aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)")
def contiguous(xp, self, memory_format):
    """The tensor itself if it has this order in memory, else a copy that has."""
    order = _ordered_for(self, memory_format)
    return row_major(xp, self) if order is None else in_memory_order(xp, self, order)


# ---- dimensions in another order

def _swap(xp, self, dim0, dim1):
    dim0, dim1 = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    return self.swapaxes(dim0, dim1) if self.ndim else self[...]


transpose = table.define([f"aten::{_name}(Tensor(a) self, int {_first}, int {_second}) -> Tensor(a)" for _name, _first, _second in (
    ("transpose.int", "dim0", "dim1"), ("swapaxes", "axis0", "axis1"), ("swapdims", "dim0", "dim1"))],
    _swap, doc="Two dimensions exchanged, a view.")


@table.op("aten::t(Tensor(a) self) -> Tensor(a)")
def transpose_matrix(xp, self):
    """A matrix transposed, a view; fewer dimensions stay."""
    if self.ndim > 2:
        raise RunError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return self.T


def _transpose_last(name):
    def kernel(xp, self):
        if self.ndim == 1:
            raise RunError(f"tensor.{name} is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
        return self.swapaxes(-2, -1) if self.ndim else self
    return kernel


def _conjugate(kernel):
    return lambda xp, self: conjugated(xp, kernel(xp, self))


table.define(("aten::mT(Tensor(a) self) -> Tensor(a)", "aten::mT.a(Tensor(a) self) -> Tensor(a)"), _transpose_last("mT"),
             doc="Last two dimensions exchanged, a view.")
table.define(("aten::mH(Tensor(a) self) -> Tensor(a)", "aten::mH.a(Tensor(a) self) -> Tensor(a)"), _conjugate(_transpose_last("mH")),
             doc="Last two dimensions exchanged and complex numbers conjugated, a view.")
table.define("aten::adjoint(Tensor(a) self) -> Tensor(a)", _conjugate(_transpose_last("adjoint()")), doc="As mH.")


@table.op("aten::matrix_H(Tensor(a) self) -> Tensor(a)", "aten::matrix_H.a(Tensor(a) self) -> Tensor(a)")
def matrix_adjoint(xp, self):
    """A matrix transposed and conjugated, a view."""
    if self.ndim not in (0, 2):
        raise RunError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.")
    return conjugated(xp, self.T if self.ndim else self)


@table.op("aten::numpy_T(Tensor(a) self) -> Tensor(a)", "aten::numpy_T.a(Tensor(a) self) -> Tensor(a)")
def reversed_dims(xp, self):
    """All dimensions in reverse order, a view."""
    return self.T


@table.op("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)")
def permute(xp, self, dims):
    """Dimensions in a given order, a view."""
    if len(dims) != self.ndim:
        raise RunError("permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering "
                       f"of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(dims)}")
    order = [wrap_dim(d, self.ndim) for d in dims]
    if len(set(order)) != len(order):
        raise RunError("permute(): duplicate dims are not allowed.")
    return self.transpose(order)


def _move_one(xp, self, source, destination):
    return _move(xp, self, [source], [destination])


def _move(xp, self, source, destination):
    if len(source) != len(destination):
        raise RunError(f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number of dims "
                       f"as destination ({list(destination)} dims)")
    source, destination = [[wrap_dim(d, self.ndim) for d in dims] for dims in (source, destination)]
    for name, dims in (("source", source), ("destination", destination)):
        if len(set(dims)) != len(dims):
            raise RunError(f"movedim: repeated dim in `{name}` ({dims})")
    return xp.moveaxis(self, source, destination) if self.ndim else self[...]


for _name in ("movedim", "moveaxis"):
    table.define(f"aten::{_name}.int(Tensor(a) self, int source, int destination) -> Tensor(a)", _move_one, doc="One dimension moved.")
    table.define(f"aten::{_name}.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", _move, doc="Dimensions moved.")


# ---- dimensions of size 1, and repeated ones

def squeeze_dims(self, dims):
    """`self` without those of the given dimensions (plain, unordered) whose size is 1."""
    return self.reshape([n for place, n in enumerate(self.shape) if n != 1 or place not in dims]) if is_contiguous(self) else (
        self[tuple(0 if n == 1 and place in dims else slice(None) for place, n in enumerate(self.shape))])


@table.op("aten::squeeze(Tensor(a) self) -> Tensor(a)")
def squeeze(xp, self):
    """Without the dimensions of size 1, a view."""
    return squeeze_dims(self, range(self.ndim))


@table.op("aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)")
def squeeze_dim(xp, self, dim):
    """Without this dimension if its size is 1, a view."""
    return squeeze_dims(self, (wrap_dim(dim, self.ndim),))


@table.op("aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)")
def squeeze_several(xp, self, dim):
    """Without those of these dimensions that have size 1, a view."""
    dims = [wrap_dim(d, self.ndim) for d in dim]
    for d in dims:
        if dims.count(d) > 1:
            raise RunError(f"dim {d} appears multiple times in the list of dims")
    return squeeze_dims(self, dims)


@table.op("aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)")
def unsqueeze(xp, self, dim):
    """With a dimension of size 1 before `dim`, a view."""
    return xp.expand_dims(self, wrap_dim(dim, self.ndim + 1))


@table.op("aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)")
def expand(xp, self, size, implicit):
    """Dimensions of size 1 repeated without copying; -1 keeps a size; new dimensions are in front."""
    if len(size) < self.ndim:
        raise RunError(f"expand(torch.{title(self.dtype)}Tensor{{{list(self.shape)}}}, size={list(size)}): the number of sizes provided "
                       f"({len(size)}) must be greater or equal to the number of dimensions in the tensor ({self.ndim})")
    return broadcast_view(self, size)


@table.op("aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)")
def expand_as(xp, self, other):
    """Repeated to `other`'s shape without copying."""
    return expand.kernel(xp, self, other.shape, False)


@table.op("aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)")
def broadcast_to(xp, self, size):
    """Repeated to a shape without copying."""
    return expand.kernel(xp, self, size, False)


# ---- parts

@table.op("aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)")
def select(xp, self, dim, index):
    """One position of a dimension, which is removed; a view."""
    if not self.ndim:
        raise RunError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, self.ndim)
    extent = self.shape[dim]
    if not -extent <= index < extent:
        raise RunError(f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}", code="E0408")
    place = int(index) % extent         # with the ellipsis, NumPy returns a 0-dim view where the index alone would return a number
    return self[(slice(None),) * dim + (place, ...)]


@table.op("aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)")
def slice_dim(xp, self, dim, start, end, step):
    """Every step-th place from start to end of a dimension, clipped as Python does; a view."""
    if not self.ndim:
        raise RunError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, self.ndim)
    if step <= 0:
        raise RunError("slice step must be positive")
    return self[(slice(None),) * dim + (slice(start, end, step),)]


@table.op("aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)")
def narrow(xp, self, dim, start, length):
    """`length` places of a dimension from `start` on, a view."""
    if not self.ndim:
        raise RunError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RunError("narrow(): length must be non-negative.")
    dim = wrap_dim(dim, self.ndim)
    extent = self.shape[dim]
    if not -extent <= start <= extent:
        raise RunError(f"start out of range (expected to be in range of [{-extent}, {extent}], but got {start})", code="E0408")
    start += extent if start < 0 else 0
    if start + length > extent:
        raise RunError(f"start ({start}) + length ({length}) exceeds dimension size ({extent}).")
    return self[(slice(None),) * dim + (slice(start, start + length),)]


@table.op("aten::narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)")
def narrow_from_tensor(xp, self, dim, start, length):
    """narrow with a start held by a 0-dim tensor."""
    if start.ndim or start.dtype.kind not in "iu":
        raise RunError("start must be an 0-dim integral Tensor.")
    return narrow.kernel(xp, self, dim, int(start), length)


def diagonal_view(xp, x, offset, dim1, dim2):
    """Places (i, i + offset) of two dimensions as a last dimension, a writable view."""
    first, second = wrap_dim(dim1, x.ndim), wrap_dim(dim2, x.ndim)
    if first == second:
        raise RunError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = x.shape[first], x.shape[second]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    others = [place for place in range(x.ndim) if place not in (first, second)]
    start = [slice(None)] * x.ndim
    if length:
        start[first if offset < 0 else second] = slice(abs(offset), None)
    part = x[tuple(start)]
    return xp.lib.stride_tricks.as_strided(part, [x.shape[p] for p in others] + [length],
                                           [x.strides[p] for p in others] + [x.strides[first] + x.strides[second]])


@table.op("aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)")
def diagonal(xp, self, offset, dim1, dim2):
    """Diagonals of the matrices that two dimensions form, as the last dimension; a view."""
    return diagonal_view(xp, self, offset, dim1, dim2)


@table.op("aten::linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)")
def linalg_diagonal(xp, A, offset, dim1, dim2):
    """As diagonal, by default of the last two dimensions."""
    return diagonal_view(xp, A, offset, dim1, dim2)


@table.op("aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)")
def unfold(xp, self, dimension, size, step):
    """Windows of `size` places of a dimension, every `step`, as a last dimension; a view."""
    dimension = wrap_dim(dimension, self.ndim)
    extent = self.shape[dimension] if self.ndim else 1
    if size < 0:
        raise RunError(f"size is {size} but must be >= 0")
    if size > extent:
        raise RunError(f"maximum size for tensor at dimension {dimension} is {extent} but size is {size}")
    if step <= 0:
        raise RunError(f"step is {step} but must be > 0")
    if not self.ndim:
        return xp.lib.stride_tricks.as_strided(self, (size,), (self.itemsize,))
    shape, strides = list(self.shape), list(self.strides)
    shape[dimension], strides[dimension] = (extent - size) // step + 1, strides[dimension] * step
    return xp.lib.stride_tricks.as_strided(self, [*shape, size], [*strides, self.strides[dimension]])


@table.op("aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)")
def as_strided(xp, self, size, stride, storage_offset):
    """The tensor's storage seen with any shape and strides."""
    if len(size) != len(stride):
        raise RunError("mismatch in length of strides and shape")
    if any(n < 0 for n in size):
        raise RunError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    if any(s < 0 for s in stride):
        raise RunError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    root = _storage(self)
    offset = _offset(self) if storage_offset is None else storage_offset
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if offset < 0:
        raise RunError(f"Tensor: invalid storage offset {offset}")
    if math.prod(size) and (last + 1) * self.itemsize > root.nbytes:
        raise RunError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {self.itemsize} "
                       f"requiring a storage size of {(last + 1) * self.itemsize} are out of bounds for storage of size {root.nbytes}",
                       code="E0408")
    if not (root.flags.c_contiguous or root.flags.f_contiguous):
        raise UnsupportedError("aten::as_strided: memory of an array that is not contiguous")
    flat = root.ravel(order="K").view(self.dtype)
    return xp.lib.stride_tricks.as_strided(flat[offset if math.prod(size) else 0:], size, [s * self.itemsize for s in stride])


# ---- complex numbers as pairs

@table.op("aten::view_as_real(Tensor(a) self) -> Tensor(a)")
def view_as_real(xp, self):
    """Real and imaginary part as a last dimension of size 2, a view."""
    if self.dtype.kind != "c":
        raise RunError("view_as_real is only supported for complex tensors")
    return self[..., None].view(real_of(self.dtype))


@table.op("aten::view_as_complex(Tensor(a) self) -> Tensor(a)")
def view_as_complex(xp, self):
    """The last dimension, of size 2, read as real and imaginary part; a view."""
    if self.dtype.kind != "f":
        raise RunError("view_as_complex is only supported for floating point tensors, but got a tensor of scalar type: "
                       f"{self.dtype}", code="E0409")
    if not self.ndim:
        raise RunError("Input tensor must have one or more dimensions")
    if self.shape[-1] != 2:
        raise RunError("Tensor must have a last dimension of size 2")
    if self.size and self.strides[-1] != self.itemsize:
        raise RunError("Tensor must have a last dimension with stride 1")
    if any(s % (2 * self.itemsize) for s in self.strides[:-1]):
        raise RunError("Tensor must have a stride divisible by 2 for all but last dimension")
    return self.view(complex_of(self.dtype))[..., 0]
