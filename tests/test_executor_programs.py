"""Whole programs through the executor: loops, lists, branches and writes; whatever the way, gradients are those of irtool.vjp."""
from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from test_gradient_loops import PROGRAMS, graph_of, leaves, same, values_of

import irtool
from irtool.execute.executor import Executor
from irtool.execute.plans import Options
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
