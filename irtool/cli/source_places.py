"""Places in files: line numbers for texts that are a part of a file, and for errors of Python code."""
from __future__ import annotations

from collections.abc import Iterable

from irtool.cli.opener import ArchiveSource
from irtool.ir.errors import Error
from irtool.ir.extensions import position
from irtool.ir.graph import Graph
from irtool.ir.module import Module
from irtool.ir.source import Diagnostic, SourceFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console


def parse_source(source: SourceFile) -> Module:
    """The module of a text that begins at line `source.first_line` of its file. Raises ParseError."""
    if isinstance(source, ArchiveSource):
        return source.module
    from irtool.text.parser import parse

    distance = source.first_line - 1
    if not distance:
        return parse(source.text, source.name)
    try:
        module = parse(source.text, source.name)
    except Error as error:
        move_diagnostics(error.diagnostics, source, distance)
        raise
    move_diagnostics(module.warnings, source, distance)
    for graph in module.graphs:
        move_graph(graph, source, distance)
    return module


def move_diagnostics(diagnostics: Iterable[Diagnostic], source: SourceFile, distance: int) -> None:
    """Move diagnostics about a text `distance` lines down."""
    for diagnostic in diagnostics:
        if diagnostic.line:
            diagnostic.line += distance
        diagnostic.source = source
        move_diagnostics(diagnostic.notes, source, distance)


def move_graph(graph: Graph, source: SourceFile, distance: int) -> None:
    """Move the lines stored in nodes, for messages of the verifier and of passes."""
    graph.source = source
    for block in graph.walk_blocks():
        for node in (block.param_node, *block, block.return_node):
            if node.line:
                node.line += distance
            for owned in node.graphs.values():
                move_graph(owned, source, distance)


def placed(error: BaseException, console: Console, path: str, what: str) -> Error:
    """An error with the innermost place in a Python file at which it was raised. what: named in the message if no frame is in the file."""
    if isinstance(error, Error) and (error.diagnostics or type(error).__name__ in ("UsageError", "DamagedError")):
        return error
    message = error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}".rstrip(": ")
    place = (0, 0, 0)
    if isinstance(error, SyntaxError) and error.filename == path:
        message, place = error.msg, (error.lineno or 0, error.offset or 0, error.end_offset or 0)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            place = position(trace)
        trace = trace.tb_next
    if not place[0]:
        return error.at(()) if isinstance(error, Error) else Error(f"{what}: {message}", code="E0607")
    return Error(diagnostics=[Diagnostic("error", message, console.read(path), *place)],
                 code=error.code if isinstance(error, Error) else "E0607")
