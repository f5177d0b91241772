"""The roots of every value that may be another one: one walk over who points at whom, cycles (loop-carried values) included.

A set of more than MOST roots would make a long chain of branches quadratic in time and memory. Its roots of one memory class become one
root instead: those values then count as one piece of memory, which is coarser, and never wrong.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from irtool.analysis.memory_classes import memory_class

if TYPE_CHECKING:
    from irtool.ir.graph import Value

MOST = 64
"""How many roots a value may have before they are merged."""


def roots_of_all(points: dict[Value, tuple[Value, ...]]) -> dict[Value, frozenset[Value]]:
    """Value -> its roots, for each value in `points` (value -> what it may be). A value that points at itself, or that is not in `points`,
    is a root. Roots that were merged point at the one that stands for them: they are added to `points`."""
    merged: dict[Value, Value] = {}
    roots: dict[Value, frozenset[Value]] = {}
    for component in components(points):
        inside = set(component)
        sets = {frozenset((target,)) if target not in points or target in inside else roots[target]
                for value in component for target in points[value] if target not in inside or target is value}
        union = max(sets, key=len) if sets else frozenset(component)
        if any(not each <= union for each in sets):
            union = smaller(frozenset(representative(root, merged) for each in sets for root in each), merged)
        for value in component:
            roots[value] = union
    if merged:
        shared: dict[frozenset[Value], frozenset[Value]] = {}
        for value, union in roots.items():
            if union not in shared:
                shared[union] = frozenset(representative(root, merged) for root in union)
            roots[value] = shared[union]
        for value in merged:
            if value not in points:
                points[value] = (representative(value, merged),)
                roots[value] = frozenset(points[value])
    return roots


def smaller(roots: frozenset[Value], merged: dict[Value, Value]) -> frozenset[Value]:
    """At most MOST roots as they are; of more, one for each memory class."""
    if len(roots) <= MOST:
        return roots
    standing: dict[str, Value] = {}
    for root in sorted(roots, key=lambda value: value.name):        # the order of a set of objects differs from run to run
        first = standing.setdefault(memory_class(root.type), root)
        if first is not root:
            merged[root] = first
    return frozenset(standing.values())


def representative(root: Value, merged: dict[Value, Value]) -> Value:
    """The root that stands for another since they were merged."""
    while (above := merged.get(root)) is not None:
        higher = merged.get(above)
        if higher is not None:
            merged[root] = higher       # shorter next time
        root = above
    return root


def components(points: Mapping[Value, tuple[Value, ...]]) -> Iterator[list[Value]]:
    """Strongly connected components of `points`, what they point at first (Tarjan 1972, without recursion)."""
    number: dict[Value, int] = {}
    low: dict[Value, int] = {}
    waiting: list[Value] = []
    is_waiting: set[Value] = set()
    for start in points:
        if start in number:
            continue
        number[start] = low[start] = len(number)
        waiting.append(start)
        is_waiting.add(start)
        walk = [(start, iter(points[start]))]
        while walk:
            at, targets = walk[-1]
            for target in targets:
                if target not in points:
                    continue
                if target not in number:
                    number[target] = low[target] = len(number)
                    waiting.append(target)
                    is_waiting.add(target)
                    walk.append((target, iter(points[target])))
                    break
                if target in is_waiting:
                    low[at] = min(low[at], number[target])
            else:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[at])
                if low[at] == number[at]:
                    component = []
                    while True:
                        value = waiting.pop()
                        is_waiting.discard(value)
                        component.append(value)
                        if value is at:
                            break
                    yield component
