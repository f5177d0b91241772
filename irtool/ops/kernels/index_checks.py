"""torch's errors for tensors that are written at the positions of an index vector: index_add, index_copy, index_fill, index_reduce."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import title, wrap_dim


def check_added(name, self, dim, index, source):
    """The checks of index_add and index_reduce; returns the wrapped dimension. Indices do not count from the end."""
    dim = wrap_dim(dim, self.ndim)
    if index.ndim > 1:
        raise RunError(f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim}")
    if index.dtype not in ("int32", "int64"):
        raise RunError(f"{name}(): Expected dtype int32/int64 for index but got: {title(index.dtype)}", code="E0409")
    if self.dtype != source.dtype:
        raise RunError(f"{name}(): self ({title(self.dtype)}) and source ({title(source.dtype)}) must have the same scalar type",
                       code="E0409")
    if dim and dim >= source.ndim:
        raise RunError(f"{name}(): Indexing dim {dim} is out of bounds of the source tensor with dim {source.ndim}", code="E0408")
    if index.size != (source.shape[dim] if source.ndim else 1):
        if not source.ndim:
            raise RunError("Dimension specified as 0 but tensor has no dimensions")
        raise RunError(f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): ({source.shape[dim]}), "
                       f"for dim: {dim}")
    if (rest(self, dim) != rest(source, dim)) if self.ndim and source.ndim else self.ndim != source.ndim:
        raise RunError("source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
                       f"{list(self.shape)} source.shape = {list(source.shape)}")
    extent = self.shape[dim] if self.ndim else 1
    if (self.size or self.ndim == 1 or name == "index_reduce_") and index.size and (int(index.min()) < 0 or int(index.max()) >= extent):
        raise RunError("index out of range in self", code="E0408")
    return dim


def check_copied(self, dim, index, source):
    """The checks of index_copy; returns the wrapped dimension. Indices do not count from the end."""
    dim = wrap_dim(dim, self.ndim)
    if index.ndim > 1:
        raise RunError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if not source.ndim and index.size != 1:
        raise RunError(f"index_copy_(): When source is scalar, index should have one element (got {index.size})")
    if source.ndim and self.ndim and source.ndim != self.ndim:
        raise RunError("index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality "
                       f"({source.ndim}), destination dimensionality ({self.ndim})")
    if index.dtype != "int64":
        raise RunError(f"index_copy_(): Expected a long tensor for index, but got {title(index.dtype)}")
    if self.dtype != source.dtype:
        raise RunError(f"index_copy_(): self and source expected to have the same dtype, but got (self) {title(self.dtype)} and (source) "
                       f"{title(source.dtype)}", code="E0409")
    if rest(self, dim) != rest(source, dim):
        raise RunError(f"index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
                       f"{_words(rest(self, dim))} at dimension {dim} and source slice shape: {_words(rest(source, dim))} at dimension 0.")
    if source.ndim and index.size != source.shape[dim]:
        raise RunError(f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) ({source.shape[dim]})")
    extent = self.shape[dim] if self.ndim else 1
    if slices_have_elements(self, dim) and index.size and (int(index.min()) < 0 or int(index.max()) >= extent):
        wrong = int(index.min()) if int(index.min()) < 0 else int(index.max())
        raise RunError(f"index_copy_(): index {wrong} is out of bounds for dimension {dim} with size {extent}", code="E0408")
    return dim


def slices_have_elements(self, dim):
    """Is there an element at any position of a dimension? Otherwise torch reads no index."""
    return math.prod(rest(self, dim)) > 0


def rest(x, dim):
    """The sizes of the other dimensions."""
    return x.shape[:dim] + x.shape[dim + 1:]


def _words(sizes):
    return " ".join(map(str, sizes))
