"""Erasure of shapes."""
from __future__ import annotations

from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.constants import CONSTANT_KINDS, known_argument
from irtool.ir.graph import Graph, Use, Value
from irtool.ir.schema import node_argument, schema_of
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
from irtool.ops.call import find_overload
from irtool.ops.facts import CASTS
from irtool.ops.folding import array_of
from irtool.ops.promotion import Rule

FLOATS = ("float16", "bfloat16", "float32")
"""dtypes of which the shown number, a float64, becomes the same element."""


def erase_shapes(graph: Graph) -> bool:
    """Replace every tensor type by `Tensor`, without dtype, sizes, strides and device.

    A constant of one element gets its array beside its text where this shows neither the dimensions nor the dtype (`{3}` is a `Long()`,
    `{0.5}` a `Double()`). A number of another dtype, or a text that may be rounded, keeps its type. Neither is necessary if every node that
    reads the constant converts it to a dtype that does not depend on it.

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
    needs_type = {value for value in graph.values() if _is_told_by_type(value) and not _put_array(value)}
    changed = False
    for value in graph.values():
        old = value.type
        new = erased.get(old)
        if new is None:
            new = erased[old] = without_shapes(old, plain)
        if new is not old and value not in needs_type:
            value.type = new
            changed = True
    return changed


def _is_told_by_type(value: Value) -> bool:
    """Is a value a tensor constant with dimensions, or of a dtype that its text (`{3}`) does not show and that results depend on?"""
    attribute = value.node.attributes.get("value") if value.node.kind in CONSTANT_KINDS else None
    type = value.type
    if attribute is None or not attribute.text.startswith("{") or not isinstance(type, TensorType) or attribute.array is not None:
        return False
    shown = "int64" if attribute.text.strip("{}").lstrip("-").isdigit() else "float64"
    if type.sizes or type.dtype in (None, shown):
        return bool(type.sizes)
    return not all([_converts(use, type, shown) for use in value.uses])


def _put_array(value: Value) -> bool:
    """Put the array of a constant beside its text, so that its type is no longer necessary. Returns whether that was possible."""
    node = value.node
    literal = node.attributes["value"].as_type(value.type)
    if not isinstance(literal, TensorLiteral) or literal.is_number or literal.is_rounded:
        return False
    array = array_of(literal)
    if array is literal:
        return False
    node.set_attribute("value", Attribute(literal.text, TensorLiteral(literal.text, literal.dtype, literal.shape, array)))
    return True


def _converts(use: Use, declared: TensorType, shown: str) -> bool:
    """Does a node convert a constant to a dtype that other operands decide, and to the same element if its dtype were the shown one?"""
    node = use.user
    result = node.outputs[0].type if len(node.outputs) == 1 else None
    if not isinstance(result, TensorType) or shown == "float64" and not result.dtype == declared.dtype in FLOATS:
        return False
    if node.kind in CASTS:
        return use.slot == 0 and (isinstance(known_argument(node, "dtype"), int) or node_argument(node, "other") is not None)
    schema = schema_of(node)
    overload = find_overload(schema.name) if schema is not None else None
    if overload is None or not isinstance(overload.promote, Rule) or overload.promote.result != "compute" or node.attributes:
        return False
    operands = [node.inputs[place] for place in overload.promoted if place < len(node.inputs)]
    return use.slot in overload.promoted and result.dtype not in (None, "bool") and any(
        isinstance(other.type, TensorType) and other.type.dtype == result.dtype and other.node.kind not in CONSTANT_KINDS
        for other in operands)      # the dtype that another constant shows is as uncertain


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
