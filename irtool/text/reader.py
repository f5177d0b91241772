"""The reader of one graph: header, blocks, statements, stages. Mistakes are reported, and reading continues at the next line."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from irtool.ir.graph import PARAM, RETURN, Block, Node, Value
from irtool.ir.source import Diagnostic
from irtool.text import lexer
from irtool.text.cursor import TextFile
from irtool.text.fast import read_body
from irtool.text.lexer import Mistake, blanks, expected, filler, line_end, says_omission
from irtool.text.nodes import BRANCHES, NodeReader
from irtool.text.printer import STAGE, Printer, Text, number_subgraphs, section_label
from irtool.text.tidy import name_apart
from irtool.text.uses import FLAT, collect_uses, wrong_uses

if TYPE_CHECKING:
    from irtool.ir.dialect import Dialect

MOST_STAGES = 1000
"""Larger stage numbers are a mistake, since the printer writes a line for every stage up to the number."""


class Reader(NodeReader):
    """Reads one graph from `graph(` to its `return`."""

    def __init__(self, file: TextFile, pos: int, line: int, dialect: Dialect, label: tuple[int, Reader | None, Node | None, str],
                 lead: str) -> None:
        self.label = label
        """The position of the header; for a subgraph also the reader of the surrounding graph, the node that owns the subgraph, and the
        name of its attribute."""
        super().__init__(file, dialect)
        self.begin(pos, line, lead)

    def begin(self, pos: int, line: int, lead: str = "") -> None:
        """Start at `pos`, before the first line."""
        super().begin(pos, line, lead)
        self.done = False
        self.stages: list[tuple[Node, int]] = []
        """The node before a stage marker, and the number of the stage."""
        self.owns_subgraphs = False

    # -- the graph
    def read(self) -> None:
        """Header, body and return."""
        start, line, lead, problems = self.pos, self.line, self.lead, len(self.file.problems)
        self.read_header()
        if not self.done:
            read_body(self, self.statement)
        if len(self.file.problems) == problems and not self.names_are_good():
            self.begin(start, line, lead)
            self.read_header()
            while self.statement():
                pass
        for node in self.owners:
            node.blocks = tuple(node.blocks)
        if self.file.has_branches and not self.elided and len(self.file.problems) == problems:
            self.check_blocks()

    def check_blocks(self) -> None:
        """Check that every If and Loop has a block. The verifier checks that an If has two: torch's own tests print some from which one
        was erased."""
        from irtool.ir.verify import diagnostic_at

        for node in self.graph.walk():
            if node.kind in BRANCHES and not node.blocks and not self.file.is_full:
                blocks = "one block" if node.kind.endswith("Loop") else "two blocks"
                self.file.problems.append(diagnostic_at(self.file.source, node, f"{node.kind} has {blocks}, found none"))

    def names_are_good(self) -> bool:
        """Are all names legal for the general reader? The fast reader does not check single characters."""
        names = "".join(self.env)
        if any(mark in names for mark in lexer.NO_NAME):
            return False
        return ":" not in names or all(lexer.NAME.fullmatch("%" + name) for name in self.env)

    def read_header(self) -> None:
        self.graph.block.param_node.line = self.line
        try:
            self.header()
        except Mistake as mistake:
            self.report(mistake)
            self.skip_header()
            self.elided = True      # names that the header would have defined are not reported too
            self.done = self.done or self.pos >= len(self.text)

    def report(self, mistake: Mistake) -> None:
        super().report(mistake)
        if self.file.is_full:
            self.done = True

    def skip_header(self) -> None:
        """Go to the line after a header that cannot be read."""
        text = self.text
        end = self.pos
        while end < len(text):
            start, end = end, line_end(text, end)
            line = text[start:end]
            self.salvage(line)
            following = text[end:line_end(text, end)]
            if line.rstrip().endswith(("):", ") {")) or " = " in following or not following.lstrip().startswith(("%", "#")):
                break
        self.move(end)

    def salvage(self, line: str) -> None:
        """Define the names on a line that cannot be read, so that their uses are not reported too."""
        for match in lexer.NAME.finditer(line.partition("=")[0]):
            if match[1] not in self.env:
                node = Node(PARAM)
                node.line = self.line
                self.env[match[1]] = node.add_output(match[1], self.untyped())

    def header(self) -> None:
        """`graph(%a : Tensor, ...):`"""
        text = self.text
        match = lexer.GRAPH.match(text, self.pos)
        if match is None:
            raise expected("'graph('", text, self.pos)
        param = self.graph.block.param_node
        pos = blanks(text, self.params(match.end(), self.graph.block))
        mark = text[pos:pos + 1]
        if mark not in (":", "{") or not mark:
            raise expected("':' or '{' after the graph's inputs", text, pos)
        self.braces = mark == "{"
        end = self.rest_of_line(pos + 1, "the graph's header")
        self.records.append((param, 0, self.lead, self.label[0], end))
        self.lead = ""
        self.move(end)

    def params(self, pos: int, block: Block) -> int:
        """Inputs up to their `)`; and the offset after it."""
        values: list[Value] = []
        try:
            return self.read_params(pos, block, values)
        finally:
            block.param_node.outputs = tuple(values)

    def read_params(self, pos: int, block: Block, values: list[Value]) -> int:
        text = self.text
        stage, omission = 0, ""
        while True:
            begin = pos
            pos = filler(text, pos)
            if says_omission(text, begin, pos):
                self.elided = True
                omission = "".join(f"{line.strip()}\n      " for line in text[begin:pos].splitlines() if "#" in line)
            if text.startswith(")", pos):
                if omission:
                    self.layout.omissions[None] = omission
                return pos + 1
            if text.startswith("----", pos):
                stage, pos = self.stage_number(pos)
                continue
            name, type, pos = self.declaration(pos)
            value = Value(name, type if type is not None else self.untyped(), block.param_node)
            self.hide(name, block)
            self.env[name] = value
            values.append(value)
            if stage:
                self.layout.input_stages[value] = stage
            if omission:
                self.layout.omissions[value], omission = omission, ""
            pos = blanks(text, pos)
            if text.startswith(",", pos):
                pos += 1
            elif not text.startswith((")", "\n", "#"), pos):
                raise expected("',' or ')'" if type is not None else "':' and a type, ',' or ')'", text, pos)

    def stage_number(self, at: int) -> tuple[int, int]:
        """`-------- stage 1 --------`: the number, and the offset after it."""
        match = lexer.STAGE_MARK.match(self.text, at)
        if match is None or len(match[1]) > 4 or int(match[1]) > MOST_STAGES:
            raise Mistake(f"expected '-------- stage N --------' with N up to {MOST_STAGES}", at, lexer.word_end(self.text, at))
        return int(match[1]), match.end()

    # -- statements
    def statement(self) -> bool:
        """Read one statement, with the blank lines and comments before it, from the beginning of a line. Returns whether there are more."""
        try:
            self.one_statement()
            while self.lead and not self.done:      # a line that is stored with the statement after it
                self.one_statement()
        except Mistake as mistake:
            start = self.pos
            self.salvage(self.text[start:line_end(self.text, start)])
            self.report(mistake)
            self.move(max(line_end(self.text, start), self.pos))
            self.lead = ""
            if self.pos >= len(self.text):
                self.done = True
        return not self.done

    def one_statement(self) -> None:
        """Read one statement, with the blank lines and comments before it. Raises Mistake."""
        text = self.text
        pos = self.pos
        while True:
            at = blanks(text, pos)
            mark = text[at:at + 1]
            if mark == "#" or (mark == "." and lexer.DOTS.match(text, at)):
                end = line_end(text, at)
                if mark == "." or says_omission(text, at, end):
                    self.elided = True
                pos = end
            elif mark == "\n":
                pos = at + 1
            else:
                break
        lead = self.lead + text[self.pos:pos]
        self.lead = ""
        self.move(pos)
        if not mark:
            self.unfinished(at)
        match = lexer.STATEMENT.match(text, at) if mark not in "%=^" else None
        if match is None:
            self.node(pos, at, lead)
        elif match["return"]:
            self.result(pos, at, match.end(), lead)
        elif match["block"]:
            self.block_header(pos, at, match, lead)
        elif match["arrow"]:
            self.block_result(pos, match.end(), lead)
        elif match["close"]:
            self.stray_brace(pos, at, lead)
        elif match["stage"]:
            self.stage_line(pos, at, lead)
        else:
            self.report(expected("'return (...)' before the next graph", text, at))
            self.done = True

    def unfinished(self, at: int) -> NoReturn:
        """Report that the text ends inside the graph."""
        end = len(self.text[:at].rstrip())
        self.done = True
        self.pos = self.text.rfind("\n", 0, end) + 1
        self.line = self.text.count("\n", 0, end) + 1
        where = "a graph: expected 'return (...)'"
        if self.stack:
            where = f"block{len(self.stack[-1][1].blocks) - 1}, whose end '-> (...)' is missing"
        raise Mistake(f"the text ends inside {where}", end, code="E0109")

    def stray_brace(self, pos: int, at: int, lead: str) -> None:
        """A `}` where none is expected, which is kept: the documentation has some by mistake."""
        if self.braces or not self.before.blocks:
            raise Mistake("'}' without a block or graph to close", at, code="E0111")
        end = self.rest_of_line(at + 1, "'}'")
        self.lead = lead + self.text[pos:end]
        self.move(end)

    def stage_line(self, pos: int, at: int, lead: str) -> None:
        """`  ---------------- stage 1 ----------------`"""
        end = line_end(self.text, at)
        number, _ = self.stage_number(at)
        line = self.text[pos:end]
        if not lead and not self.stack and number == len(self.stages) + 1 and line == f"  {STAGE.format(number)}\n":
            self.stages.append((self.before, number))
        else:
            self.lead = lead + line
        self.move(end)

    def block_header(self, pos: int, at: int, match: re.Match[str], lead: str) -> None:
        """`    block0(%i : int):`"""
        text = self.text
        owner = self.before
        if len(self.stack) >= lexer.MAX_DEPTH:
            self.report(Mistake(f"blocks nested more than {lexer.MAX_DEPTH} levels deep", at, match.end() - 1, code="E0108"))
            self.done = True
            self.move(len(text))
            return
        if owner is self.block.return_node:
            self.report(Mistake("a block without a node before it", at, match.end() - 1, code="E0111"))
            owner = Node("prim::Missing")
            self.place(owner)
        self.open_block(self.line)
        block = self.block
        number = len(owner.blocks) - 1
        if match["number"] != str(number):
            self.report(Mistake(f"expected 'block{number}', found 'block{match['number'][:20]}'", at, match.end() - 1, code="E0111"))
        end = blanks(text, self.params(match.end(), block))
        mark = text[end:end + 1]
        if mark not in (":", "{") or not mark:
            raise expected("':' or '{' after the block's inputs", text, end)
        end = self.rest_of_line(end + 1, "the block's header")
        self.records.append((block.param_node, number, lead, pos, end))
        self.move(end)

    def rest_of_line(self, pos: int, what: str) -> int:
        """Check that only a comment follows on the line; returns the offset of the next line."""
        text = self.text
        pos = blanks(text, pos)
        if pos < len(text) and text[pos] not in "\n#":
            raise expected(f"the end of the line after {what}", text, pos)
        return line_end(text, pos)

    def block_result(self, pos: int, at: int, lead: str) -> None:
        """`      -> (%a)`, and the `}` after it if there is one."""
        text = self.text
        if not self.stack:
            raise Mistake("'->' outside a block; a graph ends with 'return (...)'", at - 2, at, code="E0111")
        at = blanks(text, at)
        if not text.startswith("(", at):
            raise expected("'(' after '->'", text, at)
        mistake = None
        try:
            values, end = self.operands(at + 1)
            end = self.rest_of_line(end, "'-> (...)'")
            if self.braces:
                close = filler(text, end)
                if not text.startswith("}", close):
                    raise expected("'}' after '-> (...)'", text, close)
                end = self.rest_of_line(close + 1, "'}'")
        except Mistake as caught:       # the block ends here in spite of the mistake
            mistake, values, end = caught, (), line_end(text, at)
        if mistake is not None:
            self.report(mistake)
        else:
            self.records.append((self.block.return_node, 0, lead, pos, end))
        self.close_block(values, self.line)
        self.move(end)
        if mistake is not None and self.braces and text.startswith("}", close := filler(text, end)):
            self.move(line_end(text, close))

    def result(self, pos: int, at: int, after: int, lead: str) -> None:
        """`  return (%a)`, with `;` and `}` where the dialect has them."""
        text = self.text
        if self.stack:
            self.report(Mistake("'return' inside a block: expected '-> (...)'", at, after - 1, code="E0111"))
            if at - pos > 2:        # it belongs to the block
                self.close_block((), self.line)
            else:
                self.done = True
            self.move(line_end(text, at))
            return
        self.done = True
        values, end = self.operands(after)
        end = blanks(text, end)
        if text.startswith(")", end):       # the documentation has doubled ones
            end = blanks(text, end + 1)
        if text.startswith(";", end):
            end += 1
        end = self.rest_of_line(end, "'return (...)'")
        if self.braces:
            close = filler(text, end)
            if not text.startswith("}", close):
                if close >= len(text):
                    raise Mistake("expected '}' after 'return (...)', found the end of the text", len(text.rstrip()), code="E0109")
                raise expected("'}' after 'return (...)'", text, close)
            end = blanks(text, close + 1)
            end = end + 1 if text.startswith("\n", end) else close + 1
        node = self.graph.block.return_node
        node.inputs = values
        node.line = self.line
        node.prev = self.before
        self.before.next = node
        self.records.append((node, 0, lead, pos, end))
        self.move(end)

    # -- the layout
    def finish(self) -> None:
        """Record the parts that are not canonical, after the graph is complete."""
        graph, printer, text = self.graph, self.printer, self.text
        printer.labels = number_subgraphs(graph) if self.owns_subgraphs else {}
        printer.layout = self.layout
        if graph.dialect.uses_lists:
            printer.uses = collect_uses(graph)
            self.layout.has_flat_uses = FLAT.search(self.file.text) is not None
            if not self.elided:
                lines = [(node, text[start:end]) for node, _, _, start, end in self.records if node.kind not in (PARAM, RETURN)]
                self.file.warnings += [Diagnostic("warning", message, self.file.source, node.line, code="W0101")
                                       for node, message in wrong_uses(graph, lines, self.layout.groups)]
        self.mark_stages()
        ambiguous: set[Value] = name_apart(graph, graph.dialect) if graph.dialect.name == "T" else set()
        entries = self.layout.entries
        levels: dict[Block, int] = {}
        for key, number, lead, start, end in self.records:
            block = key.owner_block
            level = levels.get(block)
            if level is None:
                level = levels[block] = self.level(block)
            if key is block.param_node:
                canonical = printer.header(self.label_text()) if level == 1 else printer.block_header(block, number, level - 2)
            elif key is block.return_node:
                canonical = printer.result() if level == 1 else printer.block_result(block, level - 2)
            else:
                canonical = printer.line(key, "  " * level)
            raw = text[start:end]
            if ambiguous and not ambiguous.isdisjoint((*key.inputs, *key.outputs)):
                raw = canonical
            if lead or canonical != raw:
                entries[key] = (lead, canonical, raw)
        if self.layout:
            graph.layout = self.layout
        if ambiguous:
            graph.layout, parts = self.layout, Text()
            Printer(graph, printer.labels).parts_into(self.label_text(), parts)
            (_, _, lead, start, _), (*_, end) = self.records[0], self.records[-1]
            self.layout.whole = (parts.whole(), lead + text[start:end])

    def label_text(self) -> str:
        """The text before `graph(`: `with prim::FusionGroup_0 = `."""
        _, around, owner, name = self.label
        if around is None or owner is None or around.printer.labels is None:
            return ""
        return section_label(owner, around.printer.labels.get(owner, 0), name)

    def mark_stages(self) -> None:
        """Record the stage of each node after the first stage marker."""
        if self.stages:
            starts = dict(self.stages)
            end = self.graph.block.return_node
            stage = starts.get(end, 0)      # a marker before the first node, whose predecessor is the return node
            node = end
            while True:
                node = node.next
                if stage:
                    self.layout.stages[node] = stage
                if node is end:
                    break
                stage = starts.get(node, stage)

    def level(self, block: Block) -> int:
        """Indentation of a block's nodes."""
        level = 1
        while block.owning_node is not None:
            block = block.owning_node.owner_block
            level += 2
        return level
