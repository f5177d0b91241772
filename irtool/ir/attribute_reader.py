"""Attribute text -> names, value texts, Python values. Iterative or bounded in depth throughout."""
from __future__ import annotations

from irtool.ir.errors import Error
from irtool.ir.tensor_literal import NUMBER_CHARACTERS, TensorLiteral
from irtool.ir.type_model import ClassType, Type, TypeVar
from irtool.ir.type_parser import TypeSyntaxError, parse_type, read_type

MAX_DEPTH = 100
MAX_DIGITS = 4000
"""Longer numbers stay text: Python refuses to read more than 4300 digits."""
OPENING = "([{"
CLOSING = ")]}"
BLANKS = " \t\r\n"


class Opaque:
    """A value of which only the text is known: `<Graph>` without its graph, `object(0x7f..)`, an enumerator."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Opaque({self.text!r})"


class AttributeSyntaxError(Error):
    """Text that is no attribute list; `offset` is the position of the error in it."""

    code = "E0107"

    def __init__(self, message: str, offset: int, code: str = "") -> None:
        super().__init__(message, code=code)
        self.offset = offset


# -- an attribute list
def split_attributes(text: str) -> list[tuple[str, str]]:
    """The (name, value text) pairs of the text between `[` and `]`, in order. Raises AttributeSyntaxError."""
    return _AttributeList(text, 0, len(text), inner=True).read()[0]


def read_attributes(text: str, start: int, end: int | None = None) -> tuple[list[tuple[str, str]], int]:
    """The pairs of the attribute list whose first character (after `[`) is `text[start]`, and the place of its `]`.

    The list ends at a `]` that is followed by `(`. Looks no further than `end`. Raises AttributeSyntaxError (offset in `text`).
    """
    return _AttributeList(text, start, len(text) if end is None else end, inner=False).read()


class _AttributeList:
    __slots__ = ("text", "pos", "end", "inner")

    def __init__(self, text: str, pos: int, end: int, inner: bool) -> None:
        self.text = text
        self.pos = pos
        self.end = end
        self.inner = inner

    def read(self) -> tuple[list[tuple[str, str]], int]:
        pairs: list[tuple[str, str]] = []
        text = self.text
        first = self.skip(self.pos)
        if self.ends_list(first):
            return pairs, first
        while True:
            self.pos = self.skip(self.pos)
            equals = self.name_end(self.pos)
            if equals < 0:
                raise AttributeSyntaxError("expected 'name=' in attributes", self.pos)
            name = text[self.pos:equals]
            start = equals + 1
            stop = self.value_end(start)
            if stop < 0:
                raise AttributeSyntaxError(f"the value of attribute '{name}' does not end", start)
            if stop == start:
                raise AttributeSyntaxError(f"expected a value for attribute '{name}'", start)
            pairs.append((name, text[start:stop]))
            if self.ends_list(stop):
                return pairs, stop
            self.pos = stop + 1

    def skip(self, pos: int) -> int:
        while pos < self.end and self.text[pos] in BLANKS:
            pos += 1
        return pos

    def name_end(self, pos: int) -> int:
        """The position of `=`, if `name=` begins at `pos`; else -1."""
        text, start = self.text, pos
        while pos < self.end and (text[pos].isalnum() or text[pos] == "_"):
            pos += 1
        return pos if start < pos < self.end and text[pos] == "=" else -1

    def ends_list(self, pos: int) -> bool:
        if self.inner:
            return pos == self.end
        if pos >= self.end or self.text[pos] != "]":
            return False
        follows = pos + 1
        while follows < self.end and self.text[follows] in " \t":
            follows += 1
        return follows < self.end and self.text[follows] == "("

    def ends_value(self, pos: int) -> bool:
        """Does the list end at `pos`, or another `, name=` begin?"""
        if self.ends_list(pos):
            return True
        return pos < self.end and self.text[pos] == "," and self.name_end(self.skip(pos + 1)) >= 0

    def value_end(self, start: int) -> int:
        """The end of the value that begins at `start`; -1 if it has none."""
        if self.text.startswith('"', start):
            stop = self.string_end(start)
            if stop >= 0:
                return stop
        stop = self.balanced_end(start)
        if stop < 0:        # unbalanced types of 2019, bare strings of 2018
            stop = self.bare_end(start)
        return stop

    def string_end(self, start: int) -> int:
        """The position after the closing quote. Text of late 2018 does not escape inner quotes: there, a closing quote is followed by an
        end."""
        text = self.text
        for escapes in (True, False):
            pos = start + 1
            while pos < self.end:
                char = text[pos]
                if char == "\\" and escapes:
                    pos += 2
                    continue
                if char == '"' and self.ends_value(pos + 1):
                    return pos + 1
                pos += 1
        return -1

    def balanced_end(self, start: int) -> int:
        """The first end outside brackets and strings."""
        text, depth, pos = self.text, 0, start
        quotes = Quotes()
        while pos < self.end:
            char = text[pos]
            if depth == 0 and (char == "," or char == "]") and self.ends_value(pos):
                return pos
            if char in OPENING:
                depth += 1
                if depth > MAX_DEPTH:
                    raise AttributeSyntaxError(f"a value nested deeper than {MAX_DEPTH}", pos, "E0108")
            elif char in CLOSING:
                depth -= 1
                if depth < 0:
                    return -1
            elif char == '"' and depth > 0:
                pos = quotes.skip(text, pos, self.end)
                continue
            pos += 1
        return pos if self.inner and depth == 0 else -1

    def bare_end(self, start: int) -> int:
        """The first end, inside brackets or not."""
        pos = start
        while pos < self.end:
            if self.text[pos] in ",]" and self.ends_value(pos):
                return pos
            pos += 1
        return pos if self.inner else -1


def skip_string(text: str, pos: int, end: int) -> int:
    """The position after the string that begins with the quote at `pos`; `pos + 1` if the string does not end."""
    place = pos + 1
    while place < end:
        char = text[place]
        if char == "\\":
            place += 2
        elif char == '"':
            return place + 1
        else:
            place += 1
    return pos + 1


class Quotes:
    """Skips the strings of one text. After a quote that is never closed, no later quote is closed either, since both see the same
    escapes; remembering this keeps the search linear."""

    __slots__ = ("are_closed",)

    def __init__(self) -> None:
        self.are_closed = True

    def skip(self, text: str, pos: int, end: int) -> int:
        """As `skip_string`."""
        if not self.are_closed:
            return pos + 1
        after = skip_string(text, pos, end)
        self.are_closed = after > pos + 1
        return after


# -- values
def parse_value(text: str, depth: int = 0) -> object:
    """The Python value of an attribute's text; an Opaque if the text is no known value. Never raises."""
    if depth > MAX_DEPTH:
        return Opaque(text)
    stripped = text.strip(BLANKS)
    first = stripped[:1]
    if first == '"' and len(stripped) > 1 and stripped.endswith('"'):
        return decode_string(stripped[1:-1])
    if first == "'" and len(stripped) > 1 and stripped.endswith("'"):      # a branch of 2018-10
        return stripped[1:-1]
    if is_tensor(stripped):
        return TensorLiteral(text)
    if first == "<":
        return Opaque(text)
    if first == "[" and stripped.endswith("]"):
        return _parse_list(stripped, depth)
    if first == "(" and stripped.endswith(")"):
        return _parse_tuple(stripped, depth)
    if first == "{" and stripped.endswith("}"):
        return _parse_dict(stripped, depth)
    if stripped in _WORDS:
        return _WORDS[stripped]
    if stripped and all(c in _NUMERIC for c in stripped):
        if len(stripped) > MAX_DIGITS:
            return Opaque(text)
        number = parse_number(stripped)
        if number is not None:
            return number
    if stripped.startswith("annotate(") and stripped.endswith(")"):
        return _parse_annotated(stripped, depth)
    if stripped.startswith("object(0x"):
        return Opaque(text)
    return _parse_word(text, stripped)


_WORDS: dict[str, object] = {"None": None, "True": True, "False": False}
_NUMERIC = NUMBER_CHARACTERS | {"j"}


def parse_number(text: str) -> int | float | complex | None:
    """An int, float or complex number as torch prints it; None for other text. `-0` is a float, since no int is printed so."""
    if text == "-0":
        return -0.0
    for read in (int, float, complex):
        try:
            number: int | float | complex = read(text)
        except ValueError:
            continue
        return number
    return None


def is_tensor(text: str) -> bool:
    """Is this a tensor: `{1}`, numbers followed by `[ Type{dims} ]`, or `<Tensor>`?"""
    if text == "<Tensor>":
        return True
    if text.startswith("{") and text.endswith("}") and len(text) > 2:
        inner = text[1:-1].strip()
        if inner.startswith("(") and inner.endswith(")"):
            inner = inner[1:-1].replace(",", "")
        return bool(inner) and all(c in NUMBER_CHARACTERS for c in inner)
    if not text.endswith("]"):
        return False
    opening = text.find("[ ")
    brace = text.find("{", opening + 2)
    if opening < 0 or brace < 0:
        return False
    tag = text[opening + 2:brace]
    if not tag or " " in tag or not tag.removesuffix("]").endswith(("Type", "Tensor")):
        return False
    return all(c in _DUMP for c in text[:opening].replace("Columns", "").replace(" to ", " "))


_DUMP = NUMBER_CHARACTERS | frozenset(" *(),=\t\r\n")


def split_top(text: str) -> list[str] | None:
    """The parts between commas outside brackets and strings; None when brackets do not match."""
    parts: list[str] = []
    depth, start, pos = 0, 0, 0
    quotes = Quotes()
    while pos < len(text):
        char = text[pos]
        if char == '"':
            pos = quotes.skip(text, pos, len(text))
            continue
        if char in OPENING:
            depth += 1
        elif char in CLOSING:
            depth -= 1
            if depth < 0:
                return None
        elif char == "," and depth == 0:
            parts.append(text[start:pos].strip(BLANKS))
            start = pos + 1
        pos += 1
    if depth:
        return None
    last = text[start:].strip(BLANKS)
    if last or not parts:
        parts.append(last)
    return parts if parts != [""] else []


def _parse_list(text: str, depth: int) -> object:
    parts = split_top(text[1:-1])
    if parts is None:
        types = _types_in(text)
        return Opaque(text) if types is None else types
    if parts and parts[0] in ("<Graphs>", "<Tensors>"):
        return Opaque(text)
    return [parse_value(part, depth + 1) for part in parts]


def _types_in(text: str) -> list[Type] | None:
    """A list with the unbalanced types of 2019 in it."""
    listed: list[Type] = []
    pos = 1
    try:
        while True:
            type, pos = read_type(text, pos)
            listed.append(type)
            if text.startswith(",", pos):
                pos += 1
            elif pos == len(text) - 1:
                return listed
            else:
                return None
    except TypeSyntaxError:
        return None


def _parse_tuple(text: str, depth: int) -> object:
    parts = split_top(text[1:-1])
    if parts is None:
        return Opaque(text)
    values = tuple(parse_value(part, depth + 1) for part in parts)
    types = [each for each in values if isinstance(each, Type)]
    return parse_type(f"({', '.join([each.text for each in types])})") if types and len(types) == len(values) else values


def _parse_dict(text: str, depth: int) -> object:
    parts = split_top(text[1:-1])
    if parts is None:
        return Opaque(text)
    entries: dict[object, object] = {}
    for part in parts:
        colon = _colon(part)
        if colon < 0:
            return Opaque(text)
        key = parse_value(part[:colon], depth + 1)
        try:
            entries[key] = parse_value(part[colon + 1:], depth + 1)
        except TypeError:       # a list as a key
            return Opaque(text)
    return entries


def _colon(text: str) -> int:
    """The first `:` outside strings, or -1."""
    pos = 0
    quotes = Quotes()
    while pos < len(text):
        if text[pos] == '"':
            pos = quotes.skip(text, pos, len(text))
        elif text[pos] == ":":
            return pos
        else:
            pos += 1
    return -1


def _parse_annotated(text: str, depth: int) -> object:
    """`annotate(List[int], [])`: the value after the type."""
    try:
        _, pos = read_type(text, len("annotate("))
    except TypeSyntaxError:
        return Opaque(text)
    if not text.startswith(",", pos):
        return Opaque(text)
    return parse_value(text[pos + 1:-1], depth + 1)


def _parse_word(text: str, stripped: str) -> object:
    """A type, or a bare string of 2017 and 2018: `aten::add`."""
    try:
        type = parse_type(stripped)
    except TypeSyntaxError:
        return text
    if isinstance(type, TypeVar) or (isinstance(type, ClassType) and not stripped.startswith("__torch__")):
        return text
    return type


# -- strings
_ESCAPES = {"\\": b"\\", "'": b"'", '"': b'"', "a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v",
            "?": b"?"}
_OCTAL = frozenset(")*+,-./01234567")
"""torch prints bytes from 0x80 on as signed chars, so that their octal digits go down to `)`."""


def decode_string(text: str) -> str:
    """The text between quotes without its escapes. Bytes that are no UTF-8 become lone surrogates."""
    if "\\" not in text:
        return text
    out = bytearray()
    pos = 0
    while pos < len(text):
        char = text[pos]
        follows = text[pos + 1:pos + 2]
        digits = text[pos + 1:pos + 4]
        if char != "\\" or not follows:
            out += char.encode("utf-8", "surrogateescape")
            pos += 1
        elif follows in _ESCAPES:
            out += _ESCAPES[follows]
            pos += 2
        elif len(digits) == 3 and digits[0] in "./0123" and all(c in _OCTAL for c in digits):
            c0, c1, c2 = (ord(c) - 48 for c in digits)
            out.append((c0 * 64 + c1 * 8 + c2) % 256)
            pos += 4
        else:       # late 2018 leaves a backslash as it is
            out += b"\\"
            pos += 1
    return out.decode("utf-8", "surrogateescape")
