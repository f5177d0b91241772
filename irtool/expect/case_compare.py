"""The difference of an expected and an actual text, and whether only names of values differ."""
from __future__ import annotations

import re
from difflib import unified_diff

_TOKEN = re.compile(r"""("(?:\\.|[^"\\])*"|='(?:\\.|[^'\\])*'|%[A-Za-z0-9_.:]+)""")


def normalised(text: str) -> str:
    """LF line ends, and a newline at the end."""
    text = text.replace("\r\n", "\n")
    return text if not text or text.endswith("\n") else text + "\n"


def only_names_differ(expected: str, actual: str) -> bool:
    """Do the texts differ only in names of values (one to one within each graph)? Strings must be equal."""
    if expected == actual:
        return False
    ours, theirs = _graphs(expected), _graphs(actual)
    return len(ours) == len(theirs) and all(map(_same_but_for_names, ours, theirs))


def _graphs(text: str) -> list[str]:
    """The text, cut in front of each graph, since names belong to one graph."""
    return re.split(r"(?m)^(?=graph[ (])", text)


def _same_but_for_names(expected: str, actual: str) -> bool:
    ours, theirs = _TOKEN.split(expected), _TOKEN.split(actual)
    if len(ours) != len(theirs):
        return False
    forward: dict[str, str] = {}
    backward: dict[str, str] = {}
    for one, other in zip(ours, theirs):
        if one.startswith("%") and other.startswith("%"):
            if forward.setdefault(one, other) != other or backward.setdefault(other, one) != one:
                return False
        elif one != other:
            return False
    return True


def difference(expected: str, actual: str, name: str = "") -> str:
    """A unified diff of the two, from expected to actual."""
    label = f" {name}" if name else ""
    lines = unified_diff(expected.splitlines(), actual.splitlines(), f"expected{label}", f"actual{label}", lineterm="")
    return "\n".join(lines)
