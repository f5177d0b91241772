"""The profiling mode: what is seen, what is made of it, and what becomes of shapes that were not seen."""
from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from test_executor import SECOND, WORKED, arrays, close, executor
from test_gradient_loops import PROGRAMS, graph_of, leaves, same, values_of

import irtool
from irtool.execute.compilation import Options
from irtool.execute.debug_state import debug_state
from irtool.execute.executor import Executor, last_executed_graph
from irtool.interpret import run as interpret

BRANCH = """graph(%x : Tensor, %y : Tensor):
  %2 : int = prim::Constant[value=0]()
  %3 : int = prim::Constant[value=1]()
  %n : int = aten::size(%x, %2)
  %c : bool = aten::gt(%n, %3)
  %4 : Tensor = prim::If(%c)
    block0():
      %5 : Tensor = aten::mul(%x, %y)
      -> (%5)
    block1():
      %6 : Tensor = aten::add(%x, %y, %3)
      -> (%6)
  return (%4)
"""
PROFILING = Options(profiling=True)


def test_one_plan_for_what_was_seen_and_a_fallback_for_the_rest() -> None:
    run = executor(BRANCH, PROFILING)
    x, y = arrays((2, 3), (2, 3))
    for _ in range(3):
        assert np.array_equal(run(x, y)[0], x * y)
    assert run.stats == {"graph_executors_constructed": 2, "graph_executor_invocations": 3, "execution_plan_cache_hit": 1,
                         "execution_plan_cache_miss": 1, "profiled_runs": 1, "guard_failures": 0}
    (plan,) = run.plans.values()
    assert "prim::If" not in str(plan.graph) and "Double(2, 3, strides=[3, 1]" in str(plan.graph)
    for _ in range(3):
        assert np.array_equal(run(x[:1], y)[0], x[:1] + y)
    assert run.stats["guard_failures"] == 3 and run.stats["profiled_runs"] == 2
    assert list(run.plans.values()) == [plan]


def test_re_specialisations_are_bounded() -> None:
    """Two guarded plans; whatever neither of them fits goes to plans as ever, one for all sizes."""
    run = executor(BRANCH, PROFILING)
    _, y = arrays((1, 3), (1, 3))
    for size in (2, 3, 4, 5, 1, 6, 7):
        x = arrays((size, 3))[0]
        for _ in range(3):
            assert np.array_equal(run(x, y)[0], x * y if size > 1 else x + y)
    depth, at = 0, run
    while at.profile is not None:
        assert len(at.plans) == 1
        depth, at = depth + 1, at.profile.next()
    assert depth == 2 and len(at.plans) == 1 and run.stats["profiled_runs"] == 2


def test_several_profiled_runs_are_merged() -> None:
    run = executor(BRANCH, Options(profiling=True, profiled_runs=2))
    y = arrays((3,))[0]
    for size in (2, 4, 5, 6):
        x = arrays((size, 3))[0]
        assert np.array_equal(run(x, y)[0], x * y)
    (plan,) = run.plans.values()
    assert "%0 : Double(*, 3, requires_grad=0, device=cpu)" in str(plan.shown) and run.stats["guard_failures"] == 0
    assert run(y, y)[0].shape == (3,) and run.stats["guard_failures"] == 1


@pytest.mark.parametrize("text", [BRANCH, SECOND, WORKED])
def test_the_guarded_graph_is_text_that_runs(text: str) -> None:
    run = executor(text, PROFILING)
    x, y = arrays((2, 3), (2, 3))
    for wrt in ([], [0, 1]):
        for _ in range(2):
            run.record([x, y], wrt)
    shown = last_executed_graph()
    assert shown is not None and "prim::TypeCheck" in str(shown) and "prim::FallbackGraph" in str(shown)
    assert run.profile is not None
    for plans in (run.plans, run.profile.next().plans):
        for plan in plans.values():
            again = irtool.parse(str(plan.shown)).graph()
            for inputs in ([x, y], [x[:1], y], [x.astype(np.float32), y]):
                for mine, its in zip(leaves(interpret(again, inputs)), leaves(interpret(run.graph, inputs)), strict=True):
                    assert np.array_equal(mine, its)


def test_what_the_nodes_saw() -> None:
    run = executor(BRANCH, PROFILING)
    x, y = arrays((2, 3), (2, 3))
    run.record([x, y], [0])
    profile = debug_state(run)["profile"]
    assert "%10 : Tensor = prim::profile[profiled_type=Double(2, 3, strides=[3, 1], requires_grad=1, device=cpu), seen_none=0]" in profile
    assert "prim::profile[profiled_type=Tensor, seen_none=0]" in profile       # the branch that was not taken
    assert str(irtool.parse(profile).graph()) == profile
    assert debug_state(run)["bailout"] is None


def test_optional_inputs_and_tuples() -> None:
    run = executor("""graph(%t : (Tensor, int), %s : int[]?, %g : Tensor?):
  %3 : Tensor, %4 : int = prim::TupleUnpack(%t)
  %5 : Tensor = aten::mul(%3, %4)
  %6 : Tensor = aten::_grad_sum_to_size(%5, %s)
  return (%6, %g)
""", PROFILING)
    x = arrays((2, 3))[0]
    cases: list[list[Any]] = [[(x, 2), None, None], [(x, 2), [3], None], [(x, 3), None, x], [(x[:1], 2), None, None]]
    for inputs in [cases[0], *cases, *cases]:
        for mine, its in zip(run(*inputs), interpret(run.graph, inputs), strict=True):
            assert mine is its is None or np.array_equal(mine, its)
    (plan,) = run.plans.values()
    again = irtool.parse(str(plan.shown)).graph()
    assert "sum_to_size" not in str(plan.graph)
    for inputs in cases:
        assert np.array_equal(interpret(again, inputs)[0], interpret(run.graph, inputs)[0])


@pytest.mark.parametrize("options", [PROFILING, Options(profiling=True, whole=False)], ids=["whole", "groups"])
@pytest.mark.parametrize("name", list(PROGRAMS)[::3])
def test_gradients_of_programs(name: str, options: Options) -> None:
    source, words = PROGRAMS[name]
    graph, values = graph_of(source), values_of(words)
    wrt = [index for index, value in enumerate(values) if not isinstance(value, int)]
    outputs = leaves(irtool.run(graph, values))
    cotangents = [np.random.default_rng(2).standard_normal(np.shape(output)) for output in outputs]
    expected = leaves(irtool.vjp(graph, values, cotangents, wrt))
    run = Executor(graph, options)
    for _ in range(3):
        for mine, its in zip(leaves(run.vjp(values, cotangents, wrt)), expected, strict=True):
            assert same(mine, its)


def test_gradients_of_other_shapes_and_orders() -> None:
    run = executor(SECOND, PROFILING)
    plain = executor(SECOND)
    for shapes in (((2, 3), (2, 3)), ((2, 3), (3,)), ((1, 3), (2, 3)), ((2, 3), (2, 3))):
        x, y = arrays(*shapes)
        g = np.ones(np.broadcast_shapes(*shapes))
        for _ in range(3):
            for mine, its in zip(run.vjp([x, y], [g], [0, 1]), plain.vjp([x, y], [g], [0, 1]), strict=True):
                close(mine, its)
            second = [each.record([x, y], [0, 1]).backward_recorded([g]).backward([x, y]) for each in (run, plain)]
            for mine, its in zip(*second, strict=True):
                close(mine, its)
            assert np.array_equal(run(x, y)[0], plain(x, y)[0])


def test_gradients_that_need_what_is_overwritten() -> None:
    """Node by node they are refused; plans take the writes out, and there is one from the first run on."""
    run = executor("graph(%x : Tensor):\n  %1 : Tensor = aten::exp(%x)\n  %2 : Tensor = aten::mul_(%1, %1)\n  return (%2)\n", PROFILING)
    x = arrays((3,))[0]
    for _ in range(3):
        close(run.vjp([x], [np.ones(3)], [0])[0], 2 * np.exp(2 * x))
        assert np.array_equal(run(x)[0], np.exp(x) * np.exp(x))
    (plan,) = run.plans.values()
    assert "DifferentiableGraph" in str(plan.graph)


def test_threads_make_one_plan() -> None:
    run = executor(BRANCH, PROFILING)
    x, y = arrays((2, 3), (2, 3))
    barrier = threading.Barrier(8)
    wrong: list[Any] = []

    def work() -> None:
        barrier.wait()
        for size in (2, 1, 2, 1, 2):
            expected = x * y if size > 1 else x[:1] + y
            if not np.array_equal(run(x[:size], y)[0], expected):
                wrong.append(size)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(run.plans) == 1 and run.stats["execution_plan_cache_miss"] <= 2 and run.stats["profiled_runs"] == 2


def test_without_profiling_there_are_four_counters() -> None:
    assert len(executor(BRANCH).stats) == 4


GUARDED = """graph(%x : Tensor):
  %p : Tensor = prim::profile_ivalue(%x)
  %y : Double(2, strides=[1], requires_grad=1, device=cpu), %b : bool = prim::TypeCheck[types=[Double(2, strides=[1], device=cpu)]](%p)
  %z : Tensor = prim::If(%b)
    block0():
      %c : Tensor = aten::mul(%y, %y)
      -> (%c)
    block1():
      %r : Tensor, %ok : bool = prim::RequiresGradCheck[types=[Float(2)]](%x)
      %d : Tensor = aten::sin(%r)
      -> (%d)
  return (%z)
"""


@pytest.mark.parametrize("interpret_it", [True, False])
def test_gradients_of_a_profiled_graph_that_torch_printed(interpret_it: bool) -> None:
    graph = irtool.parse(GUARDED)
    for x, slope in ((np.array([2.0, 3.0]), [4.0, 6.0]), (np.array([2.0, 3.0, 0.5]), np.cos([2.0, 3.0, 0.5])),
                     (np.float32([1.0, 2.0]), np.cos(np.float32([1.0, 2.0])))):
        for _ in range(2):
            (gradient,) = irtool.vjp(graph, [x], [np.ones_like(x)], [0], interpret=interpret_it)
            np.testing.assert_allclose(gradient, slope, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(irtool.grad(lambda x: irtool.jit(graph)(x).sum())(x)), slope, rtol=1e-6)


def test_gradients_of_pairs_in_lists() -> None:
    source = "def f(x, y):\n    pairs = [(x * 1, 2), (y * x, 3)]\n    a, n = pairs[1]\n    pairs.append((a, n))\n    return pairs\n"
    x, y = np.array([1.0, 2.0]), np.array([4.0, 5.0])
    run = irtool.compile(irtool.from_script(source), profiling=True)
    for _ in range(3):
        first, second = run.vjp([x, y], [np.ones(2)] * 3, [0, 1])
        assert np.array_equal(first, 1 + 2 * y) and np.array_equal(second, 2 * x)
