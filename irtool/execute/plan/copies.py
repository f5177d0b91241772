"""Copies that can be left out because original and copy never both leave the plan.

An operator whose schema promises new memory copies its operand where the operand would be the result (`x.sum_to_size(x.size())`). If the
graph writes nothing in place, only a caller can see the difference between such a copy and its original: when both leave the plan, or
when the original is an array of the caller; and a node that looks at the memory around a tensor. All other copies are left out. A copy
that a call writes into is left out if nobody reads the original any more.
"""
from __future__ import annotations

from irtool.execute.plan.memory import Lives, asks_for_storages, every, overwrites
from irtool.execute.plan.program import Call, Program, Variable, Visit
from irtool.ir.graph import Node
from irtool.ops.array_library import np

Copies = frozenset[tuple[Node, int]]
NONE: Copies = frozenset()
COPIES = (np.ndarray.copy, np.conjugate)
"""Functions whose result may equal their operand."""


def needless_copies(program: Program) -> Copies:
    """The copies to leave out when the program is lowered again: by node and number of the call among its node's."""
    if overwrites(program) or asks_for_storages(program):
        return NONE
    instructions = list(every(program.body))
    copies = [each for each in instructions if isinstance(each, Call) and is_copy(each)]
    if not copies:
        return NONE
    lives = Lives(program)
    written = [(lives.at[id(each)], each.out.roots) for each in instructions if isinstance(each, Call) and each.way == "into"]
    fresh = {each.out for each in instructions if isinstance(each, Call) and each.way not in ("view", "into", "number", "keep")}
    fresh |= {out for each in instructions if isinstance(each, Visit) for out in each.outs if out.roots == {out}}
    taken = set(lives.escaping)                                 # memory that already leaves the plan as a result
    instead: dict[Variable, frozenset[Variable]] = {}           # a removed copy -> the roots of its original
    shown: dict[Variable, int] = {}                             # root -> the last read of a removed copy that lies in its memory
    moved: set[Variable] = set()                                # removed copies whose originals have no later reader
    needless, needed = set(), set()        # by node, which may be lowered several times: for the first round of a loop, and for others

    def in_memory(roots: frozenset[Variable]) -> frozenset[Variable]:
        """The roots in whose memory these lie, with copies removed so far."""
        return roots if instead.keys().isdisjoint(roots) else frozenset().union(*[instead.get(root, frozenset((root,))) for root in roots])

    for call in copies:
        source, out = call.args[0], call.out
        roots = in_memory(source.roots)
        at = lives.at[id(call)]
        if source.roots <= fresh and all(shown.get(root, at) <= at for root in roots) and all(
                lives.last[root] == at and (root not in instead or root in moved) for root in source.roots):
            moved.add(out)
        elif any(position > at and (out in others or not roots.isdisjoint(in_memory(others))) for position, others in written):
            needed.add((call.node, call.step))
            continue
        if out in lives.escaping:
            if not roots <= fresh or not roots.isdisjoint(taken):
                needed.add((call.node, call.step))
                continue
            taken |= roots
        instead[out] = roots
        shown.update({root: max(shown.get(root, 0), lives.last[out]) for root in roots})
        needless.add((call.node, call.step))
    return frozenset(needless - needed)


def is_copy(call: Call) -> bool:
    """Is the result equal to the operand in dtype, shape, strides and elements?"""
    if call.function is np.ndarray.copy or call.function is np.conjugate and call.out.meta is not None and call.out.meta.dtype.kind != "c":
        source = call.args[0]
        return isinstance(source, Variable) and source.constant is None and source.meta == call.out.meta
    return False
