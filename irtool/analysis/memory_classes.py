"""Memory classes: names, computed from types, such that values may share memory only if their classes are equal, or one is ANYTHING."""
from __future__ import annotations

from irtool.ir.types import (
    AwaitType,
    ClassType,
    DictType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    RRefType,
    SimpleType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)

ANYTHING = "?"
"""The memory class of types whose values may be anything."""
_classes: dict[Type, str] = {}
_IMMUTABLE = frozenset(("int", "float", "bool", "complex", "str", "Scalar", "None", "Device", "Function", "Layout", "QScheme", "Stream",
                        "AnyEnumType"))


def memory_class(type: Type) -> str:
    """The memory class of values of a type; empty for values that cannot be written into."""
    cached = _classes.get(type)
    if cached is None:
        if len(_classes) > 50_000:
            _classes.clear()
        cached = _classes[type] = _memory_class(type)
    return cached


def _memory_class(type: Type) -> str:
    if isinstance(type, TensorType):
        return "T"
    if isinstance(type, OptionalType):
        return memory_class(type.element)
    if isinstance(type, ListType):
        return (memory_class(type.element) or str(type.element.key)) + "[]"
    if isinstance(type, DictType):
        return f"D({type.key_type.key}, {memory_class(type.value_type) or type.value_type.key})"
    if isinstance(type, TupleType):
        inner = [memory_class(element) for element in type.elements]
        return f"({', '.join(inner)})" if any(inner) else ""
    if isinstance(type, UnionType):
        return ANYTHING if any(memory_class(element) for element in type.elements) else ""
    if isinstance(type, SimpleType):
        return "" if type.key in _IMMUTABLE else "G" if type.key == "Generator" else ANYTHING
    if isinstance(type, ClassType):     # a write of an attribute changes an object, no tensor
        return f"C({type.text})"
    if isinstance(type, (InterfaceType, FutureType, RRefType, AwaitType)):
        return ANYTHING
    return "" if type.text.startswith("Enum<") else ANYTHING


def is_mutable(type: Type) -> bool:
    """May a value of a type be written into, or contain a value that may?"""
    return bool(memory_class(type))


def contained_classes(type: Type) -> tuple[str, ...]:
    """The memory classes of values in a container of a type, at any depth; empty for a tensor or a number."""
    out: list[str] = []
    for element in type.elements:
        inner = memory_class(element)
        if inner and not isinstance(type, OptionalType):
            out.append(inner)
        out.extend(contained_classes(element))
    if not type.elements and (memory_class(type) == ANYTHING or isinstance(type, ClassType)):
        out.append(ANYTHING)
    return tuple(out)


def classes_meet(a: str, b: str) -> bool:
    """May two wild values of these classes share memory?"""
    return a == b or a == ANYTHING or b == ANYTHING
