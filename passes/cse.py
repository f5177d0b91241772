"""Common subexpression elimination."""
from __future__ import annotations

from irtool.analysis.alias import Aliases
from irtool.ir.effects import STATISTICS, facts_of, is_random, updates_statistics
from irtool.ir.graph import Graph, Node
from irtool.ir.numbering import merge_equal_nodes
from irtool.ir.remarks import missed


def cse(graph: Graph) -> bool:
    """Compute equal expressions once: those of the same operator, operands, attributes and result types.

    Nodes that are random or have side effects, and values that are written into, are not merged; nor are two results that both escape,
    since they must not share memory.

    before:
        graph(%x : Tensor, %y : Tensor):
          %1 : Tensor = aten::mul(%x, %y)
          %2 : Tensor = aten::mul(%x, %y)
          %3 : Tensor = aten::div(%1, %2)
          return (%3)

    after:
        graph(%x : Tensor, %y : Tensor):
          %1 : Tensor = aten::mul(%x, %y)
          %3 : Tensor = aten::div(%1, %1)
          return (%3)
    """
    aliases: Aliases | None = None

    def can_merge(first: Node, dropped: Node) -> bool:
        nonlocal aliases
        if aliases is None:
            aliases = Aliases(graph)
        if facts_of(first.kind).is_plain and aliases.is_private(dropped):
            return True
        why = ""
        if is_random(first) or updates_statistics(first):
            why = "it is random, or updates statistics"
        elif aliases.has_writes and (aliases.has_writers(first) or aliases.has_writers(dropped)):
            why = "something writes into its operands or results"
        elif not aliases.can_merge(first, dropped):
            why = "both results leave the graph, and must not share memory"
        if why:
            missed(graph, dropped, "not merged with an equal node", why)
            return False
        aliases.note_merge(first, dropped)
        return True

    return merge_equal_nodes(graph, is_mergeable, can_merge)


def is_mergeable(kind: str) -> bool:
    """May two equal nodes of a kind be merged, as far as the kind decides it?"""
    facts = facts_of(kind)
    return not facts.side_effects and (not facts.may_write or kind in STATISTICS)
