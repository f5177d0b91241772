"""FILE may be a TorchScript archive wherever it may be IR text: `model.pt`, or `model.pt:method`; what it is, its first bytes tell."""
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
"""How zips begin, and files of torch.save from before 1.6."""


class ArchiveSource(SourceFile):
    """A method of an archive, in the place of a text: `text` is what its graph prints as."""

    __slots__ = ("archive", "method", "module")

    def __init__(self, path: str, method: str, archive: ScriptModule, module: Module) -> None:
        super().__init__(path, str(module))
        self.archive = archive
        self.method = method
        """Empty for `forward` with its hooks."""
        self.module = module


def is_archive_name(path: str) -> bool:
    """Does the name of an output ask for an archive?"""
    return path.endswith((".pt", ".ptl", ".jit"))


def archive_at(path: str) -> tuple[str, str] | None:
    """The archive that a FILE of the command line names, and the method of it; None where it names none.

    `FILE:METHOD` names a method, unless a file of that very name is there.
    """
    if path == "-":
        return None
    file, method = path, ""
    if not os.path.isfile(path):        # a pipe would lose what is read of it here
        file, colon, method = path.rpartition(":")
        if not colon or not os.path.isfile(file):
            return None
    try:
        with open(file, "rb") as stream:
            start = stream.read(9)
        if start[:4] in NO_TEXT or start[7:] == b"\0{":
            return file, method
        if is_archive_name(file):       # bytes may stand in front of a zip
            from zipfile import is_zipfile

            return (file, method) if is_zipfile(file) else None
        return None
    except (OSError, ValueError):
        return None


def read_archive(file: str, method: str) -> ArchiveSource:
    """A method of an archive; if none is named, `forward` with its hooks. Raises UsageError where the file cannot be read; Error."""
    from irtool.archives import ScriptModule, load

    try:
        archive = load(file)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}", code="E0707") from None
    if not isinstance(archive, ScriptModule):
        raise Error(f"{file}: arrays alone, {len(archive)} of them, which hold no program", code="E0711")
    return method_of(archive, file, method)


def method_of(archive: ScriptModule, file: str, method: str) -> ArchiveSource:
    """The same of an archive that was read."""
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
