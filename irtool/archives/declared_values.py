"""Comparison of attributes and arguments with the types that an archive declares."""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from functools import lru_cache
from keyword import iskeyword
from operator import is_
from typing import Any

from irtool.archives.container import Container
from irtool.ir.source import quoted
from irtool.ir.types import (
    ClassType,
    DictType,
    EnumType,
    InterfaceType,
    ListType,
    NamedTupleType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)
from irtool.ops.arrays import is_array
from irtool.ops.quantized import Packed, Quantized
from irtool.ops.structure import EnumMember, Object
from irtool.torchscript.class_definitions import ClassDefinition
from irtool.torchscript.library import Library
from irtool.torchscript.meanings import Enumeration

WORDS: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float, int), "bool": (bool,), "complex": (complex, float, int), "str": (str,), "None": (type(None),),
    "NoneType": (type(None),), "Device": (str,), "Scalar": (int, float, complex), "number": (int, float, complex)}
"""Type without elements -> the classes of its values. A type that is not listed fits every value."""


def check_attributes(container: Container, library: Library, definition: ClassDefinition, state: Mapping[Any, Any]) -> dict[str, Any]:
    """The attributes that a class declares, from the state of an instance. Raises Error if one is missing, or has another type."""
    attributes: dict[str, Any] = {}
    for name in definition.declared:
        type = definition.attributes[name]
        if name not in state:
            if str(type) in ("NoneType", "None"):
                attributes[name] = None
                continue
            container.fail("data.pkl", f"an instance of {definition.type} without its attribute '{quoted(name)}'")
        if not fits(state[name], type, library, set()):
            container.fail("data.pkl", f"the attribute '{quoted(name)}' of {definition.type} is a {type_of(state[name])}, expected {type}")
        attributes[name] = state[name]
    return attributes


def fits(value: Any, type: Type, library: Library, seen: set[tuple[int, str]]) -> bool:
    """Has a value this type? Elements of containers are compared too, each container once."""
    if isinstance(type, OptionalType):
        return value is None or fits(value, type.element, library, seen)
    if isinstance(type, UnionType):
        return any(fits(value, each, library, seen) for each in type.elements)
    if isinstance(type, TensorType):
        return is_array(value) or isinstance(value, Quantized)
    if isinstance(type, ListType | DictType | TupleType):
        place = id(value), type.text
        if place in seen:
            return True
        seen.add(place)
        return _items_fit(value, type, lambda item, each: fits(item, each, library, seen))
    if isinstance(type, EnumType):
        return isinstance(value, EnumMember) and value.owner == type.name
    if isinstance(type, ClassType | InterfaceType):
        return isinstance(value, Object | Packed) and (value.type is type or is_interface(type, library))
    kinds = WORDS.get(str(type.key))
    return kinds is None or isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)


def is_interface(type: Type, library: Library) -> bool:
    """Is the type an interface of the archive, which several classes may implement?"""
    definition = library.class_called(str(type))
    return isinstance(definition, ClassDefinition) and definition.is_interface


def _items_fit(value: Any, type: Type, is_fit: Callable[[Any, Type], bool]) -> bool:
    if isinstance(type, ListType):
        return isinstance(value, list) and all([is_fit(item, type.element) for item in value])
    if isinstance(type, DictType):
        return isinstance(value, dict) and all([is_fit(key, type.key_type) and is_fit(each, type.value_type)
                                                for key, each in value.items()])
    return isinstance(value, tuple) and len(value) == len(type.elements) and all(map(is_fit, value, type.elements))


def type_of(value: Any) -> str:
    """The type of a value, for messages."""
    return "tensor" if is_array(value) else str(value.type) if isinstance(value, Object | Packed) else type(value).__name__


@lru_cache(256)
def tuple_class(title: str, names: tuple[str, ...]) -> Any:
    """Python's class for named tuples with these fields; its tuples can be pickled, though no module defines the class."""
    make: Any = namedtuple     # mypy wants literals
    named_tuples = make(title, names, rename=True)
    named_tuples.__reduce__ = lambda self: (named_tuple, (title, names, tuple(self)))
    return named_tuples


def named_tuple(title: str, names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """A named tuple from a pickle."""
    return tuple_class(title, names)(*values)


def named(value: Any, type: Type, library: Library) -> Any:
    """A result for the caller: tuples whose class names the fields become named tuples of a class of that name."""
    if isinstance(type, TupleType) and isinstance(value, tuple):
        elements = tuple([named(item, each, library) for item, each in zip(value, type.elements, strict=True)])
        if not isinstance(type, NamedTupleType):
            return elements
        title = library.title_of(type)
        return named_tuple(title if title.isidentifier() and not iskeyword(title) else "Result", tuple(type.names), elements)
    if isinstance(type, OptionalType) and value is not None:
        return named(value, type.element, library)
    if isinstance(type, ListType) and isinstance(value, list):
        return [named(item, type.element, library) for item in value]
    if isinstance(type, DictType) and isinstance(value, dict):
        return {key: named(item, type.value_type, library) for key, item in value.items()}
    return value


class Member(EnumMember):
    """A member of an enumeration for the caller: with its value."""

    __slots__ = ("value",)
    value: Any


def is_plain(type: Type) -> bool:
    """Need values of this type no conversion for the caller? True without instances, members of enumerations, and names of fields."""
    if isinstance(type, OptionalType | ListType):
        return is_plain(type.element)
    if isinstance(type, TupleType):
        return not isinstance(type, NamedTupleType) and all(map(is_plain, type.elements))
    if isinstance(type, DictType):
        return is_plain(type.value_type)
    return isinstance(type, TensorType) or str(type.key) in WORDS


def outward(value: Any, library: Library, view: Callable[[Object], Any]) -> Any:
    """A value for the caller: instances behind `view`, members of enumerations with their values; the value itself if it contains
    neither."""
    if isinstance(value, Object):
        return view(value)
    if isinstance(value, EnumMember):
        enumeration = library.class_called(value.owner)
        member = Member(value.owner, value.name)
        member.value = enumeration.members.get(value.name) if isinstance(enumeration, Enumeration) else None
        return member
    if not isinstance(value, list | tuple | dict):
        return value
    items = list(value.values()) if isinstance(value, dict) else value
    others = [outward(each, library, view) for each in items]
    if all(map(is_, items, others)):
        return value
    if isinstance(value, dict):
        return dict(zip(value, others, strict=True))
    return type(value)(*others) if hasattr(value, "_fields") else type(value)(others)


def inward(value: Any) -> Any:
    """A value from the caller: each view is replaced by the instance that it shows."""
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)([inward(each) for each in value])
    if isinstance(value, dict):
        return {key: inward(each) for key, each in value.items()}
    return value._instance if isinstance(value, View) else value


class View:
    """The object that users see of an instance."""

    __slots__ = ("_instance",)
    _instance: Object


def holds_instance(value: Any) -> bool:
    """Is the value an instance, or does it contain one?"""
    if isinstance(value, list | tuple | dict):
        return any(map(holds_instance, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Object)
