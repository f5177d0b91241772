"""Operators of a plan written out as loops and sums that are compiled as a whole, which is faster than NumPy's calls for them."""
from __future__ import annotations

from collections.abc import Mapping

from irtool.analysis.liveness import remove_dead_nodes
from irtool.execute.native.building import compiler
from irtool.execute.plan.program import Item, Variable
from irtool.ir.edits import clone_block
from irtool.ir.graph import Graph, Value
from irtool.passes import decompose_depthwise, decompose_recurrent
from irtool.passes.decompose_recurrent import Form

WORTH_IT = 1 << 15
"""Products of two numbers from which a depthwise convolution is faster in C than as one call of NumPy's."""


def written_out(graph: Graph, env: Mapping[Value, Item], native: bool | None) -> Graph | None:
    """A copy of the graph with recurrent operators as loops, and with depthwise convolutions as sums of products where these become C.

    Only operators whose sizes are known (env) and fit; None if there are none.
    """
    kinds = {*decompose_recurrent.STEPS, *(decompose_depthwise.PLACES if native is not False and compiler() is not None else ())}
    if not any(node.kind in kinds for node in graph.walk()):
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

    changed = False
    for node in [node for node in copy.walk() if node.kind in kinds]:
        if node.kind in decompose_recurrent.STEPS:
            changed |= decompose_recurrent.replaced(node, form)
        else:
            changed |= decompose_depthwise.replaced(node, form, WORTH_IT)
    if not changed:
        return None
    remove_dead_nodes(copy)
    return copy
