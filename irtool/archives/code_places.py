"""The place of a node in an archive's code, and in the source from which torch made the code, which `.debug_pkl` records."""
from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from irtool.archives.pickles import unpickle
from irtool.ir.errors import Error
from irtool.ir.source import Diagnostic, SourceFile

if TYPE_CHECKING:
    from irtool.archives.archive import Archive
    from irtool.torchscript.library import Library

COMMENT = re.compile(r"(.*):code/([^:]*)\.py:(\d{1,9}):(\d{1,9})", re.DOTALL)
WITH_TABLE = "FORMAT_WITH_STRING_TABLE"


class Code(SourceFile):
    """The code of an archive; the comment of each node names a file and a line of it."""

    __slots__ = ("archive", "_rows")

    def __init__(self, archive: Archive) -> None:
        super().__init__(archive.container.name, "")
        self.archive = archive
        self._rows: dict[str, tuple[list[int], list[Any], Any]] = {}

    @property
    def library(self) -> Library:
        """The classes and functions of the code."""
        return self.archive.library

    def about(self, line: int, comment: str, message: str) -> Diagnostic | None:
        """An error at the place that a node's comment names, with a note about the original source."""
        match = COMMENT.fullmatch(comment)
        unit = self.archive.library.unit(match[2].replace("/", ".")) if match is not None else None
        if match is None or unit is None:
            return None
        number, column = int(match[3]), int(match[4])
        note = self.original(match[2], offset_of(unit.place, number, column))
        return Diagnostic("error", message, unit.place, number, column + 1, notes=[] if note is None else [note])

    def original(self, path: str, offset: int) -> Diagnostic | None:
        """A note about the original source of the byte `offset` of a file of code; None if the archive does not record it."""
        try:
            offsets, ranges, words = self.rows(path)
            (parts, file, first), start, end = ranges[bisect_right(offsets, offset) - 1]
            text = words(parts)
            if not text or not isinstance(file, int | str):
                return None
            before = text[:start]
            source = SourceFile(words(file) or "<trace>", text, max(first, 1))
            column = start - (before.rfind("\n") + 1) + 1
            return Diagnostic("note", "this is made from", source, source.first_line + before.count("\n"), column, column + end - start)
        except (Error, TypeError, ValueError, IndexError, AttributeError):        # the records are only a hint, and may be damaged
            return None

    def rows(self, path: str) -> tuple[list[int], list[Any], Any]:
        """Offsets in a file of code, the original source of each, and the table of strings. Raises Error."""
        if path not in self._rows:
            record = f"code/{path}.py.debug_pkl"
            content = unpickle(self.archive.container.read(record), record, self.archive)
            table: Any = None
            if content[0] == WITH_TABLE:
                table, content = content[1:]

            def words(numbers: Any) -> Any:
                return numbers if table is None else "".join([table[each] for each in numbers]) if isinstance(numbers, list) else \
                    table[numbers]
            self._rows[path] = [row[0] for row in content], [row[1] for row in content], words
        return self._rows[path]


def offset_of(place: SourceFile, number: int, column: int) -> int:
    """The byte offset of a line (from 1) and a column (from 0) of a file."""
    return sum([len(place.line(each).encode()) + 1 for each in range(1, number)]) + len(place.line(number)[:column].encode())
