"""Larger edits: copying graphs and nodes, inlining graphs and blocks, flattening tuples."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

import irtool.ir.graph_pickles  # noqa: F401  # graphs pickle
from irtool.ir.attribute import Attribute
from irtool.ir.graph import NO_ATTRIBUTES, Block, Graph, Node, Value
from irtool.ir.remarks import count
from irtool.ir.types import TupleType, Type

Mapping = dict[Value, Value]
"""Value of the original -> value of the copy."""


def clone_graph(graph: Graph) -> Graph:
    """A copy that shares no node, value or block with the original; names, types, tails and inner graphs are copied too."""
    copy = Graph(graph.dialect, graph.name)
    copy.metadata = dict(graph.metadata)
    copy.source, copy.is_reverse = graph.source, graph.is_reverse
    mapping: Mapping = {}
    for value in graph.inputs:
        mapping[value] = copy.block.add_input(value.name, value.type)
    clone_block(graph.block, copy.block, mapping)
    return copy


def adopt_output(present: Value, value: Value) -> None:
    """Let `value` take the place of `present` among the results of its node, with its type and readers.

    Readers of `value` need no change, which would take quadratic time for the items of a long list. For the same reason `value` stays among
    the results of the node that had it: the caller removes that node, without its results.
    """
    node = present.node
    present.replace_all_uses_with(value)
    node.outputs = tuple([value if each is present else each for each in node.outputs])
    value.node, value.type = node, present.type


def clone_block(block: Block, into: Block, mapping: Mapping, fresh_names: Graph | None = None) -> None:
    """Copy a block's nodes to the end of `into`, and its results to the results of `into`. Inputs must be in `mapping`."""
    for node in block:
        clone_node(node, mapping, into, fresh_names)
    into.set_outputs(mapping.get(value, value) for value in block.outputs)


def clone_node(node: Node, mapping: Mapping, into: Block | None = None, fresh_names: Graph | None = None) -> Node:
    """Copy a node with its blocks; operands in `mapping` are replaced, and the copies of values are added to it.

    into: the block at whose end the copy is inserted (None: not inserted). fresh_names: the graph in which values get new names.
    """
    copy = Node(node.kind, [mapping.get(value, value) for value in node.inputs], node.attributes)
    copy.tail = node.tail
    copy.line = node.line
    for name, attribute in node.attributes.items():
        if attribute.text.startswith(("<Graph", "[<Graph")):
            copy.set_attribute(name, _clone_subgraphs(attribute))
    if into is not None:
        into.append(copy)
    mapping.update(zip(node.outputs, copy.add_outputs([(new_name(value, fresh_names), value.type) for value in node.outputs]), strict=True))
    for block in node.blocks:
        inner = copy.add_block()
        for value in block.inputs:
            mapping[value] = inner.add_input(new_name(value, fresh_names), value.type)
        clone_block(block, inner, mapping, fresh_names)
    return copy


def new_name(value: Value, graph: Graph | None) -> str:
    """The name of a copy of a value in a graph: a new number, or the value's own name with a new suffix. graph: None: the value's name."""
    if graph is None:
        return value.name
    return graph.fresh_id() if value.has_id_name else graph.fresh_name(value.name)


def _clone_subgraphs(attribute: Attribute) -> Attribute:
    value = attribute.value
    if isinstance(value, Graph):
        return Attribute(attribute.text, clone_graph(value))
    if isinstance(value, list) and all(isinstance(each, Graph) for each in value):
        return Attribute(attribute.text, [clone_graph(each) for each in value])
    return attribute


def inline_graph(callee: Graph, before: Node, inputs: Sequence[Value]) -> list[Value]:
    """Copy the nodes of `callee` in front of `before`, with `inputs` as its inputs; returns the values of its results.

    Copies get new names in their graph. Raises ValueError for a wrong number of inputs.
    """
    if len(inputs) != len(callee.inputs):
        raise ValueError(f"{len(inputs)} inputs given, the graph takes {len(callee.inputs)}")
    graph = before.graph
    mapping: Mapping = dict(zip(callee.inputs, inputs, strict=True))
    for node in callee.block:
        clone_node(node, mapping, None, graph).insert_before(before)
    count("graphs inlined")
    return [mapping[value] for value in callee.outputs]


def inline_block(block: Block, before: Node, inputs: Sequence[Value] = ()) -> list[Value]:
    """Move the nodes of a block in front of `before` (usually the node of the block); returns the values of its results.

    The block's inputs are replaced by `inputs`. The block is then empty, without results.
    """
    for value, operand in zip(block.inputs, inputs, strict=True):
        value.replace_all_uses_with(operand)
    results = list(block.outputs)
    block.set_outputs(())
    for node in block:
        node.move_before(before)
    count("blocks inlined")
    return results


def replace_node(node: Node, values: Sequence[Value]) -> None:
    """Let users of the node's results read `values` instead, and remove the node."""
    for old, new in zip(node.outputs, values, strict=True):
        old.replace_all_uses_with(new)
    node.destroy()
    count("nodes replaced")


def put_in_place(old: Value, new: Value) -> Value:
    """Let the readers of `old`, a result of a node that is about to be removed, read `new`. Returns the value object that they read: `new`,
    or `old` as a result of new's node, with new's name and type, where that takes less time: a node with a thousand operands is not
    rewritten for each of them.
    """
    home = new.node
    if new.is_block_input or sum([len(user.inputs) for user, _ in old.uses]) <= len(home.outputs) + sum(
            [len(user.inputs) for user, _ in new.uses]):
        old.replace_all_uses_with(new)
        return new
    adopt_output(new, old)
    old.name = new.name
    return old


def replace_inputs(node: Node, values: Sequence[Value]) -> None:
    """Replace the operands by as many, all at once, since replacing them one by one takes quadratic time."""
    for slot, (old, value) in enumerate(zip(node.inputs, values, strict=True)):
        if old is not value:
            if old._uses is not None:
                old._uses.pop((node, slot), None)
            if node.owner is not None and value._uses is not None:
                value._uses[node, slot] = None
    node.inputs = tuple(values)


def put_behind(nodes: dict[Value, Node], slot: int) -> None:
    """For each value, let all its readers read the only result of its node in `nodes`, which comes after it, and that node read the value
    at `slot`. No node may stand there twice.

    Takes time linear in the values and in the results of the nodes around them, however many readers there are: the value object becomes
    the result of the node, with its type, and its first node gets a new value.
    """
    moves = [(node, value, node.output) for value, node in nodes.items()]
    places = {a: b for _, value, result in moves for a, b in ((value, result), (result, value))}
    for owner in {value.node for value in places}:
        owner.outputs = tuple([places.get(value, value) for value in owner.outputs])
    for node, value, result in moves:
        if value.node.graph is None:
            raise ValueError(f"%{value.name} is in no graph")
        value.type, result.type = result.type, value.type
        value.node, result.node = node, value.node
        node.replace_input(slot, result)


def flatten_type(type: Type) -> list[Type]:
    """The leaf types of a tuple type, in order, nested tuples included; a type that is no tuple is its only leaf."""
    if not isinstance(type, TupleType):
        return [type]
    return [leaf for element in type.elements for leaf in flatten_type(element)]


def flatten_values(values: Iterable[Value]) -> list[Value]:
    """The values with those of `prim::TupleConstruct` replaced by their elements, recursively."""
    out: list[Value] = []
    for value in values:
        if value.node.kind == "prim::TupleConstruct":
            out += flatten_values(value.node.inputs)
        else:
            out.append(value)
    return out


def become_constant(node: Node, attribute: Attribute | None, type: Type) -> None:
    """Turn a node with one result into a constant, in its place. attribute: None for the constant None."""
    if node.inputs:
        node.set_inputs(())
    node.kind = "prim::Constant" if node.graph is None or node.graph.dialect.qualified_kinds else "Constant"
    node.attributes = NO_ATTRIBUTES if attribute is None else {"value": attribute}
    node.output.type = type
    count("nodes folded to constants")


def replace_output(node: Node, index: int, types: Sequence[Type]) -> list[Value]:
    """Replace one result, which must be unused, by new results of these types."""
    graph = node.graph
    if graph is None:
        raise ValueError(f"{node.kind} is in no graph")
    old = node.outputs
    fresh = [node.add_output(graph.fresh_id(), type) for type in types]
    node.remove_output(index)
    node.outputs = (*old[:index], *fresh, *old[index + 1:])
    return fresh
