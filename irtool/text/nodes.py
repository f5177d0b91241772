"""The general reader of a node's line: outputs, operator, attributes, operands, and the rest. Raises `Mistake`."""
from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping

from irtool.ir.attribute import Attribute, AttributeSyntaxError, read_attributes
from irtool.ir.graph import NO_ATTRIBUTES, Block, Node, Value
from irtool.ir.scalars import has_commas
from irtool.ir.types import Type, TypeSyntaxError, parse_type
from irtool.text import lexer
from irtool.text.cursor import Cursor
from irtool.text.layout import Layout
from irtool.text.lexer import Mistake, blanks, expected, filler, line_end
from irtool.text.printer import Printer

BRANCHES = frozenset(("prim::If", "If", "prim::Loop", "Loop"))
"""Kinds of nodes that blocks follow."""


class NodeReader(Cursor):
    """A position in a graph's text, and methods that read a node there."""

    def begin(self, pos: int, line: int, lead: str = "") -> None:
        """Start a graph at `pos`, before its first line."""
        super().begin(pos, line, lead)
        self.elided = False
        """Has a comment said that lines were omitted? Names that they may have defined can be used then."""
        self.waits: dict[str, deque[Node]] = {}
        """Nodes whose kind ends in a number, and whose `with` section has not been read yet."""
        self.records: list[tuple[Node, int, str, int, int]] = []
        """Parts that may not be canonical: key, number of the block, text before the part, offsets of the part."""
        self.layout = Layout()
        self.printer = Printer(self.graph, {})

    def report(self, mistake: Mistake) -> None:
        """Record a mistake in the current line or after it."""
        if not self.file.is_full:       # the header may have thousands of them on thousands of lines
            self.file.report(mistake, self.line + self.text.count("\n", self.pos, max(self.pos, mistake.start)))

    def move(self, end: int) -> None:
        """Continue at `end`, the beginning of a line or the end of the text."""
        self.line += self.text.count("\n", self.pos, end)
        self.pos = end

    # -- names and types
    def declaration(self, pos: int) -> tuple[str, Type | None, int]:
        """`%x : Tensor` or `%x`: the name, the type if there is one, the offset after it. Reports a second definition of the name."""
        text = self.text
        match = lexer.NAME.match(text, pos)
        if match is None:
            raise expected("a value such as %x", text, pos)
        name = match[1]
        end = blanks(text, match.end())
        if not text.startswith(":", end):
            return name, None, match.end()      # in text written by hand, a second definition hides the first, as for torch's own reader
        if name in self.env and self.is_visible(self.env[name]):
            self.report(Mistake(f"{lexer.ref(name)} is defined a second time", pos, match.end(), self.defined_at(name), code="E0105"))
        begin = blanks(text, end + 1)
        end = lexer.end_of_type(text, begin)
        while end > begin and text[end - 1] in " \t\r":
            end -= 1
        return name, self.type(begin, end), end

    def is_visible(self, value: Value) -> bool:
        """Is the value in the current block, or in one around it?"""
        block: Block | None = self.block
        owner = value.node.owner
        while block is not None and block is not owner:
            block = block.owning_node.owner if block.owning_node is not None else None
        return block is not None or owner is None

    def defined_at(self, name: str) -> tuple[str, int, str]:
        """The note about the place of the first definition."""
        return f"{lexer.ref(name)} is first defined here", self.env[name].node.line, f"%{name}"

    def type(self, begin: int, end: int) -> Type:
        """The type between two offsets."""
        text = self.text[begin:end]
        parsed = self.file.types.get(text)
        if parsed is None:
            if not text:
                raise expected("a type", self.text, begin)
            try:
                parsed = parse_type(text, self.dialect)
            except TypeSyntaxError as error:
                at = begin + min(error.offset, len(text) - 1)
                raise Mistake(error.message, at, max(at + 1, end), code=error.code) from None
            self.file.types[text] = parsed
        return parsed

    def untyped(self, node: Node | None = None) -> Type:
        """The type of a value without a declared type: a tensor, as for torch's own reader, or the type of a constant whose value shows
        it."""
        if node is not None and node.kind == "prim::Constant":
            attribute = node.attributes.get("value")
            text = attribute.text if attribute is not None else "None"
            if lexer.LITERAL.fullmatch(text) and text[:1] not in "<{":
                return literal_type(text)
        return parse_type(self.dialect.tensor_word)

    # -- nodes
    def node(self, pos: int, at: int, lead: str) -> None:
        """Read a node: its first line begins at `pos` and its text at `at`. An operand list may span lines."""
        text = self.text
        declared: list[tuple[str, Type | None]] = []
        start = at
        if text[at] == "%":
            declared, at = self.outputs(at)
        elif text[at] == "=":
            at = blanks(text, at + 1)
        elif (bare := lexer.BARE_RESULT.match(text, at)) is not None:
            raise Mistake(f"expected '%' before the name of a result, found '{bare[1][:60]}'", at, bare.end(1))
        node, after = self.operation(at)
        node.line = self.line
        node.outputs = tuple([Value(name, type if type is not None else self.untyped(node), node) for name, type in declared])
        end, node.tail = self.tail(after)
        self.place(node)
        if node.kind in BRANCHES:
            self.file.has_branches = True
        waits = lexer.SUBGRAPH_KIND.match(node.kind)
        if waits:
            self.waits.setdefault(node.kind, deque()).append(node)
        if lead or waits or self.dialect.uses_lists or self.printer.line(node, self.indent) != text[pos:end]:
            self.records.append((node, 0, lead, pos, end))
        elif len(node.outputs) == 1 and all(value.name for value in node.inputs):
            head = text[start:after].partition(" ")[2]
            self.file.templates[head.partition("%")[0] if node.inputs else head[:-2]] = (node.kind, node.outputs[0].type, node.attributes)
        self.move(end)

    def outputs(self, at: int) -> tuple[list[tuple[str, Type | None]], int]:
        """`%a : Tensor, %b : int =`: names and types, and the offset of the operator."""
        text = self.text
        declared: list[tuple[str, Type | None]] = []
        names: set[str] = set()
        while True:
            name, type, end = self.declaration(at)
            if name in names:
                raise Mistake(f"{lexer.ref(name)} is defined a second time", at, end, code="E0105")
            names.add(name)
            declared.append((name, type))
            end = blanks(text, end)
            if not text.startswith(",", end):
                break
            at = filler(text, end + 1)
        if not text.startswith("=", end):
            raise expected("':' and a type, ',' or '='" if type is None else "',' or '='", text, end)
        return declared, blanks(text, end + 1)

    def place(self, node: Node) -> None:
        """Append a node to the current block, and make its outputs visible."""
        node.owner = self.block
        node.prev = self.before
        self.before.next = node
        self.before = node
        for value in node.outputs:
            self.hide(value.name, self.block)
            self.env[value.name] = value

    def hide(self, name: str, block: Block) -> None:
        """Prepare for `block` defining this name: the value of the name in an outer block is visible again when the block ends."""
        outer = self.env.get(name)
        if outer is not None and outer.node.owner is not block and self.is_visible(outer):
            self.hidden.append((block, name, outer))

    def operation(self, at: int) -> tuple[Node, int]:
        """`aten::add[alpha={1}](%a, %b)`: the node, and the offset after it."""
        text = self.text
        if text.startswith("^", at):
            kind, attributes, end = self.python_op(at)
        elif text.startswith("CppOp[", at):
            end = lexer.end_of_bracket(text, at + 5)
            kind, attributes = text[at:end], NO_ATTRIBUTES
        else:
            kind, attributes, end = self.plain_op(at)
        if not text.startswith("(", end):
            raise expected("'(' and the operands" if attributes else "'(' and the operands, or '[' and attributes", text, end)
        values, end = self.operands(end + 1)
        node = Node(kind, (), attributes)
        node.inputs = values
        return node, end

    def plain_op(self, at: int) -> tuple[str, Mapping[str, Attribute], int]:
        """`aten::add[alpha={1}]`, or `Chunk 4 1` as of 2017."""
        text = self.text
        match = lexer.KIND.match(text, at)
        if match is None:
            raise expected("an operator such as aten::add", text, at)
        kind, end = match.group(), match.end()
        if text.startswith(":", end):
            raise Mistake(f"expected an operator's name after '{kind[:60]}::'", at, lexer.word_end(text, at))
        if ":" in kind:
            kind = kind.replace("::", ":").replace(":", "::")
        if text.startswith("[", end):
            return kind, *self.attributes(end)
        if text.startswith((" ", "\t"), end):
            words = lexer.WORDS.match(text, end)
            scalars = words[1].strip() if words is not None else "?"
            if words is None or (scalars and self.dialect.typed):
                raise expected("'(' and the operands", text, blanks(text, end))
            if "," in scalars and has_commas(scalars):
                start = blanks(text, end)
                raise Mistake(f"the scalars of '{kind[:60]}' are separated by blanks, as in 'Dropout 0.2 True(%1)', not by commas", start,
                              start + len(scalars))
            return kind, {"scalars": Attribute(scalars)} if scalars else NO_ATTRIBUTES, words.end(1)
        return kind, NO_ATTRIBUTES, end

    def python_op(self, at: int) -> tuple[str, Mapping[str, Attribute], int]:
        """`^Dropout[inplace=0](0.5, True)`"""
        text = self.text
        match = lexer.PYTHON_OP.match(text, at)
        if match is None:
            raise expected("the name of a Python op after '^'", text, at + 1)
        kind, end = match.group(), match.end()
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES
        if text.startswith("[", end):
            attributes, end = self.attributes(end)
        if not text.startswith("(", end):
            raise expected("'(' and the Python op's scalars", text, end)
        close = lexer.end_of_scalars(text, end)
        return kind, {**attributes, "scalars": Attribute(text[end + 1:close - 1])}, close

    def attributes(self, at: int) -> tuple[Mapping[str, Attribute], int]:
        """`[alpha={1}, axis=0]`: the attributes, shared between equal texts, and the offset after them."""
        text = self.text
        try:
            try:
                pairs, end = read_attributes(text, at + 1, line_end(text, at))
            except AttributeSyntaxError:        # an unquoted string of 2018 may contain line ends
                pairs, end = read_attributes(text, at + 1, min(len(text), at + lexer.FAR))
        except AttributeSyntaxError as error:
            stop = line_end(text, at)
            start = min(error.offset, stop - 1)
            raise Mistake(error.message, start, lexer.word_end(text, start), code=error.code) from None
        inside = text[at + 1:end]
        attributes = self.file.attributes.get(inside)
        if attributes is None:
            attributes = {}
            for name, value in pairs:
                if name in attributes:
                    again = text.rfind(f"{name}=", at, end)
                    raise Mistake(f"attribute '{name}' is given twice", again, again + len(name), code="E0107")
                if value.startswith('"') and (len(value) < 2 or value[-1] != '"') and not self.graph.dialect.attribute_arguments:
                    start = text.index(value, at)
                    raise Mistake(f"the string of attribute '{name}' does not end", start, start + len(value), code="E0107")
                attributes[name] = Attribute(value)
            self.file.attributes[inside] = attributes
        return attributes, end + 1

    def operands(self, pos: int) -> tuple[tuple[Value, ...], int]:
        """Values up to a `)`; and the offset after it."""
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
                match = self.literal_at(pos) if self.dialect.literal_operands else None
                if match is None:
                    raise expected("a value such as %x" if pos < len(text) else "')' after the operands", text, pos)
                values.append(self.literal(match.group(), match.re is lexer.BARE_STRING))
            pos = filler(text, match.end())
            if text.startswith(")", pos):
                return tuple(values), pos + 1
            if not text.startswith(",", pos):
                raise expected("',' or ')'", text, pos if "\n" not in text[match.end():pos] else match.end())
            pos = filler(text, pos + 1)

    def value(self, name: str, start: int, end: int) -> Value:
        """The visible value of this name."""
        value = self.env.get(name)
        if value is not None:
            return value
        if not self.dialect.typed:
            base, _, place = name.rpartition(".")
            whole = self.env.get(base)
            if whole is not None and place.isdecimal() and len(place) < 4 and not whole.is_block_input:
                return self.of_group(whole.node, base, int(place))
        if self.elided:
            node = Node("prim::Omitted")
            node.line = self.line
            return node.add_output(name, self.untyped())
        hint = lexer.nearest(name, self.env)
        raise Mistake(f"{lexer.ref(name)} is not defined before this use" + (f"; did you mean '%{hint}'?" if hint else ""), start, end,
                      code="E0104")

    def of_group(self, node: Node, base: str, place: int) -> Value:
        """A result of a group of 2017-09, which is defined as `%18` and read as `%18.0`, `%18.1`, ...: it has as many results as are
        read."""
        if len(node.outputs) == 1 and node.outputs[0].name == base:
            node.outputs[0].name = f"{base}.0"
            self.env[f"{base}.0"] = node.outputs[0]
            self.layout.groups[node] = base
        fresh = [Value(f"{base}.{i}", self.untyped(), node) for i in range(len(node.outputs), place + 1)]
        self.env.update((value.name, value) for value in fresh)
        node.outputs += tuple(fresh)
        return node.outputs[place]

    def literal_at(self, pos: int) -> re.Match[str] | None:
        """The constant that begins at `pos` among the operands."""
        text = self.text
        match = lexer.LITERAL.match(text, pos, pos + lexer.FAR)
        if match is not None and text.startswith((",", ")"), blanks(text, match.end())):
            return match
        bare = lexer.BARE_STRING.match(text, pos, pos + lexer.FAR)
        return bare if bare is not None and text.startswith((",", ")"), bare.end()) else match

    def literal(self, text: str, is_bare: bool = False) -> Value:
        """Make a node for a constant among the operands, in front of the user; its value has no name. is_bare: the text is the string."""
        type = parse_type("string") if is_bare else literal_type(text)
        if is_bare:
            attribute = Attribute(text, text)
        elif type.text == "string" and text[0] != '"':
            attribute = Attribute(text, text[1:-1] if text[0] == "'" else text)
        else:
            attribute = Attribute(text)
        node = Node("prim::Constant", (), {"value": attribute})
        node.line = self.line
        node.outputs = (Value("", type, node),)
        node.owner = self.block
        node.prev = self.before
        self.before.next = node
        self.before = node
        return node.outputs[0]

    def tail(self, pos: int, is_doubled: bool = False) -> tuple[int, str]:
        """Read the text after the operands, without uses and `;`: returns the offset of the next line, and the text.

        is_doubled: a second `)` was skipped.
        """
        text = self.text
        end = line_end(text, pos)
        rest = text[pos:end].removesuffix("\n").removesuffix("\r")
        if not rest:
            return end, ""
        if rest.startswith(", uses = ["):
            uses = lexer.USES.match(rest)
            if uses is None:
                raise expected("a list such as uses = [[%5.i0], []]", text, pos + 10)
            rest = rest[uses.end():]
        if rest.endswith(";") and "#" not in rest:
            rest = rest[:-1]
        elif ";" in rest:
            before, mark, comment = rest.partition("; #")
            rest = f"{before} #{comment}" if mark and "#" not in before else rest
        if rest.startswith((", scope: ", " # ")):
            return end, self.file.tails.setdefault(rest, rest)
        stripped = rest.lstrip()
        if not stripped:
            return end, ""
        if stripped.startswith("#"):
            return end, rest if rest[0] in " \t" and stripped.startswith("# ") else " # " + stripped[1:].lstrip()
        if stripped.startswith(", scope:"):
            return end, ", scope: " + stripped[8:].lstrip()
        at = blanks(text, pos)
        if text.startswith(")", at) and not is_doubled:     # the documentation has doubled ones
            return self.tail(at + 1, is_doubled=True)
        raise expected("the end of the line after the operands", text, at)


def literal_type(text: str) -> Type:
    """The type of a constant without a declared type, such as one among operands."""
    if text in ("True", "False"):
        return parse_type("bool")
    if text == "None":
        return parse_type("None")
    if text[0] == "[":
        inner = text[1:-1].split(", ")[0]
        return parse_type(f"{literal_type(inner).text}[]" if inner else "int[]")
    if text[0] in "-0123456789" or text in ("inf", "nan"):
        return parse_type("int" if text.removeprefix("-").isdecimal() else "float")
    return parse_type("string")
