"""The output of commands that trace, and the graph to which inputs are bound before the trace."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from irtool.cli.command import Arguments
    from irtool.cli.console import Console
    from irtool.ir.graph import Graph


def deliver_for(original: Graph, values: Sequence[Any], graph: Graph, arguments: Arguments, console: Console) -> None:
    """Print or store the trace of a graph on these values, with the inputs of that graph."""
    from irtool.dispatch.given_inputs import give_inputs
    from irtool.dispatch.transforms import tensors

    for note in give_inputs(graph, original, tensors(list(values))):
        console.err(f"note: {note}")
    deliver(graph, arguments, console)


def deliver(graph: Graph, arguments: Arguments, console: Console) -> None:
    """Print or store a graph; its constant arrays go into the text, a file beside it, or the file of `--save-constants`."""
    from irtool.cli.constants_file import keep, keep_constants
    from irtool.ir.module import Module

    module = Module([graph])
    if arguments.save_constants:
        keep_constants(module, arguments.save_constants)
    else:
        keep(module, None, "-", arguments.output, console)
    console.save(arguments.output, str(module), "ir")


def of_any_shape(graph: Graph) -> Graph:
    """A graph with the same inputs and defaults, with tensors of any shape, since a transformed graph takes other shapes."""
    from irtool.ir import types
    from irtool.ir.defaults import DEFAULTS
    from irtool.ir.graph import Graph
    from irtool.ir.types import TensorType

    untyped = Graph(graph.dialect)
    for value in graph.inputs:
        untyped.block.add_input(value.name, types.TENSOR if isinstance(value.type, TensorType) else value.type)
    if DEFAULTS in graph.metadata:
        untyped.metadata[DEFAULTS] = graph.metadata[DEFAULTS]
    return untyped
