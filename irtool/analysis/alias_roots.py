"""The roots of every value that may alias another one: one walk over the graph of aliases, in which loop-carried values are cycles.

Sets of many roots would make a long chain of branches quadratic in time and memory. So in a set of more than MOST roots, those of one
memory class are merged into one: they count as one piece of memory, which is conservative.
"""
from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from irtool.analysis.memory_classes import memory_class

if TYPE_CHECKING:
    from irtool.ir.graph import Value

T = TypeVar("T")

MOST = 64
"""The number of roots of a value from which they are merged."""


def roots_of_all(points: dict[Value, tuple[Value, ...]]) -> dict[Value, frozenset[Value]]:
    """Value -> its roots, for each value in `points` (value -> the values that it may alias). A value that points at itself, or is not in
    `points`, is a root. Merged roots are added to `points`: they point at the root that represents them."""
    merged: dict[Value, Value] = {}
    roots: dict[Value, frozenset[Value]] = {}
    for value, targets in points.items():       # most point at values that come before them: no search for cycles
        if len(targets) == 1 and targets[0] is not value and (targets[0] not in points or targets[0] in roots):
            roots[value] = roots.get(targets[0]) or frozenset(targets)
    for component in components(points, roots.copy()):
        inside = set(component)
        sets = {frozenset((target,)) if target not in points or target in inside else roots[target]
                for value in component for target in points[value] if target not in inside or target is value}
        union = max(sets, key=len) if sets else frozenset(component)
        if any(not each <= union for each in sets):
            union = smaller(representatives(frozenset().union(*sets), merged), merged)
        for value in component:
            roots[value] = union
    if merged:
        shared: dict[frozenset[Value], frozenset[Value]] = {}
        for value, union in roots.items():
            if union not in shared:
                shared[union] = representatives(union, merged)
            roots[value] = shared[union]
        for value in merged:
            if value not in points:
                points[value] = (representative(value, merged),)
                roots[value] = frozenset(points[value])
    return roots


def smaller(roots: frozenset[Value], merged: dict[Value, Value]) -> frozenset[Value]:
    """The roots unchanged if there are at most MOST, else one per memory class."""
    if len(roots) <= MOST:
        return roots
    standing: dict[str, Value] = {}
    for root in sorted(roots, key=lambda value: value.name):        # deterministic, unlike the order of a set of objects
        first = standing.setdefault(memory_class(root.type), root)
        if first is not root:
            merged[root] = first
    return frozenset(standing.values())


def representatives(roots: frozenset[Value], merged: dict[Value, Value]) -> frozenset[Value]:
    """The roots that represent these after merging."""
    return roots if merged.keys().isdisjoint(roots) else frozenset([representative(root, merged) for root in roots])


def representative(root: Value, merged: dict[Value, Value]) -> Value:
    """The root that represents another one after merging."""
    while (above := merged.get(root)) is not None:
        higher = merged.get(above)
        if higher is not None:
            merged[root] = higher       # path compression
        root = above
    return root


def components(points: Mapping[Value, tuple[Value, ...]], known: Container[Value] = ()) -> Iterator[list[Value]]:
    """Strongly connected components of `points` without the values in `known`, each after those that it points at (Tarjan 1972, without
    recursion)."""
    number: dict[Value, int] = {}
    low: dict[Value, int] = {}
    waiting: list[Value] = []
    is_waiting: set[Value] = set()
    for start in points:
        if start in number or start in known:
            continue
        number[start] = low[start] = len(number)
        waiting.append(start)
        is_waiting.add(start)
        walk = [(start, iter(points[start]))]
        while walk:
            at, targets = walk[-1]
            for target in targets:
                if target not in points or target in known:
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


def union_of(one: frozenset[T], others: list[frozenset[T]]) -> frozenset[T]:
    """The union of sets; the largest set itself if it contains the others, so that nested blocks share the object."""
    most = max([one, *others], key=len)
    return most if all(each <= most for each in (one, *others)) else one.union(*others)
