"""`irtool transform`: the graph of a transformed graph, such as `vmap(grad(0))`."""
from __future__ import annotations

from irtool.cli import inputs as graph_inputs
from irtool.cli.command import Arguments, argument, command
from irtool.cli.exit_errors import UsageError
from irtool.cli.options import input_options, traced_options
from irtool.cli.traced import deliver_for, of_any_shape
from irtool.ir.errors import Error
from irtool.ir.source import Diagnostic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.ir.graph import Graph


@command("transform", epilog="""
  irtool transform loss.ir "grad(0)" inputs.npz
  irtool transform loss.ir "vmap(grad((0, 1)), in_dims=(None, None, 0, 0))" batch.npz -o per_sample.ir
""")
@argument("file", metavar="GRAPH.ir", help="IR text (-: standard input)")
@argument("transformation", metavar="TRANSFORMATION", help="grad, value_and_grad, vmap, jacrev, jacfwd, hessian; nested, with arguments")
@argument("inputs", metavar="INPUTS.npz", required=False, help="arrays that the transformed graph takes, by input name or position")
@input_options
@traced_options
def transform(arguments: Arguments, console: Console) -> int:
    """Run the graph under the layers of the transformation, and record the operations at the bottom as a graph."""
    from irtool.dispatch.callables import function_of
    from irtool.dispatch.graph_functions import trace_transformed, transformed
    from irtool.interop.binding import bind
    from irtool.ops.arrays import seeded

    refuse_swapped(arguments)
    module = graph_inputs.read_module(arguments, console)
    graph = module.graph(arguments.graph)
    transformed(function_of(graph), arguments.transformation)       # raises for a wrong transformation before inputs are missed
    check_given(graph, arguments)
    with seeded(arguments.seed):
        archive, literals = graph_inputs.read_values(arguments, console)
        values = bind(of_any_shape(graph), archive, literals, arguments.cast)
        deliver_for(graph, values, trace_transformed(graph, arguments.transformation, values), arguments, console)
    return 0


def check_given(graph: Graph, arguments: Arguments) -> None:
    """Raises Error if the graph takes tensors and none is given.

    Ones in the shapes of the types, as `irtool vmap` makes them, would not do: vmap takes batches here, and gradients have sizes as
    constants, which may follow from elements, as masked_select's do.
    """
    from irtool.interop.binding import signature
    from irtool.ir.types import TensorType

    if not arguments.inputs and not arguments.input and any(isinstance(value.type, TensorType) for value in graph.inputs):
        note = "sizes in the result may follow from elements, and vmap takes batches, so the types alone do not say enough"
        raise Error(diagnostics=[Diagnostic("error", "transform needs inputs: give INPUTS.npz or --input NAME=VALUE; the graph takes "
                                            f"{signature(graph)}", notes=[Diagnostic("note", note)])], code="E0402")


def refuse_swapped(arguments: Arguments) -> None:
    """Raises UsageError if the transformation stands in the place of the graph."""
    import os

    from irtool.dispatch.graph_functions import NAMES

    if arguments.file.partition("(")[0] in NAMES and not os.path.exists(arguments.file):
        raise UsageError(f"'{arguments.file}' is a transformation, which comes after the graph: "
                         f"irtool transform {arguments.transformation} '{arguments.file}'", code="E0804")
