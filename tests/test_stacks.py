"""Loops that keep what they need in rows of arrays, and write over what they carry."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute.native.building import compiler
from irtool.execute.plan import parallel
from irtool.execute.plan.compiled import Plan
from irtool.interpret import run
from irtool.torchscript import compile_source
from tests.loop_texts import LSTM_SOURCE
from tests.peaks import plans_of

CELLS = LSTM_SOURCE + """
def swap(x, a, b):
    for t in range(4):
        a, b = b, a + x[t]
    return a, b


def begins_with_one_array(x, a, b):
    b = a
    for t in range(4):
        a = a + x[t]
        b = b * x[t]
    return a, b


def numbers(x, a, b):
    for t in range(4):
        a = a * 0.5
        b = torch.tanh(b - a) * 0.25
    return a, b


def asserted(x, a, b):
    for t in range(4):
        if t > 5:
            raise ValueError("never")
        a = a * 0.5
    return a + b


def handed_out(x, a, b):
    kept = [a]
    for t in range(4):
        a = a + x[t]
        kept.append(a)
    return kept


def scalars(x, a, b):
    kept: List[Tensor] = []
    total = a.sum()
    for t in range(4):
        kept.append(total)
        total = total * b.sum() + x[t].sum()
    for t in range(4):
        total = total - kept[3 - t] * kept[-1]
    return total


def pieces(x, a, b):
    kept: List[Tensor] = []
    for t in range(4):
        both = torch.cat([a, x[t]], 1)
        left, right = both.chunk(2, 1)
        kept.append(right)
        a = torch.tanh(left) * right
    for t in range(4):
        b = b * kept[3 - t]
    return b


def made_again(x, a, b):
    numbers: List[Tensor] = []
    others: List[Tensor] = []
    kept: List[Tensor] = []
    for t in range(4):
        number = x[t].sum()
        other = torch.tanh(a)
        numbers.append(number)
        others.append(other)
        kept.append(a)
        a = number * other
    for t in range(4):
        b = b + kept[t] * kept[0] - kept[3] * numbers[t] + others[t]
    return b
"""
SHAPES = [(4, 2, 3), (2, 3), (2, 3)]


def arrays(seed: int, *shapes: tuple[int, ...]) -> list[Any]:
    """Normal numbers."""
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape) for shape in shapes]


def flat(value: Any) -> list[Any]:
    """The arrays in lists."""
    return [each for item in value for each in flat(item)] if isinstance(value, list | tuple) else [np.asarray(value)]


def agree(graph: irtool.Graph, given: list[Any], threads: int = 1) -> Plan:
    """A plan gives the bits of the interpreter, and leaves its inputs alone."""
    wanted = flat(run(graph, given))
    plan = Plan(graph, native=False, threads=threads)
    for _ in range(3):
        inputs = [each.copy() for each in given]
        found = flat(plan(inputs))
        assert [(each.dtype, each.shape, each.tobytes()) for each in found] == [(each.dtype, each.shape, each.tobytes()) for each in wanted]
        assert all(np.array_equal(a, b) for a, b in zip(inputs, given, strict=True))
    assert plan.source, "compiled, not interpreted"
    return plan


def test_going_back_through_a_loop_finds_no_memory_in_its_rounds() -> None:
    graph = compile_source(CELLS, "lstm", "cells.py").graph()
    given = arrays(0, (5, 2, 3), (2, 3), (2, 3), (3, 12), (3, 12), (12,))
    executor = irtool.compile(graph, native=False)
    for _ in range(3):
        executor.vjp(given, [np.ones((2, 3))], [3, 4, 5])
    source = plans_of(executor)[-1].source
    assert "append(" not in source, "what is kept are rows"
    loops = source[source.index("for "):]
    assert "take" not in loops and loops.count("if v") == 1, "one input of a round is computed again, but for the first round"
    wanted = irtool.compile(graph, optimize=False).vjp(given, [np.ones((2, 3))], [3, 4, 5])
    for a, b in zip(executor.vjp(given, [np.ones((2, 3))], [3, 4, 5]), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_loops_in_c_keep_rows_in_planned_memory() -> None:
    graph = compile_source(CELLS, "lstm", "cells.py").graph()
    given = arrays(0, (6, 2, 3), (2, 3), (2, 3), (3, 12), (3, 12), (12,))
    ones = [np.ones((2, 3))]
    executor, wanted = irtool.compile(graph, native=True), irtool.compile(graph, optimize=False).vjp(given, ones, [1, 3, 4, 5])
    for _ in range(3):
        for a, b in zip(executor.vjp(given, ones, [1, 3, 4, 5]), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
    plan = plans_of(executor)[-1]
    assert "for " not in plan.source and plan.memory is not None
    assert 6 * 6 * 6 * 8 < plan.memory.live <= plan.memory.peak < 7 * 6 * 6 * 8 + 4000, "six arrays of six rounds, and not seven"


@pytest.mark.parametrize("name", ["swap", "begins_with_one_array", "numbers", "asserted", "handed_out", "scalars", "pieces", "made_again"])
def test_what_is_carried_is_written_over_only_where_nobody_sees_it(name: str) -> None:
    graph, given = compile_source(CELLS, name, "cells.py").graph(), arrays(1, *SHAPES)
    agree(graph, given)
    plan = Plan(graph, native=True)
    for _ in range(3):
        for a, b in zip(flat(plan(given)), flat(run(graph, given)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    assert plan.source, "compiled, not interpreted"


def test_results_stay_what_they_are_when_a_plan_runs_again() -> None:
    plan = Plan(compile_source(CELLS, "begins_with_one_array", "cells.py").graph(), native=False)
    given = arrays(2, *SHAPES)
    first = flat([plan(given) for _ in range(4)][-1])
    before = [each.copy() for each in first]
    plan([each + 1 for each in given])
    assert all(np.array_equal(a, b) for a, b in zip(first, before, strict=True))


class Loops(random.Random):
    """Writes functions whose loops carry tensors, keep some in lists, and read those in another loop."""

    def function(self) -> str:
        """Of x, whose rows are rounds, and three tensors."""
        rounds = self.choice(["1", "4", "x.size(0)"])
        kept = [f"l{number}" for number in range(self.randrange(4))]
        appends = [f"{name}.append" for name in kept]
        values = ["a", "b", "c", "x[t]"]
        body = []
        for number in range(self.randint(2, 8)):
            kind = self.choice(["carry", "keep", "swap", "other"])
            if kind == "carry":
                body.append(f"{self.choice('abc')} = {self.expression(values)}")
            elif kind == "keep" and appends:
                body.append(f"{appends.pop()}({self.choice(values)})")
            elif kind == "swap":
                body.append("a, b = b, a")
            else:
                body.append(f"t{number} = {self.expression(values)}")
                values.append(f"t{number}")
        body += [f"{append}({self.choice(values)})" for append in appends]
        last = "x.size(0) - 1 - t" if rounds == "x.size(0)" else f"{rounds} - 1 - t"
        reads = [f"s = s {self.choice('+-*')} {name}[{self.choice(['t', last, '0', '-1'])}]" for name in kept] or ["s = s + a"]
        lines = [self.choice(["a = a * 2", "b = a", "c = torch.zeros_like(a)", "s = b"]), *[f"{name}: List[Tensor] = []" for name in kept],
                 f"for t in range({rounds}):", *[f"    {line}" for line in body], "s = a * b", f"for t in range({rounds}):",
                 *[f"    {line}" for line in reads], f"return {', '.join(['s', *self.sample('abc', self.randrange(4))])}"]
        return "def f(x, a, b, c):\n" + "\n".join([f"    {line}" for line in lines])

    def expression(self, values: list[str]) -> str:
        """One or two elementwise operators."""
        a, b, c = self.choices(values, k=3)
        return self.choice([f"{a} * {b}", f"{a} + {b} * {c}", f"torch.tanh({a})", f"-{a}", f"torch.sigmoid({a}) * {b}", f"{a} - {b}",
                            f"torch.maximum({a}, {b})", f"{a} * {b}.sum()", f"{a}.sum() * {b}"])


@pytest.mark.parametrize("seed", range(40))
def test_random_loops(seed: int) -> None:
    graph = compile_source(Loops(seed).function(), "f", "loops.py").graph()
    given = arrays(seed, (4, 2, 3), *[(2, 3)] * 3)
    agree(graph, given)
    ones = [np.ones_like(each) for each in flat(run(graph, given))]
    wanted = irtool.compile(graph, optimize=False).vjp(given, ones, [0, 1, 2, 3])
    executor = irtool.compile(graph, native=False)
    for _ in range(3):
        for a, b in zip(executor.vjp(given, ones, [0, 1, 2, 3]), wanted, strict=True):
            np.testing.assert_allclose(0.0 if a is None else a, 0.0 if b is None else b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_random_loops_on_threads(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "WORTH_BESIDE", 0.0)
    monkeypatch.setattr(parallel, "HAND_OVER", 0.0)
    graph = compile_source(Loops(seed).function(), "f", "loops.py").graph()
    given = arrays(seed, (4, 2, 3), *[(2, 3)] * 3)
    agree(graph, given, 3)
    ones = [np.ones_like(each) for each in flat(run(graph, given))]
    alone, beside = irtool.compile(graph, native=False), irtool.compile(graph, native=False, threads=3)
    for _ in range(3):
        for a, b in zip(beside.vjp(given, ones, [0, 1, 2, 3]), alone.vjp(given, ones, [0, 1, 2, 3]), strict=True):
            assert a is b is None or a.tobytes() == b.tobytes()
