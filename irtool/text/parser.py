"""Text -> IR: every dialect of the grammar, byte for byte, with diagnostics for what is not IR.

A file is free text and graphs in turn. `GraphFile` finds the graphs; a `Reader` reads one: canonical node lines through `fast.py`,
everything else through `Reader.statement`, which also finds every mistake, reports it and goes on at the next line.
"""
from __future__ import annotations

import gc
import re
from collections.abc import Mapping
from typing import NoReturn

from irtool.ir.attribute import Attribute, AttributeSyntaxError, read_attributes
from irtool.ir.dialect import DIALECTS, Dialect
from irtool.ir.errors import ParseError
from irtool.ir.graph import NO_ATTRIBUTES, PARAM, Block, Graph, Node, Value
from irtool.ir.module import Module
from irtool.ir.source import Diagnostic, SourceFile
from irtool.ir.types import Type, TypeSyntaxError, parse_type
from irtool.text import lexer
from irtool.text.detect import detect
from irtool.text.fast import read_body
from irtool.text.layout import Layout
from irtool.text.lexer import Mistake, blanks, expected, filler, line_end
from irtool.text.printer import INPUT_STAGE, STAGE, Printer

MAX_ERRORS = 20
HEADER = re.compile(r"^(?:[^\n%#(]*: )?[ \t]*graph[ \t]*\((?=[ \t\r\n]*[%)#\-])|^[ \t]*graph[ \t]*\(", re.M)
WITH = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*[ \t]*with[ \t]+(\S+)[ \t]*=[ \t]*graph[ \t]*\(")
GRAPH_WORD = re.compile(r"[ \t]*graph[ \t]*\(")
NAME_LINE = re.compile(r"^# graph ([\w.$-]+)(:?)((?: [\w-]+=(?:[^\s\[\]\"]|\"[^\"\n]*\"|\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\])*)*)\n\Z", re.M)
METADATA = re.compile(r" ([\w-]+)=((?:[^\s\[\]\"]|\"[^\"\n]*\"|\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\])*)")
SUBGRAPH_KIND = re.compile(r"(.*[^\d_])_\d+\Z")
STRAY_RESULT = re.compile(r"^[ \t]*(return[ \t]*\([%)])", re.M)
ELISION = re.compile(r"#[\s-]*(?:\.\.\.|\u2026|.*\bomitted\b)")
"""A comment that says that lines were left out: names that they would define may be used."""
STATEMENT = re.compile(r"(return)[ \t]*\(|(block)(\d+)[ \t]*\(|(->)|(\})|(-{4,} stage (\d+) -{4,})|((?:with[ \t]+\S+[ \t]*=[ \t]*)?graph[ \t]*\()")
INTEGER = re.compile(r"-?\d+\Z")

Template = tuple[str, Type, Mapping[str, Attribute]]


def parse(text: str, filename: str | None = None, *, first_line: int = 1) -> Module:
    """Read a file of IR, in any dialect. `str(parse(text)) == text`.

    first_line: the number of the text's first line, for a text that is a piece of the file `filename`.

    Raises ParseError with up to 20 diagnostics. Garbage collection pauses while the objects are made.
    """
    enabled = gc.isenabled()
    gc.disable()        # nothing made here is garbage: collections would only walk the growing graph, again and again
    try:
        return GraphFile(text, filename or "<string>", first_line).read()
    finally:
        if enabled:
            gc.enable()


class Tails(dict[str, str]):
    """Texts behind the operands, each once. A new one is taken in by look-up if it plainly is a scope or a source comment."""

    def __missing__(self, tail: str) -> str:
        if tail.startswith((" # ", ", scope: ")) and not tail.endswith((";", "\r", " ")):
            self[tail] = tail
            return tail
        raise KeyError(tail)


class GraphFile:
    """One text: finds its graphs, and holds what they share."""

    __slots__ = ("text", "source", "problems", "dialect", "templates", "tails", "types", "attributes")

    def __init__(self, text: str, filename: str, first_line: int = 1) -> None:
        self.text = text
        self.source = SourceFile(filename, text, first_line)
        self.problems: list[Diagnostic] = []
        self.dialect: Dialect | None = None
        self.templates: dict[str, Template] = {}
        """Text between output name and operands of a canonical line -> what it means."""
        self.tails = Tails()
        """Texts behind the operands, each once."""
        self.types: dict[str, Type] = {}
        self.attributes: dict[str, Mapping[str, Attribute]] = {}

    def read(self) -> Module:
        """The module. Raises ParseError."""
        text = self.text
        items: list[str | Graph] = []
        pos = 0
        line = self.source.first_line
        while True:
            match = HEADER.search(text, pos)
            if match is None or len(self.problems) >= MAX_ERRORS:
                break
            start = text.index("graph", match.start()) if match.group().lstrip().startswith("graph") else match.end()
            start = match.start() + match.group().rindex("graph")
            if not text[match.start():start].strip():
                start = match.start()
            graph = self.read_graph(start, line + text.count("\n", pos, start))
            free = self.take_name(graph[0].graph, text[pos:start])
            self.check_free_text(pos, pos + len(free), line)
            if free:
                items.append(free)
            items.append(graph[0].graph)
            pos, line = graph[1], graph[2]
        if pos < len(text):
            if not items and text.strip() and not self.problems:
                self.read_without_graph(items)
            else:
                self.check_free_text(pos, len(text), line)
                items.append(text[pos:])
        if self.problems:
            raise ParseError("", self.problems)
        return Module(items, self.source.name)

    def read_without_graph(self, items: list[str | Graph]) -> None:
        """A text without `graph(`: a listing of 2017, or no IR."""
        from irtool.text.listing import read_listing

        graph = read_listing(self)
        if graph is not None:
            items.append(graph)
        elif not self.problems:
            self.no_graph()

    def no_graph(self) -> None:
        """Report that nothing in the text is a graph."""
        text = self.text
        match = re.compile(r"^[ \t]*([A-Za-z_]\w*)[ \t]*\(.*$|^[ \t]*([^\s#].*)$", re.M).search(text)
        at = match.start(1 if match[1] else 2) if match else 0
        word = match[1] if match and match[1] else ""
        message = "no graph found: expected 'graph('"
        if word:
            message += f", found '{word}('" + ("; did you mean 'graph'?" if _close(word, ["graph"]) else "")
        self.report(Mistake(message, at, at + max(1, len(word))), text.count("\n", 0, at) + self.source.first_line)

    def check_free_text(self, start: int, end: int, line: int) -> None:
        """Where a `return` stands outside a graph, its header was misspelt."""
        match = STRAY_RESULT.search(self.text, start, end)
        if match is not None:
            self.report(Mistake("'return' outside a graph: expected 'graph(' before it", match.start(1), match.end(1)),
                        line + self.text.count("\n", start, match.start(1)))

    def take_name(self, graph: Graph, free: str) -> str:
        """Free text in front of a graph without the line that names it, which goes into the graph."""
        cut = free.rfind("\n", 0, -1) + 1
        if not free.startswith("# graph ", cut):
            return free
        match = NAME_LINE.match(free, cut)
        if match is None or match.end() != len(free):
            return free
        graph.name = match[1]
        graph.metadata = {m[1]: m[2] for m in METADATA.finditer(match[3])}
        canonical = f"# graph {match[1]}:{''.join(f' {k}={v}' for k, v in graph.metadata.items())}\n"
        if canonical != match.group():
            if graph.layout is None:
                graph.layout = Layout()
            assert isinstance(graph.layout, Layout)
            graph.layout.name_line = (canonical, match.group())
        return free[:cut]

    def read_graph(self, start: int, line: int) -> tuple[Reader, int, int]:
        """The graph whose text begins at `start`, with its subgraphs; where its text ends, and the number of the line there."""
        dialect = DIALECTS[detect(self.text, start, self.dialect.name if self.dialect is not None else None)]
        self.dialect = dialect
        self.templates.clear()      # they hold the types and attributes of one dialect
        self.types.clear()
        reader = Reader(self, start, line, dialect)
        reader.read("")
        text = self.text
        pos, line = reader.pos, reader.line
        stack = [reader]
        readers = [reader]
        while len(self.problems) < MAX_ERRORS:
            match = WITH.match(text, pos)
            if match is None:
                break
            label = match[1]
            begin = match.start(1)
            place = next((i for i in reversed(range(len(stack))) if stack[i].waiting(label) is not None), None)
            line += text.count("\n", pos, begin)
            if place is None:
                self.report(Mistake(f"no node '{label}' owns this graph", begin, match.end(1)), line)
                place = 0
                owner = Node(label)
            else:
                found = stack[place].waiting(label)
                assert found is not None
                owner = found
            if place >= lexer.MAX_DEPTH:
                self.report(Mistake(f"subgraphs nested more than {lexer.MAX_DEPTH} levels deep", begin, match.end(1)), line)
                break
            del stack[place + 1:]
            stack[place].waits.remove(owner)
            inner = Reader(self, text.index("graph", match.end(1)), line, dialect)
            inner.lead = text[pos:text.rfind("\n", pos, begin) + 1]
            begin = text.rfind("\n", 0, begin) + 1
            inner.label = (begin, f"with {label} = ")
            inner.read(label)
            split = SUBGRAPH_KIND.match(label)
            owner.kind = split[1] if split else label
            owner.attributes = {**owner.attributes, "Subgraph": Attribute("<Graph>", inner.graph)}
            stack.append(inner)
            readers.append(inner)
            pos, line = inner.pos, inner.line
        if not self.problems:
            for each in readers:
                each.finish()
        return reader, pos, line

    def report(self, mistake: Mistake, line: int) -> None:
        """Record a diagnostic; `line` is the number of a line at or before the mistake's start, whose text holds it."""
        text = self.text
        start = min(mistake.start, len(text))
        begin = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", start)
        end = min(mistake.end, stop if stop >= 0 else len(text))
        notes = []
        if mistake.note is not None and mistake.note[1]:
            note, number = mistake.note
            notes.append(Diagnostic("note", note, self.source, number, 1))
        self.problems.append(Diagnostic("error", mistake.message, self.source, line, start - begin + 1,
                                        max(end, start + 1) - begin + 1, notes))


class Reader:
    """Reads one graph: its place in the text, the values that are visible, what must be recorded for the layout."""

    __slots__ = ("file", "text", "pos", "line", "graph", "block", "before", "indent", "env", "stack", "braces", "done", "lead",
                 "label", "records", "owners", "elided", "stage", "layout", "waits", "printer", "hidden", "gone", "stages")

    def __init__(self, file: GraphFile, pos: int, line: int, dialect: Dialect) -> None:
        self.file = file
        self.text = file.text
        self.pos = pos
        self.line = line
        self.graph = Graph(dialect)
        self.graph.source = file.source
        self.block = self.graph.block
        self.before = self.block.return_node
        self.indent = "  "
        self.env: dict[str, Value] = {}
        self.stack: list[tuple[Block, Node]] = []
        """Enclosing blocks, and the node in each that owns the next one."""
        self.gone: dict[str, Value] = {}
        """Values of blocks that are closed. torch itself prints uses of them after some passes: the verifier's business, not syntax."""
        self.braces = dialect.braces
        self.done = False
        self.lead = ""
        self.label = (pos, "")
        """Where the header begins, and what stands before `graph(` there."""
        self.records: list[tuple[Node, int, str, int, int]] = []
        """Parts that may not be canonical: key, level (or block number), text before it, offsets of its text."""
        self.owners: list[Node] = []
        self.elided = False
        self.stage = 0
        self.stages: list[tuple[Node, int]] = []
        """The node before a stage marker, and the number of the stage."""
        self.layout = Layout()
        self.waits: list[Node] = []
        """Nodes whose kind ends in a number and whose `with` section has not come yet."""
        self.printer = Printer(self.graph)
        self.hidden: list[tuple[Block, str, Value]] = []
        """Outer values that a name of an inner block hides."""

    # -- the graph
    def read(self, label: str) -> None:
        """Header, body and return."""
        try:
            self.header()
        except Mistake as mistake:
            self.report(mistake)
            self.skip_header()
        self.graph.block.param_node.line = self.line
        read_body(self)
        for node in self.owners:
            node.blocks = tuple(node.blocks)

    def waiting(self, label: str) -> Node | None:
        """The first node that waits for a `with` section of this name."""
        return next((node for node in self.waits if node.kind == label), None)

    def report(self, mistake: Mistake) -> None:
        """Record a mistake at or behind the current line."""
        line = self.line + self.text.count("\n", min(self.pos, mistake.start), mistake.start)
        self.file.report(mistake, line)
        if len(self.file.problems) >= MAX_ERRORS:
            self.done = True

    def skip_header(self) -> None:
        """Go to the line after a header that could not be read."""
        end = self.pos
        while True:
            end = line_end(self.text, end)
            line = self.text[self.text.rfind("\n", 0, max(end - 1, 0)) + 1:end]
            self.salvage(line)
            if end >= len(self.text) or re.search(r"\)\s*[:{]\s*(?:#.*)?$", line) or not line.strip():
                break
            following = self.text[end:line_end(self.text, end)].lstrip()
            if not following.startswith(("%", "#", "-")) or " = " in following:
                break
        self.move(end)

    def salvage(self, line: str) -> None:
        """Define the names on a line that could not be read, so that their uses are not reported too."""
        head = line.partition("=")[0]
        for match in lexer.NAME.finditer(head):
            if match[1] not in self.env:
                node = Node(PARAM)
                self.env[match[1]] = node.add_output(match[1], parse_type("Tensor"))

    def move(self, end: int) -> None:
        """Go on at `end`, the beginning of a line or the end of the text."""
        self.line += self.text.count("\n", self.pos, end)
        self.pos = end
        if end >= len(self.text) and not self.done:
            pass

    def header(self) -> None:
        """`graph(%a : Tensor, ...):`"""
        text = self.text
        match = GRAPH_WORD.match(text, self.pos)
        if match is None:
            raise expected("'graph('", text, self.pos)
        pos = self.params(match.end(), self.graph.block, True)
        pos = blanks(text, pos)
        mark = text[pos:pos + 1]
        if mark not in (":", "{"):
            raise expected("':' or '{' after the graph's inputs", text, pos)
        self.braces = mark == "{"
        pos = blanks(text, pos + 1)
        if not text.startswith(("\n", "#"), pos) and pos < len(text):
            raise expected("the end of the line after the graph's header", text, pos)
        end = line_end(text, pos)
        param = self.graph.block.param_node
        self.records.append((param, 0, self.lead, self.label[0], end))
        self.lead = ""
        self.move(end)

    def params(self, pos: int, block: Block, top: bool) -> int:
        """Inputs up to their `)`; gives the offset behind it."""
        text = self.text
        stage = 0
        while True:
            begin = pos
            pos = filler(text, pos)
            if ELISION.search(text, begin, pos):
                self.elided = True
            if text.startswith(")", pos):
                return pos + 1
            if text.startswith("----", pos):
                match = STATEMENT.match(text, pos)
                if match is None or not match[6]:
                    raise expected("'-------- stage N --------'", text, pos)
                stage = int(match[7][:9])
                pos = match.end()
                continue
            name, type, pos = self.declaration(pos)
            self.declare_input(name, type, block)
            if stage:
                self.layout.input_stages[block.inputs[-1]] = stage
            pos = blanks(text, pos)
            if text.startswith(",", pos):
                pos += 1
            elif not text.startswith((")", "\n", "#", "\r"), pos):
                raise expected("',' or ')'" if pos < len(text) else "')' after the inputs", text, pos)

    def declaration(self, pos: int) -> tuple[str, Type | None, int]:
        """`%x : Tensor` or `%x`: name, type if given, offset behind it. Reports a second definition of the name."""
        text = self.text
        match = lexer.NAME.match(text, pos)
        if match is None:
            raise expected("a value such as %x", text, pos)
        name = match[1]
        end = blanks(text, match.end())
        if not text.startswith(":", end):
            return name, None, match.end()      # written by hand: a second definition hides the first, as in torch's own reader
        if name in self.env:
            first = self.env[name].node
            self.report(Mistake(f"%{name} is defined a second time", pos, match.end(), (f"%{name} is defined here", first.line)))
        begin = blanks(text, end + 1)
        end = lexer.end_of_type(text, begin)
        while end > begin and text[end - 1] in " \t\r":
            end -= 1
        return name, self.type(begin, end), end

    def type(self, begin: int, end: int) -> Type:
        """The type that stands between two offsets."""
        text = self.text[begin:end]
        found = self.file.types.get(text)
        if found is None:
            if not text:
                raise expected("a type", self.text, begin)
            try:
                found = parse_type(text, self.graph.dialect)
            except TypeSyntaxError as error:
                at = begin + min(error.offset, max(len(text) - 1, 0))
                raise Mistake(error.message, at, end) from None
            self.file.types[text] = found
        return found

    # -- blocks
    def open_block(self, number: int) -> bool:
        """Begin a block of the node before; False when there is none."""
        owner = self.before
        if owner is self.block.return_node:
            return False
        block = Block(self.graph, owner)
        block.param_node.line = number
        if not owner.blocks:
            owner.blocks = []  # type: ignore[assignment]  # made a tuple when the graph is complete
            self.owners.append(owner)
        owner.blocks.append(block)  # type: ignore[attr-defined]
        self.stack.append((self.block, owner))
        self.block = block
        self.before = block.return_node
        self.indent = "  " * (2 * len(self.stack) + 1)
        return True

    def declare_input(self, name: str, type: Type | None, block: Block | None = None) -> None:
        """A new input of the block that is being read."""
        block = block or self.block
        node = block.param_node
        value = Value(name, type if type is not None else self.untyped(), node)
        if name in self.env:
            self.hidden.append((block, name, self.env[name]))
        node.outputs = (*node.outputs, value)
        self.env[name] = value

    def untyped(self) -> Type:
        """What a value without a type is."""
        return parse_type(self.graph.dialect.tensor_word)

    def close_block(self, values: tuple[Value, ...], number: int) -> None:
        """End the block that is being read."""
        block = self.block
        end = block.return_node
        end.inputs = values
        end.line = number
        end.prev = self.before
        self.before.next = end
        env = self.env
        gone = self.gone
        for value in block.param_node.outputs:
            if env.pop(value.name, None) is not None:
                gone[value.name] = value
        for node in block:
            for value in node.outputs:
                if env.pop(value.name, None) is not None:
                    gone[value.name] = value
        while self.hidden and self.hidden[-1][0] is block:
            _, name, value = self.hidden.pop()
            env[name] = value
        self.block, self.before = self.stack.pop()
        self.indent = "  " * (2 * len(self.stack) + 1)

    # -- statements
    def statement(self) -> None:
        """Read one statement, with the blank lines and comments before it, from the beginning of a line."""
        begin = self.pos
        try:
            self.one_statement()
            while self.lead and not self.done:      # a line that is kept with the statement after it
                self.one_statement()
        except Mistake as mistake:
            end = line_end(self.text, max(begin, self.pos))
            self.salvage(self.text[self.pos:end])
            self.report(mistake)
            if end >= len(self.text) and not self.done:
                self.done = True
            self.move(end)
            self.lead = ""

    def one_statement(self) -> None:
        text = self.text
        begin = pos = self.pos
        while True:
            at = blanks(text, pos)
            if at >= len(text):
                self.unfinished(at)
            mark = text[at]
            if mark == "#":
                if ELISION.match(text, at):
                    self.elided = True
                pos = line_end(text, at)
            elif mark == "\n":
                pos = at + 1
            else:
                break
        lead = text[begin:pos]
        if lead:
            self.move(pos)
            lead = self.lead + lead
            self.lead = ""
        else:
            lead, self.lead = self.lead, ""
        if mark in "%=^":
            self.node(pos, at, lead)
            return
        match = STATEMENT.match(text, at)
        if match is None:
            self.node(pos, at, lead)
        elif match[1]:
            self.result(pos, match.end(), lead)
        elif match[2]:
            self.block_header(pos, at, match, lead)
        elif match[4]:
            self.block_result(pos, match.end(), lead)
        elif match[5] and self.before.blocks and not self.braces:       # the documentation forgot to take it out
            end = self.rest_of_line(at + 1, "'}'")
            self.lead = lead + text[pos:end]
            self.move(end)
        elif match[5]:
            raise Mistake("'}' without a block or graph to close", at)
        elif match[6]:
            self.stage_line(pos, at, match, lead)
        else:
            mistake = expected("'return (...)' before the next graph", text, at)
            self.report(mistake)
            self.abandon()

    def unfinished(self, at: int) -> NoReturn:
        """The text ends inside the graph."""
        what = f"'-> (...)' of block {len(self.stack)} levels deep and the graph's 'return (...)'" if self.stack else "the graph's 'return (...)'"
        end = len(self.text.rstrip())
        self.line = self.text.count("\n", 0, end) + self.file.source.first_line
        self.pos = end
        self.done = True
        raise Mistake(f"the text ends inside a graph: expected {what}", end)

    def abandon(self) -> None:
        """Stop reading a graph that has no end."""
        while self.stack:
            self.close_block((), self.line)
        self.done = True

    def stage_line(self, pos: int, at: int, match: re.Match[str], lead: str) -> None:
        """`  ---------------- stage 1 ----------------`"""
        end = line_end(self.text, at)
        number = int(match[7][:9])
        line = self.text[pos:end]
        if not lead and not self.stack and number == self.stage + 1 and line == f"  {STAGE.format(number)}\n":
            self.stage = number
            self.stages.append((self.before, number))
        else:
            self.lead = lead + line
        self.move(end)

    def block_header(self, pos: int, at: int, match: re.Match[str], lead: str) -> None:
        """`    block0(%i : int):`"""
        text = self.text
        owner = self.before
        if len(self.stack) >= lexer.MAX_DEPTH:
            self.report(Mistake(f"blocks nested more than {lexer.MAX_DEPTH} levels deep", at, match.end()))
            self.abandon()
            self.move(len(text))
            return
        if not self.open_block(self.line):
            raise Mistake("a block without a node before it", at, match.end())
        block = self.block
        number = len(owner.blocks) - 1
        if match[3] != str(number):
            self.report(Mistake(f"expected 'block{number}', found 'block{match[3][:20]}'", at, match.end() - 1))
        end = blanks(text, self.params(match.end(), block, False))
        mark = text[end:end + 1]
        if mark not in (":", "{"):
            raise expected("':' or '{' after the block's inputs", text, end)
        end = self.rest_of_line(end + 1, "the block's header")
        self.records.append((block.param_node, number, lead, pos, end))
        self.move(end)

    def rest_of_line(self, pos: int, what: str) -> int:
        """Nothing but a comment may follow on the line; gives the offset of the next line."""
        text = self.text
        pos = blanks(text, pos)
        if pos < len(text) and text[pos] not in "\n#":
            raise expected(f"the end of the line after {what}", text, pos)
        return line_end(text, pos)

    def block_result(self, pos: int, at: int, lead: str) -> None:
        """`      -> (%a)`, and the `}` after it where there is one."""
        text = self.text
        if not self.stack:
            raise Mistake("'->' outside a block; a graph ends with 'return (...)'", at - 2, at)
        at = blanks(text, at)
        if not text.startswith("(", at):
            raise expected("'(' after '->'", text, at)
        values, end = self.operands(at + 1)
        end = self.rest_of_line(end, "'-> (...)'")
        close = blanks(text, end)
        if self.braces and text.startswith("}", close):
            end = self.rest_of_line(close + 1, "'}'")
        elif self.braces:
            raise expected("'}' after '-> (...)'", text, close)
        self.records.append((self.block.return_node, 0, lead, pos, end))
        self.close_block(values, self.line)
        self.move(end)

    def result(self, pos: int, at: int, lead: str) -> None:
        """`  return (%a)`, with `;` and `}` where the dialect has them."""
        text = self.text
        if self.stack:
            raise Mistake("'return' inside a block: expected '-> (...)'", at - 1)
        values, end = self.operands(at)
        end = blanks(text, end)
        if text.startswith(")", end):       # hand-written text in the documentation
            end = blanks(text, end + 1)
        if text.startswith(";", end):
            end += 1
        end = self.rest_of_line(end, "'return (...)'")
        if self.braces:
            close = filler(text, end)
            if not text.startswith("}", close):
                raise expected("'}' after 'return (...)'", text, close)
            end = line_end(text, close)
            if blanks(text, close + 1) < end - text.endswith("\n", close, end):
                end = close + 1
        node = self.graph.block.return_node
        node.inputs = values
        node.line = self.line
        node.prev = self.before
        self.before.next = node
        self.records.append((node, 0, lead, pos, end))
        self.done = True
        self.move(end)

    # -- nodes
    def node(self, pos: int, at: int, lead: str) -> None:
        """A node's line (or lines, where an operand list goes on)."""
        text = self.text
        declared: list[tuple[str, Type | None]] = []
        start = at
        if text[at] == "%":
            while True:
                name, type, end = self.declaration(at)
                if any(name == other for other, _ in declared):
                    raise Mistake(f"%{name} is defined a second time", at, end)
                declared.append((name, type))
                end = blanks(text, end)
                if not text.startswith(",", end):
                    break
                at = filler(text, end + 1)
            if not text.startswith("=", end):
                raise expected("':' and a type, ',' or '='" if declared[-1][1] is None else "',' or '='", text, end)
            at = blanks(text, end + 1)
        elif text[at] == "=":
            at = blanks(text, at + 1)
        node, after = self.operation(at)
        node.line = self.line
        for name, type in declared:
            node.outputs = (*node.outputs, Value(name, type if type is not None else self.untyped(), node))
        self.place(node)
        waits = SUBGRAPH_KIND.match(node.kind)
        if waits:
            self.waits.append(node)
        end, tail = self.tail(after)
        node.tail = self.file.tails.setdefault(tail, tail)
        dialect = self.graph.dialect
        if lead or waits or dialect.uses_lists or self.printer.line(node, self.indent) != text[pos:end]:
            self.records.append((node, len(self.stack), lead, pos, end))
        elif len(node.outputs) == 1:
            head = text[start:after].partition(" ")[2]
            self.file.templates[head.partition("%")[0]] = (node.kind, node.outputs[0].type, node.attributes)
        self.move(end)

    def place(self, node: Node) -> None:
        """Link a node behind the last one, and make its outputs visible."""
        node.owner = self.block
        node.prev = self.before
        self.before.next = node
        self.before = node
        env = self.env
        for value in node.outputs:
            if value.name in env:
                self.hidden.append((self.block, value.name, env[value.name]))
            env[value.name] = value

    def operation(self, at: int) -> tuple[Node, int]:
        """`aten::add[alpha={1}](%a, %b)`: the node, and the offset behind it."""
        text = self.text
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES
        if text.startswith("CppOp[", at):
            end = lexer.end_of_bracket(text, at + 5)
            kind = text[at:end]
        elif text.startswith("^", at):
            match = lexer.PYTHON_OP.match(text, at)
            if match is None:
                raise expected("the name of a Python op after '^'", text, at + 1)
            kind, end = match.group(), match.end()
            if text.startswith("[", end):
                attributes, end = self.attributes(end)
            if not text.startswith("(", end):
                raise expected("'(' and the Python op's scalars", text, end)
            close = lexer.end_of_scalars(text, end)
            attributes = {**attributes, "scalars": Attribute(text[end + 1:close - 1])}
            end = close
        else:
            match = lexer.KIND.match(text, at)
            if match is None:
                raise expected("an operator such as aten::add", text, at)
            kind, end = match.group(), match.end()
            if ":" in kind:
                kind = kind.replace("::", ":").replace(":", "::")
            if text.startswith("[", end):
                attributes, end = self.attributes(end)
            elif text.startswith((" ", "\t"), end):
                words = lexer.WORDS.match(text, end)
                if words is None:
                    raise expected("'(' and the operands", text, blanks(text, end))
                scalars = words[1].strip()
                if scalars:
                    if self.graph.dialect.typed:
                        raise expected("'(' and the operands", text, blanks(text, end))
                    attributes = {"scalars": Attribute(scalars)}
                end = words.end(1)
        if not text.startswith("(", end):
            raise expected("'(' and the operands" if attributes else "'[' and attributes, or '(' and the operands", text, end)
        values, end = self.operands(end + 1)
        node = Node(kind, (), attributes)
        node.inputs = values
        return node, end

    def attributes(self, at: int) -> tuple[Mapping[str, Attribute], int]:
        """`[alpha={1}, axis=0]`: the attributes, shared between equal texts, and the offset behind them."""
        text = self.text
        try:
            try:
                pairs, end = read_attributes(text, at + 1, line_end(text, at))
            except AttributeSyntaxError:        # an unquoted string of 2018 may hold line ends
                pairs, end = read_attributes(text, at + 1, min(len(text), at + lexer.FAR))
        except AttributeSyntaxError as error:
            raise Mistake(error.message, error.offset) from None
        inside = text[at + 1:end]
        found = self.file.attributes.get(inside)
        if found is None:
            found = self.file.attributes[inside] = {name: Attribute(value) for name, value in pairs}
        return found, end + 1

    def operands(self, pos: int) -> tuple[tuple[Value, ...], int]:
        """Values up to a `)`; gives the offset behind it."""
        text = self.text
        values: list[Value] = []
        pos = filler(text, pos)
        if text.startswith(")", pos):
            return (), pos + 1
        while True:
            match = lexer.NAME.match(text, pos)
            if match is not None:
                values.append(self.value(match[1], pos, match.end()))
            else:
                match = lexer.LITERAL.match(text, pos) if self.graph.dialect.literal_operands else None
                if match is None:
                    raise expected("a value such as %x" if pos < len(text) else "')' after the operands", text, pos)
                values.append(self.literal(match.group()))
            pos = filler(text, match.end())
            if text.startswith(")", pos):
                return tuple(values), pos + 1
            if not text.startswith(",", pos):
                raise expected("',' or ')'", text, pos)
            pos = filler(text, pos + 1)

    def value(self, name: str, start: int, end: int) -> Value:
        """The visible value of this name."""
        found = self.env.get(name)
        if found is not None:
            return found
        if name.endswith(".0") and name[:-2] in self.env and not self.graph.dialect.typed:
            return self.env[name[:-2]]      # 2017-09: a fusion group is defined as %15 and used as %15.0
        if name in self.gone:
            return self.gone[name]
        if self.elided:
            node = Node("prim::Omitted")
            node.line = self.line
            return node.add_output(name, self.untyped())
        hint = _close(name, self.env)
        known = f"; did you mean '%{hint}'?" if hint else ""
        raise Mistake(f"%{name} is not defined before this use{known}", start, end)

    def literal(self, text: str) -> Value:
        """A constant among the operands becomes a node without a name in front of the user."""
        type = literal_type(text)
        value = Attribute(text, text.strip("'")) if type.text == "string" and text[0] != '"' else Attribute(text)
        node = Node("prim::Constant", (), {"value": value})
        node.line = self.line
        node.outputs = (Value("", type, node),)
        node.owner = self.block
        node.prev = self.before
        self.before.next = node
        self.before = node
        return node.outputs[0]

    def tail(self, pos: int) -> tuple[int, str]:
        """What stands behind the operands, without uses and `;`: offset of the next line, text."""
        text = self.text
        end = line_end(text, pos)
        rest = text[pos:end].rstrip("\n")
        if rest.endswith("\r"):
            rest = rest[:-1]
        if rest.startswith(", uses = ["):
            close = rest.find("]", rest.find("]]") + 1 if "]]" in rest else 0)
            close = rest.find("];")
            close = close + 1 if close >= 0 else rest.rfind("]") + 1
            rest = rest[close:]
        stripped = rest.strip()
        if rest.endswith(";") and not rest.startswith((" #", "#")):
            rest = rest[:-1]
            stripped = rest.strip()
        if not stripped:
            return end, ""
        if not rest.startswith((", scope:", " # ")):
            if not stripped.startswith(("#", ", scope:")):
                at = blanks(text, pos)
                if text.startswith(")", at):
                    return self.tail(at + 1)
                raise expected("the end of the line after the operands", text, at)
            if not rest.startswith(","):
                rest = rest if rest.lstrip().startswith("# ") and rest[0] in " \t" else " # " + stripped.lstrip("# ")
        return end, rest

    # -- the layout
    def finish(self) -> None:
        """Record what differs from the canonical text, now that the graph is complete."""
        graph = self.graph
        printer = self.printer
        if graph.dialect.uses_lists:
            from irtool.text.printer import collect_uses

            printer.uses = collect_uses(graph)
        for before, stage in self.stages:
            node = before.next
            while True:
                self.layout.stages[node] = stage
                if node is graph.block.return_node or any(node is last for last, _ in self.stages):
                    break
                node = node.next
        text = self.text
        entries = self.layout.entries
        printer.layout = self.layout
        for key, number, lead, start, end in self.records:
            raw = text[start:end]
            block = key.owner
            assert block is not None
            owner = block.owning_node
            level = self.level(block)
            if key is block.param_node:
                canonical = printer.header(self.label[1]) if owner is None else printer.block_header(block, number, level - 2)
            elif key is block.return_node:
                canonical = printer.result() if owner is None else printer.block_result(block, level - 2)
            else:
                canonical = printer.line(key, "  " * level)
            if lead or canonical != raw:
                entries[key] = (lead, canonical, raw)
        if self.layout:
            graph.layout = self.layout

    def level(self, block: Block) -> int:
        """Indentation of a block's nodes."""
        level = 1
        while block.owning_node is not None:
            assert block.owning_node.owner is not None
            block = block.owning_node.owner
            level += 2
        return level


def literal_type(text: str) -> Type:
    """The type of a constant written among operands."""
    if text[0] in "\"'" or not (text[0] in "-[" or text[0].isdigit() or text in ("True", "False", "None", "inf", "nan")):
        return parse_type("string")
    if text in ("True", "False"):
        return parse_type("bool")
    if text == "None":
        return parse_type("None")
    if text[0] == "[":
        inner = text[1:-1].split(", ")[0]
        return parse_type(f"{literal_type(inner).text}[]" if inner else "int[]")
    return parse_type("int" if INTEGER.match(text) else "float")


def _close(name: str, known: Mapping[str, object] | list[str]) -> str:
    """The nearest of the names, empty when none is near."""
    import difflib
    from itertools import islice

    candidates = list(islice(reversed(known), 2000))  # type: ignore[call-overload]  # dicts and lists
    found = difflib.get_close_matches(name, candidates, 1, 0.6)
    return found[0] if found else ""
