"""A method of an instance as a graph of arrays: attributes that it reads become inputs, attributes that it writes become outputs.

The instances that a method reaches from `self` are known when it is lowered, so `self.encoder.weight` is one attribute on whatever path it
is reached. Numbers, strings and None that the method only reads are constants (`opening.py`); `Lowered.fits` tells whether the attributes
still have these values.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from irtool.analysis.alias import Aliases
from irtool.analysis.liveness import remove_dead_nodes
from irtool.archives.opening import opened
from irtool.ir.effects import RESHAPES, changes_list, node_may_write
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.types import ClassType, DictType, ListType, SimpleType, TensorType, TupleType, Type
from irtool.ops.structure import Object, attribute_name
from irtool.torchscript.library import Library

Place = tuple[int, str]
"""The id of an instance, and the name of an attribute."""


class UnknownInstance(Exception):
    """Only the run decides to which instance an attribute belongs. `read`: as in Lowered."""

    read: Sequence[tuple[Object, str, Any]] = ()


class Lowered:
    """A graph without instances.

    Inputs: the arguments of the method, then the attributes of `sources`. Outputs: the results, then the new values of the attributes of
    `assigned`, then the attributes of `changed`, into which the method may have written.
    """

    def __init__(self, library: Library, graph: Graph, root: Object, varying: Iterable[Place] = ()) -> None:
        """varying: attributes that others write. Raises UnknownInstance; Error if the code is wrong."""
        opening = opened(library, graph, root, varying)
        self._library = library
        self.graph = opening.graph
        self.result_count = len(graph.outputs)
        self.sources: list[tuple[Object, str]] = []
        self.assigned: list[tuple[Object, str]] = []
        self.changed: list[int] = []
        """Positions in `sources`."""
        self.read = opening.read
        """The attributes (instances, numbers and strings) whose values the graph was made for."""
        self._objects = opening.objects
        self._inputs: dict[Place, Value] = {}
        self._written: dict[Place, Type] = {}
        self._holders: dict[int, Object] = {}
        try:
            self._resolve(self.graph.block)
        except UnknownInstance as unknown:
            unknown.read = self.read
            raise
        state = self._rewrite(self.graph.block, {})
        for place in self._written:
            self.assigned.append((self._holders[place[0]], place[1]))
            self.graph.block.add_output(state.get(place) or self._input(place, self._written[place]))
        self._drop_instances(self.graph.block)
        self.graph.block.remove_input(0)
        remove_dead_nodes(self.graph)
        first = len(self.graph.inputs) - len(self.sources)
        aliases = Aliases(self.graph)
        self.shares = any(aliases.touched_inputs()[first:])
        """May a result be an attribute, or share memory with one?"""
        if any(node_may_write(node) for node in self.graph.walk()):
            self.changed = [index for index, is_written in enumerate(aliases.touched_inputs(by_results=False)[first:]) if is_written]
        self.rebinds = any(map(changes_list, self.graph.walk()))
        """May a list or dict contain other values after the call?"""
        attributes = set(self.graph.inputs[first:])
        holds_state = [value for value in self.graph.outputs[self.result_count:]
                       if not isinstance(value.type, SimpleType) and may_hold(aliases, value, attributes)]
        self.by_reference = bool(self.changed and (holds_state or self.rebinds and any(map(holds_tensors, attributes))))
        """Does it matter which array an attribute is, and not only which elements it has?"""
        self.reshapes = bool(self.changed) and any(node.kind in RESHAPES for node in self.graph.walk())
        """May an attribute itself get another shape, over the same memory?"""
        self.keeps_lists = any(may_be_list(aliases, value, attributes) for value in self.graph.outputs[self.result_count:]) or any(
            changes_list(node) and any(map(is_changeable, node.inputs[1:])) for node in self.graph.walk())
        """May an attribute become a list or dict that another one is, or contains, too?"""
        for index in self.changed:
            self.graph.block.add_output(self.graph.inputs[first + index])

    def fits(self) -> bool:
        """Have the attributes still the values for which the graph was made?"""
        return is_unchanged(self.read)

    # -- the instance that a value is
    def _resolve(self, block: Block) -> None:
        objects = self._objects
        for node in block:
            if node.kind == "prim::GetAttr" and node.inputs[0] in objects:
                pass
            elif node.kind == "prim::SetAttr" and node.inputs[0] in objects:
                holder = objects[node.inputs[0]]
                self._holders[id(holder)] = holder
                if node.inputs[1] in objects or isinstance(node.inputs[1].type, ClassType):
                    raise UnknownInstance(attribute_name(node))
                self._written[id(holder), attribute_name(node)] = self._library.definition(holder.type).attributes[attribute_name(node)]
            elif any(value in objects for value in node.inputs):
                raise UnknownInstance(node.kind)
            for inner in node.blocks:
                self._resolve(inner)
        if any(value in objects for value in block.outputs):
            raise UnknownInstance("a result")

    # -- attributes as values
    def _rewrite(self, block: Block, state: dict[Place, Value]) -> dict[Place, Value]:
        """Replace reads and writes of attributes in a block; `state` maps attributes to their values at its start. Returns the values at
        its end."""
        state = dict(state)
        for node in block.nodes:
            if node.kind == "prim::GetAttr" and node.inputs[0] in self._objects:
                if node.output not in self._objects:
                    node.output.replace_all_uses_with(self._attribute(node, state))
            elif node.kind == "prim::SetAttr" and node.inputs[0] in self._objects:
                state[id(self._objects[node.inputs[0]]), attribute_name(node)] = node.inputs[1]
                node.destroy()
            elif node.blocks:
                self._rewrite_inside(node, state)
        return state

    def _attribute(self, node: Node, state: dict[Place, Value]) -> Value:
        holder, name = self._objects[node.inputs[0]], attribute_name(node)
        place = id(holder), name
        if place in state:
            return state[place]
        self._holders[id(holder)] = holder
        return self._input(place, node.output.type)

    def _input(self, place: Place, type: Type) -> Value:
        """The input for an attribute's value at the start of the call."""
        if place not in self._inputs:
            self._inputs[place] = self.graph.block.add_input(self.graph.fresh_id(), type)
            self.sources.append((self._holders[place[0]], place[1]))
        return self._inputs[place]

    def _rewrite_inside(self, node: Node, state: dict[Place, Value]) -> None:
        """Attributes that a branch or a loop writes become results of it, and loop-carried."""
        places = list(dict.fromkeys(self._places_written(node.blocks)))
        before = {place: state[place] if place in state else self._input(place, self._written[place]) for place in places}
        is_loop = node.kind == "prim::Loop"
        for block in node.blocks:
            inside = dict(state)
            for place in places:
                inside[place] = block.add_input(self.graph.fresh_id(), self._written[place]) if is_loop else before[place]
            inside = self._rewrite(block, inside)
            for place in places:
                block.add_output(inside[place])
        for place in places:
            if is_loop:
                node.add_input(before[place])
            state[place] = node.add_output(self.graph.fresh_id(), self._written[place])

    def _places_written(self, blocks: Iterable[Block]) -> Iterable[Place]:
        for block in blocks:
            for node in block.walk():
                if node.kind == "prim::SetAttr" and node.inputs[0] in self._objects:
                    yield id(self._objects[node.inputs[0]]), attribute_name(node)

    def _drop_instances(self, block: Block) -> None:
        """Remove the nodes that look up instances, last ones first, since nothing reads them any more."""
        for node in reversed(block.nodes):
            for inner in node.blocks:
                self._drop_instances(inner)
            if node.kind == "prim::GetAttr" and node.inputs[0] in self._objects and not node.output.has_uses:
                node.destroy()


def is_unchanged(read: Sequence[tuple[Object, str, Any]]) -> bool:
    """Have the attributes still these values?"""
    return all([holder.attributes.get(name) is value for holder, name, value in read])


def may_hold(aliases: Aliases, value: Value, attributes: set[Value]) -> bool:
    """May a value be an attribute, share memory with one, or contain a tensor that does?"""
    if not attributes.isdisjoint(aliases.roots(value)):
        return True
    elements = aliases.elements(value)
    return holds_tensors(value) and (not elements or any(may_hold(aliases, each, attributes) for each in elements))


def is_changeable(value: Value) -> bool:
    """Is the value a list or dict, or may it contain one?"""
    return not isinstance(value.type, SimpleType | TensorType) and any(word in value.type.text for word in ("[]", "Dict"))


def may_be_list(aliases: Aliases, value: Value, attributes: set[Value]) -> bool:
    """May a value be a list or dict that an attribute is, too, or contain one?"""
    return is_changeable(value) and (not attributes.isdisjoint(aliases.roots(value)) or
                                     any(may_be_list(aliases, each, attributes) for each in aliases.elements(value)))


def holds_tensors(value: Value) -> bool:
    """Is the value a list, tuple or dict that contains tensors?"""
    return isinstance(value.type, ListType | TupleType | DictType) and "Tensor" in value.type.text
