"""Inlining of `irtool::custom_vjp`, where no gradients are needed any more."""
from __future__ import annotations

from irtool.ir.custom import CUSTOM_VJP, custom_parts
from irtool.ir.edits import inline_graph, replace_node
from irtool.ir.graph import Graph


def lower_custom_vjp(graph: Graph) -> bool:
    """Replace each `irtool::custom_vjp` by the nodes of its forward graph; its own gradient is lost.

    before:
        graph(%x : Tensor):
          %1 : Tensor, %2 : Tensor = irtool::custom_vjp_0[outputs=1, backward=<Graph>](%x)
          return (%1)
        with irtool::custom_vjp_0 = graph(%x : Tensor):
          %1 : Tensor = aten::exp(%x)
          return (%1, %1)
        with irtool::custom_vjp_0.backward = graph(%g : Tensor, %y : Tensor):
          %2 : Tensor = aten::mul(%g, %y)
          return (%2)

    after:
        graph(%x : Tensor):
          %3 : Tensor = aten::exp(%x)
          return (%3)
    """
    changed = False
    while customs := [(node, parts) for node in graph.walk() if node.kind == CUSTOM_VJP and (parts := custom_parts(node)) is not None]:
        for node, (forward, _, _) in customs:
            replace_node(node, inline_graph(forward, node, node.inputs))
        changed = True      # the inlined nodes may contain others
    return changed
