"""The memory of each result of a plan: lifetimes, and results written over operands that die.

A buffer is the place of a chain of results: each is written over the one before, which nobody reads again. `irtool.execute.plan.placement`
chooses the offset of each buffer: in an arena, which a run borrows; or, for results that somebody may hold after the run (outputs, items
of a list that grows, loop-carried values), in a separate piece of memory, which other buffers may share while the result does not live.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from irtool.analysis.alias import Aliases
from irtool.execute.fusion import Bound, BoundToMany
from irtool.execute.plan.buffers import RECYCLED
from irtool.execute.plan.placement import BY_OPERATOR, LOOSE, Buffer, Piece, View, largest_sum, place
from irtool.execute.plan.program import Branch, Call, Group, Instruction, Lowered, Program, Repeat, Variable, Visit, Wait, leaves, roots_of
from irtool.interpret import writers_of
from irtool.ir.effects import changes_list
from irtool.ir.graph import Graph, counted
from irtool.ir.types import TensorType, contiguous_strides
from irtool.ops.array_library import np
from irtool.ops.size_facts import BY_STORAGE
from irtool.ops.symbols.array_layout import Meta, dummy, fresh_meta

WRITES_OUT = frozenset(("ufunc", "out"))
WORTH_FREEING = 1 << 20
"""Bytes alive at one time from which a plan keeps no memory between runs that it can do without."""


class MemoryReport:
    """What a plan needs, in bytes, besides inputs and constants.

    arena: the memory of results that do not leave the plan; live: the largest sum of results alive at one time; peak: the memory that the
    plan needs for these; unplanned: results of known size that operators allocate (part of live and peak); unknown: the number of results
    whose size only the run knows (part of neither); results: the number of planned results; buffers: the number of buffers they share.
    """

    __slots__ = ("arena", "live", "peak", "unplanned", "unknown", "results", "buffers", "in_place")

    def __init__(self, arena: int, live: int, peak: int, unplanned: int, unknown: int, results: int, buffers: int, in_place: int) -> None:
        self.arena = arena
        self.live = live
        self.peak = peak
        self.unplanned = unplanned
        self.unknown = unknown
        self.results = results
        self.buffers = buffers
        self.in_place = in_place

    def as_dict(self) -> dict[str, int]:
        """For JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        unknown = f", and {self.unknown} of sizes that only a run knows" if self.unknown else ""
        return (f"peak {counted(self.peak, 'byte')}, of which arena {self.arena}; largest live set {self.live}; "
                f"{counted(self.results, 'result')} in {counted(self.buffers, 'buffer')}, {self.in_place} written over an operand{unknown}")


class Lives:
    """Lifetimes: when each root is defined and last read, by position in the program."""

    def __init__(self, program: Program) -> None:
        self.defined: dict[Variable, int] = {}
        self.last: dict[Variable, int] = {}
        self.escaping: set[Variable] = set()        # readers outside the plan may hold them
        self.looked_at: set[Variable] = set()   # loop-carried, and read in the body
        self.at: dict[int, int] = {}            # id of an instruction -> position
        self.now = 0
        for variable in program.inputs:
            self.defined[variable] = -1
        self.block(program.body)
        for item in program.body.results:
            self.read(item)
            self.escaping |= roots_of(item)

    def read(self, item: Any) -> None:
        """Note that an instruction at the current position reads an item, or an argument of a call."""
        if isinstance(item, Variable | Group):
            for root in roots_of(item):
                self.last[root] = self.now
        elif isinstance(item, tuple):
            for each in item:
                self.read(each)

    def define(self, variable: Variable) -> None:
        """Note that an instruction at the current position defines a variable."""
        self.defined.setdefault(variable, self.now)
        self.last.setdefault(variable, self.now)

    def block(self, lowered: Lowered) -> None:
        """Instructions in order."""
        for instruction in lowered.instructions:
            self.now += 1
            self.at[id(instruction)] = self.now
            if isinstance(instruction, Call):
                for each in (*instruction.args, *instruction.named.values()):
                    self.read(each)
                self.define(instruction.out)
                if instruction.way == "keep":
                    self.escaping |= roots_of(instruction.args[1])
                if instruction.way == "into":
                    self.read(instruction.out)
                    self.escaping |= {root for root in instruction.out.roots if root.constant is not None}
            elif isinstance(instruction, Visit):
                for each in instruction.args:
                    self.read(each)
                    if instruction.keeps:
                        self.escaping |= roots_of(each)
                for out in instruction.outs:
                    self.define(out)
            elif isinstance(instruction, Branch):
                self.branch(instruction)
            elif isinstance(instruction, Wait):
                self.wait(instruction.started)
            else:
                self.repeat(instruction)

    def wait(self, started: Call | Visit) -> None:
        """Operands and results of a task live until the task is waited for, since another thread reads and writes them."""
        for each in (*started.args, *(started.named.values() if isinstance(started, Call) else ())):
            self.read(each)
        for out in [started.out] if isinstance(started, Call) else started.outs:
            self.read(out)

    def branch(self, instruction: Branch) -> None:
        """Both blocks, one after the other."""
        for each in instruction.condition:
            self.read(each)
        for lowered in instruction.blocks:
            self.block(lowered)
            self.now += 1
            for item in lowered.results:
                self.read(item)
        self.now += 1
        for out in instruction.outs:
            self.define(out)

    def repeat(self, instruction: Repeat) -> None:
        """Values defined before a loop and read in it live until its end. Values that the body computes for the next round escape; values
        from before the loop that each round only passes on do not, since they live through the whole loop anyway."""
        start = self.now
        for each in (instruction.limit, instruction.condition, *instruction.start):
            self.read(each)
        for variable in (instruction.counter, *instruction.carried):
            self.define(variable)
        self.block(instruction.body)
        self.looked_at |= {variable for variable in instruction.carried if self.last[variable] > start}
        self.now += 1
        for item in instruction.body.results:
            self.read(item)
            self.escaping |= {root for root in roots_of(item) if self.defined.get(root, self.now) > start}
        for root, last in self.last.items():
            if last >= start and self.defined.get(root, self.now) <= start:
                self.last[root] = self.now
        for variable in instruction.carried:
            self.read(variable)


class MemoryPlan:
    """The buffers of a program. place: the buffer that a call's result is written to, if it has one.

    written: which inputs are copied for each run; is_first: the plan is for the first run alone.
    """

    def __init__(self, program: Program, written: Sequence[bool] = (), is_first: bool = False) -> None:
        self.is_first = is_first
        self.lives = Lives(program)
        self.place: dict[Variable, Buffer] = {}
        self.over: dict[Variable, Variable] = {}        # a result -> the dying operand it is written over
        self.whole: dict[Variable, Buffer] = {}         # views that see all of a buffer, in another shape
        self.views: dict[Variable, View] = {}           # views of buffers in the arena, created with the arena and not in each run
        self.buffers: list[Buffer] = []
        self.scratch: dict[Call | Visit, Buffer] = {}       # the working memory of a fused group
        self.tasks = program.tasks
        self.owned: list[Buffer] = []           # results whose memory operators make
        self.unplanned: list[tuple[int, int, int]] = []     # what is copied for each run: start, end, bytes
        for variable, is_written in zip(program.inputs, written, strict=False):
            if is_written and variable.meta is not None:
                self.unplanned.append((-1, self.lives.now, variable.meta.nbytes))       # the caller holds the copy during the whole run
        self.results = 0
        self.unknown = 0
        self.in_place = 0
        self.always = set(map(id, program.body.instructions))       # instructions that run exactly once per run
        for instruction in every(program.body):
            self.assign(instruction)
        self.before = self.of_rounds_before(program)
        self.inside: list[Buffer | View] = []   # the buffers of the arena, and the views of them
        self.pieces: list[Piece] = []           # memory of results that leave, which other buffers share
        self.arena = 0
        self.report = self.arrange()

    def assign(self, instruction: Instruction) -> None:
        """Choose the places of the results of an instruction."""
        lives = self.lives
        if isinstance(instruction, Visit):
            self.unknown += unknown_results(instruction)
            if instruction.node.kind in BY_STORAGE:
                self.give_own_memory(instruction)
            for out, meta in zip(instruction.outs, instruction.facts, strict=True):
                if meta is not None and instruction.fills:
                    self.results += 1
                    operand = instruction.over.get(out)
                    if operand is not None and self.dies(operand, out, leaves(instruction.args), lives.at[id(instruction)], True):
                        self.write_over(operand, out)
                    else:
                        self.new(out, meta, instruction)
                elif meta is not None and out.roots == {out}:        # else the result may be a view of an operand
                    self.add_owned(out, meta, instruction.fresh)
            self.work_in(instruction, True)
            return
        if not isinstance(instruction, Call) or instruction.way in ("into", "number", "keep"):
            return
        out = instruction.out
        if instruction.way == "view":
            self.see(instruction)
            return
        assert out.meta is not None
        self.results += 1
        if instruction.way not in WRITES_OUT:
            self.add_owned(out, out.meta, True)
            return
        operand = self.dying_operand(instruction, lives.at[id(instruction)]) if instruction.way == "ufunc" else None
        if operand is not None:
            self.write_over(operand, out)
        else:
            self.new(out, out.meta, instruction)
        self.work_in(instruction, operand is None)

    def new(self, out: Variable, meta: Meta, instruction: Call | Visit) -> None:
        """A buffer for a result."""
        lives = self.lives
        self.place[out] = Buffer(len(self.buffers), meta, lives.at[id(instruction)], lives.last[out], out in lives.escaping,
                                 id(instruction) in self.always)
        self.buffers.append(self.place[out])

    def give_own_memory(self, visit: Visit) -> None:
        """Let each operand of a node that looks at storages have one of its own, as in the interpreter: its place is not in an arena."""
        for root in frozenset().union(*map(roots_of, visit.args)):
            buffer = self.place.get(root)
            if buffer is not None and buffer.number != BY_OPERATOR:
                buffer.is_loose = buffer.leaves = True

    def work_in(self, instruction: Call | Visit, apart: bool) -> None:
        """Scratch memory for a fused group; a task allocates its scratch memory itself. apart: no result is written over an operand."""
        function = instruction.function
        size = function.group.scratch(apart) if isinstance(function, Bound | BoundToMany) else 0
        if size >= RECYCLED and instruction not in self.tasks:
            at = self.lives.at[id(instruction)]
            buffer = self.scratch[instruction] = Buffer(len(self.buffers), fresh_meta("uint8", (size,)), at, at, False)
            self.buffers.append(buffer)

    def add_owned(self, out: Variable, meta: Meta, is_new: bool) -> None:
        """A result in memory that the operator allocates. is_new: nobody else refers to it, so later results may be written over it."""
        buffer = Buffer(BY_OPERATOR, meta, self.lives.defined[out], self.lives.last[out], True)
        self.owned.append(buffer)
        if is_new and meta.nbytes >= RECYCLED:
            self.place[out] = buffer

    def see(self, view: Call) -> None:
        """Note a view of a buffer. Later results may be written over a view of all of it, in the shape of the view, unless NumPy makes it
        read-only."""
        buffer, meta = self.buffer_of(view.args[0]), view.out.meta
        seen = self.views.get(view.args[0]) or buffer and View(view.args[0], view.args[0].meta, buffer, 0)
        if meta is not None and seen and not holds_items((*view.args[1:], *view.named.values())):
            source = dummy(seen.meta)
            shift = address_of(view.function(source, *view.args[1:], **view.named)) - address_of(source)
            self.views[view.out] = View(view.out, meta, seen.buffer, seen.shift + shift)
        if view.function is not np.broadcast_to and buffer is not None and meta is not None and meta.nbytes == buffer.meta.nbytes \
                and all(each.strides == contiguous_strides(each.shape, each.dtype.itemsize) for each in (meta, buffer.meta)):
            self.whole[view.out] = buffer

    def buffer_of(self, variable: Any) -> Any:
        """The buffer that a variable fills; None for a view of a part, and for any other variable."""
        return self.place.get(variable) or self.whole.get(variable) if isinstance(variable, Variable) else None

    def dying_operand(self, call: Call, at: int) -> Variable | None:
        """An operand that fills its buffer, that nobody reads after this call, and that has the dtype, shape and strides of the result."""
        variables = [each for each in call.args if isinstance(each, Variable)]
        return next((each for each in variables if self.dies(each, call.out, variables, at)), None)

    def dies(self, operand: Variable, out: Variable, operands: list[Variable], at: int, once: bool = False) -> bool:
        """Does an operand fill a buffer that nobody reads after position `at`, and has it the facts of the result `out`? once: it must
        also be the only operand in that buffer, and occur once."""
        buffer = self.buffer_of(operand)
        if buffer is None or operand.meta != out.meta or len(operand.roots) != 1:
            return False
        (root,) = operand.roots
        if root in self.lives.escaping or self.lives.last[root] != at or buffer.end != at:
            return False
        others = [each for each in operands if root in each.roots]
        return len(others) == 1 if once else all(each is operand for each in others)

    def write_over(self, operand: Variable, out: Variable) -> None:
        """Place a result over an operand that dies."""
        dying = self.place[out] = self.buffer_of(operand)
        dying.end, dying.leaves = max(dying.end, self.lives.last[out]), dying.leaves or out in self.lives.escaping
        dying.results += 1
        self.in_place += 1
        self.over[out] = operand

    def of_rounds_before(self, program: Program) -> list[tuple[int, int, int]]:
        """The extra lifetimes, as (start, end, bytes), of loop-carried values that the body reads while it computes the next ones."""
        lifetimes: dict[Buffer, tuple[int, int, int]] = {}
        for loop in [each for each in every(program.body) if isinstance(each, Repeat)]:
            for variable, item in zip(loop.carried, loop.body.results[1:], strict=True):
                buffer = self.buffer_of(item)
                if variable in self.lives.looked_at and buffer is not None and buffer.number != BY_OPERATOR and not is_placed(buffer):
                    lifetimes[buffer] = self.lives.at[id(loop)], buffer.start, buffer.meta.nbytes
        return list(lifetimes.values())

    def arrange(self) -> MemoryReport:
        """Place the buffers, and report the memory. Large results that operators allocate come on top of the memory that the plan keeps
        between runs: if the sum is more than the values alive at one time need, a large plan keeps no buffers between runs, not even those
        of results, which would lie idle until they are computed; and fused groups allocate their scratch memory themselves."""
        report = self.arranged()
        if self.owned and report.live >= WORTH_FREEING and report.peak > LOOSE * report.live:
            loose = [each for each in self.buffers if each.is_once and each.meta.nbytes >= RECYCLED]
            for buffer in loose:
                buffer.is_loose = buffer.leaves = True
                buffer.piece = None
            if loose:
                work = set(self.scratch.values())
                self.buffers = [buffer for buffer in self.buffers if buffer not in work]
                self.scratch.clear()
                report = self.arranged()
        self.views = {out: view for out, view in self.views.items() if not view.buffer.leaves and view.buffer.piece is None}
        self.inside = [*[each for each in self.buffers if is_placed(each) and not each.leaves and each.piece is None], *self.views.values()]
        return report

    def arranged(self) -> MemoryReport:
        """Place the buffers once, and report the memory."""
        unplanned = [*self.unplanned, *[buffer.life for buffer in self.owned]]
        outside = [*unplanned, *self.before, *[b.life for b in self.buffers if b.leaves and not is_placed(b)]]
        placed = [buffer for buffer in self.buffers if is_placed(buffer)]
        work = set(self.scratch.values())
        live = largest_sum([*outside, *[buffer.life for buffer in placed if buffer not in work]])
        placement = place(placed, live, self.is_first)
        self.arena = placement.arena
        self.pieces = [piece for piece in placement.pieces if len(piece.buffers) > 1]
        peak = placement.total + largest_sum(outside)
        return MemoryReport(placement.arena, live, peak, largest_sum(unplanned), self.unknown, self.results, len(self.buffers),
                            self.in_place)


def holds_items(value: Any) -> bool:
    """Does a value contain a variable?"""
    if isinstance(value, slice):
        return holds_items((value.start, value.stop, value.step))
    return any(map(holds_items, value)) if isinstance(value, tuple) else isinstance(value, Variable | Group)


def address_of(array: Any) -> int:
    """The address of the first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def unknown_results(visit: Visit) -> int:
    """How many results of a visit are tensors that somebody reads, and of which no facts are known."""
    if len(visit.facts) != len(visit.node.outputs):     # a loop in C, whose results are not the results of the node
        return 0
    return sum([meta is None and isinstance(value.type, TensorType) and value.has_uses
                for meta, value in zip(visit.facts, visit.node.outputs, strict=True)])


def is_placed(buffer: Buffer) -> bool:
    """Is the place of a buffer known before the run? Not for small results that leave, nor for results of a loop: one per round."""
    return not buffer.is_loose and (not buffer.leaves or buffer.is_once and buffer.meta.nbytes >= RECYCLED)


def written_inputs(graph: Graph) -> list[bool]:
    """Per input: must a run copy it, since a graph that writes may write into it, or return it as part of a result? Tensors are not copied
    where only lists are written: as in a graph without writes, a result may be an input."""
    writers = writers_of(graph)
    if any(node.kind[:1] == "^" for node in writers):
        return [True] * len(graph.inputs)
    touched = Aliases(graph).touched_inputs()
    if all(map(changes_list, writers)):
        return [each and not isinstance(value.type, TensorType) for each, value in zip(touched, graph.inputs, strict=True)]
    return touched


def inputs_written(graph: Graph) -> list[bool]:
    """Per input: may a node write into it? As `written_inputs`, without what is only returned."""
    if any(node.kind[:1] == "^" for node in writers_of(graph)):
        return [True] * len(graph.inputs)
    return Aliases(graph).touched_inputs(by_results=False)


def asks_for_storages(program: Program) -> bool:
    """Does a node look at the memory around a tensor? Then no tensor may become a part of another one."""
    return any(isinstance(each, Visit) and each.node.kind in BY_STORAGE for each in every(program.body))


def overwrites(program: Program) -> bool:
    """May an instruction of a program write into memory that others see?"""
    return program.writes or any(isinstance(each, Visit) and each.keeps for each in every(program.body))


def every(lowered: Lowered) -> Iterable[Instruction]:
    """All instructions, in the order of their positions."""
    for instruction in lowered.instructions:
        yield instruction
        if isinstance(instruction, Branch):
            for block in instruction.blocks:
                yield from every(block)
        elif isinstance(instruction, Repeat):
            yield from every(instruction.body)
