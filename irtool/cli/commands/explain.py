"""`irtool explain`: the meaning of an error code, the smallest example of the error, and what to do."""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command, option
from irtool.cli.exit_errors import UsageError
from irtool.ir.errors import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.cli.error_codes import Entry


@command("explain", epilog="""
  irtool explain E0103
  irtool explain
""")
@argument("code", metavar="CODE", required=False, help="the code at the end of a message: E0103; without it, all codes are listed")
@option("--json", is_flag=True, help="print a JSON object")
def explain(arguments: Arguments, console: Console) -> int:
    """List all codes, or explain one."""
    from irtool.cli.error_codes import GROUPS, read_entries

    entries = read_entries()
    code = arguments.code.strip("[]").upper() if arguments.code is not None else None
    if code is not None and code not in entries:
        raise UsageError(f"no error has the code '{arguments.code}'{did_you_mean(code, entries)}", code="E0808")
    chosen = list(entries.values()) if code is None else [entries[code]]
    if arguments.json:
        import json

        console.out(json.dumps({"schema": 1, "errors": [each.as_dict() for each in chosen]}, indent=1, ensure_ascii=False) + "\n")
    elif code is not None:
        console.out(explained(chosen[0]))
    elif console.is_terminal():
        from irtool.cli.show.tables import draw, table

        draw(console, table([(each.code, each.title, GROUPS[each.code[:3]]) for each in chosen], ("code", "title", "group")))
    else:
        console.out("".join(f"{each.code}  {each.title}\n" for each in chosen))
    return 0


def explained(entry: Entry) -> str:
    """The explanation of one code."""
    out = [f"{entry.code}: {entry.title}", "", entry.meaning, "", "What to do", "", entry.remedy, "", "Example", "", f"  $ {entry.command}"]
    for name, text in entry.files.items():
        out += ["", f"  {name}:", *(f"    {line}".rstrip() for line in text.rstrip("\n").split("\n"))]
    return "\n".join(out) + "\n"
