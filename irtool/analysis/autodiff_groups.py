"""Groups of nodes as torch has formed them since 2019: along edges from producer to consumer.

Note [groups on paper]: while groups are formed, the graph does not change. The order of a block is a separate linked list of items, in
which a group is one item; the nodes keep their operands and users. Only the final order is written into the block.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from irtool.analysis.alias import Aliases
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.effects import STATISTICS, draws, facts_of, node_may_write
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ops.torch_lists import NEVER_GROUPED

REACH, NEAR = 4096, 32
"""The largest distance between a producer and its consumer in a group; the second holds once PATIENCE is used up. Examining all items
between them would make long graphs slow."""
PATIENCE = 200_000, 8
"""The number of items examined in a block, and the number added per node, before only NEAR producers are moved."""


class Item:
    """An element of a block's order: a node, or a group of nodes."""

    __slots__ = ("nodes_reversed", "reads", "gives", "takes", "prev", "next", "place", "is_group", "has_effects", "draws", "writers",
                 "left", "passed")

    def __init__(self, reads: Iterable[Value], gives: Iterable[Value]) -> None:
        self.nodes_reversed: list[Node] = []
        """The nodes, last one first: producers join at the front."""
        self.reads = dict.fromkeys(reads)
        self.gives = dict.fromkeys(gives)
        """The values that are read outside the group."""
        self.takes: dict[Value, None] = {}
        """The operands of the group that come from nodes that fit, so that a long group need not examine all its operands per node."""
        self.prev = self.next = self
        self.place = 0
        self.is_group = self.has_effects = self.draws = False
        self.writers: list[Node] = []
        self.left: dict[Node, list[Node]] = {}
        """Node -> constants in front of it that expelled nodes left behind in the group, as in torch."""
        self.passed: dict[Value, set[Node]] = {}
        """Operand of the group -> expelled nodes that read it, as a result of the group, as in torch."""

    # -- for passes that make a graph of a group
    @property
    def size(self) -> int:
        """The number of nodes; constants are never in a group."""
        return len(self.nodes_reversed)

    def nodes(self) -> list[Node]:
        """The nodes, in order."""
        return self.nodes_reversed[::-1]

    def operands(self) -> list[Value]:
        """The values that the group reads; the operands of a node that joined come last."""
        return list(self.reads)

    def results(self) -> list[Value]:
        """The values that are read outside, in the order in which nodes joined."""
        return list(self.gives)


class Grouping:
    """The groups of one block.

    fits: may a node be in a group?
    inside: what nodes with blocks read and write in their blocks.
    aliases: makes the alias analysis, if a node of the block writes.
    """

    def __init__(self, block: Block, fits: Callable[[Node], bool], inside: Inside, aliases: Callable[[], Aliases]) -> None:
        self.block = block
        self.item_of: dict[Node, Item] = {}
        self.end = Item(block.outputs, ())
        last = self.end
        self.fitting: set[Item] = set()
        self.drawing = {node for node in block if node in inside.drawers or draws(node)}
        for node in block:
            item = Item(inside.reads[node] if node.blocks else node.inputs, node.outputs)
            item.nodes_reversed.append(node)
            item.has_effects = facts_of(node.kind).side_effects
            item.draws = node in self.drawing
            if node in inside.writers if node.blocks else node_may_write(node):
                item.writers.append(node)
            self.item_of[node] = item
            item.prev, item.next = last, self.end
            last.next = self.end.prev = item
            last = item
            if node.kind in CONSTANT_KINDS or node.kind in NEVER_GROUPED or item.writers and node.kind not in STATISTICS:
                continue
            if fits(node):
                self.fitting.add(item)
                if node.blocks:     # in the order in which operands of a group are written
                    item.reads = dict.fromkeys(reads_of(node))
        self.patience = PATIENCE[0] + PATIENCE[1] * len(self.item_of)
        self.writes = any(item.writers for item in self.item_of.values())
        self.aliases = aliases() if self.writes else None
        self.number()

    def number(self) -> None:
        """Number the items in order, with gaps for items that move between two others."""
        for place, item in enumerate(self.items(), 1):
            item.place = place << 40
        self.end.place = 1 << 200

    def items(self) -> Iterator[Item]:
        item = self.end.next
        while item is not self.end:
            yield item
            item = item.next

    def run(self, *outcasts: Callable[[Item], list[Node]]) -> list[Item]:
        """Form groups until nothing more can be merged, and move the nodes of each group together in the block.

        Returns the groups, last one first, since turning a group into a node changes the operands of those after it.
        outcasts: functions that return the nodes that must leave a group, with all nodes of the group that depend on them, in order. They
        are called in turn until none returns any.
        """
        groups: dict[Item, None] = {}
        while self.scan(groups):
            pass
        for group in list(groups) if outcasts else ():
            while any([self.expel_all(self.with_later_draws(find(group), group), group) for find in outcasts]):
                pass
        order = [node for item in self.items() for node in item.nodes()]
        if order != list(self.block):
            for node in order:
                node.move_before(self.block.return_node)
        formed = [item for item in self.items() if item in groups and item.size][::-1]
        for item in [*self.items(), self.end]:      # the collector of cycles would have to free the ring
            del item.prev, item.next
        return formed

    def scan(self, groups: dict[Item, None]) -> bool:
        """Walk the block once, from the end: each node that fits absorbs its producers, the latest first. Returns whether any did."""
        changed = False
        item = self.end.prev
        while item is not self.end:
            if item in self.fitting:
                if not item.is_group:
                    item.is_group = True
                    groups[item] = None
                    item.gives = {value: None for value in item.gives if value.has_uses}
                    item.reads = {value: None for value in item.reads if value.node.kind not in CONSTANT_KINDS}
                    item.takes = {value: None for value in item.reads if self.item_of.get(value.node) in self.fitting}
                while self.take_a_producer(item, groups):
                    changed = True
            item = item.prev
        return changed

    def take_a_producer(self, group: Item, groups: dict[Item, None]) -> bool:
        """Absorb one producer of an operand, if possible."""
        producers = {self.item_of[value.node] for value in group.takes}
        for producer in sorted(producers, key=lambda item: -item.place):
            if self.patience <= 0 and producer.size > NEAR:
                continue
            if self.bring(producer, group):
                self.absorb(producer, group)
                self.unlink(producer)
                groups.pop(producer, None)
                return True
        return False

    def absorb(self, producer: Item, group: Item) -> None:
        """Put the nodes of a producer at the front of a group, and merge the facts about both."""
        self.patience -= producer.size + len(producer.reads) + sum(value.use_count for value in producer.gives)
        for value in producer.gives:
            group.reads.pop(value, None)
            group.takes.pop(value, None)
        for node in producer.nodes_reversed:
            self.item_of[node] = group
        group.nodes_reversed += producer.nodes_reversed
        group.writers += producer.writers
        group.draws |= producer.draws
        for value in producer.reads:
            if value.node.kind not in CONSTANT_KINDS:
                group.reads.setdefault(value)
                if self.item_of.get(value.node) in self.fitting:
                    group.takes.setdefault(value)
        for value in producer.gives:
            if any(self.reader(use.user) is not group for use in value.uses):
                group.gives[value] = None

    def expel_all(self, nodes: list[Node], group: Item) -> bool:
        for node in reversed(nodes):
            self.expel(node, group)
        return bool(nodes)

    def with_later_draws(self, nodes: list[Node], group: Item) -> list[Node]:
        """Nodes that leave a group, and the later ones that draw random numbers, if one of them does, with all that depends on these."""
        if self.drawing.isdisjoint(nodes):
            return nodes
        leaving, has_drawn = set(nodes), False
        for node in group.nodes():
            if has_drawn and node in self.drawing or any(value.node in leaving for value in reads_of(node)):
                leaving.add(node)
            has_drawn = has_drawn or node in leaving and node in self.drawing
        return [node for node in group.nodes() if node in leaving]

    def expel(self, node: Node, group: Item) -> None:
        """Move a node, on which no other node of the group depends, from the group to the place right after it."""
        item = Item(reads_of(node), node.outputs)
        item.nodes_reversed.append(node)
        item.draws = node in self.drawing
        at = group.nodes_reversed.index(node)
        constants = [value.node for value in node.inputs if value.node.kind in CONSTANT_KINDS] + group.left.pop(node, [])
        if constants and at:
            behind = group.nodes_reversed[at - 1]
            group.left[behind] = constants + group.left.get(behind, [])
        elif constants:
            group.left[self.block.return_node] = constants + group.left.get(self.block.return_node, [])
        del group.nodes_reversed[at]
        self.item_of[node] = item
        for value in node.outputs:
            group.gives.pop(value, None)
        for value in node.inputs:
            if value.node.kind in CONSTANT_KINDS:
                continue
            group.gives.setdefault(value)
            if self.item_of.get(value.node) is not group:
                group.passed.setdefault(value, set()).add(node)
        self.link_before(item, group.next)

    def reader(self, user: Node) -> Item | None:
        """The item of this block that contains a reader; None for the block's results and readers elsewhere."""
        while True:
            item = self.item_of.get(user)
            if item is not None:
                return item
            owner = user.owner.owning_node if user.owner is not None else None
            if owner is None:
                return None
            user = owner

    # -- moving
    def bring(self, producer: Item, consumer: Item) -> bool:
        """Move `producer` right before `consumer`, and items in between that depend on it right after. Returns False if that is impossible.

        As torch's `moveBeforeTopologicallyValid`: nothing moves past a side effect, and no reader past its producer or a writer. And what
        draws random numbers does not move past what draws others, which torch allows: both would get other numbers.
        """
        defined, drawing = dict(producer.gives), producer.draws
        moving, behind = [producer], []
        item, steps, most = producer.next, 0, REACH if self.patience > 0 else NEAR
        while item is not consumer:
            steps += 1
            self.patience -= 1
            if steps > most or item is self.end or item.has_effects:
                return False
            if not defined.keys().isdisjoint(item.reads.keys()) or drawing and item.draws or self.writes and self.conflict(item, moving):
                behind.append(item)
                moving.append(item)
                defined.update(item.gives)
                drawing = drawing or item.draws
            item = item.next
        if behind:
            if any(not other.gives.keys().isdisjoint(consumer.reads.keys()) for other in behind):
                return False
            if self.writes and self.conflict(consumer, behind) or consumer.draws and any(other.draws for other in behind):
                return False
        self.unlink(producer)
        self.link_before(producer, consumer)
        at = consumer
        for other in behind:
            self.unlink(other)
            self.link_before(other, at.next)
            at = other
        return True

    def conflict(self, item: Item, others: list[Item]) -> bool:
        """Does an item write memory that one of `others` reads or writes, or the reverse?"""
        aliases = self.aliases
        if aliases is None:
            return False
        for other in others:
            if any(aliases.writes_into(node, other.reads) for node in item.writers):
                return True
            if any(aliases.writes_into(node, item.reads) for node in other.writers):
                return True
        return False

    def unlink(self, item: Item) -> None:
        item.prev.next, item.next.prev = item.next, item.prev

    def link_before(self, item: Item, other: Item) -> None:
        item.prev, item.next = other.prev, other
        item.prev.next = other.prev = item
        low = item.prev.place if item.prev is not self.end else 0
        item.place = (low + other.place) // 2
        if not low < item.place < other.place:
            self.number()


class Inside:
    """The outer values that nodes with blocks read in them, and which of these nodes may write, or draw numbers. Computed inner nodes
    first, so that the time is linear in nested blocks too."""

    def __init__(self, graph: Graph) -> None:
        self.reads: dict[Node, set[Value]] = {}
        self.writers: set[Node] = set()
        self.drawers: set[Node] = set()
        for node in reversed([node for node in graph.walk() if node.blocks]):
            reads = self.reads[node] = set(node.inputs)
            for block in node.blocks:
                read, here = set(block.outputs), set(block.inputs)
                for each in block:
                    read.update(self.reads[each] if each.blocks else each.inputs)
                    here.update(each.outputs)
                    if each in self.writers or node_may_write(each):
                        self.writers.add(node)
                    if each in self.drawers or draws(each):
                        self.drawers.add(node)
                reads |= read - here
            if node_may_write(node):
                self.writers.add(node)


def all_groups(graph: Graph, threshold: int, fits: Callable[[Node], bool], aliases: Callable[[], Aliases],
               *outcasts: Callable[[Item], list[Node]]) -> list[Item]:
    """The groups of at least `threshold` nodes in all blocks, those of a block before those of its inner blocks (`Grouping.run`).

    Only the order of nodes changes: analyses of the graph hold until the first group is turned into a node.
    """
    inside, groups, blocks = Inside(graph), [], [graph.block]
    while blocks:
        block = blocks.pop()
        in_block = [group for group in Grouping(block, fits, inside, aliases).run(*outcasts) if group.size >= threshold]
        groups += in_block
        grouped = {node for group in in_block for node in group.nodes_reversed if node.blocks}
        blocks += reversed([nested for node in block if node not in grouped for nested in node.blocks])
    return groups


def reads_of(node: Node) -> list[Value]:
    """The values that a node reads, and the outer values that nodes in its blocks read, each once."""
    reads = dict.fromkeys(node.inputs)
    if node.blocks:
        inside = {value for block in node.blocks for value in block.inputs}
        for block in node.blocks:
            for each in block.walk():
                inside.update(each.outputs)
                for inner in each.blocks:
                    inside.update(inner.inputs)
        for block in node.blocks:
            for each in (*block.walk(), *[b.return_node for b in every_block(block)]):
                reads.update(dict.fromkeys(value for value in each.inputs if value not in inside))
    return list(reads)


def every_block(block: Block) -> Iterator[Block]:
    """A block, and recursively the blocks in it."""
    yield block
    for node in block:
        for inner in node.blocks:
            yield from every_block(inner)
