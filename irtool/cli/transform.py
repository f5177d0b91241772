"""`irtool transform`: the graph of a transformed graph, such as `vmap(grad(0))`."""
from __future__ import annotations

from irtool.cli import inputs as given
from irtool.cli.command import Arguments, Command, Positional
from irtool.cli.trace import OUTPUTS, deliver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.ir.graph import Graph


def run(arguments: Arguments, console: Console) -> int:
    """Interpret the graph under the layers that the transformation makes, and write down what arrives at the bottom."""
    from irtool.dispatch.graph_functions import trace_transformed
    from irtool.interop.binding import bind
    from irtool.ops.arrays import seeded

    module = given.read_module(arguments, console)
    graph = module.graph(arguments.graph)
    with seeded(arguments.seed):
        archive, literals = given.read_values(arguments, console)
        values = bind(of_any_shape(graph), archive, literals, arguments.cast)
        deliver(trace_transformed(graph, arguments.transformation, values), arguments, console)
    return 0


def of_any_shape(graph: Graph) -> Graph:
    """A graph with the same inputs, whose tensors may have any shape: a transformation takes other shapes than the graph."""
    from irtool.ir import types
    from irtool.ir.graph import Graph
    from irtool.ir.types import TensorType

    found = Graph(graph.dialect)
    for value in graph.inputs:
        found.block.add_input(value.name, types.TENSOR if isinstance(value.type, TensorType) else value.type)
    return found


COMMAND = Command(
    run, usage="GRAPH.ir TRANSFORMATION [INPUTS.npz]",
    positionals=[Positional("file", help="IR text (-: standard input)"),
                 Positional("transformation", help="grad, value_and_grad, vmap, jacrev, jacfwd, hessian; nested, with arguments"),
                 Positional("inputs", "?", help="arrays that the transformed graph takes, by input name or position")],
    options=[*(option for option in given.OPTIONS if option.dest != "load"), *OUTPUTS],
    details="""
  irtool transform loss.ir "grad(0)" inputs.npz
  irtool transform loss.ir "vmap(grad((0, 1)), in_dims=(None, None, 0, 0))" batch.npz -o per_sample.ir
""")
