"""Which nodes are needed, and the removal of the others.

A value is live if a result of the graph, a side effect, a random number or a write into live memory depends on it. Each result of an `If`
and each carried value of a `Loop` is live or dead by itself.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from irtool.analysis.alias import Aliases
from irtool.analysis.memory_classes import contained_classes
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, draws, facts_of, group_may_write, has_side_effects, node_may_write
from irtool.ir.graph import PARAM
from irtool.ir.remarks import count

if TYPE_CHECKING:
    from irtool.ir.graph import Block, Graph, Node, Value

_KEEP, _LOOK = object(), object()
MANY = 16
"""Roots beyond which it is not asked when a value is read."""
ROUNDS = 4
"""The largest number of walks over the graph: writes into containers that only dead nodes read are dead in the next walk."""


def remove_dead_nodes(graph: Graph, allow_side_effects: bool = False, *, drop_draws: bool = False) -> bool:
    """Delete nodes on which no result, side effect or write depends, and dead results of `If` and carried values of `Loop`.

    Unused random operators stay, so that later ones draw the same numbers; drop_draws: they go, as in torch. allow_side_effects: delete
    unused nodes even if they print, raise, write or draw. Takes linear time. Returns whether anything was deleted.
    """
    drop_draws = drop_draws or allow_side_effects
    done, deleted = _sweep_straight_line(graph, allow_side_effects, drop_draws)
    count("nodes deleted", deleted)
    changed = deleted > 0
    if done or _is_all_read(graph):
        return changed
    for _ in range(ROUNDS):
        live = Liveness(graph, allow_side_effects, drop_draws)
        changed = _sweep(graph.block, live) or changed
        if not live.has_freed:
            break
    return changed


def _sweep_straight_line(graph: Graph, allow_side_effects: bool, drop_draws: bool) -> tuple[bool, int]:
    """One reverse sweep, as long as no node has blocks or may write: (reached the top, number of deleted nodes).

    Note [warm loops]: CPython 3.11 specializes code at unconditional backward jumps only, so a long loop that is entered once and
    written `while condition:` runs at two thirds of the speed of `while True:` with a test inside.
    """
    deleted = 0
    keeps_uses = graph.has_uses_built
    verdicts: dict[str, object] = {}
    end = graph.block.return_node
    live = set(end.inputs)
    is_dead, read = live.isdisjoint, live.update
    node = end.prev
    while True:
        if node is end:
            return True, deleted
        before = node.prev
        if node.blocks:
            return False, deleted
        if is_dead(node.outputs):
            verdict = verdicts.get(node.kind)
            if verdict is None:
                verdict = verdicts[node.kind] = _verdict(node.kind)
            if "Subgraph" in node.attributes and not allow_side_effects and (has_side_effects(node) or group_may_write(node)):
                return False, deleted
            if verdict is _KEEP and not allow_side_effects or not drop_draws and draws(node):
                read(node.inputs)
            elif verdict is _LOOK and not allow_side_effects or (
                    type(verdict) is frozenset and verdict and len(node.inputs) + len(node.attributes) in verdict and node_may_write(node)):
                return False, deleted
            else:
                deleted += 1
                if keeps_uses:
                    node.remove()
                else:
                    after = node.next
                    before.next = after
                    after.prev = before
                    node.owner = None
                node.outputs = ()       # see Node.destroy
        else:
            read(node.inputs)
        node = before


def _is_all_read(graph: Graph) -> bool:
    """Has each node of a graph a result, and each `If` only results, that are read after it? Then nothing is dead: the last dead node, or
    dead result, has no reader. Not asked of loops, whose carried values may be read by nothing but their own next round.

    One walk from the end, without marks: most walks of a pipeline find nothing to remove.
    """
    read: set[Value] = set()
    waiting: list[tuple[Node, Node]] = [(graph.block.return_node, graph.block.return_node)]
    while waiting:
        node, end = waiting.pop()       # node: the last that was looked at, but for its operands
        while True:
            read.update(node.inputs)
            node = node.prev
            if node is end:
                break
            if node.blocks:
                if node.kind not in IF_KINDS or not node.outputs or not read.issuperset(node.outputs):
                    return False
                waiting.append((node, end))
                waiting += [(block.return_node, block.return_node) for block in node.blocks]
                break
            if read.isdisjoint(node.outputs):
                return False
    return True


def _verdict(kind: str) -> object:
    """What to do with an unused node of a kind: keep it, examine it, or delete it unless its number of operands is in the set (of `out=`
    overloads)."""
    facts = facts_of(kind)
    if facts.may_write:
        return _LOOK
    if facts.side_effects:
        return _KEEP
    return facts.out_arities


def writes(node: Node) -> bool:
    """May a node, or one in its inner graph, write into memory that existed before?"""
    return node_may_write(node) or group_may_write(node)


def roots_and_writers(graph: Graph, drop_draws: bool = False) -> tuple[list[Node], list[Node]]:
    """(The nodes with a side effect, and those that draw unless `drop_draws`; those that may write into memory that existed before), nested
    ones included."""
    plain: set[str] = set()     # kinds of which no node does either, unless it has an inner graph
    roots: list[Node] = []
    writers: list[Node] = []
    for node in graph.walk():
        if node.kind in plain and not node.attributes:
            continue
        facts = facts_of(node.kind)
        if not (facts.side_effects or facts.is_random or facts.may_write or facts.out_arities):
            plain.add(node.kind)
        if facts.side_effects or "Subgraph" in node.attributes and has_side_effects(node) or not drop_draws and draws(node):
            roots.append(node)
        if writes(node):
            writers.append(node)
    return roots, writers


class Liveness:
    """The live nodes and values of a graph, by marking from results, side effects, draws and writes."""

    def __init__(self, graph: Graph, allow_side_effects: bool = False, drop_draws: bool = False) -> None:
        self.nodes: set[Node] = set()
        self.values: set[Value] = set()
        self.has_freed = False
        """Was a node removed that makes or reads a container of tensors, so that writes into these may be dead now?"""
        self._stack: list[Value] = []
        self._aliases: Aliases | None = None
        self._writers: dict[Value, list[tuple[int, Node]]] = {}     # root -> nodes that write into it, and from when on; the last first
        self._found: list[Node] = []                                # of these, live ones, taken out
        self._order: dict[Node, int] = {}
        self._fillers: dict[Node, bool] = {}                        # nodes asked so far -> have they containers as results?
        self._places: dict[Value, int] = {}                         # results of nodes with blocks, and inputs of blocks -> their places
        self.keeps_gradients_whole = graph.dialect.is_of_2018
        """In texts of 2018 a `GradOf` keeps unused results."""
        roots: list[Node] = []
        writers: list[Node] = []
        if not allow_side_effects:
            roots, writers = roots_and_writers(graph, drop_draws)
        if writers:
            self._aliases = Aliases(graph)
            self._note_writers(graph, writers)
            roots += filter(self._aliases.writes_wild, writers)
        self._reach_all(graph.outputs, graph.block.return_node)
        for node in roots:
            self._mark(node)
        self._run()

    def _note_writers(self, graph: Graph, writers: list[Node]) -> None:
        """Note the nodes that write into memory that nothing outside the graph sees."""
        assert self._aliases is not None
        number_nodes(graph.block, self._order)
        for node in writers:
            since = self._order[outermost_loop(node)]
            for root in self._aliases.writes(node):
                self._writers.setdefault(root, []).append((since, node))
        for found in self._writers.values():
            found.sort(key=lambda each: -each[0])

    def note_removal(self, node: Node) -> None:
        """Called before a dead node is removed."""
        if self._aliases is not None and not self.has_freed:
            self.has_freed = bool(node.blocks) or any(contained_classes(value.type) for value in (*node.inputs, *node.outputs))

    def _mark(self, node: Node) -> None:
        if node in self.nodes:
            return
        self.nodes.add(node)
        self._reach_all(node.inputs if node.kind not in LOOP_KINDS else node.inputs[:2], node)
        for i, block in enumerate(node.blocks):
            if node.kind in LOOP_KINDS and i == 0:
                self._reach_all(block.outputs[:1], block.return_node)
            elif node.kind not in IF_KINDS and (node.kind != "prim::GradOf" or self.keeps_gradients_whole):
                self._reach_all(block.outputs, block.return_node)
        owner = node.owner.owning_node if node.owner is not None else None
        if owner is not None:
            self._mark(owner)

    def _reach_all(self, values: tuple[Value, ...], reader: Node) -> None:
        for value in values:
            if value not in self.values:
                self.values.add(value)
                self._stack.append(value)
            if self._writers:
                self._find_writers(value, reader)

    def _find_writers(self, value: Value, reader: Node) -> None:
        """The writes that may come before a live node reads a value are live: any, if the node puts the value into a container."""
        assert self._aliases is not None
        roots = self._aliases.roots(value)
        if self._writers.keys().isdisjoint(roots):
            return
        now = len(self._order) if len(roots) > MANY or self._fills_container(reader) else self._order[reader]
        for root in roots:
            writers = self._writers.get(root)
            while writers and writers[-1][0] < now:
                self._found.append(writers.pop()[1])
            if writers == []:
                del self._writers[root]

    def _fills_container(self, node: Node) -> bool:
        """Is a result of a node a container? Asked once per node: a loop with many results reads many values."""
        known = self._fillers.get(node)
        if known is None:
            known = self._fillers[node] = any(contained_classes(result.type) for result in node.outputs)
        return known

    def _run(self) -> None:
        while self._stack or self._found:
            while self._found:
                self._mark(self._found.pop())
            if not self._stack:
                continue
            value = self._stack.pop()
            node = value.node
            if node.kind == PARAM:
                self._reach_carried(node.owner_block, value)
            else:
                self._mark(node)
                if node.blocks:
                    self._reach_results(node, value)

    def _place_of(self, value: Value) -> int:
        """The place of a value among those of its node. A node with many results is searched once, not once per result."""
        if value not in self._places:
            self._places.update((each, place) for place, each in enumerate(value.node.outputs))
        return self._places[value]

    def _reach_results(self, node: Node, value: Value) -> None:
        """Mark the results of a node's blocks for a live result of the node."""
        i = self._place_of(value)
        if node.kind in LOOP_KINDS:
            body = node.blocks[0]
            self._reach_all(node.inputs[i + 2:i + 3], node)
            self._reach_all(body.outputs[i + 1:i + 2], body.return_node)
        else:
            for block in node.blocks:
                self._reach_all(block.outputs[i:i + 1], block.return_node)

    def _reach_carried(self, block: Block, value: Value) -> None:
        """Mark, for a live carried value of a loop, its initial value and the body's result for the next round."""
        owner = block.owning_node
        if owner is not None and owner.kind in LOOP_KINDS:
            i = self._place_of(value)
            if i > 0:
                self._reach_all(owner.inputs[i + 1:i + 2], owner)
                self._reach_all(block.outputs[i:i + 1], block.return_node)


def number_nodes(block: Block, order: dict[Node, int]) -> None:
    """Number the nodes of a block, of blocks in them, and the nodes that close blocks, in the order in which they run."""
    pending: list[Node] = [block.return_node, *reversed(block)]
    while pending:
        node = pending.pop()
        order[node] = len(order)
        for inner in reversed(node.blocks):
            pending += (inner.return_node, *reversed(inner))


def outermost_loop(node: Node) -> Node:
    """The outermost loop around a node: what the node writes, each round may read. The node itself where there is none."""
    outermost, above = node, node.owner_block.owning_node
    while above is not None:
        outermost = above if above.kind in LOOP_KINDS else outermost
        above = above.owner_block.owning_node
    return outermost


def _sweep(block: Block, live: Liveness) -> bool:
    changed = False
    for node in reversed(block):
        if node not in live.nodes:
            live.note_removal(node)
            node.remove()
            count("nodes deleted", 1 + sum(1 for inner in node.blocks for _ in inner.walk()))
            changed = True
            continue
        dead = _drop_dead_results(node, live) if node.blocks else set()
        for inner in node.blocks:
            changed = _sweep(inner, live) or changed
        if dead and node.kind in LOOP_KINDS:
            node.blocks[0].remove_inputs({i + 1 for i in dead})     # nothing in the body reads them any more
        changed = changed or bool(dead)
    return changed


def _drop_dead_results(node: Node, live: Liveness) -> set[int]:
    """Drop dead results of an `If` or `Loop`, and the results of its blocks for them; returns their positions. Inputs of a loop's block
    stay."""
    dead = {i for i, value in enumerate(node.outputs) if value not in live.values}
    if node.kind in IF_KINDS or node.kind == "prim::GradOf" and not live.keeps_gradients_whole:
        if dead:
            node.remove_outputs(dead)
            for block in node.blocks:
                block.remove_outputs(dead)
        return dead
    if node.kind not in LOOP_KINDS:
        return set()
    body = node.blocks[0]
    dead = {i for i in dead if body.inputs[i + 1] not in live.values}
    if dead:
        node.remove_inputs({i + 2 for i in dead})
        node.remove_outputs(dead)
        body.remove_outputs({i + 1 for i in dead})
    return dead
