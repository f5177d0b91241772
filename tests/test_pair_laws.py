"""What every gradient pair keeps to: nothing dead, nothing captured twice, no constants captured, sizes rather than tensors."""
from __future__ import annotations

import re

import pytest
from test_higher_orders import OPERATORS
from test_higher_orders import PROGRAMS as BRANCHES
from test_undefined_gradients import PROGRAMS

import irtool
from irtool import PassManager
from irtool.analysis.liveness import remove_dead_nodes
from irtool.execute.graph_gradients import prepared
from irtool.ir.constants import is_constant
from irtool.ir.edits import clone_graph
from irtool.ir.graph import Graph
from irtool.ir.module import Module
from irtool.ir.pair import GradientPair, pairs
from irtool.torchscript.front import compile_source

SOURCES = [*PROGRAMS.values(), *BRANCHES.values(), *[f"def f(x, y):\n    return {each} * 1.5\n" for each in OPERATORS]]


def differentiated(graph: Graph, form: str) -> GradientPair:
    (pair,) = pairs(PassManager(f"differentiate{{form={form}}}", verify=True).run(Module([graph])))
    return pair


def check(pair: GradientPair, order: int = 1) -> None:
    """At order 2 gradients may be undefined, and their size cannot be asked everywhere: they may be captured for that."""
    f, df = pair.f, pair.df
    for graph in (f, df):
        copy = clone_graph(graph)
        assert not remove_dead_nodes(copy) or str(copy) == str(graph), "a dead node"
    captured = [*[f.inputs[i] for i in pair.captured_inputs], *[f.outputs[i] for i in pair.captured_outputs]]
    assert len(set(captured)) == len(captured), "captured twice"
    assert len(set(pair.input_vjps)) == len(pair.input_vjps)
    assert not any(is_constant(value) for value in captured), "a constant is captured"
    for own, value in zip(df.inputs[len(pair.input_vjps):], captured, strict=True):
        users = {user.kind for user, _ in own.uses}
        assert users, f"%{value.name} is captured for nothing"
        assert order > 1 or not users <= {"aten::size", "aten::dim", "prim::dtype"}, f"%{value.name} is captured for its size"
    for own in df.inputs[:len(pair.input_vjps)]:
        assert own.has_uses, "a gradient that nobody takes"
    temporaries = f.outputs[pair.real_outputs:]
    assert set(temporaries) <= set(captured) and len(set(temporaries)) == len(temporaries)
    assert not set(temporaries) & {*f.inputs, *f.outputs[:pair.real_outputs]}


@pytest.mark.parametrize("form", ["modern", "2018"])
@pytest.mark.parametrize("source", SOURCES)
def test_pairs(source: str, form: str) -> None:
    """Of programs, and of their reverse graphs as they come."""
    pair = differentiated(prepared(compile_source(source).graph()), form)
    check(pair)
    alone = Module([pair.df])
    alone.graph().metadata = {}
    check(differentiated(irtool.parse(str(alone)).graph(), form), 2)


@pytest.mark.parametrize("source", SOURCES)
def test_nodes_of_df_come_from_nodes_of_f(source: str) -> None:
    """Each region has scope, source comment and line of the node that it is the gradient of, and on request names the node."""
    text = str(prepared(compile_source(source).graph()))
    lines = {name: number for number, line in enumerate(text.split("\n"), 1) for name in re.findall(r"%\S+(?= :[^=]* = )", line)}
    kept, named = (PassManager(f"differentiate{{{option}}}").run(irtool.parse(text, filename="f.ir")) for option in ("", "origins"))
    assert str(kept.graphs[0]) == str(named.graphs[0]) and kept.graphs[1].source is kept.graphs[0].source
    regions = [[node for node in module.graphs[1].walk() if node.kind == "prim::GradOf"] for module in (kept, named)]
    assert not regions[1] or any(region.tail for region in regions[1])
    for plain, region in zip(*regions, strict=True):
        if not region.tail:     # sums the gradients of all rounds of a loop
            continue
        word, _, place = region.source.partition(", ")
        name = word.removeprefix("from ")
        assert (place, region.scope, region.line) == (plain.source, plain.scope, plain.line) and word != name
        assert name not in lines or region.line == lines[name]
        assert {(node.source, node.line) for node in region.blocks[0] if node.kind != "prim::Constant"} <= {(region.source, region.line)}
