"""Heavy instructions of a plan that do not need each other run at the same time, on several threads.

A *task* is a heavy instruction that another thread runs: it is started when its operands are computed, and waited for before its result is
read. The thread of the caller runs all other instructions, in the order of the program, except that an instruction that would have to
wait comes later. Every instruction makes the same call on the same operands as with one thread, so results are the same bit for bit.

The order of these is kept: an instruction that writes into memory that others see (all instructions before it are finished, all behind it
come later); a write over memory and the reads of that memory; instructions that may fail or draw random numbers, among each other, so
that the first error is the one that one thread would have met. Each block of a loop or branch is ordered separately.

Products of matrices are no tasks where BLAS has several threads: it shares each large product among them, and two products at a time would
take turns. The number of BLAS threads is never changed here: with another number, sums may be rounded otherwise.
"""
from __future__ import annotations

from irtool.execute.fusion import BoundToMany
from irtool.execute.native.c_loops import NativeLoop
from irtool.execute.plan.costs import Weight, blas_threads, weigh
from irtool.execute.plan.program import Branch, Call, Instruction, Lowered, Program, Repeat, Variable, Visit, Wait
from irtool.execute.plan.python_source import all_reads, outs_of
from irtool.ir.effects import facts_of

WORTH_BESIDE = 100_000.0
"""Nanoseconds from which an instruction is heavy. Starting a task and waiting for it takes about 15,000, more on a busy machine."""
HAND_OVER = 15_000.0
"""Nanoseconds that starting a task takes on the thread that starts it."""
AHEAD = 256
"""How many instructions after the first that must wait are considered instead: results computed early take memory until they are read."""


def run_beside(program: Program, threads: int) -> None:
    """Choose the tasks of a program and put it in order. A program without two heavy instructions that are independent stays as it is."""
    program.threads = threads
    if threads < 2:
        return
    for lowered in blocks_of(program.body):
        weights = [weigh(each, threads) for each in lowered.instructions]
        if sum(map(is_heavy, lowered.instructions, weights)) < 2:
            continue
        ordered: list[Instruction] = []
        start = 0
        for at, each in enumerate([*lowered.instructions, None]):
            if each is None or is_barrier(each, program.writes):
                ordered += Order(program, lowered.instructions[start:at], weights[start:at]).run()
                ordered += [] if each is None else [each]
                start = at + 1
        lowered.instructions = ordered


def blocks_of(lowered: Lowered) -> list[Lowered]:
    """A block and those in it."""
    blocks = [lowered]
    for each in lowered.instructions:
        for inner in each.blocks if isinstance(each, Branch) else [each.body] if isinstance(each, Repeat) else ():
            blocks += blocks_of(inner)
    return blocks


def is_barrier(instruction: Instruction, writes: bool) -> bool:
    """May an instruction write into memory that others see, or have another side effect? writes: may the graph?"""
    if isinstance(instruction, Call):
        return instruction.way == "keep" or instruction.way == "into" and writes
    if isinstance(instruction, Visit):
        return instruction.keeps or instruction.node.kind[:1] == "^"
    if isinstance(instruction, Branch):
        return any(is_barrier(each, writes) for block in instruction.blocks for each in block.instructions)
    return isinstance(instruction, Repeat) and any(is_barrier(each, writes) for each in instruction.body.instructions)


def written_by(instruction: Instruction) -> frozenset[Variable]:
    """The roots of the memory that the calls in an instruction overwrite."""
    if isinstance(instruction, Call):
        return instruction.out.roots if instruction.way == "into" else frozenset()
    blocks = instruction.blocks if isinstance(instruction, Branch) else [instruction.body] if isinstance(instruction, Repeat) else ()
    return frozenset().union(*[written_by(each) for block in blocks for each in block.instructions])


def is_heavy(instruction: Instruction, weight: Weight) -> bool:
    """Is an instruction worth a task, and may it be one?"""
    if weight.cost < WORTH_BESIDE or weight.shared_by:
        return False
    if isinstance(instruction, Call):
        return instruction.way in ("ufunc", "out", "fresh")
    if not isinstance(instruction, Visit) or is_barrier(instruction, True):
        return False
    kind = instruction.node.kind
    return isinstance(instruction.function, BoundToMany | NativeLoop) or kind[:6] == "aten::" and not facts_of(kind).is_random


class Written:
    """The instructions that read and write memory that calls overwrite, in the order of the program."""

    def __init__(self, instructions: list[Instruction]) -> None:
        self.writes = [written_by(each) for each in instructions]
        self.roots = frozenset().union(*self.writes)
        self.writer: dict[Variable, int] = {}
        self.readers: dict[Variable, list[int]] = {}        # since the last write

    def needs(self, at: int, instruction: Instruction, read: set[Variable]) -> set[int]:
        """The instructions that must come before one that reads `read`: those that wrote this memory last, and, if the instruction writes
        it, those that have read it since."""
        if not self.roots:
            return set()
        touched = self.roots & frozenset().union(*[each.roots for each in (*read, *outs_of(instruction))])
        needed = {self.writer[root] for root in touched if root in self.writer}
        for root in touched:
            if root in self.writes[at]:
                needed.update(self.readers.pop(root, ()))
                self.writer[root] = at
            else:
                self.readers.setdefault(root, []).append(at)
        return needed


class Order:
    """Puts a sequence of instructions without barriers in order, as one thread with `threads - 1` helpers would run it."""

    def __init__(self, program: Program, instructions: list[Instruction], weights: list[Weight]) -> None:
        self.program = program
        self.all = instructions
        self.costs = [weight.cost for weight in weights]
        heavy = [at for at, (each, weight) in enumerate(zip(instructions, weights, strict=True)) if is_heavy(each, weight)]
        self.heavy = {at: 1 << number for number, at in enumerate(heavy)}
        self.needs: list[list[int]] = []                # per instruction: those whose results it reads
        self.behind: list[int] = []                     # a bit set: the heavy instructions whose results it needs, directly or not
        self.before: list[int] = []                     # for one that may fail: the previous one that may fail; else -1
        defined_at: dict[Variable, int] = {}
        written = Written(instructions)
        latest = -1
        for at, each in enumerate(instructions):
            read: set[Variable] = set()
            all_reads(each, read)
            needed = sorted({defined_at[variable] for variable in read if variable in defined_at} | written.needs(at, each, read))
            self.needs.append(needed)
            bits = 0
            for other in needed:
                bits |= self.behind[other] | self.heavy.get(other, 0)
            self.behind.append(bits)
            defined_at.update([(variable, at) for variable in outs_of(each)])
            self.before.append(-1 if isinstance(each, Call) else latest)
            latest = latest if isinstance(each, Call) else at
        self.clock = 0.0
        self.free = [0.0] * (program.threads - 1)       # when each helper thread is idle again, by the estimates
        self.flying: dict[int, float] = {}              # tasks in flight -> when they are finished, by the estimates
        self.issued = [False] * len(instructions)
        self.ordered: list[Instruction] = []
        self.waits: dict[int, Wait] = {}

    def run(self) -> list[Instruction]:
        """The instructions in a new order, with Waits among them; the tasks are stored in the program. Unchanged if tasks gain nothing."""
        if len(self.heavy) < 2:
            return self.all
        first = 0
        while first < len(self.all):
            at = self.next(first)
            for other in self.needs[at]:
                self.wait(other)
            self.issue(at)
            while first < len(self.all) and self.issued[first]:
                first += 1
            for other, finish in list(self.flying.items()):
                if self.clock >= finish + self.costs[other]:        # twice the estimate: it may take longer than estimated
                    self.wait(other)
        for other in list(self.flying):
            self.wait(other)
        return self.without_idle_tasks()

    def next(self, first: int) -> int:
        """The first instruction that can run without waiting for a task; if there is none near, the first not issued yet."""
        for at in range(first, min(first + AHEAD, len(self.all))):
            before = self.before[at]
            if not self.issued[at] and (before < 0 or self.issued[before]) \
                    and all(self.issued[other] and self.flying.get(other, 0.0) <= self.clock for other in self.needs[at]):
                return at
        return first

    def wait(self, at: int) -> None:
        """Wait for an instruction, if it is a task that is not finished."""
        finish = self.flying.pop(at, None)
        if finish is not None:
            self.clock = max(self.clock, finish)
            self.ordered.append(self.waits[at])

    def issue(self, at: int) -> None:
        """Run an instruction on this thread, or start it as a task."""
        instruction, cost = self.all[at], self.costs[at]
        self.issued[at] = True
        self.ordered.append(instruction)
        helper = min(range(len(self.free)), key=self.free.__getitem__)
        if at in self.heavy and isinstance(instruction, Call | Visit) and self.free[helper] <= self.clock and self.has_partner(at):
            self.clock += HAND_OVER
            self.free[helper] = self.flying[at] = self.clock + cost
            self.waits[at] = Wait(instruction, cost)
        else:
            self.clock += cost

    def has_partner(self, at: int) -> bool:
        """Is there another heavy instruction nearby, not issued yet, that does not need this one's result?"""
        return any(not self.issued[other] and not self.behind[other] & self.heavy[at] for other in self.heavy
                   if at - AHEAD < other < at + AHEAD)

    def without_idle_tasks(self) -> list[Instruction]:
        """The instructions in order; a task during which this thread would hardly do anything becomes an ordinary call."""
        place = {id(each): at for at, each in enumerate(self.ordered)}
        cost = {id(each): cost for each, cost in zip(self.all, self.costs, strict=True)}
        worthwhile = {id(wait.started): wait for wait in self.waits.values()}
        for wait in self.waits.values():
            between = [each for each in self.ordered[place[id(wait.started)] + 1:place[id(wait)]] if not isinstance(each, Wait)]
            if sum([cost[id(each)] for each in between if id(each) not in worthwhile]) < WORTH_BESIDE:
                del worthwhile[id(wait.started)]
            else:
                wait.beside = [each for each in between if cost[id(each)] >= WORTH_BESIDE / 2]
        self.program.tasks.update([(wait.started, wait) for wait in worthwhile.values()])
        return [each for each in self.ordered if not isinstance(each, Wait) or id(each.started) in worthwhile] if worthwhile else self.all


# -- as text
def describe_tasks(program: Program) -> list[str]:
    """A line per task: which instructions run at the same time, and why; or one line that says why there is no task."""
    if program.threads < 2:
        return ["one thread: nothing runs beside anything else"]
    lines = []
    for task in program.tasks.values():
        others = ", ".join([named(each) for each in task.beside]) or "many small ones"
        lines.append(f"{named(task.started)}, about {task.cost / 1e6:.2g} ms, beside {others}")
    if not lines:
        lines.append(f"nothing runs beside anything else: no two independent nodes take {WORTH_BESIDE / 1e6:.2g} ms or more on one thread")
    shared = {weigh(each, program.threads).shared_by for block in blocks_of(program.body) for each in block.instructions}
    if "BLAS" in shared:
        lines.append(f"large products are left to BLAS, which shares each among its {blas_threads()} threads")
    if "the convolution" in shared:
        lines.append(f"large convolutions share their positions among {program.threads} threads")
    if "the group" in shared:
        lines.append(f"large fused groups share their blocks among {program.threads} threads")
    return lines


def named(instruction: Instruction) -> str:
    """An instruction as text: the kind and line of its node; for a call, its function too."""
    where = [f"line {instruction.node.line}"] if instruction.node.line else []
    name = getattr(instruction.function, "__name__", "") if isinstance(instruction, Call) else ""
    where += [name] if name else []
    return instruction.node.kind + (f" ({', '.join(where)})" if where else "")
