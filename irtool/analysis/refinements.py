"""Which integers a graph has compared: inside `if n == 3:` the value n is 3, and behind `if n != 3: raise` too."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from irtool.ir.constants import NOT_CONSTANT, constant
from irtool.ir.effects import IF_KINDS

if TYPE_CHECKING:
    from irtool.ir.graph import Block, Graph, Node, Value

Facts = dict["Value", int]
Outcomes = tuple[Facts, Facts]
"""The facts that a condition implies if it is true, and if it is false."""
NOTHING: Outcomes = ({}, {})


class Refinements:
    """A walk over a graph that calls `visit(node)` for each node, and for the return node of each block, with the facts at that place in
    `known`."""

    def __init__(self, graph: Graph, subject: Callable[[Value], Value | None], visit: Callable[[Node], None]) -> None:
        self.graph = graph
        self.subject = subject
        """The subject of a comparison of this integer: the integer itself, a list of that length, or nothing (None)."""
        self.visit = visit
        self.known: Facts = {}
        self.outcomes: dict[Value, Outcomes] = {}

    def run(self) -> None:
        """Walk the graph."""
        self._block(self.graph.block, {})

    def _block(self, block: Block, assumed: Facts) -> bool:
        """Walk a block in which `assumed` holds. Returns whether it always raises."""
        known = self.known
        before = {key: known.get(key) for key in assumed}
        known.update(assumed)
        raises = False
        for node in block:
            if node.kind in IF_KINDS and len(node.blocks) == 2:
                holds, fails = self.outcomes.get(node.inputs[0], NOTHING)
                ends = [self._block(node.blocks[0], holds), self._block(node.blocks[1], fails)]
                self.visit(node)
                self._join(node, holds, fails)
                if any(ends):
                    certain = {} if all(ends) else fails if ends[0] else holds
                    before.update((key, known.get(key)) for key in certain if key not in before)
                    known.update(certain)
                    raises = raises or all(ends)
                continue
            for inner in node.blocks:
                self._block(inner, {})
            self.visit(node)
            self._compare(node)
            raises = raises or node.kind == "prim::RaiseException"
        self.visit(block.return_node)
        for key, number in before.items():
            if number is None:
                del known[key]
            else:
                known[key] = number
        return raises

    def _compare(self, node: Node) -> None:
        """Record the facts that a comparison with a constant, or its negation, implies."""
        if node.kind == "aten::__not__":
            holds, fails = self.outcomes.get(node.inputs[0], NOTHING)
            self.outcomes[node.output] = fails, holds
        elif node.kind in ("aten::eq", "aten::ne") and len(node.inputs) == 2 and len(node.outputs) == 1:
            for value, other in (node.inputs, node.inputs[::-1]):
                number = constant(other)
                is_asked = type(number) is int and value.type.key == "int" and constant(value) is NOT_CONSTANT
                subject = self.subject(value) if is_asked else None
                if subject is not None and isinstance(number, int):
                    self.outcomes[node.output] = ({subject: number}, {}) if node.kind == "aten::eq" else ({}, {subject: number})

    def _join(self, node: Node, holds: Facts, fails: Facts) -> None:
        """Record the facts of `a and b` and `a or b`: branches whose results are one of two conditions, one of them constant."""
        for value, *alternatives in zip(node.outputs, *[block.outputs for block in node.blocks], strict=True):
            for taken, chosen, other in ((holds, *alternatives), (fails, *reversed(alternatives))):
                sides = self.outcomes.get(chosen, NOTHING)
                match constant(other):
                    case False:
                        self.outcomes[value] = {**taken, **sides[0]}, {}
                    case True:
                        self.outcomes[value] = {}, {**taken, **sides[1]}
