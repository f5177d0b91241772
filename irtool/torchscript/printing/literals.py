"""Constants and types as TorchScript source. Reading the text restores the value, to the last bit."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from struct import pack, unpack

from irtool.ir import types
from irtool.ir.attribute import Opaque, TensorLiteral
from irtool.ir.constants import NOT_CONSTANT
from irtool.ir.dtypes import CODES
from irtool.ir.errors import UnsupportedError
from irtool.ir.types import (
    ClassType,
    DictType,
    EnumType,
    InterfaceType,
    ListType,
    NamedTupleType,
    OptionalType,
    SimpleType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    WrapperType,
)

SIMPLE = {
    "Tensor": "Tensor", "int": "int", "float": "float", "bool": "bool", "complex": "complex", "str": "str", "Scalar": "number",
    "None": "None", "Any": "Any", "Device": "Device", "Generator": "Generator", "Stream": "Stream",
}
MAX_ELEMENTS = 1000
"""Larger tensors are not written into the source."""
MAX_DEPTH = 50
LARGEST_SINGLE = 3.4028234663852886e38
"""The largest float32, which tensors print as the larger number 3.4028235e+38."""


def annotation(type: Type, depth: int = 0, name_of: Callable[[Type], str] | None = None) -> str:
    """A type as an annotation: `List[int]`, `Optional[Tensor]`; name_of returns the names of classes.

    Raises UnsupportedError for a type without spelling.
    """
    if depth > MAX_DEPTH:
        raise UnsupportedError("a type is nested too deeply to be written as an annotation", code="E0606")
    if name_of is not None and isinstance(type, ClassType | NamedTupleType | EnumType | InterfaceType):
        return name_of(type)
    inner = [annotation(element, depth + 1, name_of) for element in type.elements]
    if isinstance(type, TensorType) or type.key == types.TENSOR.key:
        return "Tensor"
    if isinstance(type, SimpleType) and type.key in SIMPLE:
        return SIMPLE[type.key]
    if isinstance(type, ListType):
        return f"List[{inner[0]}]"
    if isinstance(type, OptionalType):
        return f"Optional[{inner[0]}]"
    if isinstance(type, DictType):
        return f"Dict[{inner[0]}, {inner[1]}]"
    if isinstance(type, UnionType):
        return f"Union[{', '.join(inner)}]"
    if isinstance(type, TupleType):
        return f"Tuple[{', '.join(inner) or '()'}]"
    if isinstance(type, WrapperType):
        return f"{type.word}[{inner[0]}]"
    raise UnsupportedError(f"type {type.text[:80]} cannot be written as an annotation", code="E0606")


def class_name(type: Type) -> str:
    """The full name of a class. Raises UnsupportedError for named tuples, whose types do not contain it."""
    if isinstance(type, NamedTupleType):
        raise UnsupportedError(f"type {type.text[:80]} cannot be written as an annotation: its class is not known", code="E0606")
    return type.name if isinstance(type, EnumType) else type.text


def type_key(type: Type) -> str:
    """A key that is equal for types that print alike; never raises."""
    try:
        return annotation(type)
    except UnsupportedError:
        return type.key


def string(text: str) -> str:
    """A string literal, with escapes that Python and torch read alike."""
    return '"' + "".join([_ESCAPES.get(c) or (c if c.isprintable() else _octal(c)) for c in text]) + '"'


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _octal(c: str) -> str:
    return f"\\{ord(c):03o}" if ord(c) < 256 else c


def number(value: bool | int | float | complex) -> str:
    """The shortest text from which a number can be read back."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        if value == -2 ** 63:       # -value is no 64-bit number
            return "torch.sub(-9223372036854775807, 1)"
        if not -2 ** 63 < value < 2 ** 63:
            raise UnsupportedError("an int of more than 64 bits cannot be written as TorchScript", code="E0606")
        return str(value)
    if isinstance(value, complex):
        return f"complex({number(value.real)}, {number(value.imag)})"
    return repr(value)      # also inf and nan, which are names in TorchScript


def literal(value: object, type: Type | None = None, depth: int = 0) -> str:
    """A constant's value, of `type` if that is known. Raises UnsupportedError if source cannot express it."""
    if depth > MAX_DEPTH:
        raise UnsupportedError("a constant is nested too deeply to be written as source", code="E0606")
    if isinstance(type, OptionalType):
        type = type.element
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float, complex)):
        return number(value)
    if isinstance(value, str):
        return f"torch.device({string(value)})" if type is not None and type.key == "Device" else string(value)
    if isinstance(value, (list, tuple, dict)):
        return _container(value, type, depth + 1)
    if isinstance(value, TensorLiteral):
        return tensor(value)
    shown = value.text if isinstance(value, Opaque) else "of no known kind" if value is NOT_CONSTANT else str(value)
    raise UnsupportedError(f"constant {shown[:80]} cannot be written as source", code="E0606")


def _container(value: list[object] | tuple[object, ...] | dict[object, object], type: Type | None, depth: int) -> str:
    if isinstance(value, tuple):
        elements = type.elements if isinstance(type, TupleType) and len(type.elements) == len(value) else (None,) * len(value)
        parts = [literal(each, of, depth) for each, of in zip(value, elements, strict=True)]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if isinstance(value, dict):
        key, item = (type.key_type, type.value_type) if isinstance(type, DictType) else (None, None)
        text = "{" + ", ".join([f"{literal(k, key, depth)}: {literal(v, item, depth)}" for k, v in value.items()]) + "}"
        return f"annotate({annotation(type)}, {text})" if type is not None and not value else text
    element = type.element if isinstance(type, ListType) else None
    text = f"[{', '.join([literal(each, element, depth) for each in value])}]"
    plain = value and len({each.__class__ for each in value}) == 1 and element is not None and element.key in SIMPLE and (
        element.key not in ("Scalar", "Any"))
    return text if plain or type is None else f"annotate({annotation(type)}, {text})"


def tensor(value: TensorLiteral) -> str:
    """A tensor as `torch.tensor(...)`, or as a stack of numbers where that would round them: TorchScript makes float32 of them first, and
    makes no tensors of lists of complex numbers. Raises UnsupportedError if its data are unknown, or too large."""
    if not value.has_data or value.is_quantized:
        raise UnsupportedError("the numbers of a tensor constant are not in the text", code="E0606")
    shape, dtype = value.shape, value.dtype
    numbers = value.numbers()
    if shape is None:
        shape = (len(numbers),)
    if len(numbers) > MAX_ELEMENTS:
        raise UnsupportedError(f"a tensor constant of {len(numbers)} elements is too large for source", code="E0606")
    if dtype is None:
        dtype = "int64" if all(isinstance(each, int) for each in numbers) else "float64"
    if dtype not in CODES:
        raise UnsupportedError(f"a tensor constant of dtype {dtype} cannot be written as source", code="E0606")
    code = "" if dtype == "int64" else f", dtype={CODES[dtype]}"
    if not numbers:
        return f"torch.zeros([{', '.join(map(str, shape))}], dtype={CODES[dtype]})"
    exact = [_cast(each, dtype) for each in numbers]
    texts = list(map(number, exact))
    if dtype.startswith("complex") and shape or dtype in ("float64", "complex128") and not all(map(_is_single, exact)):
        texts = [f"torch.scalar_tensor({text}{code})" for text in texts]
        stacked = f"torch.stack([{', '.join(texts)}])" if shape else texts[0]
        return f"{stacked}.view([{', '.join(map(str, shape))}])" if len(shape) > 1 else stacked
    for size in reversed(shape):
        texts = [f"[{', '.join(texts[i:i + size])}]" for i in range(0, len(texts), size)]
    return f"torch.tensor({texts[0]}{code})"


def _cast(value: bool | int | float | complex, dtype: str) -> bool | int | float | complex:
    if dtype == "bool":
        return bool(value)
    if dtype.startswith("complex"):
        value = complex(value)
        return complex(_cast(value.real, "float32"), _cast(value.imag, "float32")) if dtype == "complex64" else value
    if dtype.startswith(("float", "bfloat")) and not isinstance(value, complex):
        value = float(value)
        return math.copysign(LARGEST_SINGLE, value) if dtype == "float32" and LARGEST_SINGLE < abs(value) < math.inf else value
    return value


def _is_single(value: float | complex) -> bool:
    """Is a number, or are both parts of a complex one, a float32?"""
    if isinstance(value, complex):
        return _is_single(value.real) and _is_single(value.imag)
    return not math.isfinite(value) or abs(value) <= LARGEST_SINGLE and unpack("f", pack("f", value)) == (value,)


def joined(parts: Sequence[str], single: str = "") -> str:
    """`a, b`; a single part is followed by `single`."""
    return parts[0] + single if len(parts) == 1 else ", ".join(parts)
