"""The zip of an archive, as torch writes it: tensors are stored uncompressed at multiples of 64 bytes, so that readers can map them.

The same records are written as the same bytes: without date and name of the machine.
"""
from __future__ import annotations

import struct
import zipfile
from typing import Any, BinaryIO

ROOT = "archive"
ALIGNMENT = 64
LOCAL_HEADER = 30
"""The size of a local header without name and extra field, in bytes."""
ZIP64 = 20
"""The bytes that the sizes of a large record add to its header."""
CHUNK = 1 << 24


class ZipWriter:
    """Writes records, all in one folder, into a seekable file."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)

    def write(self, record: str, data: Any, is_code: bool = False) -> None:
        """Write a record of bytes, or of an array's elements; code is compressed."""
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        info = zipfile.ZipInfo(f"{ROOT}/{record}")
        info.create_system = 0
        info.compress_type = zipfile.ZIP_DEFLATED if is_code else zipfile.ZIP_STORED
        info.file_size = view.nbytes
        is_large = view.nbytes * 1.05 > zipfile.ZIP64_LIMIT
        if not is_code:
            header = self.file.tell() + LOCAL_HEADER + len(info.filename.encode()) + ZIP64 * is_large + 4
            padding = -header % ALIGNMENT
            info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
        with self.zip.open(info, "w", force_zip64=is_large) as stream:
            for start in range(0, view.nbytes, CHUNK):
                stream.write(view[start:start + CHUNK])

    def close(self) -> None:
        """Write the directory."""
        self.zip.close()
