"""Fallbacks: a graph runs in a slower way than was asked for. A warning says so once, with the node's line.

A plan cannot be made of every graph: some are nested too deeply, or contain nodes that only the interpreter runs. Such reasons are
declared, by raising `NotLowered`. Any other reason is a bug of irtool's: the interpreter still gives users their results, but in the
project's tests the error is raised (`raise_faults`).
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from irtool.ir.errors import Error
from irtool.ir.graph import Graph, Node
from irtool.ir.source import SourceFile


class FallbackWarning(UserWarning):
    """A graph runs another way than was asked for; results are the same."""


class Fault(Exception):
    """One way to run a graph failed, and another succeeded: a bug of irtool's."""


class NotLowered(Exception):
    """Why no plan is made of a graph, and the node that cannot be lowered. is_declared: False for a bug of irtool's."""

    def __init__(self, reason: str, node: Node | None = None, is_declared: bool = True) -> None:
        super().__init__(reason)
        self.node = node
        self.is_declared = is_declared


_are_raised = [False]


def raise_faults(flag: bool = True) -> None:
    """Set whether errors that are no declared reason for a fallback are raised."""
    _are_raised[0] = flag


def is_strict() -> bool:
    """Are bugs of irtool's raised, instead of hidden by a fallback?"""
    return _are_raised[0]


def placed(message: str, graph: Graph, node: Node | None) -> str:
    """A note about a graph: `file:line:col: note: message`, and the line."""
    source = graph.source
    if source is None or node is None or not node.line:
        return f"{source.name}: note: {message}" if isinstance(source, SourceFile) and source.name else f"note: {message}"
    return source.marked(node.line, message, "note").render()


@contextmanager
def noted(report: Callable[[str], None]) -> Iterator[None]:
    """A context in which each fallback calls `report` with its message instead of warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FallbackWarning)
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if issubclass(category, FallbackWarning):
                report(str(message))
            else:
                shown(message, category, *where)
        warnings.showwarning = show     # type: ignore[assignment]
        yield


def why(reason: NotLowered, graph: Graph) -> str:
    """The message that no plan is made of a graph, with the reason."""
    return placed(f"no plan is made of this graph, the interpreter runs it: {reason}", graph, reason.node)


def interpreted(reason: NotLowered, graph: Graph) -> str:
    """Warn that no plan is made of a graph, and why. Raises Fault if the reason is not declared, and faults are raised."""
    said = why(reason, graph)
    if not reason.is_declared and is_strict():
        raise Fault(said) from reason
    warnings.warn(said, FallbackWarning, stacklevel=4)
    return said


def failed(error: BaseException, graph: Graph, what: str = "the plan") -> None:
    """Warn that a way to run a graph failed, and the reference did not. Raises Fault if faults are raised."""
    words = str(error).splitlines()[0] if str(error) else ""
    said = placed(f"{what} of this graph failed ({type(error).__name__}: {words}), the interpreter ran it: please report this", graph, None)
    if is_strict():
        raise Fault(said) from error
    warnings.warn(said, FallbackWarning, stacklevel=4)


def is_fault(error: BaseException) -> bool:
    """Is an error unexpected: none of those that irtool raises on purpose?"""
    return not isinstance(error, Error)
