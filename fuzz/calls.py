"""Calls: one call of any operator, whether its operands fit or not. Run in many ways and in torch, as in programs.py; or differentiated, as
in gradients.py; or under transformations, as in laws.py.
"""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from fuzz import called, gradients, laws, layouts, programs
from fuzz.case import Case
from fuzz.expressions import Facts, Shape
from fuzz.values import draw_literal, format_number

DTYPES = ("float32", "float32", "float64", "int64", "bool", "int32", "uint8", "complex64", "float16", "int8", "int16", "complex128")
SHAPES = ((), (1,), (3,), (0,), (2, 3), (3, 3), (1, 3), (2, 1), (2, 3, 4), (2, 0), (1, 1), (3, 1, 2), (2, 1, 3, 3), (1, 2, 4, 4))
FEW = ((), (1,), (3,), (2, 3), (2, 2), (1, 3), (2, 1), (2, 1, 2), (1, 1, 2, 2))
"""Shapes for laws in which every element is differentiated on its own."""
CHECKS = {"calls": programs.check, "gradients": gradients.check, "laws": laws.check}


def draw(seed: int) -> Case:
    """One call on two tensors; one in six writes into the first. One in five is differentiated, one in three is under a transformation."""
    rng = random.Random(seed)
    how = rng.choices(tuple(CHECKS), (7, 3, 5))[0]
    is_smooth = how == "gradients" or how == "laws" and rng.random() < 0.6
    shapes = FEW if is_smooth else SHAPES
    dtypes = ("float64",) if is_smooth else DTYPES
    first, second = ((rng.choice(dtypes), rng.choice(shapes)) for _ in range(2))
    second = rng.choice((first, second))
    inputs = {"a": draw_literal(rng, *first[::-1]), "b": draw_literal(rng, *second[::-1]), "n": str(rng.randrange(4))}
    writes = rng.random() < 1 / 6
    text = smooth(rng, writes, first, second) if is_smooth else called.write(rng, False) if writes else called.call(rng, False)
    text = text.format(a="a", b="b", n="n", r=format_number(rng.choice((0.5, 1.5, -2.0))))
    lines = ["a = a.clone()", f"v = {text}", "return v, a"] if writes else [f"return {text}"]
    return Case(how, "\n    ".join(["def f(a: Tensor, b: Tensor, n: int):", *lines]) + "\n", inputs, options(rng, how, is_smooth))


def smooth(rng: random.Random, writes: bool, first: tuple[str, Shape], second: tuple[str, Shape]) -> str:
    """A call that gives double precision, as its operands have."""
    for _ in range(8):
        drawn = called.write(rng, True) if writes else called.call(rng, True)
        facts = called.facts(drawn, Facts(*first), Facts(*second), True)
        if facts is not None and facts.dtype == "float64":
            return drawn
    return "{a} + 0"


def options(rng: random.Random, how: str, is_smooth: bool) -> dict[str, str]:
    """How the call is run, differentiated or transformed."""
    if how == "laws":
        return {"laws": " ".join(rng.sample(sorted(laws.SMOOTH if is_smooth else laws.GENERAL), 2))}
    if how == "gradients":
        return {"ways": " ".join(rng.sample(("vjp", "plain", "record", "pair", "groups", "differences"), 2))}
    return {"ways": rng.choice(("run", "plain", "unoptimised"))}


def check(case: Case, tally: Counter[str]) -> None:
    """What the case's kind asks for. Raises Wrong, Skip."""
    CHECKS[case.kind](case, tally)
    if case.kind == "calls":
        layouts.check(case, tally)


def smaller(case: Case) -> Iterator[Case]:
    """As programs are made smaller."""
    yield from (laws if case.kind == "laws" else programs).smaller(case)
