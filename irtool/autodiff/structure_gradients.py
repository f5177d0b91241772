"""Gradients through nodes that construct or unpack lists and tuples, and through casts of types."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.autodiff.gradients import Gradients
from irtool.autodiff.list_gradients import unpack
from irtool.ir.constants import constant, is_constant
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Node, Value
from irtool.ir.structure_kinds import STRUCTURE
from irtool.ir.types import NamedTupleType, TupleType
from irtool.ir.verify_types import flows
from irtool.partial.items import NONE, Item, Items, elements


def reverse_construct(grads: Gradients, node: Node) -> None:
    """Differentiate the construction of a list or tuple: pass the elements of its gradient on to the elements."""
    whole = grads.current[node.output]
    declared = node.output.type
    for value, element in zip(node.inputs, declared.elements, strict=True) if isinstance(declared, TupleType) else ():
        if value in grads.needs and not flows(value.type, element):     # which texts before 2019 can say
            raise UnsupportedError(f"the gradient of {node.kind} is not supported where it makes {declared} of "
                                   f"%{value.name} : {value.type}", code="E0501")
    parts: Sequence[Item] | None = elements(whole)
    if parts is None:
        assert isinstance(whole, Value)
        parts = unpack(grads, whole, node.inputs) if node.inputs else []
    for value, part in zip(node.inputs, parts, strict=True):
        if value in grads.needs:
            grads.add(value, part)


def reverse_unpack(grads: Gradients, node: Node) -> None:
    """Differentiate an unpacking: the gradients of the elements are the gradient of the list or tuple.

    Missing elements are undefined gradients if no operator of the same block returned the list: then no formula fills in zeros.
    """
    source = node.inputs[0]
    parts = [grads.current.get(value, NONE) for value in node.outputs]
    if node.kind == "prim::ListUnpack":
        maker = source.node
        if maker.owner is not node.owner or maker.blocks or source.is_block_input or maker.kind in STRUCTURE:
            parts = [grads.undefined(value) if item == NONE else item for item, value in zip(parts, node.outputs, strict=True)]
    if source in grads.needs:
        grads.add(source, Items(parts, node.kind == "prim::TupleUnpack", source.type))


def reverse_tuple_index(grads: Gradients, node: Node) -> None:
    """Differentiate a `TupleIndex`: the gradient of the tuple has one element, the others have none. Raises UnsupportedError."""
    whole = node.inputs[0]
    place = constant(node.inputs[1]) if len(node.inputs) == 2 and is_constant(node.inputs[1]) else node.attributes["index"].value \
        if "index" in node.attributes else None
    count = len(whole.type.elements)
    if not isinstance(whole.type, TupleType | NamedTupleType) or not isinstance(place, int) or not -count <= place < count:
        raise UnsupportedError("the gradient of prim::TupleIndex is supported only where the index is a constant", code="E0501")
    if whole in grads.needs:
        parts: list[Item] = [NONE] * count
        parts[place] = grads.current[node.output]
        grads.add(whole, Items(parts, True, whole.type))


def reverse_cast(grads: Gradients, node: Node) -> None:
    """Differentiate a cast of types: each operand (of a tuple that was taken apart there are several) has the gradient of its result."""
    for value, result in zip(node.inputs, node.outputs, strict=False):
        if value in grads.needs and result in grads.current:
            grads.add(value, grads.renamed(grads.current[result]))


def reverse_sum(grads: Gradients, node: Node) -> None:
    """Differentiate a sum of gradients: both operands have the gradient of the result."""
    for value in node.inputs:
        if value in grads.needs:
            grads.add(value, grads.renamed(grads.current[node.output]))
