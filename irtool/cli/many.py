"""A command on many files: a case per file, which a process runs as the same command on that file alone."""
from __future__ import annotations

import os
from collections.abc import Iterable

from irtool.cli.command import Arguments, Converted, option, together
from irtool.cli.converters import at_least, tolerance
from irtool.cli.exit_errors import UsageError
from irtool.ir.errors import Error
from irtool.ir.source import Diagnostic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.corpora.outcomes import Row
    from irtool.corpora.selection import Case

MANY = "Many files"
json_option = option("--json", is_flag=True, group=MANY, help="print how each case ended as JSON")
many_options = together(
    option("--jobs", metavar="N", type=Converted(at_least(1)), group=MANY, help="processes (default: one per core)"),
    option("--timeout", metavar="SECONDS", type=Converted(tolerance), default=300.0, group=MANY,
           help="end a case that takes longer, and go on (300)"),
    option("--scheduler", metavar="ADDRESS", group=MANY, help="run the cases on a Dask cluster: tcp://HOST:8786"),
    option("--junit", metavar="FILE", group=MANY, help="write how each case ended to this file, as JUnit's XML"),
    option("--resume", metavar="FILE", group=MANY, help="record finished cases in FILE, and skip those recorded there"),
)
FLAGS = ("jobs", "timeout", "scheduler", "junit", "resume")
HERE = {"--jobs", "--timeout", "--scheduler", "--junit", "--resume", "--json", "--output", "--color"}
"""Options that a case does not take over."""
WRITING = ("write_reproducer", "run_reproducer", "dump_dir", "save_intermediates")
"""Options that name a file, which each case would write."""


def is_asked(words: Iterable[str], arguments: Arguments) -> bool:
    """Do the words name several files, or are there options for many files?"""
    from irtool.corpora.selection import is_many

    return any(flag in arguments.given for flag in (*FLAGS, "json")) or is_many(words)


def is_folder(arguments: Arguments) -> bool:
    """Is the graph a folder of cases? Raises UsageError for options that only folders have."""
    if os.path.isdir(arguments.file):
        return True
    for flag in FLAGS:
        if flag in arguments.given:
            raise UsageError(f"--{flag} is for a folder of cases, and {arguments.file} is none")
    return False


def each_file(command: str, files: tuple[str, ...], arguments: Arguments, console: Console, writes: bool = True) -> int:
    """Run a command that rewrites graphs on each file; the results go to the folder of `--output`. Raises UsageError.

    writes: False if the command writes into the files themselves, or nothing; in folders it looks at texts alone then.
    """
    from irtool.corpora.selection import GRAPHS, TEXTS, Case, is_many

    folder = arguments.output if writes else None
    if folder == "-":
        what = "the results of many files"
        if not is_many(files):
            asking = next(flag for flag in (*FLAGS, "json") if flag in arguments.given)
            what = f"--{asking} is for many files, whose results"
        if files != ("-",):
            listed([each for each in files if not os.path.isdir(each)], None, GRAPHS)     # raises for a name of nothing
        raise UsageError(f"{what} go to a folder: irtool {command} ... -o DIR{arguments.after_equals}")
    cases = []
    for path, name in listed(files, folder, GRAPHS if writes else TEXTS):
        output = None if folder is None else os.path.join(folder, name)
        if output is not None and command == "fmt" and output.endswith(".pt"):
            output = f"{output.removesuffix('.pt')}.ir"
        words = (command, *options(arguments), *([f"--output={output}"] if output else []), "--", path)
        cases.append(Case(name, words, (path,), output))
    return run_cases(command, cases, arguments, console)


def each_case(command: str, folder: str, arguments: Arguments, console: Console) -> int:
    """A command that runs graphs, on each case of a folder. Raises UsageError."""
    from collections import Counter

    from irtool.corpora.selection import GRAPHS, Case, arrays_beside

    if arguments.inputs:
        raise UsageError(f"{folder} is a folder of cases, which have their inputs beside them: unexpected argument '{arguments.inputs}'",
                         code="E0804")
    runs = command == "run"
    results: str | None = arguments.output if runs and arguments.output != "-" else None
    files = listed([folder], results, GRAPHS)
    graphs = Counter(os.path.dirname(path) for path, _ in files)
    cases = []
    for path, name in files:
        inputs, expected = arrays_beside(path, graphs[os.path.dirname(path)] == 1)
        output = None if results is None else os.path.join(results, f"{os.path.splitext(name)[0]}.npz")
        words = [command, *options(arguments)]
        if expected is not None and runs and "expect" not in arguments.given:
            words.append(f"--expect={expected}")
        if output is not None:
            words.append(f"--output={output}")
        cases.append(Case(name, (*words, "--", path, *([inputs] if inputs else [])), tuple(filter(None, (path, inputs, expected))), output))
    return run_cases(command, cases, arguments, console)


def listed(words: Iterable[str], results: str | None, endings: tuple[str, ...]) -> list[tuple[str, str]]:
    """As `graph_files`, but words that name nothing are wrong usage. Raises UsageError."""
    from irtool.corpora.selection import graph_files

    if "-" in (words := list(words)):
        raise UsageError("standard input cannot be one of many files")
    try:
        return graph_files(words, results, endings)
    except Error as error:
        raise UsageError(error.message, code=error.code) from None


def options(arguments: Arguments) -> list[str]:
    """The options as they were written, for each case."""
    for name in WRITING:
        if name in arguments.given:
            raise UsageError(f"--{name.replace('_', '-')} takes one file at a time")
    return [word for word in arguments.option_words if word.partition("=")[0] not in HERE]


def run_cases(command: str, cases: list[Case], arguments: Arguments, console: Console) -> int:
    """Run the cases; print failures at once, and a summary line at the end. Returns 1 if a case failed. Raises UsageError."""
    from contextlib import ExitStack
    from shlex import join
    from time import perf_counter

    from irtool.cli.show.progress import Progress
    from irtool.corpora.children import Request
    from irtool.corpora.outcomes import Journal, Row, as_json, junit, on_cluster, on_this_machine, outcomes, summary

    if arguments.scheduler and arguments.jobs:
        raise UsageError("--jobs and --scheduler exclude each other: the cluster says how many cases it runs at once")
    prepare(cases)
    start = perf_counter()
    rows: dict[str, Row] = {}
    with ExitStack() as stack:
        try:
            journal = stack.enter_context(Journal(arguments.resume)) if arguments.resume else None
            waiting = []
            for case in cases:
                if journal is not None and (row := journal.row(case)) is not None:
                    rows[case.name] = row
                    show(row, console)
                else:
                    waiting.append(case)
            place = on_cluster(arguments.scheduler) if arguments.scheduler else on_this_machine(
                max(1, min(arguments.jobs or cores(), len(waiting))))
            progress = stack.enter_context(Progress(console, "", len(cases)))
            progress.step(f"irtool {command}", len(rows))
            submit = stack.enter_context(place)
        except Error as error:
            raise UsageError(error.message, code=error.code) from None
        folder = os.getcwd()
        for case, answer in outcomes(waiting, lambda case: Request(in_process, case.words, arguments.timeout, folder), submit):
            row = Row(case.name, answer.status, answer.code, round(answer.seconds, 3), answer.messages, join(("irtool", *case.words)))
            rows[case.name] = row
            if journal is not None:
                journal.add(case, row)
            show(row, console)
            progress.step(case.name, len(rows))
    seconds = round(perf_counter() - start, 3)
    ordered = [rows[case.name] for case in cases]
    if arguments.junit:
        console.save(arguments.junit, junit(command, ordered, seconds))
    if arguments.json:
        import json

        console.out(json.dumps(as_json(command, ordered, seconds)) + "\n")
    else:
        console.tell(summary(ordered, seconds) + "\n")
    return 0 if all(row.status == "ok" for row in ordered) else 1


def prepare(cases: list[Case]) -> None:
    """Make the folders of the results. Raises UsageError if a result would replace a file that is read, or another result."""
    read = {os.path.realpath(path) for case in cases for path in case.files}
    written: dict[str, str] = {}
    for case in cases:
        if case.output is None:
            continue
        if os.path.realpath(case.output) in read:
            raise UsageError(f"{case.output} would be written over, and is read: choose another folder")
        other = written.setdefault(case.output, case.name)
        if other != case.name:
            raise UsageError(f"{other} and {case.name} would both be written to {case.output}")
    for folder in sorted({os.path.dirname(output) for output in written}):
        try:
            os.makedirs(folder or ".", exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write {folder}: {(error.strerror or str(error)).lower()}", code="E0708") from None


def show(row: Row, console: Console) -> None:
    """Messages of a case that is not well, and how to see them again; of so many cases as errors are shown."""
    if row.status == "ok":
        return
    from irtool.corpora.outcomes import WORDS

    again = Diagnostic("note", f"to see it again: {row.command}")
    first, _, rest = row.messages.partition("\n")
    if row.status == "failed":
        first, rest = "", row.messages
    console.report(Diagnostic("error", f"{row.name}: {WORDS[row.status]}{': ' if first else ''}{first}", notes=[again]))
    if rest and console.errors <= console.max_errors:
        console.err(rest)


def in_process(words: tuple[str, ...]) -> tuple[int, str]:
    """Run a command line in this process. Returns its exit code, and its text on standard error. The result is written by `--output`
    only."""
    import io
    import warnings
    from contextlib import redirect_stderr, redirect_stdout

    from irtool.cli.main import main

    result, messages = io.StringIO(), io.StringIO()
    with redirect_stdout(result), redirect_stderr(messages), warnings.catch_warnings():     # of prim::Print
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *place: print(f"warning: {message}", file=messages)
        code = main(words, io.BytesIO(), result, messages)
    # a difference that `--check` or `--expect` shows is a result
    return code, messages.getvalue() + (result.getvalue() if code else "")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
