"""What an executor must stand besides the ordinary: interruptions, errors of users' code, tuples, writes into inputs, side effects."""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from test_executor import SUM, WAY_NAMES, WAYS, WORKED, arrays, close, executor

import irtool
from irtool.execute.compilation import Options
from irtool.execute.debug_state import debug_state
from irtool.execute.executor import Executor
from irtool.execute.phases import clear_custom_passes, register_custom_pass
from irtool.ir.errors import PassError, RunError, VerifyError
from irtool.ir.graph import Graph

ALL_WAYS = pytest.mark.parametrize("options", WAYS, ids=WAY_NAMES)


# -- gradients
@pytest.mark.parametrize("text", [WORKED, WORKED.replace("return (%7)", "return (%6, %b)")], ids=["tuple", "plain"])
def test_a_tensor_of_a_tuple_without_a_cotangent_is_undefined_to_df(text: str) -> None:
    """As torch: where only the first output has a gradient, the four others that df takes are undefined."""
    run = executor(text, Options(whole=False))
    x, y = arrays((2, 3), (2, 3))
    run.record([x, y], [0]).backward([np.ones(()), None])
    (plan,) = debug_state(run)["execution_plans"].values()
    (df,) = plan["executors"]
    (spec,) = df["execution_plans"]
    assert spec.count("Tensor[AutogradZero]") == 4 and "AutogradAdd" not in str(df["execution_plans"][spec]["graph"])


@ALL_WAYS
@pytest.mark.parametrize("pair", ["(Tensor, Tensor) = prim::TupleConstruct", "Tensor[] = prim::ListConstruct"])
def test_an_input_that_is_written_into_leaves_in_a_tuple(options: Options, pair: str) -> None:
    run = executor(f"""graph(%x : Tensor, %k : Tensor):
  %2 : int = prim::Constant[value=1]()
  %3 : Tensor = aten::mul(%x, %x)
  %4 : Tensor = aten::add_(%k, %2, %2)
  %5 : {pair}(%k, %3)
  return (%3, %5)
""", options)
    x, k = arrays((3,), (3,))
    kept, g = k.copy(), np.ones(3)
    record = run.record([x, k], [0])
    assert np.array_equal(record.outputs[1][0], kept + 1) and np.array_equal(k, kept)
    close(record.backward([None, None, g])[0], 2 * x)
    close(run.vjp([x, k], [g, None, g], [0])[0], 4 * x)


def test_groups_in_which_dtypes_meet() -> None:
    """The gradient of a sum is of the dtype of its operand before the product asks for it."""
    run = executor("""graph(%x : Tensor, %y : Tensor):
  %2 : int = prim::Constant[value=1]()
  %3 : Tensor = aten::mm(%x, %x)
  %4 : Tensor = aten::tanh(%3)
  %5 : Tensor = aten::sigmoid(%y)
  %6 : Tensor = aten::add(%5, %4, %2)
  %7 : Tensor = aten::tanh(%6)
  %8 : Tensor = aten::mul(%7, %7)
  return (%8)
""", Options(whole=False))
    x, y, g = arrays((3, 3), (3, 3), (3, 3))
    found = run.vjp([x.astype(np.float32), y], [g], [0, 1])
    expected = run.vjp([x, y], [g], [0, 1])
    close(found[0], expected[0].astype(np.float32), 1e-4)
    close(found[1], expected[1], 1e-5)


# -- what users hang into it
@pytest.fixture
def custom() -> Iterator[Callable[..., Any]]:
    """Registers passes for one test."""
    yield register_custom_pass
    clear_custom_passes()


class TestCustomPasses:
    def test_in_the_order_in_which_they_were_registered(self, custom: Callable[..., Any]) -> None:
        order: list[int] = []
        custom(lambda graph: order.append(1))
        custom(lambda graph: order.append(2))
        executor(SUM)(*arrays((2, 3), (2, 3)))
        assert order == [1, 2]

    @pytest.mark.parametrize("wrt", [[], [0]])
    def test_one_that_fails_is_named_and_nothing_is_left_behind(self, custom: Callable[..., Any], wrt: list[int]) -> None:
        @custom
        def careless(graph: Graph) -> bool:
            raise KeyError("where")

        run = executor(SUM)
        inputs = arrays((2, 3), (2, 3))
        for _ in range(2):
            with pytest.raises(PassError, match="the custom pass 'careless' failed: KeyError: 'where'"):
                run.record(inputs, wrt)
        assert not run.plans
        clear_custom_passes()
        run.record(inputs, wrt)
        assert len(run.plans) == 1

    def test_one_that_leaves_no_graph_is_named(self, custom: Callable[..., Any]) -> None:
        @custom
        def breaks(graph: Graph) -> bool:
            first = next(iter(graph.block))
            first.set_inputs([graph.outputs[0], *first.inputs[1:]])
            return True

        with pytest.raises(VerifyError, match="which is defined below") as caught:
            executor(SUM)(*arrays((2, 3), (2, 3)))
        assert "after the custom pass 'breaks'" in str(caught.value)

    def test_an_interruption_leaves_nothing_behind(self, custom: Callable[..., Any]) -> None:
        @custom
        def interrupted(graph: Graph) -> bool:
            raise KeyboardInterrupt

        run = executor(SUM)
        inputs = arrays((2, 3), (2, 3))
        with pytest.raises(KeyboardInterrupt):
            run(*inputs)
        clear_custom_passes()
        assert np.array_equal(run(*inputs)[0], irtool.run(run.graph, inputs, interpret=True)[0])

    def test_what_cannot_be_called_is_refused(self) -> None:
        with pytest.raises(RunError, match="register_custom_pass: expected a function, got int"):
            register_custom_pass(5)  # type: ignore[arg-type]


@ALL_WAYS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_python_operator_may_call_the_executor_it_runs_in(options: Options, dtype: Any) -> None:
    """While a plan is made nothing of the user's runs, so that nobody waits for the lock that he holds."""
    inner: dict[str, Any] = {}
    calls: list[Any] = []
    x, y = arrays((3,), (3,))

    def again(value: Any) -> Any:
        calls.append(value)
        return inner["run"](value, y)[0] if len(calls) < 3 else value * 2

    irtool.register_python_op("Again", again)
    run = inner["run"] = executor("""graph(%x : Tensor, %y : Tensor):
  %2 : Tensor = aten::mul(%x, %y)
  %3 : Tensor = ^Again()(%2)
  return (%3)
""", options)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(run.record([x.astype(dtype), y], [0]).outputs[0]), daemon=True)
    thread.start()
    thread.join(60)
    assert len(calls) == 3
    np.testing.assert_allclose(found[0], x * y**3 * 2, rtol=1e-6)


@ALL_WAYS
def test_a_side_effect_is_had_once(options: Options, capsys: pytest.CaptureFixture[str]) -> None:
    run = executor("""graph(%x : Tensor, %y : Tensor):
  %2 : Tensor = aten::mul(%x, %y)
  %3 : str = prim::Constant[value="here"]()
   = prim::Print(%3)
  %5 : Tensor = aten::mm(%2, %y)
  return (%5)
""", options)
    x, y, wrong = arrays((3, 3), (3, 3), (3, 3))
    for dtype in (np.float64, np.float32):
        for _ in range(4):
            run.vjp([x.astype(dtype), y.astype(dtype)], [np.ones((3, 3), np.float32)], [0])
            assert capsys.readouterr().out == "here\n"
            run(x, y)
            assert capsys.readouterr().out == "here\n"
    for _ in range(2):
        with pytest.raises(RunError):
            run(wrong[:, :1], wrong[:1])
        assert capsys.readouterr().out == "here\n"


def constantly(given: Any) -> Callable[[Any], Any]:
    """A hook that always gives the same."""
    return lambda gradient: given


class TestHooks:
    def test_what_is_no_gradient_is_refused(self) -> None:
        x, y = arrays((2, 3), (2, 3))
        cases: tuple[tuple[Any, str], ...] = ((np.ones(7), r"hook has changed the size of value \(was \[2, 3\], got \[7\]\)"),
                                              ("a", "expected an array of numbers, but hook returned 'a'"))
        for given, message in cases:
            record = executor(SUM).record([x, y], [0])
            record.hook_output(0, constantly(given))
            with pytest.raises(RunError, match=message):
                record.backward([x])
        record = executor(SUM).record([x, y], [0])
        record.hook_before(0, lambda came: 5)
        with pytest.raises(RunError, match="expected a list of gradients, but hook returned 5"):
            record.backward([x])

    def test_one_may_call_the_executor_it_hangs_in(self) -> None:
        x, y = arrays((2, 3), (2, 3))
        run = executor(SUM)
        expected = run.vjp([x, y], [x], [0])
        seen: list[Any] = []
        record = run.record([x, y], [0])
        record.hook_output(0, lambda gradient: seen.append(run.vjp([x, y], [gradient], [0])))
        close(record.backward([x])[0], expected[0])
        close(seen[0][0], expected[0])


# -- threads
def test_threads_share_what_runs_other_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    run = executor(SUM, Options(profiling=True))
    x, y = arrays((3, 3), (3, 3))
    for _ in range(2):
        run(x, y)
    barrier = threading.Barrier(8)
    nested = Executor.nested
    found: list[Executor] = []

    def slow(self: Executor, *given: Any) -> Executor:
        threading.Event().wait(0.02)
        return nested(self, *given)

    monkeypatch.setattr(Executor, "nested", slow)

    def work() -> None:
        assert run.profile is not None
        barrier.wait()
        found.append(run.profile.next())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(map(id, found))) == 1


# -- memory of the caller's
@pytest.mark.parametrize("options", [None, *WAYS, Options(native=True), Options(profiling=True)])
@pytest.mark.parametrize("parts", [
    lambda a: (a, a), lambda a: (a, a[0]), lambda a: (a[0], a), lambda a: (a[:2], a[1:]), lambda a: (a[:, ::2], a[:, 1:3]),
    lambda a: (a[:, 0], a[:, 1]), lambda a: (a.T, a[1][:, None]),
], ids=["same", "row", "whole", "overlap", "columns", "beside", "transposed"])
def test_inputs_that_share_memory_share_it_while_a_graph_writes(options: Options | None, parts: Callable[[Any], tuple[Any, Any]]) -> None:
    """As torch: a write through one of them shows in the other. The caller's array stays as it is."""
    graph = irtool.parse("""graph(%x : Tensor, %y : Tensor):
  %2 : int = prim::Constant[value=3]()
  %3 : int = prim::Constant[value=1]()
  %4 : Tensor = aten::add_(%x, %2, %3)
  %5 : Tensor = aten::mul(%y, %2)
  %6 : Tensor = aten::mul_(%y, %2)
  return (%x, %y, %5)
""").graph()
    whole = np.arange(12.0).reshape(3, 4)
    theirs = whole.copy()
    x, y = parts(theirs)
    x += 3
    product = y * 3
    y *= 3
    run = None if options is None else Executor(graph, options)
    for _ in range(3):
        given = whole.copy()
        found = irtool.run(graph, list(parts(given)), interpret=True) if run is None else run(*parts(given))
        for mine, expected in zip(found, (x, y, product), strict=True):
            assert np.array_equal(mine, expected)
        assert np.array_equal(given, whole)


def test_a_plan_is_made_for_a_spec_whose_sizes_do_not_run() -> None:
    """Sizes are not in a spec: `irtool plan --spec` makes them up."""
    run = executor("""graph(%x : Tensor):
  %2 : int = prim::Constant[value=2]()
  %3 : NoneType = prim::Constant()
  %4 : int[] = prim::ListConstruct(%2, %2)
  %5 : Tensor = aten::view(%x, %4)
  %6 : Tensor = aten::tanh(%5)
  %7 : Tensor = aten::sum(%6, %3)
  return (%7)
""")
    assert "DifferentiableGraph" in str(run.plan_for(np.ones(1), wrt=[0]).graph)
    with pytest.raises(RunError, match=r"shape '\[2, 2\]' is invalid for input of size 1"):
        run.vjp([np.ones(1)], [np.ones(())], [0])
    x = np.arange(4.0)
    close(run.vjp([x], [np.ones(())], [0])[0], 1 - np.tanh(x) ** 2)


# -- phases
def test_required_passes_always_run() -> None:
    """Regions of gradients are decided when they run, in the plan that fits everything too."""
    run = executor(WORKED, Options(optimize=False))
    x, y = arrays((2, 3), (2, 3))
    run.vjp([x, y], [np.ones(()), np.ones((2, 3))], [0])
    assert run.fallback is not None
    run = executor("""graph(%g : Tensor, %x : Tensor):
  %2 : Tensor = prim::GradOf[name="aten::tanh"](%g)
    block0():
      %3 : Tensor = aten::tanh_backward(%g, %x)
      -> (%3)
  return (%2)
""", Options(optimize=False))
    close(run(x, y)[0], x * (1 - y * y))
    assert run.fallback is not None and "GradOf" not in str(run.fallback.graph) and "AutogradAnyNonZero" in str(run.fallback.graph)


def test_a_python_operator_makes_a_graph_need_gradients(custom: Callable[..., Any]) -> None:
    """As torch: passes that may leave nodes without gradients do not see it."""
    seen: list[Graph] = []
    custom(seen.append)
    irtool.register_python_op("Twice", lambda value: value * 2)
    (x,) = arrays((3,))
    found = executor("graph(%x : Tensor):\n  %1 : Tensor = ^Twice()(%x)\n  %2 : Tensor = aten::neg(%1)\n  return (%2)\n")(x)
    assert np.array_equal(found[0], -2 * x) and not seen
