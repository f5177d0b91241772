"""Pointwise operators behind a convolution in C run on each part of its result while that is in the cache."""
from __future__ import annotations

from collections import Counter
from typing import Any

from irtool.execute.fusion import Bound, coalesced
from irtool.execute.native import building
from irtool.execute.native.convolution_calls import Convolution
from irtool.execute.native.convolution_source import MOST_OPERANDS
from irtool.execute.native.loop_rounds import applied
from irtool.execute.plan.memory import every, overwrites
from irtool.execute.plan.program import Branch, Call, Known, Lowered, Program, Repeat, Variable, leaves
from irtool.execute.plan.python_source import all_reads
from irtool.execute.plan.row_functions import broadcast_strides
from irtool.ops.array_library import np
from irtool.ops.symbols import elementwise
from irtool.ops.symbols.array_layout import Meta
from irtool.ops.symbols.elementwise import NotPointwise, Symbol


class Epilogue:
    """What follows a convolution: the symbol of an element of the last result, and the arrays read, each with its symbol."""

    def __init__(self, convolution: Call) -> None:
        assert convolution.out.meta is not None
        self.meta = convolution.out.meta
        self.calls = [convolution]
        self.start = self.last = Symbol(self.meta.dtype, False)
        self.operands: dict[Variable, Symbol] = {}

    def taken(self, call: Call) -> bool:
        """Put a call behind what is here; False if it is no pointwise function of the last result and of arrays that fit."""
        meta = call.out.meta
        if call.way != "ufunc" or call.named or meta is None or meta != self.meta:
            return False
        operands = dict(self.operands)
        try:
            values = [self.symbol_of(each, operands) for each in call.args]
            symbol = steps_of(call.function, call.args, values) if isinstance(call.function, Bound) else applied(call.function, values)
        except (NotPointwise, KeyError, TypeError):
            return False
        if not isinstance(symbol, Symbol) or symbol.dtype != meta.dtype or len(operands) > MOST_OPERANDS:
            return False
        self.last, self.operands = symbol, operands
        self.calls.append(call)
        return True

    def symbol_of(self, item: Any, operands: dict[Variable, Symbol]) -> Any:
        """The symbol of an operand, or a number. Raises NotPointwise."""
        if item is self.calls[-1].out:
            return self.last
        if isinstance(item, Known):
            return item.value
        if not isinstance(item, Variable):
            return item
        if item.meta is None or strides_of(item.meta, self.meta) is None:
            raise NotPointwise
        return operands.setdefault(item, Symbol(item.meta.dtype, not item.meta.shape))

    def strides(self) -> list[tuple[int, int, int]]:
        """The strides of each operand."""
        strides = [strides_of(each.meta, self.meta) for each in self.operands if each.meta is not None]
        return [each for each in strides if each is not None]

    def bounds(self) -> tuple[float, float] | None:
        """The bounds, if all that follows is the larger of a number and the result, and the smaller of another and that."""
        numbers = {"maximum": -np.inf, "minimum": np.inf}
        for step in self.program().steps:
            operands = [each for each in step.operands if type(each) is not int]
            if len(operands) != 1 or type(step.operands[1]) is not int or not abs(numbers.get(step.name, 0)) == np.inf \
                    or step.name == "maximum" and numbers["minimum"] != np.inf or np.isnan(operands[0]):
                return None
            numbers[step.name] = operands[0]
        return float(numbers["maximum"]), float(numbers["minimum"])

    def program(self) -> elementwise.Program:
        """What follows as steps: of the result, then the arrays read."""
        return elementwise.flattened([self.start, *self.operands.values()], [self.last])

    def finished(self) -> Convolution | None:
        """The convolution with what follows. None if that cannot be compiled."""
        convolution = self.calls[0].function
        assert isinstance(convolution, Convolution)
        bounds = self.bounds()
        inside = None if bounds is None else convolution.bounded(*bounds)
        if inside is not None:
            return inside
        loop = self.loop()
        return None if loop is None else convolution.finished(loop, self.strides())

    def loop(self) -> building.Loop | None:
        """The loop in C over a part of the result: outs and positions."""
        program = self.program()
        kinds = ["s" if not strides[2] else "v" if strides[2] == symbol.dtype.itemsize else "g"
                 for strides, symbol in zip(self.strides(), self.operands.values(), strict=True)]
        return building.loop(program, f"v{''.join(kinds)}v", 2)


def steps_of(group: Bound, args: tuple[Any, ...], values: list[Any]) -> Symbol:
    """The result of a fused group on symbols. Raises NotPointwise."""
    kinds = [(value.dtype, value.is_number) if isinstance(value, Symbol) else value for value in values]
    steps = elementwise.program(group.group.graph, kinds)
    registers = [value for value in values if isinstance(value, Symbol)]
    for step in steps.steps:
        operands = tuple([registers[each] if type(each) is int else each for each in step.operands])
        registers.append(Symbol(step.dtype, False, step.function, operands))
    return registers[steps.outputs[0]]


def strides_of(operand: Meta, result: Meta) -> tuple[int, int, int] | None:
    """The strides of an operand by sample, channel and position of a result of convolutions; None if positions have no one stride, or it
    is of another shape."""
    try:
        strides = broadcast_strides(operand, result)
    except ValueError:
        return None
    _, inner = coalesced(result.shape[2:], [strides[2:]])
    return (strides[0], strides[1], inner[0][0]) if len(inner[0]) == 1 else None


def finish_convolutions(program: Program) -> None:
    """Put pointwise calls into the convolutions whose results they alone read."""
    if overwrites(program) or not any(isinstance(each, Call) and isinstance(each.function, Convolution) for each in every(program.body)):
        return
    blocks = [program.body]
    for each in every(program.body):
        blocks += each.blocks if isinstance(each, Branch) else [each.body] if isinstance(each, Repeat) else []
    for block in blocks:
        finish_block(block)


def finish_block(block: Lowered) -> None:
    """The same for the instructions of one block."""
    readers: Counter[Variable] = Counter()
    for instruction in block.instructions:
        read: set[Variable] = set()
        all_reads(instruction, read)
        readers.update(read)
    for variable in leaves(block.results):
        readers[variable] += 2      # a result of the block stays
    epilogues: list[Epilogue] = []
    waiting: dict[Variable, Epilogue] = {}      # by the last result
    for instruction in block.instructions:
        if not isinstance(instruction, Call):
            continue
        function = instruction.function
        operands = dict.fromkeys([each for each in instruction.args if isinstance(each, Variable)])
        behind = [waiting.pop(each) for each in operands if each in waiting]
        taking = next((each for each in behind if each.taken(instruction)), None)
        if taking is None and isinstance(function, Convolution) and function.is_sampled:
            taking = Epilogue(instruction)
            epilogues.append(taking)
        if taking is not None and readers[instruction.out] == 1:
            waiting[instruction.out] = taking
    gone: set[int] = set()
    for epilogue in epilogues:
        finished = epilogue.finished() if len(epilogue.calls) > 1 else None
        if finished is None:
            continue
        first, last = epilogue.calls[0], epilogue.calls[-1]
        last.function = finished
        last.args, last.named, last.way = (*first.args, *epilogue.operands), {}, "out"
        gone.update(map(id, epilogue.calls[:-1]))
    block.instructions = [each for each in block.instructions if id(each) not in gone]


__all__ = ["finish_convolutions"]
