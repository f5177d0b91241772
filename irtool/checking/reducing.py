"""A smaller graph that still shows a fault: parts and sizes are removed or reduced as long as a test still sees the fault.

    smaller = reduced(module.graph(), lambda graph: fails(graph))           # the test gets copies that verify

Source: delta debugging, Zeller and Hildebrandt, IEEE TSE 28(2), 2002, on groups of nodes, first halves; then on single nodes.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator

from irtool.analysis.liveness import remove_dead_nodes
from irtool.ir.edits import clone_graph, inline_block
from irtool.ir.graph import Graph, Node
from irtool.ir.types import TensorType, Type, spell, tensor_type
from irtool.ir.verify import violations

Test = Callable[[Graph], bool]
Edit = Callable[[Graph], bool]
MAX_ROUNDS = 20


class Reduction:
    """One reduction. `best` is the smallest graph so far that shows the fault; `tests` counts what was tried."""

    def __init__(self, graph: Graph, test: Test, on_step: Callable[[Graph, int], None] | None = None) -> None:
        """on_step: called with each smaller graph, and the number of tests."""
        self.best = clone_graph(graph)
        self.test = test
        self.on_step = on_step
        self.tests = 0
        self.tried: set[str] = set()

    def run(self) -> Graph:
        """Reduce until no smaller graph shows the fault."""
        for _ in range(MAX_ROUNDS):
            before = str(self.best)
            self.outputs()
            self.groups()
            self.each(blocks)
            self.each(bypasses)
            self.each(promotions)
            self.each(unused_inputs)
            self.each(smaller_sizes)
            if str(self.best) == before:
                break
        return self.best

    def attempt(self, edit: Edit) -> bool:
        """Apply an edit to a copy; keep the copy if it is valid and still shows the fault."""
        graph = clone_graph(self.best)
        if not edit(graph):
            return False
        remove_dead_nodes(graph)
        graph.forget_names()
        text = str(graph)
        if text in self.tried or text == str(self.best):
            return False
        self.tried.add(text)
        if violations(graph):
            return False
        self.tests += 1
        if not self.test(clone_graph(graph)):
            return False
        self.best = graph
        if self.on_step is not None:
            self.on_step(graph, self.tests)
        return True

    def outputs(self) -> None:
        """Try one output alone; then as few as possible."""
        for index in range(len(self.best.outputs)):
            if self.attempt(lambda graph, index=index: only_output(graph, index)):      # type: ignore[misc]
                return
        for index in reversed(range(len(self.best.outputs))):
            self.attempt(lambda graph, index=index: without_output(graph, index))       # type: ignore[misc]

    def groups(self) -> None:
        """Remove top-level nodes by halves, quarters and so on: their results become inputs."""
        size = max(len(self.best.nodes) // 2, 1)
        while size >= 1:
            start = 0
            while start < len(self.best.nodes):
                if not self.attempt(lambda graph, start=start, size=size: promoted(graph, graph.nodes[start:start + size])):  # type: ignore[misc]
                    start += size
            if size == 1:
                return
            size //= 2

    def each(self, edits: Callable[[Graph], Iterator[Edit]]) -> None:
        """Try edits one after the other, until none succeeds."""
        index = 0
        while True:
            edit = next((each for place, each in enumerate(edits(self.best)) if place == index), None)
            if edit is None:
                return
            if not self.attempt(edit):
                index += 1


def only_output(graph: Graph, index: int) -> bool:
    """Keep only one output."""
    if len(graph.outputs) < 2:
        return False
    graph.block.set_outputs([graph.outputs[index]])
    return True


def without_output(graph: Graph, index: int) -> bool:
    """Remove one output."""
    if len(graph.outputs) < 2 or index >= len(graph.outputs):
        return False
    graph.block.remove_output(index)
    return True


def promoted(graph: Graph, nodes: list[Node]) -> bool:
    """Make the results of nodes of the graph's own block inputs of the graph, except constants."""
    nodes = [node for node in nodes if node.kind != "prim::Constant"]
    for node in reversed(nodes):
        for value in node.outputs:
            if value.has_uses:
                value.replace_all_uses_with(graph.block.add_input(graph.fresh_id(), value.type))
        node.destroy()
    return bool(nodes)


def at(graph: Graph, index: int) -> Node:
    """The node with this index among all nodes, nested ones included."""
    return next(node for place, node in enumerate(graph.walk()) if place == index)


def blocks(graph: Graph) -> Iterator[Edit]:
    """Edits that replace an If by a branch, or the results of a loop by its operands."""
    for index, node in enumerate(graph.walk()):
        if node.kind == "prim::If":
            for side in range(len(node.blocks)):
                yield lambda graph, index=index, side=side: opened(graph, at(graph, index), side)       # type: ignore[misc]
        if node.kind == "prim::Loop":
            yield lambda graph, index=index: skipped_loop(at(graph, index))       # type: ignore[misc]


def opened(graph: Graph, node: Node, side: int) -> bool:
    """Replace an If by one of its branches."""
    for value, result in zip(node.outputs, inline_block(node.blocks[side], node), strict=True):
        value.replace_all_uses_with(result)
    node.destroy()
    return True


def skipped_loop(node: Node) -> bool:
    """Replace the results of a loop by its initial values."""
    for value, first in zip(node.outputs, node.inputs[2:], strict=True):
        value.replace_all_uses_with(first)
    node.destroy()
    return True


def bypasses(graph: Graph) -> Iterator[Edit]:
    """Edits that replace a result by an operand of the same type."""
    for index, node in enumerate(graph.walk()):
        if node.blocks or not node.outputs:
            continue
        for place, value in enumerate(node.inputs):
            if kind_of(value.type) == kind_of(node.outputs[0].type):
                yield lambda graph, index=index, place=place: bypassed(at(graph, index), place)     # type: ignore[misc]


def kind_of(type: Type) -> object:
    """A key of a type: types with equal keys may replace each other, as any two tensor types may."""
    return TensorType if isinstance(type, TensorType) else type.key


def bypassed(node: Node, place: int) -> bool:
    """Replace the first result by an operand."""
    if len(node.outputs) > 1 and any(value.has_uses for value in node.outputs[1:]):
        return False
    node.output.replace_all_uses_with(node.inputs[place]) if len(node.outputs) == 1 else node.outputs[0].replace_all_uses_with(
        node.inputs[place])
    node.destroy()
    return True


def promotions(graph: Graph) -> Iterator[Edit]:
    """Edits that make the results of a single node inputs."""
    for index in range(len(graph.nodes)):
        yield lambda graph, index=index: promoted(graph, graph.nodes[index:index + 1])      # type: ignore[misc]


def unused_inputs(graph: Graph) -> Iterator[Edit]:
    """Edits that remove an unused input, or replace an input by another one of the same type."""
    for index, value in enumerate(graph.inputs):
        if not value.has_uses:
            yield lambda graph, index=index: graph.block.remove_input(index) is None        # type: ignore[misc]
    for index, value in enumerate(graph.inputs):
        for other in range(index):
            if str(graph.inputs[other].type) == str(value.type) and value.has_uses:
                yield lambda graph, index=index, other=other: merged(graph, index, other)        # type: ignore[misc]
                break


def merged(graph: Graph, index: int, other: int) -> bool:
    """Replace one input by another."""
    graph.inputs[index].replace_all_uses_with(graph.inputs[other])
    graph.block.remove_input(index)
    return True


def smaller_sizes(graph: Graph) -> Iterator[Edit]:
    """Edits that set a size of the inputs to 2, then 1, in all types."""
    sizes = sorted({size for value in graph.values() if isinstance(value.type, TensorType) for size in value.type.shape or ()
                    if size is not None and size > 1}, reverse=True)
    for size in sizes:
        for less in (2, 1):
            if less < size:
                yield lambda graph, size=size, less=less: resized(graph, size, less)     # type: ignore[misc]


def resized(graph: Graph, size: int, less: int) -> bool:
    """Replace a size in all types; strides are removed."""
    for value in list(graph.values()):
        type = value.type
        if isinstance(type, TensorType) and type.shape is not None and size in type.shape:
            shape = tuple([less if each == size else each for each in type.shape])
            value.type = spell(tensor_type(type.dtype, shape, None, type.requires_grad, type.device), graph.dialect)
    return True


def reduced(graph: Graph, test: Test, on_step: Callable[[Graph, int], None] | None = None) -> Graph:
    """The smallest graph found that shows the fault: `test(graph)` is true. The graph itself must show it; it is not changed."""
    return Reduction(graph, test, on_step).run()
