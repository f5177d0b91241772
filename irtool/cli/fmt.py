"""`irtool fmt`: print IR text canonically, in its own dialect or in another."""
from __future__ import annotations

from irtool.cli.beside import keep, take
from irtool.cli.command import Arguments, Command, Option, Positional, UsageError, dialect_name
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.interop.npz import Archive
    from irtool.ir.module import Module
    from irtool.ir.source import SourceFile


def run(arguments: Arguments, console: Console) -> int:
    """Format each file; `--check` only says which would change."""
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
        console.save(arguments.output, "".join(results))
    return code


def formatted(source: SourceFile, path: str, arguments: Arguments, console: Console) -> str:
    """The text of one file, that at `path`, as it should be. Raises ParseError, or Error where a dialect cannot say it."""
    from irtool.cli.pieces import parse_source
    from irtool.text.convert import convert, renumber, tidy

    module = parse_source(source)
    taken = None if arguments.constants else take(module, source, path, console, is_needed=False)
    if arguments.constants:
        take_constants(module, arguments.constants, console)
    if arguments.syntax:
        convert(module, arguments.syntax)
    for graph in module.graphs:
        if not graph.dialect.uses_lists:    # 2017: its layout is what tells its dialects apart
            tidy(graph)
        if arguments.renumber:
            renumber(graph)
    if arguments.constants and not arguments.check:
        keep_constants(module, arguments.constants)
    if taken is not None:
        keep(module, taken, path, path if arguments.in_place or arguments.check else arguments.output, console)
    return str(module)


def take_constants(module: Module, path: str, console: Console) -> None:
    """Attach the arrays of an npz, where there is one; say which constants stay without."""
    import os

    from irtool.interop.constant_archives import missing

    if os.path.exists(path):
        attach_constants(module, path, console)
    lost = missing(module)
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        console.err(f"warning: {module.filename}: nobody has the numbers of constant %{lost[0]}{more}")


def attach_constants(module: Module, path: str, console: Console) -> None:
    """Attach the arrays of an npz. Raises Error for a key that is no constant, UsageError where the file cannot be read."""
    attach_archive(module, console.read_archive(path), path)


def attach_archive(module: Module, archive: Archive, path: str) -> None:
    """The same of what the file holds."""
    from irtool.interop.constant_archives import attach

    unused = attach(module, archive)
    if unused:
        raise Error(f"{path}: no constant of {module.filename} is called '{unused[0]}'")


def keep_constants(module: Module, path: str) -> None:
    """Write the arrays back under the names that the values have now."""
    from irtool.cli.console import write_whole
    from irtool.interop.constant_archives import collect
    from irtool.interop.npz import encode

    archive = collect(module)
    if len(archive):
        write_whole(path, encode(archive))


def tell_difference(source: SourceFile, text: str, console: Console) -> None:
    """What `fmt` would change, as a diff."""
    from difflib import unified_diff

    console.err(f"{source.name}: would be reformatted")
    lines = unified_diff(source.text.split("\n"), text.split("\n"), source.name, f"{source.name} (formatted)", lineterm="")
    console.show_diff(lines)


COMMAND = Command(
    run, usage="[FILE...]",
    positionals=[Positional("files", "*", help="IR text (-: standard input, the default)")],
    options=[
        Option("--syntax", "print in this dialect (G, F1, D, C2, C1, ... or 2.13, 2020-04, 2019-02, 2018-06)", value="DIALECT",
               convert=dialect_name),
        Option("--renumber", "values without a name become %0, %1, ... in order of definition"),
        Option("--check", "change nothing; exit with 1 and show a diff where a file would change"),
        Option("-i --in-place", "write each file back"),
        Option("--constants", "keep large tensor constants in this npz beside the text, or take them from it", value="FILE.npz"),
        Option("-o --output", "where the result goes (-: standard output)", value="FILE", default="-"),
    ])
