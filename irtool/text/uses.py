"""Lists of uses of 2017: `%4 = tanh(%3), uses = [[%20.i0]];` names the nodes that read %4, and the position of the operand."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irtool.ir.graph import Graph, Node, Value

FLAT = re.compile(r", uses = \[%")
"""Without brackets around the uses of each result, if there is only one."""

USE = re.compile(r"%([^\s\[\]%,]+)\.i(\d+)")
LIST = re.compile(r", uses = \[([^#;]*)\]")


def collect_uses(graph: Graph) -> dict[Value, list[str]]:
    """For each value, its uses in the form of 2017: `%20.i0`, the user's id and the operand's position.

    A node's id is that of its only output, the number before the dot (`%4.1`), or one less than that of its first output; the return node's
    is 0.
    """
    uses: dict[Value, list[str]] = {}
    for node in graph.walk():
        text = node_id(node)
        for slot, value in enumerate(node.inputs):
            uses.setdefault(value, []).append(f"%{text}.i{slot}")
    for slot, value in enumerate(graph.outputs):
        uses.setdefault(value, []).append(f"%0.i{slot}")
    return uses


def node_id(node: Node) -> str:
    """The number of this node in `uses` lists."""
    if not node.outputs:
        return "0"
    name = node.outputs[0].name
    number, dot, rest = name.partition(".")
    if dot and rest.isdecimal():
        return number
    if len(node.outputs) > 1 and name.isdecimal() and name.isascii() and len(name) < 19:
        return str(int(name) - 1)
    return name


def uses_text(node: Node, uses: dict[Value, list[str]], is_flat: bool, is_group: bool) -> str:
    """`, uses = [[%20.i0], []]`; for a group, the results that are read: `, uses = [%18.0.i0, %18.3.i0]`."""
    if is_group:
        return f", uses = [{', '.join([f'%{value.name}.i0' for value in node.outputs if value in uses])}]"
    lists = [", ".join(uses.get(value, ())) for value in node.outputs]
    if is_flat and len(lists) == 1:
        return f", uses = [{lists[0]}]"
    return f", uses = [{', '.join([f'[{each}]' for each in lists])}]"


def apart(text: str) -> tuple[str, str]:
    """`%20.i0` as id and position."""
    user, _, slot = text[1:].rpartition(".i")
    return user, slot


def wrong_uses(graph: Graph, lines: list[tuple[Node, str]], groups: Container[Node]) -> Iterator[tuple[Node, str]]:
    """Nodes with wrong lists of uses, and what is wrong. lines: nodes with their texts.

    Operands must agree; the id of a user may be a number that no value has, but an operand is the use of one value alone.
    """
    uses = collect_uses(graph)
    names = {value.name for value in graph.values()}
    known = Counter([apart(text) for each in uses.values() for text in each])       # nodes without results share the id 0
    lists = {node: Counter(USE.findall(match[1])) for node, line in lines if (match := LIST.search(line)) is not None}
    claimed = Counter([use for node, written in lists.items() if node not in groups for use in written])
    for node, written in lists.items():
        if node in groups:
            wanted = Counter((value.name, "0") for value in node.outputs if value in uses)
        else:
            wanted = Counter(apart(text) for value in node.outputs for text in uses.get(value, ()))
        surplus, lost = list((written - wanted).elements()), list((wanted - written).elements())
        is_strange = any(node in groups or use[0] in names or claimed[use] > max(known[use], 1) for use in surplus)
        if is_strange or Counter(slot for _, slot in surplus) != Counter(slot for _, slot in lost):
            listed = ", ".join(f"%{user}.i{slot}" for user, slot in list(wanted)[:6]) + (", ..." if len(wanted) > 6 else "")
            yield node, f"the list of uses is not so: expected {listed or 'none'}"
