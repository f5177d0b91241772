"""Writes into tensors as new tensors."""
from __future__ import annotations

from irtool.ir.graph import Graph
from irtool.ir.rewrite import clone_node


def functionalize(graph: Graph) -> bool:
    """Give every write into a tensor a new value, so that no node writes: what differentiation and batching can follow.

    A graph with a write that has no such form (into memory of an input that others hold, through views that overlap) stays as it is.

    before:
        graph(%x : Tensor,
              %one : int):
          %1 : Tensor = aten::exp(%x)
          %2 : Tensor = aten::add_(%1, %x, %one)
          %3 : Tensor = aten::mul(%1, %x)
          return (%3)

    after:
        graph(%x : Tensor,
              %one : int):
          %1 : Tensor = aten::exp(%x)
          %4 : Tensor = aten::add(%1, %x, %one)
          %3 : Tensor = aten::mul(%4, %x)
          return (%3)
    """
    from irtool.autodiff.versions import in_versions  # it compiles formulas, which naming a pass need not

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
