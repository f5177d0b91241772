"""Writes into memory that a later node reads through another value: `out[0] = x` writes into `out` through a view.

The sweep follows values, not memory, so the gradient of such a write would be lost.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from irtool.analysis.alias import Aliases
from irtool.analysis.list_changes import ancestor, comes_before
from irtool.autodiff.in_place import live_nodes
from irtool.ir.effects import LOOP_KINDS, MUTATORS, node_may_write
from irtool.ir.graph import PARAM, RETURN, Graph, Node, Value
from irtool.ir.structure_kinds import CONTAINERS
from irtool.ir.types import TensorType
from irtool.partial.items import holds_tensor


def hidden_writes(graph: Graph, needs: set[Value]) -> Iterator[Node]:
    """Nodes that write into a tensor whose memory a later node reads through another value than the write's result, if a gradient reaches
    the tensor, an alias of it, or an operand."""
    writers = [node for node in live_nodes(graph) if is_writer(node)]
    if not writers:
        return
    aliases = Aliases(graph)
    for node in writers:
        target = node.inputs[0]
        names = [value for value in aliases.names_of(target) if value is not node.outputs[0] and isinstance(value.type, TensorType)]
        if not any(value in needs for value in (*node.inputs, *names)):
            continue
        if any(read_after(value, node) for value in (*names, *holders((target, *names), node))):
            yield node


def holders(names: Iterable[Value], node: Node) -> Iterator[Value]:
    """Containers that hold one of these tensors when `node` runs, and lists of them that change.

    The elements of a container have separate gradients, which a write into the tensor does not reach.
    """
    values = list(names)
    seen = set(values)
    for value in values:        # the loop appends to it
        for user, slot in value.uses:
            if isinstance(value.type, TensorType) and user.kind not in CONTAINERS or user.kind in MUTATORS and slot == 0:
                continue
            for holder in user.inputs[:1] if user.kind in MUTATORS else results(user, slot):
                if holder in seen or isinstance(holder.type, TensorType) or not holds_tensor(holder.type):
                    continue
                seen.add(holder)
                values.append(holder)
                if any(reader.kind in MUTATORS and place == 0 for reader, place in holder.uses) or not comes_before(node, user) \
                        or runs_in_next_round(node, user, value):
                    yield holder


def results(user: Node, slot: int) -> Sequence[Value]:
    """The values that an operand of a node may become: its results, and across the ends of branches and the rounds of loops."""
    owner = user.owner_block.owning_node
    if user.kind in LOOP_KINDS:
        return (user.outputs[slot - 2], user.blocks[0].inputs[slot - 1]) if slot >= 2 else ()
    if user.kind != RETURN or owner is None:
        return user.outputs
    if owner.kind not in LOOP_KINDS:
        return owner.outputs[slot:slot + 1]
    return (owner.outputs[slot - 1], owner.blocks[0].inputs[slot]) if slot >= 1 else ()


def runs_in_next_round(node: Node, user: Node, value: Value) -> bool:
    """Are both nodes in one loop, and does `value` come from outside its body? Then `node` runs after the previous round's `user`."""
    loop = node.owner_block.owning_node
    while loop is not None and not (loop.kind in LOOP_KINDS and loop.blocks[0].contains(user)):
        loop = loop.owner_block.owning_node
    return loop is not None and (value.node.kind == PARAM or not loop.blocks[0].contains(value.node))


def is_writer(node: Node) -> bool:
    """Does a node write into its first operand, a tensor, and return that operand?"""
    return node.kind.endswith("_") and not node.kind.endswith("__") and len(node.outputs) == 1 and len(node.inputs) > 0 \
        and isinstance(node.inputs[0].type, TensorType) and node_may_write(node)


def read_after(value: Value, node: Node) -> bool:
    """May a value be read after `node` ran?"""
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
