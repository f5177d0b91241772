"""`irtool gradcheck`: are a graph's gradients right?"""
from __future__ import annotations

from irtool.cli import inputs as graph_inputs
from irtool.cli.command import Arguments, Converted, command, option
from irtool.cli.converters import at_least, tolerance
from irtool.cli.execution import default_wrt
from irtool.cli.many import each_case, is_folder, many_options
from irtool.cli.options import cases_argument, input_options, inputs_argument, wrt_option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from irtool.cli.console import Console
    from irtool.testing.finite_differences import Report


CHECKING = "Checking"


@command("gradcheck", epilog="""
The gradients of `differentiate` are compared with finite differences of the outputs, and with the gradients of a tape. Everything is
computed in double precision, whatever the types say. A comparison at a kink, where the graph is not smooth, is left out.

  irtool gradcheck graph.ir inputs.npz
  irtool gradcheck graph.ir --input x=2x3xf64=randn --seed 7 --order 1
""")
@cases_argument
@inputs_argument
@input_options
@wrt_option
@option("--order", metavar="N", type=Converted(at_least(1)), default=2, group=CHECKING, help="the highest order of derivatives (2)")
@option("--directions", metavar="N", type=Converted(at_least(1)), default=2, group=CHECKING, help="random directions of each input (2)")
@option("--rtol", metavar="X", type=Converted(tolerance), default=1e-6, group=CHECKING, help="relative tolerance (1e-6)")
@option("--json", is_flag=True, group=CHECKING, help="print every comparison, as a JSON object")
@many_options
def gradcheck(arguments: Arguments, console: Console) -> int:
    """Compare gradients with finite differences; the exit code is 1 if they differ, or if an order could not be checked."""
    if is_folder(arguments):
        return each_case("gradcheck", arguments.file, arguments, console)
    import gc

    from irtool.cli.show.progress import Progress
    from irtool.interop.binding import bind
    from irtool.ops.arrays import seeded
    from irtool.testing.finite_differences import gradcheck as check

    gc.enable()
    module = graph_inputs.read_module(arguments, console)
    graph = module.graph(arguments.graph)
    wrt = None if arguments.wrt is None else graph_inputs.inputs_called(arguments.wrt, graph, "--wrt", takes_positions=True)
    with seeded(arguments.seed):
        archive, literals = graph_inputs.read_values(arguments, console)
        values = bind(graph, archive, literals, arguments.cast)
    if wrt is None:
        wrt = default_wrt(graph, values, console.err)
    with Progress(console, "comparing gradients with differences"):
        report = check(graph, values, wrt, seed=arguments.seed, order=arguments.order, directions=arguments.directions, rtol=arguments.rtol)
    if arguments.json:
        import json

        console.out(json.dumps(as_json(report)) + "\n")
    else:
        console.tell(f"{report}\n")
    return 0 if report.is_right else 1


def as_json(report: Report) -> dict[str, Any]:
    """The report as JSON data, with numbers that are not finite as strings."""
    from irtool.cli.show.values import as_json as data

    rows = [{"order": row.order, "input": row.input, "name": row.name.removeprefix("%"), "outputs": row.outputs, "state": row.state,
             "gradient": data(row.gradient), "difference": data(row.difference), "allowed": data(float(row.allowed))}
            for row in report.rows]
    worst = report.worst
    return {"schema": 1, "is_right": report.is_right, "worst": None if worst is None else report.rows.index(worst), "rows": rows,
            "unsupported": {str(order): text for order, text in report.unsupported.items()},
            "tape": [{"order": order, "is_equal": not text, "reason": text or None} for order, text in report.tape.items()],
            "eager": [{"op": name, "is_equal": not text, "reason": text or None} for name, text in report.eager.items()]}
