"""Text -> IR: every dialect of the grammar, byte for byte, with diagnostics for text that is not IR.

A file alternates between free text and graphs. `GraphFile` finds the graphs; a `Reader` reads one: canonical node lines by `fast.py`,
everything else by `Reader.statement`, which reports every mistake and continues at the next line.
"""
from __future__ import annotations

from collections import deque

import irtool.ir.graph_pickles  # noqa: F401  # graphs pickle
from irtool.ir.attribute import Attribute
from irtool.ir.collector import Building
from irtool.ir.errors import Error, ParseError
from irtool.ir.graph import Graph
from irtool.ir.module import Module
from irtool.text import lexer
from irtool.text.cursor import TextFile
from irtool.text.detect import detect
from irtool.text.layout import Layout
from irtool.text.lexer import Mistake
from irtool.text.listing import LET, read_listing
from irtool.text.reader import Reader
from irtool.text.tensor_line import LINE, START, attach_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike


def parse(text: str, filename: str | PathLike[str] | None = None) -> Module:
    """Read a file of IR, in any dialect. `str(parse(text)) == text`.

    Raises ParseError with up to 20 diagnostics; Error for an argument that is no text. Garbage collection pauses while the objects are
    made.
    """
    if not isinstance(text, str):
        raise Error(f"parse: expected text (str), got {type(text).__name__}{': decode it first' if isinstance(text, bytes) else ''}",
                    code="E0001")
    with Building():        # reading makes no garbage
        return GraphFile(text, str(filename or "<string>")).read()


class GraphFile(TextFile):
    """One text, in which graphs are found."""

    def read(self) -> Module:
        """The module. Raises ParseError."""
        text = self.text
        items: list[str | Graph] = []
        pos, line = 0, 1
        while not self.is_full:
            match = lexer.HEADER.search(text, pos)
            if match is None:
                break
            start = match.start("graph")
            if not text[match.start():start].strip():
                start = match.start()       # blanks before the graph belong to its text
            reader, end, last = self.read_graph(start, line + text.count("\n", pos, start))
            free = self.take_tensors(reader.graph, take_name(reader.graph, text[pos:start]), line)
            self.check_free_text(pos, start, line)
            if free:
                items.append(free)
            items.append(reader.graph)
            pos, line = end, last
        if not items and text.strip() and not self.problems:
            pos, line = self.read_without_graph(items)
        if pos < len(text):
            self.check_free_text(pos, len(text), line)
            items.append(text[pos:])
        if self.problems:
            raise ParseError("", self.problems)
        module = Module(items, self.source.name)
        module.warnings = self.warnings
        return module

    def take_tensors(self, graph: Graph, free: str, line: int) -> str:
        """The free text in front of a graph without the line of arrays, which go into its constants. line: that of the free text."""
        cut = free.rfind("\n", 0, -1) + 1
        if not free.startswith(START, cut) or LINE.match(free, cut) is None or self.problems:
            return free
        try:
            attach_line(graph, free[cut:])
        except Error as error:
            at = self.text.index(free[cut:])
            self.report(Mistake(error.message, at, at + len(START), code=error.code), line + free.count("\n", 0, cut))
        return free[:cut]

    def read_without_graph(self, items: list[str | Graph]) -> tuple[int, int]:
        """A text without `graph(`: a listing of 2017, or no IR."""
        text = self.text
        listing = read_listing(self)
        if listing is not None:
            items.append(listing[0])
            return listing[1], text.count("\n", 0, listing[1]) + 1
        at = end = 0
        message = "no graph found: expected 'graph('"
        match = LET.search(text)
        if match is not None:
            at, end = match.span(1)
            message = ("a listing with 'let' and 'in', as of the first weeks of 2017, is not supported: expected lines such as "
                       "'%21 = Linear %20, %1' and 'Ret %21' at the end")
        elif (match := lexer.FIRST_WORD.search(text)) is not None:
            at, end = match.span(1)
            message += f", found '{match[1][:40]}'" if match[1].isprintable() else ""
            if lexer.nearest(match[1], ["graph"]):
                message += "; did you mean 'graph'?"
            elif self.source.name.endswith(".py") or lexer.PYTHON.match(text, at):
                message += "; 'irtool compile' makes graphs of Python source"
            elif text.strip() == match[1] and match[1].endswith((".ir", ".pt")):
                message += "; this is the name of a file, which irtool.load reads"
        self.report(Mistake(message, at, end, code="E0102"), text.count("\n", 0, at) + 1)
        return len(text), 1

    def check_free_text(self, start: int, end: int, line: int) -> None:
        """Report a `return` outside of a graph: the header of its graph is misspelt."""
        match = lexer.STRAY_RESULT.search(self.text, start, end)
        if match is not None:
            self.report(Mistake("'return' outside a graph: expected 'graph(' before it", match.start(1), match.end(1), code="E0102"),
                        line + self.text.count("\n", start, match.start(1)))

    def read_graph(self, start: int, line: int) -> tuple[Reader, int, int]:
        """The graph whose text begins at `start`, with its subgraphs; the end of its text, and the number of the line there."""
        dialect = detect(self.text, start, self.dialect)
        if dialect is not self.dialect:
            self.dialect = dialect
            self.templates.clear()      # templates and their types belong to one dialect, attributes to all
            self.types.clear()
        reader = Reader(self, start, line, dialect, (start, None, None, ""), "")
        reader.read()
        readers = [reader]
        end, line = self.read_subgraphs(readers)
        if not self.problems:
            for each in readers:
                each.finish()
        return reader, end, line

    def read_subgraphs(self, readers: list[Reader]) -> tuple[int, int]:
        """Read the `with` sections after a graph, each followed by those of its own nodes. Their owners are found by position, not by
        name."""
        text = self.text
        around = list(readers)
        pos, line = readers[0].pos, readers[0].line
        while not self.is_full:
            match = lexer.WITH.match(text, pos)
            if match is None:
                break
            label = match["label"]
            begin = match.start("with")
            line += text.count("\n", pos, begin)
            while len(around) > 1 and not around[-1].waits.get(label):
                around.pop()
            waits = around[-1].waits.get(label)
            if not waits or len(around) > lexer.MAX_DEPTH:
                message = f"subgraphs nested more than {lexer.MAX_DEPTH} levels deep" if waits else f"no node '{label}' owns this graph"
                self.report(Mistake(message, match.start("label"), match.end("label"), code="E0112"), line)
                following = lexer.HEADER.search(text, match.end())
                end = following.start() if following is not None else len(text)
                return end, line + text.count("\n", begin, end)
            owner = waits.popleft()
            name = "Subgraph" if owner.subgraph is None else label.rpartition(".")[2]
            inner = Reader(self, match.start("graph"), line, around[0].graph.dialect, (begin, around[-1], owner, name), text[pos:begin])
            inner.read()
            if name == "Subgraph":
                split = lexer.SUBGRAPH_KIND.match(label)
                owner.kind = split[1] if split is not None else label
            owner.attributes = {**owner.attributes, name: Attribute("<Graph>", inner.graph)}
            for other, attribute in owner.attributes.items():
                if name == "Subgraph" and attribute.text == "<Graph>" and other != name:
                    around[-1].waits.setdefault(f"{label}.{other}", deque()).append(owner)
            around[-1].owns_subgraphs = True
            around.append(inner)
            readers.append(inner)
            pos, line = inner.pos, inner.line
        return pos, line


def take_name(graph: Graph, free: str) -> str:
    """The free text in front of a graph without the line that names it (`# graph df: of=f`), whose content is stored in the graph."""
    cut = free.rfind("\n", 0, -1) + 1
    match = lexer.NAME_LINE.match(free, cut) if free.startswith("# graph ", cut) else None
    if match is None:
        return free
    graph.name = match["name"]
    graph.metadata = {field[1]: field[2] for field in lexer.METADATA.finditer(match["metadata"])}
    canonical = f"# graph {graph.name}:{''.join(f' {key}={value}' for key, value in graph.metadata.items())}\n"
    if canonical != match.group():
        layout = graph.layout if isinstance(graph.layout, Layout) else Layout()
        layout.name_line = (canonical, match.group())
        graph.layout = layout
    return free[:cut]

