"""Statistics of the values of a run, for a page: ranges, means, histograms, NaNs, bytes; and for each node its time in the interpreter
and the bytes alive after it."""
from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any

from irtool.cli.show.values import extent, kind, plain, short
from irtool.cli.show.watching import MemoryTracer, Watcher, arrays_in
from irtool.drawing.escaping import cut
from irtool.ir.graph import Graph, Node, Value
from irtool.ops.array_library import np

BARS = 24
LARGEST = 1 << 22
"""Arrays of more elements have no histogram."""


class Statistics(Watcher):
    """Collects facts about each value: of the last round for a value of a loop, but a NaN of any round."""

    def __init__(self) -> None:
        self.facts: dict[Value, dict[str, Any]] = {}
        self.rounds: dict[Value, int] = {}
        self.spent: dict[Node, int] = {}
        self.started = 0
        self.alive: list[str] = []
        self.memory = MemoryTracer(self.alive.append)

    def start(self, graph: Graph, inputs: Sequence[Any]) -> None:
        self.memory.start(graph, inputs)
        for value, content in zip(graph.inputs, inputs):
            self.facts[value] = facts_of(content)

    def before(self, node: Node, operands: Sequence[Any]) -> None:
        self.memory.before(node, operands)
        self.started = perf_counter_ns()

    def after(self, node: Node, results: Sequence[Any]) -> None:
        if not node.blocks:
            self.spent[node] = self.spent.get(node, 0) + perf_counter_ns() - self.started
        self.memory.after(node, results)
        for value, content in zip(node.outputs, results):
            had_nan = self.facts.get(value, {}).get("nan", False)
            self.facts[value] = facts_of(content)
            self.facts[value]["nan"] |= had_nan
            self.rounds[value] = self.rounds.get(value, 0) + 1
            self.facts[value]["lines"].append(f"{self.alive[-1].partition(' after ')[0]} alive after it")

    def released(self, value: Value, content: Any) -> None:
        self.memory.released(value, content)

    def finish(self) -> None:
        for value, count in self.rounds.items():
            spent = self.spent.get(value.node)
            lines = self.facts[value]["lines"]
            if spent is not None:
                lines.append(f"{spent / 1e6:.3g} ms in the interpreter" + (f", {count} times" if count > 1 else ""))


def facts_of(content: Any) -> dict[str, Any]:
    """Lines of text about a value, `nan`: does it contain one, and for a tensor `bars` and `range` of a histogram."""
    arrays = list(arrays_in(content))
    has_nan = any(array.dtype.kind in "fc" and bool(np.isnan(array).any()) for array in arrays)
    size = sum(array.nbytes for array in arrays)
    lines = [kind(content) + (f", {size:,} bytes" if arrays else "")]
    if not isinstance(content, np.ndarray):
        if isinstance(content, bool | int | float | complex | str):
            lines.append(cut(plain(content), 60))
            has_nan = has_nan or content != content
        return {"lines": lines, "nan": has_nan}
    if content.dtype.kind not in "iuf" or not content.size:
        return {"lines": [*lines, *[extent(content)] * bool(extent(content))], "nan": has_nan}
    finite = content[np.isfinite(content)].astype(np.float64)
    lines.append(extent(content))
    if not finite.size:
        return {"lines": lines, "nan": has_nan}
    lines.append(f"mean {short(finite.mean())}, standard deviation {short(finite.std())}")
    facts: dict[str, Any] = {"lines": lines, "nan": has_nan}
    if 1 < finite.size <= LARGEST and finite.max() > finite.min() and np.isfinite(finite.max() - finite.min()):
        counts, edges = np.histogram(finite, BARS)
        facts["bars"], facts["range"] = counts.tolist(), [short(edges[0]), short(edges[-1])]
    return facts
