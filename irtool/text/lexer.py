"""Finding the ends of names, types, attribute lists and operand lists in IR text. Positions are offsets into the whole text.

Everything here is linear and without recursion: nesting is counted, and more than `MAX_DEPTH` levels is a `Mistake`.
"""
from __future__ import annotations

import re
from collections.abc import Reversible

MAX_DEPTH = 200
"""The deepest nesting of brackets in a type or an attribute, and of blocks and subgraphs."""

FAR = 20_000
"""The number of characters over line ends that an unquoted string (2018) may extend."""

NAME = re.compile(r'%((?:[^\s,():=;%\[\]{}"#]|::)+)')
"""A value: `%` and everything up to a blank, a separator or a colon that is not doubled."""

BLANKS = re.compile(r"[ \t\r]*")
FILLER = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
"""Text between the members of a list: blanks, line ends, comments."""

WORD = re.compile(r"%?[\w:.]+")
BARE_RESULT = re.compile(r"([\w.]+)[ \t]*:[ \t]")
KIND = re.compile(r"[A-Za-z_]\w*(?:::?\w+)*(?:\.\w+)?[!?]*")
PYTHON_OP = re.compile(r"\^(?:<[^>\n]*>|[^\s\[(%]+)")
WORDS = re.compile(r"([^%\n]*?)\((?=%|\))")
"""Scalars of a Python operator of 2017, between its name and the operands: `Chunk 4 1(`."""

UNBALANCED = re.compile(r"\(dtype = \w+ , shape = \([^()\n]*\)")
"""A type of 2019 without its last parenthesis: `ProfiledTensor(dtype = Float , shape = (2, 3)`."""

NO_NAME = ",()=;[]{}\"# \t\r"
"""Characters that no name contains."""

HEADER = re.compile(r"^(?:(?:[^\n%#(]*: )?[ \t]*(?=graph[ \t]*\([ \t\r\n]*[%)#\-])|\ufeff?[ \t]*(?=graph[ \t]*\())"
                    r"(?P<graph>graph)[ \t]*\(", re.M)
GRAPH = re.compile(r"[ \t]*graph[ \t]*\(")
WITH = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*(?P<with>[ \t]*with[ \t]+)(?P<label>\S+)[ \t]*=(?P<graph>[ \t]*graph)[ \t]*\(")
SUBGRAPH_KIND = re.compile(r"(.+)_\d+\Z")
STATEMENT = re.compile(r"(?P<return>return)[ \t]*\(|(?P<block>block)(?P<number>\d+)[ \t]*\(|(?P<arrow>->)|(?P<close>\})|(?P<stage>----)"
                       r"|(?:with[ \t]+\S+[ \t]*=[ \t]*)?graph[ \t]*\(")
STAGE_MARK = re.compile(r"-{4,} stage (\d+) -{4,}")
USES = re.compile(r", uses = \[[^#;]*\](?=;|, scope: | #|$)")
OMITTED = re.compile(r"\bomitted\b")

DOTS = re.compile(r"\.\.\.[ \t\r]*(?:\n|\Z)")
"""The same, without `#`, in documentation."""

STRAY_RESULT = re.compile(r"^[ \t]*(return[ \t]*\([%)])", re.M)
FIRST_WORD = re.compile(r"^[ \t]*([^\s#(][^\s(]*)", re.M)
PYTHON = re.compile(r"def \w+\(|class \w+[:(]|import [\w.]+[ \t]*(?:$|[,;#]|as )|from [\w.]+ import |@\w|[rR]?\"{3}", re.M)
"""How a file of Python source begins, below its comments."""
VALUE = r"(?:[^\s\[\]\"]|\"[^\"\n]*\"|\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\])*"
NAME_LINE = re.compile(rf"# graph (?P<name>[\w.$-]+):?(?P<metadata>(?: [\w-]+={VALUE})*)\n\Z")
METADATA = re.compile(rf" ([\w-]+)=({VALUE})")

TYPE_MARK = re.compile(r"[()\[\]{}<>,=\n%#]")
SCALAR_MARK = re.compile(r"""[()\n]""")
LITERAL = re.compile(r"""-?(?:\d[\w.+-]*|inf|nan)|True|False|None|"(?:[^"\\\n]|\\.)*"|'[^']*'|\[[^\[\]%()\n]*\]|[A-Za-z_]\w*""")
"""A constant in an operand list (a branch of 2018)."""

BARE_STRING = re.compile(r"[^\s%(),\"'\[][^%(),]*")
"""A string in an operand list, printed without quotes and escapes, even of line ends."""


class Mistake(Exception):
    """A mistake in the text between two offsets. Becomes a diagnostic."""

    def __init__(self, message: str, start: int, end: int = 0, note: tuple[str, int, str] | None = None, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end or start + 1
        self.note = note
        """A message, its line, and the text of the line."""
        self.code = code


def blanks(text: str, pos: int) -> int:
    """The end of a run of blanks on a line."""
    return BLANKS.match(text, pos).end()  # type: ignore[union-attr]  # it matches the empty string


def filler(text: str, pos: int) -> int:
    """The end of a run of blanks, line ends and comments."""
    return FILLER.match(text, pos).end()  # type: ignore[union-attr]


def says_omission(text: str, start: int, end: int) -> bool:
    """Does a comment between two offsets say that lines were omitted: `# ...`, `# 12 lines omitted`?"""
    at = text.find("#", start, end)
    while at >= 0:
        stop = min(line_end(text, at), end)
        comment = text[at:stop].lstrip("# \t-")
        if comment.startswith(("...", "\u2026")) or OMITTED.search(comment):
            return True
        at = text.find("#", stop, end)
    return False


def line_end(text: str, pos: int) -> int:
    """The offset after the line's newline, or the end of the text."""
    return text.find("\n", pos) + 1 or len(text)


def shown(text: str, pos: int) -> str:
    """The text at `pos`, for "expected ..., found ..."."""
    if pos >= len(text):
        return "the end of the text"
    if text[pos] in "\r\n":
        return "the end of the line"
    if text[pos] == "\0":
        return "a NUL byte"
    match = NAME.match(text, pos) or WORD.match(text, pos)
    token = match.group() if match else text[pos]
    return f"'{token[:40]}'" if token.isprintable() else "an unprintable character"


def word_end(text: str, pos: int) -> int:
    """The end of the word at `pos`; at least one character on."""
    match = WORD.match(text, pos)
    return match.end() if match else pos + 1


def nearest(name: str, known: Reversible[str]) -> str:
    """The one of the (latest) known names that is nearest to this one; empty if none is near."""
    from itertools import islice

    from irtool.ir import errors

    return errors.nearest(name, islice(reversed(known), 2000)) or ""


def ref(name: str) -> str:
    """A value's name, for a message."""
    return f"%{name}" if len(name) <= 60 else f"%{name[:57]}..."


def expected(what: str, text: str, pos: int) -> Mistake:
    """The mistake `expected WHAT, found ...` at `pos`."""
    return Mistake(f"expected {what}, found {shown(text, pos)}", pos, word_end(text, pos))


def end_of_type(text: str, pos: int) -> int:
    """The end of the type that begins at `pos`: a separator outside brackets, or the end of the line."""
    depth = 0
    at = pos
    while True:
        match = TYPE_MARK.search(text, at)
        if match is None:
            return len(text)
        mark, at = match.group(), match.end()
        if mark in "([{<":
            if mark == "(" and (unbalanced := UNBALANCED.match(text, at - 1)):
                at = unbalanced.end()
                continue
            depth += 1
            if depth > MAX_DEPTH:
                raise Mistake(f"type nested more than {MAX_DEPTH} levels deep", at - 1, code="E0108")
        elif mark in ")]}>":
            if depth == 0:
                return at - 1
            depth -= 1
        elif depth == 0 or mark in "\n%#":
            return at - 1


def end_of_bracket(text: str, pos: int) -> int:
    """The offset after the `]` that closes the `[` at `pos`, on the same line and followed by the operands (`CppOp[...](`)."""
    end = text.find("](", pos, line_end(text, pos))
    if end < 0:
        raise Mistake("'[' without a matching ']('", pos)
    return end + 1


def end_of_scalars(text: str, pos: int) -> int:
    """The offset after the `)` of a Python operator's scalars, whose `(` is at `pos`; the operands follow."""
    depth = 0
    at = pos
    while True:
        match = SCALAR_MARK.search(text, at)
        if match is None or match.group() == "\n":
            break
        at = match.end()
        depth += 1 if match.group() == "(" else -1
        if depth == 0:
            if text.startswith("(", at):
                return at
            break
    close = text.find(")(", pos, line_end(text, pos))
    if close < 0:
        raise Mistake("a Python op needs two lists: ^Name(scalars)(operands)", pos)
    return close + 1
