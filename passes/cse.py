"""Common subexpression elimination."""
from __future__ import annotations

from irtool.analysis.alias import Aliases
from irtool.ir.effects import STATISTICS, facts_of, is_random, updates_statistics
from irtool.ir.graph import Graph, Node
from irtool.ir.numbering import merge_equal_nodes


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
        if not aliases.can_merge(first, dropped) or is_random(first) or updates_statistics(first):
            return False
        if aliases.has_writes and (aliases.has_writers(first) or aliases.has_writers(dropped)):
            return False
        aliases.note_merge(first, dropped)
        return True

    return merge_equal_nodes(graph, is_mergeable, can_merge)


def is_mergeable(kind: str) -> bool:
    """May two equal nodes of a kind be merged, as far as the kind alone tells?"""
    facts = facts_of(kind)
    return not facts.side_effects and (not facts.may_write or kind in STATISTICS)
