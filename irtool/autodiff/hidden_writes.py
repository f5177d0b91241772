"""Writes into memory that is read under another name afterwards: `out[0] = x` writes into `out` through a view of it.

Gradients follow names, so what is written that way would have none.
"""
from __future__ import annotations

from collections.abc import Iterator

from irtool.analysis.alias import Aliases
from irtool.analysis.list_changes import ancestor
from irtool.autodiff.in_place import live_nodes
from irtool.ir.effects import LOOP_KINDS, node_may_write
from irtool.ir.graph import RETURN, Graph, Node, Value
from irtool.ir.types import TensorType


def hidden_writes(graph: Graph, needs: set[Value]) -> Iterator[Node]:
    """Nodes that write into a tensor that is read behind them by another name than that of their result, where gradients are involved."""
    writers = [node for node in live_nodes(graph) if is_writer(node)]
    if not writers:
        return
    aliases = Aliases(graph)
    for node in writers:
        target = node.inputs[0]
        names = [value for value in aliases.names_of(target) if value is not node.outputs[0] and isinstance(value.type, TensorType)]
        if any(value in needs for value in (*node.inputs, *names)) and any(read_after(value, node) for value in names):
            yield node


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
