"""Places for the boxes of one scene: each in the layer below all that it reads, with few crossings of edges, near its neighbours.

The method is Sugiyama's: layers by the longest path, edges over several layers as chains of points, order within layers by barycenters (or
by the library `fast_sugiyama`, if it is installed: the extra `show`), and distances by least squares.
"""
from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

GAP, ROW_GAP, POINT = 22.0, 34.0, 8.0
"""Between boxes of a layer, between layers; the width that a passing edge takes, in pixels."""
LONGEST = 12
"""Edges over more layers are not drawn; the box names the values that it reads instead."""
SWEEPS = 8

Edge = tuple[int, int]
Point = tuple[float, float]


class Arrangement:
    """Top left corners of boxes, the drawn edges with their points, and the size of it all."""

    def __init__(self, corners: list[Point], routes: dict[Edge, list[Point]], width: float, height: float) -> None:
        self.corners = corners
        self.routes = routes
        """Points between the ends of an edge: the bottom of its first layer, then top and bottom of each layer that it passes."""
        self.width = width
        self.height = height


def arrange(sizes: Sequence[Point], edges: Sequence[Edge], last: int | None = None) -> Arrangement:
    """Place boxes of these widths and heights. edges: pairs of positions (i, j) with i < j. last: the box below all others."""
    ranks = ranked(len(sizes), edges, last)
    drawn = [edge for edge in dict.fromkeys(edges) if ranks[edge[1]] - ranks[edge[0]] <= LONGEST]
    widths = [width for width, _ in sizes]
    chains: dict[Edge, list[int]] = {}
    steps: list[Edge] = []          # of one layer each
    for i, j in drawn:
        chain = []
        for rank in range(ranks[i] + 1, ranks[j]):
            chain.append(len(widths))
            widths.append(POINT)
            ranks.append(rank)
        chains[i, j] = chain
        steps += zip([i, *chain], [*chain, j])
    layers: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    for item, rank in enumerate(ranks):
        layers[rank].append(item)
    layers = ordered(layers, steps)
    lefts = spaced(layers, steps, widths)
    middles = [lefts[item] + widths[item] / 2 for item in range(len(widths))]
    tops: list[float] = []
    bottoms: list[float] = []
    bottom = -ROW_GAP
    for layer in layers:
        tops.append(bottom + ROW_GAP)
        bottom = tops[-1] + max([sizes[item][1] for item in layer if item < len(sizes)], default=0)
        bottoms.append(bottom)
    corners = [(lefts[item], tops[ranks[item]]) for item in range(len(sizes))]
    routes = {edge: [(middles[edge[0]], bottoms[ranks[edge[0]]]),
                     *[(middles[item], heights[ranks[item]]) for item in chain for heights in (tops, bottoms)]]
              for edge, chain in chains.items()}
    width = max([left + widths[item] for item, left in lefts.items()], default=0)
    return Arrangement(corners, routes, width, max(bottom, 0))


def ranked(count: int, edges: Sequence[Edge], last: int | None) -> list[int]:
    """The layer of each box, from 0: below the boxes that it reads. A box that reads nothing is just above its first reader."""
    below: list[list[int]] = [[] for _ in range(count)]
    readers: list[list[int]] = [[] for _ in range(count)]
    for i, j in edges:
        below[j].append(i)
        readers[i].append(j)
    ranks = [0] * count
    for item in range(count):
        ranks[item] = max([ranks[other] + 1 for other in below[item]], default=0)
    for item in reversed(range(count)):
        if not below[item] and readers[item]:
            ranks[item] = min([ranks[reader] for reader in readers[item]]) - 1
    if last is not None:
        ranks[last] = max([ranks[item] + 1 for item in range(count) if item != last], default=0)
    return ranks


def ordered(layers: list[list[int]], steps: Sequence[Edge]) -> list[list[int]]:
    """The layers with few crossings."""
    above, below = neighbours(steps)
    known = library_order(steps)
    if known is not None:
        return [sorted(layer, key=lambda item: known.get(item, 0.0)) for layer in layers]
    best, fewest = layers, crossings(layers, above)
    current = [list(layer) for layer in layers]
    for sweep in range(SWEEPS):
        if not fewest:
            break
        is_down = sweep % 2 == 0
        place = {item: float(i) for layer in current for i, item in enumerate(layer)}
        for layer in current if is_down else reversed(current):
            others = above if is_down else below
            weight = {item: mean([place[other] for other in others.get(item, ())], place[item]) for item in layer}
            layer.sort(key=weight.__getitem__)
            place.update({item: float(i) for i, item in enumerate(layer)})
        count = crossings(current, above)
        if count < fewest:
            best, fewest = [list(layer) for layer in current], count
    return best


def library_order(steps: Sequence[Edge]) -> dict[int, float] | None:
    """The position of each item in its layer by `fast_sugiyama`; None if that is not installed."""
    try:
        from fast_sugiyama import from_edges
    except ImportError:
        return None
    known: dict[int, float] = {}
    start = 0.0
    for positions, width, _, _ in from_edges(sorted(set(steps)), dummy_vertices=False) if steps else ():
        known.update({int(item): start + place[0] for item, place in positions})
        start += width + 1e6        # components are placed side by side
    return known


def neighbours(steps: Sequence[Edge]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """The neighbours of each item in the layer above and in the layer below."""
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for i, j in steps:
        above.setdefault(j, []).append(i)
        below.setdefault(i, []).append(j)
    return above, below


def mean(numbers: Sequence[float], default: float) -> float:
    """The mean; the default of no numbers."""
    return sum(numbers) / len(numbers) if numbers else default


def crossings(layers: list[list[int]], above: dict[int, list[int]]) -> int:
    """The number of pairs of edges that cross."""
    count = 0
    for upper, lower in zip(layers, layers[1:]):
        place = {item: i for i, item in enumerate(upper)}
        ends: list[int] = []
        for item in lower:
            starts = sorted([place[other] for other in above.get(item, ()) if other in place])
            count += sum([len(ends) - bisect_left(ends, start + 1) for start in starts])
            for start in starts:
                insort(ends, start)
    return count


def spaced(layers: list[list[int]], steps: Sequence[Edge], widths: Sequence[float]) -> dict[int, float]:
    """The left side of each item: near the middle of its neighbours, at least GAP from the next."""
    above, below = neighbours(steps)
    middle: dict[int, float] = {}
    for layer in layers:
        left = 0.0
        for item in layer:
            middle[item] = left + widths[item] / 2
            left += widths[item] + GAP
    for sweep in range(SWEEPS):
        is_down = sweep % 2 == 0
        for layer in layers if is_down else reversed(layers):
            others = above if is_down else below
            wanted = [mean([middle[other] for other in others.get(item, ())], middle[item]) for item in layer]
            middle.update(zip(layer, separated(wanted, [widths[item] for item in layer])))
    lefts = {item: center - widths[item] / 2 for item, center in middle.items()}
    first = min(lefts.values(), default=0.0)
    return {item: left - first for item, left in lefts.items()}


def separated(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Middles nearest to the wanted ones (by squares) at which items of these widths, in this order, do not overlap."""
    offsets = [0.0]
    for i in range(1, len(widths)):
        offsets.append(offsets[-1] + (widths[i - 1] + widths[i]) / 2 + GAP)
    pools: list[tuple[float, int]] = []     # (sum, count): neighbours that touch share their distance from the wanted place
    for goal, offset in zip(wanted, offsets):
        total, count = goal - offset, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / count:
            before, more = pools.pop()
            total, count = total + before, count + more
        pools.append((total, count))
    shifts = [total / count for total, count in pools for _ in range(count)]
    return [offset + shift for offset, shift in zip(offsets, shifts)]
