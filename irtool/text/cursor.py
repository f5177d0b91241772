"""The state of reading a text: `TextFile`, shared by the graphs of a text, and `Cursor`, a position in the text of a graph."""
from __future__ import annotations

from collections.abc import Mapping

from irtool.ir.attribute import Attribute
from irtool.ir.dialect import Dialect
from irtool.ir.graph import NO_ATTRIBUTES, NO_BLOCKS, PARAM, RETURN, Block, Graph, Node, Value
from irtool.ir.source import Diagnostic, SourceFile
from irtool.ir.types import Type
from irtool.text.lexer import Mistake

MAX_ERRORS = 20

Template = tuple[str, Type, Mapping[str, Attribute]]


class Tails(dict[str, str]):
    """Texts after the operands, each stored once. A new text that is plainly a scope or a source comment is stored without a call of the
    reader."""

    def __missing__(self, tail: str) -> str:
        if tail.startswith((" # ", ", scope: ")) and not tail.endswith((";", "\r")):
            self[tail] = tail
            return tail
        raise KeyError(tail)


class TextFile:
    """A text, and the state that its graphs share."""

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.source = SourceFile(filename, text)
        self.problems: list[Diagnostic] = []
        self.dialect: Dialect | None = None
        self.templates: dict[str, Template] = {}
        """Text between output name and operands of a canonical line -> its meaning."""
        self.warnings: list[Diagnostic] = []
        self.has_branches = False
        """Has a node been read that needs blocks?"""
        self.tails = Tails()
        self.types: dict[str, Type] = {}
        self.attributes: dict[str, Mapping[str, Attribute]] = {}

    @property
    def is_full(self) -> bool:
        """Have as many mistakes been found as are reported?"""
        return len(self.problems) >= MAX_ERRORS

    def report(self, mistake: Mistake, line: int) -> None:
        """Record a diagnostic; `line` is the number of the line in which the mistake begins."""
        if self.is_full:
            return
        text = self.text
        start = min(mistake.start, len(text))
        begin = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", start)
        end = min(mistake.end, stop if stop >= 0 else len(text))
        notes = []
        if mistake.note is not None and mistake.note[1]:
            note, number, word = mistake.note
            col = self.source.line(number).find(word) + 1
            notes.append(Diagnostic("note", note, self.source, number, col, col + len(word)))
        message = "".join([c if c.isprintable() else "\ufffd" for c in mistake.message])
        self.problems.append(Diagnostic("error", message, self.source, line, start - begin + 1,
                                        max(end, start + 1) - begin + 1, notes, mistake.code))


class FreshNode(Node):
    """A node whose slots the reader sets, since a call of `Node.__init__` would take longer than setting all slots."""

    __slots__ = ()
    __init__ = object.__init__


class FreshValue(Value):
    """A value whose slots the reader sets."""

    __slots__ = ()
    __init__ = object.__init__


class FreshBlock(Block):
    """A block whose slots the reader sets."""

    __slots__ = ()
    __init__ = object.__init__


class Cursor:
    """A position in a graph's text, the values that are visible there, and the block that is being read."""

    def __init__(self, file: TextFile, dialect: Dialect) -> None:
        self.file = file
        self.text = file.text
        self.dialect = dialect

    def begin(self, pos: int, line: int, lead: str = "") -> None:
        """Start a graph at `pos`, before its first line."""
        self.pos = pos
        self.line = line
        self.graph = graph = Graph(self.dialect)
        graph.source = self.file.source
        self.block = graph.block
        self.before = graph.block.return_node
        self.indent = "  "
        self.env: dict[str, Value] = {}
        """Values by name. Those of finished blocks stay, since torch itself prints uses of them after some passes; the verifier, not the
        reader, checks scopes."""
        self.hidden: list[tuple[Block, str, Value]] = []
        """Outer values that names of inner blocks hide."""
        self.stack: list[tuple[Block, Node]] = []
        """The surrounding blocks, and the node in each to which the next block belongs."""
        self.owners: list[Node] = []
        """Nodes whose blocks are still lists, while they are read."""
        self.braces = self.dialect.braces
        self.lead = lead
        """Comments and blank lines before the next part."""

    def open_block(self, number: int) -> None:
        """Start a block of the preceding node."""
        owner = self.before
        block = new_block(self.graph, owner, number)
        if not owner.blocks:
            owner.blocks = []  # type: ignore[assignment]  # made a tuple when the graph is complete
            self.owners.append(owner)
        owner.blocks.append(block)  # type: ignore[attr-defined]
        self.stack.append((self.block, owner))
        self.block = block
        self.before = block.return_node
        self.indent = "  " * (2 * len(self.stack) + 1)

    def close_block(self, values: tuple[Value, ...], number: int) -> None:
        """End the current block."""
        block = self.block
        end = block.return_node
        end.inputs = values
        end.line = number
        end.prev = self.before
        self.before.next = end
        while self.hidden and self.hidden[-1][0] is block:
            _, name, value = self.hidden.pop()
            self.env[name] = value
        self.block, self.before = self.stack.pop()
        self.indent = "  " * (2 * len(self.stack) + 1)


def new_block(graph: Graph, owner: Node, line: int) -> Block:
    """An empty block of `owner`: `Block(graph, owner)` in half the time."""
    block: Block = FreshBlock()
    block.graph = graph
    block.owning_node = owner
    block._places = None
    for kind in (PARAM, RETURN):
        node = FreshNode()
        node.kind = kind
        node.inputs = node.outputs = ()
        node.attributes = NO_ATTRIBUTES
        node.blocks = NO_BLOCKS
        node.tail = ""
        node.line = line
        node.owner = block
        node.prev = node.next = node
        if kind is PARAM:
            block.param_node = node
        else:
            block.return_node = node
    return block
