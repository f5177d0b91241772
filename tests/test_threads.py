"""Several threads: the same bits, the same first error, and nothing that waits for ever.

`all_heavy` makes every call worth a task, so that small random graphs are run by several threads in every way they can be.
"""
from __future__ import annotations

import _thread
import gc
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.dispatch.autograd import Entry
from irtool.execute import fusion, plan_cache, tape_ahead, thread_pool
from irtool.execute.compilation import Options
from irtool.execute.executor import Executor
from irtool.execute.native.building import compiler
from irtool.execute.plan import costs, parallel
from irtool.execute.plan.compiled import Plan
from irtool.execute.recording import Recording
from irtool.execute.thread_pool import Crew, Failed, pool, share
from irtool.ir.errors import RunError
from irtool.torchscript import compile_source
from tests.plan_samples import array, arrays_in, check, difference, graph_of, outcome
from tests.random_graphs import Writer
from tests.random_programs import program


@pytest.fixture
def all_heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "WORTH_BESIDE", 0.0)
    monkeypatch.setattr(parallel, "HAND_OVER", 0.0)
    monkeypatch.setattr(costs, "blas_threads", lambda: 1)
    monkeypatch.setattr(fusion, "WORTH_THREADS", 1)


def layers(count: int, width: int = 0) -> str:
    """An MLP with `count` weights; with a width, as many branches side by side."""
    names = [f"%w{i}" for i in range(count * max(width, 1))]
    lines = [f"graph(%x : Tensor, {', '.join(f'{name} : Tensor' for name in names)}):", "  %none : NoneType = prim::Constant()",
             "  %one : int = prim::Constant[value=1]()"]
    ends = []
    for branch in range(max(width, 1)):
        value = "%x"
        for i in range(count):
            lines.append(f"  %m{branch}_{i} : Tensor = aten::mm({value}, {names[branch * count + i]})")
            lines.append(f"  %r{branch}_{i} : Tensor = aten::tanh(%m{branch}_{i})")
            value = f"%r{branch}_{i}"
        ends.append(value)
    for i, end in enumerate(ends[1:], 1):
        lines.append(f"  %s{i} : Tensor = aten::add({ends[0] if i == 1 else f'%s{i - 1}'}, {end}, %one)")
    last = f"%s{width - 1}" if width > 1 else ends[0]
    return "\n".join([*lines, f"  %loss : Tensor = aten::sum({last}, %none)", f"  return ({last}, %loss)"]) + "\n"


def weights(count: int, size: int) -> list[Any]:
    return [array("float32", (size, size), np.random.default_rng(i)) for i in range(count)]


# -- the same results
@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed: int, all_heavy: None) -> None:
    """With views, writes, lists, branches and loops."""
    for condition, rounds in ((True, 2), (False, 0)):
        check(graph_of(Writer(seed).graph()), lambda condition=condition, rounds=rounds: [
            *[array("float32", (3, 3), np.random.default_rng(i)) for i in range(2)], condition, rounds], threads=2 + seed % 3)


@pytest.mark.parametrize("seed", range(16))
def test_gradients_of_random_programs(seed: int, all_heavy: None) -> None:
    """Every other one writes into tensors."""
    graph = compile_source(program(seed, seed % 2 > 0), "f", "f.py").graph()
    values = [*[0.7 * np.random.default_rng(i).standard_normal(3) for i in range(2)], 3]

    def gradients(threads: int) -> Any:
        run = irtool.compile(graph, threads=threads)
        given = [np.ones_like(each) for each in arrays_in(run(*values))]
        return [outcome(lambda: run.vjp(values, given, [0, 1])) for _ in range(3)]

    assert not difference(gradients(4), gradients(1))


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("text, count", [(layers(3), 3), (layers(1, 5), 5), (layers(2, 3), 6)], ids=["deep", "wide", "both"])
def test_layers_and_their_gradients(text: str, count: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "blas_threads", lambda: 1)
    values = weights(count + 1, 300)
    one, several = irtool.compile(graph_of(text)), irtool.compile(graph_of(text), threads=threads)
    for _ in range(3):
        assert not difference(several(*values), one(*values))
        given = [np.ones((300, 300), np.float32), np.ones((), np.float32)]
        wrt = list(range(count + 1))
        assert not difference(several.vjp(values, given, wrt), one.vjp(values, given, wrt))
    (plan,) = [each for spec, each in several.plans.items() if spec.requires_gradient]
    (backward,) = plan.together.executor.plans.values()
    assert "start(dot" in backward.code.plan.source and backward.code.plan.beside[0].startswith("aten::mm")


def test_random_numbers_are_drawn_in_order(all_heavy: None) -> None:
    text = "graph(%x : Tensor):\n  %p : float = prim::Constant[value=0.5]()\n  %t : bool = prim::Constant[value=1]()\n"
    text += "".join(f"  %e{i} : Tensor = aten::exp(%x)\n  %d{i} : Tensor = aten::dropout(%e{i}, %p, %t)\n" for i in range(4))
    graph = graph_of(text + "  return (%d0, %d1, %d2, %d3)\n")
    x = array("float64", (40,), np.random.default_rng(0))
    one, several = irtool.compile(graph), irtool.compile(graph, threads=3)
    for seed in range(4):
        assert not difference(several(x, seed=seed), one(x, seed=seed))


CONVOLUTIONS = """graph(%x : Tensor, %w : Tensor, %v : Tensor, %b : Tensor):
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %zeros : int[] = prim::ListConstruct(%zero, %zero)
  %1 : Tensor = aten::conv2d(%x, %w, %b, %ones, %zeros, %ones, %one)
  %2 : Tensor = aten::relu(%1)
  %3 : Tensor = aten::conv2d(%x, %v, %b, %ones, %zeros, %ones, %one)
  %4 : Tensor = aten::relu(%3)
  %5 : Tensor = aten::mul(%2, %4)
  %loss : Tensor = aten::sum(%5, %none)
  return (%loss)
"""


@pytest.mark.parametrize("native", [None, False])
def test_convolutions(monkeypatch: pytest.MonkeyPatch, native: bool | None) -> None:
    """In C they share their positions; in NumPy the facts of results are those of the first run, when the plan is made of groups, too."""
    monkeypatch.setattr(costs, "blas_threads", lambda: 1)
    in_c = native is None and compiler() is not None
    values = [array("float32", shape, np.random.default_rng(0)) for shape in ((8, 16, 32, 32), (32, 16, 3, 3), (32, 16, 3, 3), (32,))]
    one, several = [irtool.compile(graph_of(CONVOLUTIONS), threads=threads, native=native) for threads in (1, 2)]
    given, wrt = [np.ones((), np.float32)], [0, 1, 2, 3]
    for _ in range(3):
        assert not difference(several(*values), one(*values))
        assert not difference(several.vjp(values, given, wrt), one.vjp(values, given, wrt))
    for run in (one, several):
        (source,) = [plan.code.plan.source for spec, plan in run.plans.items() if not spec.requires_gradient]
        assert ("convolution(" in source) == in_c and source.count("seen(") == 2 * (not in_c) and source.count("group(") == (not in_c)
        assert source.count("start(") == (run is several and not in_c)
    (plan,) = [each for spec, each in several.plans.items() if spec.requires_gradient]
    (backward,) = plan.together.executor.plans.values()
    tasks = ["aten::conv2d (line 7)", "aten::convolution_backward (line 9)"]
    lines = [line.split(",")[0] for line in backward.code.plan.beside]
    assert lines == tasks or in_c and lines[-1] == "large convolutions share their positions among 2 threads"


LOOP = """graph(%x : Tensor, %w : Tensor, %v : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %out : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %c : Tensor):
      %1 : Tensor = aten::mm(%c, %w)
      %2 : Tensor = aten::mm(%c, %v)
      %3 : Tensor = aten::sub(%1, %2, %one)
      %4 : Tensor = aten::tanh(%3)
      -> (%true, %4)
  %most : Tensor = aten::max(%out)
  %more : Tensor = aten::gt(%most, %one)
  %b : bool = aten::Bool(%more)
  %end : Tensor = prim::If(%b)
    block0():
      %5 : Tensor = aten::mm(%out, %w)
      %6 : Tensor = aten::mm(%out, %v)
      %7 : Tensor = aten::add(%5, %6, %one)
      -> (%7)
    block1():
      %8 : Tensor = aten::mm(%out, %v)
      %9 : Tensor = aten::mm(%out, %w)
      %10 : Tensor = aten::mul(%8, %9)
      -> (%10)
  return (%end)
"""


def test_within_a_round_and_within_a_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "blas_threads", lambda: 1)
    values = weights(3, 200)
    plan = check(graph_of(LOOP), lambda: [*[each.copy() for each in values], 3], threads=2, native=False)
    assert [line.split("=")[0] for line in plan.source.splitlines() if " = start(dot" in line] == [f"            t{i} " for i in range(3)]


def test_nothing_is_left_to_the_collector(all_heavy: None) -> None:
    plan, values = Plan(graph_of(layers(2, 2)), threads=3), weights(5, 30)
    for _ in range(3):
        plan(values)
    gc.collect()
    for _ in range(20):
        plan(values)
    assert not gc.collect()


# -- when there is nothing to gain
@pytest.mark.parametrize("text, count", [(layers(4), 4), (layers(1), 1)])
def test_a_chain_has_the_source_it_has_with_one_thread(text: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "blas_threads", lambda: 1)
    values = weights(count + 1, 200)
    one, several = Plan(graph_of(text)), Plan(graph_of(text), threads=4)
    one.compile(values)
    several.compile(values)
    assert several.source == one.source and "start" not in one.source
    assert several.beside == ["nothing runs beside anything else: no two independent nodes take 0.1 ms or more on one thread"]


def test_products_are_left_to_a_blas_that_has_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "blas_threads", lambda: 2)
    monkeypatch.setattr(parallel, "blas_threads", lambda: 2)
    plan = Plan(graph_of(layers(1, 3)), threads=2)
    plan.compile(weights(4, 300))
    assert "start" not in plan.source
    assert plan.beside[1] == "large products are left to BLAS, which shares each among its 2 threads"


def test_how_many_threads_blas_has(monkeypatch: pytest.MonkeyPatch) -> None:
    assert costs.blas_threads() >= 1
    monkeypatch.setattr(costs, "_blas", lambda: lambda: 3)
    assert costs.blas_threads() == 3
    monkeypatch.setattr(costs, "_blas", lambda: None)
    monkeypatch.setenv("MKL_NUM_THREADS", "many")
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert costs.blas_threads() == 5


# -- errors
FAILING = """graph(%x : Tensor, %y : Tensor):
  %zero : int = prim::Constant[value=0]()
  %s : Tensor = aten::exp(%x)
  %1 : Tensor = aten::inverse(%x)
  %2 : Tensor = aten::inverse(%y)
  %t : Tensor = aten::exp(%y)
  %3 : Tensor = aten::cholesky(%x)
  return (%1, %2, %3, %s, %t)
"""


def test_the_first_error_is_the_one_that_one_thread_meets(all_heavy: None) -> None:
    singular, regular = np.zeros((3, 3)), np.eye(3)
    for x, y, line in ((singular, singular, 4), (regular, singular, 5), (singular, regular, 4), (-regular, regular, 7)):
        plan = Plan(graph_of(FAILING), threads=4)
        messages = set()
        for _ in range(4):
            with pytest.raises(RunError, match=f"g.ir:{line}:") as caught:
                plan([x, y])
            messages.add(str(caught.value))
        assert messages == {outcome(lambda x=x, y=y: Plan(graph_of(FAILING))([x, y]))[1]}
    assert "start(node" in plan.source
    assert not difference(plan([regular, regular]), Plan(graph_of(FAILING))([regular, regular]))      # none of it is in the way later


def test_of_several_errors_the_first_started_comes_out() -> None:
    def fail(text: str) -> None:
        raise ValueError(text)

    for wait_for in (0, 1, None):
        with pytest.raises(Failed, match="first") as caught, Crew(3) as start:
            tasks = [start(fail, "first"), start(fail, "second"), start(fail, "third")]
            if wait_for is None:
                raise TypeError("here")
            tasks[wait_for]()
        assert isinstance(caught.value.error, ValueError)
    with pytest.raises(TypeError, match="here"), Crew(3) as start:
        start(len, "ab")
        raise TypeError("here")


def test_an_interruption_waits_for_nobody() -> None:
    gate, begun = threading.Event(), threading.Event()

    def held() -> None:
        begun.set()
        gate.wait(10)

    with pytest.raises(KeyboardInterrupt), Crew(2) as start:
        running = start(held)
        begun.wait(10)
        waiting = [start(len, "ab") for _ in range(3)]
        raise KeyboardInterrupt
    assert running.done.locked()
    gate.set()
    running.finish()
    assert all(task.done.locked() and task.claim.locked() for task in waiting)      # nobody will run them
    with Crew(2) as start:
        assert start(len, "abc")() == 3


def test_a_plan_that_is_interrupted_runs_again(all_heavy: None) -> None:
    plan, values = Plan(graph_of(layers(2, 3)), threads=3), weights(7, 60)
    wanted = [plan(values) for _ in range(3)][-1]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)       # processes in the background are often started without
    try:
        for turn in range(5):
            timer = threading.Timer(0.002 * turn, _thread.interrupt_main)
            with pytest.raises(KeyboardInterrupt):
                timer.start()
                while True:
                    assert not difference(plan(values), wanted)
            timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert not difference(plan(values), wanted)


def test_an_interrupted_run_keeps_its_memory(all_heavy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may still be writing there: the next run has memory of its own."""
    plan = Plan(graph_of(layers(1, 2)), threads=2)
    values = weights(3, 20)
    wanted = [plan(values) for _ in range(3)][-1]
    (variant,) = plan.variants.values()
    assert variant.workspace is not None and len(variant.workspace.free) == 1

    def interrupted(self: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(thread_pool.Task, "finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            plan(values)
    assert not variant.workspace.free
    assert not difference(plan(values), wanted)


# -- the tape
def test_steps_of_the_tape_are_walked_back_beside_each_other(all_heavy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """By groups, or where hooks see gradients: one after the other then."""
    monkeypatch.setattr(tape_ahead, "WORTH_AHEAD", 0)
    begun: list[Any] = []
    look = tape_ahead.Ahead.look

    def noted(self: Any, walk: Any, places: Any) -> None:
        look(self, walk, places)
        begun.extend(self.tasks)

    monkeypatch.setattr(tape_ahead.Ahead, "look", noted)
    text, values, wrt = layers(2, 4), weights(9, 20), list(range(9))
    given = [np.ones((20, 20), np.float32), np.ones((), np.float32)]

    def recorded(threads: int) -> Any:
        options = Options(whole=False, inline_threshold=1000, threads=threads)
        return Executor(graph_of(text), options).record(values, wrt)

    wanted = recorded(1).backward(given)
    assert not begun and not difference(recorded(3).backward(given), wanted)
    assert len(set(begun)) >= 4
    begun.clear()
    hooked, seen = recorded(3), []
    hooked.hook_input(0, lambda gradient: seen.append(gradient))
    assert not difference(hooked.backward(given), wanted)
    assert len(seen) == 1 and not begun


@pytest.mark.parametrize("seed", range(12))
def test_the_tape_of_random_programs(seed: int, all_heavy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape_ahead, "WORTH_AHEAD", 0)
    graph = compile_source(program(seed, seed % 2 > 0), "f", "f.py").graph()
    values = [*[0.7 * np.random.default_rng(i).standard_normal(3) for i in range(2)], 3]

    def gradients(threads: int) -> Any:
        run = Executor(graph, Options(whole=False, inline_threshold=1000, threads=threads))
        given = [np.ones_like(each) for each in arrays_in(run(*values))]
        return [outcome(lambda: run.record(values, [0, 1]).backward(given)) for _ in range(2)]

    assert not difference(gradients(4), gradients(1))


def test_the_first_error_on_the_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the step whose turn comes first, whichever failed first."""
    monkeypatch.setattr(tape_ahead, "WORTH_AHEAD", 0)

    class Failing(Entry):
        __slots__ = ()
        may_run_ahead = True

        def propagate(self, grads: Any, apply: Any) -> Any:
            if self.saved:
                raise RunError(self.saved)
            return grads

    for texts, first in ((("a", "b", "c"), "c"), (("a", "b", ""), "b"), (("a", "", ""), "a")):
        for threads in (1, 4):
            tape = Recording(threads)
            leaf = tape.variable(irtool.Tensor(np.ones(2)))
            outputs = [tape.note(Failing(tape, "failing", [leaf], [], text), irtool.Tensor(np.ones(2))) for text in texts]
            with pytest.raises(RunError, match=f"^{first}$"):
                tape.gradients(outputs, [irtool.Tensor(np.ones(2)) for _ in texts], [leaf])


# -- nothing waits for ever
def test_tasks_may_have_tasks() -> None:
    def sum_of(depth: int) -> int:
        if not depth:
            return 1
        with Crew(2) as start:
            tasks = [start(sum_of, depth - 1) for _ in range(3)]
            return sum(task() for task in tasks)

    found: list[int] = []
    callers = [threading.Thread(target=lambda: found.append(sum_of(4))) for _ in range(8)]
    for each in callers:
        each.start()
    for each in callers:
        each.join(60)
    assert found == [81] * 8


def test_without_threads_whoever_waits_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any, **named: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(thread_pool, "Thread", refused)
    monkeypatch.setattr(thread_pool, "pool", thread_pool.Pool())
    with Crew(4) as start:
        assert [task() for task in [start(divmod, 7, 2), start(len, "ab")]] == [(3, 1), 2]
    done: list[int] = []
    share(3, done.append, range(5))
    assert done == [0, 1, 2, 3, 4]


def test_the_first_error_of_what_is_shared() -> None:
    with pytest.raises(ZeroDivisionError):
        share(3, lambda x: 1 // x, [1, 2, 0, 4, 0])


def test_the_pool_is_as_large_as_the_largest_crew() -> None:
    with Crew(3) as start:
        start(len, "")()
    count = pool.count
    assert count >= 2
    with Crew(2) as start:
        start(len, "")()
    assert pool.count == count


def test_eight_callers_at_once(all_heavy: None) -> None:
    """Two hundred runs each, of two graphs, the first while plans are being made; with errors in between."""
    text, values, bad = layers(2, 3), weights(7, 12), np.ones((5, 5), np.float32)
    wanted = irtool.compile(graph_of(text))(*values)
    run, failing = irtool.compile(graph_of(text), threads=3), irtool.compile(graph_of(FAILING), threads=3)
    barrier = threading.Barrier(8)
    wrong: list[Any] = []

    def work(number: int) -> None:
        barrier.wait()
        for turn in range(200):
            wrong.extend([difference(run(*values), wanted)])
            if turn % 20 == number:
                wrong.extend([type(outcome(lambda: run(bad, *values[1:]))) is not tuple,
                              "g.ir:5:" not in str(outcome(lambda: failing(np.eye(3), np.zeros((3, 3)))))])

    callers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for each in callers:
        each.start()
    for each in callers:
        each.join(120)
    assert not any(each.is_alive() for each in callers) and not any(wrong) and len(wrong) >= 1600


# -- plans on disk, and in words
def test_a_kept_function_runs_on_several_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_heavy: None) -> None:
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(plan_cache, "WORTH_KEEPING", 1)
    monkeypatch.setattr("irtool.execute.executor.WORTH_KEEPING", 1)
    text, values = layers(1, 3), weights(4, 20)
    wanted = irtool.compile(graph_of(text), native=False)(*values)

    def made() -> Executor:
        return irtool.compile(graph_of(text), native=False, threads=2)

    first = made()
    for _ in range(3):
        assert not difference(first(*values), wanted)
    again = made()
    assert not difference(again(*values), wanted)
    assert not again.plans and again.shelf is not None
    (function,) = [each for each in again.shelf.entries.values() if isinstance(each, plan_cache.Kept)]
    assert "Crew" in getattr(function.function, "__globals__", {})
