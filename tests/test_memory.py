"""Where the results of a plan lie: lifetimes, what is written over what, arenas, memory given out again."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irtool
from irtool.execute.codegen import Plan, compile_plan
from irtool.execute.codegen_layout import allocated, fresh_meta, meta_of
from irtool.execute.codegen_lower import WORTH_FUSING
from irtool.execute.memory import Buffer, MemoryReport, Recycler, place_all, place_by_size
from tests.plan_samples import difference
from tests.test_codegen import chain, graph_of

SIZE = 64 * 1024
BIG = ("float32", (SIZE // 4,))


def report(text: str, *spec: Any) -> MemoryReport:
    found = compile_plan(graph_of(text), spec=spec).memory
    assert found is not None
    return found


@pytest.mark.parametrize("count", [1, 2, 12, 100])
def test_a_chain_takes_its_output(count: int) -> None:
    found = report(chain(count), BIG, BIG)
    assert (found.peak, found.live, found.buffers, found.in_place) == (SIZE, SIZE, 1, count - 1)


TREE = """graph(%x : Tensor):
  %a : Tensor = aten::exp(%x)
  %b : Tensor = aten::neg(%x)
  %c : Tensor = aten::mul(%a, %b)
  %d : Tensor = aten::cos(%x)
  %e : Tensor = aten::mul(%c, %d)
  return (%e)
"""


def test_the_arena_is_as_large_as_what_lives() -> None:
    found = report(TREE, BIG)
    assert found.live == 2 * SIZE and found.peak == 2 * SIZE


def test_views_keep_their_memory_alive() -> None:
    text = """graph(%x : Tensor):
  %a : Tensor = aten::exp(%x)
  %t : Tensor = aten::t(%a)
  %b : Tensor = aten::neg(%x)
  %c : Tensor = aten::mul(%b, %b)
  %d : Tensor = aten::mul(%c, %t)
  return (%d)
"""
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    plan = Plan(graph_of(text))
    for _ in range(3):
        assert np.array_equal(plan([x])[0], irtool.run(plan.graph, [x], interpret=True)[0])


lives = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10), st.integers(1, 5)), max_size=30)


@given(lives)
def test_places_do_not_meet_while_both_live(sample: list[tuple[int, int, int]]) -> None:
    for place in (place_all, place_by_size):
        buffers = [Buffer(i, fresh_meta("float32", (size * 16,)), start, start + length, False)
                   for i, (start, length, size) in enumerate(sample)]
        total = place(buffers)
        for a in buffers:
            assert a.offset % 64 == 0 and a.offset + a.size <= total
            for b in buffers:
                if a is not b and a.start <= b.end and b.start <= a.end:
                    assert a.offset + a.size <= b.offset or b.offset + b.size <= a.offset


def test_memory_of_results_is_given_out_again_when_nobody_holds_it() -> None:
    recycler = Recycler(fresh_meta("float32", (10,)))
    first = recycler.take()
    address = first.ctypes.data
    view = first[2:]
    second = recycler.take()
    assert second.ctypes.data != address
    del first
    third = recycler.take()
    assert third.ctypes.data != address, "a view of it is held"
    del view
    assert recycler.take().ctypes.data == address


def test_a_plan_recycles_large_results() -> None:
    plan = Plan(graph_of(chain(3)))
    x = np.ones(SIZE, np.float32)
    for _ in range(3):
        held = plan([x, x])[0]
    address = held.ctypes.data
    other = plan([x, x])[0]
    assert other.ctypes.data != address
    del held
    assert plan([x, x])[0].ctypes.data == address
    del other


@given(st.permutations(range(3)), st.lists(st.integers(1, 4), min_size=3, max_size=3))
def test_arrays_of_any_layout(order: list[int], shape: list[int]) -> None:
    array = np.empty(shape, np.float32).transpose(order)
    made = allocated(meta_of(array))
    assert meta_of(made) == meta_of(array)
    made[...] = 1
    back = array[::-1, :, ::-1]
    made = allocated(meta_of(back))
    made[...] = 2
    assert meta_of(made) == meta_of(back) and (made == 2).all()


GROUP = """graph(%x : Tensor, %y : Tensor):
  %a : Tensor = prim::FusionGroup_0(%x, %y)
  %b : Tensor = aten::relu(%a)
  return (%b)
with prim::FusionGroup_0 = graph(%0 : Tensor, %1 : Tensor):
  %one : int = prim::Constant[value=1]()
  %2 : Tensor = aten::mul(%0, %1)
  %3 : Tensor = aten::tanh(%2)
  %4 : Tensor = aten::add(%3, %1, %one)
  return (%4)
"""


@pytest.mark.parametrize("shape, other", [((4, 5), (4, 5)), ((300, 400), (300, 400)), ((400, 300), (300,)), ((2, 300, 400), (300, 1))])
@pytest.mark.parametrize("turned", [False, True])
def test_large_groups_run_in_blocks_into_memory_of_the_plan(shape: tuple[int, ...], other: tuple[int, ...], turned: bool) -> None:
    graph = graph_of(GROUP)
    plan = compile_plan(graph, native=False)
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal(shape).astype(np.float32), generator.standard_normal(other).astype(np.float32)
    if turned:
        x = x.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    wanted = irtool.run(graph, [x, y], interpret=True)
    for _ in range(3):
        assert not difference(plan([x, y]), wanted)
    assert len(plan.groups) == (x.nbytes >= WORTH_FUSING)
    assert ("group(" in plan.source) == bool(plan.groups)
    assert all("NumPy in blocks" in how for _, group in plan.groups for how in group.chosen.values())
