"""Two graphs run on the same inputs: the first value that differs, and the nodes that computed it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.accepted_values import copied
from irtool.checking.computed import unlike
from irtool.checking.graph_diff import aligned
from irtool.interpret import Observer, run
from irtool.ir.graph import Graph, Node, Value

MAX_HISTORY = 12
"""The largest number of nodes in a history."""


class Recorder(Observer):
    """Stores a copy of the first result of every node."""

    def __init__(self) -> None:
        self.values: dict[Value, Any] = {}

    def after(self, node: Node, results: Sequence[Any]) -> None:
        for value, result in zip(node.outputs, results, strict=False):
            if value not in self.values:
                self.values[value] = copied([result])[0]


class Divergence:
    """The first value of `b` that differs from that of `a`: `value` of a, `other` of b, and `reason`, how they differ."""

    def __init__(self, value: Value, other: Value, reason: str, compared: int) -> None:
        self.value, self.other, self.reason, self.compared = value, other, reason, compared

    @property
    def history(self) -> list[Node]:
        """The nodes of `a` that computed the value, in order; at most MAX_HISTORY."""
        nodes: dict[Node, None] = {}
        queue = [self.value.node]
        while queue and len(nodes) < MAX_HISTORY:
            node = queue.pop(0)
            if node not in nodes and node.owner is not None and node.kind not in ("prim::Param", "prim::Return"):
                nodes[node] = None
                queue += [value.node for value in node.inputs]
        return list(nodes)[::-1]


def diverging(a: Graph, b: Graph, inputs: Sequence[Any], *, rtol: float | None = None, atol: float | None = None,
              seed: int = 0) -> tuple[Divergence | None, int]:
    """The first value that differs (None: none), and the number of values compared. Raises the errors of the runs."""
    ours, theirs = Recorder(), Recorder()
    outputs = run(a, inputs, seed=seed, observer=ours)
    others = run(b, inputs, seed=seed, observer=theirs)
    compared = 0
    for other, value in aligned(a, b).items():
        if value not in ours.values or other not in theirs.values:
            continue
        compared += 1
        reason = unlike(theirs.values[other], ours.values[value], rtol, atol)
        if reason:
            return Divergence(value, other, reason, compared), compared
    for place, (one, expected) in enumerate(zip(others, outputs, strict=False)):
        compared += 1
        reason = unlike(one, expected, rtol, atol)
        if reason:
            return Divergence(a.outputs[place], b.outputs[place], reason, compared), compared
    return None, compared
