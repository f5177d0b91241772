"""Loops as one function in C: cells of many kinds give what the interpreter gives, and what is of another form stays in Python."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute.native import building, loop_rounds
from irtool.execute.native import c_loops as native_loops
from irtool.execute.plan.compiled import Plan
from tests.loop_texts import CELLS, KEEPS, ROW, arrays, loop
from tests.plan_samples import graph_of

needs_compiler = pytest.mark.skipif(building.compiler() is None, reason="there is no C compiler")

def ways(plan: Plan) -> list[str]:
    return [way for _, way in plan.loops]


def runs(text: str, values: Sequence[Any], expected: str = "native loop", tolerance: float | None = None) -> Plan:
    """The loop runs as expected, by slots and by the function, and gives what the interpreter gives. tolerance: None for the very bits."""
    graph = graph_of(text)
    plan = Plan(graph, native=True)
    copies = [np.array(each) for each in values]
    wanted = irtool.interpret.run(graph, values)
    for _ in range(3):
        found = plan(values)
        for x, y in zip(found, wanted, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape
            if tolerance is None:
                assert np.ascontiguousarray(x).tobytes() == np.ascontiguousarray(y).tobytes()
            else:
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)
    assert all(np.array_equal(a, b) for a, b in zip(values, copies, strict=True))
    assert all(way.startswith(expected) for way in ways(plan)) and plan.loops, ways(plan)
    return plan


SIZES = [((1, 1, 1, 1), np.float64), ((5, 1, 3, 7), np.float32), ((7, 8, 16, 16), np.float32), ((4, 9, 11, 33), np.float64),
         ((3, 17, 2, 50), np.float32)]
"""Rounds, rows, width of the input and of what goes around."""
CLOSE = {np.float32: 2e-5, np.float64: 1e-12}


@needs_compiler
@pytest.mark.parametrize(("sizes", "dtype"), SIZES, ids=str)
@pytest.mark.parametrize("cell", CELLS)
def test_cells_run_as_one_function(cell: str, sizes: tuple[int, int, int, int], dtype: Any) -> None:
    text, shapes = CELLS[cell]
    runs(text, arrays(dtype, *shapes(*sizes)), tolerance=CLOSE[dtype])


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 3, 8, 9, 17])
def test_products_of_every_form(rows: int, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_rounds, "NEAR", 0 if rows % 2 else 1 << 17)        # 0: contiguous right factors are packed, too
    forms = list(product((1, 2, 7, 15, 24, 70, 150), (False, True)))
    body = "\n".join(f"""%v{k} : Tensor = aten::{"t" if transposed else "alias"}(%w{k})
        %p{k} : Tensor = aten::mm(%r, %v{k})
        %s{k} : Tensor = aten::add(%h{k}, %p{k}, %one)
        %l{k} : Tensor[] = aten::append(%list{k}, %s{k})""" for k, (_, transposed) in enumerate(forms))
    names = [", ".join(f"%{each}{k}{end}" for k in range(len(forms))) for each, end in (("g", ""), ("h", ""), ("s", ""))]
    given = ", ".join(f"%g{k} : Tensor, %w{k} : Tensor" for k in range(len(forms)))
    text = loop(f"{ROW}\n{body}\n-> (%true, {names[2]})", names[0], names[1], f"%x : Tensor, {given}",
                "".join(f"  %list{k} : Tensor[] = prim::ListConstruct()\n" for k in range(len(forms))),
                ", ".join(f"%i{k}" for k in range(len(forms))))
    gets = "".join(f"  %i{k} : Tensor = aten::stack(%list{k}, %zero)\n" for k in range(len(forms)))
    text = text.replace("  return (", f"{gets}  return (")
    sizes = [((rows, columns), (columns, 19) if transposed else (19, columns)) for columns, transposed in forms]
    runs(text, arrays(dtype, (9, rows, 19), *[each for pair in sizes for each in pair]), tolerance=10 * CLOSE[dtype])


@needs_compiler
def test_inputs_may_lie_in_any_way() -> None:
    text, shapes = CELLS["gru"]
    given = arrays(np.float64, *shapes(4, 3, 5, 6))
    given[0] = np.repeat(given[0], 2, axis=2)[:, :, ::2]
    given[2] = np.asfortranarray(given[2])
    given[3] = given[3][::-1]
    given[4] = np.repeat(given[4], 3)[::3]
    runs(text, given, tolerance=1e-12)
    given[1] = np.asfortranarray(given[1])
    runs(text, given, "loop in Python: a loop-carried value is not", tolerance=1e-12)


@needs_compiler
def test_the_number_of_rounds_may_be_told_when_it_runs() -> None:
    text = loop("""%s : Tensor = aten::tanh(%h)
        %p : Tensor = aten::mul(%s, %s)
        -> (%true, %p)""").replace("graph(", "graph(%count : int, ").replace("%n, %true", "%count, %true")
    x, h = arrays(np.float64, (2, 3), (5,))
    plan = Plan(graph_of(text), native=True)
    for count in (*range(8), -1, 3, 0):
        for _ in range(2):
            (found,) = plan([count, x, h])
            np.testing.assert_allclose(found, irtool.run(plan.graph, [count, x, h])[0], rtol=1e-13)
    assert ways(plan) == ["native loop: 0 products, 2 steps a round"]
    assert "range" not in plan.source and "node" in plan.source


@needs_compiler
def test_no_round_at_all() -> None:
    text, shapes = CELLS["lstm"]
    given = arrays(np.float32, *shapes(1, 2, 3, 4))
    given[0] = given[0][:0]
    runs(text, given, "loop in Python")


EXACT = {
    "sum": loop(f"""{ROW}
        %s : Tensor = aten::add(%h, %r, %one)
        -> (%true, %s)"""),
    "swapped": loop(f"""{ROW}
        %s : Tensor = aten::mul(%a, %r)
        -> (%true, %b, %s)""", "%h0, %h0", "%a, %b"),
    "around and unchanged": loop(f"""{ROW}
        %s : Tensor = aten::sub(%b, %r, %one)
        -> (%true, %a, %s, %s)""", "%h0, %h0, %h0", "%a, %b, %c"),
    "backwards": loop("""%last : int = aten::sub(%n, %one)
        %k : int = aten::sub(%last, %t)
        %r : Tensor = aten::select(%x, %zero, %k)
        %two : Tensor = aten::add(%h, %h, %three)
        %s : Tensor = aten::sub(%two, %r, %one)
        -> (%true, %s)"""),
    "columns": loop("""%r : Tensor = aten::select(%x, %one, %t)
        %p : Tensor = aten::mul(%r, %r)
        %s : Tensor = aten::add(%p, %h, %one)
        -> (%true, %s)"""),
    "halves": loop(f"""{ROW}
        %l : Tensor, %m : Tensor = prim::ConstantChunk[chunks=2, dim=0](%r)
        %i : Tensor, %j : Tensor = prim::ConstantChunk[chunks=2, dim=0](%h)
        %p : Tensor = aten::add(%l, %j, %one)
        %q : Tensor = aten::mul(%m, %i)
        %list : Tensor[] = prim::ListConstruct(%q, %p)
        %s : Tensor = aten::cat(%list, %zero)
        -> (%true, %s)"""),
    "comparisons": loop(f"""{ROW}
        %g : Tensor = aten::gt(%r, %h)
        %s : Tensor = aten::where(%g, %r, %h)
        %d : Tensor = aten::div(%s, %four)
        -> (%true, %d)"""),
    "powers": loop(f"""{ROW}
        %half : float = prim::Constant[value=0.5]()
        %p : Tensor = aten::pow(%r, %half)
        %q : Tensor = aten::pow(%h, %one)
        %s : Tensor = aten::add(%p, %q, %one)
        -> (%true, %s)"""),
    "a scalar": loop(f"""{ROW}
        %e : Tensor = aten::select(%r, %zero, %one)
        %s : Tensor = aten::mul(%h, %e)
        -> (%true, %s)"""),
    "rounds in a result": loop(f"""{ROW}
        %s : Tensor = aten::add(%h, %r, %one)
        %place : Tensor = aten::select(%y, %zero, %t)
        %done : Tensor = aten::copy_(%place, %s)
        -> (%true, %s)""", head="  %y : Tensor = aten::mul(%x, %three)\n", results="%h.out, %y"),
}


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EXACT)
def test_without_products_it_has_the_bits_of_the_interpreter(name: str, dtype: Any) -> None:
    x, h = arrays(dtype, (6, 6), (6,))
    runs(EXACT[name], [np.abs(x), h])


def test_whole_numbers_and_bools_go_around() -> None:
    x = np.arange(12).reshape(3, 4)
    if building.compiler() is not None:
        runs(EXACT["sum"], [x, x[0] * 7])
    runs(EXACT["sum"], [x.astype(np.int16), x[0].astype(np.int16)], "loop in Python" + ": int16 in it" * (building.compiler() is not None))


OTHER = {
    "decided": (loop(f"""{ROW}
        %s : Tensor = aten::add(%h, %r, %one)
        %m : bool = aten::lt(%t, %three)
        -> (%m, %s)"""), "each round decides whether there is another"),
    "a branch": (loop(f"""{ROW}
        %m : bool = aten::lt(%t, %three)
        %s : Tensor = prim::If(%m)
          block0():
            -> (%h)
          block1():
            -> (%r)
        -> (%true, %s)"""), "prim::If in it has no C form"),
    "a sum": (loop(f"""{ROW}
        %dtype : NoneType = prim::Constant()
        %m : Tensor = aten::sum(%r, %dtype)
        %s : Tensor = aten::mul(%h, %m)
        -> (%true, %s)"""), "aten::sum in it"),
    "grows": (loop(f"""{ROW}
        %list : Tensor[] = prim::ListConstruct(%r, %h)
        %s : Tensor = aten::cat(%list, %zero)
        -> (%true, %s)"""), "a loop-carried value is not an array of the same dtype, shape and strides in each round"),
    "reads what it writes": (loop(f"""{ROW}
        %s : Tensor = aten::add(%h, %r, %one)
        %k : Tensor = aten::select(%y, %zero, %zero)
        %place : Tensor = aten::select(%y, %zero, %t)
        %done : Tensor = aten::add_(%k, %s, %one)
        %more : Tensor = aten::add(%s, %place, %one)
        -> (%true, %more)""", head="  %y : Tensor = aten::mul(%x, %three)\n", results="%h.out, %y"),
        "it may read an array that it writes into"),
}


@pytest.mark.parametrize("name", OTHER)
def test_what_is_of_another_form_stays_in_python(name: str) -> None:
    text, reason = OTHER[name]
    runs(text, arrays(np.float64, (6, 6), (6,)), f"loop in Python: {reason}")


def test_without_a_compiler_or_where_they_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    text, shapes = CELLS["elman"]
    given = arrays(np.float64, *shapes(5, 2, 3, 4))
    plan = Plan(graph_of(text), native=False)
    expected = plan(given)
    assert ways(plan) == ["loop in Python: native loops are off"]
    plan = Plan(graph_of(text))
    plan(given)
    assert ways(plan) == ["loop in Python: too little for a native loop"]
    monkeypatch.setattr(building, "compiler", lambda: None)
    plan = Plan(graph_of(text), native=True)
    for x, y in zip(plan(given), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)
    assert ways(plan) == ["loop in Python: there is no C compiler"]


@needs_compiler
def test_work_decides_where_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_loops, "WORTH_COMPILING_SOON", 1000)
    cell, shapes = CELLS["elman"]
    curve = loop(f"{ROW}\n%e : Tensor = aten::tanh(%r)\n-> (%true, %e)")
    given = {"products": (cell, shapes(5, 2, 3, 4)), "functions": (curve, [(5, 3), (3,)]), "exact": (EXACT["sum"], [(5, 3), (3,)])}
    for least, expected in ((10**6, {"exact"}), (1000, {"products", "functions", "exact"})):       # NumPy's bits need less to gain
        monkeypatch.setattr(native_loops, "WORTH_A_LOOP", least)
        for name, (text, sizes) in given.items():
            plan = Plan(graph_of(text))
            plan(arrays(np.float64, *sizes))
            assert ways(plan)[0].startswith("native loop" if name in expected else "loop in Python: too little"), (name, least)


@needs_compiler
def test_array_objects_need_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text, shapes = CELLS["elman"]
    monkeypatch.setattr(building, "reads_objects", lambda: False)
    monkeypatch.setattr(building, "_loops", {})
    runs(text, arrays(np.float64, *shapes(5, 2, 3, 4)), tolerance=1e-12)


@needs_compiler
def test_a_result_is_memory_of_its_own() -> None:
    text, shapes = CELLS["lstm"]
    given = arrays(np.float32, *shapes(4, 2, 3, 4))
    plan = runs(text, given, tolerance=2e-5)
    first = plan(given)
    kept = [np.array(each) for each in first]
    given[1] = given[1] + 1
    second = plan(given)
    assert all(np.array_equal(a, b) for a, b in zip(first, kept, strict=True))
    assert not any(np.shares_memory(a, b) for a, b in zip(first, second, strict=True))


@needs_compiler
def test_the_workspace_is_part_of_the_memory_that_is_told() -> None:
    text, shapes = CELLS["lstm"]
    plan = runs(text, arrays(np.float32, *shapes(50, 8, 64, 64)), tolerance=1e-4)
    assert plan.memory is not None
    assert 8 * 256 * 4 < plan.memory.peak <= 1.1 * plan.memory.live < 40_000


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_are_filled_and_read_by_loops_in_c(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = arrays(dtype, (5, 4, 3), (4, 3))
    plan = runs(KEEPS, given)
    assert plan.source.count("node") >= 2 and "append" not in plan.source
    strange = [given[0].transpose(0, 2, 1).copy().transpose(0, 2, 1), given[1]]       # items keep the layout of the rows
    graph = graph_of(KEEPS)
    for x, y in zip(Plan(graph, native=True)(strange), irtool.interpret.run(graph, strange), strict=True):
        np.testing.assert_array_equal(x, y)
    monkeypatch.setattr(building, "reads_objects", lambda: False)
    monkeypatch.setattr(building, "_loops", {})
    plan = Plan(graph, native=True)
    for _ in range(3):
        np.testing.assert_array_equal(plan(given)[0], irtool.interpret.run(graph, given)[0])
    assert ways(plan) == ["native loop: 0 products, 2 steps a round", "loop in Python: this Python's lists cannot be read from C"]


@needs_compiler
def test_what_is_kept_may_not_change_later() -> None:
    text = KEEPS.replace("  return (", "  %more : Tensor = aten::add_(%i, %i, %one)\n  return (")
    given = arrays(np.float64, (5, 4, 3), (4, 3))
    graph = graph_of(text)
    plan = Plan(graph, native=True)
    for _ in range(3):
        for x, y in zip(plan(given), irtool.interpret.run(graph, given), strict=True):
            np.testing.assert_array_equal(x, y)
    assert ways(plan)[0].startswith("loop in Python: it appends an array that it may write into")


@needs_compiler
@pytest.mark.parametrize("shape", [(4, 3), (4, 1), (1, 3), (3, 2, 5)])
def test_rows_are_added_up_in_order(shape: tuple[int, ...]) -> None:
    text = loop(f"""{ROW}
        %axes : int[] = prim::ListConstruct(%zero)
        %no : bool = prim::Constant[value=0]()
        %none : NoneType = prim::Constant()
        %p : Tensor = aten::mul(%r, %r)
        %m : Tensor = aten::sum(%p, %axes, %no, %none)
        %s : Tensor = aten::add(%h, %m, %one)
        -> (%true, %s)""")
    expected = "loop in Python: aten::sum in it" if shape[1:] == (1,) else "native loop"
    runs(text, arrays(np.float32, (5, *shape), shape[1:]), expected)
