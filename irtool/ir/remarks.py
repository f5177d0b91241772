"""What a pass says about its work: counters (`opt --stats`), and remarks on nodes that it left as they are (`opt --remarks=missed`)."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from irtool.ir.source import Diagnostic

if TYPE_CHECKING:
    from irtool.ir.graph import Graph, Node


class PassNotes:
    """The counters and remarks of one pass. `remarks` is None if no reader wants them, since some take time to compute."""

    __slots__ = ("counters", "remarks")

    def __init__(self, wants_remarks: bool) -> None:
        self.counters: dict[str, int] = {}
        self.remarks: list[Diagnostic] | None = [] if wants_remarks else None


_notes: ContextVar[PassNotes | None] = ContextVar("notes", default=None)


@contextmanager
def taking_notes(wants_remarks: bool) -> Iterator[PassNotes]:
    """A context in which `count` and `missed` are noted."""
    notes = PassNotes(wants_remarks)
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def count(what: str, number: int = 1) -> None:
    """Add to a counter of the pass that runs: `count("nodes deleted", 3)`."""
    notes = _notes.get()
    if notes is not None and number:
        notes.counters[what] = notes.counters.get(what, 0) + number


def wants_remarks() -> bool:
    """Does a reader want remarks?"""
    notes = _notes.get()
    return notes is not None and notes.remarks is not None


def missed(graph: Graph, node: Node, what: str, why: str) -> None:
    """Note that a pass left a node as it is: `missed(graph, node, "not fused", "it is not pointwise")`. The place is the node's line."""
    notes = _notes.get()
    if notes is None or notes.remarks is None:
        return
    results = ", ".join(f"%{value.name}" for value in node.outputs)
    message = f"{node.kind}{f' ({results})' if results else ''} is {what}: {why}"
    place = graph.source.about(node.line, node.tail, message) if graph.source is not None else None
    diagnostic = place or Diagnostic("remark", message, graph.source)
    diagnostic.severity = "remark"
    notes.remarks.append(diagnostic)
