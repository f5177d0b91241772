"""Case files: input above, expected output below.

    # A print keeps its operands alive
    # RUN: opt --passes=dce
    graph(%x : Float(2, 3)):
      ...
    # ---- out
    graph(%x : Float(2, 3)):
      ...
    # ====
    # The next case of the file

A case is a title (a sentence, in comment lines), a RUN line (irtool commands joined by `|`, with or without the word `irtool`; the first
reads the input on standard input; `%S` is the folder of the case file, `%t` a fresh temporary folder), the input, and sections:
`# ---- out` and `# ---- err` are followed by the expected output (without `out`: none) and messages (without `err`: any, but no unexpected
error), `# ---- exit N` states the exit code (default 0, or 1 if an error is expected). Blank lines at the end of a section do not count.

`# CHECK:` lines in the input, and their kin, are patterns of the output in place of `# ---- out` (`irtool.expect.patterns`). `# run:` lines
run a graph of the input on literals (`irtool.expect.run_lines`); a case with such lines needs no RUN line.

Messages are expected on their line, `# expected-error {{part of the text}}`, as `irtool.cli.expected_diagnostics` says. These comments,
CHECK and run lines are cut from the input before the command sees it. A misspelt directive is an error: it would otherwise check nothing.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from irtool.cli import expected_diagnostics as expected
from irtool.cli.commands import COMMANDS
from irtool.expect.commands import split_command
from irtool.expect.patterns import CHECK
from irtool.ir.errors import edit_distance
from irtool.ir.source import SourceFile

SECTIONS = ("out", "err", "exit")
SEPARATOR = "# ===="
_SECTION = re.compile(r"# ---- (\w+)(?: (-?\d+))?\s*$")
_SECTION_LIKE = re.compile(r"#\s*-{2,}\s*(\w+)")
_SEPARATOR_LIKE = re.compile(r"#\s*={2,}\s*$")
_WORD = re.compile(r"#+\s*([A-Za-z][\w-]*)(:?)")
_RUN = re.compile(r"# RUN: (.*)")
_RUN_LINE = re.compile(r"# run: (.*)")
_OURS = re.compile(rf"(?m)^# (?:RUN: (?:irtool\b|(?:{'|'.join(COMMANDS)})\b(?!.*%s))|run: [\w.]+\(|---- (?:out|err|exit)\b|====$)")
_OTHERS = re.compile(r"\b(?:RUN|run): ")


class CaseError(Exception):
    """A case file that does not follow the format; the text has file and line."""


class Case:
    """One case: its place in the file, and its parts."""

    def __init__(self, title: str, line: int, commands: list[list[str]], input: str, input_line: int, head: list[str],
                 sections: dict[str, str], expectations: Sequence[expected.Expectation] = ()) -> None:
        self.title = title
        self.line = line
        self.commands = commands        # the words of each command of the RUN line; empty without one
        self.input = input              # the text on standard input: directives are removed
        self.input_line = input_line    # line of the file on which it begins
        self.head = head                # title, RUN line and input as in the file
        self.sections = sections        # of SECTIONS, in the order of the file
        self.expectations = expectations

    def source(self, filename: str) -> SourceFile:
        """Title, RUN line and input, with their place in the file: the text that contains expected messages."""
        return SourceFile(filename, "\n".join(self.head), self.line)

    @property
    def checks(self) -> list[int]:
        """The positions in `head` of the CHECK lines."""
        return [place for place, line in enumerate(self.head) if CHECK.fullmatch(line)]

    @property
    def runs(self) -> dict[int, str]:
        """Position in `head` of a `# run:` line -> the text after the colon."""
        return {place: match[1] for place, line in enumerate(self.head) if (match := _RUN_LINE.fullmatch(line))}

    def changed(self, head: list[str], sections: dict[str, str]) -> Case:
        """The case with another head and other sections."""
        return Case(self.title, self.line, self.commands, self.input, self.input_line, head, sections, self.expectations)

    @property
    def exit_code(self) -> int:
        """The expected exit code."""
        if "exit" in self.sections:
            return int(self.sections["exit"])
        return 1 if any(expectation.severity == "error" for expectation in self.expectations) else 0

    def text(self) -> str:
        """The text of the case in its file."""
        out = [*self.head]
        for name, body in self.sections.items():
            if name == "exit":
                out.append(f"# ---- exit {body}")
            else:
                out += [f"# ---- {name}", *([body.rstrip("\n")] if body else [])]
        return "\n".join(out) + "\n"


def is_case_file(text: str) -> bool:
    """Has a text lines that only case files have?"""
    return _OURS.search(text) is not None


def is_of_others(text: str) -> bool:
    """Is the text a test of another tool, such as LLVM's: with RUN lines, none of which is irtool's?"""
    return _OTHERS.search(text) is not None and not is_case_file(text)


def read_cases(text: str, filename: str) -> list[Case]:
    """The cases of a file. Raises CaseError with every line that is wrong."""
    problems: list[str] = []
    cases: list[Case] = []
    start = 1
    for chunk in split_cases(text.replace("\r\n", "\n").split("\n")):
        cases += filter(None, [_read_case(chunk, start, problems)])
        start += len(chunk) + 1
    titles: dict[str, int] = {}
    for case in cases:
        if case.title in titles:
            problems.append(f"{case.line}: the title of line {titles[case.title]} again: each case needs its own")
        titles.setdefault(case.title, case.line)
    if problems:
        raise CaseError("\n".join(f"{filename}:{problem}" for problem in problems))
    return cases


def split_cases(lines: Sequence[str]) -> list[list[str]]:
    """The lines between separators."""
    chunks: list[list[str]] = [[]]
    for line in lines:
        if line.rstrip() == SEPARATOR:
            chunks.append([])
        else:
            chunks[-1].append(line)
    return chunks


def _read_case(lines: list[str], start: int, problems: list[str]) -> Case | None:
    bodies: dict[str, list[str]] = {}
    exit_code = ""
    head: list[str] = []
    body = head
    for number, line in enumerate(lines, start):
        section = _SECTION.match(line)
        if section and section[1] in SECTIONS and (section[1] == "exit") == bool(section[2]):
            if section[1] in bodies:
                problems.append(f"{number}: a second section '{section[1]}' in one case")
            body = bodies[section[1]] = []
            exit_code = section[2] or exit_code
        else:
            problem = _near_section(line) or (body is head and _near_directive(line)) or ""
            if body is bodies.get("exit") and line.strip() and not problem:
                problem = "text after '# ---- exit'"
            if problem:
                problems.append(f"{number}: {problem}")
            body.append(line)
    at = next((i for i, line in enumerate(head) if _RUN.match(line)), None)
    if at is None and any(map(_RUN_LINE.match, head)):
        at = next(i for i, line in enumerate(head) if line.strip() and not line.startswith("#") or _RUN_LINE.match(line))
    if at is None:
        if any(line.strip() for line in lines):
            problems.append(f"{start}: no line '# RUN: COMMAND' in this case")
        return None
    title = " ".join(line.lstrip("# ").rstrip() for line in head[:at] if line.strip())
    if not title or not all(line.startswith("#") for line in head[:at] if line.strip()):
        problems.append(f"{start}: a case begins with a sentence that says what it shows: '# ...'")
    match = _RUN.match(head[at])
    first = at + 1 if match else at
    commands = _commands(match[1], start + at, problems) if match else []
    while len(head) > first and not head[-1].strip():
        head.pop()
    expectations, wrong = expected.directives(SourceFile("", "\n".join(head), start))
    problems += [f"{each.line}: {each.message}" for each in wrong]
    stripped = [*head]
    for expectation in expectations:
        line = stripped[expectation.at - start]
        stripped[expectation.at - start] = line[: line.rfind("#", 0, expectation.column)].rstrip()
    sections = {name: exit_code if name == "exit" else without_blank_end("\n".join(body)) for name, body in bodies.items()}
    case = Case(title, start, commands, "", start + first, head, sections, expectations)
    for place in (*case.checks, *case.runs):
        stripped[place] = ""
    if case.checks and "out" in sections:
        problems.append(f"{start + case.checks[0]}: a case has CHECK lines or a section '# ---- out', not both")
    problems += [f"{start + place}: expected '# run: graph(VALUE, ...) == VALUE', not '# run: {text}'; commands follow '# RUN:'"
                 for place, text in case.runs.items() if not re.match(r"[\w.]+\(", text)]
    if not commands and (case.checks or sections):
        problems.append(f"{start}: no line '# RUN: COMMAND' in this case")
    case.input = without_blank_end("\n".join(stripped[first:]))
    return case


def without_blank_end(text: str) -> str:
    """The text with exactly one newline after its last line that is not blank; empty if there is none."""
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines) + "\n" if lines else ""


def _commands(text: str, number: int, problems: list[str]) -> list[list[str]]:
    if "%s" in text.split():
        problems.append(f"{number}: RUN line: the input is on standard input: leave out '%s', or write '-'")
    try:
        return split_command(text)
    except ValueError as error:
        problems.append(f"{number}: RUN line: {error}")
        return []


def _near_section(line: str) -> str:
    """What is wrong with a line that looks like a misspelt section or separator; empty otherwise."""
    if _SEPARATOR_LIKE.match(line):
        return f"cases are separated by '{SEPARATOR}', not '{line.strip()}'"
    match = _SECTION_LIKE.match(line)
    if match is None:
        return ""
    word = nearest(match[1], SECTIONS)
    if not word and not line.startswith("# ---- "):
        return ""
    return f"no such section: '{line.strip()}'; expected '# ---- out', '# ---- err' or '# ---- exit N'"


def _near_directive(line: str) -> str:
    """What is wrong with a comment that looks like a directive and is none.

    (`irtool.cli.expected_diagnostics` checks comments that begin with `expected-`.)
    """
    _, mark, comment = line.partition("#")
    if not mark or "expected-" in comment or CHECK.fullmatch(line):
        return ""
    if "{{" in comment:
        return f"not a directive: '{comment.strip()}'; expected '# expected-error {{{{text}}}}'"
    for word, colon in _WORD.findall(mark + comment):
        if _is_near(word.partition("-")[0], "CHECK") and (colon or word.isupper()):
            return f"not a directive: '{line.strip()}'; expected '# CHECK: PATTERN' on a line of its own, or CHECK-NEXT, CHECK-SAME, " \
                   "CHECK-NOT, CHECK-DAG, CHECK-LABEL, CHECK-EMPTY, CHECK-COUNT-2"
        if _is_near(word, "RUN", 2 if colon else 1) and (colon or word.isupper()) and not _RUN.match(line) and not _RUN_LINE.match(line):
            return f"not a directive: '{line.strip()}'; expected '# RUN: COMMAND' or '# run: graph(VALUE, ...) == VALUE'"
        if nearest(word, expected.WORDS):
            return f"not a directive: '{comment.strip()}'; expected '# {nearest(word, expected.WORDS)} {{{{text}}}}'"
    return ""


def _is_near(word: str, target: str, most: int = 2) -> bool:
    return edit_distance(word.lower(), target.lower()) <= most


def nearest(word: str, targets: Iterable[str]) -> str:
    """The first of `targets` within two edits of `word`; empty if there is none."""
    ranked = sorted((edit_distance(word.lower(), target.lower()), target) for target in targets)
    return ranked[0][1] if ranked and ranked[0][0] <= 2 else ""
