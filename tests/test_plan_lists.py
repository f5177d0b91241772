"""Lists in plans: gradients go back through loops that append without a list for each round, and slices of tensors are read in place."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute.native.building import compiler
from irtool.passes.lists_by_index import lists_by_index

APPENDED = """graph(%x : Tensor, %h.1 : Tensor, %w : Tensor):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %n : int = aten::size(%x, %zero)
  %all : Tensor[] = prim::ListConstruct()
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%t : int, %h.2 : Tensor):
      %row : Tensor = aten::select(%x, %zero, %t)
      %p : Tensor = aten::mm(%h.2, %w)
      %s : Tensor = aten::mul(%p, %row)
      %h.3 : Tensor = aten::tanh(%s)
      %same : Tensor[] = aten::append(%all, %h.3)
      -> (%true, %h.3)
  %stack : Tensor = aten::stack(%all, %zero)
  %square : Tensor = aten::mul(%stack, %stack)
  %sum : Tensor = aten::sum(%square, %none)
  return (%sum)
"""
UNBOUND = """graph(%x : Tensor, %h.1 : Tensor, %w : Tensor):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %rows : Tensor[] = aten::unbind(%x, %zero)
  %n : int = aten::len(%rows)
  %last : int = aten::sub(%n, %one)
  %h : Tensor = prim::Loop(%n, %true, %h.1)
    block0(%t : int, %h.2 : Tensor):
      %k : int = aten::sub(%last, %t)
      %row : Tensor = aten::__getitem__(%rows, %k)
      %p : Tensor = aten::mm(%h.2, %w)
      %s : Tensor = aten::mul(%p, %row)
      %h.3 : Tensor = aten::tanh(%s)
      -> (%true, %h.3)
  return (%h)
"""
POPPED = """graph(%x : Tensor, %h.1 : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %minus : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %rows : Tensor[] = aten::unbind(%x, %zero)
  %copy : Tensor[] = aten::list(%rows)
  %h : Tensor, %left : Tensor[] = prim::Loop(%n, %true, %h.1, %copy)
    block0(%t : int, %h.2 : Tensor, %items : Tensor[]):
      %rest : Tensor[] = aten::slice(%items, %none, %minus, %one)
      %item : Tensor = aten::__getitem__(%items, %minus)
      %h.3 : Tensor = aten::add(%h.2, %item, %one)
      -> (%true, %h.3, %rest)
  return (RESULTS)
"""


def data(rounds: int, dtype: Any = np.float64) -> list[Any]:
    """x, h, w."""
    draw = np.random.default_rng(0).standard_normal
    return [draw((rounds, 3, 4)).astype(dtype), draw((3, 4)).astype(dtype), draw((4, 4)).astype(dtype)]


@pytest.mark.parametrize("rounds", [1, 2, 9])
@pytest.mark.parametrize("native", [False, pytest.param(True, marks=pytest.mark.skipif(compiler() is None, reason="no C compiler"))])
def test_gradients_of_all_states_of_a_loop(rounds: int, native: bool) -> None:
    values, one = data(rounds), np.ones(())
    wanted = irtool.compile(irtool.parse(APPENDED), optimize=False).vjp(values, [one], [0, 1, 2])
    executor = irtool.compile(irtool.parse(APPENDED), native=native)
    for _ in range(4):
        for found, other in zip(executor.vjp(values, [one], [0, 1, 2]), wanted, strict=True):
            np.testing.assert_allclose(found, other, rtol=1e-10, atol=1e-12)


def test_they_are_computed_in_one_plan_that_makes_no_lists_in_its_rounds() -> None:
    executor, values = irtool.compile(irtool.parse(APPENDED), native=False), data(9)
    for _ in range(4):
        executor.vjp(values, [np.ones(())], [1, 2])
    (plan,) = executor.plans.values()
    (inner,) = plan.together.executor.plans.values()
    loop = inner.code.plan.source.rpartition("for ")[2]
    assert inner.code.plan.source.count("for ") == 2 and "node" not in loop and "seen" not in loop


def test_slices_of_a_tensor_are_read_in_place() -> None:
    values = data(6)
    graph = irtool.parse(UNBOUND).graph()
    wanted = irtool.interpret.run(graph, values)
    executor = irtool.compile(graph, native=False)
    for _ in range(3):
        assert executor(*values)[0].tobytes() == wanted[0].tobytes()
    (plan,) = executor.plans.values()
    source = plan.code.plan.source
    assert "node" not in source and source.count("v0[") == 1


def test_a_list_that_loses_its_last_item_in_each_round_is_read_by_index() -> None:
    graph = irtool.parse(POPPED.replace("RESULTS", "%h")).graph()
    assert lists_by_index(graph)
    assert "aten::slice" not in str(graph) and "aten::list" not in str(graph) and "aten::sub(%" in str(graph)
    irtool.verify(graph)
    x, h, _ = data(5)
    assert irtool.run(graph, [x, h, 5])[0].tobytes() == irtool.run(irtool.parse(POPPED.replace("RESULTS", "%h")), [x, h, 5])[0].tobytes()
    with pytest.raises(irtool.RunError, match="index out of range"):
        irtool.run(graph, [x, h, 6])
    assert not lists_by_index(graph)


@pytest.mark.parametrize(("text", "kept"), [
    (POPPED.replace("RESULTS", "%h, %left"), "aten::slice"),
    (POPPED.replace("RESULTS", "%h, %copy"), "aten::list"),
    (POPPED.replace("RESULTS", "%h").replace("%item : Tensor = aten::__getitem__(%items, %minus)",
                                             "%item : Tensor = aten::__getitem__(%items, %zero)"), "aten::slice"),
    (POPPED.replace("RESULTS", "%h").replace("%h.3 : Tensor =", "%same : Tensor[] = aten::append(%copy, %h.2)\n      %h.3 : Tensor ="),
     "aten::slice"),
])
def test_lists_that_others_see_stay(text: str, kept: str) -> None:
    graph = irtool.parse(text).graph()
    lists_by_index(graph)
    assert kept in str(graph)
    irtool.verify(graph)


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_go_to_the_tensors_that_a_sort_puts_first(reverse: bool) -> None:
    module = irtool.from_script("def f(x: Tensor, w: Tensor):\n    held = [x.sum(), w.sum(), (x * w).sum()]\n"
                                f"    held.sort(reverse={reverse})\n    return held[0] * 2 + held[1]\n")
    x, w = np.float32([1, 2]), np.float32([3, 4])
    of_x, of_w = irtool.vjp(module, [x, w], [np.float32(1)], [0, 1])
    np.testing.assert_allclose(of_x, 2 * w if reverse else [2, 2])
    np.testing.assert_allclose(of_w, 2 * x + 1 if reverse else [1, 1])
