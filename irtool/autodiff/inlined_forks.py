"""Forks without futures: what a fork computes is put in its place, and a future becomes its result, so that gradients go through both."""
from __future__ import annotations

from irtool.ir.awaitables import settle_awaitables
from irtool.ir.edits import clone_graph, inline_graph, replace_node
from irtool.ir.graph import Block, Graph
from irtool.ir.structure_kinds import FORK_KINDS
from irtool.ir.type_model import AwaitType, FutureType
from irtool.ir.types import Type, is_subtype, parse_type

WAITS = ("aten::wait", "prim::awaitable_wait", "prim::awaitable_nowait")


def inline_forks(graph: Graph) -> bool:
    """Replace each fork by the nodes of its graph, which run where the fork is, as they do here anyway, and each wait by its operand.

    before:
        graph(%x : Tensor):
          %1 : Future(Tensor) = prim::fork_0(%x)
          %2 : Tensor = aten::wait(%1)
          return (%2)
        with prim::fork_0 = graph(%0 : Tensor):
          %1 : Tensor = aten::neg(%0)
          return (%1)

    after:
        graph(%x : Tensor):
          %3 : Tensor = aten::neg(%x)
          return (%3)
    """
    if not has_futures(graph) or not _fits(graph):
        return False
    settle_awaitables(graph)
    while forks := [node for node in graph.walk() if node.kind in FORK_KINDS]:
        for node in forks:          # a body may contain further forks
            assert node.subgraph is not None
            replace_node(node, inline_graph(node.subgraph, node, node.inputs))
    _without_futures(graph.block)
    for node in [node for node in graph.walk() if node.kind in WAITS]:
        replace_node(node, node.inputs[:1])
    return True


def has_futures(graph: Graph) -> bool:
    """Does a node of the graph make a future?"""
    return any(node.kind in FORK_KINDS or node.kind == "prim::awaitable_nowait" for node in graph.walk())


def _fits(graph: Graph) -> bool:
    """Does every fork give a future of what its body gives, and every wait take one value?"""
    for node in graph.walk():
        if node.kind in WAITS and (len(node.inputs) != 1 or len(node.outputs) != 1):
            return False
        if node.kind in FORK_KINDS:
            if node.subgraph is None or len(node.outputs) != 1:
                return False
            body, type = node.subgraph, node.output.type
            if len(body.inputs) != len(node.inputs) or len(body.outputs) != 1 or not isinstance(type, FutureType | AwaitType):
                return False
            if not is_subtype(body.outputs[0].type, type.element) or not _fits(body):
                return False
    return True


def without_forks(graph: Graph) -> Graph:
    """A copy with forks inlined; the graph itself if it has none."""
    if not has_futures(graph):
        return graph
    copy = clone_graph(graph)
    inline_forks(copy)
    return copy


def _without_futures(block: Block) -> None:
    for value in block.inputs:
        value.type = _awaited(value.type)
    for node in block:
        for value in node.outputs:
            value.type = _awaited(value.type)
        for inner in node.blocks:
            _without_futures(inner)


def _awaited(type: Type) -> Type:
    """The type with results in place of futures, also inside of lists, tuples and dicts."""
    while isinstance(type, FutureType | AwaitType):
        type = type.element
    text = type.text
    for each in {each.text: each for each in _futures(type)}.values():
        text = text.replace(each.text, _awaited(each).text)
    return type if text == type.text else parse_type(text)


def _futures(type: Type) -> list[Type]:
    if isinstance(type, FutureType | AwaitType):
        return [type]
    return [each for element in getattr(type, "elements", ()) for each in _futures(element)]
