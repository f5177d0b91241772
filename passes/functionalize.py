"""Functionalisation: writes into tensors become new values."""
from __future__ import annotations

from irtool.analysis.gradients_off import is_off
from irtool.ir.edits import clone_node
from irtool.ir.graph import Graph


def functionalize(graph: Graph) -> bool:
    """Replace every write into a tensor by a node with a new value, so that differentiation and batching can follow it.

    A graph with a write that cannot be replaced (into memory of an input, through overlapping views, or where gradients are off) stays
    unchanged.

    before:
        graph(%x : Tensor,
              %one : int):
          %1 : Tensor = aten::exp(%x)
          %2 : Tensor = aten::add_(%1, %one, %one)
          %3 : Tensor = aten::mul(%1, %x)
          return (%3)

    after:
        graph(%x : Tensor,
              %one : int):
          %1 : Tensor = aten::exp(%x)
          %4 : Tensor = aten::add(%1, %one, %one)
          %3 : Tensor = aten::mul(%4, %x)
          return (%3)
    """
    from irtool.autodiff.hidden_writes import is_writer  # here, since the imports cost more than naming a pass should
    from irtool.autodiff.versions import in_versions

    runs_off = is_off(graph)
    if any(is_writer(node) and runs_off(node) is not False for node in graph.walk()):
        return False
    copy = in_versions(graph)
    if copy is graph:
        return False
    graph.block.set_outputs([])
    for node in reversed(list(graph.block)):
        node.destroy()
    mapping = dict(zip(copy.inputs, graph.inputs, strict=True))
    for node in copy.block:
        clone_node(node, mapping, graph.block)
    graph.block.set_outputs([mapping[value] for value in copy.outputs])
    return True
