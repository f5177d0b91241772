"""One NumPy array from the bytes of an `.npy` from anywhere: no header makes irtool evaluate, unpickle or allocate anything.

    header := magic version length text      text := {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
"""
from __future__ import annotations

import ast
import math
import re
import warnings
from typing import Any, BinaryIO

from irtool.ir.errors import Error
from irtool.ir.source import clean
from irtool.ops.array_library import np

Array = np.ndarray[Any, np.dtype[Any]]

MAGIC = b"\x93NUMPY"
MAX_HEADER = 10_000
"""In bytes; the header of an array of 64 dimensions has less than two thousand."""
MAX_SIZE, MAX_RANK = 2**63, 64
CHUNK = 1 << 20

_LENGTHS = {(1, 0): 2, (2, 0): 4, (3, 0): 4}
"""The size of the header's length in bytes, by version."""
_LONG = re.compile(r"(?<=\d)L(?=\s*[,)])")
"""Python 2 wrote the sizes of some arrays as `(2L,)`."""
_DTYPE = re.compile(r"[<>|=]?(?:[biufcU]\d{1,9}|V2)")
_SURROGATES = 0xD800, 0xDFFF
_BYTES = 0xDC80, 0xDCFF
"""The surrogates that stand for bytes of text that is not UTF-8."""


class DamagedError(Error):
    """A file without arrays, or with arrays that irtool does not read."""

    code = "E0701"


def read_array(stream: BinaryIO, size: int, where: str) -> Array:
    """The array in a stream of `size` bytes, in the machine's byte order. `where` names it in messages.

    Raises DamagedError for object arrays, records, damaged or truncated content, and an array that is larger than memory.
    """
    try:
        dtype, is_fortran, shape, header = read_header(stream)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise DamagedError(f"{where}: damaged, or not an .npy array: {first_line(error)}") from None
    check_dtype(dtype, where)
    order = np.dtype(dtype)
    count = math.prod(shape)
    if count * order.itemsize != size - header:
        raise DamagedError(f"{where}: damaged: {size - header} bytes where an array of shape {shape} has {count * order.itemsize}")
    try:
        array = np.empty(count, order)
        fill(array, stream, where)
        check_text(array, where)
        return array.reshape(shape, order="F" if is_fortran else "C").astype(order.newbyteorder("="), copy=False)
    except ValueError as error:         # more dimensions than NumPy has
        raise DamagedError(f"{where}: damaged: {first_line(error)}") from None
    except MemoryError:
        raise DamagedError(f"{where}: not enough memory for {order} {shape}, {size - header} bytes", code="E0406") from None


def read_header(stream: BinaryIO) -> tuple[str, bool, tuple[int, ...], int]:
    """The dtype, whether the order is Fortran's, the shape, and the size of the header in bytes. Raises ValueError, and the errors of a
    wrong literal."""
    lead = stream.read(8)
    if lead[:6] != MAGIC:
        raise ValueError(f"it begins with {lead[:6]!r}, not with {MAGIC!r}")
    width = _LENGTHS.get((lead[6], lead[7])) if len(lead) == 8 else None
    if width is None:
        raise ValueError(f"version {'.'.join(map(str, lead[6:]))} of the .npy format is not known")
    length = int.from_bytes(stream.read(width), "little")
    if length > MAX_HEADER:
        raise ValueError(f"its header is said to have {length} bytes")
    data = stream.read(length)
    if len(data) < length:
        raise ValueError("its header does not end")
    text = data.decode("utf-8" if lead[6] == 3 else "latin1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")         # Python warns of odd literals
        header = ast.literal_eval((text if lead[6] == 3 else _LONG.sub("", text)).strip())       # Python 2 wrote versions 1 and 2
    if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
        raise ValueError("its header has not the keys descr, fortran_order and shape")
    descr, is_fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    if not isinstance(shape, tuple) or not all(type(each) is int and 0 <= each < MAX_SIZE for each in shape):
        raise ValueError(f"its shape is {str(shape)[:80]}, no tuple of sizes")
    if len(shape) > MAX_RANK:
        raise ValueError(f"it has {len(shape)} dimensions, NumPy {MAX_RANK} at most")
    if type(is_fortran) is not bool:
        raise ValueError(f"fortran_order is {str(is_fortran)[:80]}, neither True nor False")
    return descr if isinstance(descr, str) else str(descr), is_fortran, shape, 8 + width + length


def check_dtype(descr: str, where: str) -> None:
    """Raises DamagedError for a dtype whose arrays are neither tensors nor strings."""
    if "O" in descr:
        raise DamagedError(f"{where}: an array of Python objects is refused (it would run code); save numbers or strings", code="E0702")
    try:
        is_known = bool(_DTYPE.fullmatch(descr)) and np.dtype(descr).itemsize > 0
    except (TypeError, ValueError):
        is_known = False
    if not is_known:
        raise DamagedError(f"{where}: dtype {descr[:80]} is not supported", code="E0710")


def fill(array: Array, stream: BinaryIO, where: str) -> None:
    """Read the elements, a part at a time. Raises DamagedError if the stream has fewer bytes than the header says, or more."""
    into = array.view(np.uint8)
    at = 0
    while piece := stream.read(min(CHUNK, into.size - at)):
        into[at:at + len(piece)] = np.frombuffer(piece, np.uint8)
        at += len(piece)
    if at < into.size:
        raise DamagedError(f"{where}: damaged: it ends after {at} bytes of {into.size}")
    if stream.read(1):
        raise DamagedError(f"{where}: damaged: it continues after its {into.size} bytes")


def check_text(array: Array, where: str) -> None:
    """Raises DamagedError if a string contains an invalid character."""
    if array.dtype.kind != "U" or not array.size:
        return
    codes = array.view(array.dtype.byteorder.replace("|", "=") + "u4")
    wrong = (codes > 0x10FFFF) | (codes >= _SURROGATES[0]) & (codes <= _SURROGATES[1]) & ~((codes >= _BYTES[0]) & (codes <= _BYTES[1]))
    if wrong.any():
        raise DamagedError(f"{where}: damaged: 0x{int(codes[wrong][0]):x} is no character")


def first_line(error: BaseException) -> str:
    """The first line of an exception's text, or its name."""
    return clean(str(error).strip().partition("\n")[0]) or type(error).__name__
