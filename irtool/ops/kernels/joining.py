"""Tensors joined, split, repeated and rearranged. Splitting returns views; joining and rearranging return new, contiguous tensors."""
from irtool.ir.errors import RunError
from irtool.ops.arrays import astype, broadcast_view, memory_order, wrap_dim
from irtool.ops.checks import common_order, fit, in_memory_order, refuse_growth, row_major
from irtool.ops.kernels.shape import infer_shape, rolled
from irtool.ops.op import OpTable
from irtool.ops.promotion import result_type

table = OpTable("joining")


# ---- joined

def _same_but(tensors, dim, shapes):
    first = shapes[0]
    for place, shape in enumerate(shapes[1:], 1):
        if len(shape) != len(first):
            raise RunError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        for axis, (a, b) in enumerate(zip(first, shape, strict=True)):
            if a != b and axis != dim:
                raise RunError(f"Sizes of tensors must match except in dimension {dim}. Expected size {a} but got size {b} for tensor "
                               f"number {place} in the list.", code="E0407")


def concatenated(xp, tensors, dim):
    """Tensors one after another along `dim`, in their common dtype; 1-d empty ones are left out, as torch does."""
    if not tensors:
        raise RunError("torch.cat(): expected a non-empty list of Tensors")
    for place, tensor in enumerate(tensors):
        if not tensor.ndim:
            raise RunError(f"zero-dimensional tensor (at position {place}) cannot be concatenated")
    dtype = result_type(tensors)
    parts = [t for t in tensors if t.shape != (0,)] or [tensors[0]]
    dim = wrap_dim(dim, parts[0].ndim) if parts[0].shape != (0,) else 0
    if len({t.shape for t in parts}) > 1:
        _same_but(parts, dim, [t.shape for t in parts])
    joined = xp.concatenate([astype(t, dtype) for t in parts], dim)
    return in_memory_order(xp, joined, common_order(tensors)) if joined.ndim > 3 else row_major(xp, joined)


table.define([f"aten::{name}(Tensor[] tensors, int dim=0) -> Tensor" for name in ("cat", "concat", "concatenate")], concatenated,
             doc="Tensors one after another along a dimension, in their common dtype; empty 1-d ones do not count.")


@table.op("aten::stack(Tensor[] tensors, int dim=0) -> Tensor")
def stack(xp, tensors, dim):
    """Tensors of one shape along a new dimension, in their common dtype."""
    if not tensors:
        raise RunError("stack expects a non-empty TensorList")
    dim = wrap_dim(dim, tensors[0].ndim + 1)
    for place, tensor in enumerate(tensors):
        if tensor.shape != tensors[0].shape:
            raise RunError(f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
                           f"{list(tensor.shape)} at entry {place}")
    if tensors[0].ndim > max(dim, 3):      # torch joins along that dimension, and then splits it
        return concatenated(xp, tensors, dim).reshape((*tensors[0].shape[:dim], len(tensors), *tensors[0].shape[dim:]))
    dtype = result_type(tensors)
    return row_major(xp, xp.stack([astype(t, dtype) for t in tensors], dim))


def _at_least(rank):
    """A tensor with at least `rank` dimensions: new ones of size 1 are in front; of three, a vector is the middle one and a matrix the
    first two."""
    def kernel(xp, self):
        if self.ndim >= rank:
            return self
        if rank == 3 and self.ndim:
            return self[None, :, None] if self.ndim == 1 else self[:, :, None]
        return self.reshape((1,) * (rank - self.ndim) + self.shape)
    return kernel


def _each(kernel):
    def of_list(xp, tensors):
        return [kernel(xp, tensor) for tensor in tensors]
    return of_list


for _rank in (1, 2, 3):
    _doc = f"At least {_rank}-dimensional."
    table.define(f"aten::atleast_{_rank}d(Tensor self) -> Tensor", _at_least(_rank), doc=_doc)
    table.define(f"aten::atleast_{_rank}d.Sequence(Tensor[] tensors) -> Tensor[]", _each(_at_least(_rank)), doc=_doc)


@table.op("aten::hstack(Tensor[] tensors) -> Tensor")
def hstack(xp, tensors):
    """Side by side: along dimension 1, vectors along 0."""
    if not tensors:
        raise RunError("hstack expects a non-empty TensorList")
    tensors = [_at_least(1)(xp, t) for t in tensors]
    return concatenated(xp, tensors, 0 if tensors[0].ndim == 1 else 1)


def _vstack(xp, tensors):
    if not tensors:
        raise RunError("vstack expects a non-empty TensorList")
    return concatenated(xp, [_at_least(2)(xp, t) for t in tensors], 0)


table.define(("aten::vstack(Tensor[] tensors) -> Tensor", "aten::row_stack(Tensor[] tensors) -> Tensor"), _vstack,
             doc="One below the other, vectors as rows.")


@table.op("aten::dstack(Tensor[] tensors) -> Tensor")
def dstack(xp, tensors):
    """One behind the other: along dimension 2."""
    if not tensors:
        raise RunError("dstack expects a non-empty TensorList")
    return concatenated(xp, [_at_least(3)(xp, t) for t in tensors], 2)


@table.op("aten::column_stack(Tensor[] tensors) -> Tensor")
def column_stack(xp, tensors):
    """Side by side, numbers and vectors as columns."""
    if not tensors:
        raise RunError("column_stack expects a non-empty TensorList")
    return concatenated(xp, [t.reshape(t.size, 1) if t.ndim <= 1 else t for t in tensors], 1)


@table.op("aten::block_diag(Tensor[] tensors) -> Tensor")
def block_diag(xp, tensors):
    """Matrices along the diagonal of a larger one of zeros; vectors count as rows."""
    for place, tensor in enumerate(tensors):
        if tensor.ndim > 2:
            raise RunError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {place} has {tensor.ndim} dimensions")
    blocks = [_at_least(2)(xp, t) for t in tensors]
    if not blocks:
        return xp.empty((1, 0), xp.float32)
    result = xp.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), result_type(tensors))
    row = column = 0
    for block in blocks:
        result[row:row + block.shape[0], column:column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return result


@table.op("aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor")
def chunk_cat(xp, tensors, dim, num_chunks):
    """Each tensor padded with zeros, cut into chunks along `dim`, each chunk flattened; chunks of all tensors joined."""
    if num_chunks < 1:
        raise RunError("_chunk_cat expects positive num_chunks")
    if not tensors or any(0 in each.shape for each in tensors):
        raise RunError("_chunk_cat expects non-empty tensor" if tensors else "_chunk_cat expects a non-empty input tensor list")
    if any(each.dtype != tensors[0].dtype for each in tensors):
        raise RunError("_chunk_cat expects all input tensors with the same dtype")
    dim = wrap_dim(dim, tensors[0].ndim)
    flat = []
    for tensor in tensors:
        extent = tensor.shape[dim]
        chunk_size = -(-extent // num_chunks)
        padding = [(0, 0)] * tensor.ndim
        padding[dim] = (0, chunk_size * num_chunks - extent)
        flat.append(xp.pad(tensor, padding).reshape(tensor.shape[:dim] + (num_chunks, -1)))
    return xp.concatenate(flat, dim + 1)


@table.op("aten::flatten_dense_tensors(Tensor[] tensors) -> Tensor")
def flatten_dense_tensors(xp, tensors):
    """All elements of all tensors in one dimension; a view only of one tensor that is row-major."""
    parts = [row_major(xp, t).reshape(-1) for t in tensors]
    return parts[0] if len(parts) == 1 else concatenated(xp, parts, 0)


@table.op("aten::unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]")
def unflatten_dense_tensors(xp, flat, tensors):
    """One dimension cut into tensors of the given shapes."""
    results, start = [], 0
    if tensors and not flat.ndim:
        raise RunError("narrow() cannot be applied to a 0-dim tensor.")
    for tensor in tensors:
        if start + tensor.size > flat.shape[0]:
            raise RunError(f"start ({start}) + length ({tensor.size}) exceeds dimension size ({flat.shape[0]}).")
        part = flat[start:start + tensor.size]
        results.append(part.reshape(infer_shape(tensor.shape, part.size)))
        start += tensor.size
    return results


@table.op("aten::pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side=\"right\") -> Tensor")
def pad_sequence(xp, sequences, batch_first, padding_value, padding_side):
    """Sequences of different length in one tensor, (time, batch, ...) or (batch, time, ...), filled up with a value."""
    if not sequences:
        raise RunError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RunError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(s.shape[0] for s in sequences)
    tail = sequences[0].shape[1:]
    result = xp.full((len(sequences), longest, *tail), fit(padding_value, sequences[0].dtype), sequences[0].dtype)
    for place, sequence in enumerate(sequences):
        room = result[place, :len(sequence)]
        refuse_growth(room, xp.broadcast_shapes(room.shape, sequence.shape))
        filled = slice(longest - len(sequence), None) if padding_side == "left" else slice(0, len(sequence))
        result[place, filled] = sequence
    return result if batch_first else row_major(xp, result.swapaxes(0, 1))


# ---- cut apart: lists of views

def _cut(x, dim, sizes):
    parts, start, lead = [], 0, (slice(None),) * dim
    for extent in sizes:
        parts.append(x[(*lead, slice(start, start + extent))])
        start += extent
    return parts


def split_every(xp, self, split_size, dim):
    """Parts of `split_size` places, the last one shorter."""
    if not self.ndim:
        raise RunError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RunError(f"split expects split_size be non-negative, but got split_size={split_size}")
    dim = wrap_dim(dim, self.ndim)
    extent = self.shape[dim]
    if not split_size:
        if extent:
            raise RunError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {extent}")
        return [self]
    count = max(-(-extent // split_size), 1)
    return _cut(self, dim, [min(split_size, extent - place * split_size) for place in range(count)])


def split_sizes_checked(xp, self, split_sizes, dim):
    """Parts of the given sizes."""
    if not self.ndim:
        raise RunError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, self.ndim)
    if any(s < 0 for s in split_sizes):
        raise RunError(f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(split_sizes)}")
    if sum(split_sizes) != self.shape[dim]:
        raise RunError(f"split_with_sizes expects split_sizes to sum exactly to {self.shape[dim]} (input tensor's size at dimension "
                       f"{dim}), but got split_sizes={list(split_sizes)}")
    return _cut(self, dim, split_sizes)


def chunks_of(xp, self, chunks, dim):
    """At most `chunks` parts of equal size, the last one shorter."""
    if not self.ndim:
        raise RunError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RunError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, self.ndim)
    size = -(-self.shape[dim] // chunks)
    return split_every(xp, self, size, dim) if size else _cut(self, dim, [0] * chunks)


def unbound(xp, self, dim):
    """One view per place of a dimension."""
    if not self.ndim:
        raise RunError("Dimension specified as 0 but tensor has no dimensions")
    dim = wrap_dim(dim, self.ndim)
    lead = (slice(None),) * dim
    return [self[(*lead, place, ...)] for place in range(self.shape[dim])]


table.define("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", split_every)
table.define(("aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
              "aten::split(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
              "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]"), split_sizes_checked)
table.define("aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", chunks_of)
table.define("aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", unbound)
# views too, though their schemas do not say so
table.define("aten::unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", split_every)
table.define("aten::unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", split_sizes_checked)
table.define("aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", chunks_of)


def _list_of_copies(kernel):
    def copies(xp, *args):
        return [xp.array(part, order="C", copy=True) for part in kernel(xp, *args)]
    return copies


for _schema, _kernel in (
    ("aten::split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", split_every),
    ("aten::split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", split_sizes_checked),
    ("aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", unbound),
):
    table.define(_schema, _list_of_copies(_kernel), doc="Copies of the parts.")


MANY = 1_000_000
"""Empty parts that a tensor is split into at most."""


def sections_of(self, sections, dim):
    """`sections` parts, the first ones longer by one where it does not divide."""
    if sections <= 0:
        raise RunError(f"number of sections must be larger than 0, got {sections}")
    if sections > MANY + self.shape[dim]:
        raise RunError(f"not enough memory: {sections:,} sections of {self.shape[dim]} rows, most of them empty", code="E0406")
    size, longer = divmod(self.shape[dim], sections)
    return _cut(self, dim, [size + (place < longer) for place in range(sections)])


def parts_between(self, indices, dim):
    """Parts between the given places, which count from the end when negative."""
    edges = [0, *indices, None]
    lead = (slice(None),) * dim
    return [self[(*lead, slice(a, b))] for a, b in zip(edges, edges[1:], strict=False)]


def _tensor_split_dim(self, dim):
    if not self.ndim:
        raise RunError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    return wrap_dim(dim, self.ndim)


@table.op("aten::tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]")
def tensor_split(xp, self, sections, dim):
    """That many parts of almost equal size."""
    return sections_of(self, sections, _tensor_split_dim(self, dim))


@table.op("aten::tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]")
def tensor_split_at(xp, self, indices, dim):
    """Parts between places."""
    return parts_between(self, indices, _tensor_split_dim(self, dim))


@table.op("aten::tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]")
def tensor_split_by(xp, self, tensor_indices_or_sections, dim):
    """A 0-dim tensor is a number of parts, a 1-d one places."""
    dim = _tensor_split_dim(self, dim)
    split = tensor_indices_or_sections
    if split.ndim > 1 or split.dtype != xp.int64:
        raise RunError("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor of long dtype")
    return parts_between(self, split.tolist(), dim) if split.ndim else sections_of(self, int(split), dim)


def _named_split(name, rank, dim_of):
    def by_count(xp, self, sections):
        _enough(self)
        dim = dim_of(self)
        if sections <= 0 or self.shape[dim] % sections:
            raise RunError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {self.shape[dim]} is "
                           f"not divisible by the split_size {sections}!")
        return sections_of(self, sections, dim)

    def at(xp, self, indices):
        _enough(self)
        return parts_between(self, indices, dim_of(self))

    def _enough(self):
        if self.ndim < rank:
            raise RunError(f"torch.{name} requires a tensor with at least {rank} dimension{'s' * (rank > 1)}, but got a tensor with "
                           f"{self.ndim} dimensions!")

    table.define(f"aten::{name}.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", by_count, doc="That many equal parts.")
    table.define(f"aten::{name}.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", at, doc="Parts between places.")


_named_split("hsplit", 1, lambda x: 0 if x.ndim == 1 else 1)
_named_split("vsplit", 2, lambda x: 0)
_named_split("dsplit", 3, lambda x: 2)


# ---- repeated

@table.op("aten::repeat(Tensor self, SymInt[] repeats) -> Tensor")
def repeat(xp, self, repeats):
    """The whole tensor repeated along each dimension."""
    if len(repeats) < self.ndim:
        raise RunError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = [count * size for count, size in zip(repeats, (1,) * (len(repeats) - self.ndim) + self.shape)]
    if min(shape, default=0) < 0:
        raise RunError(f"Trying to create tensor with negative dimension {next(size for size in shape if size < 0)}: {shape}")
    tiled = xp.tile(self, [max(count, 0) for count in repeats])
    return tiled if repeats and self.size else tiled.copy()       # NumPy returns a view, which may be read-only


@table.op("aten::tile(Tensor self, SymInt[] dims) -> Tensor")
def tile(xp, self, dims):
    """As repeat; missing counts in front are 1."""
    return repeat.kernel(xp, self, [1] * (self.ndim - len(dims)) + list(dims))


def _counts(xp, repeats):
    if repeats.dtype not in ("int32", "int64"):
        raise RunError("repeats has to be Long or Int tensor")
    if repeats.size and repeats.min() < 0:
        raise RunError("repeats can not be negative")
    return repeats


def _repeated(xp, self, repeats, dim, output_size):
    if dim is None:
        self, dim = self.reshape(-1), 0
    dim = wrap_dim(dim, self.ndim)
    source = self if self.ndim else self.reshape(1)
    result = row_major(xp, xp.repeat(source, repeats, dim))
    if output_size is not None and result.shape[dim] != output_size:
        raise RunError("repeat_interleave: Invalid output_size, the sum of repeats does not match")
    return result


@table.op("aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor")
def repeat_interleave(xp, self, repeats, dim, output_size):
    """Each place of a dimension (of the flattened tensor without one) repeated."""
    if repeats < 0:
        raise RunError("repeats can not be negative")
    if dim is not None and not self.ndim:
        raise RunError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    return _repeated(xp, self, repeats, dim, output_size)


@table.op("aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor")
def repeat_interleave_each(xp, self, repeats, dim, output_size):
    """Each place of a dimension repeated as often as `repeats` says for it."""
    repeats = _counts(xp, repeats)
    if repeats.ndim > 1:
        raise RunError("repeats must be 0-dim or 1-dim tensor")
    if dim is not None and not self.ndim:
        raise RunError(f"Dimension specified as {dim} but tensor has no dimensions")
    extent = self.size if dim is None else (self.shape or (1,))[wrap_dim(dim, self.ndim)]
    if repeats.size not in (1, extent):
        raise RunError(f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.size} and input.size("
                       f"{0 if dim is None else dim}) = {extent}")
    return _repeated(xp, self, repeats.reshape(-1), dim, output_size)


@table.op("aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor")
def repeat_places(xp, repeats, output_size):
    """Place i as often as repeats[i] says."""
    if repeats.ndim != 1:
        raise RunError("repeat_interleave only accept 1D vector as repeat")
    result = xp.repeat(xp.arange(repeats.size, dtype=repeats.dtype), _counts(xp, repeats))
    if output_size not in (None, result.size):
        raise RunError("allocated size does not match required size")
    return result


# ---- turned round

@table.op("aten::flip(Tensor self, int[] dims) -> Tensor")
def flip(xp, self, dims):
    """Reversed along dimensions."""
    wrapped = tuple([wrap_dim(d, self.ndim) for d in dims])
    for d in wrapped:
        if wrapped.count(d) > 1:
            raise RunError(f"dim {d} appears multiple times in the list of dims")
    return row_major(xp, xp.flip(self, wrapped)).reshape(self.shape) if self.ndim and dims else self.copy()


@table.op("aten::fliplr(Tensor self) -> Tensor")
def fliplr(xp, self):
    """Reversed along dimension 1."""
    if self.ndim < 2:
        raise RunError("Input must be >= 2-d.")
    return flip.kernel(xp, self, [1])


@table.op("aten::flipud(Tensor self) -> Tensor")
def flipud(xp, self):
    """Reversed along dimension 0."""
    if self.ndim < 1:
        raise RunError("Input must be >= 1-d.")
    return flip.kernel(xp, self, [0])


@table.op("aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor")
def roll(xp, self, shifts, dims):
    """Moved round along dimensions; without any, the flattened tensor is."""
    if not shifts:
        raise RunError("`shifts` required")
    if not dims and len(shifts) == 1:
        return xp.roll(self.reshape(-1), shifts[0]).reshape(self.shape)
    if len(shifts) != len(dims):
        raise RunError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not self.ndim and dims:
        raise RunError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return rolled(xp, self, tuple(shifts), tuple(wrap_dim(d, self.ndim) for d in dims)) if self.ndim else self.copy()


@table.op("aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor")
def rot90(xp, self, k, dims):
    """Turned by k quarter turns in the plane of two dimensions."""
    if len(dims) != 2:
        raise RunError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise RunError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    a, b = (wrap_dim(d, self.ndim) for d in dims)
    if a == b:
        raise RunError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    turned = xp.rot90(self, k, (a, b))
    order = memory_order(self) if k % 4 else list(range(self.ndim))
    if k % 2:       # torch swaps the dimensions of the flipped tensor
        order = [b if place == a else a if place == b else place for place in order]
    return in_memory_order(xp, turned, order)


# ---- grids and products of sequences

@table.op("aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]")
def broadcast_tensors(xp, tensors):
    """All tensors repeated to their common shape."""
    shape = xp.broadcast_shapes(*(t.shape for t in tensors))
    return [t if t.shape == shape else broadcast_view(t, shape) for t in tensors]


def _meshgrid(xp, tensors, indexing="ij"):
    if not tensors:
        raise RunError("meshgrid expects a non-empty TensorList")
    if indexing not in ("ij", "xy"):
        raise RunError(f"torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {indexing}")
    for tensor in tensors:
        if tensor.ndim > 1:
            raise RunError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {tensor.ndim}D")
        if tensor.dtype != tensors[0].dtype:
            raise RunError("torch.meshgrid expects all tensors to have the same dtype", code="E0409")
    swapped = indexing == "xy" and len(tensors) >= 2
    ordered = [tensors[1], tensors[0], *tensors[2:]] if swapped else tensors
    shape = tuple(t.size for t in ordered)
    grids = [broadcast_view(t.reshape((1,) * place + (t.size,) + (1,) * (len(shape) - place - 1)), shape)
             for place, t in enumerate(ordered)]
    return [grids[1], grids[0], *grids[2:]] if swapped else grids


table.define("aten::meshgrid(Tensor[] tensors) -> Tensor[]", _meshgrid, doc="Coordinates of all points of a grid.")
table.define("aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", _meshgrid, doc="The same, rows or columns first.")


@table.op("aten::cartesian_prod(Tensor[] tensors) -> Tensor")
def cartesian_prod(xp, tensors):
    """All tuples with one element of each vector, as rows."""
    for tensor in tensors:
        if tensor.ndim != 1:
            raise RunError(f"Expect a 1D vector, but got shape {list(tensor.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return xp.stack([g.reshape(-1) for g in _meshgrid(xp, tensors)], 1)


@table.op("aten::combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor")
def combinations(xp, self, r, with_replacement):
    """All choices of r elements of a vector, in order, as rows."""
    if self.ndim != 1:
        raise RunError(f"Expect a 1D vector, but got shape {list(self.shape)}")
    if r < 0:
        raise RunError(f"Expect a non-negative number, but got {r}")
    if not r:
        return xp.empty(0, self.dtype)
    grids = xp.stack([g.reshape(-1) for g in _meshgrid(xp, [xp.arange(self.size)] * r)], 1)
    before, after = grids[:, :-1], grids[:, 1:]
    return self[grids[(before <= after if with_replacement else before < after).all(1)]]


@table.op("aten::broadcast_shapes(int[] a, int[] b) -> int[]")
def broadcast_shapes(xp, a, b):
    """The common shape of two."""
    return list(xp.broadcast_shapes(tuple(a), tuple(b)))


@table.op("aten::_reshape_copy(Tensor self, SymInt[] size) -> Tensor")
def reshape_copy(xp, self, size):
    """Another shape, always a copy."""
    return self.reshape(infer_shape(size, self.size)).copy()


@table.op("aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor")
def unfold_backward(xp, grad_in, input_sizes, dim, size, step):
    """Gradient of unfold: windows are added where they overlap."""
    dim = wrap_dim(dim, len(input_sizes))
    result = xp.zeros(input_sizes, grad_in.dtype)
    if not result.ndim:
        return result + grad_in.sum(dtype=grad_in.dtype)
    if grad_in.shape != (*result.shape[:dim], *grad_in.shape[dim:dim + 1], *result.shape[dim + 1:], size):
        raise RunError(f"unfold_backward: expected windows of {size} elements over sizes {list(input_sizes)}, got {list(grad_in.shape)}",
                       code="E0407")
    lead, count = (slice(None),) * dim, grad_in.shape[dim]
    for place in range(size):
        result[(*lead, slice(place, place + (count - 1) * step + 1, step))] += grad_in[..., place]
    return result


def sum_to_shape(xp, x, shape):
    """The opposite of broadcasting: summed over the dimensions that broadcasting `shape` to `x`'s would repeat."""
    shape = tuple(shape)
    if x.shape == shape:
        return x
    lead = x.ndim - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, x.shape[lead:], strict=True)):
        raise RunError(f"size {{{list(shape)}}} is not expandable to size {{{list(x.shape)}}}.")
    axes = tuple(range(lead)) + tuple(lead + p for p, n in enumerate(shape) if n == 1 and x.shape[lead + p] != 1)
    dtype = xp.int64 if x.dtype.kind in "biu" else xp.float32 if x.dtype == xp.float16 else x.dtype
    return xp.asarray(x.sum(axes, dtype=dtype)).astype(x.dtype if x.dtype.kind in "fc" else dtype).reshape(shape)


@table.op("aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor")
def weight_norm(xp, v, g, dim):
    """g * v / |v|, the norm over all dimensions but one."""
    return v * (g / norm_except(xp, v, 2, dim))


def norm_except(xp, v, power, dim):
    """Norm over all dimensions but `dim` (over all with -1), keeping them as 1."""
    axes = tuple(range(v.ndim)) if dim == -1 else tuple(p for p in range(v.ndim) if p != wrap_dim(dim, v.ndim))
    if dim != -1 and not v.ndim:
        raise RunError(f"Dimension specified as {dim} but tensor has no dimensions")
    if dim != -1 and not v.shape[dim]:
        matrix = [0, -1] if not dim or dim < v.ndim - 1 else [-1, 0]
        raise RunError(f"cannot reshape tensor of 0 elements into shape {matrix} because the unspecified dimension size -1 can be any "
                       "value and is ambiguous")
    if power == 0:      # as of all norms
        return (v != 0).sum(axis=axes, keepdims=dim != -1).astype(xp.abs(v[:0]).dtype)
    total = (xp.abs(v) ** power).sum(axis=axes, keepdims=dim != -1)
    return total ** (1 / power) if power != 2 else xp.sqrt(total)


@table.op("aten::norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor")
def norm_except_dim(xp, v, pow, dim):
    """Norm over all dimensions but one."""
    return xp.asarray(norm_except(xp, v, pow, dim))


@table.op("aten::_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)")
def weight_norm_interface(xp, v, g, dim):
    """_weight_norm and the norms it divided by."""
    norms = norm_except(xp, v, 2, dim)
    return v * (g / norms), norms


# ---- dtypes that torch serves

table.takes("hf=", "_weight_norm _weight_norm_interface")
table.takes("hfc", "norm_except_dim")
table.laid_out("K", "flip fliplr flipud")
table.laid_out("C", "_weight_norm repeat tile")
table.laid_out("C-", "_weight_norm_interface")
