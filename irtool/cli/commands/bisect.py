"""`irtool bisect`: which pass of a pipeline is wrong, and which of its changes."""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command, option
from irtool.cli.exit_errors import UsageError
from irtool.cli.options import types_option
from irtool.cli.test_command import BAD, GOOD, command_options, verdict
from irtool.cli.validating import gradients_option, tolerance_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from irtool.checking.validation import Validation
    from irtool.cli.console import Console
    from irtool.ir.module import Module


@command("bisect", epilog="""
Without --test, the graphs are run before and after each pass (as opt --validate does). With --test, CMD is run with the name of a file as
last argument: exit status 0 means good, 125 unknown, any other bad. bisect names the first pass after which the file is bad, and shows the
fewest of its changes that make the file bad. Exit code 0: a pass was named, or none is wrong; 1: not reproduced, since the input is bad
already or its status is unknown, or nothing could be compared.

  irtool bisect --passes=O1 graph.ir
  irtool bisect --passes=O1 --test ./check.sh graph.ir
""")
@argument("file", metavar="FILE", default="-", help="IR text (-: standard input, the default)")
@argument("inputs", metavar="INPUTS.npz", required=False, help="arrays to run on; without them inputs are made from the types")
@option("-p", "--passes", metavar="PIPELINE", multiple=True, help="passes in order, or a preset; repeat to add")
@command_options
@gradients_option
@tolerance_options
@types_option
@option("--json", is_flag=True, help="print a JSON object")
def bisect(arguments: Arguments, console: Console) -> int:
    """Name the first pass that is wrong, and the fewest of its changes that are."""
    from irtool.checking.changes import Changes, Snapshot
    from irtool.checking.graph_diff import compare_graphs
    from irtool.cli.commands.opt import pipeline
    from irtool.cli.validating import read_verified, say_what_was_not_run, validation
    from irtool.passmanager import PassManager

    steps = pipeline(arguments.passes, console)
    if not steps:
        raise UsageError("--passes is missing: which passes should be looked at?", code="E0804")
    _, module = read_verified(arguments.file, console)
    checked = validation(arguments, console, arguments.inputs)
    from irtool.cli.show.progress import Progress

    if arguments.test and (said := verdict(arguments.test, str(module), arguments.timeout)) != GOOD:
        console.err("the file is bad before any pass" if said == BAD else f"the command says nothing about the file: {said}")
        return 1
    if not arguments.test:
        checked.start(module)
    with Progress(console, "running passes", len(steps)) as progress:
        for index, step in enumerate(steps, 1):
            progress.step(step.name, index - 1)
            before = Snapshot(module)
            manager = PassManager([step])
            reason = by_command(arguments, manager, module) if arguments.test else by_results(checked, manager, module)
            if reason:
                break
        else:
            index, reason = 0, ""
    say_what_was_not_run(checked, console, f"them as an argument: irtool bisect {arguments.file} INPUTS.npz")
    changes, chosen, rows = None, [], []
    if reason:
        changes = Changes(before, Snapshot(module), is_wrong(reason, arguments, checked))
        chosen = changes.smallest()
        old, new = changes.module([]), module if chosen == changes.all else changes.module(chosen)
        rows = [row for row in map(compare_graphs, old.graphs, new.graphs) if not row.is_equal]
    if arguments.json:
        import json

        report = {"schema": 1, "pass": steps[index - 1].name if reason else None, "index": index or None, "reason": reason or None,
                  "changes": len(changes.all) if changes is not None else None, "needed": len(chosen) if reason else None,
                  "diff": [line for row in rows for line in row.lines]}
        console.out(json.dumps(report, indent=1) + "\n")
    elif changes is None:
        console.out(f"{no_pass(len(steps), arguments, checked)}\n")
    else:
        console.tell(f"{index} of {len(steps)}: {reason}\n")
        if len(chosen) < len(changes.all):
            console.out(f"{len(chosen)} of its {len(changes.all)} changes do{'es' if len(chosen) == 1 else ''} that:\n")
        for row in rows:
            console.out_diff([f"--- before {steps[index - 1].name}", f"+++ after {steps[index - 1].name}", *row.lines])
    return 0 if reason or arguments.test or checked.comparisons else 1


def no_pass(count: int, arguments: Arguments, checked: Validation) -> str:
    """The sentence for a pipeline in which no wrong pass was seen."""
    if arguments.test:
        return f"no pass of {count} makes it bad"
    if not checked.comparisons:
        return f"nothing was compared: no pass of {count} is known to be right"
    return f"no pass of {count} changes what is computed{', as far as it was compared' if checked.not_run else ''}"


def is_wrong(reason: str, arguments: Arguments, checked: Validation) -> Callable[[Module], bool]:
    """A test whether a module has the fault that `reason` says. A module that fails has it only if the pass made the graph fail."""
    from irtool.checking.validation import FAILS

    if arguments.test:
        return lambda module: verdict(arguments.test, str(module), arguments.timeout) == BAD
    may_fail = FAILS in reason

    def differs(module: Module) -> bool:
        difference = checked.difference(module)
        return bool(difference) and (may_fail or FAILS not in difference)
    return differs


def by_results(checked: Validation, manager: object, module: Module) -> str:
    """Why a pass is wrong, according to the results of the graphs; empty if it is right."""
    from irtool.checking.validation import ValidationError
    from irtool.ir.errors import VerifyError
    from irtool.passmanager import PassManager

    assert isinstance(manager, PassManager)
    manager.verify = True
    try:
        manager.run(module, checked)
    except ValidationError as error:
        return error.message
    except VerifyError as error:
        return f"the graph after pass '{manager.steps[0].name}' is wrong: {error.message}"
    return ""


def by_command(arguments: Arguments, manager: object, module: Module) -> str:
    """The same, by a command."""
    from irtool.passmanager import PassManager

    assert isinstance(manager, PassManager)
    manager.run(module)
    said = verdict(arguments.test, str(module), arguments.timeout)
    return f"after pass '{manager.steps[0].name}' the command calls the file bad" if said == BAD else ""
