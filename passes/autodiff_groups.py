"""Groups of differentiable nodes as torch has made them since 2019: along the edges from producer to consumer."""
from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.effects import has_side_effects, may_write
from irtool.ir.graph import Block, Node, Value

REACH = 128
"""A producer farther away from its consumer is left where it is: looking at what is between would make long graphs slow."""
BARRED = frozenset(f"aten::{name}" for name in "view view_as reshape transpose expand expand_as split split_with_sizes unbind".split())
"""Views: as results of a group they would be differentiated wrongly."""


class Group:
    """Neighbours in a block, in order."""

    __slots__ = ("first", "last", "size", "merged")

    def __init__(self, node: Node) -> None:
        self.first = self.last = node
        self.size = 1       # constants are never in one
        self.merged = [node]
        """The nodes in the order in which they came in: what the order of inputs and outputs comes from."""

    def operands(self) -> list[Value]:
        """What it reads: a node that comes in is no longer read, and what it reads comes last."""
        found: dict[Value, None] = {}
        for node in self.merged:
            for value in node.outputs:
                found.pop(value, None)
            found.update(dict.fromkeys(value for value in node.inputs if value.node.kind not in CONSTANT_KINDS))
        return list(found)

    def results(self) -> list[Value]:
        """All values it makes, in the order in which nodes came in."""
        return [value for node in self.merged for value in node.outputs]

    def nodes(self) -> list[Node]:
        """The nodes, in order."""
        found, node = [self.first], self.first
        while node is not self.last:
            node = node.next
            found.append(node)
        return found


class Grouping:
    """The groups of one block."""

    def __init__(self, block: Block, is_differentiable: Callable[[Node], bool]) -> None:
        self.block = block
        self.fits = {node for node in block if node.kind not in CONSTANT_KINDS and node.kind not in BARRED
                     and not may_write(node) and is_differentiable(node)}
        self.group_of: dict[Node, Group] = {}
        self.place: dict[Node, int] = {}

    def run(self) -> list[Group]:
        """Merge until nothing more can be merged; gives the groups in order."""
        for _ in range(8):
            if not self.scan():
                break
        return list(dict.fromkeys(self.group_of[node] for node in self.block if node in self.group_of))

    def scan(self) -> bool:
        """Once through the block, from the end: each node that fits takes in its producers."""
        self.place = {node: i for i, node in enumerate(self.block)}
        changed = False
        node = self.block.return_node.prev
        while node is not self.block.return_node:
            if node not in self.fits:
                node = node.prev
                continue
            group = self.group_of.get(node)
            if group is None:
                group = self.group_of[node] = Group(node)
            changed = self.take_producers(group) or changed
            node = group.first.prev
        return changed

    def take_producers(self, group: Group) -> bool:
        """Merge what the group reads, the latest first; whether anything was merged."""
        changed = False
        pending: list[tuple[int, Node]] = []
        seen: set[Node] = set()

        def look(nodes: list[Node]) -> None:
            for node in nodes:
                for value in node.inputs:
                    producer = value.node
                    if producer in self.fits and producer not in seen:
                        seen.add(producer)
                        heappush(pending, (-self.place[producer], producer))

        look(group.nodes())
        while pending:
            _, producer = heappop(pending)
            other = self.group_of.get(producer) or Group(producer)
            if other is group or not self.bring(other, group):
                continue
            added = other.nodes()
            for node in added:
                self.group_of[node] = group
            group.first = other.first
            group.size += other.size
            group.merged += reversed(added)
            changed = True
            look(added)
        return changed

    def bring(self, producer: Group, consumer: Group) -> bool:
        """Move `producer` right before `consumer`, and what depends on it behind; says whether that can be done."""
        values: set[Value] = {value for node in producer.nodes() for value in node.outputs}
        moved: list[Node] = []
        node, steps = producer.last.next, 0
        while node is not consumer.first:
            steps += 1
            if steps > REACH or node is self.block.return_node:
                return False
            if has_side_effects(node) or may_write(node):
                return False
            if not values.isdisjoint(node.inputs) or node.blocks and self.reads(node, values):
                moved.append(node)
                values.update(node.outputs)
            node = node.next
        if any(self.group_of.get(user) is consumer for other in moved for value in other.outputs for user, _ in value.uses):
            return False
        if any(self.group_of.get(other) is not None for other in moved):
            return False        # groups stay whole
        behind = consumer.last
        for other in moved:
            other.move_after(behind)
            behind = other
        for other in producer.nodes():
            other.move_before(consumer.first)
        return True

    def reads(self, node: Node, values: set[Value]) -> bool:
        """Does a node in the blocks of `node` read one of the values?"""
        return any(not values.isdisjoint(inner.inputs) or any(not values.isdisjoint(block.outputs) for block in inner.blocks)
                   for block in node.blocks for inner in block.walk()) or any(not values.isdisjoint(b.outputs) for b in node.blocks)
