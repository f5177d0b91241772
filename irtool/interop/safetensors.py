"""Files of safetensors: arrays by name, mapped where the file is mapped. What a header says is compared with the file before it is used.

    file := length (8 bytes), header (JSON of so many bytes), data
    header := {"__metadata__": {WORD: WORD}, NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}

The arrays cover the data without gaps. bfloat16 and numbers of 8 bits become float32, as everywhere in irtool.
"""
from __future__ import annotations

import json
import math
from typing import Any

from irtool.interop.npy import MAX_RANK, MAX_SIZE, DamagedError, first_line
from irtool.interop.npz import Archive
from irtool.ir.errors import Error
from irtool.ir.source import quoted
from irtool.ops.array_library import np

Array = np.ndarray[Any, np.dtype[Any]]

MAX_HEADER = 16 << 20
"""In bytes; a hundred thousand tensors take less."""
METADATA = "__metadata__"
NONE = "irtool.none"
"""The word in the metadata for the list of keys whose arrays stand for None."""
DTYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "I16": "<i2", "U16": "<u2", "F16": "<f2", "BF16": "<u2", "I32": "<i4", "U32": "<u4",
    "F32": "<f4", "C64": "<c8", "F64": "<f8", "I64": "<i8", "U64": "<u8", "F8_E4M3": "|u1", "F8_E5M2": "|u1",
}
"""dtype in the header -> NumPy's dtype of the bytes."""
NAMES = {np.dtype(form): name for name, form in DTYPES.items() if name[:2] not in ("BF", "F8")}


def is_safetensors(start: bytes, size: int) -> bool:
    """May a file of `size` bytes with this beginning be a safetensors file? The first 9 bytes decide."""
    return start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= size - 8


def decode(memory: Any, filename: str) -> Archive:
    """The arrays of a file in memory, bytes or a map. They share the memory, and are read-only if it is. Raises DamagedError."""
    size = len(memory)
    length = int.from_bytes(bytes(memory[:8]), "little")
    if size < 8 or length > size - 8 or length > MAX_HEADER:
        raise DamagedError(f"{filename}: damaged, or not a .safetensors file: {size} bytes, and a header of {length}")
    archive = Archive()
    spans: list[tuple[int, int, str]] = []
    for name, row in header_of(bytes(memory[8:8 + length]), filename).items():
        where = f"{filename}: '{quoted(name)}'"
        if name == METADATA:
            archive.none = none_keys(row, where)
            continue
        dtype, shape, begin, end = checked(row, where)
        spans.append((begin, end, where))
        if end > size - 8 - length:
            raise DamagedError(f"{where}: damaged: bytes {begin} to {end}, where the file has {size - 8 - length}")
        archive.arrays[name] = array_of(memory, 8 + length + begin, dtype, shape, where)
        if dtype == "BF16":
            archive.bfloat16.add(name)
    place = 0
    for begin, end, where in sorted(spans):
        if begin != place:
            raise DamagedError(f"{where}: damaged: it begins at byte {begin} of the data, where the array before it ends at {place}")
        place = end
    if place != size - 8 - length:
        raise DamagedError(f"{filename}: damaged: {size - 8 - length - place} bytes behind the last array")
    if not archive.none <= archive.arrays.keys():
        raise DamagedError(f"{filename}: damaged: '{NONE}' lists a word that is no key of the file")
    return archive


def header_of(data: bytes, filename: str) -> dict[str, Any]:
    """The header as a dict. Raises DamagedError if it is no JSON object, and for names that occur twice."""
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for name, value in pairs:
            if name in content:
                raise ValueError(f"'{quoted(name)[:80]}' occurs in it twice")
            content[name] = value
        return content
    try:
        header = json.loads(data, object_pairs_hook=once)
    except (ValueError, RecursionError, MemoryError) as error:
        raise DamagedError(f"{filename}: damaged, or not a .safetensors file: its header: {first_line(error)}") from None
    if not isinstance(header, dict):
        raise DamagedError(f"{filename}: damaged, or not a .safetensors file: its header is no JSON object")
    return header


def none_keys(row: Any, where: str) -> set[str]:
    """The keys that the metadata lists. Raises DamagedError for metadata that are not strings."""
    if not isinstance(row, dict) or not all(isinstance(each, str) for each in row.values()):
        raise DamagedError(f"{where}: damaged: expected words by words")
    try:
        keys = json.loads(row.get(NONE, "[]"))
        if isinstance(keys, list) and all(isinstance(each, str) for each in keys):
            return set(keys)
    except (ValueError, RecursionError):
        pass
    raise DamagedError(f"{where}: damaged: '{NONE}' is no list of keys")


def checked(row: Any, where: str) -> tuple[str, list[int], int, int]:
    """The dtype, shape, begin and end in a row of the header. Raises DamagedError."""
    if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"}:
        raise DamagedError(f"{where}: damaged: expected dtype, shape and data_offsets")
    dtype, shape, offsets = row["dtype"], row["shape"], row["data_offsets"]
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(type(each) is int and 0 <= each < MAX_SIZE for each in numbers):
            raise DamagedError(f"{where}: damaged: {str(numbers)[:80]}, which is no list of sizes")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise DamagedError(f"{where}: dtype {quoted(str(dtype)[:80])} is not supported", code="E0710")
    if len(shape) > MAX_RANK or len(offsets) != 2:
        raise DamagedError(f"{where}: damaged: {len(shape)} dimensions, {len(offsets)} offsets")
    count = math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize
    if count != offsets[1] - offsets[0]:
        raise DamagedError(f"{where}: damaged: bytes {offsets[0]} to {offsets[1]}, where {dtype} {tuple(shape)} has {count}")
    return dtype, shape, offsets[0], offsets[1]


def array_of(memory: Any, place: int, name: str, shape: list[int], where: str) -> Array:
    """The array at an offset in memory. Raises DamagedError for sizes that NumPy does not support."""
    dtype = np.dtype(DTYPES[name])
    try:
        count = math.prod(shape)
        array = np.frombuffer(memory, dtype, count, place) if count else np.empty(0, dtype)
        if name == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        elif name[:2] == "F8":
            array = eight_bits(name)[array]
        elif not array.flags.aligned:
            array = array.copy()
        return array.astype(array.dtype.newbyteorder("="), copy=False).reshape(shape)
    except ValueError as error:
        raise DamagedError(f"{where}: damaged: {first_line(error)}") from None
    except MemoryError:
        raise DamagedError(f"{where}: not enough memory for it", code="E0406") from None


def eight_bits(name: str) -> Array:
    """The float32 for each byte. E5M2 is the upper half of a float16; E4M3 has no infinity, and one NaN of each sign."""
    byte = np.arange(256, dtype=np.uint16)
    if name == "F8_E5M2":
        return (byte << 8).view(np.float16).astype(np.float32)
    sign, exponent, fraction = np.where(byte >> 7, -1.0, 1.0), (byte >> 3 & 15).astype(np.int32), byte & 7
    values = sign * np.where(exponent > 0, np.ldexp(1 + fraction / 8, exponent - 7), np.ldexp(fraction / 8, -6))
    return np.where((byte & 127) == 127, np.nan, values).astype(np.float32)


def encode(archive: Archive) -> bytes:
    """Arrays as a file; the same archive becomes the same bytes. Raises Error for arrays that a file cannot contain: strings,
    complex128."""
    rows: dict[str, Any] = {}
    if archive.none:
        rows[METADATA] = {NONE: json.dumps([key for key in archive.arrays if key in archive.none])}
    arrays = {}
    for name, array in archive.arrays.items():
        if name in archive.bfloat16:
            arrays[name] = "BF16", (np.ascontiguousarray(array, "<f4").view("<u4") >> 16).astype("<u2").reshape(array.shape)
        elif array.dtype.newbyteorder("<") in NAMES and name != METADATA:
            arrays[name] = NAMES[array.dtype.newbyteorder("<")], array.astype(array.dtype.newbyteorder("<"), copy=False)
        else:
            raise Error(f"'{quoted(name)}': {array.dtype} has no form in a .safetensors file; an .npz can contain it", code="E0704")
    places = {}
    place = 0
    # so that each begins at a multiple of its element's size
    for name in sorted(arrays, key=lambda name: -arrays[name][1].itemsize):
        places[name] = place, place + arrays[name][1].nbytes
        place += arrays[name][1].nbytes
    for name, (dtype, array) in arrays.items():
        rows[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": list(places[name])}
    header = json.dumps(rows, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    try:
        return b"".join([len(header).to_bytes(8, "little"), header, *[arrays[name][1].tobytes() for name in places]])
    except MemoryError:
        raise Error("not enough memory to store the arrays", code="E0406") from None
