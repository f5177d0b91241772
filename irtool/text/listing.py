"""The listing of early 2017: let-bindings without a header or types.

    %20, %22 = Conv 1 1 %0, %1
    %21 = Linear %20, %1, %3
    Ret %21

One line for each operator: outputs, name, scalars, operands. Names that no line defines are the graph's inputs, by number.
"""
from __future__ import annotations

import re

from irtool.ir.attribute import Attribute
from irtool.ir.dialect import DIALECTS
from irtool.ir.graph import NO_ATTRIBUTES, Graph, Node, Value
from irtool.ir.types import parse_type
from irtool.text.cursor import TextFile
from irtool.text.layout import Layout
from irtool.text.lexer import Mistake, line_end, nearest, ref
from irtool.text.printer import Printer

NAME = re.compile(r"%[^\s,()=%]+")
NAMES = rf"{NAME.pattern}(?:, *{NAME.pattern})*"
SEVERAL = re.compile(NAMES)
KIND = re.compile(r"\^?[A-Za-z_][\w:.]*")
SKIPPED = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*")
IS_LISTING = re.compile(rf"^[ \t]*Ret(?:[ \t]+{NAMES})?[ \t\r]*$", re.M)
LET = re.compile(r"^[ \t]*(let)(?:[ \t]+%[^\n]*|[ \t\r]*)$", re.M)
"""The form of the first weeks: lines between `let` and `in %21`, with scalars after the operands."""


class Line:
    """A line of a listing: `%20, %22 = Conv 1 1 %0, %1`, or `Ret %21`, whose kind is empty."""

    __slots__ = ("outputs", "kind", "scalars", "operands", "raw")

    def __init__(self, outputs: list[str], kind: str, scalars: str, operands: list[str], raw: str) -> None:
        self.outputs = outputs
        self.kind = kind
        self.scalars = scalars
        self.operands = operands
        self.raw = raw

    @staticmethod
    def read(raw: str) -> Line | None:
        """The line, or None for other text. Linear: each part is searched once, between marks that were found before."""
        text = raw.strip(" \t\r\n")
        word, _, rest = text.partition(" ")
        if word == "Ret":
            operands = _names(rest.strip(" \t"))
            return None if operands is None else Line([], "", "", operands, raw)
        text = text.removeprefix("let").lstrip(" \t") if text.startswith(("let ", "let\t")) else text
        text = text[:-2].rstrip(" \t") if text.endswith((" in", "\tin")) else text
        left, equals, right = text.partition("=")
        outputs, right = _names(left.rstrip(" \t")), right.lstrip(" \t")
        kind = KIND.match(right)
        if not equals or not outputs or kind is None:
            return None
        scalars, percent, rest = right[kind.end():].partition("%")
        operands = _names(percent + rest)
        return None if operands is None else Line(outputs, kind.group(), scalars.strip(), operands, raw)


def read_listing(file: TextFile) -> tuple[Graph, int] | None:
    """The graph of a text that is a listing, and the end of its text; None if it is none. Reports mistakes."""
    text = file.text
    if not IS_LISTING.search(text):
        return None
    lines = [line for line in map(Line.read, text.split("\n")) if line is not None]
    defined = {name for line in lines for name in line.outputs}
    free = {name for line in lines if line.kind for name in line.operands} - defined
    return ListingReader(file).read(sorted(free, key=_by_number))


class ListingReader:
    """Reads the lines of a listing into a graph."""

    def __init__(self, file: TextFile) -> None:
        self.file = file
        self.graph = Graph(DIALECTS["A0"])
        self.graph.source = file.source
        self.layout = Layout()
        self.layout.is_listing = True
        self.graph.layout = self.layout
        self.type = parse_type(self.graph.dialect.tensor_word)
        self.env: dict[str, Value] = {}

    def read(self, inputs: list[str]) -> tuple[Graph, int]:
        """The graph, and the end of its text."""
        file, text, graph = self.file, self.file.text, self.graph
        param = graph.block.param_node
        param.outputs = tuple([Value(name, self.type, param) for name in inputs])
        self.env.update(zip(inputs, param.outputs, strict=True))
        end = before = graph.block.return_node
        pos, number = 0, 1
        records: list[tuple[Node, str, str]] = []
        while not file.is_full:
            begin = SKIPPED.match(text, pos).end()  # type: ignore[union-attr]  # it matches the empty string
            number += text.count("\n", pos, begin)
            lead, pos = text[pos:begin], begin
            line = Line.read(text[pos:line_end(text, pos)])
            if line is None:
                file.report(Mistake("expected '%a = Name %b, %c' or 'Ret %a'", pos, text.find("\n", pos)), number)
                break
            node = self.node(line) if line.kind else end
            node.line = number
            self.operands(node, line, pos)
            records.append((node, lead, line.raw))
            if line.kind:
                node.owner, node.prev, before.next, before = graph.block, before, node, node
                self.outputs(node, line, pos)
            pos, number = pos + len(line.raw), number + 1
            if not line.kind:
                break
        end.prev, before.next = before, end
        self.record(records)
        return graph, pos

    def node(self, line: Line) -> Node:
        """Make the node of a line, without operands and results."""
        return Node(line.kind, (), {"scalars": Attribute(line.scalars)} if line.scalars else NO_ATTRIBUTES)

    def operands(self, node: Node, line: Line, pos: int) -> None:
        """Read the operands of a line that begins at `pos`."""
        for name in line.operands:
            if name not in self.env:
                if not self.file.is_full:
                    hint = nearest(name, self.env)
                    self.report(f"{ref(name)} is not defined before this use" + (f"; did you mean '%{hint}'?" if hint else ""),
                                name, pos, line, node.line)
                self.env[name] = Value(name, self.type, self.graph.block.param_node)
        node.inputs = tuple([self.env[name] for name in line.operands])

    def outputs(self, node: Node, line: Line, pos: int) -> None:
        """Read the results of a line that begins at `pos`."""
        values = []
        for name in line.outputs:
            if name in self.env and not self.file.is_full:
                note = (f"{ref(name)} is first defined here", self.env[name].node.line, f"%{name}")
                self.report(f"{ref(name)} is defined a second time", name, pos, line, node.line, note)
            self.env[name] = Value(name, self.type, node)
            values.append(self.env[name])
        node.outputs = tuple(values)

    def report(self, message: str, name: str, pos: int, line: Line, number: int, note: tuple[str, int, str] | None = None) -> None:
        """Report a mistake about a name on a line that begins at `pos`."""
        at = pos + line.raw.index("%" + name)
        self.file.report(Mistake(message, at, at + len(name) + 1, note, code="E0104"), number)

    def record(self, records: list[tuple[Node, str, str]]) -> None:
        """Record parts that differ from the canonical text."""
        printer = Printer(self.graph)
        for node, lead, raw in records:
            canonical = printer.listed(node)
            if lead or canonical != raw:
                self.layout.entries[node] = (lead, canonical, raw)


def _names(text: str) -> list[str] | None:
    """The names in `%a, %b`; None for other text."""
    if not text:
        return []
    return [part.strip(" ")[1:] for part in text.split(",")] if SEVERAL.fullmatch(text) else None


def _by_number(name: str) -> tuple[int, int, str]:
    return (0, len(name), name) if name.isdecimal() else (1, 0, name)
