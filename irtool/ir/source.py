"""Places in texts: files, positions, diagnostics with a caret."""
from __future__ import annotations

import re


class SourceFile:
    """A text with a name, and access to its lines. `first_line` is 1 unless the text is a part of a larger file."""

    __slots__ = ("name", "text", "first_line", "_lines")

    def __init__(self, name: str, text: str, first_line: int = 1) -> None:
        self.name = name
        self.text = text
        self.first_line = first_line
        self._lines: list[str] | None = None

    def line(self, number: int) -> str:
        """The text of a line (from 1) without its newline; empty if there is no such line."""
        if self._lines is None:
            self._lines = self.text.split("\n")
        index = number - self.first_line
        return self._lines[index] if 0 <= index < len(self._lines) else ""

    def about(self, line: int, comment: str, message: str) -> Diagnostic | None:
        """A diagnostic about a node with this line and source comment; None if neither says where the node is."""
        return self.marked(line, message) if line else None

    def marked(self, number: int, message: str, severity: str = "error") -> Diagnostic:
        """A diagnostic about a whole line, without the spaces around its text."""
        line = self.line(number)
        return Diagnostic(severity, message, self, number, len(line) - len(line.lstrip()) + 1, len(line.rstrip()) + 1)


class Diagnostic:
    """`file:line:col: severity: message [code]`, the line, a caret under `col` to `end_col` (1-based, code points, end exclusive)."""

    __slots__ = ("severity", "message", "source", "line", "col", "end_col", "notes", "code")

    def __init__(self, severity: str, message: str, source: SourceFile | None = None, line: int = 0, col: int = 0,
                 end_col: int = 0, notes: list[Diagnostic] | None = None, code: str = "") -> None:
        self.severity = severity
        self.message = message
        self.source = source
        self.line = line
        self.col = col
        self.end_col = end_col
        self.notes = notes or []
        self.code = code

    def where(self) -> str:
        """`file:line:col: `, or the known part of it."""
        name = self.source.name if self.source is not None else ""
        parts = [name] if name else []
        if self.line:
            parts.append(str(self.line))
            if self.col:
                parts.append(str(self.col))
        return ":".join(parts) + ": " if parts else ""

    def coded(self) -> str:
        """The message, followed by the code."""
        return f"{self.message} [{self.code}]" if self.code else self.message

    def render(self) -> str:
        """The whole paragraph: message, source line, caret, notes."""
        out = [f"{self.where()}{self.severity}: {self.coded()}"]
        if self.source is not None and self.line and self.col:
            text = shown(self.source.line(self.line))
            if len(text) <= MAX_SHOWN:
                lead = "".join("\t" if c == "\t" else " " for c in text[: self.col - 1])
                width = max(1, min(self.end_col, len(text) + 1) - self.col) if self.end_col else 1
                out += [text, lead + "^" + "~" * (width - 1)]
        out += [note.render() for note in self.notes]
        return "\n".join(out)

    def as_dict(self) -> dict[str, object]:
        """The JSON form (`--diagnostics-format=json`)."""
        return {"file": self.source.name if self.source else None, "line": self.line or None, "col": self.col or None,
                "end_col": self.end_col or None, "severity": self.severity, "code": self.code or None,
                "message": self.message, "notes": [note.as_dict() for note in self.notes]}


MAX_SHOWN = 400
"""Longer source lines are not shown, since the caret would be out of sight."""


def shown(line: str) -> str:
    """A source line that is safe to print: control characters other than tabs become U+FFFD, one column each."""
    return "".join(c if c == "\t" or c.isprintable() else "�" for c in line)


_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that control a terminal or change the direction of text, and lone surrogates; not tab and newline."""


def clean(text: str, form: str = "") -> str:
    """Text that is safe to print: each control character is written out, as `\\x1b` or in this form (`#{:x}`)."""
    return _UNSEEN.sub(lambda match: form.format(ord(match[0])) if form else ascii(match[0])[1:-1], text)


def quoted(name: str) -> str:
    """A name from a file for a message: in one line, and safe to print."""
    return clean(name).replace("\n", "\\n").replace("\t", "\\t")
