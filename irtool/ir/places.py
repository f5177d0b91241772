"""Which of two nodes of a block stands first: once that is asked of a block, each node has a number between those of its neighbours."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irtool.ir.graph import Block, Node

GAP = 1 << 200
"""How far the numbers of neighbours are apart at first: 200 times a node fits between two of them before all get new numbers."""


def comes_before(block: Block, first: Node, second: Node) -> bool:
    """Does one node of a block stand before another? The hidden parameter node is before all, the return node behind all."""
    if first is block.param_node or second is block.return_node:
        return True
    if first is block.return_node or second is block.param_node:
        return False
    if block._places is None:
        block._places = {node: place * GAP for place, node in enumerate(block, 1)}
    return block._places[first] < block._places[second]


def note_place(block: Block, node: Node) -> None:
    """A node was put where it is, into a block whose nodes have numbers."""
    places = block._places
    assert places is not None
    low = places[node.prev] if node.prev is not block.return_node else 0
    high = places[node.next] if node.next is not block.return_node else low + 2 * GAP
    if high - low < 2:
        block._places = None
    else:
        places[node] = (low + high) // 2
