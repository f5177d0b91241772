"""Inlining the groups of a graph before it is differentiated, except groups that have a gradient of their own."""
from __future__ import annotations

from irtool.ir.edits import inline_graph, replace_node
from irtool.ir.effects import GROUP_KINDS, group_may_write
from irtool.ir.graph import Graph
from irtool.ir.packed import owns_gradient


def open_groups(graph: Graph) -> None:
    """Replace differentiable subgraphs and fusion groups by their nodes, recursively.

    A group with a gradient of its own stays; its temporaries become results of the group, since its gradient reads them.
    """
    opened = True
    while opened:       # groups may contain groups
        opened = False
        for node in list(graph.walk()):
            inner = node.subgraph if node.kind in GROUP_KINDS else None
            if inner is None:
                continue
            if owns_gradient(node):
                for value in inner.outputs[len(node.outputs):]:
                    node.add_output(graph.fresh_id(), value.type)
            elif len(node.inputs) == len(inner.inputs) and len(node.outputs) <= len(inner.outputs):
                replace_node(node, inline_graph(inner, node, node.inputs)[:len(node.outputs)])
                opened = True


def open_writing_groups(graph: Graph) -> None:
    """As `open_groups`, where a group writes into its operands: the rest of the graph must see that."""
    if any(node.kind in GROUP_KINDS and not owns_gradient(node) and group_may_write(node) for node in graph.walk()):
        open_groups(graph)
