"""Which instructions of a plan run beside which: the heavy ones that do not need each other, on several threads.

A *task* is a heavy instruction that another thread runs: it is started where its operands are there, and waited for before its result is
read. The thread of the caller does everything else, in an order that is the program's but for what would have to wait. Every
instruction makes the same call on the same operands as with one thread, so results are the same bit for bit.

What stays in order: what writes into what others see (all before it is finished, all behind it comes later), what is written over and
whoever reads it, and among each other whatever may fail or draw random numbers, so that the first error is the one that one thread would
have met. Blocks of loops and branches are looked at one by one.

Products of matrices are left alone where BLAS has threads of its own: it shares each large product among them, and two at a time would
take turns. How many threads it has is never changed here: with another number, sums may be rounded otherwise.
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
"""Nanoseconds of that on the thread that starts it."""
AHEAD = 256
"""Instructions that are looked at behind the first that has to wait: what is made early takes memory until it is read."""


def run_beside(program: Program, threads: int) -> None:
    """Choose the tasks of a program and put it in order. A program without two heavy instructions that are independent stays as it is."""
    program.threads = threads
    if threads < 2:
        return
    for lowered in blocks_of(program.body):
        weights = [weigh(each, threads) for each in lowered.instructions]
        if sum(map(is_heavy, lowered.instructions, weights)) < 2:
            continue
        found: list[Instruction] = []
        start = 0
        for at, each in enumerate([*lowered.instructions, None]):
            if each is None or is_barrier(each, program.writes):
                found += Order(program, lowered.instructions[start:at], weights[start:at]).run()
                found += [] if each is None else [each]
                start = at + 1
        lowered.instructions = found


def blocks_of(lowered: Lowered) -> list[Lowered]:
    """A block and those in it."""
    found = [lowered]
    for each in lowered.instructions:
        for inner in each.blocks if isinstance(each, Branch) else [each.body] if isinstance(each, Repeat) else ():
            found += blocks_of(inner)
    return found


def is_barrier(instruction: Instruction, writes: bool) -> bool:
    """May it write into what others see, or do more than give results? writes: may the graph?"""
    if isinstance(instruction, Call):
        return instruction.way == "keep" or instruction.way == "into" and writes
    if isinstance(instruction, Visit):
        return instruction.keeps or instruction.node.kind[:1] == "^"
    if isinstance(instruction, Branch):
        return any(is_barrier(each, writes) for block in instruction.blocks for each in block.instructions)
    return isinstance(instruction, Repeat) and any(is_barrier(each, writes) for each in instruction.body.instructions)


def written_by(instruction: Instruction) -> frozenset[Variable]:
    """The roots of what calls in it write over."""
    if isinstance(instruction, Call):
        return instruction.out.roots if instruction.way == "into" else frozenset()
    blocks = instruction.blocks if isinstance(instruction, Branch) else [instruction.body] if isinstance(instruction, Repeat) else ()
    return frozenset().union(*[written_by(each) for block in blocks for each in block.instructions])


def is_heavy(instruction: Instruction, weight: Weight) -> bool:
    """Is it worth a task, and fit to be one?"""
    if weight.cost < WORTH_BESIDE or weight.shared_by:
        return False
    if isinstance(instruction, Call):
        return instruction.way in ("ufunc", "out", "fresh")
    if not isinstance(instruction, Visit) or is_barrier(instruction, True):
        return False
    kind = instruction.node.kind
    return isinstance(instruction.function, BoundToMany | NativeLoop) or kind[:6] == "aten::" and not facts_of(kind).is_random


class Written:
    """Who reads and writes memory that is written over, in the order of the program."""

    def __init__(self, instructions: list[Instruction]) -> None:
        self.writes = [written_by(each) for each in instructions]
        self.roots = frozenset().union(*self.writes)
        self.writer: dict[Variable, int] = {}
        self.readers: dict[Variable, list[int]] = {}        # since it was written last

    def needs(self, at: int, instruction: Instruction, read: set[Variable]) -> set[int]:
        """What has to come before an instruction that reads this: who wrote it, and, if it is written, whoever has read it."""
        if not self.roots:
            return set()
        touched = self.roots & frozenset().union(*[each.roots for each in (*read, *outs_of(instruction))])
        found = {self.writer[root] for root in touched if root in self.writer}
        for root in touched:
            if root in self.writes[at]:
                found.update(self.readers.pop(root, ()))
                self.writer[root] = at
            else:
                self.readers.setdefault(root, []).append(at)
        return found


class Order:
    """Puts a run of instructions without barriers in order, as one thread with `threads - 1` helpers would get through it."""

    def __init__(self, program: Program, instructions: list[Instruction], weights: list[Weight]) -> None:
        self.program = program
        self.all = instructions
        self.costs = [weight.cost for weight in weights]
        heavy = [at for at, (each, weight) in enumerate(zip(instructions, weights, strict=True)) if is_heavy(each, weight)]
        self.heavy = {at: 1 << number for number, at in enumerate(heavy)}
        self.needs: list[list[int]] = []                # per instruction: those whose results it reads
        self.behind: list[int] = []                     # the heavy ones it cannot do without, as bits
        self.before: list[int] = []                     # the one before it that may fail, for one that may; else -1
        made: dict[Variable, int] = {}
        written = Written(instructions)
        latest = -1
        for at, each in enumerate(instructions):
            read: set[Variable] = set()
            all_reads(each, read)
            needed = sorted({made[variable] for variable in read if variable in made} | written.needs(at, each, read))
            self.needs.append(needed)
            bits = 0
            for other in needed:
                bits |= self.behind[other] | self.heavy.get(other, 0)
            self.behind.append(bits)
            made.update([(variable, at) for variable in outs_of(each)])
            self.before.append(-1 if isinstance(each, Call) else latest)
            latest = latest if isinstance(each, Call) else at
        self.clock = 0.0
        self.free = [0.0] * (program.threads - 1)       # when each helper is through
        self.flying: dict[int, float] = {}              # tasks not waited for: when they are finished
        self.issued = [False] * len(instructions)
        self.found: list[Instruction] = []
        self.waits: dict[int, Wait] = {}

    def run(self) -> list[Instruction]:
        """The instructions, with tasks noted in the program and Waits among them; as they were, where nothing is gained."""
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
                if self.clock >= finish + self.costs[other]:        # so late because estimates are estimates
                    self.wait(other)
        for other in list(self.flying):
            self.wait(other)
        return self.with_what_pays()

    def next(self, first: int) -> int:
        """The first instruction that need not wait; else the first that only has to wait."""
        for at in range(first, min(first + AHEAD, len(self.all))):
            before = self.before[at]
            if not self.issued[at] and (before < 0 or self.issued[before]) \
                    and all(self.issued[other] and self.flying.get(other, 0.0) <= self.clock for other in self.needs[at]):
                return at
        return first

    def wait(self, at: int) -> None:
        """A task is finished."""
        finish = self.flying.pop(at, None)
        if finish is not None:
            self.clock = max(self.clock, finish)
            self.found.append(self.waits[at])

    def issue(self, at: int) -> None:
        """An instruction is done here, or started."""
        instruction, cost = self.all[at], self.costs[at]
        self.issued[at] = True
        self.found.append(instruction)
        helper = min(range(len(self.free)), key=self.free.__getitem__)
        if at in self.heavy and isinstance(instruction, Call | Visit) and self.free[helper] <= self.clock and self.has_partner(at):
            self.clock += HAND_OVER
            self.free[helper] = self.flying[at] = self.clock + cost
            self.waits[at] = Wait(instruction, cost)
        else:
            self.clock += cost

    def has_partner(self, at: int) -> bool:
        """Is there a heavy instruction, not begun and not far, that does not need this one?"""
        return any(not self.issued[other] and not self.behind[other] & self.heavy[at] for other in self.heavy
                   if at - AHEAD < other < at + AHEAD)

    def with_what_pays(self) -> list[Instruction]:
        """Without tasks beside which this thread has next to nothing to do."""
        place = {id(each): at for at, each in enumerate(self.found)}
        cost = {id(each): cost for each, cost in zip(self.all, self.costs, strict=True)}
        kept = {id(wait.started): wait for wait in self.waits.values()}
        for wait in self.waits.values():
            between = [each for each in self.found[place[id(wait.started)] + 1:place[id(wait)]] if not isinstance(each, Wait)]
            if sum([cost[id(each)] for each in between if id(each) not in kept]) < WORTH_BESIDE:
                del kept[id(wait.started)]
            else:
                wait.beside = [each for each in between if cost[id(each)] >= WORTH_BESIDE / 2]
        self.program.tasks.update([(wait.started, wait) for wait in kept.values()])
        return [each for each in self.found if not isinstance(each, Wait) or id(each.started) in kept] if kept else self.all


# -- in words
def told(program: Program) -> list[str]:
    """What runs beside what, and why; a line per task, or one that says why there is none."""
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
    if "the group" in shared:
        lines.append(f"large fused groups share their blocks among {program.threads} threads")
    return lines


def named(instruction: Instruction) -> str:
    """An instruction by its node, and where it is one call of it by the function."""
    where = [f"line {instruction.node.line}"] if instruction.node.line else []
    name = getattr(instruction.function, "__name__", "") if isinstance(instruction, Call) else ""
    where += [name] if name else []
    return instruction.node.kind + (f" ({', '.join(where)})" if where else "")


__all__ = ["run_beside", "told"]
