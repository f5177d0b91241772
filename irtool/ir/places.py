"""The order of two nodes of a block. After the first question, each node of the block has a number between those of its neighbours."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irtool.ir.graph import Block, Node

GAP = 1 << 200
"""The distance between the numbers of neighbours at first: 200 times a node can be inserted between two nodes before all get new
numbers."""


LAST = 1 << 1000
"""The number of the return node of a block."""


def place_of(block: Block, node: Node) -> int:
    """A number that increases along the block. Numbers may be compared until a node is added. The hidden parameter node has the
    smallest."""
    if node is block.param_node:
        return -1
    if node is block.return_node:
        return LAST
    if block._places is None:
        block._places = {each: place * GAP for place, each in enumerate(block, 1)}
    return block._places[node]


def comes_before(block: Block, first: Node, second: Node) -> bool:
    """Is one node of a block before another?"""
    if first is block.param_node or second is block.return_node:        # needs no numbers
        return first is not second
    return place_of(block, first) < place_of(block, second)


def note_place(block: Block, node: Node) -> None:
    """Give a number to a node just inserted, if the nodes of its block have numbers."""
    places = block._places
    assert places is not None
    low = places[node.prev] if node.prev is not block.return_node else 0
    high = places[node.next] if node.next is not block.return_node else low + 2 * GAP
    if high - low < 2:
        block._places = None
    else:
        places[node] = (low + high) // 2
