"""Batching a graph node by node: loops and branches whose conditions are not batched, and numbers, stay as they are."""
from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NoReturn

from irtool.ir.builder import Builder
from irtool.ir.constants import constant, is_constant
from irtool.ir.edits import Mapping, adopt_output, clone_node
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, facts_of, node_may_write
from irtool.ir.errors import PassError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.numbering import attribute_keys
from irtool.ir.source import Diagnostic
from irtool.ir.structure_kinds import CONSTRUCTS
from irtool.ir.type_model import contiguous_strides
from irtool.ir.types import TensorType, tensor_type


class Blocks:
    """A graph while it is batched, and the values that have the batch dimension, always as their first."""

    def __init__(self, graph: Graph, length: int, randomness: str) -> None:
        self.graph = graph
        self.length = length
        self.randomness = randomness
        self.batched: set[Value] = set()
        self.traces: dict[object, Graph] = {}       # of nodes that are alike but for their operands

    def run(self, dims: Sequence[int | None]) -> None:
        """Batch the graph in place. Raises PassError, and leaves the graph half done, if a node cannot be batched by itself."""
        build = Builder(self.graph).before(self.graph.block.return_node.next)
        for value, dim in zip(self.graph.inputs, dims, strict=True):
            if dim is None:
                continue
            shape = list(self.shape_of(value))
            place = dim % (len(shape) + 1)
            uses = list(value.uses)
            value.type = self.typed(value, [*shape[:place], self.length, *shape[place:]])
            front = value
            if place:
                front = build.call("aten::movedim", value, place, 0, type=self.typed(value, [self.length, *shape]))
                for user, slot in uses:
                    user.replace_input(slot, front)
            self.batched.add(front)
        self.block(self.graph.block)
        end = self.graph.block.return_node
        for slot, value in enumerate(end.inputs):
            end.replace_input(slot, self.in_front(value, end))

    def block(self, block: Block) -> None:
        """All nodes of a block, in order."""
        for node in list(block):
            if node.kind in IF_KINDS:
                self.branch(node)
            elif node.kind in LOOP_KINDS:
                self.loop(node)
            elif node.kind not in CONSTRUCTS and self.reads(node):
                item = item_of(node)
                if item is None:
                    self.node(node)
                else:
                    node.output.replace_all_uses_with(item)
                    node.destroy()

    def reads(self, node: Node, more: Collection[Value] = ()) -> bool:
        """Does the node, or one in its blocks, read a batched value, or one of `more`?"""
        return any(self.holds(value, more) for value in node.inputs) or any(
            self.reads(inner, more) for block in node.blocks for inner in (*block, block.return_node))

    def holds(self, value: Value, more: Collection[Value] = ()) -> bool:
        """Is the value batched, one of `more`, or a list constructed of such values?"""
        return value in self.batched or value in more or \
            value.node.kind in CONSTRUCTS and any(self.holds(each, more) for each in value.node.inputs)

    # -- plain nodes
    def node(self, node: Node) -> None:
        """Batch one operator: trace it alone, on inputs of its operands' types, and insert the trace."""
        from irtool.dispatch.graph_functions import sample_inputs, trace_vmap

        if node.blocks or node_may_write(node) or facts_of(node.kind).is_random or facts_of(node.kind).side_effects:
            self.refuse(node, f"{node.kind} cannot be batched by itself")
        if not all(isinstance(value.type, TensorType) for value in node.outputs):
            self.refuse(node, f"{node.kind} of a batched tensor gives {node.outputs[0].type}")
        alone = Graph(name="node")
        mapping: Mapping = {}
        outer, made = self.operands(node)
        inputs = alone.block.param_node.add_outputs([(alone.fresh_id(), self.alone(value)) for value in outer])
        mapping.update(zip(outer, inputs, strict=True))
        for each in (*made, node):
            copy = clone_node(each, mapping, alone.block, alone)
        alone.block.set_outputs(copy.outputs)
        dims = [0 if value in self.batched else None for value in outer]
        key = tuple(dims), key_of(alone)
        traced = self.traces.get(key)
        if traced is None:
            traced = self.traces[key] = trace_vmap(alone, dims, sample_inputs(alone, dims, self.length), 0, self.randomness, True)
        back: Mapping = dict(zip(traced.inputs, outer, strict=True))
        for each in traced.block:
            clone_node(each, back, None, self.graph).insert_before(node)
        for old, result in zip(node.outputs, traced.outputs, strict=True):
            fresh = back[result]
            if result.node is not traced.block.param_node and traced.outputs.count(result) == 1:
                adopt_output(fresh, old)
                fresh = old
            else:
                old.replace_all_uses_with(fresh)
            self.batched.add(fresh)
        node.outputs = ()       # some are results of other nodes by now
        node.destroy()

    def operands(self, node: Node) -> tuple[list[Value], list[Node]]:
        """What the graph of one node reads: the tensors from outside, and the constants and lists that are copied, in order."""
        outer: dict[Value, None] = {}
        made: dict[Node, None] = {}

        def read(value: Value) -> None:
            if isinstance(value.type, TensorType) and not is_constant(value):
                outer[value] = None
            elif is_constant(value) or value.node.kind in CONSTRUCTS:
                if value.node not in made:
                    for each in value.node.inputs:
                        read(each)
                    made[value.node] = None
            else:
                self.refuse(node, f"{node.kind} of a batched tensor reads %{value.name} : {value.type}, which is not constant")

        for value in node.inputs:
            read(value)
        return list(outer), list(made)

    def alone(self, value: Value) -> TensorType:
        """The type of a tensor without the batch dimension."""
        shape = self.shape_of(value)
        return self.typed(value, shape[1:] if value in self.batched else shape)

    # -- branches and loops
    def branch(self, node: Node) -> None:
        """Batch an If whose condition is not batched: a result is batched if it is in one of the branches."""
        self.refuse_batched(node, node.inputs[:1], "the condition")
        for block in node.blocks:
            self.block(block)
        for place, value in enumerate(node.outputs):
            ends = [block.outputs[place] for block in node.blocks]
            if any(self.holds(each) for each in ends):
                self.join(value, [(block.return_node, place) for block in node.blocks])

    def loop(self, node: Node) -> None:
        """Batch a Loop whose count and conditions are not batched: a carried value is batched if it is in any round."""
        (body,) = node.blocks
        self.refuse_batched(node, node.inputs[:2], "the count or the condition")
        carried = body.inputs[1:]
        flags = [self.holds(value) for value in node.inputs[2:]]
        while True:
            known = {value for value, flag in zip(carried, flags, strict=True) if flag}
            self.spread(body, known)
            are_batched = [flag or self.holds(value, known) for value, flag in zip(body.outputs[1:], flags, strict=True)]
            if are_batched == flags:
                break
            flags = are_batched
        for place, flag in enumerate(flags):
            if flag:
                node.replace_input(place + 2, self.in_front(node.inputs[place + 2], node))
                carried[place].type = node.inputs[place + 2].type
                self.batched.add(carried[place])
        self.block(body)
        self.refuse_batched(node, body.outputs[:1], "the next condition")
        for place, flag in enumerate(flags):
            if flag:
                self.join(node.outputs[place], [(body.return_node, place + 1)], carried[place])

    def spread(self, block: Block, known: set[Value]) -> None:
        """Add the values of a block that are computed from batched values, or from these."""
        for node in block:
            if self.reads(node, known):
                known.update(node.outputs)

    def join(self, result: Value, ends: list[tuple[Node, int]], carried: Value | None = None) -> None:
        """Set the type of a batched result of a node with blocks, from the blocks' results. Raises PassError if their shapes differ."""
        for end, slot in ends:
            end.replace_input(slot, self.in_front(end.inputs[slot], end))
        shapes = {self.shape_of(value) for value in [*(end.inputs[slot] for end, slot in ends), *([carried] if carried else [])]}
        if len(shapes) > 1:
            self.refuse(result.node, f"%{result.name} has the sizes {' and '.join(map(str, sorted(shapes)))}")
        end, slot = ends[0]
        result.type = end.inputs[slot].type
        self.batched.add(result)

    # -- values
    def in_front(self, value: Value, user: Node) -> Value:
        """The value with the batch dimension: itself, or expanded in front of its user."""
        if value in self.batched:
            return value
        if not isinstance(value.type, TensorType):
            self.refuse(user, f"%{value.name} : {value.type} is no tensor, and would have to be batched")
        shape = self.shape_of(value)
        build = Builder(self.graph).before(user)
        one = build.call("aten::unsqueeze", value, 0, type=self.typed(value, [1, *shape]))
        expanded = build.call("aten::expand", one, [self.length, *shape], type=self.typed(value, [self.length, *shape]))
        self.batched.add(expanded)
        return expanded

    def shape_of(self, value: Value) -> tuple[int, ...]:
        """The sizes in a value's type. Raises PassError if it has none."""
        type = value.type
        if not isinstance(type, TensorType) or type.shape is None or type.dtype is None:
            self.refuse(value.node, f"the type of %{value.name} does not say its sizes, dtype")
        return type.shape

    def typed(self, value: Value, shape: Sequence[int]) -> TensorType:
        """The type of a contiguous tensor of the value's dtype."""
        assert isinstance(value.type, TensorType)
        return tensor_type(value.type.dtype, shape, contiguous_strides(tuple(shape)), False, "cpu")

    def refuse_batched(self, node: Node, values: Sequence[Value], what: str) -> None:
        """Raises PassError if one of the values is batched."""
        if any(self.holds(value) for value in values):
            self.refuse(node, f"{what} of {node.kind} is batched")

    def refuse(self, node: Node, message: str) -> NoReturn:
        """Raises PassError at a node."""
        raise PassError(diagnostics=[Diagnostic("error", f"vmap: {message}", self.graph.source, node.line)], code="E0504")


def item_of(node: Node) -> Value | None:
    """The element that a node reads, at a constant index, of a constructed list; batched lists never change, since that is refused."""
    if node.kind != "aten::__getitem__" or len(node.inputs) != 2 or node.inputs[0].node.kind != "prim::ListConstruct":
        return None
    items, index = node.inputs[0].node.inputs, constant(node.inputs[1])
    return items[index] if isinstance(index, int) and -len(items) <= index < len(items) else None


def key_of(graph: Graph) -> object:
    """A key of a graph without blocks: those of equal keys compute the same."""
    places = {value: place for place, value in enumerate((*graph.inputs, *(value for node in graph.block for value in node.outputs)))}
    return tuple([value.type for value in graph.inputs]), tuple([
        (node.kind, tuple([places[value] for value in node.inputs]), attribute_keys(node), tuple([value.type for value in node.outputs]))
        for node in graph.block])
