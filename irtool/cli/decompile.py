"""`irtool decompile`: a graph as TorchScript source."""
from __future__ import annotations

from irtool.cli.beside import take
from irtool.cli.command import Arguments, Command, Option, Positional
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console


def run(arguments: Arguments, console: Console) -> int:
    """Print every graph of the file as a function, or the one asked for."""
    from irtool.cli.pieces import parse_source
    from irtool.torchscript.printing.to_python import to_script

    source = console.read(arguments.file)
    module = parse_source(source)
    take(module, source, arguments.file, console, is_needed=False)
    if not module.graphs:
        raise Error(f"{module.filename}: no graph in this file")
    if arguments.graph:
        text = to_script(module.graph(arguments.graph), arguments.graph)
    else:
        text = to_script(module)
    console.save(arguments.output, text)
    return 0


COMMAND = Command(
    run, usage="[FILE]",
    positionals=[Positional("file", "?", default="-", help="IR text (-: standard input, the default)")],
    options=[
        Option("--graph", "only the graph of this name", value="NAME"),
        Option("-o --output", "where the source goes (-: standard output)", value="FILE", default="-"),
    ])
