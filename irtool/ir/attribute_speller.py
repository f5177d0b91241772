"""Python values -> attribute text, as a dialect prints them."""
from __future__ import annotations

from irtool.ir.attribute_reader import Opaque
from irtool.ir.dialect import Dialect
from irtool.ir.errors import Error
from irtool.ir.graph import Graph
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.type_model import DictType, ListType, OptionalType, TupleType, Type
from irtool.ir.type_spelling import python_text, spell

MAX_DEPTH = 100


def value_text(value: object, dialect: Dialect, type: Type | None = None) -> str:
    """The text of an attribute's value. Raises Error for a value that has no text."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(type, OptionalType):
        type = type.element
    if isinstance(value, (list, dict)) and not value and isinstance(type, (ListType, DictType)) and dialect.structured_values:
        comma = ", []" if isinstance(value, list) else ",{}"
        return f"annotate({python_text(type, dialect)}{comma})"
    return _text(value, dialect, type, 0)


def argument_text(value: object, type: Type, dialect: Dialect) -> str:
    """The text of an operator's argument that is an attribute: `{1}` for a number that is a `Scalar` or `Tensor`."""
    inner = type.element if isinstance(type, OptionalType) else type
    if isinstance(value, (bool, int, float, complex)) and (inner.key == "Scalar" or inner.key.startswith("Tensor")):
        if isinstance(value, complex):
            return f"{{({short_text(value.real)},{short_text(value.imag)})}}"
        return f"{{{short_text(value) if isinstance(value, float) else int(value)}}}"
    return value_text(value, dialect, inner)


def _text(value: object, dialect: Dialect, type: Type | None, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise Error(f"a value nested deeper than {MAX_DEPTH} cannot be spelled")
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return float_text(float(value), dialect) if type is not None and type.key == "float" else _int_text(value)
    if isinstance(value, float):
        return float_text(value, dialect)
    if isinstance(value, complex):
        sign = "" if _is_negative(value.imag) else "+"
        return f"{float_text(value.real, dialect)}{sign}{float_text(value.imag, dialect)}j"
    if isinstance(value, str):
        return string_text(value, dialect)
    if value is None:
        return "None"
    if isinstance(value, (list, tuple, dict)):
        return _container_text(value, dialect, type, depth)
    if isinstance(value, (TensorLiteral, Opaque)):
        return value.text
    if isinstance(value, Type):
        return spell(value, dialect).text
    if isinstance(value, Graph):
        return "<Graph>"
    raise Error(f"a {value.__class__.__name__} cannot be an attribute's value")


def _container_text(value: list[object] | tuple[object, ...] | dict[object, object], dialect: Dialect, type: Type | None,
                    depth: int) -> str:
    if isinstance(value, list):
        element = type.element if isinstance(type, ListType) else None
        if not dialect.structured_values:       # a list of bools was a list of ints
            value = [int(each) if isinstance(each, bool) else each for each in value]
        return "[" + ", ".join(_text(v, dialect, element, depth + 1) for v in value) + "]"
    if isinstance(value, tuple):
        types: tuple[Type | None, ...] = (None,) * len(value)
        if isinstance(type, TupleType) and len(type.elements) == len(value):
            types = type.elements
        parts = [_text(v, dialect, t, depth + 1) for v, t in zip(value, types, strict=True)]
        return f"({parts[0]},)" if len(parts) == 1 else "(" + ", ".join(parts) + ")"
    key_type, value_type = (type.key_type, type.value_type) if isinstance(type, DictType) else (None, None)
    return "{" + ", ".join(f"{_text(k, dialect, key_type, depth + 1)}: {_text(v, dialect, value_type, depth + 1)}"
                           for k, v in value.items()) + "}"


def _int_text(value: int) -> str:
    try:
        return str(value)
    except ValueError:
        raise Error("an integer of more than 4300 digits cannot be spelled") from None


def _is_negative(value: float) -> bool:
    return value < 0 or (value == 0 and str(value).startswith("-"))


def short_text(value: float) -> str:
    """A float with 6 digits if they determine it (`1`, `0.1`, `1e-05`), else with as many as needed."""
    text = f"{value:g}"
    return text if value != value or float(text) == value else repr(value)


def float_text(value: float, dialect: Dialect) -> str:
    """A float as C++ prints it: with 6 digits before 2020 (more here, if 6 do not determine it), later with 17, and a dot after integral
    floats below 1e10."""
    if dialect.float_style == "short6":
        return short_text(value)
    if value == value and abs(value) < 1e10 and value == int(value):
        return ("-" if _is_negative(value) else "") + str(abs(int(value))) + "."
    return f"{value:.17g}"


_ESCAPED = {"\n": "\\n", "\t": "\\t", "\v": "\\v"}
_C_ESCAPED = {92: "\\\\", 39: "\\'", 34: '\\"', 7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v"}


def string_text(value: str, dialect: Dialect) -> str:
    """A string with the quotes and escapes of a dialect."""
    if dialect.string_style == "c":
        return '"' + "".join(_byte_text(byte) for byte in value.encode("utf-8", "surrogateescape")) + '"'
    if dialect.string_style != "raw":
        value = "".join(_ESCAPED.get(c, c) for c in value)
    return f'"{value}"' if dialect.string_style == "quoted" else value


def _byte_text(byte: int) -> str:
    if byte in _C_ESCAPED:
        return _C_ESCAPED[byte]
    if 32 <= byte < 127:
        return chr(byte)
    # C++ divides the signed char towards zero, so the digits of bytes from 0x80 on are negative
    signed = byte - 256 if byte > 127 else byte
    sign = -1 if signed < 0 else 1
    size = abs(signed)
    digits = (sign * (size // 64), sign * (size % 64 // 8), sign * (size % 8))
    return "\\" + "".join(chr(48 + digit) for digit in digits)
