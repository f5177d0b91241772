"""The line of a text that names the file with its constants: `# constants: NAME.npz sha256=HEX`, above the graph, in the same folder.

It may be a `.safetensors`, too.
"""
from __future__ import annotations

import hashlib
import re

from irtool.interop.array_files import decode
from irtool.interop.constant_archives import attach
from irtool.interop.npz import Archive
from irtool.ir.errors import Error
from irtool.ir.module import Module
from irtool.ir.source import Diagnostic, SourceFile

_LINE = re.compile(r"^[ \t]*# constants:[ \t]*(.*?)[ \t]*\n", re.MULTILINE)
_CONTENT = re.compile(r"([^/\\\0]{1,255}\.(?:npz|safetensors)) sha256=([0-9a-f]{64})")


class Beside:
    """The content of the line: the file's name, the checksum of its content, and the line's number."""

    def __init__(self, name: str, checksum: str, source: SourceFile, line: int) -> None:
        self.name = name
        self.checksum = checksum
        self.source = source
        self.line = line

    def problem(self, message: str, severity: str = "error") -> Diagnostic:
        """A diagnostic at the line."""
        return Diagnostic(severity, message, self.source, self.line, 1)


def named_in(module: Module, source: SourceFile) -> Beside | None:
    """The line of the module; None if there is none. Raises Error for two lines, and for one that cannot be read."""
    places: list[Beside] = []
    for item in module.items:
        text = item if isinstance(item, str) else ""
        for match in _LINE.finditer(text):
            number = line_of(source, match[0], [each.line for each in places])
            content = _CONTENT.fullmatch(match[1])
            place = Beside(content[1] if content else "", content[2] if content else "", source, number)
            if content is None or content[1].startswith("."):
                expected = "'# constants: NAME.npz sha256=' and 64 hexadecimal digits, NAME that of a file in this folder"
                raise Error(diagnostics=[place.problem(f"expected {expected}")], code="E0706")
            if places:
                raise Error(diagnostics=[place.problem("constants are named twice")], code="E0706")
            places.append(place)
    return places[0] if places else None


def line_of(source: SourceFile, text: str, taken: list[int]) -> int:
    """The number of the line with this text."""
    text = text.rstrip("\n")
    for number, line in enumerate(source.text.split("\n"), source.first_line):
        if line == text and number not in taken:
            return number
    return 0


def set_line(module: Module, name: str | None, data: bytes = b"") -> None:
    """Make the line name a file with this content, in place of the present line; None: remove the line."""
    for place, item in enumerate(module.items):
        if isinstance(item, str):
            module.items[place] = _LINE.sub("", item)
    if name is not None:
        module.items.insert(0, f"# constants: {name} sha256={checksum(data)}\n")


def checksum(data: bytes) -> str:
    """The checksum in the line for a file with this content."""
    return hashlib.sha256(data).hexdigest()


def attach_content(module: Module, beside: Beside, data: bytes, place: str) -> None:
    """Set the arrays of the constants from the content of the file at `place`. Raises Error if the content is another, or damaged."""
    if checksum(data) != beside.checksum:
        raise Error(diagnostics=[beside.problem(f"constants are in {place}, which is another file: its sha256 is {checksum(data)}")],
                    code="E0706")
    attach_all(module, decode(data, place), place)


def attach_all(module: Module, archive: Archive, path: str) -> None:
    """Set the arrays of the constants from a file. Raises Error for a key that is no constant."""
    unused = attach(module, archive)
    if unused:
        raise Error(f"{path}: no constant of {module.filename} is called '{unused[0]}'", code="E0705")
