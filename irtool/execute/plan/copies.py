"""Copies that nobody would miss.

An operator whose schema promises new memory copies what it would otherwise hand on (`x.sum_to_size(x.size())`). In a plan of a graph
that writes into nothing, such a copy can be told from its original only outside: when both leave the plan, or when the original is
the caller's. All others are left out. So is a copy that is written into, where nobody reads the original any more.
"""
from __future__ import annotations

import numpy as np

from irtool.execute.plan.memory import Lives, every, overwrites
from irtool.execute.plan.program import Call, Program, Variable, Visit
from irtool.ir.graph import Node

Copies = frozenset[tuple[Node, int]]
NONE: Copies = frozenset()
COPIES = (np.ndarray.copy, np.conjugate)
"""What may give its operand once more."""


def needless_copies(program: Program) -> Copies:
    """The copies to leave out when the program is lowered again: by node and number of the call among its node's."""
    if overwrites(program):
        return NONE
    instructions = list(every(program.body))
    copies = [each for each in instructions if isinstance(each, Call) and is_copy(each)]
    if not copies:
        return NONE
    lives = Lives(program)
    written = [(lives.at[id(each)], each.out.roots) for each in instructions if isinstance(each, Call) and each.way == "into"]
    own = {each.out for each in instructions if isinstance(each, Call) and each.way not in ("view", "into", "number", "keep")}
    own |= {out for each in instructions if isinstance(each, Visit) for out in each.outs if out.roots == {out}}
    taken = set(lives.kept)                                     # memory that leaves, under one name
    instead: dict[Variable, frozenset[Variable]] = {}           # a copy left out -> whose memory it has then
    moved: set[Variable] = set()                                # copies left out whose originals nobody reads any more
    found, missed = set(), set()        # a node may stand in several places: in the first round of a loop, and in the others
    for call in copies:
        source, out = call.args[0], call.out
        roots = frozenset().union(*[instead.get(root, frozenset((root,))) for root in source.roots])
        at = lives.at[id(call)]
        if source.roots <= own and all(lives.last[root] == at and (root not in instead or root in moved) for root in source.roots):
            moved.add(out)
        elif any(position > at and not others.isdisjoint(roots | {out}) for position, others in written):
            missed.add((call.node, call.step))
            continue
        if out in lives.kept:
            if not roots <= own or not roots.isdisjoint(taken):
                missed.add((call.node, call.step))
                continue
            taken |= roots
        instead[out] = roots
        found.add((call.node, call.step))
    return frozenset(found - missed)


def is_copy(call: Call) -> bool:
    """Is the result equal to the operand in everything but its place?"""
    if call.function is np.ndarray.copy or call.function is np.conjugate and call.out.meta is not None and call.out.meta.dtype.kind != "c":
        source = call.args[0]
        return isinstance(source, Variable) and source.constant is None and source.meta == call.out.meta
    return False
