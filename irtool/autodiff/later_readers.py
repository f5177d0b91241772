"""What reads the memory of a tensor after a node, by any name of it."""
from __future__ import annotations

from collections.abc import Iterator

from irtool.analysis.alias import Aliases
from irtool.ir.graph import RETURN, Node, Value
from irtool.ir.structure_kinds import CONTAINERS, LIST_RESHAPING_KINDS
from irtool.ir.types import ListType, TensorType
from irtool.ops.size_facts import OVERLAPPING_VIEWS


def is_alone(aliases: Aliases, value: Value, node: Node) -> bool:
    """After `node`, is the memory of `value` read only through `value` and the results of `node`? False for a value of another block."""
    block = node.owner_block
    if value.node.owner is not block:
        return False
    names = aliases.names_of(value)
    for other in reversed(names):       # the last aliases are the most likely to be read after the node
        if other is value or other in node.outputs or not isinstance(other.type, TensorType):
            continue
        if other.node.kind in OVERLAPPING_VIEWS or not block.contains(other.node) or any(is_later(user, node) for user, _ in other.uses):
            return False
    return value.node.kind not in OVERLAPPING_VIEWS and not any(
        is_held(user, node) for other in names if isinstance(other.type, TensorType) and other not in node.outputs
        for user, _ in other.uses)


def is_held(user: Node, node: Node) -> bool:
    """Does a reader of a tensor put it into a list or another container that is read after `node`?"""
    if user.kind not in CONTAINERS:
        return False
    if not user.outputs and not user.kind.startswith("aten::"):
        return True         # an instance, which may have other names
    container = user.inputs[0] if user.kind.startswith("aten::") else user.output
    return any(reader.kind in CONTAINERS and reader is not user or is_later(reader, node) or is_handed_on(reader)
               for each in (container, *made_of(container)) for reader, _ in each.uses)


def is_handed_on(reader: Node) -> bool:
    """Does a reader forward what it reads as another value: a node with blocks, or the end of a block?"""
    return bool(reader.blocks) or reader.kind == RETURN and reader.owner_block.owning_node is not None


def made_of(container: Value) -> Iterator[Value]:
    """Lists made from the elements of a list (slices, sums, copies), and recursively lists made from those."""
    lists, seen = [container], {container}
    while lists:
        for reader, _ in lists.pop().uses:
            if reader.kind in LIST_RESHAPING_KINDS and len(reader.outputs) == 1 and isinstance(reader.output.type, ListType) \
                    and reader.output not in seen:
                seen.add(reader.output)
                lists.append(reader.output)
                yield reader.output


def is_later(user: Node, node: Node) -> bool:
    """Does `user`, a reader of a value of the block of `node`, run after `node`?"""
    while user.owner is not node.owner:
        owner = user.owner_block.owning_node
        if owner is None:
            return True
        user = owner
    return user.kind == "prim::Return" or user is not node and node.before_in_block(user)
