"""FILE arguments that are no IR text: TorchScript archives, `model.pt` or `model.pt:method`, recognised by their first bytes;
TorchScript source, `model.py` or `model.py:function`, recognised by its name."""
from __future__ import annotations

import os

from irtool.cli.exit_errors import UsageError
from irtool.ir.errors import Error
from irtool.ir.source import SourceFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.archives import ScriptModule
    from irtool.ir.module import Module

NO_TEXT = b"PK\x03\x04", b"PK\x05\x06", b"\x80\x02\x8a\x0a"
"""The first bytes of zips, and of files of torch.save before torch 1.6."""


class ArchiveSource(SourceFile):
    """A method of an archive in place of a text; `text` is the text of its graph."""

    __slots__ = ("archive", "method", "module")

    def __init__(self, path: str, method: str, archive: ScriptModule, module: Module) -> None:
        super().__init__(path, str(module))
        self.archive = archive
        self.method = method
        """The name; empty for `forward` with its hooks."""
        self.module = module


def is_archive_name(path: str) -> bool:
    """Has an output the extension of an archive?"""
    return path.endswith((".pt", ".ptl", ".jit"))


def is_archive(start: bytes) -> bool:
    """Is a file with this beginning an archive, not text?"""
    return start.startswith(NO_TEXT) or start[7:9] == b"\0{"


def archive_at(path: str) -> tuple[str, str] | None:
    """The archive and method that a FILE of the command line names; None if it names no archive.

    `FILE:METHOD` names a method, unless a file of that whole name exists.
    """
    if path == "-":
        return None
    file, method = path, ""
    if not os.path.isfile(path):        # bytes read from a pipe here would be lost
        file, colon, method = path.rpartition(":")
        if not colon or not os.path.isfile(file):
            return None
    try:
        with open(file, "rb") as stream:
            start = stream.read(9)
        if is_archive(start):
            return file, method
        if is_archive_name(file):       # other bytes may precede a zip
            from zipfile import is_zipfile

            return (file, method) if is_zipfile(file) else None
        return None
    except (OSError, ValueError):
        return None


def python_at(path: str) -> tuple[str, str | None] | None:
    """The file of Python source that a FILE of the command line names, and the function (None: all); None if it names no such file.

    `FILE.py:FUNCTION` names a function, unless a file of that whole name exists.
    """
    file, colon, function = path.rpartition(":")
    if colon and file.endswith(".py") and function.isidentifier() and not os.path.exists(path):
        return file, function
    return (path, None) if path.endswith(".py") else None


def read_archive(file: str, method: str, data: bytes | None = None) -> ArchiveSource:
    """A method of an archive; for "" `forward` with its hooks. data: the file, if it was read.

    Raises UsageError if the file cannot be read; Error."""
    return method_of(program_in(file, data), file, method)


def program_in(file: str, data: bytes | None = None) -> ScriptModule:
    """An archive with a program. Raises UsageError if the file cannot be read; Error, also for a file of weights alone."""
    from irtool.archives import ScriptModule, load

    try:
        archive = load(file if data is None else data)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}", code="E0707") from None
    if not isinstance(archive, ScriptModule):
        raise Error(f"{file}: arrays alone, {len(archive)} of them, which contain no program", code="E0711")
    return archive


def method_of(archive: ScriptModule, file: str, method: str) -> ArchiveSource:
    """The same for an archive that is open."""
    from irtool.archives.freezing import standalone
    from irtool.archives.module_call import CALL
    from irtool.ir.module import Module

    try:
        graph = standalone(archive, method or CALL)
    except Error as error:
        if not error.diagnostics and file not in error.message:
            error.message = f"{file}: {error.message}"
        raise
    return ArchiveSource(file, method, archive, Module([graph], file))
