"""Warnings about constants of which the text has only a few digits, before they are used in a computation or become exact numbers."""
from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakSet

from irtool.ir.attribute import TensorLiteral
from irtool.ir.callers import warn_in_users_code
from irtool.ir.graph import Graph, Node
from irtool.ir.source import Diagnostic
from irtool.ir.verify import diagnostic_at

ADVICE = "give all of its digits with --constants FILE.npz; from Python, irtool.interop.constant_archives.attach(module, archive)"
_said: WeakSet[Graph] = WeakSet()


class RoundedWarning(UserWarning):
    """A graph with a tensor constant that torch printed with four digits runs, or is written in a form that does not show it."""


def rounded_constants(graph: Graph) -> list[Node]:
    """The nodes whose constants are known only as rounded numbers of the text, also in graphs that nodes own."""
    nodes = []
    graphs = [graph]
    for each in graphs:         # more graphs are added during the walk
        for node in each.walk():
            if node.attributes:
                graphs += node.graphs.values()
                if any(attribute.text[-1:] in ("]", "}") and isinstance(attribute.value, TensorLiteral) and attribute.value.is_rounded
                       for attribute in node.attributes.values()):
                    nodes.append(node)
    return nodes


def remark(graphs: Iterable[Graph]) -> Diagnostic | None:
    """The warning about the first rounded constant of the graphs, which is then marked as reported; None if no constant is rounded."""
    graphs = list(graphs)
    nodes = [node for graph in graphs for node in rounded_constants(graph)]
    _said.update(graphs)
    if not nodes:
        return None
    node = nodes[0]
    more = f" (and {len(nodes) - 1} more)" if len(nodes) > 1 else ""
    name = f"constant %{node.outputs[0].name}" if node.outputs else "a constant"
    graph = node.graph
    message = f"of {name}{more} the text has rounded numbers, as torch prints them with a few digits: {ADVICE}"
    warning = diagnostic_at(graph.source if graph is not None else None, node, message, "W0102")
    warning.severity = "warning"
    return warning


def warn_of_rounded(graph: Graph) -> None:
    """Issue a Python warning at the user's line, once per graph."""
    if graph in _said:
        return
    warning = remark([graph])
    if warning is not None:
        warn_in_users_code(f"{warning.where()}{warning.message}", RoundedWarning)
