"""Groups of nodes as torch has made them since 2019: along the edges from producer to consumer.

Note [groups on paper]: while groups are made, nothing in the graph changes. The order of the block is kept in a list of its own, in
which a group is one item; its nodes keep their operands and users. Only the finished order is written into the block.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from irtool.analysis.alias import Aliases
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.effects import STATISTICS, facts_of, node_may_write
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ops.torch_lists import NEVER_GROUPED

REACH, NEAR = 4096, 32
"""A producer farther away from its consumer is left where it is: looking at what is between would make long graphs slow. The second is
for graphs in which that has been done often."""
PATIENCE = 200_000, 8
"""How many items may be looked at over the whole block, with so many more per node, before only what is near is moved."""


class Item:
    """What stands in the order of a block: a node, or a group, which is one thing to all others."""

    __slots__ = ("nodes_reversed", "reads", "gives", "takes", "prev", "next", "place", "is_group", "has_effects", "writers", "left",
                 "passed")

    def __init__(self, reads: Iterable[Value], gives: Iterable[Value]) -> None:
        self.nodes_reversed: list[Node] = []
        """What is in it, the last first: a producer comes in at the front."""
        self.reads = dict.fromkeys(reads)
        self.gives = dict.fromkeys(gives)
        """What is read outside, once it is a group."""
        self.takes: dict[Value, None] = {}
        """What a group reads of nodes that fit: the inputs of a long group are not looked through again for each of its nodes."""
        self.prev = self.next = self
        self.place = 0
        self.is_group = self.has_effects = False
        self.writers: list[Node] = []
        self.left: dict[Node, list[Node]] = {}
        """Constants that nodes left behind when they were expelled, by the node in front of which they stay, as torch has it."""
        self.passed: dict[Value, set[Node]] = {}
        """What expelled nodes read that the group reads too, with the nodes: they read it as the group hands it on, as torch has it."""

    # -- what whoever makes a graph of a group asks for
    @property
    def size(self) -> int:
        """How many nodes; constants are never in a group."""
        return len(self.nodes_reversed)

    def nodes(self) -> list[Node]:
        """The nodes, in order."""
        return self.nodes_reversed[::-1]

    def operands(self) -> list[Value]:
        """The values that the group reads: a node that joins it is no longer read, and what that node reads comes last."""
        return list(self.reads)

    def results(self) -> list[Value]:
        """What is read outside, in the order in which nodes came in."""
        return list(self.gives)


class Grouping:
    """The groups of one block.

    fits: may this node be in a group?
    inside: what the nodes of the graph that have blocks read and write in them.
    aliases: gives who writes into what; asked for when a node of the block writes.
    """

    def __init__(self, block: Block, fits: Callable[[Node], bool], inside: Inside, aliases: Callable[[], Aliases]) -> None:
        self.block = block
        self.item_of: dict[Node, Item] = {}
        self.end = Item(block.outputs, ())
        last = self.end
        self.fitting: set[Item] = set()
        for node in block:
            item = Item(inside.reads[node] if node.blocks else node.inputs, node.outputs)
            item.nodes_reversed.append(node)
            item.has_effects = facts_of(node.kind).side_effects
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
        """Number the items in their order, with gaps for items that move between two others."""
        for place, item in enumerate(self.items(), 1):
            item.place = place << 40
        self.end.place = 1 << 200

    def items(self) -> Iterator[Item]:
        item = self.end.next
        while item is not self.end:
            yield item
            item = item.next

    def run(self, *outcasts: Callable[[Item], list[Node]]) -> list[Item]:
        """Merge until nothing more can be merged. The nodes of each group then stand together in the block.

        Gives the groups, the last first: who makes a node of one changes what those behind it read.
        Each of `outcasts` names the nodes of a group that must leave it, with everything of the group that depends on them, in order.
        They are asked in turn until none names any.
        """
        groups: dict[Item, None] = {}
        while self.scan(groups):
            pass
        for group in list(groups) if outcasts else ():
            while any([self.expel_all(find(group), group) for find in outcasts]):
                pass
        order = [node for item in self.items() for node in item.nodes()]
        if order != list(self.block):
            for node in order:
                node.move_before(self.block.return_node)
        return [item for item in self.items() if item in groups and item.size][::-1]

    def scan(self, groups: dict[Item, None]) -> bool:
        """Once through the block, from the end: each node that fits takes in its producers, the latest first."""
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
        """Merge one thing that the group reads, if any can be."""
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
        """Put what a producer consists of at the front of a group: what is said of it as a whole need not be found out again."""
        self.patience -= producer.size + len(producer.reads) + sum(value.use_count for value in producer.gives)
        for value in producer.gives:
            group.reads.pop(value, None)
            group.takes.pop(value, None)
        for node in producer.nodes_reversed:
            self.item_of[node] = group
        group.nodes_reversed += producer.nodes_reversed
        group.writers += producer.writers
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

    def expel(self, node: Node, group: Item) -> None:
        """Take a node, of which nothing else in the group depends, out of it: it stands right behind."""
        item = Item(reads_of(node), node.outputs)
        item.nodes_reversed.append(node)
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
        """The item of this block in which a reader stands; None for the block's results and readers elsewhere."""
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
        """Move `producer` right before `consumer`, and what depends on it right behind; says whether that can be done.

        As torch's `moveBeforeTopologicallyValid`: nothing moves past a side effect, a reader past what it reads, or past who writes.
        """
        defined = dict(producer.gives)
        moving, behind = [producer], []
        item, steps, most = producer.next, 0, REACH if self.patience > 0 else NEAR
        while item is not consumer:
            steps += 1
            self.patience -= 1
            if steps > most or item is self.end or item.has_effects:
                return False
            if not defined.keys().isdisjoint(item.reads.keys()) or self.writes and self.conflict(item, moving):
                behind.append(item)
                moving.append(item)
                defined.update(item.gives)
            item = item.next
        if behind:
            if any(not other.gives.keys().isdisjoint(consumer.reads.keys()) for other in behind):
                return False
            if self.writes and self.conflict(consumer, behind):
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
        """Does one write what the other reads or writes?"""
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
    """What the nodes of a graph that have blocks read from around them, and which of them may write: from the inside out, so that depth
    costs nothing."""

    def __init__(self, graph: Graph) -> None:
        self.reads: dict[Node, set[Value]] = {}
        self.writers: set[Node] = set()
        for node in reversed([node for node in graph.walk() if node.blocks]):
            reads = self.reads[node] = set(node.inputs)
            for block in node.blocks:
                read, here = set(block.outputs), set(block.inputs)
                for each in block:
                    read.update(self.reads[each] if each.blocks else each.inputs)
                    here.update(each.outputs)
                    if each in self.writers or node_may_write(each):
                        self.writers.add(node)
                reads |= read - here
            if node_may_write(node):
                self.writers.add(node)


def all_groups(graph: Graph, threshold: int, fits: Callable[[Node], bool], aliases: Callable[[], Aliases],
               *outcasts: Callable[[Item], list[Node]]) -> list[Item]:
    """The groups of at least `threshold` nodes in all blocks, those of a block before those of the blocks in it (`Grouping.run`).

    Nothing but the order of nodes changes: what was found out of the graph holds until the first group is put into a graph of its own.
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
    """What a node reads, what the nodes in its blocks read from around it too; each value once."""
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
    """The block and all blocks in it."""
    yield block
    for node in block:
        for inner in node.blocks:
            yield from every_block(inner)
