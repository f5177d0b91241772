"""`irtool vmap`: batch a graph over a dimension of its inputs."""
from __future__ import annotations

from irtool.cli import inputs as graph_inputs
from irtool.cli.command import Arguments, Choice, Converted, argument, command, option
from irtool.cli.converters import at_least, dimension
from irtool.cli.options import graph_argument, input_options, traced_options
from irtool.cli.traced import deliver_for, of_any_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console


BATCHING = "Batching"


@command("vmap", epilog="""
  irtool vmap graph.ir --in-dims 0,None,1 batch.npz -o batched.ir
""")
@graph_argument
@argument("inputs", metavar="INPUTS.npz", required=False,
          help="batched arrays by input name or position; without them the types must be complete")
@option("--in-dims", metavar="0,None,1", default="0", group=BATCHING,
        help="the dimension of each input to batch over, None: not batched; or one for all inputs (0)")
@option("--out-dim", metavar="N", type=Converted(dimension), default=0, group=BATCHING,
        help="the position of the batch dimension in the outputs (0)")
@option("--length", metavar="N", type=Converted(at_least(1)), default=2, group=BATCHING,
        help="extent of the batch dimension, if there are no arrays (2)")
@option("--randomness", metavar="HOW", type=Choice("error", "same", "different"), default="error", group=BATCHING,
        help="random operators: an error, the same numbers for all, or different ones")
@input_options
@traced_options
def vmap(arguments: Arguments, console: Console) -> int:
    """Batch the graph for the shapes of the arrays, or, without arrays, for those in its types."""
    from irtool.dispatch.graph_functions import in_dims_of, sample_inputs, trace_vmap
    from irtool.interop.binding import bind
    from irtool.ops.arrays import seeded

    module = graph_inputs.read_module(arguments, console)
    graph = module.graph(arguments.graph)
    dims = in_dims_of(arguments.in_dims, graph, "--in-dims")
    with seeded(arguments.seed):
        has_values = bool(arguments.inputs or arguments.input)
        if has_values:
            archive, literals = graph_inputs.read_values(arguments, console)
            values = bind(of_any_shape(graph), archive, literals, arguments.cast)
        else:
            values = sample_inputs(graph, dims, arguments.length, "--in-dims")
        traced = trace_vmap(graph, dims, values, arguments.out_dim, arguments.randomness, not has_values)
        deliver_for(graph, values, traced, arguments, console)
    return 0
