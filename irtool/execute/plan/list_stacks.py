"""Lists that a counted loop fills with arrays of one kind, and of which only items are read, become one array with a row for each round.

What a loop keeps for the loop that goes back is such a list. As an array it takes no more than its elements, lies in the arena of the
plan, and needs no memory to be found in each round.
"""
from __future__ import annotations

import operator
from typing import Any

import numpy as np

from irtool.execute.plan.batch_slices import Uses
from irtool.execute.plan.large_results import room
from irtool.execute.plan.memory import every, overwrites
from irtool.execute.plan.program import Call, Lowered, Program, Repeat, Variable, Visit, roots_of
from irtool.execute.plan.round_products import look_into, new
from irtool.ops.symbols.array_layout import fresh_meta


def stack_lists(program: Program) -> None:
    """Rewrite the lists of a program that are of this kind. Not in graphs that write: an item of a list changes with its tensor."""
    if overwrites(program):
        return
    uses = Uses(program)
    leaving = frozenset().union(*map(roots_of, program.body.results))       # with an item, all rows would be held
    found = [each for block in uses.blocks for each in filled_lists(block, uses) if each.made.outs[0] not in leaving]
    for each in found:
        stack(program, each)


class Filled:
    """A list: where it is made, the loop that fills it, what a round appends, and who takes items out of it."""

    __slots__ = ("block", "made", "loop", "append", "item", "gets")

    def __init__(self, block: Lowered, made: Visit, loop: Repeat, append: Call, gets: list[Call]) -> None:
        self.block = block
        self.made = made
        self.loop = loop
        self.append = append
        self.item: Variable = append.args[1]
        self.gets = gets


def filled_lists(block: Lowered, uses: Uses) -> list[Filled]:
    """The lists made in a block that a loop in it, whose rounds are counted, fills with arrays of known facts."""
    found = []
    for made in [each for each in block.instructions if isinstance(each, Visit) and each.node.kind == "prim::ListConstruct"]:
        if made.args or not made.sole or made.outs[0] in uses.others:
            continue
        readers = uses.calls.get(made.outs[0], [])
        if not readers:     # all items are the same, and known
            block.instructions.remove(made)
        appends, gets = [each for each in readers if each.way == "keep"], [each for each in readers if each.function is operator.getitem]
        if len(appends) != 1 or len(readers) != 1 + len(gets) or not gets:
            continue
        (append,) = appends
        loop = next((each for each in block.instructions if isinstance(each, Repeat) and append in each.body.instructions), None)
        if loop is not None and loop.rounds is not None and isinstance(append.args[1], Variable) and append.args[1].meta is not None:
            found.append(Filled(block, made, loop, append, gets))
    return found


def stack(program: Program, found: Filled) -> None:
    """An array instead of a list, and a row of it in each round."""
    rounds, item = found.loop.rounds, found.item
    if item.meta is None or item.meta != fresh_meta(item.meta.dtype, item.meta.shape) or rounds is None:
        return
    meta = fresh_meta(item.meta.dtype, (rounds, *item.meta.shape))
    array = new(program, meta)
    row = new(program, item.meta, array)
    instructions = found.loop.body.instructions
    place = instructions.index(found.append)
    instructions[place:place + 1] = [Call(operator.getitem, row_of(array, found.loop.counter), {}, row, "view", found.append.node),
                                     Call(np.positive, (item,), {}, row, "into", found.append.node)]
    made = found.block.instructions
    made[made.index(found.made)] = Call(room, (meta,), {}, array, "out", found.made.node)
    for get in found.gets:
        get.args = row_of(array, get.args[1])
    seen_through(program, found, array)


def row_of(array: Variable, index: Any) -> tuple[Any, ...]:
    """The operands of a view of one row: an array, and no number, where a row has no dimensions."""
    return array, (index, ...) if array.meta is not None and len(array.meta.shape) == 1 else index


def seen_through(program: Program, found: Filled, array: Variable) -> None:
    """What looked into the list looks into the array: items and views of them into nothing else."""
    items, whole = {get.out for get in found.gets}, found.made.outs[0]
    for each in every(program.body):
        if isinstance(each, Call) and each.way == "view" and (each.out in items or each.args[0] in items):
            items.add(each.out)
            each.out.roots = array.roots
    look_into(program.body, {whole}, array.roots)


__all__ = ["stack_lists"]
