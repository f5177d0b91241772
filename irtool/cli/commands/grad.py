"""`irtool grad`: gradients of a graph's inputs, from cotangents of its outputs."""
from __future__ import annotations

from irtool.cli import inputs as graph_inputs
from irtool.cli.command import Arguments, Choice, command, option
from irtool.cli.execution import default_wrt, leaves
from irtool.cli.options import EXECUTION, graph_argument, input_options, inputs_argument, pair_options, result_options, wrt_option
from irtool.cli.show import results
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from irtool.cli.console import Console
    from irtool.interop.cotangents import Cotangents
    from irtool.ir.graph import Graph
    from irtool.ir.pair import GradientPair


@command("grad", epilog="""
An output without a cotangent takes no part. None: no gradient can reach the input.

  irtool grad graph.ir inputs.npz --cotangents vjps.npz --wrt 0,2 -o gradients.npz
  irtool grad loss.ir --input x=2x3xf32=randn        (the only output is one number)
""")
@graph_argument
@inputs_argument
@input_options
@pair_options
@wrt_option
@option("--via", metavar="WAY", type=Choice("differentiate", "tape"), default="differentiate", group=EXECUTION,
        help="differentiate: run the graphs that the pass makes (the default); tape: run the graph under a tape")
@result_options
def grad(arguments: Arguments, console: Console) -> int:
    """Run a graph (or a gradient pair) and its gradient, then show, store or compare the gradients."""
    import gc

    from irtool.ir.graph import Graph
    from irtool.ops.arrays import seeded

    gc.enable()
    module = graph_inputs.read_module(arguments, console)
    target = graph_inputs.chosen(module, arguments.graph, arguments.pair)
    f = target if isinstance(target, Graph) else target.f
    wrt = None if arguments.wrt is None else graph_inputs.inputs_called(arguments.wrt, f, "--wrt", takes_positions=True)
    with seeded(arguments.seed):
        count = len(f.outputs) if isinstance(target, Graph) else target.real_outputs
        values, cotangents = graph_inputs.read_with_cotangents(f, arguments, console, count)
        if isinstance(target, Graph):
            gradients = of_graph(target, values, cotangents, arguments, wrt, console)
        else:
            gradients, notes = of_pair(target, values, cotangents, arguments, wrt)
            for note in notes:
                console.err(f"note: {note}")
    return results.deliver((), results.gradients_of(f, gradients, values), arguments, console)


def of_graph(graph: Graph, values: list[Any], cotangents: Cotangents, arguments: Arguments,
             wanted_ones: Sequence[int] | None, console: Console) -> dict[int, Any]:
    """Input index -> gradient, for the inputs wanted, by default all floating-point tensors that operators have gradients for."""
    from irtool.dispatch.graph_functions import tape_gradients
    from irtool.execute.graph_gradients import Differentiated, wanted
    from irtool.interpret import run as run_graph

    wrt = default_wrt(graph, values, console.err) if wanted_ones is None else wanted("--wrt", wanted_ones, graph, values)
    differentiated = Differentiated(graph, wrt) if arguments.via == "differentiate" else None
    outputs = run_graph(graph, values, seed=arguments.seed)
    fitted = seeds(outputs, cotangents)
    listed = [each for i, output in enumerate(outputs) for each in leaves(fitted.get(i), output)]
    if differentiated is None:
        gradients = tape_gradients(graph, values, wrt, listed, arguments.seed)
    else:
        gradients = differentiated.gradients(values, listed, arguments.seed)
    return dict(zip(wrt, gradients, strict=True))


def of_pair(pair: GradientPair, values: list[Any], cotangents: Cotangents, arguments: Arguments,
            wrt: Sequence[int] | None) -> tuple[dict[int, Any], list[str]]:
    """Input index -> gradient, computed by the df of a pair; and notes."""
    from irtool.execute.pairs import Forward
    from irtool.interpret import run as run_graph

    forward = Forward(pair, values, lambda graph, inputs: run_graph(graph, inputs, seed=arguments.seed))
    gradients, notes = forward.backward(seeds(forward.outputs, cotangents))
    if wrt is None:
        return gradients, notes
    missing = [index for index in wrt if index not in gradients]
    if missing:
        raise Error(f"the pair '{pair.f.name}', '{pair.df.name}' gives no gradient of input {missing[0]}", code="E0506")
    return {index: gradients[index] for index in wrt}, notes


def seeds(outputs: list[Any], cotangents: Cotangents) -> dict[int, Any]:
    """Output index -> cotangent; the default is 1 for a sole output of one number. Raises Error if there are none."""
    from irtool.execute.pairs import sole_scalar

    gradients = cotangents.fitted(outputs) if cotangents.parts else sole_scalar(outputs)
    if gradients is None:
        raise Error(f"no cotangents: {graph_inputs.NEEDED}", code="E0502")
    return gradients
