"""NumPy archives of values: inputs and outputs of a graph as members of an `.npz`.

A tensor is an array; a number, bool or string a 0-d array; elements of a list or tuple at K are `K.0, K.1` (a list of numbers may be
one 1-d array), of a dict `K.k0, K.v0, K.k1, ...`; an empty container is an empty 1-d array at K. The 1-d string arrays `none` and
`bfloat16` list the keys of arrays that stand for None, or were bfloat16 and are stored as float32.

Nothing is unpickled. Members are written with zipfile, not `np.savez(**members)`, which cannot take a value called `file`.
"""
from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, cast

from irtool.interop.npy import MAGIC, DamagedError, first_line, read_array
from irtool.ir.errors import Error
from irtool.ir.source import quoted
from irtool.ops.array_library import NeedsNumpy, np

Array = np.ndarray[Any, np.dtype[Any]]

NONE = "none"
BFLOAT16 = "bfloat16"


INFLATED, INFLATION = 256 << 20, 200
"""The members of a file together may inflate to this many bytes, plus this many for each byte of the file: text and masks compress that
well."""


class Archive:
    """Arrays by key, in the order of the file; `none` and `bfloat16` have the keys of arrays that stand for None, or were bfloat16."""

    def __init__(self, arrays: Mapping[str, Array] | None = None, none: Iterable[str] = (), bfloat16: Iterable[str] = ()) -> None:
        self.arrays: dict[str, Array] = dict(arrays or {})
        self.none = set(none)
        self.bfloat16 = set(bfloat16)

    def get(self, key: str) -> Array | None:
        """The array at `key`; None if it stands for None. Raises KeyError."""
        array = self.arrays[key]
        return None if key in self.none else array

    def put(self, key: str, value: Any, *, is_bfloat16: bool = False, shape: tuple[int, ...] = (), dtype: Any = np.float32) -> None:
        """Add a value at `key`, a container by its elements. None becomes zeros of `shape`. Raises Error for a value that has no form in
        a file."""
        for place, leaf in leaves(key, value):
            if leaf is None:
                self.none.add(place)
                self.arrays[place] = np.zeros(shape if place == key else (), dtype)
                continue
            array = as_member(leaf, place)
            if array.dtype.name == BFLOAT16 or is_bfloat16 and array.dtype == np.float32:
                self.bfloat16.add(place)
                array = array.astype(np.float32)
            self.arrays[place] = array

    def __len__(self) -> int:
        return len(self.arrays)


def leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The keys and values of the leaves of a value: itself, or the elements of a container."""
    if isinstance(value, list | tuple) and value:
        for i, element in enumerate(value):
            yield from leaves(f"{key}.{i}", element)
    elif isinstance(value, Mapping) and value:
        for i, (name, element) in enumerate(value.items()):
            yield from leaves(f"{key}.k{i}", name)
            yield from leaves(f"{key}.v{i}", element)
    elif isinstance(value, list | tuple | Mapping):
        yield key, np.empty(0, np.float32)
    else:
        yield key, value


def as_member(value: Any, key: str) -> Array:
    """The array that represents a tensor, number or string. Raises Error for anything else."""
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    if isinstance(value, int) and not isinstance(value, bool) and not -2**63 <= value < 2**64:
        raise Error(f"{key}: the integer {str(value)[:20]}... needs more than 64 bits, which an npz cannot contain", code="E0704")
    if isinstance(value, bool | int | float | complex | str):
        return np.array(value)
    raise Error(f"{key}: a value of type {type(value).__name__} has no form in an npz", code="E0704")


# -- reading
def decode(data: bytes, filename: str) -> Archive:
    """The content of an `.npz`. Raises DamagedError, with file and member, for anything damaged or pickled, and for other files."""
    return decode_stream(io.BytesIO(data), len(data), filename)


def decode_stream(stream: BinaryIO, size: int, filename: str) -> Archive:
    """As `decode`, for an open file of `size` bytes. Raises OSError, too, if the file cannot be read."""
    start = stream.read(6)
    if start[:4] not in (b"PK\x03\x04", b"PK\x05\x06") and start != MAGIC:
        raise DamagedError(f"{filename}: damaged, or not an .npz file: it does not begin as a zip")
    if start == MAGIC:
        raise DamagedError(f"{filename}: a single array (.npy), not an .npz: give it by name, --input NAME=@{filename}")
    archive = Archive()
    try:
        with zipfile.ZipFile(stream) as file:
            check_sizes(file, size, filename)
            for info in file.infolist():
                key = key_of(info, archive, filename)
                with file.open(info) as member:
                    archive.arrays[key] = read_array(cast("BinaryIO", member), info.file_size, f"{filename}: '{quoted(key)}'")
    except NeedsNumpy:
        raise
    except MemoryError:
        raise DamagedError(f"{filename}: not enough memory for its content", code="E0406") from None
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError, OverflowError,
            IndexError) as error:
        raise DamagedError(f"{filename}: damaged, or not an .npz file: {first_line(error)}") from None
    for key, array in archive.arrays.items():
        if array.dtype.str[1:] == "V2":     # the form of ml_dtypes's bfloat16 arrays in a file
            archive.arrays[key] = (array.view("<u2").astype(np.uint32) << 16).view(np.float32)
            archive.bfloat16.add(key)
    archive.none = take_list(archive, NONE, filename)
    archive.bfloat16 |= take_list(archive, BFLOAT16, filename)
    return archive


def decode_npy(data: bytes, filename: str) -> Array:
    """The array of an `.npy`. Raises DamagedError."""
    return read_array(io.BytesIO(data), len(data), filename)


def check_sizes(file: zipfile.ZipFile, size: int, filename: str) -> None:
    """Raises DamagedError if members share bytes, or claim to inflate to far more than the file has."""
    members = file.infolist()
    if sum(info.compress_size for info in members) > size:
        raise DamagedError(f"{filename}: damaged: its members are larger than the file")
    inside = sum(info.file_size for info in members)
    if inside > INFLATED + INFLATION * size:
        raise DamagedError(f"{filename}: {size} bytes that would inflate to {inside} are refused: if they are meant, save the arrays "
                           "uncompressed (np.savez)", code="E0703")


def key_of(info: zipfile.ZipInfo, archive: Archive, filename: str) -> str:
    """The key of the next member. Raises DamagedError if the member is no array, has the key of another, or cannot be read."""
    name = quoted(info.filename)
    if not info.filename.endswith(".npy"):
        raise DamagedError(f"{filename}: member '{name}' is no array (.npy)")
    if info.filename[:-4] in archive.arrays:
        raise DamagedError(f"{filename}: two members are called '{name[:-4]}'")
    if info.flag_bits & 1:
        raise DamagedError(f"{filename}: member '{name}' is encrypted", code="E0710")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DamagedError(f"{filename}: member '{name}' is neither stored nor deflated (method {info.compress_type})", code="E0710")
    return info.filename[:-4]


def take_list(archive: Archive, name: str, filename: str) -> set[str]:
    """Remove the member that lists keys, if it is such a list (a 1-d array of strings), and return its keys. Raises DamagedError."""
    array = archive.arrays.get(name)
    if array is None or array.dtype.kind != "U" or array.ndim != 1:
        return set()
    del archive.arrays[name]
    keys = {str(key) for key in array}
    unknown = sorted(keys - archive.arrays.keys())
    if unknown:
        raise DamagedError(f"{filename}: '{name}' lists '{quoted(unknown[0])}', which is no key of the file")
    return keys


# -- writing
def encode(archive: Archive) -> bytes:
    """The archive as an `.npz`; the same archive becomes the same bytes. Raises Error if a key cannot be the name of a member, or memory
    is exhausted."""
    members = dict(archive.arrays)
    for name, keys in ((BFLOAT16, archive.bfloat16), (NONE, archive.none)):     # `none` comes last
        if keys:
            if name in members:
                raise Error(f"a value called '{name}' cannot be stored beside the list of that name", code="E0704")
            members[name] = np.array([key for key in archive.arrays if key in keys])
    stream = io.BytesIO()
    key = ""
    try:
        with zipfile.ZipFile(stream, "w") as file:
            for key, array in members.items():
                with file.open(zipfile.ZipInfo(f"{key}.npy", (1980, 1, 1, 0, 0, 0)), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        return stream.getvalue()
    except (MemoryError, ValueError) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, MemoryError):     # zipfile raises another error while it handles the first
            cause = cause.__context__
        if cause is None:
            raise
        raise Error(f"'{quoted(key)}': not enough memory to store it", code="E0406") from None
