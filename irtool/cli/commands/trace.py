"""`irtool trace`: trace one call of a Python function over tensors to a graph."""
from __future__ import annotations

from irtool.cli import inputs as graph_inputs
from irtool.cli.command import Arguments, argument, command
from irtool.cli.exit_errors import UsageError
from irtool.cli.loading import load_python
from irtool.cli.options import input_option, seed_option, traced_options
from irtool.cli.source_places import placed
from irtool.cli.traced import deliver
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from irtool.cli.console import Console
    from irtool.ir.graph import Graph


@command("trace", epilog="""
Sizes and numbers that the function reads from its tensors are constants of the graph. A warning reports branches on elements.

  irtool trace model.py:loss inputs.npz -o loss.ir
  irtool trace model.py:loss -i w=2x3xf32=randn -i x=3xf32=randn
""")
@argument("function", metavar="FILE.py:FUNCTION", help="a Python file, which is executed, and a function of irtool tensors in it")
@argument("inputs", metavar="INPUTS.npz", required=False,
          help="arrays by parameter, or input0, input1, ...; or 0, 1, ...; or arr_0, arr_1, ...")
@input_option
@seed_option
@traced_options
def trace(arguments: Arguments, console: Console) -> int:
    """Execute the file, trace the function on the inputs, and print the graph."""
    import warnings

    from irtool.dispatch.tracer import TraceWarning
    from irtool.dispatch.tracer import trace as trace_call
    from irtool.interop.binding import bind
    from irtool.ops.arrays import seeded

    function, required, optional = load_function(arguments.function, console)
    with seeded(arguments.seed), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TraceWarning)
        archive, literals = graph_inputs.read_values(arguments, console)
        settings = {name: literals.pop(name) for name in optional if name in literals and is_setting(literals[name])}
        more = [name for name in optional if name in literals or name in archive.arrays]
        values = bind(untyped([*required, *more]), archive, literals)

        def call(*args: Any) -> Any:
            return function(*args[:len(required)], **dict(zip(more, args[len(required):], strict=True)), **settings)
        try:
            graph = trace_call(call, values, [*required, *more])
        except (Exception, SystemExit) as error:
            raise placed(error, console, arguments.function.rpartition(":")[0], arguments.function) from error
    for message in dict.fromkeys(str(each.message) for each in caught if issubclass(each.category, TraceWarning)):
        console.warn(message, "W0105")
    deliver(graph, arguments, console)
    return 0


def is_setting(value: Any) -> bool:
    """Is an argument a number, string, list or None, and so a constant of the trace?"""
    return not hasattr(value, "dtype")


def load_function(word: str, console: Console) -> tuple[Callable[..., Any], list[str], list[str]]:
    """`model.py:loss`: the function, its file having been executed, and the names of its parameters without and with a default.

    Raises Error.
    """
    import inspect

    path, colon, name = word.rpartition(":")
    if not colon or not path or not name.isidentifier():
        raise UsageError(f"expected FILE.py:FUNCTION, not '{word}'", code="E0805")
    names = load_python(path, console, "irtool_trace")
    function = names.get(name)
    if not callable(function):
        from irtool.ir.errors import did_you_mean

        functions = [key for key, value in names.items() if inspect.isfunction(value) and not key.startswith("_")]
        choices = f", expected one of: {', '.join(functions[:12])}" if functions else ""
        raise Error(f"{path}: there is no function '{name}'{did_you_mean(name, functions)}{choices}", code="E0605")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise Error(f"{path}: '{name}' does not say its parameters", code="E0605") from None
    required = [p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    optional = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.default is not p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return function, required, optional


def untyped(names: list[str]) -> Graph:
    """A graph with inputs of type Tensor, to which arrays are bound."""
    from irtool.ir import types
    from irtool.ir.dialect import LATEST
    from irtool.ir.graph import Graph

    graph = Graph(LATEST)
    for name in names:
        graph.block.add_input(name, types.TENSOR)
    return graph
