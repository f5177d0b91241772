"""Loop-carried arrays are updated in place; a value that is only copied into a row of an array is computed directly into that row.

The next value of a loop-carried array overwrites the old value, if the old value has no later reader: `total = total + x` needs no memory
per round. If the initial array has other readers, the loop starts from a copy of it. An input that each round would broadcast to the same
shape (a bias) is broadcast once, in front of the loop.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irtool.execute.plan.batch_slices import EXACT, SMALL, Uses
from irtool.execute.plan.large_results import spread
from irtool.execute.plan.memory import every, overwrites
from irtool.execute.plan.parallel import written_by
from irtool.execute.plan.program import (
    Branch,
    Call,
    Group,
    Instruction,
    Item,
    Known,
    Lowered,
    Program,
    Repeat,
    Variable,
    Visit,
    Wait,
    leaves,
    roots_of,
)
from irtool.execute.plan.python_source import all_reads, outs_of, reads_of
from irtool.execute.plan.round_products import defined_in, look_into, new
from irtool.ops.array_library import np
from irtool.ops.symbols.array_layout import fresh_meta


def keep_in_place(program: Program) -> None:
    """Rewrite the loops of a program, unless it writes into memory that others see."""
    if overwrites(program) or not any(isinstance(each, Repeat) for each in program.body.instructions):
        return
    uses = Uses(program)
    for block in uses.blocks:
        make_in_place(program, block, uses)
    for block in uses.blocks:
        for loop in [each for each in block.instructions if isinstance(each, Repeat)]:
            for number in range(len(loop.carried)):
                carry_in_place(program, block, loop, number)


# -- copies into rows
def make_in_place(program: Program, block: Lowered, uses: Uses) -> None:
    """Remove copies of a result into a row that no other instruction writes: the call that computes the result writes it there."""
    instructions = block.instructions
    makers = {each.out: each for each in instructions if isinstance(each, Call) and is_maker(each)}
    views = {each.out: each for each in instructions if isinstance(each, Call) and each.way == "view"}
    for call in [each for each in instructions if isinstance(each, Call) and each.way == "into" and each.function is np.positive]:
        (source,) = call.args
        maker, row = makers.get(source), views.get(call.out)
        if maker is None or row is None or source.roots != {source} or call.out in uses.calls or call.out in uses.others:
            continue
        later: set[Variable] = set()
        for each in instructions[instructions.index(maker):]:
            later.update(outs_of(each))
        if row.out.meta != source.meta or row.args[0] in defined_in(block) or not later.isdisjoint(reads([row], ())):
            continue
        del instructions[instructions.index(call)], instructions[instructions.index(row)]
        instructions.insert(instructions.index(maker), Call(row.function, row.args, row.named, source, "view", row.node))
        maker.way = "into"
        source.roots = row.out.roots
        look_into(program.body, {source}, row.out.roots)


def is_maker(call: Call) -> bool:
    """Can a call write its result into any array, as `out`?"""
    return not call.named and (call.way == "ufunc" and isinstance(call.function, np.ufunc) or call.way == "out" and call.function is np.dot)


# -- loop-carried arrays
def carry_in_place(program: Program, block: Lowered, loop: Repeat, number: int) -> None:
    """Write the next value of a loop-carried array over the old one, if nobody reads the old one after that call."""
    carried, start = loop.carried[number], loop.start[number]
    if not isinstance(start, Variable) or start is carried or start.meta is None or carried.meta != start.meta:
        return
    inner, inner_number = innermost(loop, number)
    result, instructions = inner.body.results[1 + inner_number], inner.body.instructions
    maker = next((each for each in instructions if isinstance(each, Call) and each.out is result and is_maker(each)), None)
    if maker is None or not isinstance(result, Variable) or result.meta != carried.meta or result.roots != {result}:
        return
    at = instructions.index(maker)
    if sum(result in each.roots for each in leaves(inner.body.results)) != 1 or not may_be_over(maker, carried) \
            or is_read(carried, instructions[at + 1:], inner.body.results) or is_held({carried, result}, inner.body):
        return
    if not is_for_loop_alone(start, block, loop, number):
        if start.meta != fresh_meta(start.meta.dtype, start.meta.shape):
            return
        if loop.rounds is not None and loop.rounds < 2:
            return
        copy = new(program, start.meta)
        block.instructions.insert(block.instructions.index(loop), Call(np.ndarray.copy, (start,), {}, copy, "fresh", loop.node))
        loop.start[number] = start = copy
    maker.way, maker.out = "into", carried
    instead = {result: carried}
    for each in instructions[at + 1:]:
        replace(each, instead)
    inner.body.results = [replaced(each, instead) for each in inner.body.results]
    if maker.function is not np.power:      # as early as possible, since its operands then die early
        place = 1 + max([k for k, each in enumerate(instructions[:at]) if is_needed(each, maker, carried)], default=-1)
        instructions.insert(place, instructions.pop(at))
    carried.roots = start.roots
    look_into(program.body, {carried, result}, start.roots)


def innermost(loop: Repeat, number: int) -> tuple[Repeat, int]:
    """The loop that computes a loop-carried array, and the array's position there: an inner loop, if one carries the same array."""
    carried = loop.carried[number]
    for each in loop.body.instructions if loop.body.results[1 + number] is carried else ():
        if isinstance(each, Repeat) and carried in each.carried:
            place = each.carried.index(carried)
            if each.start[place] is carried:
                return innermost(each, place)
    return loop, number


def is_read(carried: Variable, later: Iterable[Instruction], results: Iterable[Item]) -> bool:
    """Does an instruction or result read a loop-carried array, or a view of it?"""
    return any(carried in each.roots for each in reads((*later,), results))


def reads(instructions: Iterable[Instruction], results: Iterable[Item]) -> set[Variable]:
    """All variables that instructions and results read."""
    variables: set[Variable] = set()
    for each in instructions:
        all_reads(each, variables)
    reads_of(tuple(results), variables)
    return variables


def may_be_over(maker: Call, carried: Variable) -> bool:
    """May a call overwrite its operand? Only a ufunc that reads the whole array, not a view of it."""
    views = [each for each in maker.args if isinstance(each, Variable) and carried in each.roots]
    return not views or maker.way == "ufunc" and all(each is carried for each in views)


def is_needed(before: Instruction, maker: Call, carried: Variable) -> bool:
    """Must an instruction stay in front of the call `maker` that computes the next value? It must if it reads the loop-carried array, or
    defines or writes an operand of that call."""
    operands = [each for each in maker.args if isinstance(each, Variable)]
    roots = frozenset().union(*[each.roots for each in operands])
    return (is_read(carried, [before], ()) or not set(outs_of(before)).isdisjoint(operands) or not written_by(before).isdisjoint(roots))


def is_held(either: set[Variable], body: Lowered) -> bool:
    """May a list contain one of two variables?"""
    return any(isinstance(each, Call) and each.way == "keep" and not roots_of(each.args[1]).isdisjoint(either) for each in every(body))


def is_for_loop_alone(start: Variable, block: Lowered, loop: Repeat, number: int) -> bool:
    """Is an array computed in front of the loop, and is the loop its only reader? Views of the loop-carried array do not count."""
    maker = next((each for each in block.instructions if isinstance(each, Call) and each.out is start), None)
    if maker is None or maker.way not in ("ufunc", "out") or start.roots != {start} or start.constant is not None:
        return False
    loop.start[number] = Known(None)        # so that the loop itself does not count as a reader
    read = reads(block.instructions[block.instructions.index(loop):], block.results)
    loop.start[number] = start
    carried = loop.carried[number]
    return not any(start in each.roots and carried not in each.roots for each in read)


# -- inputs that every round would broadcast
def spread_inputs(program: Program) -> None:
    """Broadcast inputs of the plan in front of the loops whose rounds would broadcast them."""
    if overwrites(program):
        return
    inputs = set(program.inputs)
    for loop in [each for each in program.body.instructions if isinstance(each, Repeat)]:
        enlarged: dict[tuple[Variable, tuple[int, ...]], Variable] = {}
        for call in [each for each in every(loop.body) if isinstance(each, Call) and each.function in EXACT and len(each.args) == 2]:
            meta = call.out.meta
            for each in [each for each in call.args if isinstance(each, Variable) and each in inputs]:
                if each.meta is None or meta is None or not each.meta.shape or each.meta.shape == meta.shape or meta.nbytes > SMALL:
                    continue
                if (each, meta.shape) not in enlarged:
                    large = enlarged[each, meta.shape] = new(program, fresh_meta(each.meta.dtype, meta.shape))
                    instructions = program.body.instructions
                    instructions.insert(instructions.index(loop), Call(spread, (each,), {}, large, "out", call.node))
                replace(call, {each: enlarged[each, meta.shape]})


# -- one variable for another
def replace(instruction: Instruction, instead: dict[Variable, Variable]) -> None:
    """Replace variables in an instruction, and in the blocks in it."""
    if isinstance(instruction, Call):
        instruction.args = replaced(instruction.args, instead)
        instruction.named = {name: replaced(value, instead) for name, value in instruction.named.items()}
        if instruction.way == "into":       # `out` is written, not defined
            instruction.out = instead.get(instruction.out, instruction.out)
        return
    if isinstance(instruction, Visit):
        instruction.args = [replaced(each, instead) for each in instruction.args]
        return
    if isinstance(instruction, Wait):
        return
    if isinstance(instruction, Branch):
        instruction.condition = [replaced(each, instead) for each in instruction.condition]
        blocks = instruction.blocks
    else:
        instruction.limit, instruction.condition, *instruction.start = [
            replaced(each, instead) for each in (instruction.limit, instruction.condition, *instruction.start)]
        blocks = [instruction.body]
    for block in blocks:
        for each in block.instructions:
            replace(each, instead)
        block.results = [replaced(each, instead) for each in block.results]


def replaced(value: Any, instead: dict[Variable, Variable]) -> Any:
    """An item, an argument, or a tuple of them, with variables replaced."""
    if isinstance(value, Variable):
        return instead.get(value, value)
    if isinstance(value, Group):
        return Group([replaced(each, instead) for each in value.items], value.make)
    return tuple([replaced(each, instead) for each in value]) if type(value) is tuple else value
