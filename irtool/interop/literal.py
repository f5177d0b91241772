"""Values written on a command line: `2x3xf32=0`, `[1, 2, 3]`, `2.5`, `true`, `none`, `"text"`, `@file.npy`.

    value  := tensor | list | tuple | dict | string | number | true | false | none | nan | inf | @FILE.npy
    tensor := (SIZE x)* DTYPE = (element | [elements, nested or flat] | elements with commas, outside a list)
    list   := [value, ...]     tuple := (value, ...)     dict := {value: value, ...}

One element fills the tensor; `rand` and `randn` draw it (from the generator of `--seed`). DTYPE is f32, i64, bool, bf16, ... or
torch's name. bf16 gives float32 values rounded to bfloat16. Nothing is evaluated.
"""
from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from irtool.ir.errors import Error, did_you_mean
from irtool.ops.array_library import np
from irtool.ops.arrays import generator, to_bfloat16

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES: dict[str, str] = {
    "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "c64": "complex64", "c128": "complex128",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "i1": "bool",
}
NAMES = {**DTYPES, **{name: name for name in DTYPES.values()}}
WORDS: dict[str, Any] = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None,
                         "nan": math.nan, "inf": math.inf, "-inf": -math.inf}
MAX_BYTES = 1 << 30
"""Larger tensors must be in a file."""
MAX_DEPTH = 50

_TENSOR = re.compile(r"((?:\d+x)*)([A-Za-z]\w*)=")
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_COMPLEX = re.compile(r"[+-]?(?:[\d.]+(?:[eE][+-]?\d+)?)?[+-]?[\d.]+(?:[eE][+-]?\d+)?j")
_WORD = re.compile(r"-?[A-Za-z_]\w*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "0": "\0"}


def parse_literal(text: str, load: Callable[[str], Array]) -> Any:
    """The value of a literal: an array for a tensor, else a Python value; `load` reads `@FILE.npy`. Raises Error."""
    reader = Reader(text.strip(), load)
    value = reader.value(0, at_top=True)
    reader.skip_blanks()
    if reader.at < len(reader.text):
        hint = "; tensors are like 2x3xf32=0" if reader.text[reader.at] == "x" else ""
        raise reader.error(f"unexpected '{shorten(reader.text[reader.at:])}'{hint}")
    return value


def literal_text(value: Any) -> str:
    """The literal of a value, the inverse of `parse_literal`. Raises Error for a value that has none."""
    if isinstance(value, np.ndarray):
        name = "bool" if value.dtype == bool else next((short for short, long in DTYPES.items() if long == value.dtype.name), None)
        if name is None:
            raise Error(f"there is no literal for a tensor of dtype {value.dtype.name}", code="E0807")
        elements = set(map(element_text, value.flat))
        return f"{''.join([f'{size}x' for size in value.shape])}{name}={elements.pop() if len(elements) == 1 else nested_text(value)}"
    if isinstance(value, list | tuple):
        inner = ", ".join(map(literal_text, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, dict):
        return f"{{{', '.join([f'{literal_text(key)}: {literal_text(each)}' for key, each in value.items()])}}}"
    if isinstance(value, str):
        escapes = {char: word for word, char in _ESCAPES.items() if char != "'"}
        return '"' + "".join([f"\\{escapes[char]}" if char in escapes else char for char in value]) + '"'
    if value is None or isinstance(value, bool | int | float | complex | np.generic):
        return element_text(value)
    raise Error(f"there is no literal for a value of type {type(value).__name__}", code="E0807")


def element_text(value: Any) -> str:
    """The shortest text of a number, bool or None that restores it. Raises Error for a complex number that is not finite."""
    if isinstance(value, complex | np.complexfloating) and not np.isfinite(value):
        raise Error(f"there is no literal for {value}", code="E0807")
    return str(value).strip("()").lower()


def nested_text(array: Array) -> str:
    """The elements of an array in nested brackets."""
    return element_text(array[()]) if not array.ndim else f"[{', '.join(map(nested_text, array))}]"


class Reader:
    """A recursive descent parser of one literal. load: reads a file; None: literals cannot name files."""

    def __init__(self, text: str, load: Callable[[str], Array] | None = None) -> None:
        self.text = text
        self.at = 0
        self.load = load

    def error(self, message: str) -> Error:
        """The error at the current position."""
        return Error(f"'{shorten(self.text)}', character {self.at + 1}: {message}", code="E0807")

    def skip_blanks(self) -> None:
        while self.text[self.at:self.at + 1].isspace():
            self.at += 1

    def take(self, token: str) -> bool:
        """Skip `token`, if it comes next. Returns whether it did."""
        self.skip_blanks()
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what `pattern` matches here."""
        self.skip_blanks()
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def value(self, depth: int, at_top: bool = False) -> Any:
        """One value."""
        if depth > MAX_DEPTH:
            raise self.error(f"nested deeper than {MAX_DEPTH}")
        tensor = self.match(_TENSOR)
        if tensor:
            return self.tensor(tensor, depth, at_top)
        if self.take("@"):
            path, self.at = self.text[self.at:], len(self.text)
            if not at_top or self.load is None:
                raise self.error("a file must be the whole value, not inside a list")
            return self.load(path)
        if self.take("["):
            return self.items("]", depth)
        if self.take("("):
            return tuple(self.items(")", depth))
        if self.take("{"):
            return self.pairs(depth)
        for quote in ('"', "'"):
            if self.take(quote):
                return self.string(quote)
        return self.atom()

    def items(self, end: str, depth: int) -> list[Any]:
        """Values up to the closing bracket."""
        out: list[Any] = []
        while not self.take(end):
            if out and not self.take(","):
                raise self.error(f"expected ',' or '{end}'")
            if out and self.take(end):
                break
            out.append(self.value(depth + 1))
        return out

    def pairs(self, depth: int) -> dict[Any, Any]:
        """`key: value` up to the closing brace."""
        out: dict[Any, Any] = {}
        while not self.take("}"):
            if out and not self.take(","):
                raise self.error("expected ',' or '}'")
            key = self.value(depth + 1)
            if not isinstance(key, str | int | float | bool | complex):
                raise self.error("a key is a string or a number")
            if not self.take(":"):
                raise self.error("expected ':'")
            out[key] = self.value(depth + 1)
        return out

    def string(self, quote: str) -> str:
        """Text up to the closing quote, with the usual escapes."""
        out: list[str] = []
        while self.at < len(self.text):
            c = self.text[self.at]
            self.at += 1
            if c == quote:
                return "".join(out)
            if c == "\\":
                escaped = self.text[self.at:self.at + 1]
                if escaped not in _ESCAPES:
                    raise self.error(f"unknown escape '\\{escaped}'")
                c = _ESCAPES[escaped]
                self.at += 1
            out.append(c)
        raise self.error(f"no closing {quote}")

    def atom(self) -> Any:
        """A number or a word."""
        match = self.match(_COMPLEX)
        if match:
            try:
                return complex(match[0])
            except ValueError:
                raise self.error(f"'{match[0]}' is no number") from None
        match = self.match(_NUMBER)
        if match:
            return self.number(match[0])
        match = self.match(_WORD)
        if match and match[0] in WORDS:
            return WORDS[match[0]]
        if match:
            self.at = match.start()
            raise self.error(f"'{match[0]}' is no value{did_you_mean(match[0], WORDS)}; text goes into quotes, tensors are like 2x3xf32=0")
        raise self.error("expected a value: a number, 2x3xf32=0, [1, 2], true, none, \"text\" or @FILE.npy")

    def number(self, text: str) -> int | float:
        """A Python int or float."""
        try:
            return float(text) if set(text) & set(".eE") else int(text)
        except ValueError:      # more digits than Python converts
            raise self.error(f"the number '{shorten(text)}' is too long") from None

    def tensor(self, head: re.Match[str], depth: int, at_top: bool) -> Array:
        """Read a tensor, after its shape and dtype."""
        name = NAMES.get(head[2])
        if name is None:
            self.at = head.start(2)
            raise self.error(f"unknown dtype '{head[2]}'{did_you_mean(head[2], NAMES)}; known: {', '.join(DTYPES)}")
        try:
            shape = tuple(int(size) for size in head[1].split("x")[:-1])
        except ValueError:
            raise self.error("a size has too many digits") from None
        dtype = np.dtype("float32" if name == "bfloat16" else name)
        if math.prod(shape) * dtype.itemsize > MAX_BYTES:
            raise self.error(f"a tensor of shape {shorten(str(shape))} is larger than {MAX_BYTES >> 30} GiB: put it into a file")
        for word in ("randn", "rand"):
            if self.take(word):
                return drawn(word, shape, dtype, name)
        elements = self.elements(depth, at_top)
        if len(elements) not in (1, math.prod(shape)):
            raise self.error(f"{len(elements)} elements for shape {shape}: expected {math.prod(shape)}, or 1 for all")
        if dtype.kind in "iu" and not all(isinstance(element, int) for element in elements):
            raise self.error(f"{name} elements are integers")
        try:
            array = np.empty(shape, dtype)
            with np.errstate(over="ignore"):        # 1e10 is inf in float16
                array[...] = np.reshape(np.array(elements, dtype), () if len(elements) == 1 else shape)
        except (ValueError, TypeError, OverflowError) as error:
            raise self.error(f"not {name} elements: {error}") from None
        return to_bfloat16(array) if name == "bfloat16" else array

    def elements(self, depth: int, at_top: bool) -> list[Any]:
        """Elements of a tensor: one value, a bracketed list (nested ones are flattened), or, outside of lists, several with commas."""
        elements = flatten([self.value(depth + 1)])
        while at_top and self.take(","):
            elements += flatten([self.value(depth + 1)])
        if not all(isinstance(element, bool | int | float | complex) for element in elements):
            raise self.error("elements of a tensor are numbers")
        return elements


def flatten(value: list[Any]) -> list[Any]:
    """The numbers of nested lists, in order."""
    out: list[Any] = []
    for element in value:
        if isinstance(element, list | tuple):
            out += flatten(list(element))
        else:
            out.append(element)
    return out


def drawn(word: str, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> Array:
    """A random tensor: standard normal, or uniform in [0, 1); integers 0 to 9."""
    random = generator()
    values: Array = np.asarray(random.standard_normal(shape) if word == "randn" else random.random(shape))
    if dtype.kind in "iu":
        values = np.asarray(random.integers(0, 10, shape))
    elif dtype.kind == "b":
        values = values > (0 if word == "randn" else 0.5)
    array = values.astype(dtype)
    return to_bfloat16(array) if name == "bfloat16" else array


def shorten(text: str, most: int = 60) -> str:
    """The text, cut if it is long."""
    return text if len(text) <= most else text[:most] + "..."
