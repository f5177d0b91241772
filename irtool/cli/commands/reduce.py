"""`irtool reduce`: the smallest graph that still shows a fault."""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command, option
from irtool.cli.exit_errors import UsageError
from irtool.cli.options import output_option, types_option
from irtool.cli.test_command import BAD, GOOD, command_options, verdict
from irtool.cli.validating import gradients_option, tolerance_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from irtool.cli.console import Console
    from irtool.ir.graph import Graph


@command("reduce", epilog="""
CMD is run with the name of a file as last argument; the graph in the file is bad if CMD exits with a status other than 0 (125: unknown).
With --passes, a graph is bad if these passes change its results. With -o, the smallest graph so far is always in the file; Ctrl-C ends the
search, and the smallest graph so far is the result, with exit code 130. Exit code 1: the input itself is not bad.

  irtool reduce --test ./check.sh graph.ir -o small.ir
  irtool reduce --passes=my-pass --load my.py graph.ir -o small.ir
""")
@argument("file", metavar="FILE", default="-", help="IR text with one graph (-: standard input, the default)")
@command_options
@option("-p", "--passes", metavar="PIPELINE", multiple=True, help="passes that change results of the graph; repeat to add passes")
@gradients_option
@tolerance_options
@types_option
@output_option
def reduce(arguments: Arguments, console: Console) -> int:
    """Remove parts that the fault does not need."""
    from irtool.checking.reducing import Reduction
    from irtool.cli.show.progress import Progress
    from irtool.cli.validating import read_verified
    from irtool.ir.edits import clone_graph
    from irtool.ir.graph import counted

    if bool(arguments.test) == bool(arguments.passes):
        raise UsageError("give either --test CMD or --passes: one of them says what a bad graph is", code="E0804")
    _, module = read_verified(arguments.file, console)
    graph = module.graph()
    test = by_command(arguments.test, arguments.timeout) if arguments.test else by_passes(arguments, console)
    if arguments.test and (said := verdict(arguments.test, str(graph), arguments.timeout)) not in (GOOD, BAD):
        console.err(f"the command says nothing about the graph: {said}")
        return 1
    if not test(clone_graph(graph)):
        console.err("the graph is not bad to begin with")
        return 1
    before = sum(1 for _ in graph.walk())
    was_interrupted = False
    with Progress(console, "reducing") as progress:
        def on_step(best: Graph, tests: int) -> None:
            progress.step(f"{counted(sum(1 for _ in best.walk()), 'node')} after {counted(tests, 'test')}", tests)
            if arguments.output != "-":
                console.save(arguments.output, str(best), "ir")

        reduction = Reduction(graph, test, on_step)
        on_step(graph, 0)
        try:
            reduction.run()
        except KeyboardInterrupt:
            was_interrupted = True
    best = reduction.best
    console.err(f"{'interrupted: ' * was_interrupted}{counted(before, 'node')}, now {sum(1 for _ in best.walk())}, by "
                f"{counted(reduction.tests, 'test')}")
    console.save(arguments.output, str(best), "ir")
    return 130 if was_interrupted else 0


def by_command(command: str, timeout: float) -> Callable[[Graph], bool]:
    """Does a command call a graph bad?"""
    return lambda graph: verdict(command, str(graph), timeout) == BAD


def by_passes(arguments: Arguments, console: Console) -> Callable[[Graph], bool]:
    """A test: do passes change the results of a graph, or make it invalid?"""
    from irtool.checking.validation import ValidationError
    from irtool.cli.commands.opt import pipeline
    from irtool.cli.validating import validation
    from irtool.ir.errors import Error, VerifyError
    from irtool.ir.module import Module
    from irtool.passmanager import PassManager

    manager = PassManager(pipeline(arguments.passes, console), verify=True)

    def is_bad(graph: Graph) -> bool:
        try:
            manager.run(Module([graph]), validation(arguments, console, None))
        except (ValidationError, VerifyError):
            return True
        except Error:
            return False
        return False

    return is_bad
