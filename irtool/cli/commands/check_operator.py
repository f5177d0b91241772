"""`irtool check-operator`: are operators of one's own right?"""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command, option
from irtool.cli.exit_errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console


@command("check-operator", epilog="""
Checks on each sample of an operator: it writes into no argument; interpreter and plans agree; its gradient formula returns the result of
its function; gradients agree with finite differences (to order 2); a batch under vmap has the results of its slices.

  irtool check-operator my.py
  irtool check-operator my::gelu --load my.py
""")
@argument("what", metavar="FILE.py", help="all operators that a file defines; or the name of one, my::gelu")
@option("--json", is_flag=True, help="print a JSON object")
def check_operator(arguments: Arguments, console: Console) -> int:
    """Check operators on their samples. Returns 1 if something is wrong."""
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
