"""The reports of `irtool opt` on its passes: summary lines, IR before and after, diffs, a folder of dumps, timings, bisection.

Reports go to the message stream. Every line that is not IR is a `#` comment, so that irtool can read a dump.
"""
from __future__ import annotations

import os
import re

from irtool.cli.console import encoded, reason, write_whole
from irtool.cli.exit_errors import UsageError
from irtool.passmanager import Observer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from irtool.cli.command import Arguments
    from irtool.cli.console import Console
    from irtool.cli.show.progress import Progress
    from irtool.ir.module import Module
    from irtool.passmanager import PassRecord
    from irtool.pipelines import Step


LONG_CONSTANT = re.compile(r"(.* = (?:prim::)?Constant\[)value=(.*)(\]\(\).*)$")
"""The line of a constant: what stands before `value=`, the value, and what stands behind. What is printed instead cannot be read as IR."""


class Bisection:
    """`--opt-bisect-limit=N`: only the first N (pass, graph) pairs run, counted over the whole process."""

    def __init__(self, limit: int, console: Console) -> None:
        self.limit = limit
        self.console = console
        self.count = 0

    def allows(self, step: Step, graph: str) -> bool:
        self.count += 1
        runs = self.count <= self.limit
        self.console.err(f"bisect: {'running' if runs else 'NOT running'} {self.count} {step.name} on {graph or 'module'}")
        return runs


class Reports(Observer):
    """Watches the passes on one input (a file, or a part of one)."""

    def __init__(self, arguments: Arguments, console: Console, total: int, progress: Progress, place: str, folder: str,
                 bisection: Bisection | None) -> None:
        self.arguments = arguments
        self.console = console
        self.total = total              # passes in the pipeline
        self.progress = progress
        self.place = place              # "in.ir:7: " in front of a line when the file holds several inputs
        self.folder = folder
        self.bisection = bisection
        self.records: list[PassRecord] = []
        self.wants_remarks = arguments.remarks is not None
        self.keeps_text = bool(arguments.print_changed or folder)
        self.text = ""                  # the module as text, when keeps_text

    def start(self, module: Module) -> None:
        """The input, before any pass."""
        if self.keeps_text:
            self.text = str(module)
        if self.folder:
            self._dump("00_input.ir")

    def allows(self, step: Step, graph: str) -> bool:
        return self.bisection is None or self.bisection.allows(step, graph)

    def before(self, record: PassRecord, module: Module) -> None:
        self.console.pass_name = record.step.name
        self.progress.step(record.step.name, record.index - 1)
        if self.arguments.print_before_all or record.step.name in self.arguments.print_before:
            self._print_ir("before", record, str(module))

    def after(self, record: PassRecord, module: Module) -> None:
        self.records.append(record)
        old = self.text
        if self.keeps_text and record.changed:
            self.text = str(module)
        if not self.arguments.quiet:
            self.console.err(f"{self.place}{summary(record)}")
        for remark in record.notes.remarks or ():
            self.console.report(remark)
        self.console.pass_name = ""
        if self.arguments.print_after_all or record.step.name in self.arguments.print_after:
            self._print_ir("after", record, str(module))
        if self.arguments.print_changed:
            self._print_change(record, old)
        if self.folder:
            self._dump(dump_name(record))

    def finish(self) -> None:
        """After the last pass."""
        if self.folder:
            import json

            rows = [{**record.as_dict(), "pipeline": str(record.step), "file": dump_name(record)} for record in self.records]
            self._write("index.json", json.dumps({"schema": 1, "input": "00_input.ir", "passes": rows}, indent=1) + "\n")

    def _print_ir(self, when: str, record: PassRecord, text: str) -> None:
        text = "\n".join(self._elided(text.split("\n")))
        self.console.show_ir(f"# IR {when} {record.step.name} ({record.index} of {self.total})\n{text}")

    def _elided(self, lines: Iterable[str]) -> Iterator[str]:
        """Lines of IR, or of a diff, without the values of constants that are longer than `--print-limit`."""
        limit = self.arguments.print_limit
        for line in lines:
            match = LONG_CONSTANT.match(line) if limit and len(line) > limit else None
            yield line if match is None or len(match[2]) <= limit else f"{match[1]}<{len(match[2])} characters>{match[3]}"

    def _print_change(self, record: PassRecord, old: str) -> None:
        form = self.arguments.print_changed
        if self.text == old:
            if form != "quiet":
                self.console.err(f"# IR after {record.step.name} ({record.index} of {self.total}): unchanged")
        elif form == "full":
            self._print_ir("after", record, self.text)
        else:
            from difflib import unified_diff

            lines = unified_diff(old.split("\n"), self.text.split("\n"), "before", "after", lineterm="")
            self.console.err(f"# IR after {record.step.name} ({record.index} of {self.total}), as a diff")
            self.console.show_diff(self._elided(lines))

    def _dump(self, name: str) -> None:
        self._write(name, self.text)

    def _write(self, name: str, text: str) -> None:
        path = os.path.join(self.folder, name)
        try:
            os.makedirs(self.folder, exist_ok=True)
        except FileExistsError:
            raise UsageError(f"cannot write {path}: {self.folder} is no folder", code="E0708") from None
        except OSError as error:
            raise UsageError(f"cannot write {path}: {reason(error)}", code="E0708") from None
        write_whole(path, encoded(text))


def summary(record: PassRecord) -> str:
    """`03 dce: -12 ops`, or `03 dce: unchanged`."""
    difference = record.ops_after - record.ops_before
    if difference:
        what = f"{difference:+d} op{'s' if abs(difference) > 1 else ''}"
    else:
        what = "changed, as many ops" if record.changed else "unchanged"
    return f"{record.index:02d} {record.step.name}: {what}"


def dump_name(record: PassRecord) -> str:
    """File of a pass's result in `--dump-dir`."""
    return f"{record.index:02d}_{record.step.name}.ir"


def statistics(records: list[PassRecord], form: str) -> str:
    """The report of `--stats`: what each pass counted, as lines or one JSON object."""
    if form == "json":
        import json

        return json.dumps({"schema": 1, "passes": [{"pass": record.step.name, "index": record.index, "counters": record.notes.counters}
                                                   for record in records]})
    return "\n".join(f"{number:8}  {record.index:02d} {record.step.name}: {what}"
                     for record in records for what, number in record.notes.counters.items())


def timing(records: list[PassRecord], form: str) -> str:
    """The report of `--time-passes`: a table, one JSON object, or a trace for Chrome."""
    if form == "chrome":
        from irtool.cli.show.chrome_trace import passes_trace

        return passes_trace(records)
    if form == "json":
        import json

        return json.dumps({"schema": 1, "passes": [record.as_dict() for record in records]})
    rows = [f"{'self ms':>10} {'total ms':>10} {'ops':>17}  pass"]
    for record in records:
        ops = f"{record.ops_before} -> {record.ops_after}"
        rows.append(f"{record.self_ns / 1e6:10.3f} {record.total_ns / 1e6:10.3f} {ops:>17}  {record.index:02d} {record.step.name}")
    self_ns = sum(record.self_ns for record in records)
    total_ns = sum(record.total_ns for record in records)
    rows.append(f"{self_ns / 1e6:10.3f} {total_ns / 1e6:10.3f} {'':>17}  all")
    return "\n".join(rows)


