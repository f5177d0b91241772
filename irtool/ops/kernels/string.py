"""Strings, as TorchScript has them: UTF-8 bytes with ASCII letters, and C++ formatting of numbers."""
from __future__ import annotations

import enum
import math
import re
import struct
from typing import Any

from irtool.ir.constants import slice_bound
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.array_library import np
from irtool.ops.arrays import is_array
from irtool.ops.kinds_of_values import tag
from irtool.ops.op import OpTable
from irtool.ops.tensor_text import tensor_text

table = OpTable("string")

SPACES = re.compile(rb"[\t-\r\x1c-\x1e ]+")
LINE_ENDS = b"\n\r\v\f\x1c\x1d\x1e\x85"


def raw(text: str) -> bytes:
    """The bytes torch works on."""
    return text.encode("utf-8", "surrogateescape")


def text_of(data: bytes) -> str:
    """Bytes as a string; pieces of a character survive a round trip."""
    return data.decode("utf-8", "surrogateescape")


# -- numbers and values as text
def float_text(value: float) -> str:
    """A double as torch prints it: `1.`, `0.10000000000000001`, `inf`; minus zero is `0.`."""
    if math.isfinite(value) and value == int(value) and abs(value) < 9.3e18:
        return f"{int(value)}."
    return f"{value:.17g}"


def value_text(value: Any) -> str:
    """Any value as torch prints it, strings without quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None or isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, complex):
        sign = "" if value.imag < 0 or value.imag != value.imag else "+"
        return f"{float_text(value.real)}{sign}{float_text(value.imag)}j"
    if isinstance(value, list):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(value_text, value)) + (",)" if len(value) == 1 else ")")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{value_text(k)}: {value_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, enum.Enum):
        return f"Enum<{type(value).__name__}.{value.name}>"
    if is_array(value):
        return tensor_text(value)
    return str(value)


def text_hash(data: bytes) -> int:
    """The result of libstdc++'s `std::hash` for these bytes (MurmurHash64A), signed, as torch shows it."""
    factor, mask, whole = 0xC6A4A7935BD1E995, (1 << 64) - 1, len(data) & ~7
    state = 0xC70F6907 ^ (len(data) * factor & mask)
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at:at + 8], "little") * factor & mask
        state = (state ^ ((word ^ word >> 47) * factor & mask)) * factor & mask
    if whole != len(data):
        state = (state ^ int.from_bytes(data[whole:], "little")) * factor & mask
    state = (state ^ state >> 47) * factor & mask
    return int(np.uint64(state ^ state >> 47).astype(np.int64))


@table.op("aten::hash.generic(t value) -> int")
def hash_of(xp, value):
    """torch's hash of a number, a string, None or a tuple of such. Raises UnsupportedError for a tensor, RunError for other values."""
    return value_hash(value)


def value_hash(value: object) -> int:
    """The same for one value."""
    if value is None or isinstance(value, int):
        return int(value or 0)
    if isinstance(value, str):
        return text_hash(raw(value))
    if isinstance(value, float):
        return text_hash(struct.pack("<d", value)) if value else 0
    if isinstance(value, tuple):
        state, mask = 0, (1 << 64) - 1
        for each in value:      # c10::hash_combine
            state ^= value_hash(each) + 0x9E3779B9 + (state << 6) + (state >> 2) & mask
        return int(np.uint64(state).astype(np.int64))
    if is_array(value):
        raise UnsupportedError("hash of a tensor is not supported: torch's is an address")
    raise RunError(f"unhashable type: '{getattr(value, 'type', tag(value))}'")


table.define("aten::str(t elem) -> str", lambda xp, elem: value_text(elem), doc="str(elem), numbers as C++ prints them.")


@table.op("aten::format(str self, ...) -> str")
def format_braces(xp, self, *values):
    """Each `{}` in turn replaced by a value; surplus values are ignored."""
    pieces = self.split("{}")
    if len(pieces) - 1 > len(values):
        raise RunError(f"Too few arguments for format string: {self}")
    out = [pieces[0]]
    for piece, value in zip(pieces[1:], values, strict=False):
        out += [value_text(value), piece]
    return "".join(out)


@table.op("aten::percentFormat(str self, ...) -> str")
def format_percent(xp, self, *values):
    """`self % values`, with the specifiers d i e E f F c s only."""
    arguments = list(values[0]) if values and isinstance(values[0], tuple) else list(values[:1])
    out, at, used = [], 0, 0
    while True:
        percent = self.find("%", at)
        if percent < 0:
            out.append(self[at:])
            break
        if percent + 1 == len(self):
            raise RunError("Incomplete format specifier")
        out.append(self[at:percent])
        at = percent + 2
        if self[percent + 1] == "%":
            out.append("%")
            continue
        if used >= len(arguments):
            raise RunError("Too few arguments for format string")
        out.append(_percent(self[percent + 1], arguments[used]))
        used += 1
    if used < len(arguments):
        raise RunError("Too many arguments for format string")
    return "".join(out)


def _percent(key: str, value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if key in "di":
        if not number:
            raise RunError(f"%{key} requires a number for formatting, but got {tag(value)}")
        if isinstance(value, float):        # a C cast to a 32-bit int
            return str(int(value)) if math.isfinite(value) and -2**31 <= value < 2**31 else str(-2**31)
        return str(value)
    if key in "eEfF":
        if not number:
            raise RunError(f"%{key} requires a number for formatting, but got {tag(value)}")
        return f"%.6{key}" % float(np.float32(value))
    if key == "c":
        if isinstance(value, int):
            return text_of(bytes([value & 255]))
        if isinstance(value, str) and len(raw(value)) == 1:
            return value
        raise RunError(f"%c requires an int or char for formatting, but got {tag(value)}")
    if key == "s":
        return value_text(value)
    raise RunError(f"The specifier %{key} is not supported in TorchScript format strings")


table.define("aten::hex(int i) -> str", lambda xp, i: hex(i), doc="hex(i).")
table.define("aten::oct(int i) -> str", lambda xp, i: oct(i), doc="oct(i).")
table.define("aten::bin(int i) -> str", lambda xp, i: bin(i), doc="bin(i).")


FLOAT_TEXT = re.compile(r"[ \t\n\v\f\r]*[+-]?(?:(0x)(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?"
                        r"|((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)|inf(?:inity)?|(nan)(?:\([0-9a-z_]*\))?)", re.IGNORECASE)
"""What std::stod reads: a hexadecimal or decimal number, an infinity, or nan."""
SMALLEST_NORMAL = 2.0 ** -1022


@table.op("aten::Float.str(str a) -> float")
def float_of_text(xp, a):
    """float(a), as std::stod reads it."""
    found = FLOAT_TEXT.match(a)
    if found is None:
        raise RunError(f"stod: no number in '{a}'")
    if found.end() != len(a):
        raise RunError(f"could not convert string to float: '{a}'")
    hexadecimal, decimal, nan = found.groups()
    try:
        value = float.fromhex(a) if hexadecimal else float("nan") if nan else float(a)
    except OverflowError:
        raise RunError(f"stod: '{a}' is out of range") from None
    is_small = abs(value) < SMALLEST_NORMAL and decimal and decimal.lower().partition("e")[0].strip("0.")
    if is_small or decimal and math.isinf(value):
        raise RunError(f"stod: '{a}' is out of range")
    return value


@table.op("aten::chr(int i) -> str")
def character(xp, i):
    """The string of one byte."""
    if not 0 <= i < 0x110000:
        raise RunError(f"chr() arg not in range(0x110000), found {i}")
    return text_of(bytes([i & 255]))


@table.op("aten::ord(str string) -> int")
def order(xp, string):
    """The byte of a string of one byte."""
    data = raw(string)
    if len(data) != 1:
        raise RunError(f"String for ord() must be 1 character, found {len(data)}")
    return data[0]


# -- pieces
table.define("aten::len.str(str s) -> int", lambda xp, s: len(raw(s)), doc="Number of bytes.")
table.define("aten::list(str t) -> str[]", lambda xp, t: [text_of(bytes([c])) for c in raw(t)], doc="One string per byte.")


@table.op("aten::__getitem__.str(str s, int index) -> str", "prim::StringIndex(str string, int index) -> str")
def getitem(xp, s, index):
    """s[index]."""
    data = raw(s)
    place = index + len(data) if index < 0 else index
    if not 0 <= place < len(data):
        raise RunError(f"basic_string::at: __n (which is {place % (1 << 64)}) >= this->size() (which is {len(data)})")
    return text_of(data[place:place + 1])


@table.op("aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str")
def slice_text(xp, string, start, end, step):
    """string[start:end:step]."""
    if step == 0:
        raise RunError("List slice should have non-zero step")
    return text_of(raw(string)[slice_bound(start):slice_bound(end):step])


# -- tests and letters
def _tests() -> None:
    def whole(test: Any) -> Any:
        return lambda xp, self: test(raw(self))

    for name, test in (("isalnum", bytes.isalnum), ("isalpha", bytes.isalpha), ("isdecimal", bytes.isdigit), ("isdigit", bytes.isdigit),
                       ("isnumeric", bytes.isdigit), ("islower", bytes.islower), ("isupper", bytes.isupper), ("isspace", bytes.isspace),
                       ("istitle", bytes.istitle), ("isprintable", lambda data: all(32 <= c < 127 for c in data)),
                       ("isidentifier", lambda data: data[:1].isalpha() and data.isalnum())):     # torch takes no underscore
        table.define(f"aten::{name}(str self) -> bool", whole(test), doc=f"{name}() of the ASCII letters.")
    for name, change in (("upper", bytes.upper), ("lower", bytes.lower), ("swapcase", bytes.swapcase), ("title", bytes.title),
                         ("capitalize", bytes.capitalize)):
        table.define(f"aten::{name}(str self) -> str", lambda xp, self, change=change: text_of(change(raw(self))),
                     doc=f"{name}() of the ASCII letters.")


_tests()


# -- search
def _places(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Both counted from the front: a negative end counts from one past the last byte."""
    size = len(data)
    return max(0, size + start) if start < 0 else start, max(0, size + end + 1) if end < 0 else end


def _bounds(data: bytes, start: int, end: int) -> tuple[int, int]:
    """torch's bounds of a part, which has to begin within the bytes."""
    start, end = _places(data, start, end)
    if start > len(data):
        raise RunError(f"basic_string::substr: __pos (which is {start}) > this->size() (which is {len(data)})")
    return start, min(end, len(data))


def _part(self: str, start: int, end: int) -> bytes:
    """The bytes between the bounds. Where the end is before the start, torch takes all that follows the start."""
    data = raw(self)
    low, high = _bounds(data, start, end)
    return data[low:high] if low <= high else data[low:]


def _find(self: str, substr: str, start: int, end: int, last: bool = False) -> int:
    data = raw(self)
    low, high = _places(data, start, end)
    if low >= high:     # nothing to search, whatever the size
        return -1 if substr else low
    low, high = _bounds(data, start, end)
    return data.rfind(raw(substr), low, high) if last else data.find(raw(substr), low, high)


SEARCH = "(str self, str substr, int start=0, int end=-1) -> int"
table.define("aten::find" + SEARCH, lambda xp, self, substr, start, end: _find(self, substr, start, end),
             doc="First place of `substr`, or -1.")
table.define("aten::rfind" + SEARCH, lambda xp, self, substr, start, end: _find(self, substr, start, end, True),
             doc="Last place of `substr`, or -1.")


def _index(self: str, substr: str, start: int, end: int, last: bool = False) -> int:
    place = _find(self, substr, start, end, last)
    if place < 0:
        raise RunError("ValueError: substring not found")
    return place


table.define("aten::index.str" + SEARCH, lambda xp, self, substr, start, end: _index(self, substr, start, end),
             doc="First place of `substr`.")
table.define("aten::rindex" + SEARCH, lambda xp, self, substr, start, end: _index(self, substr, start, end, True),
             doc="Last place of `substr`.")


@table.op("aten::count(str self, str substr, int start=0, int end=-1) -> int")
def count(xp, self, substr, start, end):
    """How often `substr` begins in it before `end`, without overlaps. Raises RunError where torch searches for nothing without end."""
    data, part = raw(self), raw(substr)
    low, high = _bounds(data, min(start, len(data)), end)
    if not part:
        if low < high:
            raise RunError("count of an empty string never ends in torch")
        return 0
    return data.count(part, low, min(len(data), high + len(part) - 1))


@table.op("aten::startswith(str self, str substr, int start=0, int end=-1) -> bool")
def startswith(xp, self, substr, start, end):
    """Does the string begin with `substr`?"""
    return _part(self, start, end).startswith(raw(substr))


@table.op("aten::endswith(str self, str substr, int start=0, int end=-1) -> bool")
def endswith(xp, self, substr, start, end):
    """Does the string end with `substr`?"""
    return _part(self, start, end).endswith(raw(substr))


# -- taking apart and putting together
@table.op("aten::split.str(str self, str? separator=None, int max=-1) -> str[]")
def split(xp, self, separator, max):
    """Parts between separators; without a separator, words (all of them, whatever `max` is)."""
    if separator is None:
        return [text_of(piece) for piece in SPACES.split(raw(self)) if piece]
    if not separator:
        raise RunError("ValueError: empty separator")
    return [text_of(piece) for piece in raw(self).split(raw(separator), max)]


@table.op("aten::rsplit(str self, str separator=\" \", int max=-1) -> str[]")
def rsplit(xp, self, separator, max):
    """Pieces between separators, counted from the end."""
    if not separator:
        raise RunError("ValueError: empty separator")
    return [text_of(piece) for piece in raw(self).rsplit(raw(separator), max)]


@table.op("aten::splitlines(str self, bool keepends=False) -> str[]")
def splitlines(xp, self, keepends):
    """Lines; each of torch's line ends counts as one, and with `keepends` each is a line of its own."""
    lines, start, data = [], 0, raw(self)
    for place, byte in enumerate(data):
        if byte in LINE_ENDS:
            lines.append(text_of(data[start:place]))
            if keepends:
                lines.append(text_of(data[place:place + 1]))
            start = place + 1
    if start < len(data):
        lines.append(text_of(data[start:]))
    return lines


@table.op("aten::partition(str self, str separator) -> (str, str, str)")
def partition(xp, self, separator):
    """Before, separator, after."""
    return self.partition(separator) if separator else ("", "", self)


@table.op("aten::rpartition(str self, str separator) -> (str, str, str)")
def rpartition(xp, self, separator):
    """Before, separator, after, for the last separator."""
    return self.rpartition(separator) if separator else (self, "", "")


table.define("aten::join(str self, str[] values) -> str", lambda xp, self, values: self.join(values), doc="The values, `self` between.")


@table.op("aten::replace(str self, str old, str new, int max=-1) -> str")
def replace(xp, self, old, new, max):
    """The first `max` places of `old` (all when negative) become `new`. Raises RunError where torch would insert `new` without end."""
    if old:
        return self.replace(old, new, max)
    if max < 0:
        raise RunError("replacing an empty string never ends in torch")
    return new * max + self         # torch continues behind what it has inserted, where it finds nothing again


CHARS = "(str self, str chars=\" \\n\\t\\f\\v\") -> str"
table.define("aten::strip" + CHARS, lambda xp, self, chars: self.strip(chars), doc="Without `chars` at both ends.")
table.define("aten::lstrip" + CHARS, lambda xp, self, chars: self.lstrip(chars), doc="Without `chars` at the start.")
table.define("aten::rstrip" + CHARS, lambda xp, self, chars: self.rstrip(chars), doc="Without `chars` at the end.")


def _pad(self: str, width: int, fillchar: str, side: str) -> str:
    if len(raw(fillchar)) != 1:
        raise RunError("TypeError: The fill character must be exactly one character long")
    if width < 0 and side == "center":
        raise RunError("center in a negative width never ends in torch")
    room = max(width - len(raw(self)), 0)
    before = {"left": 0, "right": room}.get(side, room // 2 + (room & width & 1))
    return fillchar * before + self + fillchar * (room - before)


WIDTH = "(str self, int width, str fillchar=\" \") -> str"
table.define("aten::center" + WIDTH, lambda xp, self, width, fill: _pad(self, width, fill, "center"),
             doc="In the middle of `width` characters.")
table.define("aten::ljust" + WIDTH, lambda xp, self, width, fill: _pad(self, width, fill, "left"), doc="At the left of `width` characters.")
table.define("aten::rjust" + WIDTH, lambda xp, self, width, fill: _pad(self, width, fill, "right"),
             doc="At the right of `width` characters.")
table.define("aten::zfill(str self, int width) -> str", lambda xp, self, width: _pad(self, width, "0", "right"),
             doc="Zeros in front (also of a sign, as torch does).")


@table.op("aten::expandtabs(str self, int tabsize=8) -> str")
def expandtabs(xp, self, tabsize):
    """Tabs become spaces up to the next multiple of `tabsize` bytes, counted from the start of the string, not of the line."""
    data = b""
    for at, piece in enumerate(raw(self).split(b"\t")):
        data += b" " * (tabsize - len(data) % tabsize if at and tabsize > 0 else 0) + piece
    return text_of(data)


