"""Recurrent operators as loops over time: the pass and the plan give what the operators give."""
from __future__ import annotations

import io
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.execute.native.building import compiler
from irtool.passes import BY_NAME
from irtool.passes.decompose_recurrent import STEPS

KINDS = sorted(each.removeprefix("aten::") for each in STEPS)


def program(kind: str, sizes: list[tuple[int, ...]], has_biases: bool, layers: int, bidirectional: bool, batch_first: bool) -> str:
    """A graph of one operator; its inputs are x, the states and the parameters. sizes: theirs, for their types."""
    states = 2 if kind == "lstm" else 1
    names = ["%x", *[f"%h{k}" for k in range(states)], *[f"%w{k}" for k in range(len(sizes) - 1 - states)]]
    inputs = ", ".join(f"{name} : Float({', '.join(map(str, size))})" for name, size in zip(names, sizes, strict=True))
    hidden = "%hx" if kind == "lstm" else "%h0"
    outs = ["%y", *[f"%z{k}" for k in range(states)]]
    return "\n".join([
        f"graph({inputs}):",
        *["  %hx : Tensor[] = prim::ListConstruct(%h0, %h1)"] * (kind == "lstm"),
        f"  %params : Tensor[] = prim::ListConstruct({', '.join(names[1 + states:])})",
        f"  %biases : bool = prim::Constant[value={int(has_biases)}]()", f"  %layers : int = prim::Constant[value={layers}]()",
        "  %dropout : float = prim::Constant[value=0.]()", "  %train : bool = prim::Constant[value=1]()",
        f"  %both : bool = prim::Constant[value={int(bidirectional)}]()", f"  %first : bool = prim::Constant[value={int(batch_first)}]()",
        f"  {', '.join(f'{each} : Tensor' for each in outs)} = aten::{kind}(%x, {hidden}, %params, %biases, %layers, %dropout, %train, "
        "%both, %first)",
        f"  return ({', '.join(outs)})", ""])


def sizes_of(kind: str, has_biases: bool, layers: int, bidirectional: bool, batch_first: bool, projects: bool) -> list[tuple[int, ...]]:
    """Sizes of x, the states and the parameters."""
    width, shown, batch, time = 4, 2 if projects else 4, 2, 5
    gates = width * {"lstm": 4, "gru": 3}.get(kind, 1)
    places = layers * (1 + bidirectional)
    sizes: list[tuple[int, ...]] = [(batch, time, 3) if batch_first else (time, batch, 3), (places, batch, shown)]
    sizes += [(places, batch, width)] * (kind == "lstm")
    features = 3
    for _ in range(layers):
        one: list[tuple[int, ...]] = [(gates, features), (gates, shown), *[(gates,)] * (2 * has_biases), *[(shown, width)] * projects]
        sizes += one * (1 + bidirectional)
        features = shown * (1 + bidirectional)
    return sizes


FLAGS = (False, True)
CASES = [case for case in product(KINDS, FLAGS, (1, 2), FLAGS, FLAGS, FLAGS) if not case[5] or case[0] == "lstm"]


def drawn(sizes: list[tuple[int, ...]], dtype: str = "float32") -> list[Any]:
    """Arrays of these sizes."""
    generator = np.random.default_rng(0)
    return [generator.standard_normal(size).astype(dtype) for size in sizes]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_loops_give_what_the_operator_gives(case: Any) -> None:
    kind, *options, projects = case
    sizes = sizes_of(kind, *options, projects)
    graph = irtool.parse(program(kind, sizes, *options)).graph()
    values = drawn(sizes)
    expected = irtool.run(graph, values, interpret=True)
    loops = irtool.parse(program(kind, sizes, *options)).graph()
    assert BY_NAME["decompose-recurrent"](loops) and not any(node.kind in STEPS for node in loops.walk())
    executor = irtool.compile(graph)
    for results in (irtool.run(loops, values, interpret=True), executor(*values), executor(*values), executor(*values)):
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_go_through_planned_loops(kind: str) -> None:
    options = (True, 2, True, False)
    sizes = sizes_of(kind, *options, False)
    graph = irtool.parse(program(kind, sizes, *options)).graph()
    values = drawn(sizes)
    cotangents = [np.ones_like(each) for each in irtool.run(graph, values, interpret=True)]
    executor = irtool.compile(graph)
    wrt = range(len(values))
    wanted = irtool.vjp(graph, values, cotangents, wrt, interpret=True)
    for _ in range(3):
        for result, each in zip(executor.vjp(values, cotangents, wrt), wanted, strict=True):
            np.testing.assert_allclose(result, each, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("change", "message"), [((0, (5, 2, 7)), "mat"), ((0, (5, 2)), "3 dimensions"), ((1, (1, 3, 4)), "gru")])
def test_what_does_not_fit_is_left_to_the_operator(change: tuple[int, tuple[int, ...]], message: str) -> None:
    sizes = sizes_of("gru", True, 1, False, False, False)
    sizes[change[0]] = change[1]
    graph = irtool.parse(program("gru", sizes, True, 1, False, False)).graph()
    assert not BY_NAME["decompose-recurrent"](graph)
    with pytest.raises(irtool.Error, match=message):
        irtool.compile(graph)(*drawn(sizes))


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
def test_states_of_zeros_are_known(tmp_path: Path) -> None:
    text = program("lstm", sizes_of("lstm", True, 2, False, True, False), True, 2, False, True)
    zeros = ["  %i0 : int = prim::Constant[value=2]()", "  %i1 : int = prim::Constant[value=4]()", "  %none : NoneType = prim::Constant()",
             "  %sizes : int[] = prim::ListConstruct(%i0, %i0, %i1)",
             "  %h0 : Tensor = aten::zeros(%sizes, %none, %none, %none, %none)",
             "  %h1 : Tensor = aten::zeros(%sizes, %none, %none, %none, %none)"]
    head, *lines = text.splitlines()
    path, inputs = tmp_path / "lstm.ir", tmp_path / "in.npz"
    path.write_text("\n".join([re.sub(r"%h\d : Float\([^)]*\), ", "", head), *zeros, *lines, ""]))
    sizes = sizes_of("lstm", True, 2, False, True, False)
    np.savez(inputs, **{f"input{place}": each for place, each in enumerate(drawn([sizes[0], *sizes[3:]]))})
    out = io.StringIO()
    assert main(["plan", "--native=all", "--print-after-all", str(path), str(inputs)], stdout=out) == 0
    after = out.getvalue().partition("# after write-out")[2]
    assert "prim::Loop" in after and "aten::lstm" not in after.partition("graph(")[0]


def test_gradients_of_lstm_keep_gates(tmp_path: Path) -> None:
    """df reads the gates of the forward run: it computes no sigmoid again."""
    options = (True, 2, True, False)
    module = irtool.parse(program("lstm", sizes_of("lstm", *options, True), *options))
    irtool.PassManager("differentiate,specialize-undef,lower-grad-of,dce").run(module)
    f, df = module.graphs
    assert [sum(node.kind == "aten::sigmoid" for node in graph.walk()) for graph in (f, df)] == [3 * 4, 0]


MISFITS: dict[str, Any] = {
    "no time": lambda sizes: [sizes[0][1:], *sizes[1:]],
    "one state for all samples": lambda sizes: [sizes[0], (1, 1, 4), *sizes[2:]],
    "states of two layers": lambda sizes: [sizes[0], (2, 2, 4), *sizes[2:]],
    "a parameter less": lambda sizes: sizes[:-1],
    "twice the parameters": lambda sizes: sizes + sizes[-4:],
}


@pytest.mark.parametrize("misfit", MISFITS)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_refuse_what_the_operator_refuses(kind: str, misfit: str) -> None:
    options = (True, 1, False, False)
    sizes = sizes_of(kind, *options, False)
    cotangents = [np.ones_like(each) for each in irtool.run(irtool.parse(program(kind, sizes, *options)).graph(), drawn(sizes))]
    sizes = MISFITS[misfit](sizes)
    graph, values = irtool.parse(program(kind, sizes, *options)).graph(), drawn(sizes)
    for run in (irtool.run, irtool.compile(graph).vjp, irtool.vjp):
        with pytest.raises(irtool.RunError):
            if run is irtool.run:
                run(graph, values)
            elif run is irtool.vjp:
                run(graph, values, cotangents, range(len(values)), interpret=True)
            else:
                run(values, cotangents, range(len(values)))
