"""Lists that a loop fills with one item per round, and that are only read afterwards: results of all rounds, or values saved for df.

The plan knows the items of such a list. An item that is the same in all rounds is not read from the list; an item that is an array
has the dtype, shape and strides of the array that was appended.
"""
from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from typing import Any

from irtool.execute.plan.batch_slices import EXACT
from irtool.execute.plan.loop_numbers import bounds_of
from irtool.execute.plan.program import Call, Instruction, Item, Known, Repeat, Variable
from irtool.ir.constants import constant
from irtool.ir.effects import LOOP_KINDS, node_may_write
from irtool.ir.graph import Block, Node, Value
from irtool.ir.types import TensorType

APPEND, GET, STACK = "aten::append", "aten::__getitem__", "aten::stack"


class RoundList:
    """A list and the loop that fills it. item: the item appended in the last lowering of the loop; count: the number of items;
    is_looked_up: does every reader read single items? is_stacked: so it does, but for one that stacks them, round by round?

    If readers can get an item without the list, nothing is appended. view: the call `outer[round]` that computes every appended item;
    recipe: the call by which readers recompute the item from items of other lists, and the item of the first round.
    """

    __slots__ = ("loop", "is_looked_up", "is_stacked", "item", "count", "view", "counter", "recipe")

    def __init__(self, loop: Node, is_looked_up: bool, is_stacked: bool) -> None:
        self.loop = loop
        self.is_looked_up = is_looked_up
        self.is_stacked = is_stacked
        self.item: Item | None = None
        self.count = 0
        self.view: Call | None = None
        self.counter: Item | None = None
        self.recipe: tuple[Call, Variable] | None = None

    def appended(self, item: Item, limit: Item) -> bool:
        """Note the item that a round appends; limit: the number of rounds. True if enough is known of it for readers to use it."""
        self.count = limit.value if isinstance(limit, Known) and type(limit.value) is int else 0
        known = self.count > 0 and is_same(item) or isinstance(item, Variable) and item.meta is not None
        self.item = item if known else None
        return known

    def looks_again(self, counter: Item, calls: Sequence[Instruction]) -> bool:
        """True if every appended item is just `outer[round]`: then the list is not filled; readers take `outer[i]` themselves.

        counter: the number of the round; calls: the instructions of the round so far.
        """
        self.view, self.counter = None, counter
        if not self.is_looked_up or not isinstance(counter, Variable) or counter.bounds is None:
            return False
        call = next((each for each in reversed(calls) if isinstance(each, Call) and each.out is self.item), None)
        if call is None or call.way != "view" or call.function is not operator.getitem or call.args[0].number > counter.number:
            return False
        index = call.args[1] if type(call.args[1]) is tuple else (call.args[1],)
        if sum(each is counter for each in index) == 1 and sum(isinstance(each, Variable) for each in index) == 1:
            self.view = call
        return self.view is not None

    def is_recomputed(self, loop: Repeat, listed: Collection[Item | None]) -> bool:
        """True if the item is loop-carried, and one call computes it from items of other lists: then the list is not filled; readers
        compute item `i` from the items `i - 1` of those lists. An example is the output of an LSTM, `o * tanh(c)`.

        listed: the items of all lists that the loop fills.
        """
        self.recipe = None
        if not self.is_looked_up or self.view is not None or self.item not in loop.carried:
            return False
        place = loop.carried.index(self.item)
        start, result = loop.start[place], loop.body.results[1 + place]
        call = next((each for each in loop.body.instructions if isinstance(each, Call) and each.out is result), None)
        if call is not None and call.way == "ufunc" and call.function in EXACT and not call.named and call.out.meta == self.item.meta \
                and isinstance(start, Variable) and all(isinstance(each, Variable) and each in listed and each not in loop.carried
                                                        for each in call.args):
            self.recipe = call, start
        return self.recipe is not None

    def index_again(self, number: Any) -> Any:
        """The index of the view for the number of a round."""
        assert self.view is not None
        index = self.view.args[1]
        return tuple([number if each is self.counter else each for each in index]) if type(index) is tuple else number

    def holds(self, index: Item) -> bool:
        """Is there certainly an item for an index?"""
        bounds = index.bounds if isinstance(index, Variable) else bounds_of(index.value) if isinstance(index, Known) else None
        return bounds is not None and (0 <= bounds[0] and bounds[1] < self.count or -self.count <= bounds[0] and bounds[1] < 0)


def round_list(node: Node) -> RoundList | None:
    """The list that a node constructs, if it is empty, one node in a counted loop appends to it, and others read it later; else None."""
    value, block = node.output, node.owner_block
    appends = [user for user, slot in value.uses if user.kind == APPEND and not slot]
    readers = [user for user, slot in value.uses if user.kind != APPEND or slot]
    if node.inputs or len(appends) != 1 or appends[0].output.has_uses or not all(only_reads(each, block) for each in readers):
        return None
    loop = appends[0].owner_block.owning_node
    if loop is None or loop.kind not in LOOP_KINDS or loop.owner is not block or not is_counted(loop):
        return None
    outer = [ancestor(each, block) for each in readers]
    if not all(each is not None and loop.before_in_block(each) for each in outer):
        return None
    others = [each for each in readers if each.kind != GET or is_handed_on(each)]
    return RoundList(loop, not others, len(others) == 1 and is_stack(others[0]))


def is_stack(node: Node) -> bool:
    """Does a node make one tensor of the items of a list, one after the other?"""
    return node.kind == STACK and len(node.inputs) == 2 and constant(node.inputs[1]) == 0


def only_reads(user: Node, block: Block) -> bool:
    """Does a node only read items of a list, or make tensors of them, or return the list from the graph?"""
    if user is block.return_node:
        return block.owning_node is None
    return user.kind == GET or not (user.blocks or node_may_write(user)) and all(isinstance(each.type, TensorType) for each in user.outputs)


def is_handed_on(node: Node) -> bool:
    """Does a block return the result of a node? A result that is a view of one row would keep the rows of all rounds alive."""
    return any(user.owner_block.return_node is user for user, _ in node.output.uses)


def ancestor(node: Node, block: Block) -> Node | None:
    """The node of `block` that contains a node."""
    at: Node | None = node
    while at is not None and at.owner is not block:
        at = at.owner_block.owning_node
    return at


def is_counted(loop: Node) -> bool:
    """Does only the count end a loop, and no condition?"""
    return is_true(loop.inputs[1]) and is_true(loop.blocks[0].outputs[0])


def begins_undefined(loop: Node, start: Sequence[Item]) -> bool:
    """Does a counted loop start from undefined tensors, such as sums of gradients? False if it fills lists or contains loops."""
    return (any(isinstance(item, Known) and item.value is None and isinstance(value.type, TensorType)
                for item, value in zip(start, loop.outputs, strict=True))
            and is_counted(loop) and not any(each.kind == APPEND or each.kind in LOOP_KINDS for each in loop.blocks[0].walk()))


def is_true(value: Value) -> bool:
    """Is a value the constant True?"""
    return constant(value) is True


def is_same(item: Item) -> bool:
    """Is an item the same in all rounds of all runs?"""
    return isinstance(item, Known) or not isinstance(item, Variable) and all(map(is_same, item.items))
