"""A module as DOT, the language of Graphviz: a cluster per graph and block, plain boxes."""
from __future__ import annotations

from irtool.drawing import labels
from irtool.drawing.escaping import dot_text
from irtool.drawing.scenes import Keys
from irtool.ir.graph import Block, Node, Value
from irtool.ir.module import Module

HEAD = 'digraph irtool {\n' \
       '  node [shape=box, fontname="monospace", fontsize=10, style=filled, fillcolor="#f4f7fb"]\n' \
       '  edge [color="#7288a3"]\n'


class Writer:
    """Writes the graphs of a module."""

    def __init__(self, module: Module, types: str) -> None:
        self.types = types
        self.keys = Keys(module)
        self.literals = labels.Literals()
        self.lines: list[str] = []
        self.edges: list[str] = []
        self.clusters = 0

    def graph(self, block: Block, title: str, level: int, key: str) -> None:
        """A block as a cluster. key: of its result."""
        indent = "  " * level
        self.clusters += 1
        self.lines += [f"{indent}subgraph cluster_{self.clusters} {{", f'{indent}  label="{dot_text(title)}"']
        for value in block.inputs:
            self.box(self.keys.value(value), labels.results((value,), self.types), level + 1, "#e5f3ea")
        for node in block:
            if not self.literals.is_folded(node):
                self.node(node, level + 1)
        texts = [self.literals.text(value) or f"%{value.name}" for value in block.outputs]
        self.box(f"{key} return", [f"return {', '.join(texts)}"], level + 1, "#fbeedd")
        self.read(block.outputs, f"{key} return")
        self.lines.append(f"{indent}}}")

    def node(self, node: Node, level: int) -> None:
        """A node, and the clusters of its blocks."""
        key = self.keys.nodes[node]
        words = labels.arguments(node, self.literals)
        self.box(key, [labels.title(node), *labels.results(node.outputs, self.types), *[words] * bool(words)], level)
        self.read(node.inputs, key)
        for i, block in enumerate(node.blocks):
            self.graph(block, f"{labels.title(node)} block{i}", level, f"{key} block{i}")
            self.edges.append(f'  "{dot_text(key)}" -> "{dot_text(key)} block{i} return" [style=dotted]')

    def box(self, key: str, rows: list[str], level: int, color: str = "") -> None:
        """One box."""
        label = "\\n".join(map(dot_text, rows))
        self.lines.append(f'{"  " * level}"{dot_text(key)}" [label="{label}"{f", fillcolor={chr(34)}{color}{chr(34)}" if color else ""}]')

    def read(self, values: tuple[Value, ...], key: str) -> None:
        """The edges to a box."""
        for value in values:
            if self.literals.text(value) is None:
                source = self.keys.value(value) if value.is_block_input else self.keys.nodes[value.node]
                self.edges.append(f'  "{dot_text(source)}" -> "{dot_text(key)}" [tooltip="%{dot_text(value.name)}"]')


def dot(module: Module, types: str = "short") -> str:
    """The text for `dot -Tsvg`. types: their form. Graphs of nodes (`prim::FusionGroup`) are clusters beside the graph."""
    writer = Writer(module, types)
    for graph, name in writer.keys.graphs.items():
        writer.graph(graph.block, name, 1, name)
    return HEAD + "\n".join(writer.lines + writer.edges) + "\n}\n"
