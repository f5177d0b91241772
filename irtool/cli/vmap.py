"""`irtool vmap`: a graph that does its work for every place of a dimension at once."""
from __future__ import annotations

from irtool.cli import inputs as given
from irtool.cli.command import Arguments, Command, Option, Positional, at_least
from irtool.cli.trace import OUTPUTS, deliver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console


def run(arguments: Arguments, console: Console) -> int:
    """Batch the graph: for the shapes of the arrays given, or for those that its types say."""
    from irtool.cli.transform import of_any_shape
    from irtool.dispatch.graph_functions import in_dims_of, sample_inputs, trace_vmap
    from irtool.interop.binding import bind
    from irtool.ops.arrays import seeded

    module = given.read_module(arguments, console)
    graph = module.graph(arguments.graph)
    dims = in_dims_of(arguments.in_dims, graph, "--in-dims")
    with seeded(arguments.seed):
        if arguments.inputs or arguments.input:
            archive, literals = given.read_values(arguments, console)
            values = bind(of_any_shape(graph), archive, literals, arguments.cast)
        else:
            values = sample_inputs(graph, dims, arguments.length, "--in-dims")
        deliver(trace_vmap(graph, dims, values, arguments.out_dim, arguments.randomness), arguments, console)
    return 0


def dimension(text: str) -> int:
    """A converter: a dimension."""
    if not text.removeprefix("-").isdecimal() or len(text) > 4:
        raise ValueError(f"expected a dimension, not '{text[:40]}'")
    return int(text)


COMMAND = Command(
    run, usage="GRAPH.ir --in-dims 0,None,1 [INPUTS.npz]",
    positionals=[Positional("file", "?", default="-", help="IR text (-: standard input, the default)"),
                 Positional("inputs", "?", help="batched arrays by input name or position; without them types must be complete")],
    options=[
        Option("--in-dims", "the dimension to batch over of each input, None for none; one for all (0)", value="0,None,1", default="0"),
        Option("--out-dim", "where the dimension goes in the outputs (0)", value="N", convert=dimension, default=0),
        Option("--length", "extent of the dimension, where no arrays tell (2)", value="N", convert=at_least(1), default=2),
        Option("--randomness", "random numbers of the function", value="HOW", choices=("error", "same", "different"), default="error"),
        *(option for option in given.OPTIONS if option.dest != "load"), *OUTPUTS,
    ],
    details="\n  irtool vmap graph.ir --in-dims 0,None,1 batch.npz -o batched.ir\n")
