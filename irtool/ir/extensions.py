"""Users' passes and operators: where they are defined, how they are removed again, and the rules for their names.

A name has one definition. Defining it again at the same place (a cell that runs twice, a file that is loaded again) replaces the
definition; defining it at another place is an error that names both places.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import islice
from types import TracebackType
from typing import Any

from irtool.ir.errors import Error
from irtool.ir.source import Diagnostic, SourceFile

ENTRY_POINTS = ("irtool.passes", "irtool.operators")
"""Groups of entry points in the metadata of packages. An entry point is imported when its name is first used."""
OURS = ("aten", "prim", "prims", "irtool", "onnx", "caffe2", "quantized", "inductor", "c10d", "profiler", "static_runtime")
"""Namespaces that users' operators cannot use."""

_undo: ContextVar[list[Callable[[], object]] | None] = ContextVar("irtool_undo", default=None)


def added(undo: Callable[[], object]) -> None:
    """Note the function that removes what was just added."""
    steps = _undo.get()
    if steps is not None:
        steps.append(undo)


@contextmanager
def taken_away() -> Iterator[None]:
    """A context that removes, at its end, what was added in it."""
    steps: list[Callable[[], object]] = []
    token = _undo.set(steps)
    try:
        yield
    finally:
        _undo.reset(token)
        for undo in reversed(steps):
            undo()


class Place:
    """The place where a function is defined."""

    def __init__(self, function: Callable[..., Any]) -> None:
        code = getattr(function, "__code__", None)
        self.file: str = getattr(code, "co_filename", "") or str(getattr(function, "__module__", ""))
        self.line: int = getattr(code, "co_firstlineno", 0)
        self.name: str = getattr(function, "__qualname__", type(function).__qualname__)
        self.column, self.end = 1, 0

    def is_of(self, other: Place) -> bool:
        """Is the other place that of the same definition, executed again?"""
        return (self.file, self.name) == (other.file, other.name)

    def error(self, message: str) -> Error:
        """An error at this place."""
        from linecache import getlines

        source = SourceFile(self.file, "".join(getlines(self.file)))
        return Error(diagnostics=[Diagnostic("error", message, source, self.line, self.column, self.end)] if self.line else (),
                     message="" if self.line else f"{self.file}: {message}", code="E0310")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


def raised_in(function: Callable[..., Any], error: Exception) -> Error:
    """An exception of a user's function as an error at the innermost place in its file."""
    place = Place(function)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == place.file:
            place.line, place.column, place.end = position(trace)
        trace = trace.tb_next
    return place.error(f"{type(error).__name__}: {error}".rstrip(": "))


def position(trace: TracebackType) -> tuple[int, int, int]:
    """The line of a step of a traceback, its first column and the column behind the last one; 0: not known."""
    first, last, start, end = next(islice(trace.tb_frame.f_code.co_positions(), trace.tb_lasti // 2, None))
    if first is None or start is None or end is None:
        return trace.tb_lineno, 0, 0
    return first, start + 1, end + 1 if last == first else 0


def check_name(what: str, name: str, function: Callable[..., Any], owner: Callable[..., Any] | None) -> None:
    """Raises Error if a name has another definition. owner: the present definition; None: none."""
    if owner is not None and not Place(function).is_of(Place(owner)):
        raise Place(function).error(f"{what} '{name}' is already defined: {Place(owner)}")


@cache
def entry_points(group: str) -> dict[str, Any]:
    """The entry points of a group by name; none of them is imported."""
    from importlib import metadata

    return {point.name: point for point in metadata.entry_points(group=group)}


def imported(point: Any) -> Any:
    """The object of an entry point. Raises Error if it cannot be imported."""
    try:
        return point.load()
    except Exception as error:
        raise Error(f"the entry point '{point.name}' of {point.group} ({point.value}) cannot be imported: {type(error).__name__}: {error}",
                    code="E0310") from error


_imported: set[str] = set()


def import_operator(kind: str = "") -> None:
    """Import the entry points of the group `irtool.operators` for a kind or its namespace; without a kind, all.

    Their modules add operators when they are imported. Raises Error if one cannot be imported.
    """
    space = kind.partition("::")[0]
    for name, point in entry_points("irtool.operators").items():
        if name not in _imported and (not kind or name == kind or name == space):
            _imported.add(name)
            imported(point)
