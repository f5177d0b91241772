"""The zip of an archive: records by name, checked against the file before any is read.

Every record is in one root folder, that of the first entry; the names below it are keys, never paths. Sizes, offsets and checksums that a
record declares are compared with the file, since the file may come from anywhere.
"""
from __future__ import annotations

import io
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any, BinaryIO, cast

from irtool.interop.npy import DamagedError, first_line
from irtool.ir.errors import Error
from irtool.ir.source import quoted

INFLATED, INFLATION = 64 << 20, 100
"""All records together may inflate to this many bytes, plus this many for each byte of the file."""
MAX_TEXT = 1 << 28
"""The largest size of pickles and of code, in bytes."""
LOCAL = struct.Struct("<4sHHHHHIIIHH")
"""A local header: signature, versions, flags, method, time, date, checksum, two sizes, lengths of the name and of the extra field."""

MARKS = (
    (".data/extern_modules", "a package of torch.package: in torch, script the module and save that"),
    ("archive_format", "a program of torch.export: in torch, torch.jit.trace the module and save that"),
    ("serialized_exported_program.json", "a program of torch.export: in torch, torch.jit.trace the module and save that"),
    ("MAR-INF/MANIFEST.json", "a model archive of TorchServe, which holds the archive: unpack it"),
    ("model.weights.h5", "a model of Keras"), ("AndroidManifest.xml", "an Android application"), ("META-INF/MANIFEST.MF", "a Java archive"),
    ("[Content_Types].xml", "an Office document"), ("WHEEL", "a Python package"), ("mimetype", "a document"),
)
"""A record, in any folder -> a description of zips that have it."""


def in_memory(source: str | os.PathLike[str] | bytes | BinaryIO) -> tuple[Any, str]:
    """The memory of a file, mapped copy-on-write, or a copy of bytes or of a binary file object's content; and a name.

    Raises Error; OSError if a file cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        with open(name, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise DamagedError(f"{name}: an empty file, expected a TorchScript archive", code="E0711")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), name
    if isinstance(source, bytes | bytearray | memoryview):
        return bytearray(source), "<bytes>"
    if hasattr(source, "read"):
        return bytearray(source.read()), "<bytes>"
    raise Error(f"load: expected a path, bytes or a binary file object, got {type(source).__name__}")


class Container:
    """The records of one archive.

    `memory` is the whole file: mapped copy-on-write if the source is a path, so that writes never reach the file.
    """

    def __init__(self, memory: Any, name: str) -> None:
        self.memory = memory
        self.name = name
        self.byte_count = len(memory)
        self.records: dict[str, zipfile.ZipInfo] = {}
        self.root = ""
        self._file = self._open()
        self._check()

    @classmethod
    def of(cls, source: str | os.PathLike[str] | bytes | BinaryIO) -> Container:
        """The container of a file, of bytes, or of a binary file object. Raises Error; OSError if a file cannot be read."""
        return cls(*in_memory(source))

    def _open(self) -> zipfile.ZipFile:
        try:
            file = zipfile.ZipFile(cast("BinaryIO", _Window(self.memory, self.byte_count)))
        except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError,
                OverflowError, IndexError) as error:
            raise DamagedError(f"{self.name}: no TorchScript archive, or a damaged one: {first_line(error)}", code="E0711") from None
        if not file.infolist():
            raise DamagedError(f"{self.name}: a zip without entries, expected a TorchScript archive", code="E0711")
        return file

    def _check(self) -> None:
        """Collect the records under the root. Raises Error for impossible names, sizes or offsets."""
        entries = self._file.infolist()
        inside = sum([info.file_size for info in entries])
        if inside > INFLATED + INFLATION * self.byte_count:
            raise DamagedError(f"{self.name}: {self.byte_count} bytes that would inflate to {inside} are refused", code="E0703")
        self.root = entries[0].filename.partition("/")[0] if "/" in entries[0].filename else ""
        if not self.root and all(info.filename.endswith(".npy") for info in entries):
            raise Error(f"{self.name}: arrays of an npz, which contain no program; expected a TorchScript archive", code="E0711")
        if not self.root:
            raise Error(f"{self.name}: {described([info.filename for info in entries])}; expected a TorchScript archive, whose records are "
                        "in one folder, or weights", code="E0711")
        for info in entries:
            self._enter(info)
        spans = sorted([(info.header_offset, info.header_offset + 30 + info.compress_size, info.filename) for info in entries])
        for (_, end, name), (start, _, other) in zip(spans, spans[1:], strict=False):
            if start < end:
                self.fail(other, f"shares bytes with the record '{quoted(name)}'")
        if spans[-1][1] > self.byte_count:
            self.fail(spans[-1][2], "is longer than the file")

    def _enter(self, info: zipfile.ZipInfo) -> None:
        name = info.filename
        parts = name.removesuffix("/").split("/")
        if name.startswith("/") or "\\" in name or "\0" in name or any(part in ("", ".", "..") for part in parts) or ":" in parts[0]:
            self.fail(name, "is no name of a record")
        if parts[0] != self.root or name.endswith("/"):
            return      # torch does not see these records
        key = "/".join(parts[1:])
        if key in self.records:
            self.fail(name, "occurs in the file twice")
        if info.flag_bits & 1:
            self.fail(name, "is encrypted", "E0710")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            self.fail(name, f"is neither stored nor deflated (method {info.compress_type})", "E0710")
        if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
            self.fail(name, "is stored, but has two sizes")
        self.records[key] = info

    def fail(self, record: str, message: str, code: str = "E0711") -> Any:
        """Raise an Error about a record."""
        raise DamagedError(f"{self.name}: record '{quoted(record)}': {message}", code=code)

    def __contains__(self, record: str) -> bool:
        return record in self.records

    def names(self, prefix: str = "") -> list[str]:
        """The names of the records, below the root."""
        return [name for name in self.records if name.startswith(prefix)]

    def size(self, record: str) -> int:
        """The size of a record in bytes, after decompression."""
        return self.records[record].file_size

    def start(self, record: str) -> int | None:
        """The offset of a stored record in `memory`; None for a compressed one. Raises Error."""
        info = self.records[record]
        if info.compress_type != zipfile.ZIP_STORED:
            return None
        header = bytes(self.memory[info.header_offset:info.header_offset + LOCAL.size])
        if len(header) < LOCAL.size:
            self.fail(record, "is longer than the file")
        signature, *_, name_length, extra_length = LOCAL.unpack(header)
        start = int(info.header_offset + LOCAL.size + name_length + extra_length)
        if signature != b"PK\x03\x04" or start + info.file_size > self.byte_count:
            self.fail(record, "is longer than the file, or does not start where the directory says")
        return start

    def read(self, record: str) -> bytes:
        """The bytes of a record. Raises Error for a missing or damaged one (its checksum is compared)."""
        info = self.records.get(record)
        if info is None:
            raise DamagedError(f"{self.name}: the record '{quoted(record)}' is missing", code="E0711")
        try:
            with self._file.open(info) as stream:
                data = stream.read(info.file_size + 1)
        except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError,
                OverflowError, IndexError) as error:
            self.fail(record, f"damaged: {first_line(error)}")
        except MemoryError:
            self.fail(record, "not enough memory for it", "E0406")
        if len(data) != info.file_size:
            self.fail(record, "has another size than the directory says")
        return data

    def text(self, record: str, limit: int = MAX_TEXT) -> str:
        """A record that is text. Raises Error if it is longer than `limit` bytes, or no UTF-8."""
        if record in self.records and self.size(record) > limit:
            self.fail(record, f"is longer than {limit} bytes")
        try:
            return self.read(record).decode("utf-8")
        except UnicodeDecodeError as error:
            self.fail(record, f"no UTF-8 text: byte {error.start}")
            raise


class _Window(io.RawIOBase):
    """Memory as a file object, for zipfile."""

    def __init__(self, memory: Any, size: int) -> None:
        self.memory = memory
        self.size = size
        self.place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.place

    def seek(self, offset: int, whence: int = 0) -> int:
        place = offset + (0, self.place, self.size)[whence]
        if place < 0:
            raise ValueError("a place before the start of the file")
        self.place = place
        return place

    def read(self, count: int | None = -1) -> bytes:
        end = self.size if count is None or count < 0 else min(self.place + count, self.size)
        data = bytes(self.memory[self.place:end])
        self.place = max(end, self.place)
        return data


def described(names: Sequence[str]) -> str:
    """A description of a zip with these records, if it is of a well-known kind."""
    known = {part for each in names for part in (each, each.partition("/")[2], each.rpartition("/")[2])}
    what = next((what for mark, what in MARKS if mark in known), "")
    if not names:
        return "a zip without records in its folder"
    return what or f"a zip of {len(names)} files, '{quoted(names[0][:80])}' first"
