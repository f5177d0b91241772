"""`irtool opt --print-alias`: in which memory the values of a graph may be, and which nodes write into it."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from irtool.analysis.alias import Aliases
from irtool.analysis.memory_classes import is_mutable
from irtool.text.shown_types import with_types

if TYPE_CHECKING:
    from irtool.ir.graph import Graph, Node, Value


def alias_report(graph: Graph, name: str, types: str = "full") -> str:
    """A line per value that has memory, then a line per node that writes, comments all of them. types: their form."""
    aliases = Aliases(graph)
    values = [value for value in graph.values() if is_mutable(value.type)]
    sharing: dict[Value, dict[Value, int]] = {}
    for place, value in enumerate(values):
        for root in aliases.roots(value):
            sharing.setdefault(root, {})[value] = place
    rows = [(with_types(f"%{value.name} : {value.type}", types), memory(value, aliases, sharing)) for value in values]
    width = max((len(left) for left, _ in rows), default=0)
    lines = [f"# aliases of {name}", *(f"#   {left:<{width}}  {right}" for left, right in rows)]
    writers = [node for node in graph.walk() if aliases.writes(node) or aliases.writes_wild(node)]
    lines.append("# writes" if writers else "# no writes")
    return "\n".join([*lines, *(f"#   {heading(node)}  {written(node, values, aliases)}" for node in writers)])


def memory(value: Value, aliases: Aliases, sharing: Mapping[Value, Mapping[Value, int]]) -> str:
    """The places of a value. sharing: root -> the values that have it, with their places in the graph."""
    places = {other: place for root in aliases.roots(value) for other, place in sharing.get(root, {}).items() if other is not value}
    parts = [f"may share memory with {listed(sorted(places, key=places.__getitem__))}"] if places else []
    held = aliases.elements(value)
    if held:
        parts.append(f"holds {listed(held)}")
    if aliases.is_wild(value):
        parts.append("may be reached from outside, or from a container")
    return "; ".join(parts) or "memory of its own"


def written(node: Node, values: Iterable[Value], aliases: Aliases) -> str:
    """The values that a node writes into."""
    return f"writes into {listed(value for value in values if aliases.writes_into(node, [value])) or 'what is outside'}"


def heading(node: Node) -> str:
    """Results, kind and operands of a node."""
    results = ", ".join(f"%{value.name}" for value in node.outputs)
    return f"{results}{' = ' if results else ''}{node.kind}({', '.join(f'%{value.name}' for value in node.inputs)})"


def listed(values: Iterable[Value]) -> str:
    """`%a, %b`."""
    return ", ".join(f"%{value.name}" for value in values)
