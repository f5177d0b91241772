"""Plans leave out a copy only where nobody sees that it shares memory with its original: chains of copies and writes, all of four steps."""
from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import irtool

X = np.arange(6.0).reshape(2, 3)
STEPS = ("aten::clone({}, %none)", "aten::select_scatter({}, %row, %zero, %place)")


def chain(kinds: tuple[int, ...], sources: tuple[int, ...], is_late: bool) -> str:
    """A graph of copies of the values made so far, whole or with a row replaced. Each is read by the last nodes, or (not late) where it is
    made."""
    lines = ["graph(%x : Tensor, %row : Tensor):", "  %none : NoneType = prim::Constant()", "  %zero : int = prim::Constant[value=0]()",
             "  %place : int = prim::Constant[value=1]()", "  %half : float = prim::Constant[value=0.5]()",
             "  %v0 : Tensor = aten::mul(%x, %half)"]
    reads = []
    for number, (kind, source) in enumerate(zip(kinds, sources, strict=True), 1):
        lines.append(f"  %v{number} : Tensor = " + STEPS[kind].format(f"%v{source}"))
        reads.append(f"  %r{number} : Tensor = aten::exp(%v{number})")
        if not is_late:
            lines.append(reads.pop())
    results = ", ".join(f"%r{number}" for number in range(1, len(kinds) + 1))
    return "\n".join([*lines, *reads, f"  return ({results})"])


@pytest.mark.parametrize("is_late", [True, False])
@pytest.mark.parametrize("kinds", list(product((0, 1), repeat=4)), ids=lambda kinds: "".join("cs"[kind] for kind in kinds))
def test_a_plan_gives_what_the_interpreter_gives(kinds: tuple[int, ...], is_late: bool) -> None:
    for sources in product(range(1), range(2), range(3), range(4)):
        graph = irtool.parse(chain(kinds, sources, is_late)).graph()
        want = irtool.run(graph, [X, np.full(3, 9.0)], interpret=True)
        executor = irtool.compile(graph, native=False)
        for _ in range(3):
            for got, each in zip(executor(X, np.full(3, 9.0)), want, strict=True):
                np.testing.assert_array_equal(got, each, err_msg=str(graph))
