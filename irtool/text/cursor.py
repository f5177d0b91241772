"""What reads a text is made of: `TextFile`, what the graphs of one text share, and `Cursor`, a place in the text of a graph."""
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
    """Texts behind the operands, each once. A new one is taken in by look-up if it plainly is a scope or a source comment."""

    def __missing__(self, tail: str) -> str:
        if tail.startswith((" # ", ", scope: ")) and not tail.endswith((";", "\r")):
            self[tail] = tail
            return tail
        raise KeyError(tail)


class TextFile:
    """One text, and what its graphs share."""

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.source = SourceFile(filename, text)
        self.problems: list[Diagnostic] = []
        self.dialect: Dialect | None = None
        self.templates: dict[str, Template] = {}
        """Text between output name and operands of a canonical line -> what it means."""
        self.warnings: list[Diagnostic] = []
        self.has_branches = False
        """Was a node read that needs blocks?"""
        self.tails = Tails()
        self.types: dict[str, Type] = {}
        self.attributes: dict[str, Mapping[str, Attribute]] = {}

    @property
    def is_full(self) -> bool:
        """Were as many mistakes found as are reported?"""
        return len(self.problems) >= MAX_ERRORS

    def report(self, mistake: Mistake, line: int) -> None:
        """Record a diagnostic; `line` is the number of the line in which the mistake starts."""
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
    """A node whose slots the reader fills: made without a call of `Node.__init__`, which would cost more than all the slots."""

    __slots__ = ()
    __init__ = object.__init__


class FreshValue(Value):
    """A value whose slots the reader fills."""

    __slots__ = ()
    __init__ = object.__init__


class FreshBlock(Block):
    """A block whose slots the reader fills."""

    __slots__ = ()
    __init__ = object.__init__


class Cursor:
    """A place in a graph's text, the values that are visible there, and the block that is being read."""

    def __init__(self, file: TextFile, dialect: Dialect) -> None:
        self.file = file
        self.text = file.text
        self.dialect = dialect

    def begin(self, pos: int, line: int, lead: str = "") -> None:
        """Start a graph at `pos`, with nothing read yet."""
        self.pos = pos
        self.line = line
        self.graph = graph = Graph(self.dialect)
        graph.source = self.file.source
        self.block = graph.block
        self.before = graph.block.return_node
        self.indent = "  "
        self.env: dict[str, Value] = {}
        """Values by name. Those of closed blocks stay: torch itself prints uses of them after some passes, and what may use what is
        the verifier's business, not syntax."""
        self.hidden: list[tuple[Block, str, Value]] = []
        """Outer values that a name of an inner block hides."""
        self.stack: list[tuple[Block, Node]] = []
        """Enclosing blocks, and the node in each that owns the next one."""
        self.owners: list[Node] = []
        """Nodes whose blocks are lists while they are read."""
        self.braces = self.dialect.braces
        self.lead = lead
        """Comments and blank lines before the next part."""

    def open_block(self, number: int) -> None:
        """Begin a block of the node before."""
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
        """End the block that is being read."""
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
