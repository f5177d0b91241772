"""Loops in compiled plans: products made for several rounds at once, lists that a loop fills, loops that begin with undefined tensors."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute.compilation import Options
from irtool.execute.executor import Executor
from irtool.execute.native.building import compiler
from irtool.execute.plan.compiled import Plan
from tests.loop_texts import ALL_ROUNDS, CELLS, FILLED, arrays, loop


def agree(text: str, values: list[Any], tolerance: float | None = None) -> Plan:
    """Slots and function give what the interpreter gives; without a tolerance, bit for bit."""
    graph = irtool.parse(text).graph()
    wanted = irtool.interpret.run(graph, values)
    plan = Plan(graph, native=False)
    for _ in range(3):
        for x, y in zip(plan(values), wanted, strict=True):
            if tolerance is None:
                assert np.ascontiguousarray(x).tobytes() == np.ascontiguousarray(y).tobytes()
            else:
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)
    return plan


@pytest.mark.parametrize(("rounds", "rows", "at_once"), [(12, 1, 6), (12, 2, 4), (11, 1, 1), (6, 8, 1), (5, 3, 1), (4, 3, 2), (7, 1, 7)])
def test_products_are_made_for_a_few_rounds_at_once(rounds: int, rows: int, at_once: int) -> None:
    text, shapes = CELLS["lstm"]
    plan = agree(text, arrays(np.float64, *shapes(rounds, rows, 5, 4)), tolerance=1e-12)
    assert plan.source.count("for ") == (1 if at_once == 1 else 2)
    assert at_once == 1 or f"range(int({at_once}))" in plan.source


def test_the_counter_goes_on_through_all_chunks() -> None:
    text = loop("""%r : Tensor = aten::select(%x, %zero, %t)
        %p : Tensor = aten::mm(%r, %w)
        %last : int = aten::sub(%n, %one)
        %k : int = aten::sub(%last, %t)
        %q : Tensor = aten::select(%x, %zero, %k)
        %s : Tensor = aten::add(%h, %p, %one)
        %u : Tensor = aten::mul(%s, %q)
        -> (%true, %u)""", inputs="%x : Tensor, %h0 : Tensor, %w : Tensor")
    plan = agree(text, arrays(np.float64, (6, 2, 3), (2, 3), (3, 3)), tolerance=1e-12)
    assert plan.source.count("for ") == 2


def test_a_recurrent_loop_takes_no_more_memory_than_its_rounds() -> None:
    text, shapes = CELLS["lstm"]
    for rounds in (10, 100):
        plan = agree(text, arrays(np.float32, *shapes(rounds, 8, 64, 64)), tolerance=1e-4)
        assert plan.memory is not None and plan.memory.peak < 40_000


def test_items_of_filled_lists_are_known() -> None:
    x = np.random.default_rng(1).standard_normal((5, 3))
    plan = agree(FILLED.replace("MORE", "return (%g)"), [x, 0])
    assert "append(" not in plan.source and "node" not in plan.source and "seen" not in plan.source
    more = "%i : Tensor = aten::__getitem__(%kept, %{0})\n  %j : int[] = aten::__getitem__(%sizes, %{0})\n  return (%g, %i, %j)"
    for index in ("zero", "last", "count"):
        text = FILLED.replace("MORE", more.format(index))
        graph = irtool.parse(text).graph()
        plan = Plan(graph)
        for count in (1, -1, -5, 4, 2, 3, 0, -2):
            wanted = irtool.interpret.run(graph, [x, count])
            for _ in range(2):
                found = plan([x, count])
                assert np.array_equal(found[1], wanted[1]) and found[2] == wanted[2]
                np.testing.assert_array_equal(found[0], wanted[0])
        if index == "count":
            for count in (5, -6):
                with pytest.raises(irtool.Error, match="out of range"):
                    plan([x, count])


@pytest.mark.parametrize("other", [
    "%more : Tensor[] = aten::append(%kept, %h)\n  %i : Tensor = aten::__getitem__(%kept, %n)\n  return (%g, %i)",
    "%i : Tensor = aten::stack(%kept, %zero)\n  return (%g, %i)",
    "return (%g, %kept)",
])
def test_lists_that_others_see_are_lists(other: str) -> None:
    x = np.random.default_rng(2).standard_normal((4, 3))
    graph = irtool.parse(FILLED.replace("MORE", other)).graph()
    plan = Plan(graph)
    wanted = irtool.interpret.run(graph, [x, 0])
    for _ in range(3):
        for a, b in zip(plan([x, 0]), wanted, strict=True):
            assert np.array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("rounds", [1, 6])
def test_results_of_all_rounds(rounds: int, native: bool) -> None:
    given = arrays(np.float64, (rounds, 2, 3), (2, 3), (3, 3))
    end = "  return (%h.out, OTHERS)"
    for other in ("  %y : Tensor = aten::stack(%all, %zero)\n  return (%h.out, %y)", "  return (%h.out, %all, %sizes)",
                  "  %y : Tensor = aten::cat(%all, %one)\n  return (%h.out, %y, %all)"):
        graph = irtool.parse(ALL_ROUNDS.replace(end, other)).graph()
        plan = Plan(graph, native=native)
        wanted = irtool.interpret.run(graph, given)
        for _ in range(3):
            for x, y in zip(plan(given), wanted, strict=True):
                np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-12)
        ((_, way),) = plan.loops
        assert way.startswith("native loop" if native and compiler() is not None else "loop in Python: ") and "append" not in way


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_gradients_of_cells(cell: str, rounds: int, native: bool) -> None:
    """Forwards and backwards as one plan, whose loop backwards begins with gradients that are not there."""
    text, shapes = CELLS[cell]
    given = arrays(np.float64, *shapes(max(rounds, 1), 3, 5, 4))
    given[0] = given[0][:rounds]
    graph = irtool.parse(text)
    wrt = list(range(len(given)))
    outputs = irtool.run(graph.graph(), given)
    cotangents = [np.random.default_rng(i).standard_normal(each.shape) for i, each in enumerate(outputs)]
    wanted = Executor(graph.graph(), Options(optimize=False)).vjp(given, cotangents, wrt)
    executor = irtool.compile(graph, native=native)
    for _ in range(3):
        for x, y in zip(executor.vjp(given, cotangents, wrt), wanted, strict=True):
            if x is not None or y is not None:
                np.testing.assert_allclose(0 if x is None else x, 0 if y is None else y, rtol=1e-10, atol=1e-12)


def test_df_is_made_of_calls() -> None:
    text, shapes = CELLS["lstm"]
    given = arrays(np.float32, *shapes(10, 8, 64, 64))
    executor = irtool.compile(irtool.parse(text), native=False)
    ones = [np.ones(given[1].shape, np.float32)] * 2
    for _ in range(3):
        executor.vjp(given, ones, [3, 4, 5])
    (plan,) = executor.plans.values()
    compiled: Any = plan.together.executor.plans
    (joined,) = compiled.values()
    source = joined.code.plan.source
    assert "append(" not in source and "seen(" not in source and "[node" not in source
    memory = joined.code.plan.memory
    assert memory.peak <= 1.1 * memory.live



@pytest.mark.parametrize("threads", [1, 2])
def test_intervals_of_a_run_are_nested_as_the_instructions_are(threads: int) -> None:
    text = """graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %a : Tensor = aten::exp(%x)
  %h : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %y : Tensor):
      %m : Tensor = aten::mm(%y, %a)
      %z : Tensor = aten::tanh(%m)
      -> (%true, %z)
  return (%h)
"""
    plan = Plan(irtool.parse(text).graph(), native=False, threads=threads)
    rows = plan.intervals([np.ones((400, 400)), 7])
    assert all(start <= end for _, start, end, _ in rows)
    _, start, end, _ = max([each for each in rows if each[0].node.kind == "prim::Loop"], key=lambda row: row[2] - row[1])
    inner = [(each[1], each[2]) for each in rows if each[0].node.kind == "aten::tanh"]
    assert len(inner) == 7 and all(start <= first <= last <= end for first, last in inner)
    assert max(each[2] for each in rows if each[0].node.kind == "aten::exp") <= inner[0][0]
