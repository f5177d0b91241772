"""What users hang into the executor: passes of their own, Python operators, hooks, traces."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_executor import SUM, WAY_NAMES, WAYS, arrays, executor

import irtool
from irtool.execute.compilation import Options
from irtool.execute.executor import Executor
from irtool.execute.phases import clear_custom_passes, register_custom_pass
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import Graph


# -- custom passes and Python operators
class TestCustomPasses:
    def test_they_see_what_is_about_to_be_compiled(self) -> None:
        seen: list[str] = []

        @register_custom_pass
        def note(graph: Graph) -> bool:
            seen.append(str(graph))
            return False

        try:
            executor(SUM)(*arrays((2, 3), (2, 3)))
            assert len(seen) == 1 and "Double(*, *" in seen[0]
            executor(SUM).vjp(arrays((2, 3), (2, 3)), arrays((2, 3)), [0])
            assert len(seen) == 3       # f, and df when it is first run
        finally:
            clear_custom_passes()
        executor(SUM)(*arrays((2, 3), (2, 3)))
        assert len(seen) == 3


class TestPythonOperators:
    TEXT = """graph(%x : Tensor):
  %1 : Tensor = aten::sin(%x)
  %2 : Tensor = ^Twice()(%1)
  %3 : Tensor = aten::mul(%2, %x)
  return (%3)
"""

    @pytest.mark.parametrize("options", WAYS, ids=WAY_NAMES)
    def test_they_run_and_their_gradient_is_unknown(self, options: Options) -> None:
        irtool.register_python_op("Twice", lambda x: x * 2)
        run = executor(self.TEXT, options)
        (x,) = arrays((3,))
        assert np.array_equal(run(x)[0], np.sin(x) * 2 * x)
        record = run.record([x], [0])
        with pytest.raises(UnsupportedError, match=r"\^Twice"):
            record.backward([np.ones(3)])

    def test_one_that_writes_is_refused(self) -> None:
        graph = irtool.parse("graph(%x : Tensor):\n  %1 : Tensor = prim::PythonOp[inplace=1](%x)\n  return (%1)\n").graph()
        with pytest.raises(irtool.PassError, match="inplace prim::PythonOp not supported in the JIT"):
            Executor(graph)(np.zeros(2))


# -- hooks
def shown(gradients: Any) -> str:
    """Gradients of one element each."""
    return ",".join("-" if each is None else f"{each:g}" for each in gradients)


def tens(gradients: Any) -> list[Any]:
    """Ten times each."""
    return [None if each is None else each * 10 for each in gradients]


ONE_GROUP = """graph(%x : Tensor, %y : Tensor):
  %2 : Tensor = aten::mul(%x, %y)
  %3 : Tensor = aten::mul(%2, %y)
  return (%3)
"""
TWO_GROUPS = """graph(%x : Tensor, %y : Tensor):
  %2 : Tensor = aten::mul(%x, %y)
  %3 : NoneType = prim::Constant()
  %4 : Tensor = aten::sum(%2, %3)
  %5 : Tensor = aten::mul(%4, %y)
  return (%5, %4)
"""
"""The same numbers; the sum stays on the tape, between a group and the next."""


class TestHooks:
    """Every subset of five hooks: in which order they are called, what they see, and what comes of what they give."""

    PLACES = ("output", "before", "after", "input x", "input y")
    MIDDLE = ("output", "after", "middle output", "middle before", "middle after")

    @pytest.mark.parametrize("options", WAYS[:2], ids=WAY_NAMES[:2])
    def test_order_and_replacement(self, expect: Callable[..., None], options: Options) -> None:
        run = executor(ONE_GROUP, options)
        expect("\n".join(self.stories(run, self.PLACES)))
        (plan,) = run.plans.values()
        assert len(plan.differentiables) == (1 if options.whole else 0)

    def test_order_and_replacement_on_groups(self, expect: Callable[..., None]) -> None:
        run = executor(TWO_GROUPS, WAYS[2])
        expect("\n".join(self.stories(run, self.MIDDLE)))
        (plan,) = run.plans.values()
        assert len(plan.differentiables) == 2 and "aten::sum" in str(plan.graph).split("with prim::")[0]

    @pytest.mark.parametrize("options", WAYS[1:], ids=WAY_NAMES[1:])
    def test_the_way_does_not_matter_to_hooks_on_inputs_and_outputs(self, options: Options) -> None:
        places = ("output", "input x", "input y")
        assert self.stories(executor(ONE_GROUP, options), places) == self.stories(executor(ONE_GROUP), places)

    def stories(self, run: Executor, places: tuple[str, ...]) -> list[str]:
        """What happens with each subset of hooks, that only look and that replace what they see."""
        return [self.story(run, chosen, replaces) for count in range(len(places) + 1) for chosen in itertools.combinations(places, count)
                for replaces in ((False, True) if chosen else (False,))]

    def story(self, run: Executor, chosen: tuple[str, ...], replaces: bool) -> str:
        """What happens with these hooks, on d(x * y * y) with x = 2, y = 3, cotangent 1."""
        told: list[str] = []
        record = run.record([np.array(2.0), np.array(3.0)], [0, 1])

        def hook(name: str) -> Callable[[Any], Any]:
            def called(gradient: Any) -> Any:
                told.append(f"{name}={gradient:g}")
                return gradient * 10 if replaces else None
            return called

        def before(name: str) -> Callable[[Any], Any]:
            def called(came: Any) -> Any:
                told.append(f"{name}={shown(came)}")
                return tens(came) if replaces else None
            return called

        def after(name: str) -> Callable[[Any, Any], Any]:
            def called(handed: Any, came: Any) -> Any:
                told.append(f"{name}={shown(came)}->{shown(handed)}")
                return tens(handed) if replaces else None
            return called

        for place in chosen:
            index = int(place.startswith("middle"))
            if place.endswith("output"):
                record.hook_output(index, hook(place))
            elif place.endswith("before"):
                record.hook_before(index, before(place))
            elif place.endswith("after"):
                record.hook_after(index, after(place))
            else:
                record.hook_input(0 if place == "input x" else 1, hook(place))
        x, y = record.backward([np.array(1.0), None][:len(record.outputs)])
        return f"{', '.join(chosen) or 'none'}{' (times 10)' if replaces else ''}: {' '.join(told)}{' ' if told else ''}=> {x:g} {y:g}"

    def test_a_wrong_number_of_gradients_is_refused(self) -> None:
        for register in ("hook_before", "hook_after"):
            record = executor(ONE_GROUP).record([np.array(2.0), np.array(3.0)], [0, 1])
            getattr(record, register)(0, lambda *seen: [])
            with pytest.raises(RunError, match="hook has returned an incorrect number of values"):
                record.backward([np.array(1.0)])

    def test_where_no_gradient_comes_there_is_nothing_to_hook(self) -> None:
        run = executor(SUM)
        record = run.record([np.arange(2), np.zeros(2)], [0])
        with pytest.raises(RunError, match="doesn't require gradient"):
            record.hook_output(0, lambda gradient: None)


# -- under a trace
class TestTracing:
    BRANCH = """graph(%x : Tensor, %c : bool):
  %1 : Tensor = aten::sin(%x)
  %2 : Tensor = prim::If(%c)
    block0():
      %3 : Tensor = aten::neg(%1)
      -> (%3)
    block1():
      -> (%1)
  %4 : (Tensor, Tensor) = prim::TupleConstruct(%2, %1)
  return (%4)
"""

    def test_the_plan_goes_into_the_trace_with_its_branches(self) -> None:
        run = executor(self.BRANCH)
        (x,) = arrays((3,))

        def function(x: Any, y: Any) -> Any:
            negated, plain = run(x * 2, True)[0]
            return negated * y + plain

        graph = irtool.trace(function, (x, x))
        assert "aten::sin" in str(graph)
        assert np.allclose(irtool.run(graph, [x, x + 1])[0], -np.sin(x * 2) * (x + 1) + np.sin(x * 2))
        assert run.fallback is not None

    def test_on_tensors_it_gives_tensors(self) -> None:
        (x,) = arrays((3,))
        found = executor(self.BRANCH)(irtool.Tensor(x), False)
        assert np.array_equal(found[0][0].array, np.sin(x))

    def test_other_transformations_are_refused(self) -> None:
        run = executor(self.BRANCH)
        with pytest.raises(UnsupportedError, match="a compiled graph under"):
            irtool.vmap(lambda x: run(x, True)[0][0])(irtool.Tensor(np.zeros((2, 3))))
