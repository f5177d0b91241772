"""Subscripts of tensors in Python: `x[1, 2:, None, ..., mask]`, by the operations that compiled source has for them, where torch's agree.

Where Python differs from compiled source in torch, this is Python: a 0-d tensor of integers selects a view, as a number does, and a list
that contains sequences, slices, tensors, None or `...` is taken for a tuple.
"""
from __future__ import annotations

from typing import Any

from irtool.ir.errors import PlaceMissing, RunError
from irtool.ops.array_library import np
from irtool.ops.arrays import CODES, as_array, dtype_of
from irtool.ops.checks import fit_fill
from irtool.ops.tensor import CASTS, Tensor, call, elements, has_layers


def subscript(self: Tensor, key: Any) -> Any:
    """`x[1, 2:, None, ..., mask]` by select, slice, unsqueeze and index."""
    part, indices = located(self, key)
    if indices:
        return call("aten::index", (part, indices), {})
    return call("aten::alias", (self,), {}) if part is self else part


def assign(self: Tensor, key: Any, value: Any) -> None:
    """`x[1, 2:, mask] = value`: copy_ into the view made by select and slice, or index_put_ if there are tensors among the keys."""
    part, indices = located(self, key)
    has_elements = isinstance(value, Tensor | np.ndarray)
    if not indices and not has_elements:
        call("aten::fill_", (part, value), {})
        return
    source = value if isinstance(value, Tensor) else Tensor(value) if has_elements else tensor_of(value, dtype_of(part.dtype))
    places = [index for index in indices if index is not None]
    rank = part.ndim - sum(map(dims_of_key, places)) + max([1 if is_mask(index) else index.ndim for index in places], default=0)
    while source.ndim > rank and source.shape[0] == 1:      # as in torch, leading dimensions of size 1 do not count
        source = call("aten::squeeze", (source, 0), {})
    call("aten::index_put_", (part, indices, source), {}) if indices else call("aten::copy_", (part, source), {})


def tensor_of(value: Any, dtype: Any) -> Tensor:
    """A number, or what NumPy takes for an array, as a tensor of a dtype. Raises RunError for a number that the dtype cannot represent."""
    if hasattr(value, "tensor"):        # a number of a trace knows its tensor
        known: Tensor = value.tensor(dtype.name)
        return known
    plain = isinstance(value, int | float | complex)
    return Tensor(as_array(fit_fill(value, dtype), dtype) if plain else np.asarray(value, dtype))


def located(self: Tensor, key: Any) -> tuple[Tensor, list[Any]]:
    """The view that integers, slices and Nones make, and the tensors among the keys, each at its dimension of the view."""
    keys = [plain_key(each) for each in (key if isinstance(key, tuple) or is_like_tuple(key) else (key,))]
    dim = covered = 0      # covered: dimensions that `indices` covers
    unnamed = self.ndim - sum(dims_of_key(each) for each in keys if each is not Ellipsis)
    if unnamed < 0 and len(keys) > 1:
        raise PlaceMissing(f"too many indices for tensor of dimension {self.ndim}")
    indices: list[Any] = []
    for item in keys:
        if isinstance(item, bool):      # a new dimension, of size 1 or 0
            self, item = call("aten::unsqueeze", (self, dim), {}), Tensor(np.zeros(int(item), np.int64))
        elif isinstance(item, Tensor) and is_mask(item) and not item.ndim:      # the same for a tensor
            item = item if CODES[item.dtype] == "bool" else call("aten::to", (item, CASTS["bool"]), {})
            self, item = call("aten::unsqueeze", (self, dim), {}), call("aten::reshape", (item, [1]), {})
        if isinstance(item, slice):
            start, stop, step = map(as_bound, (item.start, item.stop, item.step))
            self = call("aten::slice", (self, dim, start, stop, 1 if step is None else step), {})
            dim += 1
        elif item is None:
            self = call("aten::unsqueeze", (self, dim), {})
            dim += 1
        elif item is Ellipsis:
            dim += unnamed      # as in torch, each of several
        elif isinstance(item, Tensor) and is_place(item):
            self = selected(self, dim, item)
        elif isinstance(item, Tensor):
            indices += [None] * (dim - covered) + [item]
            dim = covered = dim + dims_of_key(item)
        else:
            self = selected(self, dim, item)
    return self, indices


def selected(self: Tensor, dim: int, place: Any) -> Any:
    """The view at a place of a dimension. Under layers a place in a tensor stays one, so that a trace has it in its graph.

    Raises PlaceMissing, an IndexError, as Python does.
    """
    if isinstance(place, Tensor) and not has_layers():
        place = int(place)
    if not isinstance(place, Tensor) and not hasattr(place, "__index__"):
        raise PlaceMissing("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                           f"(got {type(place).__name__})")
    try:
        if isinstance(place, Tensor):
            return call("aten::squeeze", (call("aten::narrow", (self, dim, place, 1), {}), dim), {})
        return call("aten::select", (self, dim, place), {})
    except RunError as error:
        if not self.ndim:
            raise PlaceMissing("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert "
                               "a 0-dim tensor to a number") from error
        if dim >= self.ndim:
            raise PlaceMissing(f"too many indices for tensor of dimension {self.ndim}") from error
        if isinstance(place, int) and not -self.shape[dim] <= place < self.shape[dim]:
            raise PlaceMissing(f"index {place} is out of bounds for dimension {dim} with size {self.shape[dim]}") from error
        raise


def as_bound(bound: Any) -> Any:
    """A bound of a slice; the number in a tensor."""
    return call("aten::Int", (bound,), {}) if isinstance(bound, Tensor) else bound


def plain_key(item: Any) -> Any:
    """A key in Python's form: arrays and sequences as tensors, NumPy's numbers as Python numbers."""
    if isinstance(item, np.generic):
        return item.item()
    if isinstance(item, SEQUENCES):
        array = elements(list(item))
        return Tensor(array if array.size else array.astype(np.int64))
    return Tensor(item) if isinstance(item, np.ndarray) else item


def is_like_tuple(key: Any) -> bool:
    """Does torch take a list for a tuple of keys? So it takes short ones that contain more than numbers, as NumPy once did."""
    return isinstance(key, SEQUENCES) and len(key) < 32 and any(
        each is None or each is Ellipsis or isinstance(each, (slice, Tensor, np.ndarray, *SEQUENCES)) for each in key)


SEQUENCES = (list, tuple, range)


def dims_of_key(item: Any) -> int:
    """The number of dimensions that a key indexes: for a mask, all of its own."""
    if isinstance(item, Tensor) and is_mask(item):
        return item.ndim
    return int(item is not None and not isinstance(item, bool))


def is_place(key: Tensor) -> bool:
    """Is a key one number, in a 0-d tensor of integers?"""
    return not key.ndim and CODES[key.dtype] in ("int8", "int16", "int32", "int64")


def is_mask(key: Tensor) -> bool:
    """Is a key a mask, which has a bool for each element, rather than indices?"""
    return CODES[key.dtype] in ("bool", "uint8")


