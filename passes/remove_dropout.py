"""Dropout that does not train."""
from __future__ import annotations

from irtool.analysis.liveness import remove_dead_nodes
from irtool.ir.constants import constant
from irtool.ir.edits import replace_node
from irtool.ir.graph import Graph

DROPOUTS = frozenset(f"aten::{name}" for name in "dropout feature_dropout alpha_dropout feature_alpha_dropout".split())


def remove_dropout(graph: Graph) -> bool:
    """Replace the result of a dropout whose `train` is the constant False by its operand, which is the same tensor.

    before:
        graph(%x : Tensor):
          %1 : float = prim::Constant[value=0.5]()
          %2 : bool = prim::Constant[value=0]()
          %3 : Tensor = aten::dropout(%x, %1, %2)
          %4 : Tensor = aten::relu(%3)
          return (%4)

    after:
        graph(%x : Tensor):
          %4 : Tensor = aten::relu(%x)
          return (%4)
    """
    nodes = [node for node in graph.walk() if node.kind in DROPOUTS and len(node.inputs) == 3 and constant(node.inputs[2]) in (False, 0)]
    for node in nodes:
        replace_node(node, node.inputs[:1])
    if nodes:
        remove_dead_nodes(graph)
    return bool(nodes)
