"""`irtool check-operator`: are operators of one's own right?"""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command, option
from irtool.cli.exit_errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console


@command("check-operator", epilog="""
On each sample that an operator states: it writes into no argument, the interpreter and plans agree, the result of its gradient formula is
that of its function, gradients are slopes (to order 2), and a batch under vmap is its slices.

  irtool check-operator my.py
  irtool check-operator my::gelu --load my.py
""")
@argument("what", metavar="FILE.py", help="all operators that a file defines; or the name of one, my::gelu")
@option("--json", is_flag=True, help="a JSON object")
def check_operator(arguments: Arguments, console: Console) -> int:
    """Try operators on their samples; 1 where something is wrong."""
    from irtool.cli.loading import load_files
    from irtool.cli.show.progress import Progress
    from irtool.ir.errors import did_you_mean
    from irtool.ir.extensions import import_operator
    from irtool.ops.own_operators import OWN
    from irtool.testing.operator_checks import check_operator as check

    import_operator()
    if "::" in arguments.what or arguments.what.startswith("^"):
        if arguments.what not in OWN:
            raise UsageError(f"no operator '{arguments.what}' was added{did_you_mean(arguments.what, OWN)}", code="E0806")
        names = [arguments.what]
    else:
        load_files([arguments.what], console)
        names = [name for name, each in OWN.items() if each.place.file == arguments.what]
        if not names:
            raise UsageError(f"{arguments.what} defines no operator: @irtool.operator(...) does", code="E0806")
    reports = {}
    with Progress(console, "trying operators on their samples", len(names)) as progress:
        for place, name in enumerate(names):
            progress.step(name, place)
            reports[name] = check(name)
    if arguments.json:
        import json

        rows = [{"name": name, "checks": report} for name, report in reports.items()]
        console.out(json.dumps({"schema": 1, "operators": rows}, indent=1) + "\n")
    else:
        for name, report in reports.items():
            console.out(f"{name}: " + ", ".join(f"{check} {'wrong' if problems else 'right'}" for check, problems in report.items()) + "\n")
            console.out("".join(f"  {check}: {problem}\n" for check, problems in report.items() for problem in problems))
    return int(any(problems for report in reports.values() for problems in report.values()))
