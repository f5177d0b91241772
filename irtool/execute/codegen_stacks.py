"""Lists that a counted loop fills with arrays of one kind, and of which only items are read, become one array with a row for each round.

What a loop keeps for the loop that goes back is such a list. As an array it takes no more than its elements, lies in the arena of the
plan, and needs no memory to be found in each round. What a round was handed is not kept at all but computed again, if the round before
made it by one call of items that are kept (the output of an LSTM, `o * tanh(c)`).
"""
from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from irtool.execute.codegen_layout import fresh_meta
from irtool.execute.codegen_loops import always, new
from irtool.execute.codegen_program import Branch, Call, Instruction, Known, Lowered, Program, Repeat, Variable, Visit, roots_of
from irtool.execute.codegen_results import room
from irtool.execute.codegen_siblings import EXACT, Uses
from irtool.execute.memory import every

Rows = dict[tuple[Repeat, Variable], Variable]
"""A loop, and what its rounds append -> the array that has it as its rows."""


def stack_lists(program: Program) -> None:
    """Rewrite the lists of a program that are of this kind. Not in graphs that write: an item of a list changes with its tensor."""
    if writes(program):
        return
    uses = Uses(program)
    leaving = frozenset().union(*map(roots_of, program.body.results))       # with an item, all rows would be held
    found = [each for block in uses.blocks for each in filled_lists(block, uses) if each.made.outs[0] not in leaving]
    rows: Rows = {}
    for each in sorted(found, key=lambda each: each.item in each.loop.carried):     # last, what may be made of others
        Stacking(program, uses, each, rows).run()


def writes(program: Program) -> bool:
    """May anything of a program write into what others see?"""
    return program.writes or any(isinstance(each, Visit) and each.keeps for each in every(program.body))


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
        if loop is not None and always(loop) and isinstance(loop.limit, Known) and type(loop.limit.value) is int \
                and isinstance(append.args[1], Variable) and append.args[1].meta is not None:
            found.append(Filled(block, made, loop, append, gets))
    return found


class Stacking:
    """Rewrites one list. rows: the arrays that others have become; this one is added."""

    def __init__(self, program: Program, uses: Uses, found: Filled, rows: Rows) -> None:
        self.program = program
        self.blocks = uses.blocks
        self.list = found
        self.rows = rows

    def run(self) -> None:
        """By what its items are."""
        maker = self.made_of_rows()
        if maker is not None and all(counts_up(get.args[1]) for get in self.list.gets):
            self.make_again(maker)
        elif self.meta == fresh_meta(self.meta.dtype, self.meta.shape):
            self.stack()

    @property
    def meta(self) -> Any:
        """The facts of an item."""
        return self.list.item.meta

    def forget(self) -> None:
        """There is no list any more."""
        self.list.block.instructions.remove(self.list.made)
        self.list.loop.body.instructions.remove(self.list.append)

    # -- as an array
    def stack(self) -> None:
        """One array, and a row of it in each round."""
        found = self.list
        meta = fresh_meta(self.meta.dtype, (found.loop.limit.value, *self.meta.shape))      # type: ignore[union-attr]
        array = self.rows[found.loop, found.item] = new(self.program, meta)
        row = new(self.program, self.meta, array)
        instructions = found.loop.body.instructions
        place = instructions.index(found.append)
        instructions[place + 1:place + 1] = [self.row(array, found.loop.counter, row), Call(np.positive, (found.item,), {}, row, "into",
                                                                                           found.append.node)]
        made = found.block.instructions
        made.insert(made.index(found.made), Call(room, (meta,), {}, array, "out", found.made.node))
        self.forget()
        for get in found.gets:
            get.args = self.row(array, get.args[1], get.out).args
        self.seen_through({get.out: array.roots for get in found.gets})

    def row(self, array: Variable, index: Any, out: Variable) -> Call:
        """The view of one row."""
        index = index.value if isinstance(index, Known) else index
        is_number = array.meta is not None and len(array.meta.shape) == 1
        return Call(operator.getitem, (array, (index, ...) if is_number else index), {}, out, "view", self.list.append.node)

    # -- computed again
    def made_of_rows(self) -> Call | None:
        """The call that makes the next value of what a round is handed, if it computes that of what is kept."""
        loop, item = self.list.loop, self.list.item
        if item not in loop.carried or not isinstance(loop.start[loop.carried.index(item)], Variable):
            return None
        result = loop.body.results[1 + loop.carried.index(item)]
        call = next((each for each in loop.body.instructions if isinstance(each, Call) and each.out is result), None)
        if call is None or call.way != "ufunc" or call.function not in EXACT or call.named or call.out.meta != self.meta:
            return None
        return call if all((loop, each) in self.rows for each in call.args) else None

    def make_again(self, maker: Call) -> None:
        """What the round before made; in the first round, what the loop began with."""
        start = self.list.loop.start[self.list.loop.carried.index(self.list.item)]
        instead: dict[Variable, frozenset[Variable]] = {}
        for get in self.list.gets:
            index, block = get.args[1], next(each for each in self.blocks if get in each.instructions)
            at = block.instructions.index(get)
            made, no_work = Lowered(), Lowered()
            again = new(self.program, self.meta)
            made.instructions, made.results = self.before(maker, index, again), [again]
            no_work.results = [start]
            get.out.roots = frozenset((get.out,))
            if isinstance(index, Known) and index.value > 0:
                made.instructions[-1].out = get.out     # type: ignore[union-attr]
                block.instructions[at:at + 1] = made.instructions
            else:
                get.out.roots |= again.roots | roots_of(start)
                condition = Known(bool(index.value)) if isinstance(index, Known) else index
                block.instructions[at] = Branch([condition], [made, no_work], [get.out], maker.node, False)
            instead[get.out] = get.out.roots
        self.forget()
        self.seen_through(instead)

    def before(self, maker: Call, index: Any, out: Variable) -> list[Instruction]:
        """What the round before one made."""
        found: list[Instruction] = []
        number: Any = Known(index.value - 1) if isinstance(index, Known) else new(self.program)
        if isinstance(number, Variable):
            found.append(Call(operator.sub, (index, Known(1)), {}, number, "number", maker.node))
        operands = []
        for each in maker.args:
            array = self.rows[self.list.loop, each]
            row = new(self.program, each.meta, array)
            found.append(self.row(array, number, row))
            operands.append(row)
        return [*found, Call(maker.function, tuple(operands), {}, out, "ufunc", maker.node)]

    # -- whose memory
    def seen_through(self, roots: dict[Variable, frozenset[Variable]]) -> None:
        """Whose memory everything looks into that looked into the list: items, and views of them, into what is told of each."""
        whole = self.list.made.outs[0]
        for each in every(self.program.body):
            if isinstance(each, Call) and each.way == "view" and each.args[0] in roots:
                roots[each.out] = roots[each.args[0]]
        for variable, own in roots.items():
            variable.roots = own
        everything = frozenset().union(*roots.values())
        for variable in variables(self.program.body):
            if whole in variable.roots:
                variable.roots = variable.roots - {whole} | everything


def counts_up(index: Any) -> bool:
    """Is a list's index, which is known to be one, counted from the first item?"""
    if isinstance(index, Known):
        return bool(index.value >= 0)
    return index.bounds is not None and index.bounds[0] >= 0


def variables(lowered: Lowered) -> Iterator[Variable]:
    """All that are defined in a block and those in it."""
    for each in every(lowered):
        yield from [each.out] if isinstance(each, Call) else each.carried if isinstance(each, Repeat) else \
            each.outs if isinstance(each, Visit | Branch) else ()


__all__ = ["stack_lists", "variables", "writes"]
