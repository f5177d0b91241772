"""Graphs that were traced: where they go, and what inputs are bound to before there is a graph of them."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.command import Arguments
    from irtool.cli.console import Console
    from irtool.ir.graph import Graph


def deliver(graph: Graph, arguments: Arguments, console: Console) -> None:
    """Print or store the graph; arrays that it has as constants go into the text, or into a file beside it, or one that is named."""
    from irtool.cli.constants_file import keep, keep_constants
    from irtool.ir.module import Module

    module = Module([graph])
    if arguments.save_constants:
        keep_constants(module, arguments.save_constants)
    else:
        keep(module, None, "-", arguments.output, console)
    console.save(arguments.output, str(module), "ir")


def of_any_shape(graph: Graph) -> Graph:
    """A graph with the same inputs, whose tensors may have any shape: a transformation takes other shapes than the graph."""
    from irtool.ir import types
    from irtool.ir.graph import Graph
    from irtool.ir.types import TensorType

    untyped = Graph(graph.dialect)
    for value in graph.inputs:
        untyped.block.add_input(value.name, types.TENSOR if isinstance(value.type, TensorType) else value.type)
    return untyped
