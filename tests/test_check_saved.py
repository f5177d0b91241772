"""An array that the caller changes between forwards and backwards: unnoticed by default, an error where that is asked for."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_live_bytes import CASES, Case

import irtool
from irtool.execute.compilation import Options
from irtool.execute.executor import Executor

TEXT = """graph(%x : Tensor, %y : Tensor, %unread : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::mul(%x, %y)
  %s : Tensor = aten::sigmoid(%2)
  %4 : Tensor = aten::add(%s, %unread, %1)
  return (%4, %s)
"""
MESSAGE = "one of the variables needed for gradient computation has been modified by an inplace operation: "
OPTIONS = [Options(check_saved=True), Options(check_saved=True, whole=False, autodiff_threshold=1, inline_threshold=1),
           Options(check_saved=True, optimize=False)]
NAMES = ["whole", "groups", "unoptimised"]


def arrays() -> list[Any]:
    """Three inputs."""
    return [np.linspace(-1, 1, 6).reshape(2, 3), np.linspace(0, 2, 6).reshape(2, 3), np.ones((2, 3))]


def recorded(options: Options) -> tuple[list[Any], Any]:
    """Inputs, and what a run with them remembers."""
    inputs = arrays()
    return inputs, Executor(irtool.parse(TEXT).graph(), options).record(inputs, [0, 1, 2])


@pytest.mark.parametrize("options", OPTIONS, ids=NAMES)
@pytest.mark.parametrize("place, name", [(0, "x"), (1, "y")])
def test_an_input_that_was_changed_is_named(options: Options, place: int, name: str) -> None:
    inputs, record = recorded(options)
    record.backward([np.ones((2, 3)), None])
    inputs[place][1, 2] += 1e-9
    with pytest.raises(irtool.RunError) as error:
        record.backward([np.ones((2, 3)), None])
    shown = f"%{name}, " if options.whole or not options.optimize else "a tensor, "      # in groups, operands have numbers
    assert str(error.value).startswith(MESSAGE + shown)
    assert str(error.value).endswith("float64 of shape [2, 3], is not what it was when the graph ran")
    inputs[place][1, 2] = arrays()[place][1, 2]     # as it was: nothing is wrong any more
    record.backward([np.ones((2, 3)), None])


@pytest.mark.parametrize("options", OPTIONS, ids=NAMES)
def test_an_output_that_gradients_need_counts_too(options: Options) -> None:
    _, record = recorded(options)
    record.outputs[1] *= 2
    with pytest.raises(irtool.RunError, match=MESSAGE):
        record.backward([np.ones((2, 3)), None])


@pytest.mark.parametrize("options", OPTIONS, ids=NAMES)
def test_what_no_gradient_needs_may_be_changed(options: Options) -> None:
    inputs, record = recorded(options)
    inputs[2] += 1
    record.outputs[0] += 1
    cotangent = np.ones((2, 3))
    wanted = record.backward([cotangent, None])
    cotangent += 1
    x, y, _ = inputs
    s = 1 / (1 + np.exp(-x * y))
    np.testing.assert_allclose(wanted[0], s * (1 - s) * y)


def test_by_default_it_goes_unnoticed_and_the_gradient_is_wrong() -> None:
    inputs, record = recorded(Options())
    inputs[1] *= 0
    assert not record.backward([np.ones((2, 3)), None])[0].any()


def test_gradients_of_gradients_are_watched_too() -> None:
    inputs, record = recorded(OPTIONS[0])
    again = record.backward_recorded([np.ones((2, 3)), None])
    inputs[0] += 1
    with pytest.raises(irtool.RunError, match=MESSAGE):
        again.backward([np.ones((2, 3)), None, None])


def test_lists_are_watched_and_may_change_themselves() -> None:
    run = irtool.compile(irtool.parse("""graph(%xs : Tensor[], %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : Tensor = aten::stack(%xs, %0)
  %2 : Tensor = aten::mul(%1, %y)
  return (%2)
"""), check_saved=True)
    xs, y = arrays()[:2], np.full((2, 2, 3), 2.0)
    record = run.record([xs, y], [0, 1])
    xs.append(np.ones(1))
    record.backward([np.ones((2, 2, 3))])
    y[0, 0, 0] = 3
    with pytest.raises(irtool.RunError, match=MESSAGE):
        record.backward([np.ones((2, 2, 3))])


def test_nothing_lies_between_when_both_are_asked_for_at_once() -> None:
    run = irtool.compile(irtool.parse(TEXT), check_saved=True)
    inputs = arrays()
    for _ in range(4):
        found = run.vjp(inputs, [np.ones((2, 3)), None], [0])
        for place in range(2):
            inputs[place] += 0.5
    assert found[0].shape == (2, 3)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("options", OPTIONS, ids=NAMES)
def test_plans_never_write_into_what_is_saved(name: str, options: Options) -> None:
    case = Case(name)
    executor = case.executor(options)
    wanted = case.executor().vjp(case.inputs, case.cotangents, case.wrt)
    for _ in range(4):
        record = executor.record(case.inputs, case.wrt)
        others = [executor.record(case.inputs, case.wrt), executor(*case.inputs)]
        for _ in range(2):
            for found, expected in zip(record.backward(case.cotangents), wanted, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-9)
        del others
