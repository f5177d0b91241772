"""Sums moved to their operands."""
from __future__ import annotations

from irtool.ir.effects import node_may_write
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.types import TensorType

SUMS = frozenset(("aten::add", "prim::AutogradAdd"))


def sums_early(graph: Graph) -> bool:
    """Move each sum of two tensors, one of which no other node reads, right after the later of the two; not in graphs that write.

    Differentiation sums the gradients of a value where it was first used, long after the parts were computed, and until then all parts are
    alive. Right after its later operand, a sum ends the lifetime of one or two arrays before the next is computed.

    before:
        graph(%x : Tensor,
              %one : int):
          %1 : Tensor = aten::exp(%x)
          %2 : Tensor = aten::sin(%x)
          %3 : Tensor = aten::cos(%x)
          %4 : Tensor = aten::add(%1, %2, %one)
          return (%3, %4)

    after:
        graph(%x : Tensor,
              %one : int):
          %1 : Tensor = aten::exp(%x)
          %2 : Tensor = aten::sin(%x)
          %4 : Tensor = aten::add(%1, %2, %one)
          %3 : Tensor = aten::cos(%x)
          return (%3, %4)
    """
    if any(node_may_write(node) for node in graph.walk()):
        return False
    return _in_block(graph.block)


def _in_block(block: Block) -> bool:
    """As `sums_early`, for a block and the blocks in it. Linear, since places in the new order are compared as pairs of numbers."""
    changed = False
    turn: dict[Node, tuple[int, int]] = {}      # the new order: place in the old order, count of nodes moved there before
    last: dict[int, Node] = {}                  # place in the old order -> the last node there now
    for number, node in enumerate(list(block)):
        for inner in node.blocks:
            changed = _in_block(inner) or changed
        turn[node], last[number] = (number, 0), node
        if not is_sum(node) or not any(value.use_count == 1 and value.node in turn for value in node.inputs[:2]):
            continue
        place = max(turn[value.node] for value in node.inputs if value.node in turn)[0]
        if place < number - 1:
            node.move_before(last[place].next)
            del last[number]
            turn[node], last[place] = (place, turn[last[place]][1] + 1), node
            changed = True
    return changed


def is_sum(node: Node) -> bool:
    """Is a node a sum of two tensors?"""
    return node.kind in SUMS and len(node.inputs) >= 2 and len(node.outputs) == 1 and all(map(is_tensor, node.inputs[:2]))


def is_tensor(value: Value) -> bool:
    """Is a value a tensor?"""
    return isinstance(value.type, TensorType)

