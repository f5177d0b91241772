"""The slot interpreter: runs a lowered graph from tuples, without source. It starts at once, and runs programs too deep for a function.

Every variable has a slot in one list; an instruction is a function that reads and fills slots. Consecutive calls that write into
buffers, which is what pointwise operators become, are rows of one table.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from irtool.execute.plan.buffers import Recycler
from irtool.execute.plan.memory import WRITES_OUT, MemoryPlan
from irtool.execute.plan.placement import BY_OPERATOR, View
from irtool.execute.plan.program import Branch, Call, Group, Instruction, Item, Known, Lowered, Program, Repeat, Variable, Visit, Wait
from irtool.execute.plan.python_source import Changed, last_reads, seen
from irtool.execute.thread_pool import Crew, Failed
from irtool.interpret import located
from irtool.ir.graph import Node
from irtool.ops.array_library import np
from irtool.ops.powers import at_run
from irtool.ops.symbols.array_layout import Meta, meta_of

Slots = list[Any]
Action = Callable[[Slots], None]
Row = tuple[Any, int, int, int]
Interval = tuple[Instruction, int, int, int]
"""An instruction, its start and its end in ns, and the thread that ran it."""


class SlotProgram:
    """A program ready to run. observed: the facts of results of visits, if they were the same in all runs. intervals: if it is a list,
    every run adds when each instruction ran; the table of several ufuncs is then one instruction each."""

    def __init__(self, program: Program, memory: MemoryPlan, observe: bool = False, intervals: list[Interval] | None = None) -> None:
        self.program = program
        self.memory = memory
        self.written = set(memory.over.values())    # operands whose slots results take over
        self.observe = observe
        self.intervals = intervals
        self.observed: dict[Node, list[Meta | None]] = {}
        self.numbers: dict[Variable, int] = {}
        self.first: Slots = []                      # constants, and None
        self.begun: set[int] = {BY_OPERATOR}                # numbers of the buffers that have memory
        self.copies: list[tuple[int, Any]] = []     # slot and value of constants that someone may write into or hold: copied in each run
        self.start = self.fresh()                   # the slot of the function that starts tasks
        self.tasks = {started: self.fresh() for started in program.tasks}
        self.inputs = [self.slot(variable) for variable in program.inputs]
        self.places = {buffer.number: self.fresh() for buffer in memory.buffers}
        self.inside = [self.slot(each.variable) if isinstance(each, View) else self.places[each.number] for each in memory.inside]
        self.pieces = [(piece.shared().take, [self.places[buffer.number] for buffer in piece.all]) for piece in memory.pieces]
        self.begun |= {piece.all[0].number for piece in memory.pieces}
        for variable in memory.lives.escaping:
            if variable.constant is not None:
                self.copies.append((self.slot(variable), variable.constant))
        self.actions = self.block(program.body, program.inputs, program.body.results)
        self.results = [self.reader(item) for item in program.body.results]

    def run(self, values: Sequence[Any], work: Sequence[Any]) -> list[Any]:
        """One run. `work` holds the buffers of the arena."""
        slots = list(self.first)
        for slot, value in zip(self.inputs, values, strict=True):
            slots[slot] = value
        for slot, value in zip(self.inside, work, strict=True):
            slots[slot] = value
        held = [take() for take, _ in self.pieces]
        for arrays, (_, places) in zip(held, self.pieces, strict=True):
            for slot, value in zip(places, arrays, strict=True):
                slots[slot] = value
        for slot, value in self.copies:
            slots[slot] = np.array(value)
        if self.tasks:
            self.run_beside(slots)
        else:
            for action in self.actions:
                action(slots)
        return [read(slots) for read in self.results]

    def run_beside(self, slots: Slots) -> None:
        """All actions, on several threads."""
        try:
            with Crew(self.program.threads) as slots[self.start]:
                for action in self.actions:
                    action(slots)
        except Failed as failure:
            raise failure.error from failure.error.__cause__

    # -- slots
    def fresh(self, value: Any = None) -> int:
        """A new slot."""
        self.first.append(value)
        return len(self.first) - 1

    def slot(self, variable: Variable) -> int:
        """The slot of a variable."""
        slot = self.numbers.get(variable)
        if slot is None:
            slot = self.numbers[variable] = self.fresh(variable.constant)
        return slot

    def reader(self, value: Any) -> Callable[[Slots], Any]:
        """A function from slots to the value of an item, an argument, or a tuple of them."""
        if isinstance(value, Variable):
            return operator.itemgetter(self.slot(value))
        if isinstance(value, Group):
            make, inner = value.make, [self.reader(each) for each in value.items]
            return lambda slots: make([read(slots) for read in inner])
        if isinstance(value, Known):
            known = value.value
            return (lambda slots: copied_list(known)) if isinstance(known, list | tuple) else lambda slots: known
        if type(value) is tuple and any(isinstance(each, Variable | Group | Known | tuple) for each in value):
            parts = [self.reader(each) for each in value]
            return lambda slots: tuple([read(slots) for read in parts])
        return lambda slots: value

    # -- instructions
    def block(self, lowered: Lowered, owned: Sequence[Variable], results: Sequence[Item]) -> list[Action]:
        """The actions of a block."""
        dying = last_reads(lowered, owned, results)
        actions: list[Action] = []
        rows: list[Row] = []
        calls: list[Call] = []

        def flush() -> None:
            if rows:
                actions.append(self.timed(table(tuple(rows), tuple([call.node for call in calls])), calls[0]))
                rows.clear()
                calls.clear()

        for instruction in lowered.instructions:
            if isinstance(instruction, Call) and instruction.way == "view" and instruction.out in self.memory.views:
                continue
            row = self.row(instruction) if isinstance(instruction, Call) and instruction not in self.tasks else None
            if isinstance(instruction, Call) and row is not None:
                rows.append(row)
                calls.append(instruction)
                if self.intervals is not None:
                    flush()
            elif isinstance(instruction, Wait):
                flush()
                actions.append(waiting(self.tasks[instruction.started]))
            else:
                flush()
                action = self.timed(guarded(self.action(instruction), instruction.node), instruction)
                task = self.tasks.get(instruction) if isinstance(instruction, Call | Visit) else None
                actions.append(action if task is None else starting(self.start, task, action))
            done = dying.get(id(instruction), ())
            dead = [self.slot(variable) for variable in done if variable.constant is None and self.is_freed(variable)]
            if dead:
                flush()
                actions.append(forget(dead))
        flush()
        return actions

    def timed(self, action: Action, instruction: Instruction) -> Action:
        """An action that also notes when it ran, if that is asked for."""
        intervals = self.intervals
        if intervals is None:
            return action

        def act(slots: Slots) -> None:
            start = perf_counter_ns()
            action(slots)
            intervals.append((instruction, start, perf_counter_ns(), get_ident()))
        return act

    def is_freed(self, variable: Variable) -> bool:
        """Does emptying the slot of a variable free memory?"""
        buffer = self.memory.buffer_of(variable)
        if buffer is not None:
            return buffer.number == BY_OPERATOR and variable not in self.written
        return variable not in self.memory.views

    def row(self, call: Call) -> Row | None:
        """A row of a table, for a ufunc of one or two operands into a buffer that has memory; None for any other call."""
        if call.way != "ufunc" or len(call.args) > 2 or not isinstance(call.function, np.ufunc):
            return None
        buffer, over = self.memory.place[call.out], self.memory.over.get(call.out)
        if over is None and buffer.leaves and buffer.number not in self.begun:
            return None
        place = self.numbers[call.out] = self.places[buffer.number] if over is None else self.slot(over)
        slots = [self.slot(each) if isinstance(each, Variable) else self.fresh(each) for each in call.args]
        return (at_run(call.function), slots[0], slots[1] if len(slots) == 2 else -1, place)

    def action(self, instruction: Call | Visit | Branch | Repeat) -> Action:
        """The action of one instruction."""
        if isinstance(instruction, Call):
            return self.call(instruction)
        if isinstance(instruction, Visit):
            return self.visit(instruction)
        if isinstance(instruction, Branch):
            return self.branch(instruction)
        return self.repeat(instruction)

    def call(self, call: Call) -> Action:
        """A call of NumPy."""
        function, named = at_run(call.function), call.named
        args = [self.reader(each) for each in call.args]
        if call.way == "into":
            target = self.slot(call.out)
            if function is np.positive:     # as an assignment: a ufunc copies operands that overlap `out` first
                return lambda slots: np.copyto(slots[target], args[0](slots))

            def write(slots: Slots) -> None:
                function(*[read(slots) for read in args], out=slots[target])
            return write
        if call.way in WRITES_OUT:
            buffer, over = self.memory.place[call.out], self.memory.over.get(call.out)
            place = self.numbers[call.out] = self.places[buffer.number] if over is None else self.slot(over)
            begins = over is None and buffer.leaves and buffer.number not in self.begun
            self.begun.add(buffer.number)
            take = Recycler(buffer.meta).take if begins and buffer.is_handed_to(call) else None

            work = self.work_of(call)

            def fill(slots: Slots) -> None:
                if take is not None:
                    slots[place] = take()
                elif begins:
                    slots[place] = np.asarray(function(*[read(slots) for read in args], **named))
                    return
                function(*[read(slots) for read in args], **named, out=slots[place], **{name: slots[slot] for name, slot in work})
            return fill
        out = self.slot(call.out)
        if call.way in ("view", "number", "keep"):
            def look(slots: Slots) -> None:
                slots[out] = function(*[read(slots) for read in args], **named)
            return look

        def make(slots: Slots) -> None:
            slots[out] = np.asarray(function(*[read(slots) for read in args], **named))
        return make

    def work_of(self, instruction: Call | Visit) -> list[tuple[str, int]]:
        """The name and the slot of the argument that is the scratch memory of a group."""
        buffer = self.memory.scratch.get(instruction)
        return [] if buffer is None else [("scratch", self.places[buffer.number])]

    def fill_all(self, visit: Visit) -> Action:
        """A node called with the arrays that its results are written to."""
        function, work = visit.function, self.work_of(visit)
        args = [self.reader(each) for each in visit.args]
        buffers = [self.memory.place[out] for out in visit.outs]
        places = [self.places[buffer.number] if out not in self.memory.over else self.slot(self.memory.over[out])
                  for out, buffer in zip(visit.outs, buffers, strict=True)]
        takes = [(self.places[buffer.number], Recycler(buffer.meta).take) for buffer in buffers
                 if buffer.leaves and buffer.number not in self.begun]
        self.numbers.update(zip(visit.outs, places, strict=True))
        self.begun |= {buffer.number for buffer in buffers}

        def fill(slots: Slots) -> None:
            for place, take in takes:
                slots[place] = take()
            function([read(slots) for read in args], [slots[place] for place in places], **{name: slots[slot] for name, slot in work})
        return fill

    def visit(self, visit: Visit) -> Action:
        """A node called as the interpreter calls it."""
        if visit.fills:
            return self.fill_all(visit)
        function, sole, node, facts = visit.function, visit.sole, visit.node, visit.facts
        args = [self.reader(each) for each in visit.args]
        outs = [self.slot(out) for out in visit.outs]

        def call(slots: Slots) -> None:
            returned = function([read(slots) for read in args])
            results = (returned,) if sole else returned
            if self.observe:
                self.note(node, results)
            for slot, value, meta in zip(outs, results, facts, strict=True):
                slots[slot] = value if meta is None else seen(value, meta)
        return call

    def note(self, node: Node, results: Sequence[Any]) -> None:
        """Note the facts of the results of a node in this run."""
        metas = [meta_of(each) if type(each) is np.ndarray else None for each in results]
        old = self.observed.setdefault(node, metas)
        if old != metas:
            self.observed[node] = [a if a == b else None for a, b in zip(old, metas, strict=True)]

    def branch(self, branch: Branch) -> Action:
        """if and else."""
        tests = [self.reader(each) for each in branch.condition]
        blocks = [self.block(lowered, (), lowered.results) for lowered in branch.blocks]
        results = [[self.reader(each) for each in lowered.results] for lowered in branch.blocks]
        outs = [self.slot(out) for out in branch.outs]
        tests_none = branch.tests_none

        def choose(slots: Slots) -> None:
            if tests_none:
                taken = 0 if any(read(slots) is not None for read in tests) else 1
            else:
                taken = 0 if tests[0](slots) else 1
            for action in blocks[taken]:
                action(slots)
            values = [read(slots) for read in results[taken]]
            for slot, value in zip(outs, values, strict=True):
                slots[slot] = value
        return choose

    def repeat(self, loop: Repeat) -> Action:
        """A loop."""
        limit, condition = self.reader(loop.limit), self.reader(loop.condition)
        start = [self.reader(each) for each in loop.start]
        counter, carried = self.slot(loop.counter), [self.slot(each) for each in loop.carried]
        body = self.block(loop.body, (), loop.body.results)
        again, *results = [self.reader(each) for each in loop.body.results]

        def rounds(slots: Slots) -> None:
            values = [read(slots) for read in start]
            most, go, done = limit(slots), condition(slots), 0
            most = most if most is None else int(most)
            for slot, value in zip(carried, values, strict=True):
                slots[slot] = value
            while (most is None or done < most) and go:
                slots[counter] = done
                done += 1
                for action in body:
                    action(slots)
                go = again(slots)
                values = [read(slots) for read in results]
                for slot, value in zip(carried, values, strict=True):
                    slots[slot] = value
        return rounds


def table(rows: tuple[Row, ...], nodes: tuple[Node, ...]) -> Action:
    """The action of several ufuncs of one or two operands, each into its buffer."""
    if all(second < 0 for _, _, second, _ in rows):
        single = tuple([(function, first, place) for function, first, _, place in rows])

        def one(slots: Slots) -> None:
            for function, first, place in single:
                function(slots[first], out=slots[place])
        return one
    if all(second >= 0 for _, _, second, _ in rows):
        def two(slots: Slots) -> None:
            for function, first, second, place in rows:
                function(slots[first], slots[second], out=slots[place])
        return two

    def mixed(slots: Slots) -> None:
        for function, first, second, place in rows:
            if second < 0:
                function(slots[first], out=slots[place])
            else:
                function(slots[first], slots[second], out=slots[place])
    return mixed


def guarded(action: Action, node: Node) -> Action:
    """An action whose errors name the node."""
    def act(slots: Slots) -> None:
        try:
            action(slots)
        except Changed:
            raise
        except Exception as error:
            raise located(error, node) from error
    return act


def starting(start: int, task: int, action: Action) -> Action:
    """Start an action on another thread."""
    def begin(slots: Slots) -> None:
        slots[task] = slots[start](action, slots)
    return begin


def waiting(task: int) -> Action:
    """Wait for an action on another thread."""
    def wait(slots: Slots) -> None:
        slots[task]()
        slots[task] = None
    return wait


def forget(dead: list[int]) -> Action:
    """Empty slots."""
    if len(dead) == 1:
        (only,) = dead

        def drop(slots: Slots) -> None:
            slots[only] = None
        return drop

    def clear(slots: Slots) -> None:
        for slot in dead:
            slots[slot] = None
    return clear


def copied_list(value: Any) -> Any:
    """A copy of a list and the lists in it, so that no run sees what another has changed."""
    if isinstance(value, list):
        return [copied_list(each) for each in value]
    return tuple([copied_list(each) for each in value]) if isinstance(value, tuple) else value
