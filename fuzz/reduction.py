"""Smaller cases that fail in the same way: lines and blocks dropped, results dropped, inputs made small. Bounded in time."""
from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations

from fuzz.case import Case
from fuzz.judge import Check, Finding, attempt

Smaller = Callable[[Case], Iterator[Case]]


def reduced(check: Check, smaller: Smaller, case: Case, finding: Finding, seconds: float, limit: float) -> tuple[Case, Finding]:
    """The smallest case that shows the symptom of `finding`, and what it shows. Each try ends after `limit` seconds."""
    end = time.monotonic() + seconds
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in smaller(case):
            if time.monotonic() > end:
                return case, finding
            if candidate.size() >= case.size() or is_endless(candidate.text):
                continue
            again = attempt(check, candidate, Counter(), min(limit, max(0.1, end - time.monotonic())))
            if again is not None and again.symptom == finding.symptom:
                case, finding, is_smaller = candidate, again, True
                break
    return case, finding


def is_endless(text: str) -> bool:
    """Did a `while` lose the step of its counter?"""
    counters = re.findall(r"while (?:len\()?(\w+)\)? <", text)
    return any(f"{counter} += 1" not in text and f"    {counter}.append(" not in text for counter in counters)


def fewer_lines(lines: list[str]) -> Iterator[list[str]]:
    """Without pieces of it, large pieces first; the first line stays."""
    size = len(lines) // 2
    while size:
        for start in range(len(lines) - size, 0, -size):
            yield lines[:start] + lines[start + size:]
        size //= 2


def fewer_statements(lines: list[str]) -> Iterator[list[str]]:
    """Python source without statements and blocks, or with a block in place of the loop or branch around it; the last line stays."""
    for shorter in fewer_lines(lines[:-1]):
        yield filled([*shorter, lines[-1]])
    if len(lines) < 14:
        for first, second in combinations(range(1, len(lines) - 1), 2):
            yield filled([line for place, line in enumerate(lines) if place not in (first, second)])
    for start in range(1, len(lines) - 1):
        if not lines[start].rstrip().endswith(":"):
            continue
        stop = next((at for at in range(start + 1, len(lines)) if indent(lines[at]) <= indent(lines[start])), len(lines))
        yield filled(lines[:start] + lines[stop:])
        yield filled(lines[:start] + [line[4:] for line in lines[start + 1:stop]] + lines[stop:])


def filled(lines: list[str]) -> list[str]:
    """Blocks that lost all their lines hold `pass`."""
    result: list[str] = []
    for line, after in zip(lines, [*lines[1:], ""]):
        result.append(line)
        if line.rstrip().endswith(":") and indent(after) <= indent(line):
            result.append(" " * (indent(line) + 4) + "pass")
    return result


def indent(line: str) -> int:
    """How far a line is indented."""
    return len(line) - len(line.lstrip())
