"""Watchers of a run: print a line per node or the bytes alive, store every value, stop at the first nan."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from irtool.cli.show.values import as_json, extent, kind
from irtool.interop.npz import BFLOAT16, NONE, Archive, leaves
from irtool.interpret import Observer
from irtool.ir.errors import Error, RunError
from irtool.ir.graph import Graph, Node, Value, counted
from irtool.ir.source import Diagnostic
from irtool.ir.types import TensorType
from irtool.ops.array_library import np


class Watcher(Observer):
    """An observer with two more methods: `start`, called with the inputs, and `finish`, called at the end, also after an error."""

    def start(self, graph: Graph, inputs: Sequence[Any]) -> None:
        """Called before the run, with the inputs."""

    def finish(self) -> None:
        """Called after the run."""


class Watchers(Watcher):
    """Several watchers as one."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self.watchers = watchers

    def start(self, graph: Graph, inputs: Sequence[Any]) -> None:
        for watcher in self.watchers:
            watcher.start(graph, inputs)

    def before(self, node: Node, operands: Sequence[Any]) -> None:
        for watcher in self.watchers:
            watcher.before(node, operands)

    def after(self, node: Node, results: Sequence[Any]) -> None:
        for watcher in self.watchers:
            watcher.after(node, results)

    def released(self, value: Value, content: Any) -> None:
        for watcher in self.watchers:
            watcher.released(value, content)

    def finish(self) -> None:
        for watcher in self.watchers:
            watcher.finish()


def described(content: Any) -> str:
    """A value on one line: `float32 (2, 3), -1 to 2`, `int 3`."""
    if isinstance(content, np.ndarray):
        return ", ".join(filter(None, (kind(content), extent(content))))
    if isinstance(content, bool | int | float | complex | str):
        text = repr(content)
        return f"{kind(content)} {text if len(text) <= 60 else text[:60] + '...'}"
    return kind(content)


def arrays_in(content: Any) -> Iterator[Any]:
    """The arrays in a value, recursively."""
    for _, leaf in leaves("", content):
        if isinstance(leaf, np.ndarray):
            yield leaf


def head(node: Node) -> str:
    """The node's line, without its blocks."""
    return str(node).strip().partition("\n")[0]


class Tracer(Watcher):
    """Prints a line per node that ran, with its results; for control flow when it has ended."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.write = write

    def after(self, node: Node, results: Sequence[Any]) -> None:
        self.write("\n".join([head(node), *(f"    %{value.name}: {described(result)}" for value, result in zip(node.outputs, results))]))


class MemoryTracer(Watcher):
    """Prints the bytes of the arrays alive after each node; views of one array count once."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.write = write
        self.held: dict[Value, dict[int, int]] = {}
        self.peak = 0
        self.peak_text = "0 bytes"

    def start(self, graph: Graph, inputs: Sequence[Any]) -> None:
        for value, content in zip(graph.inputs, inputs):
            self.hold(value, content)
        self.measure("the inputs")

    def hold(self, value: Value, content: Any) -> None:
        """Note that a value is alive."""
        self.held[value] = {id(base): base.nbytes for base in map(base_of, arrays_in(content))}

    def before(self, node: Node, operands: Sequence[Any]) -> None:
        for value, content in zip(node.inputs, operands):
            if value not in self.held:      # an input of a block
                self.hold(value, content)

    def after(self, node: Node, results: Sequence[Any]) -> None:
        for value, content in zip(node.outputs, results):
            self.hold(value, content)
        names = ", ".join(f"%{value.name}" for value in node.outputs)
        self.measure(f"{names} = {node.kind}" if names else node.kind)

    def released(self, value: Value, content: Any) -> None:
        self.held.pop(value, None)

    def measure(self, place: str) -> None:
        """Print the bytes alive, and update the peak."""
        buffers: dict[int, int] = {}
        for held in self.held.values():
            buffers.update(held)
        live = sum(buffers.values())
        text = f"{counted(live, 'byte')} in {counted(sum(1 for size in buffers.values() if size), 'buffer')}"
        self.write(f"{text} after {place}")
        if live > self.peak:
            self.peak, self.peak_text = live, f"{text} after {place}"

    def finish(self) -> None:
        self.write(f"peak: {self.peak_text}")


def base_of(array: Any) -> Any:
    """The array that owns the memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Recorder(Watcher):
    """Stores a copy of every value under its name; of a value computed again in a loop, under `name#2`, `name#3`, ..."""

    def __init__(self, save: Callable[[Archive], None]) -> None:
        self.save = save
        self.archive = Archive()
        self.times: dict[str, int] = {}

    def start(self, graph: Graph, inputs: Sequence[Any]) -> None:
        for value, content in zip(graph.inputs, inputs):
            self.keep(value, content)

    def after(self, node: Node, results: Sequence[Any]) -> None:
        for value, content in zip(node.outputs, results):
            self.keep(value, content)

    def keep(self, value: Value, content: Any) -> None:
        """Store one value; values that an npz cannot contain (None, functions, objects) are left out."""
        name = f"%{value.name}" if value.name in (NONE, BFLOAT16) else value.name
        self.times[name] = count = self.times.get(name, 0) + 1
        if content is None:
            return
        copy = Archive()
        try:
            copy.put(name if count == 1 else f"{name}#{count}", content,
                     is_bfloat16=isinstance(value.type, TensorType) and value.type.dtype == "bfloat16")
        except Error:
            return
        self.archive.arrays.update({key: array.copy() for key, array in copy.arrays.items()})
        self.archive.none |= copy.none
        self.archive.bfloat16 |= copy.bfloat16

    def finish(self) -> None:
        self.save(self.archive)


class Checker(Watcher):
    """Stops the run at the first value that contains a nan or an infinity: an input, a constant, or the result of a node."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.operands: tuple[Node, list[str]] | None = None

    def start(self, graph: Graph, inputs: Sequence[Any]) -> None:
        for i, (value, content) in enumerate(zip(graph.inputs, inputs)):
            trouble = self.trouble_in(content)
            if trouble:
                raise RunError(f"input {i} '%{value.name}' holds {trouble}", code="E0411")

    def before(self, node: Node, operands: Sequence[Any]) -> None:
        self.operands = node, [described(operand) for operand in operands]      # now: the node may write into them

    def after(self, node: Node, results: Sequence[Any]) -> None:
        for value, content in zip(node.outputs, results):
            trouble = self.trouble_in(content)
            if trouble:
                raise self.error(node, value, trouble)

    def trouble_in(self, content: Any) -> str:
        """The nans or infinities in a value, as text: `nan: 3 of 12 elements, first at [0, 1]`; empty if there are none."""
        for _, leaf in leaves("", content):
            array = np.asarray(leaf) if isinstance(leaf, np.ndarray | float | complex) else None
            if array is None or array.dtype.kind not in "fc":
                continue
            for word in self.words:
                wrong = np.isnan(array) if word == "nan" else np.isinf(array)
                count = int(np.count_nonzero(wrong))
                if count:
                    first = [int(i) for i in np.argwhere(wrong)[0]]
                    return f"{word}: {count} of {array.size} elements, first at {as_json(first)}" if array.ndim else word
        return ""

    def error(self, node: Node, value: Value, trouble: str) -> RunError:
        """The error for a result, with the ranges of the node's operands."""
        what = "the constant" if node.kind.endswith("Constant") else f"{node.kind} made"
        message = f"{what} %{value.name} {'holds ' if 'constant' in what else 'with '}{trouble}"
        notes = []
        if self.operands is not None and self.operands[0] is node:
            notes = [Diagnostic("note", f"%{operand.name}: {text}") for operand, text in zip(node.inputs, self.operands[1])]
        source = node.graph.source if node.graph is not None else None
        line = source.line(node.line) if source is not None else ""
        column = len(line) - len(line.lstrip()) + 1 if line else 0
        return RunError(message, [Diagnostic("error", message, source, node.line, column, len(line.rstrip()) + 1 if line else 0, notes)],
                        code="E0411")
