"""The scalars of Python operators: `^Dropout(0.2, True)(%x)`, in 2017 `Dropout 0.2 True(%x)`."""
from __future__ import annotations

from irtool.ir.errors import RunError

MAX_NESTING = 50
"""Brackets may be nested so deep."""


def words_of(text: str) -> str:
    """The scalars of a 2017 text, separated by blanks there, in today's form: `0.2 True (1, 2)` -> `0.2, True, (1, 2)`."""
    return ", ".join(split_scalars(text, " "))


def has_commas(text: str) -> bool:
    """Are the scalars of a 2017 text separated by commas, as today's are? Then a word would end in a comma."""
    try:
        parts = split_scalars(text, ",")
    except RunError:
        return False
    return len(parts) > 1 or text.endswith(",")


def split_scalars(text: str, separator: str = ",") -> list[str]:
    """The parts between separators that are outside brackets and quotes. Raises RunError if brackets do not match, or are nested too
    deep."""
    parts: list[str] = []
    depth, start, quote, begins = 0, 0, "", True
    for place, mark in enumerate(text):
        if quote:
            quote = "" if mark == quote else quote
            continue
        if mark in "\"'" and begins:
            quote = mark
        elif mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
        elif mark == separator and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
        begins = mark in " ,([{:"       # a quote inside a word is an apostrophe
        if not 0 <= depth <= MAX_NESTING:
            break
    if depth:
        raise RunError(f"the brackets in the scalars ({text[:80]}) of a Python op do not match, or are many")
    parts.append(text[start:].strip())
    if separator == " ":
        return [part for part in parts if part]
    return parts if parts[-1] else parts[:-1]       # `(1,)`
