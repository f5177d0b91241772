"""What is run another way than it was to be: said once, with the node's line. Where tests run it is an error, but for what is declared.

A plan cannot be made of every graph: some are nested too deeply, or hold what only the interpreter runs. Such reasons are declared, by
raising `NotLowered`. Any other is a fault of ours, which the interpreter covers for whoever only wants results; the project's own tests
have it raised (`raise_faults`).
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from irtool.ir.errors import Error
from irtool.ir.graph import Graph, Node
from irtool.ir.source import Diagnostic, SourceFile


class FallbackWarning(UserWarning):
    """A graph is run another way than it was to be; results are what they would be."""


class Fault(Exception):
    """What was to run a graph failed, and another way to run it did not: a bug of irtool's."""


class NotLowered(Exception):
    """Why no plan is made of a graph, and the node that it is about. is_declared: is it no fault of ours?"""

    def __init__(self, reason: str, node: Node | None = None, is_declared: bool = True) -> None:
        super().__init__(reason)
        self.node = node
        self.is_declared = is_declared


_are_raised = [False]


def raise_faults(flag: bool = True) -> None:
    """From now on, raise what is no declared reason for running a graph another way than it was to be."""
    _are_raised[0] = flag


def is_strict() -> bool:
    """Are faults of ours raised?"""
    return _are_raised[0]


def placed(message: str, graph: Graph, node: Node | None) -> str:
    """A note about a graph: `file:line:col: note: message`, and the line."""
    source = graph.source
    if source is None or node is None or not node.line:
        return f"{source.name}: note: {message}" if isinstance(source, SourceFile) and source.name else f"note: {message}"
    line = source.line(node.line)
    return Diagnostic("note", message, source, node.line, len(line) - len(line.lstrip()) + 1, len(line.rstrip()) + 1).render()


@contextmanager
def noted(told: Callable[[str], None]) -> Iterator[None]:
    """Within, what is run another way than it was to be is told to a function, each time, and is no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FallbackWarning)
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if issubclass(category, FallbackWarning):
                told(str(message))
            else:
                shown(message, category, *where)
        warnings.showwarning = show     # type: ignore[assignment]
        yield


def why(reason: NotLowered, graph: Graph) -> str:
    """That no plan is made of a graph, and the reason."""
    return placed(f"no plan is made of this graph, the interpreter runs it: {reason}", graph, reason.node)


def interpreted(reason: NotLowered, graph: Graph) -> str:
    """Say that no plan is made of a graph, and why. Raises Fault where the reason is none that is declared, and faults are raised."""
    said = why(reason, graph)
    if not reason.is_declared and is_strict():
        raise Fault(said) from reason
    warnings.warn(said, FallbackWarning, stacklevel=4)
    return said


def failed(error: BaseException, graph: Graph, what: str = "the plan") -> None:
    """Say that something failed where the reference did not. Raises Fault where faults are raised."""
    words = str(error).splitlines()[0] if str(error) else ""
    said = placed(f"{what} of this graph failed ({type(error).__name__}: {words}), the interpreter ran it: please report this",
                  graph, None)
    if is_strict():
        raise Fault(said) from error
    warnings.warn(said, FallbackWarning, stacklevel=4)


def is_fault(error: BaseException) -> bool:
    """Is an error none of those that are raised on purpose?"""
    return not isinstance(error, Error)


__all__ = ["FallbackWarning", "Fault", "NotLowered", "failed", "interpreted", "is_fault", "is_strict", "noted", "raise_faults", "why"]
