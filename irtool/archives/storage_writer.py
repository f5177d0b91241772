"""The memory of tensors to be written into an archive: each storage once, under a key, for all its views."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple

from irtool.archives.pickles import STORAGES
from irtool.archives.storages import QUANTIZED, Storage
from irtool.ir.errors import UnsupportedError
from irtool.ops.array_library import np
from irtool.ops.arrays import memory_of, on_host, to_bfloat16

KINDS = {dtype: kind for kind, dtype in STORAGES.items()}
"""Dtypes of elements -> the classes of their storages."""


class Stored:
    """A storage to be written: its class in pickles, its key, its number of elements, and its elements."""

    __slots__ = ("kind", "key", "count", "array")

    def __init__(self, kind: str, key: str, count: int, array: Any) -> None:
        self.kind = kind
        self.key = key
        self.count = count
        self.array = array

    def elements(self) -> Any:
        """The elements in the form in which they are stored."""
        if self.kind == "BFloat16Storage" and self.array.dtype == np.float32:
            return (to_bfloat16(self.array).view(np.uint32) >> 16).astype(np.uint16)
        return self.array


class Place(NamedTuple):
    """The place of a tensor: a storage, offset and strides; both in elements."""

    storage: Stored
    offset: int
    strides: tuple[int, ...]


class StorageWriter:
    """Chooses the storage of each tensor. `known` are storages of the archive that a module is from; they keep their dtypes (bfloat16,
    too)."""

    def __init__(self, known: Iterable[Storage] = ()) -> None:
        self.stored: list[Stored] = []
        self._places: dict[tuple[int, int, str], Stored] = {}
        """By address, number of bytes and dtype."""
        self._known = sorted([each for each in known if each.array.nbytes], key=lambda each: address(each.array))
        self._starts = [address(each.array) for each in self._known]

    def place(self, array: Any, quantized: str | None) -> Place:
        """The place of a tensor. quantized: the dtype that its integers stand for. Raises UnsupportedError for a dtype that torch does
        not have."""
        array = on_host(array)
        dtype = quantized or array.dtype.name
        if quantized is None and dtype not in KINDS or array.dtype.name != QUANTIZED.get(dtype, dtype):
            raise UnsupportedError(f"save: a tensor of {dtype} cannot be saved", code="E0404")
        whole, declared = self._whole(array)
        offset, width = address(array) - address(whole), array.itemsize
        last = offset + sum([(n - 1) * each for n, each in zip(array.shape, array.strides, strict=True)])
        is_whole = all(each % width == 0 for each in (offset, whole.nbytes, *array.strides))
        if not (array.size and is_whole and array.dtype.isnative and whole.dtype.isnative and min(offset, *array.strides, 0) >= 0
                and last + width <= whole.nbytes):
            array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
            whole, offset = array.reshape(-1), 0
        if declared == "bfloat16" and dtype == "float32":
            dtype = declared
        key = address(whole), whole.nbytes, dtype
        stored = self._places.get(key) if array.size else None
        if stored is None:
            stored = self._places[key] = Stored(KINDS[dtype], str(len(self.stored)), whole.nbytes // width, whole.view(array.dtype))
            self.stored.append(stored)
        return Place(stored, offset // width, tuple([each // width for each in array.strides]))

    def _whole(self, array: Any) -> tuple[Any, str | None]:
        """The memory of which an array is a view, as a one-dimensional array; and its dtype, if the archive declares it."""
        index = bisect_right(self._starts, address(array)) - 1
        if index >= 0 and address(array) < self._starts[index] + self._known[index].array.nbytes:
            return self._known[index].array, self._known[index].dtype
        whole = memory_of(array)
        if not whole.flags.forc:
            return whole.reshape(-1)[:0], None
        return whole.reshape(-1, order="A"), None


def address(array: Any) -> int:
    """The address of the first element of an array."""
    return int(array.__array_interface__["data"][0])
