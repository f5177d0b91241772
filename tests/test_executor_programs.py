"""Whole programs through the executor: loops, lists, branches and writes; whatever the way, gradients are those of irtool.vjp."""
from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from test_gradient_loops import PROGRAMS, graph_of, leaves, same, values_of

import irtool
from irtool.execute.compilation import Options
from irtool.execute.executor import Executor
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import Graph

WAYS = {"whole": Options(), "groups": Options(whole=False), "fallback": Options(optimize=False)}
UNLIKE_TORCH = ("written into", "modified by an inplace", "shares its memory", "writes into its operand")
"""Why node by node some writes are refused."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, way: str) -> None:
    source, words = PROGRAMS[name]
    compare(graph_of(source), values_of(words), way)


def compare(graph: Graph, values: list[Any], way: str) -> None:
    """Outputs and gradients of one program, twice: the second time everything is compiled."""
    wrt = [index for index, value in enumerate(values) if not isinstance(value, int)]
    outputs = leaves(irtool.run(graph, values, interpret=True))
    rng = np.random.default_rng(2)
    cotangents = [rng.standard_normal(np.shape(output)) for output in outputs]
    expected = leaves(irtool.vjp(graph, values, cotangents, wrt, interpret=True))
    run = Executor(graph, WAYS[way])
    for _ in range(2):
        for mine, its in zip(leaves(run(*values)), outputs, strict=True):
            assert np.array_equal(mine, its)
        try:
            found = leaves(run.vjp(values, cotangents, wrt))
        except (RunError, UnsupportedError) as error:
            assert way == "fallback" and any(reason in str(error) for reason in UNLIKE_TORCH), str(error)
            return
        for mine, its in zip(found, expected, strict=True):
            assert same(mine, its)


@pytest.mark.parametrize("way", WAYS)
def test_a_gradient_that_is_not_there_is_none_to_the_formula(way: str) -> None:
    """Of three results only one has a gradient, and the formula asks which, in a branch on sizes only the run knows."""
    graph = irtool.parse("""graph(%a : Tensor):
  %1 : bool = prim::Constant[value=0]()
  %2 : NoneType = prim::Constant()
  %u : Tensor, %s : Tensor, %v : Tensor = aten::linalg_svd(%a, %1, %2)
  return (%s)
""").graph()
    run = Executor(graph, WAYS[way])
    for shape in ((3, 3), (2, 4), (4, 2), (0, 5, 0)):
        a = np.random.default_rng(0).standard_normal(shape)
        (s,) = run(a)
        (found,) = run.vjp([a], [np.ones_like(s)], [0])
        np.testing.assert_allclose(found, irtool.vjp(graph, [a], [np.ones_like(s)], [0], interpret=True)[0], atol=1e-12)


def test_an_empty_vector_beside_matrices_takes_no_part() -> None:
    """The rank of what is joined is not that of the first tensor, which torch lets be an empty vector."""
    graph = irtool.parse("""graph(%a : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor[] = prim::ListConstruct(%a, %b)
  %3 : Tensor = aten::cat(%2, %1)
  return (%3)
""").graph()
    run = Executor(graph, WAYS["whole"])
    a, b = np.zeros(0), np.arange(6.0).reshape(2, 3)
    for _ in range(2):
        none, gradient = run.vjp([a, b], [b + 1], [0, 1])
        assert none.shape == (0,) and np.array_equal(gradient, b + 1)


def test_foreign_code_is_given_arrays_alone() -> None:
    """LAPACK by way of f2py drops one reference to the dtype too many when it is handed a tracer; Python aborts when none is left."""
    pytest.importorskip("scipy")
    program = """
import numpy, irtool
graph = irtool.parse('''graph(%t : Tensor):
  %1 : bool = prim::Constant[value=0]()
  %3 : Tensor, %4 : Tensor, %5 : Tensor = aten::linalg_ldl_factor_ex(%t, %1, %1)
  return (%3)
''')
for _ in range(40):
    irtool.compile(graph.graph())(numpy.eye(3, dtype=numpy.complex64))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("way", WAYS)
def test_instances_hold_tensors_with_their_gradients_and_the_very_lists(way: str) -> None:
    graph = irtool.parse("""graph(%x : Tensor, %w : Tensor):
  %2 : int = prim::Constant[value=0]()
  %a : __torch__.Accumulator = prim::CreateObject()
   = prim::SetAttr[name="w"](%a, %w)
  %4 : Tensor[] = prim::ListConstruct()
   = prim::SetAttr[name="l"](%a, %4)
  %5 : Tensor = prim::GetAttr[name="w"](%a)
  %6 : Tensor = aten::mul(%x, %5)
   = prim::SetAttr[name="w"](%a, %6)
  %7 : Tensor[] = prim::GetAttr[name="l"](%a)
  %8 : Tensor[] = aten::append(%7, %6)
  %9 : Tensor[] = prim::GetAttr[name="l"](%a)
  %10 : Tensor = aten::__getitem__(%9, %2)
  %11 : Tensor = prim::GetAttr[name="w"](%a)
  %12 : Tensor = aten::mul(%10, %11)
  return (%12)
""").graph()
    x, w, g = np.array([1.0, 2.0]), np.array([3.0, -1.0]), np.array([1.0, 0.5])
    run = Executor(graph, WAYS[way])
    for _ in range(2):
        assert np.array_equal(run(x, w)[0], (x * w) ** 2)
        found = run.vjp([x, w], [g], [0, 1])
        assert np.array_equal(found[0], g * 2 * x * w * w) and np.array_equal(found[1], g * 2 * x * x * w)


@pytest.mark.parametrize("way", WAYS)
def test_a_tensor_that_is_transposed_in_place_leaves_its_views_as_they_are(way: str) -> None:
    graph = irtool.parse("""graph(%a : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %x : Tensor = aten::mul(%a, %a)
  %y : Tensor = aten::unsqueeze(%x, %0)
  %z : Tensor = aten::select(%x, %0, %0)
  %t : Tensor = aten::t_(%x)
  %s : Tensor = aten::select(%t, %0, %1)
  %r : Tensor = aten::mul_(%s, %s)
  return (%y, %z, %x)
""").graph()
    a = np.arange(1.0, 7.0).reshape(2, 3)
    whole = a * a
    whole[:, 1] **= 2
    slope = 2 * a
    slope[:, 1] *= 2 * a[:, 1] ** 2
    run = Executor(graph, WAYS[way])
    for _ in range(2):
        for found, expected in zip(run(a), (whole[None], whole[0], whole.T), strict=True):
            assert np.array_equal(found, expected)
        given = [np.ones((1, 2, 3)), np.full(3, 10.0), np.full((3, 2), 100.0)]
        assert np.array_equal(run.vjp([a], given, [0])[0], slope * (101 + np.array([[10], [0]])))


@pytest.mark.parametrize("way", WAYS)
def test_a_number_that_a_trace_writes_as_a_tensor_promotes_nothing_in_gradients(way: str) -> None:
    graph = irtool.parse("""graph(%x : Tensor, %w : Tensor):
  %2 : NoneType = prim::Constant()
  %3 : Tensor = aten::mm(%x, %w)
  %4 : Tensor = aten::sum(%3, %2)
  %5 : Double() = prim::Constant[value={-0.5}]()
  %6 : Tensor = aten::mul(%4, %5)
  return (%6)
""").graph()
    ones = np.ones((2, 2), np.float32)
    run = Executor(graph, WAYS[way])
    for vjp in (run.vjp, run.vjp, partial(irtool.vjp, interpret=True)):
        given = [graph] if isinstance(vjp, partial) else []
        for found in vjp(*given, [ones, ones], [np.ones((), np.float32)], [0, 1]):
            assert found.dtype == np.float32 and np.array_equal(found, -ones)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", ["aten::adaptive_avg_pool2d(%x, %s)", "aten::max_pool2d(%x, %s, %s, %z, %o, %f)",
                                  "aten::avg_pool2d(%x, %s, %s, %z, %f, %f, %n)"])
def test_a_batch_of_nothing(call: str, way: str) -> None:
    graph = irtool.parse(f"""graph(%x : Tensor):
  %n : NoneType = prim::Constant()
  %f : bool = prim::Constant[value=0]()
  %s : int[] = prim::Constant[value=[3, 3]]()
  %z : int[] = prim::Constant[value=[0, 0]]()
  %o : int[] = prim::Constant[value=[1, 1]]()
  %1 : Tensor = {call}
  %2 : Tensor = aten::mul(%1, %1)
  return (%2)
""").graph()
    x = np.zeros((0, 2, 9, 9))
    run = Executor(graph, WAYS[way])
    for _ in range(2):
        (found,) = run(x)
        assert found.shape == (0, 2, 3, 3)
        assert run.vjp([x], [found], [0])[0].shape == x.shape
