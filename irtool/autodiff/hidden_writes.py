"""Writes into memory that is read under another name afterwards: `out[0] = x` writes into `out` through a view of it.

Gradients follow names, so what is written that way would have none.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator

from irtool.analysis.alias import Aliases
from irtool.analysis.list_changes import ancestor
from irtool.autodiff.in_place import live_nodes, made_of
from irtool.ir.effects import LOOP_KINDS, MUTATORS, node_may_write
from irtool.ir.graph import RETURN, Graph, Node, Value
from irtool.ir.structure_kinds import CONTAINERS
from irtool.ir.types import ListType, TensorType


def hidden_writes(graph: Graph, needs: set[Value]) -> Iterator[Node]:
    """Nodes that write into a tensor that is read behind them by another name than that of their result, where gradients are involved."""
    writers = [node for node in live_nodes(graph) if is_writer(node)]
    if not writers:
        return
    aliases = Aliases(graph)
    for node in writers:
        target = node.inputs[0]
        names = [value for value in aliases.names_of(target) if value is not node.outputs[0] and isinstance(value.type, TensorType)]
        if not any(value in needs for value in (*node.inputs, *names)):
            continue
        if any(read_after(value, node) for value in (*names, *changing_lists((target, *names)))):
            yield node


def changing_lists(names: Iterable[Value]) -> Iterator[Value]:
    """Lists that hold one of these tensors and are changed somewhere, and lists that are made of lists with one of them.

    Their elements have gradients of their own, by place, which a write into the tensor does not reach.
    """
    for name in names:
        for user, slot in name.uses:
            if user.kind not in CONTAINERS or user.kind in MUTATORS and slot == 0:
                continue
            holder = user.inputs[0] if user.kind in MUTATORS else user.output
            if isinstance(holder.type, ListType) and any(reader.kind in MUTATORS and place == 0 for reader, place in holder.uses):
                yield holder
            yield from made_of(holder)


def is_writer(node: Node) -> bool:
    """Does it write into the tensor that is its first operand, and give that back?"""
    return node.kind.endswith("_") and not node.kind.endswith("__") and len(node.outputs) == 1 and len(node.inputs) > 0 \
        and isinstance(node.inputs[0].type, TensorType) and node_may_write(node)


def read_after(value: Value, node: Node) -> bool:
    """May a value be read when `node` has run?"""
    writer: Node | None = node
    while writer is not None:
        block = writer.owner_block
        for user, _ in value.uses:
            place = ancestor(user, block)
            if place is not None and place is not writer and (place.kind == RETURN or writer.before_in_block(place)):
                return True
        above = block.owning_node
        if above is not None and above.kind in LOOP_KINDS and not block.contains(value.node) and value.node is not block.param_node and any(
                user is not node and ancestor(user, above.owner_block) is above for user, _ in value.uses):
            return True
        writer = above
    return False
