"""Compiled plans: what they give is what the interpreter gives, to the bit, errors included; what their source looks like."""
from __future__ import annotations

import ast
import gc
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irtool
from irtool.execute.plan.compiled import Plan, compile_plan
from irtool.execute.plan.memory import every
from irtool.execute.plan.program import Visit
from tests.corpus import TEXTS, origin
from tests.laws import over, seeds, ten
from tests.plan_samples import array, chain, check, difference, graph_of, runnable
from tests.random_graphs import Writer
from tests.script_programs import CASES, inputs_of
from tests.script_programs import graph_of as program_graph


# -- the same as the interpreter
@pytest.mark.parametrize("program, name, lines", CASES, ids=[f"{program}-{name}" for program, name, _ in CASES])
def test_programs(program: str, name: str, lines: list[str]) -> None:
    graph = program_graph(program, name)
    for line in lines:
        check(graph, lambda line=line: inputs_of(line))


@over("path", TEXTS, origin)
def test_texts_of_every_year(path: Path) -> None:
    for graph, inputs in runnable(path):
        check(graph, lambda inputs=inputs: [each.copy() if isinstance(each, np.ndarray) else each for each in inputs])


ONE = ("neg", "exp", "tanh", "sigmoid", "relu", "abs", "sqrt", "cos", "t", "sum", "contiguous", "logical_not")
TWO = ("add", "mul", "sub", "div", "maximum", "matmul", "lt")
SHAPES = ((3, 3), (3, 1), (3,), (), (1, 3))
DTYPES = ("float32", "float64", "int64", "float16", "bool")


@st.composite
def straight_graphs(draw: st.DrawFn) -> tuple[str, list[tuple[str, tuple[int, ...], bool]]]:
    """A straight line of operators on a few tensors, and the tensors' dtypes, shapes, and whether they lie transposed."""
    kinds = draw(st.lists(st.tuples(st.sampled_from(DTYPES), st.sampled_from(SHAPES), st.booleans()), min_size=1, max_size=3))
    lines = [f"graph({', '.join(f'%v{i} : Tensor' for i in range(len(kinds)))}):", "  %one : int = prim::Constant[value=1]()",
             "  %half : float = prim::Constant[value=0.5]()", "  %zero : int = prim::Constant[value=0]()"]
    count = len(kinds)
    for _ in range(draw(st.integers(1, 12))):
        operand = st.integers(0, count - 1).map("%v{}".format)
        if draw(st.booleans()):
            op = draw(st.sampled_from(ONE))
            more = {"sum": ", %none", "contiguous": ", %zero"}.get(op, "")
            if op == "sum" and "%none" not in lines[1]:
                lines.insert(1, "  %none : NoneType = prim::Constant()") if "  %none : NoneType = prim::Constant()" not in lines else None
            lines.append(f"  %v{count} : Tensor = aten::{op}({draw(operand)}{more})")
        else:
            op, second = draw(st.sampled_from(TWO)), draw(st.one_of(operand, st.just("%half")))
            second = draw(operand) if op in ("maximum", "matmul") else second
            lines.append(f"  %v{count} : Tensor = aten::{op}({draw(operand)}, {second}{', %one' if op in ('add', 'sub') else ''})")
        count += 1
    results = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3))
    results = [*results, count - 1]
    lines.append(f"  return ({', '.join(f'%v{i}' for i in results)})")
    return "\n".join(lines) + "\n", kinds


@given(straight_graphs())
def test_straight_graphs(sample: tuple[str, list[tuple[str, tuple[int, ...], bool]]]) -> None:
    text, kinds = sample

    def inputs() -> list[Any]:
        generator = np.random.default_rng(1)
        made = [array(dtype, shape, generator) for dtype, shape, _ in kinds]
        return [each.T if turned else each for each, (_, _, turned) in zip(made, kinds, strict=True)]

    check(graph_of(text), inputs)


@over("seed", seeds(120), ten)
def test_graphs_with_views_writes_lists_and_control_flow(seed: int) -> None:
    graph = graph_of(Writer(seed).graph())
    for condition, rounds in ((True, 2), (False, 0)):
        check(graph, lambda condition=condition, rounds=rounds: [
            *[array("float32", (3, 3), np.random.default_rng(i)) for i in range(2)], condition, rounds])


def test_kinds_of_inputs_have_functions_of_their_own() -> None:
    plan = Plan(graph_of("graph(%x : Tensor, %n : int):\n  %y : Tensor = aten::mul(%x, %n)\n  return (%y)\n"))
    for x in (np.ones((2, 3), np.float32), np.ones((2, 3)), np.ones(3, np.int64), np.ones((3, 2), np.float32).T, np.float32(2), 3.0):
        for n in (2, True, 5, np.int64(4), 2.0):
            for _ in range(3):
                assert not difference(plan([x, n]), irtool.run(plan.graph, [x, n], interpret=True))
    with pytest.raises(irtool.RunError, match="expected 2 inputs"):
        plan([1])
    with pytest.raises(irtool.RunError, match="input %n: expected int"):
        plan([np.ones(3), 2.5])


def test_the_same_array_twice_is_the_same_object() -> None:
    graph = graph_of("graph(%x : Tensor, %y : Tensor):\n  %c : bool = aten::__is__(%x, %y)\n  return (%c)\n")
    x = np.ones(2)
    plan = Plan(graph)
    for _ in range(3):
        assert plan([x, x]) == [True] and plan([x, x.copy()]) == [False]


MESHGRID = """graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %e : Tensor = aten::exp(%x)
  %l : Tensor[] = prim::ListConstruct(%e, %e)
  %m : Tensor[] = aten::meshgrid(%l)
  %a : Tensor, %b : Tensor = prim::ListUnpack(%m)
  %n : Tensor = aten::neg(%x)
  %o : Tensor = aten::mul(%n, %n)
  %p : Tensor = aten::add(%a, %o, %one)
  return (%p)
"""


def test_what_an_operator_looks_into_is_not_written_over() -> None:
    check(graph_of(MESHGRID), lambda: [np.arange(3, dtype=np.float32)])


def test_results_are_nobody_elses() -> None:
    """Not the constants', not the arena's, not those of the run before."""
    graph = graph_of("graph(%x : Tensor):\n  %c : Float(3) = prim::Constant[value= 1  2  3 [ CPUFloatType{3} ]]()\n"
                     "  %y : Tensor = aten::exp(%x)\n  %z : Tensor = aten::neg(%y)\n  return (%c, %y, %z)\n")
    plan = Plan(graph)
    first = [each.copy() for each in plan([np.ones(3)])]
    for _ in range(3):
        found = plan([np.ones(3)])
        assert not difference(found, first)
        for each in found:
            each += 100
    big = np.ones(100_000)
    kept = [plan([big * i]) for i in range(6)]
    assert [float(each[1][0]) for each in kept] == [float(np.exp(i)) for i in range(6)]


# -- errors
def test_an_error_names_the_line() -> None:
    text = "graph(%x : Tensor, %y : Tensor):\n  %a : Tensor = aten::exp(%x)\n  %b : Tensor = aten::mm(%a, %y)\n  return (%b)\n"
    plan = Plan(graph_of(text))
    for shape in ((3, 2), (3, 3), (2, 2)):
        for _ in range(3):
            with pytest.raises(irtool.RunError, match=r"g.ir:3:3: error: mat1 and mat2 shapes cannot be multiplied"):
                plan([np.ones((2, 5)), np.ones(shape)])


# -- form
def test_a_plan_is_readable() -> None:
    graph = graph_of(chain(4))
    plan = compile_plan(graph, spec=[np.ones((2, 3), np.float32), ("float32", (2, 3))])
    assert plan.source == """def plan(v0, v1, work):
    b0 = add(v1, v0)  # 3
    multiply(b0, v0, b0)  # 4
    subtract(b0, v0, b0)  # 5
    maximum(b0, v0, out=b0)  # 6
    return [b0]
"""


LOOP = """graph(%x : Float(3, 2), %h : Float(2)):
  %n : int = prim::Constant[value=3]()
  %two : int = prim::Constant[value=2]()
  %zero : int = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=1]()
  %r : Float(2) = prim::Loop(%n, %true, %h)
    block0(%i : int, %c : Float(2)):
      %back : int = aten::sub(%two, %i)
      %s : Tensor = aten::select(%x, %zero, %back)
      %m : Tensor = aten::mul(%s, %c)
      %odd : bool = aten::eq(%i, %two)
      %o : Tensor = prim::If(%odd)
        block0():
          %t : Tensor = aten::tanh(%m)
          -> (%t)
        block1():
          -> (%m)
      -> (%true, %o)
  return (%r)
"""


def test_control_flow_is_pythons() -> None:
    plan = check(graph_of(LOOP), lambda: [np.arange(6, dtype=np.float32).reshape(3, 2), np.ones(2, np.float32)])
    assert "for v2 in range(int(3)):" in plan.source and "2 - v2" in plan.source and "else:" in plan.source
    assert "node" not in plan.source


def test_source_holds_no_text_of_the_graph() -> None:
    evil = '\\"\\n__import__(\'os\').system(\'echo\')#'
    graph = graph_of(f'graph(%x : Tensor):\n  %s : str = prim::Constant[value="{evil}"]()\n  %y : Tensor = aten::einsum(%s, %x)\n'
                     "  return (%y, %s)\n".replace("aten::einsum(%s, %x)", "aten::neg(%x)"))
    plan = check(graph, lambda: [np.ones(2)])
    names = {node.id for node in ast.walk(ast.parse(plan.source)) if isinstance(node, ast.Name)}
    assert "system" not in plan.source and not any("import" in name for name in names)


def test_deep_blocks_and_long_graphs() -> None:
    depth = 120
    lines = ["graph(%c : bool, %x : Tensor):"]
    for i in range(depth):
        lines += [f"{'    ' * i}  %y{i} : Tensor = prim::If(%c)", f"{'    ' * i}    block0():"]
    lines.append(f"{'    ' * depth}  %z : Tensor = aten::neg(%x)")
    for i in reversed(range(depth)):
        inner = f"%y{i + 1}" if i + 1 < depth else "%z"
        lines += [f"{'    ' * i}      -> ({inner})", f"{'    ' * i}    block1():", f"{'    ' * i}      -> (%x)"]
    check(graph_of("\n".join([*lines, "  return (%y0)", ""])), lambda: [True, np.ones(1)])
    limit = sys.getrecursionlimit()
    check(graph_of(chain(3000)), lambda: [np.full(3, 0.5, np.float32), np.full(3, 0.25, np.float32)])
    assert sys.getrecursionlimit() == limit


def test_changed_results_of_operators_are_noticed() -> None:
    """The shape of nonzero's result is one thing in the first run and another in the next."""
    graph = graph_of("graph(%x : Tensor):\n  %y : Tensor = aten::nonzero(%x)\n  %z : Tensor = aten::neg(%y)\n"
                     "  %w : Tensor = aten::mul(%z, %z)\n  return (%w)\n")
    plan = Plan(graph)
    for numbers in ((1, 0, 1), (1, 0, 1), (1, 0, 1), (1, 1, 1), (0, 0, 0), (1, 0, 0)):
        x = np.array(numbers)
        assert not difference(plan([x]), irtool.run(graph, [x], interpret=True))


def test_pointwise_operators_leave_no_visits() -> None:
    text = """graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %minus : int = prim::Constant[value=-1]()
  %two : int = prim::Constant[value=2]()
  %false : bool = prim::Constant[value=0]()
  %half : float = prim::Constant[value=0.5]()
  %l : Tensor = aten::linear(%x, %w, %b)
  %g : Tensor = aten::gelu(%l, %approximate)
  %p : Tensor = aten::softmax(%g, %minus, %none)
  %a : Tensor, %c : Tensor = prim::ConstantChunk[chunks=2, dim=1](%p)
  %s : Tensor = aten::sigmoid(%a)
  %d : Tensor = aten::dropout(%s, %half, %false)
  %cat : Tensor[] = prim::ListConstruct(%d, %c)
  %e : Tensor = aten::cat(%cat, %one)
  %t : Tensor = aten::transpose(%e, %zero, %one)
  %size : int = aten::size(%t, %zero)
  %shape : int[] = prim::ListConstruct(%size, %minus)
  %v : Tensor = aten::reshape(%t, %shape)
  %f : Tensor = aten::where(%mask, %v, %zero)
  return (%f)
""".replace("  %none :", '  %approximate : str = prim::Constant[value="none"]()\n  %none :').replace(
        "  %f :", "  %mask : Tensor = aten::gt(%v, %half)\n  %f :")

    def inputs() -> list[Any]:
        generator = np.random.default_rng(0)
        return [array("float32", shape, generator) for shape in ((5, 3), (4, 3), (4,))]

    plan = check(graph_of(text), inputs)
    assert plan.latest is not None and plan.latest.program is not None
    assert [each.node.kind for each in every(plan.latest.program.body) if isinstance(each, Visit)] == []


# -- threads and memory
def test_threads_share_a_plan() -> None:
    graph = graph_of(chain(200))
    plan, failed = Plan(graph), []
    wanted = [irtool.run(graph, [np.full((4, 5), i / 8, np.float32), np.ones((4, 5), np.float32)], interpret=True) for i in range(8)]

    def work(i: int) -> None:
        for _ in range(50):
            if difference(plan([np.full((4, 5), i / 8, np.float32), np.ones((4, 5), np.float32)]), wanted[i]):
                failed.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(plan.variants) == 1


def test_thousand_runs_leave_nothing() -> None:
    graph = graph_of(LOOP)
    plan = Plan(graph)
    x, h = np.ones((3, 2), np.float32), np.ones(2, np.float32)
    for _ in range(10):
        plan([x, h])
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        before, blocks = len(gc.get_objects()), sys.getallocatedblocks()
        for _ in range(1000):
            plan([x, h])
        assert abs(len(gc.get_objects()) - before) < 20 and abs(sys.getallocatedblocks() - blocks) < 200
    finally:
        if enabled:
            gc.enable()


IN_PLACE = """graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %c : Float(2) = prim::Constant[value= 1  2 [ CPUFloatType{2} ]]()
  %a : Tensor = aten::exp(%x)
  %v : Tensor = aten::select(%a, %zero, %zero)
  %r : Tensor = aten::relu_(%v)
  %s : Tensor = aten::add_(%a, %y, %one)
  %t : Tensor = aten::t(%s)
  %u : Tensor = aten::sigmoid_(%t)
  %w : Tensor = aten::mul_(%x, %u)
  %d : Tensor = aten::neg_(%c)
  %e : Tensor = aten::mul(%v, %d)
  return (%a, %e, %w, %y, %d)
"""


def test_in_place_operators_write_through() -> None:
    plan = check(graph_of(IN_PLACE), lambda: [np.arange(4, dtype=np.float32).reshape(2, 2) - 1, np.ones((2, 2), np.float32)])
    assert "node" not in plan.source
    x = np.ones((2, 2), np.float32)
    for _ in range(3):      # y sees what is written into x
        assert not difference(plan([x, x]), irtool.run(plan.graph, [x, x], interpret=True)) and (x == 1).all()


def test_numbers_and_sizes_given_for_inputs_are_built_in_until_they_keep_changing() -> None:
    text = """graph(%x : Tensor, %n : int, %size : int[]):
  %true : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %c : Tensor):
      %d : Tensor = aten::add(%c, %i, %one)
      -> (%true, %d)
  %z : Tensor = aten::reshape(%y, %size)
  return (%z, %n, %size)
"""
    graph = graph_of(text)
    plan = Plan(graph)
    x = np.ones((2, 3), np.float32)
    for size in ([3, 2], [6], [6, 1]):
        for n in (*range(8), 3, 3):
            assert not difference(plan([x, n, size]), irtool.run(graph, [x, n, size], interpret=True))
    assert not plan.by_number and plan.by_value
    plan([x, 3, [2, 3]])
    assert plan([x, 3, [2, 3]])[2] == [2, 3] and "range(int(v1))" in plan.source


BACKWARD = """graph(%g : Tensor, %h : Tensor, %sizes : int[][]):
  %zero : int = prim::Constant[value=0]()
  %size : int[] = aten::__getitem__(%sizes, %zero)
  %a : Tensor = aten::sum_to_size(%g, %size)
  %b : Tensor = prim::AutogradAdd(%a, %h)
  %c : Tensor = prim::AutogradAdd(%b, %u)
  return (%a, %b, %c)
"""


def test_shortcuts_of_backward_graphs() -> None:
    graph = graph_of(BACKWARD.replace("  %zero", "  %u : Tensor = prim::AutogradZero()\n  %zero"))
    for shape, size in (((2, 3), [2, 3]), ((2, 3), [1, 3]), ((2, 3), [3]), ((), []), ((2, 3), []), ((2, 3), [4])):
        for dtype in ("float32", "int32"):
            check(graph, lambda shape=shape, size=size, dtype=dtype: [np.ones(shape, dtype), np.full(shape, 2, dtype), [size]])
            check(graph, lambda shape=shape, size=size: [np.ones(shape), None, [size]])


CELL = """graph(%g : Float(8, 40), %c : Float(8, 10)):
  %one : int = prim::Constant[value=1]()
  %b : Tensor = aten::add(%g, %g, %one)
  %i : Tensor, %f : Tensor, %u : Tensor, %o : Tensor = prim::ConstantChunk[chunks=4, dim=1](%b)
  %si : Tensor = aten::sigmoid(%i)
  %sf : Tensor = aten::sigmoid(%f)
  %tu : Tensor = aten::tanh(%u)
  %so : Tensor = aten::sigmoid(%o)
  %fc : Tensor = aten::mul(%sf, %c)
  %iu : Tensor = aten::mul(%si, %tu)
  %next : Tensor = aten::add(%fc, %iu, %one)
  %tc : Tensor = aten::tanh(%next)
  %h : Tensor = aten::mul(%so, %tc)
  return (%h, %next)
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gates_of_a_cell_go_through_one_sigmoid(dtype: str) -> None:
    generator = np.random.default_rng(0)
    inputs = [array(dtype, (8, 40), generator), array(dtype, (8, 10), generator)]
    plan = check(graph_of(CELL), lambda: [each.copy() for each in inputs])
    assert plan.source.count("exp(") == 1
    kept = check(graph_of(CELL.replace("return (%h, %next)", "return (%h, %next, %si)")), lambda: [each.copy() for each in inputs])
    assert kept.source.count("exp(") == 2, "what leaves the plan has a layout of its own"


def test_what_broadcasts_in_every_round_is_spread_once() -> None:
    text = """graph(%x : Tensor, %b : Tensor, %col : Tensor):
  %n : int = prim::Constant[value=3]()
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %r : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %c : Tensor):
      %d : Tensor = aten::add(%c, %b, %one)
      %e : Tensor = aten::mul(%d, %b)
      %f : Tensor = aten::sub(%col, %e, %one)
      %g : Tensor = aten::tanh(%f)
      -> (%true, %g)
  return (%r)
"""
    plan = check(graph_of(text), lambda: [array("float32", shape, np.random.default_rng(0)) for shape in ((4, 5), (5,), (4, 1))])
    assert plan.source.count("spread(") == 2


def test_copies_between_parts_that_overlap() -> None:
    """An element that is read after it was written is the new one, as in torch, interpreted, in slots and compiled."""
    graph = graph_of("""graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %3 : Tensor = aten::select(%x, %one, %two)
  %4 : Tensor = aten::select(%x, %zero, %one)
  %5 : Tensor = aten::copy_(%3, %4, %true)
  return (%x)
""")
    check(graph, lambda: [np.arange(9.0).reshape(3, 3)])
    assert irtool.run(graph, [np.arange(9.0).reshape(3, 3)], interpret=True)[0][:, 2].tolist() == [3, 4, 4]


def test_layouts_that_the_first_run_alone_gives_are_observed_again() -> None:
    """A first call often fills what later ones read, in another layout: the function relies on what the later ones show."""
    graph = irtool.parse("""graph(%c : Tensor, %x : Tensor):
  %2 : int = prim::Constant[value=0]()
  %3 : int = prim::Constant[value=1]()
  %b : bool = aten::Bool(%c)
  %y : Tensor = prim::If(%b)
    block0():
      %t : Tensor = aten::transpose(%x, %2, %3)
      -> (%t)
    block1():
      %u : Tensor = aten::relu(%x)
      -> (%u)
  %z : Tensor = aten::relu(%y)
  %w : Tensor = aten::exp(%z)
  return (%w)
""").graphs[0]
    plan = compile_plan(graph)
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    for is_first in (True, False, False, False):
        (result,) = plan([np.array(is_first), x])
        np.testing.assert_array_equal(result, np.exp(x.T if is_first else x))
    assert "seen(" in plan.source
    plan([np.array(True), x])
    (result,) = plan([np.array(True), x])
    np.testing.assert_array_equal(result, np.exp(x.T))
    assert plan.source and "seen(" not in plan.source
