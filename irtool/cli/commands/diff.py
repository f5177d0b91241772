"""`irtool diff`: the difference of two graphs, apart from the names of values."""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command, option
from irtool.cli.exit_errors import UsageError
from irtool.cli.options import types_option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.checking.graph_diff import Difference
    from irtool.cli.console import Console


@command("diff", epilog="""
Names of values, and comments about sources, are ignored. Of files with several graphs, those with equal names are compared. Exit code 0:
the graphs are equal, 1: they differ.

  irtool diff before.ir after.ir
  irtool diff expected/ results/
""")
@argument("a", metavar="A", help="IR text, an archive, or a folder of them")
@argument("b", metavar="B", help="the same; of two folders, files with equal names are compared")
@option("--full", is_flag=True, help="show all lines, not only those around changes")
@option("-q", "--quiet", is_flag=True, help="print nothing; the exit code is the answer")
@types_option
@option("--json", is_flag=True, help="print a JSON object")
def diff(arguments: Arguments, console: Console) -> int:
    """Compare two files, or two folders file by file."""
    from os.path import isdir

    if isdir(arguments.a) != isdir(arguments.b):
        raise UsageError("diff takes two files, or two folders", code="E0804")
    pairs = in_folders(arguments.a, arguments.b, console) if isdir(arguments.a) else [(arguments.a, arguments.b)]
    missing = [each for pair in pairs for each in pair if each.startswith("?")]
    rows: list[tuple[str, str, Difference]] = []
    for a, b in pairs:
        if "?" not in (a[:1], b[:1]):
            rows += [(a, b, each) for each in differences(a, b, arguments.full, console)]
    if arguments.json:
        import json

        graphs = [{"a": a, "b": b, "graph": row.name, "is_equal": row.is_equal, "removed": row.removed, "added": row.added}
                  for a, b, row in rows]
        is_equal = not missing and all(row.is_equal for _, _, row in rows)
        report = {"schema": 1, "is_equal": is_equal, "graphs": graphs, "missing": [each[1:] for each in missing]}
        console.out(json.dumps(report, indent=1) + "\n")
    elif not arguments.quiet:
        for each in missing:
            console.tell(f"only in one folder: {each[1:]}\n")
        for a, b, row in rows:
            name = f" {row.name}" if row.name else ""
            if not row.is_equal:
                console.out_diff([f"--- {a}{name}", f"+++ {b}{name}", *row.lines])
    return int(bool(missing) or not all(row.is_equal for _, _, row in rows))


def in_folders(a: str, b: str, console: Console) -> list[tuple[str, str]]:
    """The files of two folders by name; a `?` precedes one that the other folder lacks. Raises UsageError if there are none."""
    from pathlib import Path

    names = sorted({path.name for folder in (a, b) for path in Path(folder).iterdir() if path.suffix in (".ir", ".pt")})
    if not names:
        raise UsageError(f"neither {a} nor {b} contains *.ir or *.pt", code="E0701")
    return [tuple([str(Path(folder) / name) if (Path(folder) / name).exists() else f"?{Path(other) / name}"     # type: ignore[misc]
                   for folder, other in ((a, b), (b, a))]) for name in names]


def differences(a: str, b: str, is_full: bool, console: Console) -> list[Difference]:
    """The graphs of two files, by name; those that only one has differ as a whole. Raises Error."""
    from irtool.checking.graph_diff import CONTEXT, Difference, compare_graphs
    from irtool.cli.source_places import parse_source

    ours, theirs = ({name: graph for name, graph in zip(module.names(), module.graphs, strict=True)}
                    for module in (parse_source(console.read(path)) for path in (a, b)))
    if len(ours) == len(theirs) == 1:
        (one,), (other,) = ours.values(), theirs.values()
        return [compare_graphs(one, other, None if is_full else CONTEXT)]
    rows = []
    for name in {**ours, **theirs}:
        if name in ours and name in theirs:
            rows.append(compare_graphs(ours[name], theirs[name], None if is_full else CONTEXT))
            rows[-1].name = name
        else:
            sign, graph = ("-", ours[name]) if name in ours else ("+", theirs[name])
            rows.append(Difference(name, [f"{sign}{line}" for line in str(graph).rstrip("\n").split("\n")]))
    return rows
