"""The cheapest set of vertices that cuts all paths from sources to wanted vertices: a minimum cut, by maximum flow (Dinic's algorithm)."""
from __future__ import annotations

from collections.abc import Iterable, Sequence


def min_cut(weights: Sequence[int], edges: Iterable[tuple[int, int]], sources: Iterable[int], wanted: Iterable[int]) -> set[int]:
    """The vertices of least total weight such that every path from a source to a wanted vertex contains one of them.

    Vertices are 0..n-1 with positive weights; an edge (a, b) says that b is computed from a. Of several cheapest sets the one nearest to
    the wanted vertices is returned. A vertex may be both source and wanted.
    """
    network = _Network(2 * len(weights) + 2)
    source, sink = 2 * len(weights), 2 * len(weights) + 1
    endless = sum(weights) + 1
    for vertex, weight in enumerate(weights):       # split into 2v, where edges enter, and 2v + 1, where they leave
        network.add(2 * vertex, 2 * vertex + 1, weight)
    for a, b in edges:
        network.add(2 * a + 1, 2 * b, endless)
    for vertex in sources:
        network.add(source, 2 * vertex, endless)
    for vertex in wanted:
        network.add(2 * vertex + 1, sink, endless)
    while network.flow_once(source, sink):
        pass
    near = network.reaching(sink)
    return {vertex for vertex in range(len(weights)) if 2 * vertex + 1 in near and 2 * vertex not in near}


class _Network:
    """Edges with their residual capacities; edges i and i ^ 1 are each other's reverse."""

    def __init__(self, count: int) -> None:
        self.out: list[list[int]] = [[] for _ in range(count)]
        self.end: list[int] = []
        self.room: list[int] = []

    def add(self, a: int, b: int, room: int) -> None:
        self.out[a].append(len(self.end))
        self.out[b].append(len(self.end) + 1)
        self.end += [b, a]
        self.room += [room, 0]

    def flow_once(self, source: int, sink: int) -> bool:
        """One phase: saturate the shortest paths from source to sink. Returns whether the flow increased."""
        level = self._levels(source)
        if sink not in level:
            return False
        at = [0] * len(self.out)
        way: list[int] = []
        vertex = source
        while True:
            if vertex == sink:
                amount = min(self.room[edge] for edge in way)
                for edge in way:
                    self.room[edge] -= amount
                    self.room[edge ^ 1] += amount
                first = next(i for i, edge in enumerate(way) if not self.room[edge])
                vertex = self.end[way[first] ^ 1]
                del way[first:]
                continue
            edges = self.out[vertex]
            while at[vertex] < len(edges):
                edge = edges[at[vertex]]
                if self.room[edge] and level.get(self.end[edge]) == level[vertex] + 1:
                    break
                at[vertex] += 1
            else:
                if not way:
                    return True
                edge = way.pop()
                vertex = self.end[edge ^ 1]
                at[vertex] += 1
                continue
            way.append(edge)
            vertex = self.end[edge]

    def _levels(self, source: int) -> dict[int, int]:
        level = {source: 0}
        queue = [source]
        for vertex in queue:
            for edge in self.out[vertex]:
                if self.room[edge] and self.end[edge] not in level:
                    level[self.end[edge]] = level[vertex] + 1
                    queue.append(self.end[edge])
        return level

    def reaching(self, sink: int) -> set[int]:
        """The vertices with a residual path to the sink."""
        near = {sink}
        stack = [sink]
        while stack:
            vertex = stack.pop()
            for edge in self.out[vertex]:
                if self.room[edge ^ 1] and self.end[edge] not in near:
                    near.add(self.end[edge])
                    stack.append(self.end[edge])
        return near
