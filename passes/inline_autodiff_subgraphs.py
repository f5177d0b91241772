"""Inlining of small differentiable subgraphs."""
from __future__ import annotations

from itertools import islice

from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.edits import inline_graph, replace_node
from irtool.ir.graph import Graph, Node
from irtool.ir.packed import owns_gradient
from irtool.ir.structure_kinds import GROUP_KINDS


def inline_autodiff_subgraphs(graph: Graph, threshold: int = 5) -> bool:
    """Inline differentiable subgraphs with fewer than `threshold` nodes, constants not counted, that contain no fusion group.

    Those with a gradient of their own (`pack-gradient`) stay, since it would be lost.

    before:
        graph(%x : Tensor):
          %1 : Tensor = prim::DifferentiableGraph_0(%x)
          return (%1)
        with prim::DifferentiableGraph_0 = graph(%0 : Tensor):
          %1 : Tensor = aten::tanh(%0)
          return (%1)

    after:
        graph(%x : Tensor):
          %2 : Tensor = aten::tanh(%x)
          return (%2)
    """
    changed = False
    for node in list(graph.walk()):
        if node.kind not in GROUP_KINDS or node.owner is None or owns_gradient(node):
            continue
        attribute = node.attributes.get("Subgraph")
        if attribute is None or not isinstance(attribute.value, Graph):
            continue
        callee = attribute.value
        counted = (each for each in callee.walk() if each.kind not in CONSTANT_KINDS)
        size = sum(1 for _ in islice(counted, max(threshold, 0)))       # a large one is not walked to its end
        if size < threshold and all(map(_runs_plainly, callee.walk())) and len(node.inputs) == len(callee.inputs):
            replace_node(node, inline_graph(callee, node, node.inputs)[:len(node.outputs)])
            changed = True
    return changed


def _runs_plainly(node: Node) -> bool:
    return node.kind.startswith(("aten::", "prim::")) and not node.kind.endswith("Group")
