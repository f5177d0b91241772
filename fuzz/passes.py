"""Each pass alone on one graph: what the graph gives stays, types say what is so, the verifier is content, and a pass that promises so
changes nothing the second time. Pipelines are in pipelines.py, with executors.
"""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import irtool
from fuzz import programs
from fuzz.case import Case
from fuzz.judge import Outcome, Wrong, agree, outcome
from fuzz.pipelines import Types, apply, check_again, original, steps
from fuzz.source import Style, program


def draw(seed: int) -> Case:
    """A program, compiled; the types of its inputs may be complete."""
    rng = random.Random(seed)
    drawn = program(seed, Style(compiled=True, grad=rng.random() < 0.2, most=10))
    return Case("passes", drawn.source, drawn.inputs, {"typed": "yes"} if rng.random() < 0.5 else {})


def check(case: Case, tally: Counter[str]) -> None:
    """Every pass, or that of the option `only`. Raises Wrong, Skip."""
    text, sets, wants = original(case, tally)
    only = case.options.get("only")
    for step in [only] if only else steps():
        kind, changed = apply(step, text)
        tally["ways"] += 1
        if kind == "refused":
            tally[f"refused: {step}: {changed}"] += 1
        elif kind == "error":
            raise Wrong(step, f"error: {changed}")
        elif str(changed) != text:
            check_results(step, changed, sets, wants)
            check_again(step, str(changed))


def check_results(step: str, changed: Any, sets: list[list[Any]], wants: list[Outcome]) -> None:
    """The reference, with an eye on types. Raises Wrong."""
    for values, want in zip(sets, wants):
        agree(outcome(lambda: irtool.run(changed, values, interpret=True, observer=Types())), want, step)  # noqa: B023


def smaller(case: Case) -> Iterator[Case]:
    """One pass alone; then as programs are made smaller."""
    if "only" not in case.options:
        yield from (case.with_option("only", step) for step in steps())
    yield from programs.smaller(case)
