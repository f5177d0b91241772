"""The docstring of a pass shows IR `before:` and `after:`; here it is run.

A docstring may hold several pairs. `before, with allow-side-effects:` runs the pass with those options.
"""
from __future__ import annotations

import re
import textwrap

import pytest

import irtool
from irtool.passes import PASSES, Pass
from irtool.passmanager import PassManager

HEAD = re.compile(r"^( *)(before|after)(?:, with ([^:\n]*))?:\n((?:(?:\1 +\S[^\n]*| *)(?:\n|\Z))*)", re.MULTILINE)


class Example:
    """One before/after pair of a docstring."""

    def __init__(self, entry: Pass, options: str, before: str, after: str) -> None:
        self.entry = entry
        self.pipeline = f"{entry.name}{{{options}}}" if options else entry.name
        self.before = before
        self.after = after


def examples(entry: Pass) -> list[Example]:
    """The pairs of one pass, in order."""
    found = HEAD.findall(entry.function.__doc__ or "")
    pairs = []
    for (_, first, options, before), (_, second, _, after) in zip(found[::2], found[1::2], strict=True):
        assert (first, second) == ("before", "after"), f"{entry.name}: before: and after: must take turns"
        pairs.append(Example(entry, options, body(before), body(after)))
    return pairs


def body(text: str) -> str:
    """A block of a docstring as the text it stands for."""
    return textwrap.dedent(text).strip("\n") + "\n"


def canonical(module: irtool.Module) -> str:
    """The text without the freedoms of layout that a docstring takes (all inputs on one line)."""
    for graph in module.graphs:
        graph.layout = None
    return str(module)


EXAMPLES = [example for entry in PASSES for example in examples(entry)]
NAMES = [f"{example.pipeline}-{i}" for i, example in enumerate(EXAMPLES)]


@pytest.mark.parametrize("entry", PASSES, ids=lambda entry: entry.name)
def test_a_docstring_opens_with_a_sentence_and_shows_before_and_after(entry: Pass) -> None:
    assert examples(entry), f"{entry.name}: no before:/after: in its docstring"
    assert re.fullmatch(r"[A-Z`].*[.:]", entry.summary, re.DOTALL), entry.summary


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_before_becomes_after(example: Example) -> None:
    module = irtool.parse(example.before)
    (step,) = PassManager(example.pipeline).steps
    subjects = [module] if step.entry.takes_module else module.graphs
    changed = any([step.entry.function(subject, **step.options) for subject in subjects])
    assert canonical(module) == canonical(irtool.parse(example.after))
    assert changed == (example.before != example.after)
    for graph in module.graphs:
        irtool.verify(graph)


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_a_second_run_changes_nothing(example: Example) -> None:
    (step,) = PassManager(example.pipeline).steps
    if step.entry.repeats:
        return
    module = irtool.parse(example.after)
    subjects = [module] if step.entry.takes_module else module.graphs
    assert not any([step.entry.function(subject, **step.options) for subject in subjects])
    assert canonical(module) == canonical(irtool.parse(example.after))
