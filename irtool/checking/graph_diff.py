"""A diff of two graphs modulo names of values: nodes are aligned by kind and attributes, and the values of `b` get the names of those of
`a`.

    difference = compare_graphs(a, b)
    difference.is_equal                     # only names and source comments differ
    difference.lines                        # of a unified diff: ' ', '-' and '+' in front of each line of IR
"""
from __future__ import annotations

from difflib import SequenceMatcher, unified_diff

from irtool.interop.spelling import spell
from irtool.ir.edits import clone_graph
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.module import Module
from irtool.text.tensor_line import has_arrays

CONTEXT = 3
"""Lines of context around a change."""


class Difference:
    """The difference of two graphs."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name = name
        self.lines = lines
        self.removed = sum(line.startswith("-") for line in lines)
        self.added = sum(line.startswith("+") for line in lines)

    @property
    def is_equal(self) -> bool:
        """Do only names differ?"""
        return not self.lines


def compare_graphs(a: Graph, b: Graph, context: int | None = CONTEXT) -> Difference:
    """The difference of two graphs. context: the number of equal lines shown around a change; None: all."""
    first, second = (bare(graph) for graph in (a, b))
    rename(second, aligned(first, second), first)
    ours, theirs = (str(graph).rstrip("\n").split("\n") for graph in (first, second))
    count = max(len(ours), len(theirs)) if context is None else context
    lines = list(unified_diff(ours, theirs, n=count, lineterm=""))[2:] if ours != theirs else []
    return Difference(a.name or b.name, lines)


def bare(graph: Graph) -> Graph:
    """A copy without comments about sources and scopes, and without a name; small tensors have all of their digits."""
    copy = clone_graph(graph)
    copy.name = ""
    if has_arrays(copy):
        spell(Module([copy]))
    for node in copy.walk():
        node.tail = ""
    return copy


def aligned(a: Graph, b: Graph) -> dict[Value, Value]:
    """Value of b -> the corresponding value of a."""
    known: dict[Value, Value] = {}
    align_blocks(a.block, b.block, known)
    return known


def align_blocks(a: Block, b: Block, known: dict[Value, Value]) -> None:
    """Align the inputs and nodes of two blocks, and the blocks of their nodes."""
    known.update(zip(b.inputs, a.inputs, strict=False))
    ours, theirs = list(a), list(b)
    matcher = SequenceMatcher(None, [key(node) for node in ours], [key(node) for node in theirs], autojunk=False)
    for change, i, end, j, other_end in matcher.get_opcodes():
        if change == "equal":
            for one, other in zip(ours[i:end], theirs[j:other_end], strict=True):
                known.update(zip(other.outputs, one.outputs, strict=True))
                for inner, outer in zip(one.blocks, other.blocks, strict=True):
                    align_blocks(inner, outer, known)
        elif change == "replace":       # later nodes read the results of the last ones
            for one, other in zip(reversed(ours[i:end]), reversed(theirs[j:other_end]), strict=False):
                if len(one.outputs) == len(other.outputs):
                    known.update(zip(other.outputs, one.outputs, strict=True))


def key(node: Node) -> tuple[object, ...]:
    """A key of a node without its operands: kind, attributes, numbers of operands, results and blocks."""
    attributes = tuple([(name, attribute.text if not isinstance(attribute.value, Graph) else "") for name, attribute in
                        node.attributes.items()])
    return node.kind, attributes, len(node.inputs), len(node.outputs), len(node.blocks)


def rename(graph: Graph, known: dict[Value, Value], other: Graph) -> None:
    """Give the values of a graph the names of the corresponding values; others get names that the other graph does not have."""
    taken = {value.name for value in other.values()}
    number = 0
    for value in list(graph.values()):
        if value in known:
            value.name = known[value].name
            continue
        while f"new.{number}" in taken:
            number += 1
        value.name = f"new.{number}"
        number += 1
    graph.forget_names()
