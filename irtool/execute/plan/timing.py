"""How long each instruction of a plan takes, and what that is in operations and bytes per second."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from irtool.execute.fusion import Bound, BoundToMany
from irtool.execute.native.c_loops import NativeLoop
from irtool.execute.plan.compiled import Plan
from irtool.execute.plan.costs import flops_of, metas_of
from irtool.execute.plan.program import Call, Instruction, Visit
from irtool.execute.plan.slots import Interval
from irtool.ir.graph import Graph, Node


class Timed:
    """The time of one instruction in a run of the plan: of all rounds, if a loop repeats it; without that of the instructions in it."""

    def __init__(self, instruction: Instruction, times: int, ns: float) -> None:
        """times: how often it ran; ns: nanoseconds in one run of the plan, the median over several."""
        self.node: Node = instruction.node
        self.word = ""
        """What runs it (`word_of`); empty for a branch, a loop, or waiting for a thread."""
        self.times = times
        self.ns = ns
        self.flops, self.bytes = 0.0, 0
        """Floating-point operations of products and convolutions (0: unknown), and bytes of operands and results, of all rounds."""
        if isinstance(instruction, Call | Visit):
            metas = metas_of(instruction)
            self.flops = times * flops_of(instruction, metas)
            if not (isinstance(instruction, Call) and instruction.way in ("view", "number", "keep")):     # nothing moves
                self.bytes = times * sum(meta.nbytes for meta in metas)
            self.word = word_of(instruction)

    @property
    def gigaflops(self) -> float | None:
        """10^9 floating-point operations per second; None if they are unknown."""
        return self.flops / self.ns if self.flops and self.ns else None

    @property
    def gigabytes(self) -> float | None:
        """10^9 bytes of operands and results per second; None if there are none."""
        return self.bytes / self.ns if self.bytes and self.ns else None


def word_of(instruction: Call | Visit) -> str:
    """What runs an instruction: the name of a NumPy function, `loop in C`, `fused` (a group of pointwise operators), or `kernel` (called as
    the interpreter calls it)."""
    if isinstance(instruction.function, NativeLoop):
        return "loop in C"
    if isinstance(instruction.function, Bound | BoundToMany):
        return "fused"
    return getattr(instruction.function, "__name__", "kernel") if isinstance(instruction, Call) else "kernel"


def instruction_times(plan: Plan, inputs: Sequence[Any], seed: int | None = 0, runs: int = 5) -> list[Timed]:
    """The instructions that ran, in the order of their first start. Raises NotLowered, or the error of a node.

    Instructions in a branch or a loop follow it, and its time is without theirs. With threads, times of several threads add up.
    """
    sums: dict[Instruction, list[float]] = {}
    counts: dict[Instruction, int] = {}
    for intervals in plan.intervals_of(inputs, seed, runs):
        counts.clear()
        spent: dict[Instruction, float] = {}
        for (instruction, *_), ns in zip(intervals, own_times(intervals)):
            counts[instruction] = counts.get(instruction, 0) + 1
            spent[instruction] = spent.get(instruction, 0.0) + ns
        for instruction in sorted(spent, key={each[0]: each[1] for each in reversed(intervals)}.__getitem__):
            sums.setdefault(instruction, []).append(spent[instruction])
    return [Timed(instruction, counts.get(instruction, 1), median(spent)) for instruction, spent in sums.items()]


def times_by_node(instructions: Sequence[Timed], graph: Graph) -> dict[Node, str]:
    """The time in the plan, in words, of the nodes of the graph that the plan was made of, as far as nodes of the plan have the line or the
    results of one of them. Those in a fused group share its time."""
    nanoseconds: dict[Node, float] = {}
    for each in instructions:
        nanoseconds[each.node] = nanoseconds.get(each.node, 0.0) + each.ns
    nodes = list(graph.walk())
    counts = Counter([node.line for node in nodes])
    by_line = {node.line: node for node in nodes if node.line and counts[node.line] == 1}
    by_names = {tuple([value.name for value in node.outputs]): node for node in nodes if node.outputs}
    texts: dict[Node, str] = {}
    for planned, ns in nanoseconds.items():
        text = f"{ns / 1e6:.3g} ms in the plan" if ns >= 1e5 else f"{ns / 1e3:.3g} µs in the plan"
        inside = [node for inner in planned.graphs.values() for node in inner.block]
        for node in inside or [planned]:
            names = tuple([value.name for value in node.outputs])
            source = by_line.get(node.line) or (by_names.get(names) if not inside else None)
            if source is not None:
                texts[source] = f"{text}, in a group of {len(inside)}" if len(inside) > 1 else text
    return texts


def own_times(intervals: Sequence[Interval]) -> list[float]:
    """The nanoseconds of each interval without those of the intervals of its thread that lie in it."""
    times = [float(end - start) for _, start, end, _ in intervals]
    order = sorted(range(len(intervals)), key=lambda i: (intervals[i][1], -intervals[i][2], -i))
    around: dict[int, list[int]] = {}
    for i in order:
        _, start, end, thread = intervals[i]
        stack = around.setdefault(thread, [])
        while stack and intervals[stack[-1]][2] <= start:
            stack.pop()
        if stack:
            times[stack[-1]] -= end - start
        stack.append(i)
    return times
