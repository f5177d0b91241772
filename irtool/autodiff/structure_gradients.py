"""Gradients through nodes that put lists and tuples together, take them apart, or give a value another type or another name."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.autodiff.gradients import Gradients
from irtool.autodiff.list_gradients import unpack
from irtool.ir.constants import constant, is_constant
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Node, Value
from irtool.ir.structure_kinds import STRUCTURE
from irtool.ir.types import NamedTupleType, TupleType
from irtool.partial.items import NONE, Item, Items, elements


def reverse_construct(grads: Gradients, node: Node) -> None:
    """The gradient of a list or tuple goes to its elements."""
    whole = grads.current[node.output]
    parts: Sequence[Item] | None = elements(whole)
    if parts is None:
        assert isinstance(whole, Value)
        parts = unpack(grads, whole, node.inputs) if node.inputs else []
    for value, part in zip(node.inputs, parts, strict=True):
        if value in grads.needs:
            grads.add(value, part)


def reverse_unpack(grads: Gradients, node: Node) -> None:
    """The gradients of the elements make that of the list or tuple.

    The gradient of a list that no operator of the same block computed has undefined elements rather than none.
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
    """The gradient of one element of a tuple: the tuple's, in which the other elements have none."""
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
    """The gradient of a value under another type is that of the value."""
    grads.add(node.inputs[0], grads.renamed(grads.current[node.output]))


def reverse_sum(grads: Gradients, node: Node) -> None:
    """The gradient of a sum of gradients is that of each."""
    for value in node.inputs:
        if value in grads.needs:
            grads.add(value, grads.renamed(grads.current[node.output]))
