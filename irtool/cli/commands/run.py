"""`irtool run`: run a graph, or a gradient pair, on arrays from an `.npz` and from the command line."""
from __future__ import annotations

from irtool.cli import inputs as graph_inputs
from irtool.cli.command import Arguments, Converted, Option, command, option
from irtool.cli.converters import non_finite
from irtool.cli.execution import Execution
from irtool.cli.exit_errors import UsageError
from irtool.cli.many import each_case, is_folder, many_options
from irtool.cli.options import (
    EXECUTION,
    cases_argument,
    input_options,
    inputs_argument,
    pair_options,
    result_options,
    run_options,
    types_option,
)
from irtool.cli.show import results
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from irtool.cli.console import Console
    from irtool.cli.show.watching import Watcher
    from irtool.ir.graph import Graph
    from irtool.ir.pair import GradientPair


DEBUGGING = "Debugging"


@command("run", epilog="""
  irtool run graph.ir --input x=2x3xf32=randn --seed 7 --check nan,inf --expect out.npz --rtol 1e-4
""")
@cases_argument
@inputs_argument
@input_options
@pair_options
@run_options
@types_option
@result_options
@option("--check", metavar="WHAT", type=Converted(non_finite), default=(), group=DEBUGGING,
        help="stop at the first value that contains one of these: nan, inf or nan,inf")
@option("--save-intermediates", metavar="FILE.npz", group=DEBUGGING, help="store every value under its name")
@option("--log-dispatch", is_flag=True, group=DEBUGGING, help="print a line per operation on tensors, from a logging layer")
@option("--trace", is_flag=True, group=DEBUGGING, help="print a line per node that ran, to standard error")
@option("--trace-memory", is_flag=True, group=DEBUGGING, help="print the bytes alive after each node, and the peak")
@many_options
def run(arguments: Arguments, console: Console) -> int:
    """Bind the inputs, run, then show, store or compare the results."""
    if is_folder(arguments):
        return each_case("run", arguments.file, arguments, console)
    from irtool.ir.graph import Graph
    from irtool.ops.arrays import seeded

    module = graph_inputs.read_module(arguments, console)
    target = graph_inputs.chosen(module, arguments.graph, arguments.pair)
    with seeded(arguments.seed):
        if not isinstance(target, Graph):
            return run_pair(target, arguments, console)
        return run_graph(target, arguments, console)


def run_graph(graph: Graph, arguments: Arguments, console: Console) -> int:
    """Run one graph by the executor; by the interpreter if an option asks for that, or needs to watch each node."""
    if not interpreting(arguments):
        return execute_graph(graph, arguments, console)
    from irtool.interop.binding import bind

    wrong = executed(arguments, ("interpret",))
    if wrong:
        raise UsageError(f"{wrong[0]} is for plans; with {interpreting(arguments)[0]} the interpreter runs the graph")
    archive, literals = graph_inputs.read_values(arguments, console)
    inputs = bind(graph, archive, literals, arguments.cast)
    if arguments.log_dispatch:
        from irtool.dispatch.graph_functions import logged

        outputs = logged(graph, inputs, console.err, arguments.seed)
        return results.deliver(results.outputs_of(graph, outputs), None, arguments, console)
    watched = Watched(arguments, console)
    with watched:
        outputs = watched(graph, inputs)
    return results.deliver(results.outputs_of(graph, outputs), None, arguments, console)


def execute_graph(graph: Graph, arguments: Arguments, console: Console) -> int:
    """Run one graph by the executor, with gradients if an option asks for them."""
    from irtool.interop.binding import bind

    if arguments.backward or arguments.cotangents or arguments.create_graph:
        inputs, cotangents = graph_inputs.read_with_cotangents(graph, arguments, console, len(graph.outputs))
        outputs, gradients = Execution(graph, arguments, console).run(inputs, cotangents)
    else:
        archive, literals = graph_inputs.read_values(arguments, console)
        inputs = bind(graph, archive, literals, arguments.cast)
        outputs, gradients = Execution(graph, arguments, console).run(inputs, None)
    shown = None if gradients is None else results.gradients_of(graph, gradients, inputs)
    return results.deliver(results.outputs_of(graph, outputs), shown, arguments, console)


def run_pair(pair: GradientPair, arguments: Arguments, console: Console) -> int:
    """Run f of a pair, and df if there are cotangents, or a default one."""
    from irtool.execute.pairs import Forward, sole_scalar

    if arguments.log_dispatch:
        raise UsageError(f"--log-dispatch is for one graph: add --graph {pair.f.name} or --graph {pair.df.name}")
    wrong = [*executed(arguments, ("interpret", "backward")), *["--save-intermediates"] * bool(arguments.save_intermediates)]
    if wrong:
        raise UsageError(f"{wrong[0]} is for one graph: add --graph {pair.f.name} or --graph {pair.df.name}")
    values, cotangents = graph_inputs.read_with_cotangents(pair.f, arguments, console, pair.real_outputs)
    watched = Watched(arguments, console)
    with watched:
        forward = Forward(pair, values, watched)
        fitted = cotangents.fitted(forward.outputs) if cotangents.parts else sole_scalar(forward.outputs)
        gradients = None
        if fitted is not None:
            input_gradients, notes = forward.backward(fitted)
            gradients = results.gradients_of(pair.f, input_gradients, values)
        elif arguments.backward:
            raise Error(f"no cotangents: {graph_inputs.NEEDED}", code="E0502")
        else:
            notes = [f"only outputs are computed: {graph_inputs.NEEDED}"]
    for note in notes:
        console.err(f"note: {note}")
    return results.deliver(results.outputs_of(pair.f, forward.outputs), gradients, arguments, console)


class Watched:
    """Runs graphs under the watchers that the options ask for."""

    def __init__(self, arguments: Arguments, console: Console) -> None:
        import gc

        from irtool.cli.show.watching import Watchers

        gc.enable()         # a graph may run for long, unlike other commands
        self.seed = arguments.seed
        watchers = make_watchers(arguments, console)
        self.together = Watchers(watchers) if watchers else None

    def __call__(self, graph: Graph, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a graph."""
        from irtool.interpret import run as run_on_arrays
        from irtool.torchscript.library_calls import opened

        graph = opened(graph)
        if self.together is not None:
            self.together.start(graph, inputs)
        return run_on_arrays(graph, inputs, seed=self.seed, observer=self.together)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """End the watchers after the last run, also after an error; after an interrupt they print and store nothing more."""
        if self.together is not None and not (kind is not None and issubclass(kind, KeyboardInterrupt)):
            self.together.finish()


def interpreting(arguments: Arguments) -> list[str]:
    """The options that ask for the reference interpreter, or for a watcher, which needs it."""
    names = ("interpret", "trace", "trace_memory", "save_intermediates", "check", "log_dispatch")
    return [f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name)]


def make_watchers(arguments: Arguments, console: Console) -> list[Watcher]:
    """The watchers that the options ask for; the one that may stop the run comes last."""
    from irtool.cli.show.watching import Checker, MemoryTracer, Recorder, Tracer

    watchers: list[Watcher] = []
    if arguments.trace:
        watchers.append(Tracer(console.show_ir))
    if arguments.trace_memory:
        watchers.append(MemoryTracer(console.err))
    if arguments.save_intermediates:
        watchers.append(Recorder(lambda archive: results.save(archive, arguments.save_intermediates)))
    if arguments.check:
        watchers.append(Checker(arguments.check))
    return watchers


def executed(arguments: Arguments, others: Sequence[str]) -> list[str]:
    """The options, except `others`, that are set and that only plans support."""
    wrong = ["--cotangents"] if "backward" not in others and arguments.cotangents else []
    for each in run.params:
        if isinstance(each, Option) and each.group == EXECUTION and each.name not in others:
            value = getattr(arguments, each.name)
            if value and value != each.default:
                wrong.append(f"{each.long_flag} {value}" if each.name == "backend" else each.long_flag)
    return wrong
