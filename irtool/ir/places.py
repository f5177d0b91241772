"""Which of two nodes of a block stands first: once that is asked of a block, each node has a number between those of its neighbours."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irtool.ir.graph import Block, Node

GAP = 1 << 200
"""How far the numbers of neighbours are apart at first: 200 times a node fits between two of them before all get new numbers."""


LAST = 1 << 1000
"""The number of what closes a block."""


def place_of(block: Block, node: Node) -> int:
    """A number that grows along the block: for comparing nodes as long as none is added. The hidden parameter node is before all."""
    if node is block.param_node:
        return -1
    if node is block.return_node:
        return LAST
    if block._places is None:
        block._places = {each: place * GAP for place, each in enumerate(block, 1)}
    return block._places[node]


def comes_before(block: Block, first: Node, second: Node) -> bool:
    """Does one node of a block stand before another?"""
    if first is block.param_node or second is block.return_node:        # which needs no numbers
        return first is not second
    return place_of(block, first) < place_of(block, second)


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
