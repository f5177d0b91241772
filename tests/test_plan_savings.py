"""What plans leave out, make once, or do another way than NumPy by default: the results stay what they are, to the bit."""
from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute.native import building
from irtool.execute.plan.compiled import Plan
from irtool.execute.plan.row_functions import EXACT, Rows
from tests.plan_samples import check, graph_of

SEED = """graph(%x : Tensor, %n : int[], %none : NoneType):
  %y : Tensor = aten::tanh(%x)
  %loss : Tensor = aten::sum(%y)
  %one : Tensor = aten::ones_like(%loss, %none, %none, %none, %none, %none)
  %no : bool = prim::Constant[value=0]()
  %wide : Tensor = aten::expand(%one, %n, %no)
  %z : Tensor = aten::mul(%wide, %y)
  return ({})
"""


def inputs() -> list[Any]:
    return [np.random.default_rng(0).standard_normal((3, 4)), [3, 4], None]


@pytest.mark.parametrize("results, called", [("%z", ""), ("%z, %loss", "sum"), ("%z, %one", "sum full_like"),
                                             ("%wide, %wide", "sum full_like")])
def test_seeds_of_gradients_are_constants_and_what_nobody_reads_is_not_computed(results: str, called: str) -> None:
    plan = check(graph_of(SEED.format(results)), inputs)
    assert [name for name in ("sum", "full_like") if f"{name}(" in plan.source] == called.split()


def test_results_that_are_constants_belong_to_the_caller() -> None:
    plan = Plan(graph_of(SEED.format("%one, %z")))
    for _ in range(3):
        one, z = plan(inputs())
        assert one == 1 and np.array_equal(z, np.tanh(inputs()[0]))
        one[...] = 7
        z[...] = 7


def test_views_of_the_arena_are_made_with_it() -> None:
    text = """graph(%x : Tensor, %n : int[]):
  %1 : int = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %a : Tensor = aten::exp(%x)
  %b : Tensor = aten::unsqueeze(%a, %1)
  %c : Tensor = aten::transpose(%b, %0, %1)
  %d : Tensor = aten::select(%c, %0, %0)
  %e : Tensor = aten::sub(%d, %x, %1)
  %f : Tensor = aten::neg(%x)
  %g : Tensor = aten::mul(%e, %f)
  return (%g)
"""
    plan = check(graph_of(text), lambda: [np.random.default_rng(0).standard_normal((3, 4)), [3, 4]])
    assert "reshape" not in plan.source and "swapaxes" not in plan.source and "[" not in plan.source.split("return")[0]


# -- short rows
@pytest.mark.skipif(building.compiler() is None, reason="needs a C compiler")
@pytest.mark.parametrize("function", sorted(EXACT, key=str))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("left, right", [((5, 7, 1), (5, 1, 9)), ((5, 1, 9), (5, 7, 1)), ((7, 9), (9,)), ((9,), (7, 9)), ((6, 1), (1, 3))])
def test_short_rows_have_numpys_bits(function: np.ufunc, dtype: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    a, b = [random.standard_normal(shape).astype(dtype) for shape in (left, right)]
    a.flat[0], b.flat[-1], a.flat[1] = np.inf, -0.0, 1e-42
    rows = Rows(function)
    for turn in range(3):
        with np.errstate(all="ignore"):
            wanted = function(a + turn, b)
            out = np.empty_like(wanted)
            assert rows(a + turn, b, out=out) is out
        assert out.tobytes() == wanted.tobytes(), turn
        assert rows.quick is not None


@pytest.mark.skipif(building.compiler() is None, reason="needs a C compiler")
def test_plans_do_outer_products_that_way() -> None:
    text = """graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %a : Tensor = aten::unsqueeze(%x, %2)
  %b : Tensor = aten::unsqueeze(%y, %1)
  %c : Tensor = aten::mul(%a, %b)
  return (%c)
"""
    values = [np.random.default_rng(i).standard_normal(shape) for i, shape in enumerate(((32, 64), (32, 128)))]
    plan = Plan(graph_of(text), native=True)
    for _ in range(4):
        (found,) = plan(values)
        assert found.tobytes() == (values[0][:, :, None] * values[1][:, None]).tobytes()
    assert "rows(" in plan.source
    off = Plan(graph_of(text), native=False)
    for _ in range(2):
        off(values)
    assert "rows(" not in off.source


def test_constants_are_read_where_they_are() -> None:
    weight = np.linspace(-1, 1, 400 * 400, dtype=np.float32).reshape(400, 400)
    text = "graph(%x : Tensor, %w : Tensor):\n  %t : Tensor = aten::t(%w)\n  %y : Tensor = aten::mm(%x, %t)\n  return (%y, %t, %w)\n"
    frozen = irtool.freeze(irtool.parse(text).graph(), {1: weight})
    x = np.ones((2, 400), np.float32)
    Plan(frozen)([x])       # what is imported
    tracemalloc.start()
    try:
        plan = Plan(frozen)
        for _ in range(4):
            product, turned, whole = plan([x])
            np.testing.assert_array_equal(product, x @ weight.T)
            turned[...] = 3     # results belong to the caller
            whole[...] = 4
        del product, turned, whole
        assert tracemalloc.get_traced_memory()[0] < weight.nbytes
    finally:
        tracemalloc.stop()
