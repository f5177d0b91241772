"""`irtool decompile`: a graph as TorchScript source."""
from __future__ import annotations

from irtool.cli.command import Arguments, command, option
from irtool.cli.constants_file import take
from irtool.cli.opener import archive_at, program_in
from irtool.cli.options import output_option, text_argument
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console


@command("decompile")
@text_argument
@option("--graph", metavar="NAME", help="print only the graph of this name")
@output_option
def decompile(arguments: Arguments, console: Console) -> int:
    """Print every graph of the file, or one of them, as a function."""
    from irtool.cli.inputs import say_what_is_rounded
    from irtool.cli.source_places import parse_source
    from irtool.ir.module import Module
    from irtool.torchscript.printing.to_python import to_script

    place = archive_at(arguments.file)
    if place is not None:
        console.save(arguments.output, program_in(place[0]).code(place[1] or None), "python")
        return 0
    source = console.read(arguments.file)
    module = parse_source(source)
    take(module, source, arguments.file, console, is_needed=False)
    if not module.graphs:
        raise Error(f"{module.filename}: no graph in this file", code="E0102")
    graph = module.graph(arguments.graph) if arguments.graph else None
    say_what_is_rounded(module if graph is None else Module([graph]), console)
    text = to_script(module if graph is None else graph, arguments.graph)
    console.save(arguments.output, text, "python")
    return 0
