"""Where the results of a plan lie: lifetimes, what is written over what, arenas, memory given out again."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irtool
from irtool.execute.plan import placement
from irtool.execute.plan.buffers import Recycler, Shared, room_of
from irtool.execute.plan.compiled import Plan, compile_plan
from irtool.execute.plan.lower import WORTH_FUSING
from irtool.execute.plan.memory import MemoryReport
from irtool.execute.plan.placement import ORDERS, Buffer, by_size, in_one, largest_sum, one_by_one, place
from irtool.ops.symbols.array_layout import Meta, allocated, fresh_meta, meta_of
from tests.peaks import peak_of
from tests.plan_samples import chain, difference, graph_of

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


def test_nothing_is_written_over_a_view_that_is_read_only() -> None:
    """Broadcasting to the same shape gives such a view, here of the only elements of two sums."""
    run = irtool.compile(irtool.parse("""graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %eps : float = prim::Constant[value=0.]()
  %a : Tensor = aten::sum(%x, %none)
  %b : Tensor = aten::sqrt(%a)
  %c : Tensor = aten::exp(%a)
  %d : Tensor = aten::cosine_similarity(%b, %c, %zero, %eps)
  return (%d)
"""))
    assert [run(np.float32([2, 3])) for _ in range(3)] == [np.float32(1)] * 3


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


lives = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10), st.integers(1, 5), st.booleans()), max_size=30)


def buffers_of(sample: list[tuple[int, int, int, bool]]) -> list[Buffer]:
    return [Buffer(i, fresh_meta("float32", (size * 16,)), start, start + length, leaves, leaves)
            for i, (start, length, size, leaves) in enumerate(sample)]


def meet(a: Buffer, b: Buffer) -> bool:
    """Is there a time at which both are needed?"""
    return (a.start <= b.end or b.leaves) and (b.start <= a.end or a.leaves)


@given(lives)
def test_places_do_not_meet_while_both_live(sample: list[tuple[int, int, int, bool]]) -> None:
    for pieces in (by_size(buffers_of(sample)), *[one_by_one(buffers_of(sample), order) for order in ORDERS]):
        assert len(sample) == sum(len(piece.buffers) for piece in pieces)
        for piece in pieces:
            inside = piece.all
            assert sum(buffer.leaves for buffer in inside) <= 1
            apart(inside, piece.size)
    buffers = [buffer for buffer in buffers_of(sample) if not buffer.leaves]
    offsets, total = in_one(buffers)
    for buffer in buffers:
        buffer.offset = offsets[buffer]
    apart(buffers, total)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "SPAN", 1 << 20)       # one span, in which each buffer is compared with all
        assert in_one(buffers) == (offsets, total)


def apart(inside: list[Buffer], size: int) -> None:
    for a in inside:
        assert a.offset % 64 == 0 and a.offset + a.size <= size
        for b in inside:
            if a is not b and meet(a, b):
                assert a.offset + a.size <= b.offset or b.offset + b.size <= a.offset


@given(lives)
def test_an_arena_and_the_memory_of_results_hold_all(sample: list[tuple[int, int, int, bool]]) -> None:
    buffers = buffers_of(sample)
    live = largest_sum([buffer.life for buffer in buffers])
    found = place(buffers, live)
    apart([buffer for buffer in buffers if not buffer.leaves and buffer.piece is None], found.arena)
    for piece in found.pieces:
        apart(piece.all, piece.size)
        assert all(buffer.piece is piece for buffer in piece.all) or len(piece.all) == 1
        assert piece.size <= 2 * piece.all[0].size and piece.all[0].leaves
    assert found.total >= live


@pytest.mark.parametrize("meta", [fresh_meta("float32", (10,)), meta_of(np.empty((3, 10), np.float32).T)])
def test_memory_of_results_is_given_out_again_when_nobody_holds_it(meta: Meta) -> None:
    recycler = Recycler(meta)
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


def test_memory_in_common_is_given_out_again_when_neither_run_nor_result_holds_it() -> None:
    result, first, second = buffers_of([(0, 1, 4, True), (0, 1, 1, False), (0, 1, 1, False)])
    second.offset = 64
    shared = Shared(256, result, [first, second])
    run = shared.take()
    assert [each.nbytes for each in run] == [256, 64, 64] and np.shares_memory(run[0], run[2]) and not np.shares_memory(*run[1:])
    address = run[0].ctypes.data
    assert shared.take()[0].ctypes.data != address, "a run holds it"
    part = run[0][3:]
    del run
    assert shared.take()[0].ctypes.data != address, "a view of the result is held"
    del part
    assert shared.take()[0].ctypes.data == address
    held = [shared.take() for _ in range(5)]
    assert held[-1][0].base is None, "too many are held: memory of its own"
    assert len({each.ctypes.data for arrays in held for each in arrays[:1]}) == 5


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


def test_a_view_of_a_transposed_result_keeps_its_elements() -> None:
    run = irtool.compile(graph_of("graph(%x : Tensor):\n  %r : Tensor = aten::mul(%x, %x)\n  return (%r)\n"))
    held = [run(np.full((64, 100), k, np.float32).T)[0][1:] for k in range(6)]      # the results themselves are let go of
    assert [sorted(set(each.flat)) for each in held] == [[k * k] for k in range(6)]


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


LARGE = {
    "sums": """  %dims : int[] = prim::ListConstruct(%one)
  %a : Tensor = aten::sum(%x, %dims, %no, %none)
  %b : Tensor = aten::mean(%x, %dims, %yes, %none)
  %c : Tensor = aten::amax(%x, %dims, %no)
  %d : Tensor = aten::amin(%x, %dims, %yes)
  %e : Tensor = aten::sum(%x, %dims, %no, %double)
  return (%a, %b, %c, %d, %e)
""",
    "copies": """  %t : Tensor = aten::t(%x)
  %size : int[] = prim::ListConstruct(%minus)
  %a : Tensor = aten::reshape(%t, %size)
  %b : Tensor = aten::contiguous(%t, %zero)
  %c : Tensor = aten::to(%x, %double, %no, %no, %none)
  %d : Tensor = aten::clone(%x, %none)
  %e : Tensor = aten::mul(%a, %a)
  return (%b, %c, %d, %e)
""",
    "parts": """  %size : int[] = prim::ListConstruct(%two, %rows, %columns)
  %a : Tensor = aten::select_backward(%x, %size, %zero, %one)
  %b : Tensor = aten::slice_backward(%x, %whole, %zero, %zero, %rows, %one)
  %c : Tensor = aten::add(%b, %x, %one)
  return (%a, %c)
""",
}
ROWS, COLUMNS = 5000, 20


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64])
def test_large_results_that_are_no_elementwise_functions_lie_in_memory_of_the_plan(name: str, dtype: Any) -> None:
    if dtype is np.int64 and name == "sums":
        pytest.skip("no means of whole numbers")
    constants = {"one": 1, "two": 2, "zero": 0, "minus": -1, "double": 7, "rows": ROWS, "columns": COLUMNS, "no": "0", "yes": "1"}
    head = "".join([f"  %{each} : {'bool' if type(value) is str else 'int'} = prim::Constant[value={value}]()\n"
                    for each, value in constants.items()])
    graph = graph_of(f"graph(%x : Tensor):\n{head}  %none : NoneType = prim::Constant()\n"
                     f"  %whole : int[] = prim::ListConstruct(%rows, %columns)\n{LARGE[name]}")
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(dtype)
    plan = Plan(graph)
    wanted = irtool.run(graph, [x])
    for _ in range(4):
        assert not difference(plan([x]), wanted)
    assert plan.memory is not None and (plan.memory.unplanned == 0 or dtype is np.float16)
    assert "node" not in plan.source


SEVERAL = """graph(%x : Tensor, %y : Tensor):
  %a : Tensor, %b : Tensor, %e : Tensor = prim::FusionGroup_0(%x, %y)
  %c : Tensor = aten::mul(%a, %b)
  %d : Tensor = aten::t(%e)
  return (%c, %d)
with prim::FusionGroup_0 = graph(%0 : Tensor, %1 : Tensor):
  %one : int = prim::Constant[value=1]()
  %2 : Tensor = aten::mul(%0, %1)
  %3 : Tensor = aten::tanh(%2)
  %4 : Tensor = aten::add(%3, %1, %one)
  %5 : Tensor = aten::exp(%2)
  %6 : Tensor = aten::add(%5, %3, %one)
  return (%3, %4, %6)
"""


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("other", [(300, 400), (400,)])
def test_groups_of_several_results_write_into_memory_of_the_plan(native: bool, other: tuple[int, ...]) -> None:
    graph = graph_of(SEVERAL)
    plan = compile_plan(graph, native=native)
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((300, 400)).astype(np.float32), generator.standard_normal(other).astype(np.float32)
    first = plan([x, y])
    for _ in range(4):
        found = plan([x, y])
        assert not difference(found, first)
    if not native:
        assert not difference(found, irtool.run(graph, [x, y]))
    assert plan.memory is not None and plan.memory.unplanned == 0 and plan.memory.peak <= 1.1 * plan.memory.live


def test_a_plan_larger_than_memory_is_an_error() -> None:
    """The arena of a plan: no MemoryError of NumPy's comes out of a call."""
    text = """graph(%x : Float(1, 1, 6)):
  %p : int[] = prim::Constant[value=[0, 4398046511104]]()
  %z : int = prim::Constant[value=0]()
  %n : NoneType = prim::Constant()
  %y : Tensor = aten::constant_pad_nd(%x, %p, %z)
  %e : Tensor = aten::exp(%y)
  %s : Tensor = aten::sum(%e, %n)
  return (%s)
"""
    executor = irtool.compile(irtool.parse(text))
    for _ in range(3):      # from slots, then compiled
        with pytest.raises(irtool.RunError, match="not enough memory"):
            executor(np.ones((1, 1, 6), np.float32))


def test_large_plans_keep_no_memory_beside_that_of_operators() -> None:
    """Results of `embedding` come in memory of their own: a plan that kept all of its memory would take more than is alive at one time."""
    text = """
        graph(%words : Float(300, 256), %at : Long(128), %square : Float(256, 256), %weight : Float(256, 5000)):
          %no : bool = prim::Constant[value=0]()
          %pad : int = prim::Constant[value=-1]()
          %x : Tensor = aten::embedding(%words, %at, %pad, %no, %no)
          %y : Tensor = aten::mm(%x, %square)
          %z : Tensor = aten::mm(%y, %weight)
          return (%z)
    """
    words, square, weight = (np.ones(shape, np.float32) for shape in [(300, 256), (256, 256), (256, 5000)])
    at, run = np.arange(128), irtool.compile(irtool.parse(text).graph())
    peak, _ = peak_of(lambda: lambda: run(words, at, square, weight))
    assert peak <= 4 * 128 * (256 + 5000) + (1 << 14)


@pytest.mark.parametrize("size", [2 ** 50, 2 ** 62, 2 ** 63 - 1, 2 ** 63, 2 ** 70])
def test_rooms_that_no_memory_holds_are_refused(size: int) -> None:
    with pytest.raises(irtool.RunError, match=f"not enough memory: a run needs {size:,} bytes"):
        room_of(size)
