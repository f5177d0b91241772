"""Constant pooling."""
from __future__ import annotations

from irtool.analysis.alias import Aliases
from irtool.analysis.memory_classes import is_mutable
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.graph import Graph, Node
from irtool.ir.numbering import node_key
from irtool.ir.remarks import count


def constant_pooling(graph: Graph) -> bool:
    """Move every constant to the top of the graph, equal ones once, in order of first appearance.

    Constants that nodes may write into, or that escape twice, are not merged; those written in a block stay in the block.

    before:
        graph(%x : Tensor):
          %1 : int = prim::Constant[value=1]()
          %2 : Tensor = aten::add(%x, %x, %1)
          %3 : int = prim::Constant[value=1]()
          %4 : float = prim::Constant[value=0.5]()
          %5 : Tensor = aten::add(%2, %4, %3)
          return (%5)

    after:
        graph(%x : Tensor):
          %1 : int = prim::Constant[value=1]()
          %4 : float = prim::Constant[value=0.5]()
          %2 : Tensor = aten::add(%x, %x, %1)
          %5 : Tensor = aten::add(%2, %4, %1)
          return (%5)
    """
    constants = [node for node in graph.walk() if node.kind in CONSTANT_KINDS]
    first: dict[tuple[object, ...], Node] = {}
    aliases: Aliases | None = None
    changed = False
    top = graph.block.param_node
    for node in constants:
        representative = first.setdefault(node_key(node), node)
        if representative is not node:
            if is_mutable(node.output.type):
                aliases = aliases or Aliases(graph)
                if not aliases.can_merge(representative, node):
                    representative = node
                else:
                    aliases.note_replaced(node.outputs, representative.outputs)
        if representative is not node:
            node.output.replace_all_uses_with(representative.output)
            node.destroy()
            count("equal nodes merged")
            changed = True
            continue
        if node.owner is not graph.block and is_mutable(node.output.type):
            aliases = aliases or Aliases(graph)
            if aliases.is_written(node.output):     # each round needs a new one
                continue
        below = graph.block.return_node.next if top is graph.block.param_node else top.next
        if below is not node:
            node.move_before(below)
            changed = True
        top = node
    return changed
