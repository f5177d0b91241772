"""The text of a module, a row per line with the key of the part that it shows, and the changes of a pass."""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from irtool.drawing.escaping import cut
from irtool.drawing.scenes import Keys
from irtool.ir.graph import Block, Graph, Node
from irtool.ir.module import Module
from irtool.ir.pair import OF
from irtool.text.printer import Printer, is_literal, name_line, section_label

LONGEST = 20_000
"""Characters of a line that a page contains."""


class Row(NamedTuple):
    """One line. `key`: of the node or part that it shows, the same before and after a pass. `status`: the change that the pass made.
    `origin`: of a node of df, the key of the node of f that it comes from, if its comment names one (`differentiate{origins}`)."""

    text: str
    graph: str
    key: str
    status: str = ""
    origin: str = ""


def rows_of(module: Module, keys: Keys) -> list[Row]:
    """The lines of a module, in canonical form."""
    rows: list[Row] = []
    for item in module.items:
        if isinstance(item, Graph):
            rows += graph_rows(item, "", keys)
        else:
            rows += [Row(cut(line, LONGEST), "", f"text {len(rows)} {line[:60]}") for line in item.splitlines() if line.strip()]
    return rows


def graph_rows(graph: Graph, label: str, keys: Keys) -> list[Row]:
    """The lines of a graph, and of the graphs of its nodes."""
    printer = Printer(graph)
    name = keys.graphs[graph]
    rows: list[Row] = []

    def add(text: str, key: str, origin: str = "") -> None:
        rows.extend([Row(cut(line, LONGEST), name, f"{key} line {number}" if number else key, "", origin)
                     for number, line in enumerate(text.rstrip("\n").split("\n"))])

    def add_nodes(block: Block, level: int) -> None:
        for node in block:
            if graph.dialect.literal_operands and is_literal(node):
                continue
            key = keys.nodes[node]
            add(printer.line(node, "  " * level), key, origin_of(node, graph))
            for number, inner in enumerate(node.blocks):
                add(printer.block_header(inner, number, level), f"{key} block{number}")
                add_nodes(inner, level + 2)
                add(printer.block_result(inner, level), f"{key} block{number} return")

    if not label:
        add(name_line(graph), f"{name} name")
    add(printer.header(label), f"{name} header")
    add_nodes(graph.block, 1)
    add(printer.result(), f"{name} return")
    for node, number in (printer.labels or {}).items():
        for attribute, inner in sorted(node.graphs.items(), key=lambda entry: entry[0] != "Subgraph"):
            rows += graph_rows(inner, section_label(node, number, attribute), keys)
    return [row for row in rows if row.text.strip()]


def origin_of(node: Node, df: Graph) -> str:
    """The key of the node of f that a node of df says that it comes from (`# from %3, model.py:1:2`); empty: none."""
    word = node.source.partition(", ")[0]
    return f"{df.metadata[OF]} {word.removeprefix('from ')}" if word.startswith("from %") and OF in df.metadata else ""


def compared(before: Sequence[Row], after: Sequence[Row]) -> list[Row]:
    """The rows of `after` with their status (new, changed, moved), and between them the rows of `before` that were removed."""
    before = under_new_names(before, after)
    old = {row.key: i for i, row in enumerate(before)}
    stay = longest_increasing([old[row.key] for row in after if row.key in old])
    marked: dict[str, Row] = {}
    for row in after:
        place = old.get(row.key)
        if place is None:
            status = "new"
        elif before[place].text.strip() != row.text.strip():
            status = "changed"
        else:
            status = "" if place in stay else "moved"
        marked[row.key] = row._replace(status=status)
    rows: list[Row] = []
    gone_after: dict[str, list[Row]] = {}
    previous = ""
    for row in before:
        if row.key in marked:
            previous = row.key
        else:
            gone_after.setdefault(previous, []).append(row._replace(status="gone"))
    rows += gone_after.get("", [])
    for key, row in marked.items():
        rows += [row, *gone_after.get(key, [])]
    return rows


def under_new_names(before: Sequence[Row], after: Sequence[Row]) -> list[Row]:
    """Rows with the present names of graphs: the graph that `differentiate` calls f had another name before."""
    old, new = ([name for name in dict.fromkeys(row.graph for row in rows) if name and " " not in name] for rows in (before, after))
    names = dict(zip([name for name in old if name not in new], [name for name in new if name not in old]))
    renamed = []
    for row in before:
        root, space, rest = row.graph.partition(" ")
        if root in names:
            row = row._replace(graph=names[root] + space + rest, key=names[root] + row.key[len(root):])
        renamed.append(row)
    return renamed


def longest_increasing(numbers: Sequence[int]) -> set[int]:
    """A longest increasing part of different numbers."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for i, number in enumerate(numbers):
        place = bisect_left(tails, number)
        before.append(ends[place - 1] if place else -1)
        tails[place:place + 1] = [number]
        ends[place:place + 1] = [i]
    out: set[int] = set()
    i = ends[-1] if ends else -1
    while i >= 0:
        out.add(numbers[i])
        i = before[i]
    return out
