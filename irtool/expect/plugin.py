"""The hooks: collect case files, compare, accept, and report files no test claims.

Note [one writer]: a test that accepts only says so, on its report; the process that prints the summary writes all files at the end,
each whole (temporary sibling, rename). So pytest-xdist workers never write the same file.
"""
from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.expected_diagnostics import check
from irtool.expect.case_compare import difference, normalised, only_names_differ
from irtool.expect.cases import SEPARATOR, Case, CaseError, is_case_file, is_of_others, read_cases, without_blank_end
from irtool.expect.commands import run_pipeline
from irtool.ir.errors import Error
from irtool.ir.source import Diagnostic, SourceFile

FOLDER = "expect"
RECORDER = pytest.StashKey["Recorder"]()
RESULT = pytest.StashKey["Result"]()


class Result:
    """What one test contributes to expect files; its report carries it to the process that writes."""

    def __init__(self) -> None:
        self.claims: list[str] = []
        self.accepted: list[tuple[str, int, str]] = []
        """(file, index of the case or -1 for the whole file, new text)"""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as xdist sends it."""
        return {"claims": self.claims, "accepted": [list(entry) for entry in self.accepted]}


class Recorder:
    """The state of the whole run: claimed files, accepted texts, and tests that could not claim their files. Its methods are hooks."""

    def __init__(self, config: pytest.Config, accept: str) -> None:
        self.config = config
        self.accept = accept            # "", "all" or "names"
        self.claims: dict[str, str] = {}
        self.accepted: list[tuple[str, int, str]] = []
        self.unproved: set[str] = set()         # `<folder>/<Class>.<test>` of tests that failed or were skipped
        self.unproved_modules: set[Path] = set()
        self.doubles: list[str] = []
        self.written: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect results, in the process that writes (see Note [one writer])."""
        notes = getattr(report, "irtool", None)
        if notes is not None:
            for path in notes["claims"]:
                if path.endswith(".expect") and self.claims.get(path, report.nodeid) != report.nodeid:
                    self.doubles.append(f"{path}: compared by {self.claims[path]} and by {report.nodeid}")
                self.claims[path] = report.nodeid
            if report.passed:
                self.accepted += [(path, index, text) for path, index, text in notes["accepted"]]
        if hasattr(report, "irtool_unproved"):
            self.unproved.add(report.irtool_unproved)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a module that was skipped or failed during collection, so that it cannot claim its files."""
        if not report.passed:
            self.unproved_modules.add(self.config.rootpath / report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write accepted texts; fail a full run if no test claims some files."""
        if hasattr(self.config, "workerinput"):
            return
        by_file: dict[str, list[tuple[int, str]]] = {}
        for path, index, text in self.accepted:
            by_file.setdefault(path, []).append((index, text))
        for path, changes in sorted(by_file.items()):
            write_accepted(Path(path), changes)
            self.written.append(_shown(Path(path), self.config))
        problems = list(self.doubles)
        if is_full_run(self.config, session):
            problems += [f"{_shown(path, self.config)}: no test claims this file; delete it" for path in self.orphans()]
        if problems:
            report = pytest.CollectReport("expect files", "failed", "\n".join(problems), result=[])
            self.config.hook.pytest_collectreport(report=report)
            if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def orphans(self) -> list[Path]:
        """Files in the `expect` folders below the run's arguments that no test claims, and that no failed or skipped test may claim.

        Folders without claimed files do not belong to this plugin.
        """
        arguments = [Path(self.config.invocation_params.dir, argument) for argument in self.config.args]
        folders = {folder for argument in arguments for folder in expect_folders(argument)
                   if any(Path(claim).is_relative_to(folder) for claim in self.claims)}
        paths = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
        return sorted(path for path in paths if is_expect_file(path) and str(path) not in self.claims and not self.might_claim(path))

    def might_claim(self, path: Path) -> bool:
        """Might a test that failed or was skipped claim the file?"""
        if path in self.unproved_modules:
            return True
        if path.suffix != ".expect":
            return False
        stems = [stem for stem in self.unproved if str(path) == f"{stem}.expect" or str(path).startswith(f"{stem}-")]
        return bool(stems) or any(module.parent == path.parent.parent for module in self.unproved_modules)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the files that were accepted."""
        for name in self.written:
            terminalreporter.write_line(f"accepted: {name}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--accept`."""
    group = parser.getgroup("irtool", "irtool expect tests")
    group.addoption("--accept", nargs="?", const="all", type=_accept_form, metavar="names",
                    help="rewrite expected outputs (--accept=names: only where nothing but value names differs)")


def _accept_form(text: str) -> str:
    if text not in ("all", "names"):
        hint = f" (files go in front: pytest {text} --accept)" if os.path.exists(text.partition("::")[0]) else ""
        raise pytest.UsageError(f"--accept: expected 'all' or 'names', not '{text}'{hint}")
    return text


def pytest_configure(config: pytest.Config) -> None:
    """Decide whether this run accepts. Raises UsageError if CI is set: a run that accepts proves nothing."""
    accept = config.getoption("--accept", default=None) or ""
    if not accept and os.environ.get("IRTOOL_ACCEPT", "0") not in ("", "0"):
        value = os.environ["IRTOOL_ACCEPT"]
        accept = "names" if value == "names" else "all"
    if accept and os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise pytest.UsageError("--accept is refused where CI is set: accept at home, and commit the files")
    recorder = config.stash[RECORDER] = Recorder(config, accept)
    config.pluginmanager.register(recorder, "irtool.expect.recorder")


# -- case files
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect `*.ir` with lines of case files, in any folder `expect` of the project (which may itself be in a folder of that name)."""
    if file_path.suffix == ".ir" and FOLDER in os.path.relpath(file_path.parent, parent.config.rootpath).split(os.sep) \
            and is_case_file(text_of(file_path)):
        return CaseFile.from_parent(parent, path=file_path)
    return None


def text_of(path: Path) -> str:
    """The text of a file, which may not be UTF-8; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


class CaseFile(pytest.File):
    """A case file; its cases are the tests."""

    def collect(self) -> Iterable[pytest.Item]:
        """One test per case. Raises CollectError for a file that does not follow the format."""
        try:
            text = self.path.read_text(encoding="utf-8")
            cases = read_cases(text, _shown(self.path, self.config))
        except UnicodeDecodeError as error:
            raise self.CollectError(f"{_shown(self.path, self.config)}: not UTF-8: {error}") from None
        except CaseError as error:
            raise self.CollectError(str(error)) from None
        if not cases:
            raise self.CollectError(f"{_shown(self.path, self.config)}: no case in this file")
        for index, case in enumerate(cases):
            yield CaseItem.from_parent(self, name=case.title, case=case, index=index)


class CaseFailure(Exception):
    """The output of a case differs from its file."""


class CaseItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, index: int, **rest: Any) -> None:
        super().__init__(**rest)
        self.case = case
        self.index = index

    def runtest(self) -> None:
        """Run the command and compare. Raises CaseFailure."""
        case, recorder = self.case, self.config.stash[RECORDER]
        shown = _shown(self.path, self.config)
        result = self.stash.setdefault(RESULT, Result())
        result.claims.append(str(self.path))
        sections, out, err = case.sections, "", ""
        if case.commands:
            code, out, err = self.output()
            surprises = unmet(case, case.source(shown), messages(err, case.source(shown)))
            if surprises:
                raise CaseFailure("\n".join(surprise.render() for surprise in surprises) + _stderr(err))
            sections = actual_sections(case, code, out, err)
        try:
            head, faults = checked_head(case, out, shown)
        except Error as error:
            raise CaseFailure(str(error)) from None
        if sections == case.sections and not faults:
            return
        expected, actual = case.text(), case.changed(head, sections).text()
        names_only = not faults and only_names_differ(expected, actual)
        if expected != actual and (recorder.accept == "all" or recorder.accept == "names" and names_only):
            reread = read_cases(actual, shown)
            if len(reread) != 1 or reread[0].sections != sections:
                raise CaseFailure("the output cannot be written into a case file: it contains lines that look like sections")
            _, rest = checked_head(reread[0], out, shown)
            if rest:
                raise CaseFailure("\n".join(rest))
            result.accepted.append((str(self.path), self.index, actual))
            return
        lines = faults if sections == case.sections else [*faults, difference(case.text(), case.changed(case.head, sections).text())]
        reason = _mismatch(lines, names_only, f"pytest '{shown}' --accept")
        raise CaseFailure(reason if "err" in sections else reason + _stderr(err))

    def output(self) -> tuple[int, str, str]:
        """The results of the commands of the case: exit code, output, messages."""
        result = self.stash[RESULT]
        folder = str(self.path.parent)
        with tempfile.TemporaryDirectory(prefix="irtool-expect-") as scratch:
            stages = [[word.replace("%S", folder).replace("%t", scratch) for word in words] for words in self.case.commands]
            result.claims += [word for words in stages for word in words if word.startswith(folder)]
            code, out, err = run_pipeline(stages, self.case.input, _shown(self.path, self.config), self.case.input_line, scratch)
            out, err = (text.replace(scratch, "%t").replace(folder, "%S") for text in (out, err))
        return code, out, err

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The text of a CaseFailure, without a traceback."""
        if isinstance(excinfo.value, CaseFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The place of the case."""
        return self.path, self.case.line - 1, self.name


def messages(err: str, source: SourceFile) -> list[Diagnostic]:
    """The diagnostics of an error stream that have a place in the case file, and those without a place."""
    pattern = re.compile(rf"(?m)^(?:{re.escape(source.name)}:(\d+):(?:(\d+):)? )?(error|warning|note|remark): (.*)$")
    return [Diagnostic(kind, text, source, int(line or 0), int(column or 0)) for line, column, kind, text in pattern.findall(err)]


def unmet(case: Case, source: SourceFile, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Diagnostics that were expected and are missing, and those that were not expected."""
    if case.expectations:
        return check(source, diagnostics)
    if case.sections.keys() & {"err", "exit"}:
        return []
    return [Diagnostic("error", f"unexpected error: {each.message}", each.source, each.line, each.col)
            for each in diagnostics if each.severity == "error"]


def actual_sections(case: Case, code: int, out: str, err: str) -> dict[str, str]:
    """The sections that would make the case pass."""
    values = {"out": without_blank_end(out), "err": without_blank_end(err), "exit": str(code)}
    sections = {name: values[name] for name in case.sections}
    if values["out"] and "out" not in sections and not case.checks:
        sections = {"out": values["out"], **sections}
    if code != case.exit_code:
        sections["exit"] = str(code)
    return sections


def checked_head(case: Case, out: str, shown: str) -> tuple[list[str], list[str]]:
    """Title, input and directives that would make the case pass, and what is wrong with the present ones. Raises Error."""
    head, faults = list(case.head), []
    if case.checks:
        from irtool.expect.patterns import failure, updated

        fault = failure([line if place in case.checks else "" for place, line in enumerate(head)], out, shown, case.line)
        if fault:
            faults.append(f"{fault}\nthe output is\n{out.rstrip()}")
            checks = updated([head[place] for place in case.checks], out)
            if checks is None:
                faults.append("--accept cannot write these patterns: leave one line '# CHECK:' to have one written per line of output")
            else:
                first, *others = case.checks
                head[first] = "\n".join(checks) if len(checks) != len(case.checks) else checks[0]
                for place, line in zip(others, checks[1:]):
                    head[place] = line
    for place, text in case.runs.items():
        from irtool.expect.run_lines import checked_line

        head[place], fault = checked_line(text, case, out)
        faults += [f"{shown}:{case.line + place}: error: {fault}"] if fault else []
    return head, faults


def _mismatch(lines: list[str], names_only: bool, command: str) -> str:
    if names_only:
        lines = [*lines, f"only names differ; to take them: {command}=names"]
    return "\n".join([*lines, f"to accept: {command}"])


def _stderr(err: str) -> str:
    return f"\nstandard error:\n{err.rstrip()}" if err.strip() else ""


# -- the fixture
@pytest.fixture
def expect(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`expect(text, subname=None)`: compare `str(text)` with `expect/<Class>.<test>[-<subname>].expect` beside the test's file."""
    node, recorder = request.node, request.config.stash[RECORDER]
    result = node.stash.setdefault(RESULT, Result())

    def compare(text: object, subname: str | None = None) -> None:
        __tracebackhide__ = True
        stem = expect_stem(node) + (f"-{subname}" if subname else "")
        path = node.path.parent / FOLDER / f"{stem}.expect"
        if str(path) in result.claims:
            pytest.fail(f"{path.name} was compared before in this test: give expect() a subname", pytrace=False)
        result.claims.append(str(path))
        actual = normalised(str(text))
        exists = path.exists()
        expected = normalised(path.read_text(encoding="utf-8")) if exists else ""
        if exists and expected == actual:
            return
        names_only = exists and only_names_differ(expected, actual)
        if recorder.accept == "all" or recorder.accept == "names" and names_only:
            result.accepted.append((str(path), -1, actual))
            return
        command = f"pytest '{node.nodeid}' --accept"
        if not exists:
            pytest.fail(f"no file {_shown(path, request.config)}; the text is\n{actual}\nto accept: {command}", pytrace=False)
        pytest.fail(f"{_shown(path, request.config)}:\n{_mismatch([difference(expected, actual)], names_only, command)}", pytrace=False)

    return compare


def expect_stem(node: pytest.Item) -> str:
    """`<Class>.<test>` (`<module>.<test>` outside a class), parameters as `-a-b`."""
    owner = getattr(node, "cls", None)
    name = re.sub(r"[^\w.-]+", "-", node.name).strip("-")
    return f"{owner.__name__ if owner is not None else node.path.stem}.{name}"


# -- reports
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the test's Result to its report."""
    report = yield
    result = item.stash.get(RESULT, None)
    if result is not None and report.when == "call":
        report.__dict__["irtool"] = result.as_dict()
    if not report.passed and "expect" in getattr(item, "fixturenames", ()):
        report.__dict__["irtool_unproved"] = str(item.path.parent / FOLDER / expect_stem(item))
    return report


def write_accepted(path: Path, changes: list[tuple[int, str]]) -> None:
    """Write a new text of a file (index -1), or new cases into it; the file is written completely or not at all."""
    if changes[0][0] < 0:
        text = changes[-1][1]
    else:
        cases = read_cases(path.read_text(encoding="utf-8"), str(path))
        texts = [case.text() for case in cases]
        for index, new in changes:
            texts[index] = new
        text = f"{SEPARATOR}\n".join(texts)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, path.stat().st_mode & 0o7777 if path.exists() else 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def is_full_run(config: pytest.Config, session: pytest.Session) -> bool:
    """Did the run reach every test below its arguments?"""
    narrowing = ("keyword", "markexpr", "lf", "deselect", "ignore", "ignore_glob", "collectonly", "stepwise", "maxfail")
    if any(config.getoption(name, default=None) for name in narrowing):
        return False
    return not session.shouldstop and not any("::" in argument for argument in config.args) \
        and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


def expect_folders(argument: Path) -> list[Path]:
    """Folders named `expect` of which the argument contains all tests: those below it, not itself."""
    if not argument.is_dir():
        return []
    folders = [path for path in argument.rglob(FOLDER) if path.is_dir()]
    return [path for path in folders if not any(part.startswith(".") for part in path.relative_to(argument).parts)]


def is_expect_file(path: Path) -> bool:
    """Must a test claim this file? Not a note, a script, a hidden file or a test of another tool."""
    return not path.name.startswith((".", "README")) and path.suffix not in (".py", ".pyc") \
        and not (path.suffix == ".ir" and is_of_others(text_of(path)))


def _shown(path: Path, config: pytest.Config) -> str:
    """A path for messages: relative to the root folder, with slashes."""
    try:
        return path.relative_to(config.rootpath).as_posix()
    except ValueError:
        return str(path)
