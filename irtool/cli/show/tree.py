"""The blocks of a module as a tree, for a terminal: `%sum: f32[3,80] = add(%xw, %hw, alpha=1)`, constants where they are read."""
from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from irtool.drawing import labels
from irtool.ir.graph import Block, Node, Value
from irtool.ir.module import Module
from irtool.ir.source import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.show.tables import Table


class Rows:
    """The rows of the tree of a module. types: short, full or none."""

    def __init__(self, module: Module, types: str) -> None:
        self.module = module
        self.declared = partial(labels.declared, types=types)
        self.literals = labels.Literals()

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Depth and text of each row."""
        for name, graph in zip(self.module.names(), self.module.graphs):
            yield 0, f"{name}({', '.join(map(self.declared, graph.inputs))})"
            yield from self.block(graph.block, 1)

    def block(self, block: Block, depth: int) -> Iterator[tuple[int, str]]:
        """The rows of a block, and its result."""
        for node in block:
            if self.literals.is_folded(node):
                continue
            yield depth, self.line(node)
            for i, inner in enumerate(node.blocks):
                yield depth + 1, f"block{i}({', '.join(map(self.declared, inner.inputs))})"
                yield from self.block(inner, depth + 2)
            for name, graph in node.graphs.items():
                yield depth + 1, f"{name}({', '.join(map(self.declared, graph.inputs))})"
                yield from self.block(graph.block, depth + 2)
        yield depth, f"return {', '.join(map(self.used, block.outputs))}"

    def line(self, node: Node) -> str:
        """One node."""
        results = ", ".join(map(self.declared, node.outputs))
        words = [self.used(value) for value in node.inputs]
        words += [f"{name}={attribute.text}" for name, attribute in node.attributes.items() if attribute.text != "<Graph>"]
        return f"{results}{' = ' if results else ''}{labels.title(node)}({', '.join(words)})"

    def used(self, value: Value) -> str:
        """A value, or the constant that it is."""
        return self.literals.text(value) or f"%{value.name}"


def plain(rows: Rows) -> str:
    """The tree as indented lines, safe to print."""
    return "".join([f"{'  ' * depth}{clean(text)}\n" for depth, text in rows])


def drawn(rows: Rows) -> Table:
    """The tree for rich, in the colours of IR."""
    from rich.text import Text
    from rich.tree import Tree

    from irtool.cli.show.highlight import painted

    root = Tree(rows.module.filename, hide_root=True)
    parents = [root]
    for depth, text in rows:
        del parents[depth + 1:]
        parents.append(parents[depth].add(Text.from_ansi(painted(clean(text), "ir"))))
    return root
