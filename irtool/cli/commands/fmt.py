"""`irtool fmt`: print IR text canonically, in its dialect or in another."""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command, option
from irtool.cli.constants_file import keep, keep_constants, take, take_constants
from irtool.cli.exit_errors import UsageError
from irtool.cli.inputs import state_loaded
from irtool.cli.options import OUTPUT, output_option, state_option, syntax_option
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.ir.source import SourceFile


@command("fmt")
@argument("files", nargs=-1, metavar="FILE", help="IR text (-: standard input, the default)")
@syntax_option
@option("--renumber", is_flag=True, group=OUTPUT, help="rename values without a name to %0, %1, ... in order of definition")
@option("--check", is_flag=True, group=OUTPUT, help="write nothing; exit with 1 and show a diff if a file would change")
@option("-i", "--in-place", is_flag=True, group=OUTPUT, help="write each file back")
@option("--constants", metavar="FILE.npz", group=OUTPUT,
        help="write large tensor constants to this npz, or read them from it if it exists")
@state_option
@output_option
def fmt(arguments: Arguments, console: Console) -> int:
    """Format each file; `--check` only reports which would change."""
    files = list(arguments.files) or ["-"]
    if arguments.in_place and "-" in files:
        raise UsageError("--in-place: standard input is not a file")
    if arguments.in_place and arguments.check:
        raise UsageError("--in-place and --check exclude each other")
    if arguments.in_place and "output" in arguments.given:
        raise UsageError("--in-place and --output exclude each other")
    if len(files) > 1 and arguments.constants:
        raise UsageError("--constants takes one file at a time")
    code = 0
    results = []
    for path in files:
        try:
            source = console.read(path)
            text = formatted(source, path, arguments, console)
        except UsageError:
            raise
        except Error as error:
            console.report(error)
            code = 1
            continue
        if arguments.check:
            if text != source.text:
                code = 1
                tell_difference(source, text, console)
        elif arguments.in_place:
            if text != source.text:
                console.save(path, text)
        else:
            results.append(text)
    if results and not code:
        console.save(arguments.output, "".join(results), "ir")
    return code


def formatted(source: SourceFile, path: str, arguments: Arguments, console: Console) -> str:
    """The formatted text of the file at `path`. Raises ParseError; Error if the dialect cannot express the graph."""
    from irtool.cli.source_places import parse_source
    from irtool.text.convert import convert, renumber, tidy

    module = parse_source(source)
    taken = None if arguments.constants else take(module, source, path, console, is_needed=False)
    if arguments.constants:
        take_constants(module, arguments.constants, console)
    if arguments.load_state:
        module, loaded = state_loaded(module, source, arguments, console)
        taken = None if arguments.constants else loaded
    if arguments.syntax:
        convert(module, arguments.syntax)
    for graph in module.graphs:
        if not graph.dialect.uses_lists:    # the dialects of 2017 differ only in layout
            tidy(graph)
        if arguments.renumber:
            renumber(graph)
    if arguments.constants and not arguments.check:
        keep_constants(module, arguments.constants)
    if taken is not None:
        keep(module, taken, path, path if arguments.in_place or arguments.check else arguments.output, console)
    return str(module)


def tell_difference(source: SourceFile, text: str, console: Console) -> None:
    """Show the changes that `fmt` would make, as a diff."""
    from difflib import unified_diff

    console.err(f"{source.name}: would be reformatted")
    lines = unified_diff(source.text.split("\n"), text.split("\n"), source.name, f"{source.name} (formatted)", lineterm="")
    console.show_diff(lines)
