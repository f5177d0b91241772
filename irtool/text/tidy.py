"""A graph's text in canonical form: without the layout that was read, with renumbered values, unique names, and comments."""
from __future__ import annotations

from irtool.ir.defaults import following_names
from irtool.ir.dialect import Dialect
from irtool.ir.graph import Graph, Node, Value
from irtool.text.layout import Layout


def tidy(graph: Graph) -> None:
    """Discard how the text was laid out, but for comments, blank lines between statements and stages: the graph prints canonically."""
    graphs = [graph]
    while graphs:
        one = graphs.pop()
        name_apart(one, one.dialect)
        keep_comments(one)
        graphs += owned_graphs(one)


def owned_graphs(graph: Graph) -> list[Graph]:
    """The graphs that nodes of this graph own."""
    return [owned for node in graph.walk() if node.attributes for owned in node.graphs.values()]


def renumber(graph: Graph) -> bool:
    """Name values with numbers 0, 1, ... in order of definition, also in subgraphs; other names stay. Returns whether any name changed."""
    changed = False
    graphs = [graph]
    while graphs:
        one = graphs.pop()
        count = 0
        with following_names(one):
            for value in one.values():
                if value.has_id_name:
                    changed |= value.name != str(count)
                    value.name = str(count)
                    count += 1
        one.forget_names()
        graphs += owned_graphs(one)
    return changed


def name_apart(graph: Graph, target: Dialect) -> set[Value]:
    """Make constants among operands nodes like others, and names that were defined twice by hand unique. Returns the values that shared a
    name."""
    known: dict[str, Value] = {}
    sharing: set[Value] = set()
    for value in graph.values():
        if not value.name:
            if target.literal_operands:
                continue
            value.name = graph.fresh_id()
        elif value.name in known:
            sharing |= {value, known[value.name]}
            value.name = graph.fresh_id() if value.has_id_name else graph.fresh_name(value.name)
        known[value.name] = value
    return sharing


def keep_comments(graph: Graph) -> None:
    """Keep only comments and blank lines of the layout, and stages if the dialect has them."""
    layout = graph.layout
    if not isinstance(layout, Layout):
        return
    entries: dict[Node, tuple[str, str, str]] = {}
    for part, (lead, canonical, raw) in layout.entries.items():
        if part.kind.startswith("^") and raw.replace("[]", "", 1) == canonical:     # `^f[]()(%x)` of 2.x
            entries[part] = (lead, canonical, raw)
        elif lead.strip():
            entries[part] = (lead, "", "")
    layout.entries = entries
    layout.whole = None
    if not graph.dialect.stages:
        layout.stages = {}
        layout.input_stages = {}
    layout.has_flat_uses = layout.has_flat_uses and graph.dialect.uses_lists
    if graph.dialect.typed:
        layout.groups = {}
        layout.is_listing = False
    if not layout:
        graph.layout = None
