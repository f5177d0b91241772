"""Texts that are a piece of a file: parsed as they are, but every line number is the file's."""
from __future__ import annotations

from collections.abc import Iterable

from irtool.ir.errors import Error
from irtool.ir.graph import Graph
from irtool.ir.module import Module
from irtool.ir.source import Diagnostic, SourceFile


def parse_source(source: SourceFile) -> Module:
    """The module of a text that begins at line `source.first_line` of its file. Raises ParseError."""
    from irtool.text.parser import parse

    distance = source.first_line - 1
    if not distance:
        return parse(source.text, source.name)
    try:
        module = parse(source.text, source.name)
    except Error as error:
        move_diagnostics(error.diagnostics, source, distance)
        raise
    for graph in module.graphs:
        move_graph(graph, source, distance)
    return module


def move_diagnostics(diagnostics: Iterable[Diagnostic], source: SourceFile, distance: int) -> None:
    """Diagnostics about the text, `distance` lines further down."""
    for diagnostic in diagnostics:
        if diagnostic.line:
            diagnostic.line += distance
        diagnostic.source = source
        move_diagnostics(diagnostic.notes, source, distance)


def move_graph(graph: Graph, source: SourceFile, distance: int) -> None:
    """The lines that nodes remember, for messages of the verifier and of passes."""
    graph.source = source
    for block in graph.walk_blocks():
        for node in (block.param_node, *block, block.return_node):
            if node.line:
                node.line += distance
            for owned in node.graphs.values():
                move_graph(owned, source, distance)
