"""What call.py needs to know of a schema: per argument its category, default, and whether it is written or returned as a view."""
from __future__ import annotations

import ast
import re
from typing import Any

MISSING = object()
"""The default of an argument that has none."""

ALIAS = re.compile(r"\((?:[a-z]\d*(?:\|[a-z]\d*)*)(!?)(?: -> [^)]*)?\)")
LIST_OF_N = re.compile(r"\[(\d+)\]\??$")
TYPE_NUMBERED = ("ScalarType", "Layout", "MemoryFormat", "SymInt", "QScheme")
WORDS = {"None": None, "True": True, "False": False, "contiguous_format": 0, "preserve_format": 1, "Mean": 1, "long": 4, "strided": 0}


class Argument:
    """One argument of a schema. `category` is the type without alias marks and list lengths: `Tensor`, `Tensor?`, `int[]`, `Scalar`."""

    __slots__ = ("name", "category", "length", "default", "keyword_only", "written", "aliased")

    def __init__(self, name: str, type_text: str, default: Any, keyword_only: bool) -> None:
        mark = ALIAS.search(type_text)
        plain = ALIAS.sub("", type_text).strip() if mark else type_text
        length = LIST_OF_N.search(plain)
        self.name = name
        self.length = int(length.group(1)) if length else 0
        plain = LIST_OF_N.sub(lambda found: "[]" + ("?" if found.group().endswith("?") else ""), plain)
        for word in TYPE_NUMBERED:
            if plain.startswith(word):
                plain = "int" + plain[len(word):]
        self.category = plain
        self.default = default
        self.keyword_only = keyword_only
        self.written = bool(mark and mark.group(1))
        self.aliased = bool(mark)

    def __repr__(self) -> str:
        return f"{self.category} {self.name}"


class Signature:
    """A schema taken apart: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`."""

    __slots__ = ("name", "kind", "overload", "arguments", "returns", "vararg", "views")

    def __init__(self, text: str) -> None:
        name, _, rest = text.partition("(")
        self.name = name
        self.kind, _, self.overload = name.partition(".")
        inside, _, results = _closing(rest)
        self.arguments: list[Argument] = []
        self.vararg = False
        keyword_only = False
        for piece in _split(inside):
            if piece == "*":
                keyword_only = True
            elif piece == "...":
                self.vararg = True
            else:
                self.arguments.append(_argument(piece, keyword_only))
        results = results.strip().removeprefix("->").strip()
        parts = _split(results[1:-1]) if results.startswith("(") else [results]
        self.returns = [ALIAS.sub("", part).split(" ")[0] for part in parts if part]
        self.views = any(ALIAS.search(part) for part in parts)

    def __repr__(self) -> str:
        return f"<Signature {self.name}>"


def _argument(text: str, keyword_only: bool) -> Argument:
    declaration, equals, default_text = text.partition("=")
    type_text, _, name = declaration.rpartition(" ")
    return Argument(name, type_text, _default(default_text) if equals else MISSING, keyword_only)


def _default(text: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    return ast.literal_eval(text)


def _closing(text: str) -> tuple[str, str, str]:
    """`int a, t[](a!) b) -> t` split at the parenthesis that closes."""
    depth, quoted = 0, False
    for place, letter in enumerate(text):
        if letter == '"' and text[place - 1] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            if depth == 0:
                return text[:place], letter, text[place + 1:]
            depth -= 1
    raise ValueError(f"not a schema: {text!r}")


def _split(text: str) -> list[str]:
    """Pieces between the commas that stand outside brackets and quotes, stripped."""
    pieces, depth, quoted, start = [], 0, False, 0
    for place, letter in enumerate(text):
        if letter == '"' and text[place - 1] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth == 0:
            pieces.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*pieces, last] if last else pieces
