"""Differentiation takes steps in proportion to the graph: twice the nodes, twice the calls. No clock is asked."""
from __future__ import annotations

import sys
from types import FrameType

import pytest

import irtool
from irtool.autodiff.reverse import differentiate_graph

TYPES = {"typed": "Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)", "untyped": "Tensor"}
CHAIN = ("aten::mul(%{0}, %y)", "aten::tanh(%{0})", "aten::add(%{0}, %y, %one)", "aten::sigmoid(%{0})", "aten::mul(%{0}, %{0})")


def chain(type: str, n: int) -> str:
    """Each operator reads the one before."""
    lines = [f"graph(%v0 : {type}, %y : {type}):", "  %one : int = prim::Constant[value=1]()"]
    lines += [f"  %v{i + 1} : {type} = {CHAIN[i % len(CHAIN)].format(f'v{i}')}" for i in range(n)]
    return "\n".join([*lines, f"  return (%v{n})", ""])


def fan(type: str, n: int) -> str:
    """All operators read two inputs, all results are outputs: gradients add up, inputs of df are many."""
    lines = [f"graph(%x : {type}, %y : {type}):", *[f"  %v{i} : {type} = aten::mul(%x, %y)" for i in range(n)]]
    return "\n".join([*lines, f"  return ({', '.join(f'%v{i}' for i in range(n))})", ""])


def steps(text: str, least: bool) -> int:
    """Calls of Python functions and of built-in ones while a graph is differentiated."""
    graph = irtool.parse(text).graph()
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        differentiate_graph(graph, [True] * len(graph.inputs), True, True, least=least)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("least", [False, True], ids=["default", "least"])
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("program", [chain, fan], ids=["chain", "fan"])
def test_twice_the_nodes_twice_the_steps(program: object, type: str, least: bool) -> None:
    assert callable(program)
    steps(program(TYPES[type], 10), least)      # formulas are compiled on first use
    assert steps(program(TYPES[type], 800), least) <= 2.1 * steps(program(TYPES[type], 400), least)
