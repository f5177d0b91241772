"""A list that a counted loop fills with arrays of one dtype and shape, and of which only items are read, becomes an array: a row per round.

Values that a loop saves for the loop of df are in such lists. The array is in the arena of the plan, so no round allocates memory.
"""
from __future__ import annotations

import operator
from typing import Any

from irtool.execute.plan.batch_slices import Uses
from irtool.execute.plan.large_results import room
from irtool.execute.plan.memory import asks_for_storages, every, overwrites
from irtool.execute.plan.program import Call, Lowered, Program, Repeat, Variable, Visit, roots_of
from irtool.execute.plan.round_products import look_into, new
from irtool.ops.array_library import np
from irtool.ops.symbols.array_layout import fresh_meta


def stack_lists(program: Program) -> None:
    """Rewrite such lists of a program; not in graphs that write in place, where a write into a tensor changes items of lists, nor where a
    node looks at the storage of a tensor, which for a row is the whole array."""
    if overwrites(program) or asks_for_storages(program):
        return
    uses = Uses(program)
    leaving = frozenset().union(*map(roots_of, program.body.results))       # a result that is an item would keep all rows alive
    lists = [each for block in uses.blocks for each in filled_lists(block, uses) if each.construct.outs[0] not in leaving]
    for each in lists:
        stack(program, each)


class Filled:
    """A list: the block and node that construct it, the loop that fills it, the call that appends, and the calls that read items."""

    __slots__ = ("block", "construct", "loop", "append", "item", "gets")

    def __init__(self, block: Lowered, construct: Visit, loop: Repeat, append: Call, gets: list[Call]) -> None:
        self.block = block
        self.construct = construct
        self.loop = loop
        self.append = append
        self.item: Variable = append.args[1]
        self.gets = gets


def filled_lists(block: Lowered, uses: Uses) -> list[Filled]:
    """The lists that a block constructs and that a counted loop in it fills with arrays of known facts."""
    lists = []
    for construct in [each for each in block.instructions if isinstance(each, Visit) and each.node.kind == "prim::ListConstruct"]:
        if construct.args or not construct.sole or construct.outs[0] in uses.others:
            continue
        readers = uses.calls.get(construct.outs[0], [])
        if not readers:     # all items are the same, and known
            block.instructions.remove(construct)
        appends, gets = [each for each in readers if each.way == "keep"], [each for each in readers if each.function is operator.getitem]
        if len(appends) != 1 or len(readers) != 1 + len(gets) or not gets:
            continue
        (append,) = appends
        loop = next((each for each in block.instructions if isinstance(each, Repeat) and append in each.body.instructions), None)
        if loop is not None and loop.rounds is not None and isinstance(append.args[1], Variable) and append.args[1].meta is not None:
            lists.append(Filled(block, construct, loop, append, gets))
    return lists


def stack(program: Program, filled: Filled) -> None:
    """Replace a list by an array, and each item by a row of it."""
    rounds, item = filled.loop.rounds, filled.item
    if item.meta is None or item.meta != fresh_meta(item.meta.dtype, item.meta.shape) or rounds is None:
        return
    meta = fresh_meta(item.meta.dtype, (rounds, *item.meta.shape))
    array = new(program, meta)
    row = new(program, item.meta, array)
    instructions = filled.loop.body.instructions
    place = instructions.index(filled.append)
    instructions[place:place + 1] = [Call(operator.getitem, row_of(array, filled.loop.counter), {}, row, "view", filled.append.node),
                                     Call(np.positive, (item,), {}, row, "into", filled.append.node)]
    outer = filled.block.instructions
    outer[outer.index(filled.construct)] = Call(room, (meta,), {}, array, "out", filled.construct.node)
    for get in filled.gets:
        get.args = row_of(array, get.args[1])
    redirect_views(program, filled, array)


def row_of(array: Variable, index: Any) -> tuple[Any, ...]:
    """The operands of the view of one row. The view is an array, not a NumPy scalar, even if a row has no dimensions."""
    return array, (index, ...) if array.meta is not None and len(array.meta.shape) == 1 else index


def redirect_views(program: Program, filled: Filled, array: Variable) -> None:
    """Redirect views: items of the list, and views of them, now alias the array and nothing else."""
    items, whole = {get.out for get in filled.gets}, filled.construct.outs[0]
    for each in every(program.body):
        if isinstance(each, Call) and each.way == "view" and (each.out in items or each.args[0] in items):
            items.add(each.out)
            each.out.roots = array.roots
    look_into(program.body, {whole}, array.roots)
