"""Nodes with blocks, lowered: branches and loops.

A branch whose condition is known becomes the instructions of the block that is taken. A counted loop may become one function in C
(`irtool.execute.native.c_loops`); if it begins with undefined tensors, its first round is lowered apart, in front of it.
"""
from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

from irtool.analysis.alias import Aliases
from irtool.execute.fallbacks import NotLowered
from irtool.execute.fusion import GroupOptions
from irtool.execute.native.c_loops import native_loop
from irtool.execute.native.stages import NotNative
from irtool.execute.plan.filled_lists import APPEND, RoundList, begins_undefined
from irtool.execute.plan.large_results import room
from irtool.execute.plan.loop_numbers import bounds_of
from irtool.execute.plan.program import (
    Branch,
    Call,
    Group,
    Item,
    Known,
    Lowered,
    Program,
    Repeat,
    Variable,
    Visit,
    is_never_none,
    meta_of_item,
    roots_of,
)
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, node_may_write
from irtool.ir.graph import Block, Node, Value
from irtool.ops.array_library import np
from irtool.ops.symbols.array_layout import Meta, fresh_meta

MAX_DEPTH = 40
"""The depth of nested blocks in a plan: CPython allows 100 levels of indentation."""
MAX_LOOPS = 16
"""Of these, loops: CPython allows 20 in each other in one function."""
MAX_CALLS = 60_000
"""Calls in a plan; a graph that needs more is interpreted."""
FUSION_GROUP = "prim::FusionGroup"
GRAD_OF = ("prim::GradOf", "GradOf")


class Blocks(ABC):
    """Lowers nodes that have blocks. env: the item that stands for each value; `options` as in `Lowering`."""

    def __init__(self, program: Program, options: GroupOptions) -> None:
        self.program = program
        self.options = options
        self.env: dict[Value, Item] = {}
        self.lists: dict[Value, RoundList] = {}     # filled by loops
        self.loose: set[Value] = set()      # tensors whose shapes change in place
        self.depth = 0
        self.loops = 0      # of these
        self.at: Node | None = None         # which node is being lowered
        self.opened = 0     # how many loops around the node are tried as loops in C: in them groups are lowered node by node

    @cached_property
    def overwrites(self) -> bool:
        """May the graph write into tensors?"""
        return any(node_may_write(node) and node.kind != APPEND for node in self.program.graph.walk())

    @abstractmethod
    def node(self, node: Node, into: Lowered) -> None:
        """A node without blocks."""

    @abstractmethod
    def subgraph(self, node: Node, into: Lowered) -> None:
        """A node with an inner graph."""

    def variable(self, meta: Meta | None = None, roots: frozenset[Variable] | None = None, constant: Any = None) -> Variable:
        """A new variable."""
        self.program.variables += 1
        if self.program.variables > MAX_CALLS:
            raise NotLowered(f"it takes more than {MAX_CALLS} calls")
        return Variable(self.program.variables - 1, meta, roots, constant)

    def block(self, block: Block, into: Lowered) -> None:
        """The nodes of a block."""
        for node in block:
            self.at, kind = node, node.kind
            if kind in IF_KINDS and len(node.blocks) == 2:
                self.branch(node, into)
            elif kind in LOOP_KINDS and len(node.blocks) == 1:
                self.loop(node, into)
            elif kind in GRAD_OF and len(node.blocks) == 1:
                self.grad_of(node, into)
            elif node.blocks:
                raise NotLowered(f"{kind} with blocks")
            elif kind == "prim::Closure":
                self.env.update((value, Known(None)) for value in node.outputs)
            elif node.subgraph is not None:
                self.subgraph(node, into)
            else:
                self.node(node, into)

    def inside(self) -> None:
        """One block deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH or self.loops > MAX_LOOPS:
            raise NotLowered(f"more than {MAX_DEPTH} blocks, or {MAX_LOOPS} loops, are nested")

    def branch(self, node: Node, into: Lowered) -> None:
        """prim::If. A condition that is known leaves one block."""
        condition = self.env[node.inputs[0]]
        if isinstance(condition, Known) and isinstance(condition.value, bool | int | float):
            chosen = node.blocks[0 if condition.value else 1]
            if len(chosen.outputs) < len(node.outputs):
                raise NotLowered("too few results")
            self.block(chosen, into)
            self.env.update({value: self.env[result] for value, result in zip(node.outputs, chosen.outputs, strict=False)})
            return
        self.inside()
        blocks = []
        for block in node.blocks:
            lowered = Lowered()
            self.block(block, lowered)
            if len(block.outputs) < len(node.outputs):
                raise NotLowered("too few results")
            lowered.results = [self.env[value] for value in block.outputs[:len(node.outputs)]]
            blocks.append(lowered)
        self.depth -= 1
        self.join(node, [condition], blocks, False, into)

    def grad_of(self, node: Node, into: Lowered) -> None:
        """prim::GradOf: its block, unless all operands are undefined."""
        items = [self.env[value] for value in node.inputs]
        block = node.blocks[0]
        if len(block.outputs) < len(node.outputs):
            raise NotLowered("too few results")
        if all(isinstance(item, Known) and item.value is None for item in items):
            self.env.update({value: Known(None) for value in node.outputs})
            return
        if any(map(is_never_none, items)):
            self.block(block, into)
            self.env.update({value: self.env[result] for value, result in zip(node.outputs, block.outputs, strict=False)})
            return
        self.inside()
        lowered, none = Lowered(), Lowered()
        self.block(block, lowered)
        lowered.results = [self.env[value] for value in block.outputs[:len(node.outputs)]]
        none.results = [Known(None)] * len(node.outputs)
        self.depth -= 1
        self.join(node, items, [lowered, none], True, into)

    def join(self, node: Node, condition: list[Item], blocks: list[Lowered], tests_none: bool, into: Lowered) -> None:
        """Append a branch whose results are new variables."""
        outs = []
        for value, first, second in zip(node.outputs, blocks[0].results, blocks[1].results, strict=True):
            both = meta_of_item(first)
            out = self.variable(both if both == meta_of_item(second) else None)
            out.roots = out.roots | roots_of(first) | roots_of(second)
            outs.append(out)
            self.env[value] = out
        into.instructions.append(Branch(condition, blocks, outs, node, tests_none))

    def loop(self, node: Node, into: Lowered) -> None:
        """prim::Loop. A list that it fills with items that are the same in each round becomes a group of those."""
        self.counted_or_not(node, into)
        for value, held in self.lists.items():
            if held.loop is node and held.item is not None and not isinstance(held.item, Variable):
                self.env[value] = Group([held.item] * held.count, list)

    def counted_or_not(self, node: Node, into: Lowered) -> None:
        """prim::Loop: one function in C, where it can be and pays; else a loop in Python, in which groups of operators are fused."""
        block = node.blocks[0]
        limit, _, *start = items = [self.env[value] for value in node.inputs]
        if len(block.inputs) != len(start) + 1 or len(block.outputs) != len(start) + 1 or len(node.outputs) != len(start):
            raise NotLowered("a loop of another form")
        self.loops += 1
        self.inside()
        first = 0
        if isinstance(limit, Known) and type(limit.value) is int and limit.value > 1 and begins_undefined(node, start):
            self.env.update(zip(block.inputs, [Known(0), *start], strict=True))     # the first round apart: after it all are defined
            self.block(block, into)
            first, items = 1, [Known(limit.value - 1), Known(True), *[self.env[value] for value in block.outputs[1:]]]
        self.opened += 1
        loop = self.repeated(node, items, first)
        self.opened -= 1
        try:
            native = native_loop(loop, self.program.inputs, self.overwrites, self.options.native, lambda: self.writes_results(node))
        except NotNative as reason:
            if not self.opened and any(each.kind == FUSION_GROUP for each in block.walk()):
                loop = self.repeated(node, items, first)
            self.depth, self.loops = self.depth - 1, self.loops - 1
            into.instructions.append(loop)
            self.program.loops.append((node, f"loop in Python: {reason}"))
            self.env.update(zip(node.outputs, loop.carried, strict=True))
            return
        self.depth, self.loops = self.depth - 1, self.loops - 1
        self.program.loops.append((node, f"native loop: {native.reason}"))
        outs = [self.variable(variable.meta) for variable in loop.carried]
        work: list[Variable] = []
        if native.work:
            meta = fresh_meta(np.uint8, (native.work,))
            work.append(self.variable(meta))
            into.instructions.append(Call(room, (meta,), {}, work[0], "out", node))
        self.env.update(zip(node.outputs, outs, strict=True))
        filled = [(next(each for each in self.lists if self.env[each] is held), meta) for held, meta in native.lists]
        fills = isinstance(loop.limit, Known) and all(self.lists[value].is_looked_up or self.lists[value].is_stacked for value, _ in filled)
        for value, meta in filled:      # the loop in C returns an array with a row per round in place of each list
            rows = fresh_meta(meta.dtype, (loop.limit.value, *meta.shape)) if fills and isinstance(loop.limit, Known) else None
            outs.append(self.variable(rows))
            self.env[value] = outs[-1]
        visit = Visit(native.loop, [loop.limit, *loop.start, *native.arrays, *work], outs, node, False, native.writes)
        visit.facts, visit.fills = [variable.meta for variable in outs], fills
        visit.over = {outs[place]: start for place, start in enumerate(loop.start) if place in native.over and isinstance(start, Variable)}
        into.instructions.append(visit)

    def writes_results(self, loop: Node) -> bool:
        """May a round, or a node after the loop, write into memory of a result of the loop?

        A loop in C writes its results into new memory; results of a loop in Python may be its operands, or values that a round passed on.
        """
        top = loop
        while top.owner_block is not self.program.graph.block:
            outer = top.owner_block.owning_node
            if outer is None:       # in an inner graph
                return True
            top = outer
        node: Node = top
        while node is not self.program.graph.block.return_node:
            if self.aliases_at_all.writes_into(node, loop.outputs):
                return True
            node = node.next
        return False

    @cached_property
    def aliases_at_all(self) -> Aliases:
        """Which values of the graph may share memory, and which nodes write it."""
        return Aliases(self.program.graph)

    def leave_out(self, loop: Repeat) -> None:
        """Remove the appends to lists whose items the readers recompute."""
        held = {value: each for value, each in self.lists.items() if each.loop is loop.node}
        listed = [each.item for each in held.values() if isinstance(each.item, Variable)]
        for value, each in held.items():
            if not self.overwrites and each.is_recomputed(loop, listed):
                loop.body.instructions = [call for call in loop.body.instructions if not (
                    isinstance(call, Call) and call.way == "keep" and call.args[0] is self.env[value])]

    def repeated(self, node: Node, items: list[Item], first: int) -> Repeat:
        """A loop in Python; its counter begins at `first`. A carried value has known facts if each round returns the facts it got."""
        block = node.blocks[0]
        limit, condition, *start = items
        metas = [meta_of_item(item) if value not in self.loose else None for item, value in zip(start, block.inputs[1:], strict=True)]
        begin, reported = self.program.variables, (len(self.program.groups), len(self.program.loops))
        while True:
            self.program.variables = begin
            del self.program.groups[reported[0]:], self.program.loops[reported[1]:]
            counter = self.variable()
            if isinstance(limit, Known) and type(limit.value) is int and 0 < limit.value:
                counter.bounds = (0, limit.value - 1) if bounds_of(limit.value) is not None else None
            carried = []
            for item, meta in zip(start, metas, strict=True):
                variable = self.variable(meta)
                variable.roots = variable.roots | roots_of(item)
                carried.append(variable)
            body, number = Lowered(), counter
            if first:
                number = self.variable()
                number.bounds = None if counter.bounds is None else (first, first + counter.bounds[1])
                body.instructions.append(Call(operator.add, (counter, Known(first)), {}, number, "number", node))
            self.env.update(zip(block.inputs, [number, *carried], strict=True))
            self.block(block, body)
            body.results = [self.env[value] for value in block.outputs]
            next_metas = [meta_of_item(item) for item in body.results[1:]]
            settled = [meta if meta == other else None for meta, other in zip(metas, next_metas, strict=True)]
            if settled == metas:
                break
            metas = settled
        for variable, result in zip(carried, body.results[1:], strict=True):
            variable.roots = variable.roots | roots_of(result)
        loop = Repeat(limit, condition, start, counter, carried, body, node)
        self.leave_out(loop)
        return loop


__all__ = ["FUSION_GROUP", "MAX_CALLS", "Blocks", "NotLowered"]
