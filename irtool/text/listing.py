"""The listing of early 2017: let-bindings without a header or types.

    %20, %22 = Conv 1 1 %0, %1
    %21 = Linear %20, %1, %3
    Ret %21

One line for each operator: outputs, name, scalars, operands. Names that no line defines are the graph's inputs, by number.
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from irtool.ir.attribute import Attribute
from irtool.ir.dialect import DIALECTS
from irtool.ir.graph import NO_ATTRIBUTES, Graph, Node, Value
from irtool.ir.types import parse_type
from irtool.text.layout import Layout
from irtool.text.lexer import Mistake, nearest, ref
from irtool.text.printer import Printer

if TYPE_CHECKING:
    from irtool.text.parser import GraphFile

NAMES = r"%[^\s,()=%]+(?:, *%[^\s,()=%]+)*"
BINDING = re.compile(rf"[ \t]*(?:let[ \t]+)?(?P<outputs>{NAMES})[ \t]*=[ \t]*(?P<kind>\^?[A-Za-z_][\w:.]*)(?P<scalars>[^%\n]*?)[ \t]*"
                     rf"(?P<operands>{NAMES})?(?:[ \t]+in)?[ \t\r]*(?:\n|\Z)")
RESULT = re.compile(rf"[ \t]*Ret(?:[ \t]+(?P<operands>{NAMES}))?[ \t\r]*(?:\n|\Z)")
SKIPPED = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*")
IS_LISTING = re.compile(rf"^[ \t]*Ret(?:[ \t]+{NAMES})?[ \t\r]*$", re.M)


def read_listing(file: GraphFile) -> tuple[Graph, int] | None:
    """The graph of a text that is a listing, and where its text ends; None when it is none. Reports mistakes in one."""
    text = file.text
    if not IS_LISTING.search(text):
        return None
    graph = Graph(DIALECTS["A0"])
    graph.source = file.source
    layout = Layout()
    layout.is_listing = True
    graph.layout = layout
    type = parse_type(graph.dialect.tensor_word)
    env: dict[str, Value] = {}
    defined = {name for match in BINDING.finditer(text) for name in _names(match["outputs"])}
    free = {name for match in BINDING.finditer(text) for name in _names(match["operands"])} - defined
    for name in sorted(free, key=_by_number):
        env[name] = graph.block.add_input(name, type)
    end = graph.block.return_node
    before, pos, line = end, 0, 1
    records: list[tuple[Node, str, str]] = []
    while not file.is_full:
        begin = SKIPPED.match(text, pos).end()  # type: ignore[union-attr]  # it matches the empty string
        line += text.count("\n", pos, begin)
        lead, pos = text[pos:begin], begin
        match = RESULT.match(text, pos)
        if match is None:
            match = BINDING.match(text, pos)
            if match is None:
                file.report(Mistake("expected '%a = Name %b, %c' or 'Ret %a'", pos, text.find("\n", pos)), line)
                break
            kind, scalars = match["kind"], match["scalars"].strip()
            node = Node(kind, (), {"scalars": Attribute(scalars)} if scalars else NO_ATTRIBUTES)
            node.owner, node.prev, before.next, before = graph.block, before, node, node
        else:
            node = end
        node.line = line
        for name in _names(match["operands"]):
            if name not in env:
                hint = nearest(name, env)
                at = match.start("operands") + match["operands"].index("%" + name)
                file.report(Mistake(f"{ref(name)} is not defined before this use" + (f"; did you mean '%{hint}'?" if hint else ""),
                                    at, at + len(name) + 1), line)
                env[name] = graph.block.add_input(name, type)
        node.inputs = tuple([env[name] for name in _names(match["operands"])])
        records.append((node, lead, match.group()))
        line, pos = line + 1, match.end()
        if node is end:
            break
        for name in _names(match["outputs"]):
            if name in env:
                at = match.start("outputs") + match["outputs"].index("%" + name)
                note = (f"{ref(name)} is first defined here", env[name].node.line, f"%{name}")
                file.report(Mistake(f"{ref(name)} is defined a second time", at, at + len(name) + 1, note), line - 1)
            env[name] = node.add_output(name, type)
    end.prev, before.next = before, end
    printer = Printer(graph)
    for node, lead, raw in records:
        canonical = printer.listed(node)
        if lead or canonical != raw:
            layout.entries[node] = (lead, canonical, raw)
    return graph, pos


def _names(text: str | None) -> list[str]:
    return [part.strip()[1:] for part in text.split(",")] if text else []


def _by_number(name: str) -> tuple[int, int, str]:
    return (0, len(name), name) if name.isdecimal() else (1, 0, name)
