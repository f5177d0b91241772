"""Relations between types, as in torch: same, subtype, join (the type of a value that may have either of two types)."""
from __future__ import annotations

from irtool.ir.type_model import (
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
    tensor_text,
)
from irtool.ir.type_parser import parse_type

NUMBERS = frozenset(("int", "float", "complex"))


def same(a: Type, b: Type) -> bool:
    """Are the two the same type, however spelled? (`string` and `str`; `Dynamic` and `Tensor`)"""
    return a is b or a.key == b.key


def is_subtype(a: Type, b: Type) -> bool:
    """May a value of type `a` be used where a `b` is expected?

    A tensor with more known facts is a subtype of one with fewer; `T` and `None` of `T?`, numbers of `Scalar`, everything of `Any`; tuples
    and futures by their elements. Lists and dicts must have equal elements, but tensors among them may have more known facts.
    """
    if a is b or a.key == b.key or b.key == "Any":
        return True
    if isinstance(a, UnionType):
        return all(is_subtype(element, b) for element in a.elements)
    if isinstance(b, OptionalType):
        if isinstance(a, OptionalType):
            return is_subtype(a.element, b)
        return a.key == "None" or is_subtype(a, b.element)
    if isinstance(b, UnionType):
        if isinstance(a, OptionalType):
            return any(t.key == "None" or isinstance(t, OptionalType) for t in b.elements) and is_subtype(a.element, b)
        return any(is_subtype(a, element) for element in b.elements)
    if isinstance(b, InterfaceType):        # which classes conform is known where they are defined
        return isinstance(a, ClassType | InterfaceType)
    if isinstance(b, SimpleType):
        return _under_simple(a, b.name)
    return _under_same_kind(a, b)


def _under_simple(a: Type, name: str) -> bool:
    if name == "Scalar":
        return a.key in NUMBERS
    if name == "list":
        return isinstance(a, ListType)
    if name in ("tuple", "Tuple"):
        return isinstance(a, TupleType)
    if name == "AnyEnumType":
        return isinstance(a, EnumType)
    if name == "AnyClassType":
        return isinstance(a, ClassType)
    return False


def _under_same_kind(a: Type, b: Type) -> bool:
    if isinstance(b, TensorType):
        return isinstance(a, TensorType) and _refines(a, b)
    if isinstance(b, TupleType):
        if not isinstance(a, TupleType) or len(a.elements) != len(b.elements):
            return False
        if isinstance(b, NamedTupleType) and (not isinstance(a, NamedTupleType) or a.names != b.names):
            return False
        return all(is_subtype(x, y) for x, y in zip(a.elements, b.elements, strict=True))
    if isinstance(b, ListType) and isinstance(a, ListType):
        return _equal_up_to_tensors(a.element, b.element)
    if isinstance(b, DictType) and isinstance(a, DictType):
        return same(a.key_type, b.key_type) and _equal_up_to_tensors(a.value_type, b.value_type)
    if isinstance(b, WrapperType) and isinstance(a, WrapperType) and a.word == b.word:
        return is_subtype(a.element, b.element)
    return False


def _equal_up_to_tensors(a: Type, b: Type) -> bool:
    """Are the types equal, if facts about tensors are ignored at any depth? (Shapes are facts, not part of what a container is declared
    to contain.)"""
    a, b = _once_optional(a), _once_optional(b)
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return _refines(a, b)
    if type(a) is type(b) and a.elements and len(a.elements) == len(b.elements):
        return all(_equal_up_to_tensors(x, y) for x, y in zip(a.elements, b.elements, strict=True)) and (
            not isinstance(a, NamedTupleType) or not isinstance(b, NamedTupleType) or a.names == b.names)
    return same(a, b)


def _once_optional(type: Type) -> Type:
    """Simplifies `T??` to `T?`."""
    while isinstance(type, OptionalType) and isinstance(type.element, OptionalType):
        type = type.element
    return type


def _refines(a: TensorType, b: TensorType) -> bool:
    """Does tensor type `a` contain all facts of `b`?"""
    for name in ("dtype", "requires_grad", "device", "strides", "undefined", "marks"):
        expected = getattr(b, name)
        if expected is not None and getattr(a, name) != expected:
            return False
    if b.sizes is None:
        return True
    return a.sizes is not None and len(a.sizes) == len(b.sizes) and all(y is None or x == y for x, y in zip(a.sizes, b.sizes, strict=True))


def merge_tensors(a: TensorType, b: TensorType) -> TensorType:
    """The facts on which two tensor types agree, in today's spelling."""
    sizes = None
    if a.sizes is not None and b.sizes is not None and len(a.sizes) == len(b.sizes):
        sizes = tuple(x if x == y else None for x, y in zip(a.sizes, b.sizes, strict=True))
    merged = parse_type(tensor_text(
        a.dtype if a.dtype == b.dtype else None, sizes, a.strides if a.strides == b.strides and sizes is not None else None,
        a.requires_grad if a.requires_grad == b.requires_grad else None, a.device if a.device == b.device else None,
        a.undefined if a.undefined == b.undefined else None))
    assert isinstance(merged, TensorType)
    return merged


def join(a: Type, b: Type) -> Type | None:
    """The least type above both, which torch gives the result of an `If` or a `Loop`; None if only Any is above both."""
    if is_subtype(a, b):
        return b
    if is_subtype(b, a):
        return a
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return merge_tensors(a, b)
    for one, other in ((a, b), (b, a)):
        if one.key == "None":
            return parse_type(other.text + "?")
        if isinstance(one, OptionalType):
            inner = join(one.element, other.element if isinstance(other, OptionalType) else other)
            return None if inner is None else inner if isinstance(inner, OptionalType) else parse_type(inner.text + "?")
    return _join_elements(a, b)


def _join_elements(a: Type, b: Type) -> Type | None:
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.elements) == len(b.elements):
        parts = _join_all(a, b)
        if parts is None:
            return None
        if isinstance(a, NamedTupleType) and isinstance(b, NamedTupleType) and a.names == b.names:
            return parse_type("NamedTuple(" + ", ".join(f"{n} : {t.text}" for n, t in zip(a.names, parts, strict=True)) + ")")
        return parse_type("(" + ", ".join(t.text for t in parts) + ")")
    if isinstance(a, WrapperType) and isinstance(b, WrapperType) and a.word == b.word:
        parts = _join_all(a, b)
        return None if parts is None else parse_type(f"{a.word}[{parts[0].text}]")
    if isinstance(a, ListType) and isinstance(b, ListType) and _only_tensors_differ(a, b):
        parts = _join_all(a, b)
        return None if parts is None else parse_type(parts[0].text + "[]")
    if isinstance(a, DictType) and isinstance(b, DictType) and same(a.key_type, b.key_type) and _only_tensors_differ(a, b):
        parts = _join_all(a, b)
        return None if parts is None else parse_type(f"Dict({parts[0].text}, {parts[1].text})")
    return None


def _join_all(a: Type, b: Type) -> list[Type] | None:
    parts: list[Type] = []
    for x, y in zip(a.elements, b.elements, strict=True):
        part = join(x, y)
        if part is None:
            return None
        parts.append(part)
    return parts


def _only_tensors_differ(a: Type, b: Type) -> bool:
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return True
    if type(a) is type(b) and not isinstance(a, UnionType) and a.elements and len(a.elements) == len(b.elements):
        return all(_only_tensors_differ(x, y) for x, y in zip(a.elements, b.elements, strict=True))
    return same(a, b)
