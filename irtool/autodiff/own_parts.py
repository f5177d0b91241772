"""Alias analysis in which parts that `chunk` and `unsafe_split` give are tensors of their own, where no reader can tell.

Such parts lie in the memory of the whole. Where no node after reads the whole by any name, nor writes into it, each part is alone in its
piece of the memory: the gates of a traced LSTM cell, into which it writes their activations.
"""
from __future__ import annotations

from irtool.analysis.alias import Aliases
from irtool.autodiff.later_readers import is_alone, is_later
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import TensorType
from irtool.ops.size_facts import SEPARATE_PARTS


def aliases_with_own_parts(graph: Graph) -> Aliases:
    """The aliases of a graph, without those between the parts of a tensor that nothing reads or writes any more."""
    pairs = {node: parts for node in graph.walk() if node.kind in SEPARATE_PARTS and node.inputs for parts in nodes_of_parts(node)}
    aliases = Aliases(graph, apart={*pairs, *pairs.values()})
    shared: set[Value] = set()
    for node, parts in list(pairs.items()):
        roots = aliases.roots(node.inputs[0])
        if not shared.isdisjoint(roots) or not is_last_reader(node, aliases):
            shared.update(roots, *map(aliases.roots, parts.outputs))
            del pairs[node]
    return Aliases(graph, apart={*pairs, *pairs.values()}) if shared else aliases


def nodes_of_parts(node: Node) -> list[Node]:
    """The node whose results are the parts: `node` itself if it gives one part, or all parts as in 2018; of a list its only reader, if that
    is a `ListUnpack`."""
    if len(node.outputs) != 1 or isinstance(node.output.type, TensorType):
        return [node]
    readers = [user for user, _ in node.output.uses if user.kind == "prim::ListUnpack" and user.owner is node.owner]
    return readers if node.output.use_count == 1 else []


def is_last_reader(node: Node, aliases: Aliases) -> bool:
    """Does nothing after `node` read or write the memory of its first operand, except through the results of `node`?"""
    whole = node.inputs[0]
    return not aliases.is_wild(whole) and is_alone(aliases, whole, node) and not any(
        user is not node and is_later(user, node) for user, _ in whole.uses)
