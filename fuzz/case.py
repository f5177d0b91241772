"""A case: what a generator drew, as plain data; and as a file below tests/fuzz_cases/ that a reader can follow.

    # programs: what went wrong when it was written
    # input x: 2x3xf32=0.5
    # option ways: run
    # ----
    def f(x: Tensor) -> Tensor:
        return x.neg()

Text that is no printable UTF-8 stands as lines of base64 below `# ---- base64`.
"""
from __future__ import annotations

import base64
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

TEXT, BYTES = "# ----", "# ---- base64"


@dataclass(frozen=True)
class Case:
    """Text, inputs by name as literals of values.py, and options as words; `kind` names the module that checks it."""

    kind: str
    text: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    title: str = ""

    def with_text(self, text: str) -> Case:
        """The same inputs and options for another text."""
        return replace(self, text=text)

    def with_option(self, name: str, value: str) -> Case:
        """The same with one option changed; an empty value removes it."""
        options = {**self.options, name: value}
        return replace(self, options={key: each for key, each in options.items() if each})

    def with_input(self, name: str, literal: str) -> Case:
        """The same with one input changed."""
        return replace(self, inputs={**self.inputs, name: literal})

    def size(self) -> int:
        """What a reduction makes smaller: characters of all parts, and whether numbers must be drawn."""
        parts = [*self.inputs.values(), *self.options.values()]
        return len(self.text) + sum(map(len, parts)) + 100 * sum("~" in each for each in self.inputs.values())


def spell(case: Case) -> str:
    """The file of a case."""
    lines = [f"# {case.kind}: {' '.join(case.title.split())}"]
    lines += [f"# input {name}: {literal}" for name, literal in case.inputs.items()]
    lines += [f"# option {name}: {value}" for name, value in case.options.items()]
    if is_plain(case.text):
        return "\n".join([*lines, TEXT, case.text])
    data = base64.b64encode(case.text.encode("utf-8", "surrogateescape")).decode()
    return "\n".join([*lines, BYTES, *textwrap.wrap(data, 120), ""])


def is_plain(text: str) -> bool:
    """Can a file hold the text as it is?"""
    return all(each.isprintable() or each == "\n" for each in text)


def read(text: str) -> Case:
    """The case that a file holds. Raises ValueError where it is none."""
    head, _, rest = text.partition("\n")
    kind, _, title = head.removeprefix("# ").partition(": ")
    inputs: dict[str, str] = {}
    options: dict[str, str] = {}
    while not rest.startswith(TEXT):
        line, newline, rest = rest.partition("\n")
        what, _, value = line.removeprefix("# ").partition(": ")
        section, _, name = what.partition(" ")
        if not newline or section not in ("input", "option"):
            raise ValueError(f"expected '# input NAME: VALUE', '# option NAME: VALUE' or '{TEXT}', got '{line}'")
        (inputs if section == "input" else options)[name] = value
    mark, _, body = rest.partition("\n")
    if mark == BYTES:
        body = base64.b64decode("".join(body.split())).decode("utf-8", "surrogateescape")
    return Case(kind, body, inputs, options, title)
