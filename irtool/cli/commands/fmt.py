"""`irtool fmt`: print IR text canonically, in its dialect or in another."""
from __future__ import annotations

from irtool.cli.command import Arguments, command, option
from irtool.cli.constants_file import keep, keep_constants, take, take_constants
from irtool.cli.exit_errors import UsageError
from irtool.cli.inputs import state_loaded
from irtool.cli.many import each_file, is_asked, json_option, many_options
from irtool.cli.opener import ArchiveSource, archive_at
from irtool.cli.options import OUTPUT, files_argument, output_option, state_option, syntax_option, types_option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.ir.source import SourceFile


@command("fmt")
@files_argument
@syntax_option
@types_option
@option("--renumber", is_flag=True, group=OUTPUT, help="rename values without a name to %0, %1, ... in order of definition")
@option("--check", is_flag=True, group=OUTPUT, help="write nothing; exit with 1 and show a diff if a file would change")
@option("-i", "--in-place", is_flag=True, group=OUTPUT, help="write each file back")
@option("--constants", metavar="FILE.npz", group=OUTPUT,
        help="write large tensor constants to this npz, or read them from it if it exists")
@state_option
@output_option
@many_options
@json_option
def fmt(arguments: Arguments, console: Console) -> int:
    """Format each file; `--check` only reports which would change."""
    if arguments.in_place and arguments.check:
        raise UsageError("--in-place and --check exclude each other")
    for name in ("in_place", "check"):
        if arguments.given >= {name, "output"}:
            raise UsageError(f"--{name.replace('_', '-')} and --output exclude each other")
    if is_asked(arguments.files, arguments):
        if arguments.constants:
            raise UsageError("--constants takes one file at a time")
        return each_file("fmt", arguments.files, arguments, console, writes=not (arguments.check or arguments.in_place))
    path = arguments.files[0] if arguments.files else "-"
    if arguments.in_place and path == "-":
        raise UsageError("--in-place: standard input is not a file")
    if arguments.in_place and archive_at(path) is not None:
        raise UsageError(f"--in-place: {path} is an archive, which text would replace; --output names another file")
    source = console.read(path)
    if arguments.check and isinstance(source, ArchiveSource):
        raise UsageError(f"--check: {path} is an archive, and no text that could be reformatted")
    text = formatted(source, path, arguments, console)
    if not arguments.check and not arguments.in_place:
        console.save(arguments.output, text, "ir")
    elif text != source.text:
        if arguments.check:
            tell_difference(source, text, console)
            return 1
        console.save(path, text, "ir")
    return 0


def formatted(source: SourceFile, path: str, arguments: Arguments, console: Console) -> str:
    """The formatted text of the file at `path`. Raises ParseError; Error if the dialect cannot express the graph."""
    from irtool.cli.source_places import parse_source
    from irtool.text.dialect_conversion import convert
    from irtool.text.tidy import renumber, tidy

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
        output = path if arguments.in_place or arguments.check else arguments.output
        keep(module, taken, path, output, console, is_written=not arguments.check)
    return str(module)


def tell_difference(source: SourceFile, text: str, console: Console) -> None:
    """Show the changes that `fmt` would make, as a diff."""
    from difflib import unified_diff

    console.err(f"{source.name}: would be reformatted")
    lines = unified_diff(source.text.split("\n"), text.split("\n"), source.name, f"{source.name} (formatted)", lineterm="")
    console.show_diff(lines)
