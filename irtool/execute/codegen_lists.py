"""Lists that a loop fills, an item in each round, and that are only read afterwards: results of all rounds, or what is kept for df.

Their items are known like any other value of the plan: one that is the same in all rounds is read from nowhere, and an array has
the facts of the array that was appended.
"""
from __future__ import annotations

from collections.abc import Sequence

from irtool.execute.codegen_numbers import bounds_of
from irtool.execute.codegen_program import Item, Known, Variable
from irtool.ir.constants import constant
from irtool.ir.effects import LOOP_KINDS, node_may_write
from irtool.ir.graph import Block, Node, Value
from irtool.ir.types import TensorType

APPEND, GET = "aten::append", "aten::__getitem__"


class RoundList:
    """A list and the loop that fills it. item: what a round appends, as the loop was lowered last; count: how many."""

    __slots__ = ("loop", "variable", "item", "count")

    def __init__(self, loop: Node) -> None:
        self.loop = loop
        self.variable: Variable | None = None
        self.item: Item | None = None
        self.count = 0

    def appended(self, item: Item, limit: Item) -> bool:
        """A round appends this; limit: the number of rounds. Says whether enough is known to tell later what is in the list."""
        self.count = limit.value if isinstance(limit, Known) and type(limit.value) is int else 0
        known = self.count > 0 and is_same(item) or isinstance(item, Variable) and item.meta is not None
        self.item = item if known else None
        return known

    def holds(self, index: Item) -> bool:
        """Is there certainly an item for an index?"""
        bounds = index.bounds if isinstance(index, Variable) else bounds_of(index.value) if isinstance(index, Known) else None
        return bounds is not None and (0 <= bounds[0] and bounds[1] < self.count or -self.count <= bounds[0] and bounds[1] < 0)


def round_list(node: Node) -> RoundList | None:
    """What is known of the list that a node makes; None where it is not of this kind."""
    value, block = node.output, node.owner_block
    appends = [user for user, slot in value.uses if user.kind == APPEND and not slot]
    readers = [user for user, slot in value.uses if user.kind != APPEND or slot]
    if node.inputs or len(appends) != 1 or appends[0].output.has_uses or not all(only_reads(each, block) for each in readers):
        return None
    loop = appends[0].owner_block.owning_node
    if loop is None or loop.kind not in LOOP_KINDS or loop.owner is not block or not is_counted(loop):
        return None
    outer = [ancestor(each, block) for each in readers]
    return RoundList(loop) if all(each is not None and loop.before_in_block(each) for each in outer) else None


def only_reads(user: Node, block: Block) -> bool:
    """Does a node take items out of a list, or make tensors of them, or return them from the graph, and nothing else with it?"""
    if user is block.return_node:
        return block.owning_node is None
    return user.kind == GET or not (user.blocks or node_may_write(user)) and all(isinstance(each.type, TensorType) for each in user.outputs)


def ancestor(node: Node, block: Block) -> Node | None:
    """The node of a block in which a node stands."""
    at: Node | None = node
    while at is not None and at.owner is not block:
        at = at.owner_block.owning_node
    return at


def is_counted(loop: Node) -> bool:
    """Does only the count end a loop?"""
    return is_true(loop.inputs[1]) and is_true(loop.blocks[0].outputs[0])


def begins_undefined(loop: Node, start: Sequence[Item]) -> bool:
    """Does a counted loop begin with tensors that are not there, as sums of gradients do? Not where it fills lists or holds loops."""
    return (any(isinstance(item, Known) and item.value is None and isinstance(value.type, TensorType)
                for item, value in zip(start, loop.outputs, strict=True))
            and is_counted(loop) and not any(each.kind == APPEND or each.kind in LOOP_KINDS for each in loop.blocks[0].walk()))


def is_true(value: Value) -> bool:
    """Is it the constant True?"""
    return constant(value) is True


def is_same(item: Item) -> bool:
    """Is it the same in each round of each run?"""
    return isinstance(item, Known) or not isinstance(item, Variable) and all(map(is_same, item.items))


__all__ = ["APPEND", "GET", "RoundList", "begins_undefined", "is_counted", "is_same", "round_list"]
