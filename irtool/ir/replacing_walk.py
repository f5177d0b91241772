"""A walk over a graph in order that replaces values on the way, in linear time and without uses."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irtool.ir.graph import Block, Graph, Node, Value


class Sweep:
    """Iterate over the nodes, those in a node's blocks before the node itself; `replace` a value and all later readers follow.

        sweep = Sweep(graph)
        for node in sweep:
            if is_useless(node):
                sweep.replace(node.output, node.inputs[0])
        if sweep.replaced:
            remove_dead_nodes(graph)

    The node just given may be edited, and nodes may be inserted before it. Replaced nodes stay until dead ones are removed.
    """

    __slots__ = ("graph", "replaced")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.replaced: dict[Value, Value] = {}

    def replace(self, old: Value, new: Value) -> None:
        """Let nodes from here on read `new`, which must be defined before them, instead of `old`."""
        if new is not old:
            self.replaced[old] = self.replaced.get(new, new)

    def __iter__(self) -> Iterator[Node]:
        return self._block(self.graph.block)

    def _block(self, block: Block) -> Iterator[Node]:
        replaced = self.replaced
        keys = replaced.keys()
        end = block.return_node
        node = end.next
        while node is not end:
            if replaced and not keys.isdisjoint(node.inputs):
                self._reroute(node)
            for inner in node.blocks:
                yield from self._block(inner)
            after = node.next
            yield node
            node = after
        if replaced and not keys.isdisjoint(end.inputs):
            self._reroute(end)

    def _reroute(self, node: Node) -> None:
        replaced = self.replaced
        values = [replaced.get(value, value) for value in node.inputs]
        if self.graph.has_uses_built:
            node.set_inputs(values)
        else:
            node.inputs = tuple(values)
