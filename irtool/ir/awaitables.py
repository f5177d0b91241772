"""Awaitables run when they are first awaited. Here a node runs where it stands, so it is moved to the first wait."""
from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.edits import clone_graph
from irtool.ir.effects import changes_list, group_may_write, has_side_effects, node_may_write
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import OptionalType, SimpleType, TensorType, TupleType, Type

AWAITABLE, WAIT = "prim::awaitable", "prim::awaitable_wait"


def has_awaitables(graph: Graph) -> bool:
    """Does the graph, or the body of a fork in it, make an awaitable that has a body?"""
    return any(node.kind == AWAITABLE or node.subgraph is not None and has_awaitables(node.subgraph) for node in graph.walk())


def with_awaitables_late(graph: Graph) -> Graph:
    """The graph, or a copy in which each awaitable runs when it is first awaited. Raises UnsupportedError, at the line, if it cannot."""
    if not has_awaitables(graph):
        return graph
    copy = clone_graph(graph)
    settle_awaitables(copy)
    return copy


def settle_awaitables(graph: Graph) -> None:
    """Let each awaitable run when it is first awaited. Raises UnsupportedError, at the line, if one cannot."""
    awaitables_late(graph)
    for node in graph.walk():
        refuse_early(node)


def awaitables_late(graph: Graph) -> None:
    """Move each awaitable whose time can be seen in front of the first wait for it, if that is in the same block; remove one that nobody
    awaits.

    before:
        %1 : Await(Tensor) = prim::awaitable_0(%x)
         = prim::Print(%s)
        %2 : Tensor = prim::awaitable_wait(%1)

    after:
         = prim::Print(%s)
        %1 : Await(Tensor) = prim::awaitable_0(%x)
        %2 : Tensor = prim::awaitable_wait(%1)
    """
    for node in list(graph.walk()):
        if node.subgraph is not None:
            awaitables_late(node.subgraph)
        if node.kind != AWAITABLE or not _is_seen(node):
            continue
        users = [use.user for use in node.output.uses]
        waits = [user for user in users if user.kind == WAIT and user.owner is node.owner]
        first = next((wait for wait in waits if not any(_is_before(user, wait) for user in users)), None)
        if first is not None:
            node.move_before(first)
        elif not users:
            node.destroy()


def refuse_early(node: Node) -> None:
    """Raise UnsupportedError, at the line, for an awaitable that would run too early, and what it does can be seen."""
    if node.subgraph is not None:
        for inner in node.subgraph.walk():
            refuse_early(inner)
    if node.kind == AWAITABLE and not is_awaited_at_once(node) and _is_seen(node):
        raise too_early(node)


def is_awaited_at_once(node: Node) -> bool:
    """Is the node after an awaitable a wait for it?"""
    return node.next.kind == WAIT and node.next.inputs[0] is node.output


def too_early(node: Node) -> Error:
    """The error for an awaitable that would run too early."""
    error = UnsupportedError("an awaitable whose effects can be seen is supported only if it is awaited in the block that makes it, before "
                             "anything else is done with it", code="E0404")
    graph = node.graph
    place = graph.source.about(node.line, node.source, error.message) if graph is not None and graph.source is not None else None
    return error.at([] if place is None else [place])


def _is_seen(node: Node) -> bool:
    body, graph = node.subgraph, node.graph
    return body is not None and graph is not None and time_is_seen(list(body.block), node.inputs, graph)


def time_is_seen(body: Sequence[Node], operands: Sequence[Value], graph: Graph) -> bool:
    """Can it be seen when nodes run: have they effects, or may a node of the graph write into what they read?"""
    if any(has_side_effects(node) or writes_inside(node) for node in body):
        return True
    read = [each for value in operands for each in _parts(value.type) if not isinstance(each, SimpleType) or each.text == "Any"]
    are_tensors = all(isinstance(each, TensorType) for each in read)
    return bool(read) and any((node_may_write(node) or group_may_write(node)) and not (are_tensors and changes_list(node))
                              for node in graph.walk())


def _parts(type: Type) -> list[Type]:
    """The types of what a value of a type consists of, if it is a tuple or optional."""
    if isinstance(type, TupleType | OptionalType):
        inner = (type.element,) if isinstance(type, OptionalType) else type.elements
        return [part for each in inner for part in _parts(each)]
    return [type]


def writes_inside(node: Node) -> bool:
    """May a node, or one in its blocks, write?"""
    return node_may_write(node) or group_may_write(node) or any(writes_inside(each) for block in node.blocks for each in block)


def _is_before(user: Node, wait: Node) -> bool:
    """Is a node, or the one around it, before a wait in its block?"""
    while user.owner is not wait.owner:
        above = user.owner_block.owning_node
        if above is None:
            return False
        user = above
    return user is not wait and user.before_in_block(wait)
