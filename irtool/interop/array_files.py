"""Files of arrays by name, in two formats: recognised by their bytes when read, by the name of the file when written."""
from __future__ import annotations

from irtool.interop import npz, safetensors
from irtool.interop.npz import Archive
from irtool.ir.errors import Error
from irtool.ir.source import quoted
from irtool.ops.array_library import np

SAFETENSORS = ".safetensors"


def decode(data: bytes, filename: str) -> Archive:
    """The content of a `.safetensors` or an `.npz`. Raises DamagedError."""
    is_other = data[:2] != b"PK" and safetensors.is_safetensors(data[:9], len(data))
    return safetensors.decode(bytearray(data), filename) if is_other else npz.decode(data, filename)


def encode(archive: Archive, path: str) -> bytes:
    """The archive as a `.safetensors` if the path says so, else as an `.npz`. Raises Error for values that the format cannot contain."""
    for name, array in archive.arrays.items():
        if not isinstance(array, np.ndarray):
            raise Error(f"'{quoted(name)}': a {type(array).__name__} has no form in a file of arrays", code="E0704")
    return safetensors.encode(archive) if path.endswith(SAFETENSORS) else npz.encode(archive)
