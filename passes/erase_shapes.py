"""Erasure of shapes."""
from __future__ import annotations

from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.graph import Graph, Value
from irtool.ir.types import (
    TENSOR,
    DictType,
    ListType,
    NamedTupleType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    dict_of,
    list_of,
    named_tuple_of,
    optional,
    spell,
    tuple_of,
)


def erase_shapes(graph: Graph) -> bool:
    """Replace every tensor type by `Tensor`, without dtype, sizes, strides and device.

    A constant of one element keeps its type where its text does not show the dimensions or the dtype: `{3}` is a `Long()`, `{0.5}` a
    `Double()`.

    before:
        graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)):
          %1 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::tanh(%x)
          return (%1)

    after:
        graph(%x : Tensor):
          %1 : Tensor = aten::tanh(%x)
          return (%1)
    """
    plain = spell(TENSOR, graph.dialect)
    erased: dict[Type, Type] = {}
    changed = False
    for value in graph.values():
        old = value.type
        new = erased.get(old)
        if new is None:
            new = erased[old] = without_shapes(old, plain)
        if new is not old and not _is_told_by_type(value):
            value.type = new
            changed = True
    return changed


def _is_told_by_type(value: Value) -> bool:
    """Is a value a tensor constant with dimensions or of a dtype that its text (`{3}`) does not show?"""
    attribute = value.node.attributes.get("value") if value.node.kind in CONSTANT_KINDS else None
    if attribute is None or not attribute.text.startswith("{") or not isinstance(value.type, TensorType):
        return False
    shown = "int64" if attribute.text.strip("{}").lstrip("-").isdigit() else "float64"
    return bool(value.type.sizes) or value.type.dtype not in (None, shown)


def without_shapes(type: Type, plain: Type) -> Type:
    """The type with each tensor type in it replaced by `plain`; the same object if it contains none."""
    if isinstance(type, TensorType):
        return type if type.key == plain.key else plain
    parts = [without_shapes(element, plain) for element in type.elements]
    if all(new is old for new, old in zip(parts, type.elements, strict=True)):
        return type
    if isinstance(type, ListType):
        return list_of(parts[0])
    if isinstance(type, OptionalType):
        return optional(parts[0])
    if isinstance(type, DictType):
        return dict_of(parts[0], parts[1])
    if isinstance(type, NamedTupleType):
        return named_tuple_of(type.names, parts)
    return tuple_of(parts) if isinstance(type, TupleType) else type
