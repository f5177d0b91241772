"""`irtool run`: a graph on arrays from an `.npz` and from the command line."""
from __future__ import annotations

from irtool.cli.command import Arguments, Command, Option, Positional, UsageError
from irtool.ir.errors import Error, UnsupportedError, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from irtool.cli.console import Console
    from irtool.cli.watch import Watcher
    from irtool.interop.npz import Archive
    from irtool.ir.graph import Graph, Value
    from irtool.ir.module import Module
    from irtool.testing.compare import Comparison


def run(arguments: Arguments, console: Console) -> int:
    """Bind, run, then show, store or compare the outputs."""
    from irtool.cli.pieces import parse_source
    from irtool.ops.arrays import seeded

    module = parse_source(console.read(arguments.file))
    if arguments.constants:
        from irtool.cli.fmt import attach_constants

        attach_constants(module, arguments.constants, console)
    for path in arguments.load:
        load_python(path, console)
    graph = chosen(module, arguments)
    with seeded(arguments.seed):
        inputs = read_inputs(graph, arguments, console)
        outputs = execute(graph, inputs, arguments, console)
    if arguments.expect:
        code = compare(graph, outputs, arguments, console)
        if arguments.output != "-":
            save(archive_of(graph, outputs), arguments.output)
        return code
    if arguments.output != "-":
        save(archive_of(graph, outputs), arguments.output)
    else:
        show(graph, outputs, arguments, console)
    return 0


# -- what to run
def chosen(module: Module, arguments: Arguments) -> Graph:
    """The graph to run. Raises Error where a name is needed, UnsupportedError for a gradient pair."""
    pairs = [graph.metadata["of"] for graph in module.graphs if "of" in graph.metadata]
    if arguments.pair or arguments.cotangents or pairs and not arguments.graph:
        names = ", ".join(f"--graph {name}" for name in module.names())
        raise UnsupportedError(f"{module.filename}: gradient pairs do not run yet; one graph of it does: {names}")
    if not module.graphs:
        raise Error(f"{module.filename}: no graph in this file")
    if not arguments.graph and len(module.graphs) > 1:
        raise Error(f"{module.filename}: several graphs; choose one: {', '.join(f'--graph {name}' for name in module.names())}")
    return module.graph(arguments.graph)


def load_python(path: str, console: Console) -> None:
    """Execute a Python file of the user's, which registers Python ops. Raises UsageError, or Error with the line that raised."""
    import runpy

    console.read(path)
    try:
        runpy.run_path(path, run_name="irtool_load")
    except (Exception, SystemExit) as error:
        line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == path:
                line = trace.tb_lineno
            trace = trace.tb_next
        raise Error(f"{path}:{line}: {type(error).__name__}: {error}" if line else f"{path}: {type(error).__name__}: {error}") from error


def read_inputs(graph: Graph, arguments: Arguments, console: Console) -> list[Any]:
    """One value per input of the graph, from the file and the literals. Raises Error."""
    from irtool.interop.binding import bind
    from irtool.interop.literal import parse_literal
    from irtool.interop.npz import Archive, DamagedError, decode, read_array

    archive = decode(console.read_bytes(arguments.inputs), arguments.inputs) if arguments.inputs else Archive()
    literals: dict[str, Any] = {}
    for text in arguments.input:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--input: expected NAME=VALUE, not '{text}'")
        if name in literals:
            raise UsageError(f"--input {name}=...: given twice")
        try:
            literals[name] = parse_literal(value, lambda path: read_array(console.read_bytes(path), path))
        except (UsageError, DamagedError):
            raise
        except Error as error:
            raise UsageError(f"--input {name}: {error.message}") from None
    return bind(graph, archive, literals, arguments.cast)


def execute(graph: Graph, inputs: list[Any], arguments: Arguments, console: Console) -> list[Any]:
    """Run under the watchers that were asked for."""
    import gc

    from irtool.cli.watch import Watchers
    from irtool.interpret import run as run_graph

    gc.enable()         # a graph may run for long, unlike other commands
    watchers = make_watchers(arguments, console)
    if not watchers:
        return run_graph(graph, inputs, seed=arguments.seed)
    together = Watchers(watchers)
    try:
        together.start(graph, inputs)
        return run_graph(graph, inputs, seed=arguments.seed, observer=together)
    finally:
        together.finish()


def make_watchers(arguments: Arguments, console: Console) -> list[Watcher]:
    """The watchers that were asked for, the one that may stop the run last."""
    from irtool.cli.watch import Checker, MemoryTracer, Recorder, Tracer

    watchers: list[Watcher] = []
    if arguments.trace:
        watchers.append(Tracer(console.err))
    if arguments.trace_memory:
        watchers.append(MemoryTracer(console.err))
    if arguments.save_intermediates:
        watchers.append(Recorder(lambda archive: save(archive, arguments.save_intermediates)))
    if arguments.check:
        watchers.append(Checker(arguments.check))
    return watchers


# -- what came out
def archive_of(graph: Graph, outputs: list[Any]) -> Archive:
    """The outputs as members `output0`, `output1`, ..."""
    from irtool.interop.npz import Archive
    from irtool.ir.types import TensorType
    from irtool.ops.arrays import dtype_named

    archive = Archive()
    for i, (value, output) in enumerate(zip(graph.outputs, outputs)):
        type = value.type if isinstance(value.type, TensorType) else TensorType()
        archive.put(f"output{i}", output, is_bfloat16=type.dtype == "bfloat16", shape=type.shape or (),
                    dtype=dtype_named(type.dtype or "float32"))
    return archive


def save(archive: Archive, path: str) -> None:
    """Write an archive, whole or not at all. Raises UsageError."""
    from irtool.cli.console import write_whole
    from irtool.interop.npz import encode

    write_whole(path, encode(archive))


def label(i: int, value: Value) -> str:
    """What an output is called: `output0 %y`."""
    return f"output{i} %{value.name}"


def show(graph: Graph, outputs: list[Any], arguments: Arguments, console: Console) -> None:
    """A table on a terminal, lines otherwise, or JSON."""
    from irtool.cli import values

    if arguments.json:
        import json

        records = [{"key": f"output{i}", "name": value.name, "type": str(value.type), "value": values.as_json(output)}
                   for i, (value, output) in enumerate(zip(graph.outputs, outputs))]
        console.out(json.dumps({"schema": 1, "outputs": records}) + "\n")
    elif console.is_terminal():
        rows = [(label(i, value), *values.cells(output)) for i, (value, output) in enumerate(zip(graph.outputs, outputs))]
        values.table(rows, ("output", "type", "value"), console.stdout, console.color)
    else:
        for i, (value, output) in enumerate(zip(graph.outputs, outputs)):
            console.out("\n".join(values.lines(label(i, value), output)) + "\n")


def compare(graph: Graph, outputs: list[Any], arguments: Arguments, console: Console) -> int:
    """Compare with the archive that is expected; 1 where something differs."""
    from irtool.interop.npz import decode
    from irtool.testing.compare import compare_members

    expected = decode(console.read_bytes(arguments.expect), arguments.expect)
    actual = archive_of(graph, outputs)
    found = compare_members(actual.arrays, expected.arrays, arguments.rtol, arguments.atol, actual.none, expected.none,
                            actual.bfloat16 | expected.bfloat16)
    wrong = [key for key, each in found.items() if not each.is_equal]
    if arguments.json:
        import json

        records = [{"key": key, "is_equal": each.is_equal, "reason": each.reason or None, "worst": each.worst,
                    "wrong": each.wrong, "rtol_needed": each.rtol_needed, "atol_needed": each.atol_needed} for key, each in found.items()]
        console.out(json.dumps({"schema": 1, "is_equal": not wrong, "members": records}) + "\n")
        return 1 if wrong else 0
    for key, each in found.items():
        console.out(f"{key}: {'agrees' if each.is_equal else each.reason}\n" + "".join(f"  {line}\n" for line in remedies(each, arguments)))
    console.out(f"{len(found) - len(wrong)} of {len(found)} agree with {arguments.expect}\n")
    return 1 if wrong else 0


def remedies(found: Comparison, arguments: Arguments) -> list[str]:
    """The smallest tolerances that would pass."""
    if found.is_equal or found.worst is None:
        return []
    ways = []
    if found.atol_needed is not None:
        ways.append(f"--atol={found.atol_needed:g}" + (f" --rtol={arguments.rtol:g}" if arguments.rtol is not None else ""))
    if found.rtol_needed is not None:
        ways.append(f"--rtol={found.rtol_needed:g}" + (f" --atol={arguments.atol:g}" if arguments.atol is not None else ""))
    return [f"would pass with {' or '.join(ways)}"] if ways else ["no tolerance would pass"]


# -- flags
def checks(text: str) -> tuple[str, ...]:
    """A converter: `nan,inf` as words."""
    words = tuple(word.strip() for word in text.split(","))
    for word in words:
        if word not in ("nan", "inf"):
            raise ValueError(f"expected nan, inf or nan,inf, not '{word}'{did_you_mean(word, ('nan', 'inf'))}")
    return words


def tolerance(text: str) -> float:
    """A converter: a number that is not negative."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not number >= 0:
        raise ValueError(f"expected a number that is not negative, not '{text}'")
    return number


def seed(text: str) -> int:
    """A converter: an integer that is not negative."""
    if not text.isdecimal() or len(text) > 40:
        raise ValueError(f"expected an integer that is not negative, not '{text[:40]}'")
    return int(text)


INPUTS, OUTPUTS, WATCH = "Inputs", "Outputs", "Watching the run (on standard error)"

COMMAND = Command(
    run, usage="GRAPH.ir [INPUTS.npz]",
    positionals=[Positional("file", "?", default="-", help="IR text (-: standard input, the default)"),
                 Positional("inputs", "?", help="arrays by input name, or input0, input1, ...; or 0, 1, ...; or arr_0, arr_1, ...")],
    options=[
        Option("-i --input", "a value: x=2x3xf32=0, n=3, l=[1,2], x=@file.npy; replaces or adds; repeat", value="NAME=VALUE", many=True,
               group=INPUTS),
        Option("--cast", "convert inputs to the declared dtypes", group=INPUTS),
        Option("--constants", "arrays of the constants that the text has as <Tensor>", value="FILE.npz", group=INPUTS),
        Option("--graph", "run this graph of the file, as it stands", value="NAME", group=INPUTS),
        Option("--pair", "run this gradient pair (not yet)", value="NAME", group=INPUTS),
        Option("--cotangents", "vjp0, vjp1, ... of a pair (not yet)", value="FILE.npz", group=INPUTS),
        Option("--seed", "seed of random operators and rand/randn literals (0)", value="N", convert=seed, default=0, group=INPUTS),
        Option("--load", "execute a Python file first: it registers Python ops; repeat", value="FILE.py", many=True, group=INPUTS),
        Option("-o --output", "store output0, output1, ... instead of showing them", value="FILE.npz", default="-", group=OUTPUTS),
        Option("--json", "as JSON", group=OUTPUTS),
        Option("--expect", "compare with these members; exit 1 where they differ", value="FILE.npz", group=OUTPUTS),
        Option("--rtol", "relative tolerance (default: by dtype, integers exactly)", value="X", convert=tolerance, group=OUTPUTS),
        Option("--atol", "absolute tolerance", value="X", convert=tolerance, group=OUTPUTS),
        Option("--check", "stop at the first value that holds one: nan, inf or nan,inf", value="WHAT", convert=checks, default=(),
               group=WATCH),
        Option("--save-intermediates", "store every value under its name", value="FILE.npz", group=WATCH),
        Option("--trace", "a line per node that ran", group=WATCH),
        Option("--trace-memory", "bytes alive after each node, and the peak", group=WATCH),
    ],
    details="""
  irtool run graph.ir inputs.npz -o out.npz
  irtool run graph.ir --input x=2x3xf32=randn --seed 7 --check nan,inf
  irtool run graph.ir inputs.npz --expect out.npz --rtol 1e-4
""")
