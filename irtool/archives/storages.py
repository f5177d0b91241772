"""Tensors in the memory of an archive: storages by record and dtype, and views of them with torch's offsets and strides."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from irtool.archives.container import Container
from irtool.interop.safetensors import eight_bits
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.source import quoted
from irtool.ops.array_library import np

Array = np.ndarray[Any, np.dtype[Any]]
MAX_RANK = 64
QUANTIZED = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}
"""Dtypes of quantized tensors -> the dtypes of their integers."""

EIGHT_BITS = {"float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}


class Storage:
    """Elements of one dtype. `array` is one-dimensional and writable; all tensors of the storage share it."""

    __slots__ = ("dtype", "count", "array", "where")

    def __init__(self, dtype: str, count: int, array: Array, where: str) -> None:
        self.dtype = dtype
        self.count = count
        self.array = array
        self.where = where


def read_storage(container: Container, record: str, dtype: str, count: int, is_big: bool) -> Storage:
    """The storage in a record: mapped if it is stored uncompressed and aligned for its dtype, else copied. Raises Error."""
    if record not in container:
        raise Error(f"{container.name}: the record '{record}' of a tensor is missing", code="E0711")
    stored = np.dtype("uint16" if dtype == "bfloat16" else QUANTIZED.get(dtype, dtype))
    if count < 0 or count * stored.itemsize > container.size(record):
        container.fail(record, f"{container.size(record)} bytes, expected {count} elements of {dtype}")
    start = container.start(record)
    if start is not None and start % stored.itemsize == 0:
        array = np.frombuffer(container.memory, stored, count, start) if count else np.empty(0, stored)
    else:
        array = np.frombuffer(bytearray(container.read(record)), stored, count)
    return storage_of(array.byteswap() if is_big else array, dtype, f"{container.name}: record '{record}'")


def storage_of(array: Array, dtype: str, where: str) -> Storage:
    """The storage of a dtype for integers, or bytes. bfloat16 and 8-bit floating-point numbers become float32, as everywhere in irtool."""
    if dtype == "bfloat16":
        array = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    elif dtype in EIGHT_BITS:
        array = eight_bits(EIGHT_BITS[dtype])[array]
    else:
        array = array.view(QUANTIZED.get(dtype, dtype))
    return Storage(dtype, array.size, array, where)


def is_big_endian(container: Container) -> bool:
    """Are the numbers in the storages big-endian? Raises Error."""
    if "byteorder" not in container:
        return False
    order = container.text("byteorder", 20)
    if order not in ("little", "big"):
        container.fail("byteorder", f"'{quoted(order)}', expected little or big")
    return order == "big"


def strided(storage: Any, offset: Any, size: Any, stride: Any) -> Array:
    """The tensor at `offset` of a storage; offset and strides are in elements. Raises Error if it would exceed the storage."""
    if not isinstance(storage, Storage):
        raise Error("a tensor without a storage", code="E0712")
    size, stride = _ints(size, storage), _ints(stride, storage)
    (offset,) = _ints((offset,), storage)
    if len(size) != len(stride) or len(size) > MAX_RANK or min((0, offset, *size, *stride)) < 0:
        raise Error(f"{storage.where}: a tensor of sizes {size} with strides {stride} at {offset}", code="E0712")
    last = offset + sum([(n - 1) * s for n, s in zip(size, stride, strict=True)])
    if 0 not in size and last >= storage.count:
        raise Error(f"{storage.where}: a tensor of sizes {size} with strides {stride} at {offset}, but {storage.count} elements",
                    code="E0712")
    width = storage.array.itemsize
    if math.prod([max(n, 1) for n in size]) * width >= 2**63:
        raise UnsupportedError(f"{storage.where}: a tensor of sizes {size}, which NumPy cannot count", code="E0406")
    if 0 in size:
        return np.empty(size, storage.array.dtype)
    return np.ndarray(size, storage.array.dtype, storage.array, offset * width, [s * width for s in stride])


def _ints(values: Any, storage: Storage) -> Sequence[int]:
    if not isinstance(values, tuple | list) or not all([isinstance(each, int) and abs(each) < 2**63 for each in values]):
        raise Error(f"{storage.where}: sizes, strides or an offset that are no integers", code="E0712")
    return tuple(values)
