"""Captured values that f overwrites later: df needs the value before the write, so f copies it, and df captures the copy."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.analysis.alias import Aliases
from irtool.analysis.list_changes import ancestor
from irtool.autodiff.captures import Captures
from irtool.autodiff.in_place import live_nodes
from irtool.autodiff.refusals import at_node
from irtool.ir.builder import Builder
from irtool.ir.effects import changes_list, node_may_write, updates_statistics
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import RETURN, Node, Value
from irtool.ir.places import place_of
from irtool.ir.types import TensorType


def copy_before_writes(captures: Captures) -> None:
    """Replace captured values that a write remaining in f overwrites by copies made before the write.

    Raises UnsupportedError, at the write, if df might need the value before the write or the one after it: the value is read on both
    sides, or the write is in another block.
    """
    f = captures.f
    writers = [node for node in live_nodes(f) if node_may_write(node) and not changes_list(node)]
    if not writers:
        return
    aliases = Aliases(f)
    read = captures.values_read()
    for value, stand_in in list(captures.at_top.items()):
        if stand_in not in read:
            continue
        saved = captures.saved_lists.get(value)
        inner = saved[0] if saved is not None else captures.exports.get(value)
        while inner is not None:        # the value of a round or branch that the captured value saves or exports
            late = next((node for node in writers if aliases.writes_into(node, (inner,)) and not is_earlier(node, inner)), None)
            if late is not None:
                refuse(captures, value, late)
            inner = captures.saved_lists[inner][0] if inner in captures.saved_lists else captures.exports.get(inner)
        if saved is None and not all(updates_statistics(user) or user.kind == RETURN for user, _ in value.uses):
            # (the gradient of a batch norm reads running statistics only if it does not write them)
            copy_before_write(captures, [node for node in writers if aliases.writes_into(node, (value,))], value)


def copy_before_write(captures: Captures, writers: Sequence[Node], value: Value) -> None:
    """The same for one value of the top level; writers: the nodes that may write into it."""
    f = captures.f
    places = [place for node in writers if (place := ancestor(node, f.block)) is not None and place is not value.node
              and (value.is_block_input or value.node.before_in_block(place))]
    if not places:
        return
    write = min(places, key=lambda place: place_of(f.block, place))
    readers = [ancestor(user, f.block) for user, _ in value.uses if user.kind != RETURN or user.owner is not f.block]
    if not isinstance(value.type, TensorType) or any(
            reader is not None and (reader is write and bool(write.blocks) or write.before_in_block(reader)) for reader in readers):
        refuse(captures, value, write)
    copy = Builder(f).before(write).call("aten::clone", value, None, type=value.type)
    captures.at_top[copy] = captures.at_top.pop(value)
    captures.note(copy, value)


def is_earlier(node: Node, value: Value) -> bool:
    """Does a node run only before a value is computed, in the same round of the same loop?"""
    block = value.node.owner_block
    return node is value.node or block.owning_node is not None and node.owner is block and not value.is_block_input \
        and node.before_in_block(value.node) and value.node.kind not in ("prim::Loop",) and is_new(value)


def is_new(value: Value) -> bool:
    """Is a value certainly in new memory, since its node has no tensor operands?"""
    return not any(isinstance(each.type, TensorType) for each in value.node.inputs)


def refuse(captures: Captures, value: Value, node: Node) -> None:
    """Raises UnsupportedError at the write."""
    raise at_node(captures.f, UnsupportedError(f"the gradient needs %{value.name}, which {node.kind} overwrites, and is not supported "
                                               "where that is read on both sides of the write", code="E0501"), node)
