"""When groups become loops in C by themselves: slow functions at once, exact ones when they run again; and what has the same bits."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute import fusion
from irtool.execute.fusion import Way
from irtool.execute.native.building import compiler
from irtool.execute.plan.compiled import Plan
from irtool.ops.symbols.elementwise import CAST, Program, Step

needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler")
GELU = """graph(%x : Tensor):
  %how : str = prim::Constant[value="none"]()
  %y : Tensor = aten::gelu(%x, %how)
  return (%y)
"""
EXACT = """graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %p : Tensor = aten::mul(%x, %y)
  %s : Tensor = aten::add(%p, %x, %one)
  %r : Tensor = aten::maximum(%s, %y)
  %c : Tensor = aten::gt(%r, %x)
  %not : Tensor = aten::logical_not(%c)
  %z : Tensor = aten::where(%not, %r, %p)
  return (%z)
"""


def ways(text: str, values: list[Any], runs: int = 3) -> tuple[list[list[Any]], list[str]]:
    """The results of each run, and how the groups say they were run."""
    plan = Plan(irtool.parse(text).graph())
    results = [plan(values) for _ in range(runs)]
    return results, [way for _, group in plan.groups for way in group.chosen.values()]


def normal(*shape: int) -> Any:
    """Float32 numbers."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@needs_compiler
def test_slow_functions_of_many_numbers_are_a_loop_in_c() -> None:
    x = normal(64, 512).astype("float64")
    results, chosen = ways(GELU, [x])
    assert chosen == ["native loop: 32768 elements, 5 steps"]
    for found in results:
        np.testing.assert_allclose(found[0], irtool.run(irtool.parse(GELU), [x])[0], rtol=1e-5, atol=1e-7)
    assert len({found[0].tobytes() for found in results}) == 1


def test_slow_functions_of_few_numbers_are_not() -> None:
    results, chosen = ways(GELU, [normal(16, 64)])
    assert chosen == []
    assert results[-1][0].tobytes() == irtool.interpret.run(irtool.parse(GELU).graph(), [normal(16, 64)])[0].tobytes()


@needs_compiler
def test_a_group_with_numpys_bits_becomes_a_loop_in_c_when_it_runs_again() -> None:
    values = [normal(100_000), normal(100_000)[::-1].copy()]
    plan = Plan(irtool.parse(EXACT).graph())
    first, second = plan(values)[0].tobytes(), plan(values)[0].tobytes()
    ((_, group),) = plan.groups         # with what logical_not gives, which its type does not say
    (way,) = group.ways.values()
    assert way is not None and not way.loops
    assert {plan(values)[0].tobytes() for _ in range(4)} == {first} == {second}
    assert way.loops


@needs_compiler
def test_a_group_with_other_bits_in_c_never_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "WORTH_COMPILING_SOON", 1)
    plan = Plan(irtool.parse(EXACT.replace("aten::mul(%x, %y)", "aten::tanh(%x)")).graph())
    values = [normal(100_000), normal(100_000)]
    for _ in range(4):
        plan(values)
    ((_, group),) = plan.groups
    assert not any(way is None or way.is_native for way in group.ways.values())


@needs_compiler
def test_numbers_too_large_for_what_they_are_cast_to_stay_numpys_business() -> None:
    x = normal(1000, 1000)
    way = Way(Program([x.dtype], [Step(np.square, (0,), x.dtype), Step(CAST, (1,), np.dtype(np.int32))], [2]), [x], None, 1)
    assert not way.soon


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_of_equals_and_nans_numpy_and_c_choose_the_same(name: str, dtype: Any) -> None:
    special = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, -np.nan, 2.5], dtype)
    x, y = np.repeat(special, 64), np.tile(special, 64)     # whole vectors, whose last elements NumPy may compute otherwise
    function = getattr(np, name)
    (found,) = Way(Program([x.dtype] * 2, [Step(function, (0, 1), x.dtype)], [2]), [x, y], True, 1)([x, y])
    wanted = function(x, y)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(wanted[~np.isnan(wanted)]))


@pytest.mark.parametrize(("exponent", "formula"), [
    ("3", lambda x: x * x * x), ("-1", lambda x: 1 / x), ("-2", lambda x: 1 / (x * x)), ("-0.5", lambda x: 1 / np.sqrt(x)),
    ("3.", lambda x: x * x * x),
])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_that_are_products(exponent: str, formula: Any, dtype: Any) -> None:
    """torch computes them so, to the bit."""
    x = np.concatenate([normal(1000).astype(dtype), np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)])
    kind = "float" if "." in exponent else "int"
    graph = irtool.parse(f"graph(%x : Tensor):\n  %e : {kind} = prim::Constant[value={exponent}]()\n  %y : Tensor = aten::pow(%x, %e)\n"
                         "  return (%y)\n")
    with np.errstate(all="ignore"):
        assert irtool.run(graph, [x])[0].tobytes() == np.asarray(formula(x), dtype).tobytes()


def test_a_column_times_a_row_is_no_product_of_matrices() -> None:
    graph = irtool.parse("graph(%x : Tensor, %y : Tensor):\n  %p : Tensor = aten::mm(%x, %y)\n  return (%p)\n").graph()
    x, y = normal(5, 1), normal(1, 7)
    plan = Plan(graph)
    for _ in range(3):
        np.testing.assert_array_equal(plan([x, y])[0], np.outer(x, y))
    assert "multiply" in plan.source
    with pytest.raises(irtool.RunError, match="cannot be multiplied"):
        irtool.run(graph, [x, normal(2, 7)])


def test_erf_is_exact_enough_and_has_the_same_bits_in_c() -> None:
    graph = irtool.parse("graph(%x : Tensor):\n  %y : Tensor = aten::erf(%x)\n  return (%y)\n").graph()
    x = np.concatenate([np.linspace(-6, 6, 100_001), np.logspace(-38, 38, 10_001)]).astype("float32")
    (result,) = irtool.run(graph, [x], interpret=True)
    exact = np.array([math.erf(each) for each in x])
    assert np.abs(result - exact).max() < 5e-7 and (np.abs(result - exact) <= 5e-7 * np.abs(exact) + 1e-45).all()
    assert (np.abs(result) <= 1).all() and (result[x > 4] == 1).all()
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], "float32")
    assert irtool.run(graph, [edges], interpret=True)[0].tobytes() == np.array([0.0, -0.0, 1, -1, np.nan], "float32").tobytes()
    for native in (True, False):
        executor = irtool.compile(graph, native=native)
        assert {executor(x)[0].tobytes() for _ in range(4)} == {result.tobytes()}


@pytest.mark.parametrize("size", [1_000, 100_000, 200_000])
def test_the_first_run_has_the_bits_of_later_ones(size: int) -> None:
    lines = [f"  %{step} : Tensor = aten::{'tanh' if step % 3 else 'mul'}(%{step - 1}{'' if step % 3 else ', %x'})"
             for step in range(1, 60)]
    executor = irtool.compile(irtool.parse("\n".join(["graph(%x : Tensor, %0 : Tensor):", *lines, "  return (%59)", ""])))
    values = [normal(size), normal(size)]
    assert len({executor(*values)[0].tobytes() for _ in range(4)}) == 1
