"""Which result of a plan lies where: lifetimes, results written over operands that die, one arena for what does not leave the plan.

A buffer is the place of a chain of results: each is written over the one before, which nobody reads again. A buffer that leaves the
plan (in an output, in a list that grows, around a loop) is made for each run, and made again of the same memory once nobody holds it
(`Recycler`). All others have places in one arena, which a run borrows: two whose lives do not meet may have the same place.
"""
from __future__ import annotations

import sys
from bisect import insort
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from irtool.execute.codegen_layout import Meta, allocated, contiguous_strides
from irtool.execute.codegen_program import Branch, Call, Group, Instruction, Lowered, Program, Repeat, Variable, Visit, Wait, roots_of

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""
MAX_PLACED = 2000
"""Buffers that are placed one against all others; beyond that, those of equal size share places."""
WRITES_OUT = frozenset(("ufunc", "out"))


class Buffer:
    """A piece of memory for one result, or for several one after the other."""

    __slots__ = ("number", "meta", "start", "end", "leaves", "offset", "results")

    def __init__(self, number: int, meta: Meta, start: int, end: int, leaves: bool) -> None:
        self.number = number
        self.meta = meta
        self.start = start
        self.end = end
        self.leaves = leaves        # someone may hold it after the run, or after the round of a loop
        self.offset = 0             # in the arena
        self.results = 1

    @property
    def size(self) -> int:
        """Bytes taken in the arena."""
        return -(-self.meta.nbytes // ALIGNMENT) * ALIGNMENT


class MemoryReport:
    """What a plan needs, in bytes, besides inputs and constants.

    arena: place of what does not leave the plan; live: the largest sum of what is alive at one time; peak: what the plan takes then;
    unplanned: results made by operators for themselves whose sizes are known (part of live and peak); results: how many results
    there are, buffers: for how many of them memory is set apart.
    """

    __slots__ = ("arena", "live", "peak", "unplanned", "results", "buffers", "in_place")

    def __init__(self, arena: int, live: int, peak: int, unplanned: int, results: int, buffers: int, in_place: int) -> None:
        self.arena = arena
        self.live = live
        self.peak = peak
        self.unplanned = unplanned
        self.results = results
        self.buffers = buffers
        self.in_place = in_place

    def as_dict(self) -> dict[str, int]:
        """For JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        return (f"peak {self.peak} bytes, of which arena {self.arena}; largest live set {self.live}; "
                f"{self.results} results in {self.buffers} buffers, {self.in_place} written over an operand")


class Lives:
    """When each root is made and last read, by position in the program."""

    def __init__(self, program: Program) -> None:
        self.made: dict[Variable, int] = {}
        self.last: dict[Variable, int] = {}
        self.kept: set[Variable] = set()        # may be held by someone the plan does not know
        self.at: dict[int, int] = {}            # id of an instruction -> position
        self.now = 0
        for variable in program.inputs:
            self.made[variable] = -1
        self.block(program.body)
        for item in program.body.results:
            self.read(item)
            self.kept |= roots_of(item)

    def read(self, item: Any) -> None:
        """An item, or an argument of a call, is read now."""
        if isinstance(item, Variable | Group):
            for root in roots_of(item):
                self.last[root] = self.now
        elif isinstance(item, tuple):
            for each in item:
                self.read(each)

    def define(self, variable: Variable) -> None:
        """A variable gets its value now."""
        self.made.setdefault(variable, self.now)
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
                if instruction.way == "into":
                    self.read(instruction.out)
                    self.kept |= {root for root in instruction.out.roots if root.constant is not None}
            elif isinstance(instruction, Visit):
                for each in instruction.args:
                    self.read(each)
                    if instruction.keeps:
                        self.kept |= roots_of(each)
                for out in instruction.outs:
                    self.define(out)
            elif isinstance(instruction, Branch):
                self.branch(instruction)
            elif isinstance(instruction, Wait):
                self.wait(instruction.started)
            else:
                self.repeat(instruction)

    def wait(self, started: Call | Visit) -> None:
        """What another thread reads and writes has its memory to itself until now."""
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
        """What is made before a loop and read in it lives until its end; what goes around it is kept."""
        start = self.now
        for each in (instruction.limit, instruction.condition, *instruction.start):
            self.read(each)
        for variable in (instruction.counter, *instruction.carried):
            self.define(variable)
        self.block(instruction.body)
        self.now += 1
        for item in instruction.body.results:
            self.read(item)
            self.kept |= roots_of(item)
        for root, last in self.last.items():
            if last >= start and self.made.get(root, self.now) <= start:
                self.last[root] = self.now
        for variable in instruction.carried:
            self.read(variable)


class MemoryPlan:
    """The buffers of a program. `place` gives the buffer a call's result is written to, if one is set apart."""

    def __init__(self, program: Program) -> None:
        self.lives = Lives(program)
        self.place: dict[Variable, Buffer] = {}
        self.over: dict[Variable, Variable] = {}        # a result -> the dying operand it is written over
        self.whole: dict[Variable, Buffer] = {}         # views that see all of a buffer, in another shape
        self.buffers: list[Buffer] = []
        self.unplanned: list[tuple[int, int, int]] = []     # start, end, bytes
        self.results = 0
        self.in_place = 0
        for instruction in every(program.body):
            self.assign(instruction)
        self.inside = [buffer for buffer in self.buffers if not buffer.leaves]
        self.arena = place_all(self.inside)
        self.report = self.measure()

    def assign(self, instruction: Instruction) -> None:
        """Find the place of what an instruction gives."""
        if isinstance(instruction, Visit):
            for out, meta in zip(instruction.outs, instruction.facts, strict=True):
                if meta is not None:
                    self.own(out, meta)
            return
        if not isinstance(instruction, Call) or instruction.way in ("into", "number"):
            return
        out = instruction.out
        if instruction.way == "view":
            self.see(instruction)
            return
        assert out.meta is not None
        self.results += 1
        if instruction.way not in WRITES_OUT:
            self.own(out, out.meta)
            return
        at, lives = self.lives.at[id(instruction)], self.lives
        end, leaves = lives.last[out], out in lives.kept
        operand = self.dying_operand(instruction, at) if instruction.way == "ufunc" else None
        if operand is not None:
            dying = self.place[out] = self.buffer_of(operand)
            dying.end, dying.leaves = max(dying.end, end), dying.leaves or leaves
            dying.results += 1
            self.in_place += 1
            self.over[out] = operand
            return
        buffer = Buffer(len(self.buffers), out.meta, at, end, leaves)
        self.buffers.append(buffer)
        self.place[out] = buffer

    def own(self, out: Variable, meta: Meta) -> None:
        """A result whose memory the operator makes."""
        self.unplanned.append((self.lives.made[out], self.lives.last[out], meta.nbytes))

    def see(self, view: Call) -> None:
        """A view of a whole buffer, which may be written over like the buffer itself."""
        buffer = self.buffer_of(view.args[0])
        meta = view.out.meta
        if buffer is not None and meta is not None and meta.nbytes == buffer.meta.nbytes \
                and all(each.strides == contiguous_strides(each.shape, each.dtype.itemsize) for each in (meta, buffer.meta)):
            self.whole[view.out] = buffer

    def buffer_of(self, variable: Any) -> Any:
        """The buffer all of which a variable is; None for anything else."""
        return self.place.get(variable) or self.whole.get(variable) if isinstance(variable, Variable) else None

    def dying_operand(self, call: Call, at: int) -> Variable | None:
        """An operand that is all of a buffer, that nobody reads after this call, and that the result fits exactly."""
        variables = [each for each in call.args if isinstance(each, Variable)]
        for variable in variables:
            buffer = self.buffer_of(variable)
            if buffer is None or variable.meta != call.out.meta or len(variable.roots) != 1:
                continue
            (root,) = variable.roots
            if root in self.lives.kept or self.lives.last[root] != at or buffer.end != at:
                continue
            if all(other is variable or root not in other.roots for other in variables):
                return variable
        return None

    def measure(self) -> MemoryReport:
        """Add up."""
        outside = [(b.start, b.end, b.meta.nbytes) for b in self.buffers if b.leaves] + self.unplanned
        planned = [(b.start, b.end, b.meta.nbytes) for b in self.inside]
        rest = largest_sum(outside)
        return MemoryReport(self.arena, largest_sum(outside + planned), self.arena + rest, largest_sum(self.unplanned), self.results,
                            len(self.buffers), self.in_place)


def every(lowered: Lowered) -> Iterable[Instruction]:
    """All instructions, in the order of their positions."""
    for instruction in lowered.instructions:
        yield instruction
        if isinstance(instruction, Branch):
            for block in instruction.blocks:
                yield from every(block)
        elif isinstance(instruction, Repeat):
            yield from every(instruction.body)


def largest_sum(lives: Sequence[tuple[int, int, int]]) -> int:
    """The largest number of bytes alive at one position; an operand and the result of one instruction are alive together."""
    events: dict[int, int] = {}
    for start, end, size in lives:
        events[start] = events.get(start, 0) + size
        events[end + 1] = events.get(end + 1, 0) - size
    now = most = 0
    for position in sorted(events):
        now += events[position]
        most = max(most, now)
    return most


def place_all(buffers: list[Buffer]) -> int:
    """Give each buffer an offset such that none meets another while both live; gives the size of the arena.

    Largest first, each at the lowest place that is free while it lives.
    """
    if len(buffers) > MAX_PLACED:
        return place_by_size(buffers)
    placed: list[tuple[int, int, int, int]] = []        # from and to, first and last position, of each; in order
    total = 0
    for buffer in sorted(buffers, key=lambda each: (-each.size, each.start)):
        size, start, end, offset = buffer.size, buffer.start, buffer.end, 0
        for low, high, first, last in placed:
            if first > end or last < start or high <= offset:
                continue
            if low >= offset + size:
                break
            offset = high
        buffer.offset = offset
        total = max(total, offset + size)
        insort(placed, (offset, offset + size, start, end))
    return total


def place_by_size(buffers: list[Buffer]) -> int:
    """Buffers of one size share places, first free first taken."""
    free: dict[int, list[tuple[int, int]]] = {}
    total = 0
    for buffer in sorted(buffers, key=lambda each: each.start):
        places = free.setdefault(buffer.size, [])
        found = next((at for at, (end, _) in enumerate(places) if end < buffer.start), None)
        if found is None:
            buffer.offset = total
            total += buffer.size
            places.append((buffer.end, buffer.offset))
        else:
            buffer.offset = places[found][1]
            places[found] = (buffer.end, buffer.offset)
    return total


# -- real memory
class Workspace:
    """The arenas of a plan: `borrow` gives the buffers for one run, `give_back` takes them. As many as there are runs at one time."""

    __slots__ = ("plan", "free")

    def __init__(self, plan: MemoryPlan) -> None:
        self.plan = plan
        self.free: list[list[Any]] = []

    def borrow(self) -> list[Any]:
        """Arrays, one per buffer of the arena, in the order of `plan.inside`."""
        try:
            return self.free.pop()      # atomic: no two runs get the same
        except IndexError:
            return self.make()

    def give_back(self, buffers: list[Any]) -> None:
        """The run is over."""
        self.free.append(buffers)

    def make(self) -> list[Any]:
        """A new arena, cut up."""
        room = np.empty(self.plan.arena + ALIGNMENT, np.uint8)
        shift = -room.ctypes.data % ALIGNMENT
        return [self.cut(room, shift + buffer.offset, buffer.meta) for buffer in self.plan.inside]

    @staticmethod
    def cut(room: Any, offset: int, meta: Meta) -> Any:
        """The array at an offset."""
        return np.ndarray(meta.shape, meta.dtype, room, offset, meta.strides)


COUNT_OF_FREE = 4
"""References to an array that nobody but the recycler's list holds, seen inside `take`: the list, the loop's variable, the argument,
and what zero-cost iteration may hold; measured when the module is loaded."""
RECYCLED = 1 << 14
"""Bytes from which a result is worth looking for memory to make it of."""


class Recycler:
    """Memory for one result that leaves the plan: an array nobody holds any more is given out again.

    An array is free when nothing but this list refers to it; views of an array refer to it. Without a global interpreter lock the
    count says nothing, and nothing is used twice.
    """

    __slots__ = ("meta", "arrays")
    LIMIT = 3

    def __init__(self, meta: Meta) -> None:
        self.meta = meta
        self.arrays: list[Any] = []

    def take(self) -> Any:
        """An array of the recycler's facts whose elements are anything."""
        for array in self.arrays:
            if sys.getrefcount(array) <= COUNT_OF_FREE:
                return array
        array = allocated(self.meta)
        if len(self.arrays) < self.LIMIT and recycles():
            self.arrays.append(array)
        return array


def recycles() -> bool:
    """Do reference counts tell who holds an array?"""
    is_enabled = getattr(sys, "_is_gil_enabled", None)
    return is_enabled is None or bool(is_enabled())


def _count_of_free() -> int:
    probe = [np.empty(0)]
    for array in probe:
        return sys.getrefcount(array)
    return 0


COUNT_OF_FREE = _count_of_free()


__all__ = ["Buffer", "MemoryPlan", "MemoryReport", "Recycler", "Workspace", "allocated", "every"]
