"""Awaitables run when they are first awaited. Here a node runs where it stands, so it is moved to the first wait.

Forks run at once in torch too, but what they raise is raised by the wait: a fork that some runs do not wait for is moved into the branches
that do.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from irtool.ir.edits import clone_graph, clone_node
from irtool.ir.effects import LOOP_KINDS, changes_list, group_may_write, has_side_effects, is_random, node_may_write
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.structure_kinds import FORK_KINDS
from irtool.ir.types import OptionalType, SimpleType, TensorType, TupleType, Type

AWAITABLE, WAIT = "prim::awaitable", "prim::awaitable_wait"
FORK, FORK_WAIT = "prim::fork", "aten::wait"
Callee = Callable[[Node], "Graph | None"]


def has_bodies(graph: Graph) -> bool:
    """Does the graph make a fork, or an awaitable that has a body?"""
    return any(node.kind in FORK_KINDS or node.subgraph is not None and has_bodies(node.subgraph) for node in graph.walk())


def with_awaitables_late(graph: Graph) -> Graph:
    """The graph, or a copy in which each awaitable runs when it is first awaited. Raises UnsupportedError, at the line, if it cannot."""
    if not has_bodies(graph):
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
        if node.kind == FORK:
            fork_late(node)
        if node.kind != AWAITABLE or not _is_seen(node):
            continue
        users = [use.user for use in node.output.uses]
        waits = [user for user in users if user.kind == WAIT and user.owner is node.owner]
        first = next((wait for wait in waits if not any(_is_before(user, wait) for user in users)), None)
        if first is not None:
            node.move_before(first)
        elif not users:
            node.destroy()


def _unknown(node: Node) -> None:
    """The graph that a node calls, where no calls are known."""


def fork_late(node: Node, callee: Callee = _unknown) -> None:
    """Remove a fork that nobody waits for, and move one that some runs do not wait for in front of the waits: it raises nowhere else. One
    whose time can be seen otherwise stays, as does one of which more than the waits are known. `callee`: the graph that a node calls."""
    if node.graph is None or node.subgraph is None or len(node.outputs) != 1 or not only_raises(node.subgraph, callee):
        return
    users = [use.user for use in node.output.uses]
    if not users:
        node.destroy()
        return
    if not is_awaited_elsewhere(node) or reads_what_changes(node.inputs, _with_bodies(node.graph)):
        return
    blocks = [user.owner_block for user in users]
    outermost = [block for block in dict.fromkeys(blocks) if not any(other is not block and _is_inside(block, other) for other in blocks)]
    is_in_loop = any(is_repeated(block, node.owner_block) for block in outermost)
    if is_in_loop and not _raises(node.subgraph):
        return
    if is_in_loop or len(outermost) > 1:        # several copies, which have to give the same
        waited = [value for user in users for value in user.outputs]
        if reads_what_changes(waited, _with_bodies(node.graph)) or any(map(is_random, _with_bodies(node.subgraph))):
            return
    for block in outermost:
        waits = [user for user in users if _is_inside(user.owner_block, block)]
        first = next(each for each in block if any(wait is each or _is_below(wait, each) for wait in waits))
        copy = clone_node(node, {}, None, node.graph)
        copy.insert_before(first)
        for wait in waits:
            wait.replace_input_with(node.output, copy.output)
    node.destroy()


def is_awaited_elsewhere(node: Node) -> bool:
    """Are waits in other blocks all that is done with a fork?"""
    return all(use.user.kind == FORK_WAIT and use.user.owner is not node.owner for use in node.output.uses)


def is_awaited_once_elsewhere(node: Node) -> bool:
    """Is nothing done with a fork, but that at most one branch, which is not in a loop inside, waits for it?"""
    return is_awaited_elsewhere(node) and len(node.output.uses) < 2 and not any(
        is_repeated(use.user.owner_block, node.owner_block) for use in node.output.uses)


def _with_bodies(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of its forks, without the waits, which may write because the bodies may."""
    for node in graph.walk():
        if node.kind not in (WAIT, FORK_WAIT):
            yield node
        if node.subgraph is not None:
            yield from _with_bodies(node.subgraph)


def only_raises(body: Graph, callee: Callee, active: Sequence[Graph] = ()) -> bool:
    """Have the nodes of a body no effects, but for what they raise? `callee` gives the graph that a node calls, if it is known."""
    if body in active:
        return False
    called = [(node, node.subgraph if node.kind in FORK_KINDS else callee(node)) for node in body.walk()]
    return all(only_raises(graph, callee, [*active, body]) if graph is not None else node.blocks or _is_plain(node)
               for node, graph in called)


def _raises(body: Graph) -> bool:
    """May a body raise by itself, or what it calls?"""
    return any(node.kind in ("prim::RaiseException", "prim::CallFunction", "prim::CallMethod")
               or node.subgraph is not None and _raises(node.subgraph) for node in body.walk())


def _is_plain(node: Node) -> bool:
    """Has a node no effect, but that it may raise? A wait inside of a fork has none of its own, nor has a closure that a fork runs."""
    if node.subgraph is not None:
        return node.kind == "prim::Closure"
    if node.kind in ("prim::RaiseException", WAIT, FORK_WAIT):
        return True
    return not has_side_effects(node) and not node_may_write(node) and not group_may_write(node)


def _is_inside(block: Block, other: Block) -> bool:
    """Is a block another one, or inside of it?"""
    above: Node | None
    while block is not other:
        above = block.owning_node
        if above is None:
            return False
        block = above.owner_block
    return True


def _is_below(node: Node, above: Node) -> bool:
    return any(_is_inside(node.owner_block, block) for block in above.blocks)


def is_repeated(block: Block, outer: Block) -> bool:
    """Is there a loop between a block and one around it?"""
    while block is not outer and block.owning_node is not None:
        if block.owning_node.kind in LOOP_KINDS:
            return True
        block = block.owning_node.owner_block
    return False


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
    return any(has_side_effects(node) or writes_inside(node) for node in body) or reads_what_changes(operands, graph.walk())


def reads_what_changes(operands: Sequence[Value], nodes: Iterable[Node]) -> bool:
    """May one of the nodes write into the operands?"""
    read = [each for value in operands for each in _parts(value.type) if not isinstance(each, SimpleType) or each.text == "Any"]
    are_tensors = all(isinstance(each, TensorType) for each in read)
    return bool(read) and any((node_may_write(node) or group_may_write(node)) and not (are_tensors and changes_list(node))
                              for node in nodes)


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
