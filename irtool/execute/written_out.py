"""Recurrent operators of a plan written out as loops over time, which are compiled as a whole: faster than NumPy's calls for a step."""
from __future__ import annotations

from collections.abc import Mapping

from irtool.analysis.liveness import remove_dead_nodes
from irtool.execute.plan.program import Item, Variable
from irtool.ir.edits import clone_block
from irtool.ir.graph import Graph, Value
from irtool.passes.decompose_recurrent import STEPS, Form, replaced


def written_out(graph: Graph, env: Mapping[Value, Item]) -> Graph | None:
    """A copy of the graph with loops for recurrent operators whose sizes are known (env) and fit; None if there are none."""
    if not any(node.kind in STEPS for node in graph.walk()):
        return None
    copy = Graph(graph.dialect, graph.name)
    copy.source = graph.source
    mapping: dict[Value, Value] = {value: copy.block.add_input(value.name, value.type) for value in graph.inputs}
    clone_block(graph.block, copy.block, mapping)
    known = {new: env.get(old) for old, new in mapping.items()}

    def form(value: Value) -> Form | None:
        item = known.get(value)
        meta = item.meta if isinstance(item, Variable) else None
        return None if meta is None else (tuple(meta.shape), meta.dtype.name)

    if not any([replaced(node, form) for node in list(copy.walk()) if node.kind in STEPS]):
        return None
    remove_dead_nodes(copy)
    return copy
