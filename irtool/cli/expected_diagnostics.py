"""Expected diagnostics: `# expected-error@+1 {{text}}` in the input, as in MLIR.

Kinds are error, warning, note and remark; places `@+N`, `@-N`, `@above`, `@below` or none (the same line); with a pattern
`expected-error-re {{... {{regex}} ...}}`. The text must be a part of the message. Every diagnostic except notes must be expected, and every
expectation must be met.
"""
from __future__ import annotations

import re
from collections.abc import Iterable

from irtool.ir.errors import did_you_mean
from irtool.ir.source import Diagnostic, SourceFile

DIRECTIVE = re.compile(r"#.*?\b(expected-[A-Za-z-]*)(@\S*)?([^{\n]*)(\{\{)?")
CODE = "E0116"
KINDS = ("expected-error", "expected-warning", "expected-note", "expected-remark")
WORDS = (*KINDS, *(kind + "-re" for kind in KINDS))


class Expectation:
    """One directive: the line that must have a diagnostic, and the message."""

    __slots__ = ("severity", "line", "text", "pattern", "source", "at", "column", "end_column", "is_met")

    def __init__(self, severity: str, line: int, text: str, pattern: re.Pattern[str], source: SourceFile, at: int, column: int,
                 end_column: int) -> None:
        self.severity = severity
        self.line = line                # of the diagnostic
        self.text = text
        self.pattern = pattern
        self.source = source
        self.at = at                    # line of the directive
        self.column = column
        self.end_column = end_column
        self.is_met = False


def check(source: SourceFile, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The differences between the directives of a text and its diagnostics; empty if all match."""
    expectations, problems = directives(source)
    for diagnostic in diagnostics:
        for each in (diagnostic, *diagnostic.notes):
            match = next((e for e in expectations if not e.is_met and e.severity == each.severity and e.line == each.line
                          and e.pattern.search(each.coded())), None)
            if match is not None:
                match.is_met = True
            elif each.severity != "note":
                problems.append(Diagnostic("error", f"unexpected {each.severity}: {each.message}", each.source or source, each.line,
                                           each.col, each.end_col, code=CODE))
    problems += [Diagnostic("error", f'expected {e.severity} "{e.text}" was not produced', source, e.at, e.column, e.end_column, code=CODE)
                 for e in expectations if not e.is_met]
    return problems


def directives(source: SourceFile) -> tuple[list[Expectation], list[Diagnostic]]:
    """All directives of a text, and errors for those that are malformed."""
    expectations: list[Expectation] = []
    problems: list[Diagnostic] = []
    for number, line in enumerate(source.text.split("\n"), source.first_line):
        start = 0
        while (match := DIRECTIVE.search(line, start)) is not None:
            column = match.start(1) + 1
            word, where, _, opening = match.groups()
            body, end = braced(line, match.end()) if opening else (None, match.end())
            problem = wrong(word, where, body)
            if problem:
                problems.append(Diagnostic("error", problem, source, number, column, end + 1, code=CODE))
            else:
                is_pattern = word.endswith("-re")
                expectations.append(Expectation(word.removesuffix("-re").removeprefix("expected-"), number + offset(where), body or "",
                                                pattern(body or "", is_pattern), source, number, column, end + 1))
            start = end
            if "#" not in line[start:]:
                line = line[:start] + "#" + line[start:]        # a second directive in a line needs no `#`
    return expectations, problems


def wrong(word: str, where: str | None, body: str | None) -> str:
    """The error in a directive; empty if it is correct."""
    if word not in WORDS:
        return f"unknown directive '{word}'{did_you_mean(word, WORDS)}"
    if where is not None and where not in ("@above", "@below") and not re.fullmatch(r"@[+-]\d{1,9}", where):
        return f"expected @+N, @-N, @above or @below, not '{where}'"
    if body is None:
        return f"'{word}' needs its text in {{{{...}}}}"
    if word.endswith("-re"):
        try:
            pattern(body, True)
        except re.error as error:
            return f"bad regular expression: {error}"
    return ""


def offset(where: str | None) -> int:
    """The number of lines from the directive to the diagnostic."""
    if not where:
        return 0
    return {"@above": -1, "@below": 1}.get(where) or int(where[1:])


def braced(line: str, start: int) -> tuple[str | None, int]:
    """The text from `start` to the matching `}}`; None if there is none."""
    depth, at = 1, start
    while at < len(line):
        pair = line[at: at + 2]
        if pair == "{{":
            depth += 1
            at += 2
        elif pair == "}}":
            depth -= 1
            at += 2
            if not depth:
                return line[start: at - 2], at
        else:
            at += 1
    return None, len(line)


def pattern(body: str, has_patterns: bool) -> re.Pattern[str]:
    """The pattern that a message must contain: the text, or a text with `{{regex}}` parts."""
    if not has_patterns:
        return re.compile(re.escape(body))
    pieces = re.split(r"\{\{(.*?)\}\}", body)
    return re.compile("".join(piece if i % 2 else re.escape(piece) for i, piece in enumerate(pieces)))
