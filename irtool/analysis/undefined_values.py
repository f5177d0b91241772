"""Which values may be the undefined tensor, which is None in a run."""
from __future__ import annotations

from irtool.analysis.definedness import WRITERS
from irtool.ir.effects import IF_KINDS, LOOP_KINDS
from irtool.ir.graph import PARAM, Value
from irtool.ir.pair import is_input_of_reverse
from irtool.ir.structure_kinds import ELEMENT_KINDS, UNDEFINED_KINDS
from irtool.ir.types import ListType, TensorType, TupleType


def may_be_undefined(value: Value) -> bool:
    """May a value be the undefined tensor, or a list with one: a result of a node that makes one, of a sum of gradients, of a region, or of
    branches and loops that return such values; an element of such a list, or of a list among the inputs of a df?"""
    pending, seen = [value], {value}
    while pending:
        value = pending.pop()
        node, more = value.node, []
        if node.kind in UNDEFINED_KINDS or node.kind in ("prim::AutogradAdd", "prim::GradOf") \
                or isinstance(value.type, TensorType) and value.type.undefined:
            return True
        if node.kind in IF_KINDS:
            more = [block.outputs[value.index] for block in node.blocks]
        elif node.kind in LOOP_KINDS:
            more = [node.inputs[value.index + 2], node.blocks[0].outputs[value.index + 1]]
        elif node.kind == PARAM and (owner := node.owner_block.owning_node) is not None and owner.kind in LOOP_KINDS and value.index:
            more = [owner.inputs[value.index + 1], owner.blocks[0].outputs[value.index]]
        elif node.kind == PARAM and isinstance(value.type, ListType) and is_input_of_reverse(value):
            return True
        elif node.kind in ELEMENT_KINDS and isinstance(node.inputs[0].type, ListType | TupleType):
            more = [node.inputs[0]]
        elif isinstance(value.type, ListType | TupleType):
            changes = [use.user for use in value.uses if use.user.kind in WRITERS and use.slot == 0]
            more = [*node.inputs, *[change.inputs[WRITERS[change.kind]] for change in changes]]
        pending += [each for each in more if each not in seen]
        seen.update(more)
    return False
