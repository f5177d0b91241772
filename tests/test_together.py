"""Gradients asked for together with their run: one plan of f and df gives what the tape gives, call after call."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.execute.compilation import Options
from irtool.execute.executor import Executor
from irtool.ir.errors import RunError
from irtool.torchscript import compile_source
from tests.peaks import plans_of

CHAIN = """graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %1 : Tensor = aten::mul(%x, %w)
  %2 : Tensor = aten::tanh(%1)
  %3 : Tensor = aten::sub(%2, %w, %one)
  %4 : Tensor = aten::mul(%3, %3)
  %5 : Tensor = aten::sum(%4, %none)
  return (%5)
"""
TWO = """graph(%x : Tensor, %w : Tensor, %u : Tensor):
  %1 : Tensor = aten::mul(%x, %w)
  %2 : Tensor = aten::exp(%x)
  return (%1, %2)
"""
LAYERS = """graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %one : int = prim::Constant[value=1]()
  %1 : Tensor = aten::mm(%x, %w)
  %2 : Tensor = aten::add(%1, %b, %one)
  %3 : Tensor = aten::relu(%2)
  %4 : Tensor = aten::mul(%3, %3)
  return (%4)
"""
LOOP = """graph(%x : Tensor, %w : Tensor, %h : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %n : int = aten::size(%x, %zero)
  %out : Tensor = prim::Loop(%n, %true, %h)
    block0(%t : int, %c : Tensor):
      %1 : Tensor = aten::select(%x, %zero, %t)
      %2 : Tensor = aten::mm(%1, %w)
      %3 : Tensor = aten::add(%2, %c, %one)
      %4 : Tensor = aten::tanh(%3)
      -> (%true, %4)
  return (%out)
"""


def arrays(*shapes: tuple[int, ...], dtype: Any = np.float64) -> list[Any]:
    return [np.random.default_rng([5, i]).standard_normal(shape).astype(dtype) for i, shape in enumerate(shapes)]


def seeds(graph: str, values: list[Any]) -> list[Any]:
    return [np.random.default_rng(9).standard_normal(np.shape(each)).astype(each.dtype)
            for each in irtool.run(irtool.parse(graph).graph(), values, interpret=True)]


CASES = {
    "chain": (CHAIN, [(4, 5), (4, 5)]), "broadcast": (CHAIN, [(4, 5), (5,)]), "scalars": (CHAIN, [(), ()]),
    "empty": (CHAIN, [(0, 3), (3,)]),
    "layers": (LAYERS, [(6, 4), (4, 3), (3,)]), "loop": (LOOP, [(7, 2, 3), (3, 3), (2, 3)]), "large": (CHAIN, [(400, 300), (300,)]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"native": False, "threads": 3}], ids=["auto", "threads"])
@pytest.mark.parametrize("name", CASES)
def test_the_plan_gives_what_the_tape_gives(name: str, options: dict[str, Any], dtype: Any) -> None:
    text, shapes = CASES[name]
    values = arrays(*shapes, dtype=dtype)
    given, wrt = seeds(text, values), list(range(len(values)))
    tape = Executor(irtool.parse(text).graph(), Options(**options)).record(values, wrt).backward(given)
    run = Executor(irtool.parse(text).graph(), Options(**options))
    for _ in range(4):
        found = run.vjp(values, given, wrt)
        for one, other in zip(found, tape, strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape
            if name == "loop":      # a product before the loop may round otherwise
                np.testing.assert_allclose(one, other, rtol=1e-5 if dtype == np.float32 else 1e-12)
            else:
                assert one.tobytes() == other.tobytes()
    (plan,) = run.plans.values()
    assert plan.together
    assert run.stats["graph_executor_invocations"] == 8 and run.stats["execution_plan_cache_miss"] == 2


def test_shapes_may_change_from_call_to_call() -> None:
    run = irtool.compile(irtool.parse(CHAIN))
    for shapes in (((2, 3), (2, 3)), ((2, 3), (2, 3)), ((2, 3), (1, 3)), ((5, 1), (1, 4)), ((2, 3), (2, 3))) * 2:
        values = arrays(*shapes)
        expected = irtool.vjp(irtool.parse(CHAIN).graph(), values, [np.ones(())], [0, 1], interpret=True)
        for one, other in zip(run.vjp(values, [np.ones(())], [0, 1]), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_gradients_that_cannot_be_or_are_not_there() -> None:
    """None for an input that nothing reaches; zeros where no cotangent came; each as often as it is asked for."""
    values = arrays((3,), (3,), (2,))
    run = irtool.compile(irtool.parse(TWO))
    ones = np.ones(3)
    for _ in range(3):
        x, w, u, again = run.vjp(values, [None, ones], [0, 1, 2, 0])
        np.testing.assert_array_equal(x, np.exp(values[0]))
        np.testing.assert_array_equal(w, np.zeros(3))
        assert u is None
        np.testing.assert_array_equal(again, x)
        x, w, u = run.vjp(values, [ones, None], [0, 1, 2])
        np.testing.assert_array_equal(x, values[1])
        np.testing.assert_array_equal(w, values[0])


def test_a_cotangent_of_another_kind_goes_over_the_tape() -> None:
    values = arrays((3,), (3,))
    run = irtool.compile(irtool.parse(CHAIN))
    expected = run.vjp(values, [np.ones(())], [0, 1])
    for cotangent in (1.0, np.float32(1), np.ones((), np.float32), np.ones((), np.int64)):
        for one, other in zip(run.vjp(values, [cotangent], [0, 1]), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    for _ in range(2):
        with pytest.raises(RunError, match="shape"):
            run.vjp(values, [np.ones(3)], [0, 1])
        with pytest.raises(RunError, match="cotangents"):
            run.vjp(values, [np.ones(()), np.ones(())], [0, 1])
        with pytest.raises(RunError, match="wrt"):
            run.vjp(values, [np.ones(())], [2])


def answer(run: Executor, values: list[Any], given: list[Any], wrt: list[int]) -> Any:
    """Gradients, or the words of the error."""
    try:
        return [(each.dtype, each.tolist()) for each in run.vjp(values, given, wrt)]
    except RunError as error:
        return str(error)


@pytest.mark.parametrize("name", CASES)
def test_each_call_answers_a_cotangent_as_the_first_does(name: str) -> None:
    """Of another dtype, shape or kind; whatever was asked before, and with the plan of f and df in place."""
    text, shapes = CASES[name]
    values = arrays(*shapes, dtype=np.float32)
    wrt = list(range(len(values)))
    (right,) = seeds(text, values)
    others = [right.astype(np.float64), right.astype(np.float16), right.astype(np.int64), right.astype(np.complex64), right[None],
              right.ravel()[:1], right.T.copy(), np.ones((3, *right.shape), np.float32), None]
    run = irtool.compile(irtool.parse(text))
    for _ in range(3):
        run.vjp(values, [right], wrt)
    for other in others:
        first = answer(irtool.compile(irtool.parse(text)), values, [other], wrt)
        for _ in range(2):
            found = answer(run, values, [other], wrt)
            if isinstance(first, str) or name != "loop":        # a product before the loop may round otherwise
                assert str(found) == str(first)
            else:
                np.testing.assert_allclose(found[0][1], first[0][1], rtol=1e-4)
            run.vjp(values, [right], wrt)


def test_what_no_gradient_needs_is_not_computed() -> None:
    """The product of a last layer, and what is added to it in place: the cotangent stands for both."""
    layer = """graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %1 : Tensor = aten::linear(%x, %w, %b)
  return (%1)
"""
    values = arrays((64, 32), (48, 32), (48,), dtype=np.float32)
    run = irtool.compile(irtool.parse(layer))
    expected = run.vjp(values, [np.ones((64, 48), np.float32)], [0, 1, 2])
    for _ in range(3):
        for one, other in zip(run.vjp(values, [np.ones((64, 48), np.float32)], [0, 1, 2]), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
    (plan,) = plans_of(run)
    assert sum(".dot(" in line for line in plan.source.splitlines()) == 2       # of the gradients


def test_gradients_are_nobody_elses_memory() -> None:
    values = arrays((200, 200), (200, 200))
    run = irtool.compile(irtool.parse(CHAIN))
    kept = [run.vjp(values, [np.ones(())], [0, 1]) for _ in range(4)]
    bits = [[each.tobytes() for each in found] for found in kept]
    run.vjp([each + 1 for each in values], [np.ones(())], [0, 1])
    assert bits == [[each.tobytes() for each in found] for found in kept] and len(set(map(tuple, bits))) == 1


def test_products_of_rows_are_made_for_several_rounds_at_once() -> None:
    values = arrays((8, 2, 3), (3, 3), (2, 3))
    run = irtool.compile(irtool.parse(LOOP))
    for _ in range(3):
        np.testing.assert_allclose(run(*values)[0], irtool.run(irtool.parse(LOOP).graph(), values, interpret=True)[0], rtol=1e-12)
    (plan,) = run.plans.values()
    source = plan.code.plan.source
    assert source.index("for ") < source.index("dot(") < source.rindex("for ")
    short = [values[0][:2], *values[1:]]
    np.testing.assert_allclose(run(*short)[0], irtool.run(irtool.parse(LOOP).graph(), short, interpret=True)[0], rtol=1e-12)


def test_small_graphs_are_not_fused_large_ones_are() -> None:
    for extent, native, expected in ((10, None, 0), (10, True, 1), (1_000, None, 1)):
        values = arrays((extent, 100), (extent, 100), dtype=np.float32)
        run = irtool.compile(irtool.parse(CHAIN), native=native)
        for _ in range(2):
            run(*values)
        (plan,) = run.plans.values()
        compiled = plan.code.plan
        assert (len(compiled.groups) >= 1) == bool(expected)


MORE = """
def draws(x, w):
    h = torch.dropout(torch.mul(x, w), 0.5, True)
    r = torch.dropout(torch.tanh(h), 0.3, True)
    return (r * r + torch.rand_like(h) * torch.bernoulli(torch.sigmoid(x)) * h).sum()


def writes(x, w):
    z = x * 2
    z[1:2].add_(w[0:1])
    z[:, 0] = w[:, 1]
    return torch.tanh(z).sum()


def fills(x, w):
    found: List[Tensor] = []
    for i in range(x.size(0)):
        w = torch.tanh(w * x[i])
        found.append(w)
    return torch.stack(found).sum()


def counts(x, w):
    mean = torch.zeros([3], dtype=torch.float64)
    return (torch.batch_norm(x, None, None, mean, mean + 1, True, 0.1, 1e-5, False) * w).sum()
"""


@pytest.mark.parametrize("name", ["draws", "writes", "fills", "counts"])
def test_what_draws_writes_and_fills_lists_is_one_plan_too(name: str) -> None:
    graph = compile_source(MORE, name, "more.py").graph()
    values, before = arrays((4, 3), (4, 3)), arrays((4, 3), (4, 3))
    run, one = irtool.compile(graph), np.ones(())
    for seed in (3, 3, 3, 4, 3):
        tape = Executor(graph, Options()).record(values, [0, 1], seed=seed).backward([one])
        for found, expected in zip(run.vjp(values, [one], [0, 1], seed=seed), tape, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    (plan,) = run.plans.values()
    assert plan.together and all((a == b).all() for a, b in zip(values, before, strict=True))
