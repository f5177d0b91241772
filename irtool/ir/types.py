"""Types: interned by their exact text, so that printing restores the text that was read.

`parse_type("Float(2, 3)")` returns one object per text; `a is b` means the same spelling, `same(a, b)` the same type. The kinds of types
are in `type_model`, the parser in `type_parser`, the relations in `subtyping`, spelling for dialects in `type_spelling`.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from irtool.ir.subtyping import is_subtype, join, merge_tensors, same
from irtool.ir.type_model import (
    DTYPE_WORDS,
    DTYPES,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    InterfaceType,
    ListType,
    NamedTupleType,
    OptionalType,
    RRefType,
    SimpleType,
    TensorType,
    TupleType,
    Type,
    TypeVar,
    UnionType,
    WrapperType,
    contiguous_strides,
    tensor_text,
)
from irtool.ir.type_parser import TypeSyntaxError, parse_type, read_type
from irtool.ir.type_spelling import spell

__all__ = [
    "ANY", "BOOL", "COMPLEX", "DEVICE", "DTYPES", "DTYPE_WORDS", "FLOAT", "FUNCTION", "GENERATOR", "INT",
    "NONE", "NUMBER", "STR", "STREAM", "TENSOR", "UNDEFINED", "AwaitType", "ClassType", "DictType",
    "EnumType", "FutureType", "InterfaceType", "ListType", "NamedTupleType", "OptionalType", "RRefType", "SimpleType",
    "TensorType", "TupleType", "Type", "TypeSyntaxError", "TypeVar", "UnionType", "WrapperType", "contiguous_strides", "dict_of",
    "is_subtype", "join", "list_of", "merge_tensors", "named_tuple_of", "optional", "parse_type", "read_type", "same", "spell",
    "tensor_type", "tuple_of", "union_of",
]

TENSOR = parse_type("Tensor")
UNDEFINED = parse_type("Tensor[AutogradZero]")
INT = parse_type("int")
FLOAT = parse_type("float")
BOOL = parse_type("bool")
COMPLEX = parse_type("complex")
STR = parse_type("str")
NUMBER = parse_type("Scalar")
NONE = parse_type("NoneType")
ANY = parse_type("Any")
DEVICE = parse_type("Device")
GENERATOR = parse_type("Generator")
STREAM = parse_type("Stream")
FUNCTION = parse_type("Function")


def list_of(element: Type) -> Type:
    """`T[]`."""
    return parse_type(element.text + "[]")


def optional(element: Type) -> Type:
    """`T?`; a type that may already be None is returned unchanged."""
    if isinstance(element, OptionalType) or element.key in ("None", "Any"):
        return element
    return parse_type(element.text + "?")


def tuple_of(elements: Iterable[Type]) -> Type:
    """`(A, B)`."""
    return parse_type("(" + ", ".join(t.text for t in elements) + ")")


def named_tuple_of(names: Sequence[str], elements: Iterable[Type]) -> Type:
    """`NamedTuple(a : A, b : B)`."""
    return parse_type("NamedTuple(" + ", ".join(f"{n} : {t.text}" for n, t in zip(names, elements, strict=True)) + ")")


def dict_of(key: Type, value: Type) -> Type:
    """`Dict(K, V)`."""
    return parse_type(f"Dict({key.text}, {value.text})")


def union_of(elements: Iterable[Type]) -> Type:
    """`Union(A, B)`."""
    return parse_type("Union(" + ", ".join(t.text for t in elements) + ")")


def tensor_type(dtype: str | None = None, sizes: Sequence[int | None] | None = None, strides: Sequence[int] | None = None,
                requires_grad: bool | None = None, device: str | None = None, undefined: bool | None = None) -> TensorType:
    """A tensor type in today's spelling; `dtype` is torch's name (`float32`). `spell` spells it in other dialects."""
    parsed = parse_type(tensor_text(dtype, None if sizes is None else tuple(sizes), None if strides is None else tuple(strides),
                                   requires_grad, device, undefined))
    assert isinstance(parsed, TensorType)
    return parsed
