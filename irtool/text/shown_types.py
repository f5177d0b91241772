"""Printed IR with short types (`f32[4,8]`), or without types, for readers. Such text cannot be parsed again."""
from __future__ import annotations

import re
from collections.abc import Iterable

from irtool.ir.short_types import short_type
from irtool.ir.type_parser import TypeSyntaxError, read_type

DECLARED = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|(?<!\w)(%(?:[^\s,():=;%\[\]{}"#]|::)+) : ')
"""A value and its type; strings and comments match as a whole, so that they stay unchanged."""


def with_types(text: str, form: str) -> str:
    """Lines of IR, or of a diff of IR, with the types of values in this form: short, full or none."""
    if form == "full":
        return text
    parts = []
    done = 0
    while (match := DECLARED.search(text, done)) is not None:
        end = match.end()
        parts.append(text[done:end] if match[1] is None else text[done:match.end(1)])
        if match[1] is not None:
            try:
                type, end = read_type(text, end)
                parts.append(f" : {short_type(type)}" if form == "short" else "")
            except TypeSyntaxError:     # the text shows only a part of the type
                parts.append(" : ")
        done = end
    return "".join([*parts, text[done:]])


def diff_with_types(lines: Iterable[str], form: str) -> list[str]:
    """The same for a unified diff. Lines that differ only in their types keep longer types, so that the difference shows."""
    whole = list(lines)
    if form == "full":
        return whole
    shown = [with_types(line, form) for line in whole]
    removed, added = ({line[1:] for line in shown if line.startswith(sign)} for sign in "-+")
    longer = diff_with_types(whole, "short" if form == "none" else "full")
    return [other if line.startswith(("-", "+")) and line[1:] in removed & added else line for line, other in zip(shown, longer)]
