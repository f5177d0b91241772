"""Common subexpression elimination."""
from __future__ import annotations

from irtool.analysis.alias import Aliases
from irtool.analysis.gradients_off import has_tensors, is_off
from irtool.ir.constants import is_constant
from irtool.ir.effects import STATISTICS, facts_of, is_random, updates_statistics
from irtool.ir.graph import Graph, Node
from irtool.ir.numbering import merge_equal_nodes
from irtool.ir.remarks import missed

SAME = ((False, False), (True, True))


def cse(graph: Graph) -> bool:
    """Compute equal expressions once: those of the same operator, operands, attributes and result types.

    Nodes that are random or have side effects, and values that are written into, are not merged; nor are two results that both escape,
    since they must not share memory; nor a node that runs in `torch.no_grad()` with one that does not.

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
    runs_off = is_off(graph)

    def can_merge(first: Node, dropped: Node) -> bool:
        nonlocal aliases
        if aliases is None:
            aliases = Aliases(graph)
        off = runs_off(first), runs_off(dropped)
        if off not in SAME and any(has_tensors(value.type) for value in first.outputs) and not is_constant(first.outputs[0]):
            missed(graph, dropped, "not merged with an equal node", "gradients are on at one of them, and may be off at the other")
            return False
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
        aliases.note_replaced(dropped.outputs, first.outputs)
        return True

    return merge_equal_nodes(graph, is_mergeable, can_merge)


def is_mergeable(kind: str) -> bool:
    """May two equal nodes of a kind be merged, as far as the kind decides it?"""
    facts = facts_of(kind)
    return not facts.side_effects and (not facts.may_write or kind in STATISTICS)
