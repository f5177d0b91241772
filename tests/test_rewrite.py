"""Bulk edits: copies, inlining, dead nodes, merging, the builder."""
from __future__ import annotations

import pytest

import irtool
from irtool.analysis.liveness import remove_dead_nodes
from irtool.ir import types
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.builder import Builder, type_of
from irtool.ir.constants import NOT_CONSTANT, constant, is_constant, is_none
from irtool.ir.dialect import DIALECTS
from irtool.ir.edits import (
    become_constant,
    clone_graph,
    clone_node,
    flatten_type,
    flatten_values,
    inline_block,
    inline_graph,
    replace_node,
    replace_output,
)
from irtool.ir.numbering import merge_equal_nodes
from irtool.ir.replacing_walk import Sweep

TEXT = """graph(%x : Tensor, %n : int, %c : bool):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::add(%x, %x, %one) # f.py:1:2
  %r : Tensor = prim::If(%c)
    block0():
      %b : Tensor = aten::neg(%a)
      -> (%b)
    block1():
      -> (%a)
  %t : (Tensor, int) = prim::TupleConstruct(%r, %n)
  return (%t)
"""


def graph_of(text: str) -> irtool.Graph:
    return irtool.parse(text).graphs[0]


def lines(graph: irtool.Graph) -> list[str]:
    irtool.verify(graph)
    graph.layout = None
    return [line.strip() for line in str(graph).splitlines() if not line.startswith(("graph", "      %"))]


def test_a_clone_is_equal_and_apart() -> None:
    graph = graph_of(TEXT)
    copy = clone_graph(graph)
    assert lines(copy) == lines(graph)
    assert {*graph.values()}.isdisjoint(copy.values()) and {*graph.walk()}.isdisjoint(copy.walk())
    copy.outputs[0].node.remove()
    assert len(graph.nodes) == 4


def test_a_clone_owns_its_subgraphs() -> None:
    graph = graph_of("graph(%x : Float(2)):\n  %1 : Float(2) = prim::FusionGroup_0(%x)\n  return (%1)\n"
                     "with prim::FusionGroup_0 = graph(%0 : Float(2)):\n  %1 : Float(2) = aten::neg(%0)\n  return (%1)\n")
    copy = clone_graph(graph)
    mine, theirs = (each.nodes[0].attributes["Subgraph"].value for each in (graph, copy))
    assert mine is not theirs and str(graph) == str(copy)


def test_inlining_a_graph_names_its_values_anew() -> None:
    caller, callee = graph_of(TEXT), graph_of("graph(%x : Tensor):\n  %b : Tensor = aten::exp(%x)\n  %7 : Tensor = aten::neg(%b)\n"
                                              "  return (%7, %x)\n")
    node = caller.nodes[1]
    result, same = inline_graph(callee, node.next, [node.output])
    assert (str(result), same) == ("%0", node.output)
    assert lines(caller)[2:4] == ["%b.1 : Tensor = aten::exp(%a)", "%0 : Tensor = aten::neg(%b.1)"]
    with pytest.raises(ValueError, match="1 inputs given, the graph takes 3"):
        inline_graph(graph_of(TEXT), node, [node.output])


def test_opening_a_block() -> None:
    graph = graph_of(TEXT)
    node = graph.nodes[2]
    replace_node(node, inline_block(node.blocks[0], node))
    assert lines(graph)[2:4] == ["%b : Tensor = aten::neg(%a)", "%t : (Tensor, int) = prim::TupleConstruct(%b, %n)"]


@pytest.mark.parametrize("build_uses", [False, True])
def test_dead_nodes(build_uses: bool) -> None:
    graph = graph_of("graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%x)\n  %2 : Tensor = aten::exp(%1)\n  %3 : Tensor = aten::exp(%1)\n"
                     "  return (%2)\n")
    if build_uses:
        graph.build_uses()
    assert remove_dead_nodes(graph)
    assert lines(graph) == ["%1 : Tensor = aten::neg(%x)", "%2 : Tensor = aten::exp(%1)", "return (%2)"]
    assert not remove_dead_nodes(graph)


@pytest.mark.parametrize("build_uses", [False, True])
def test_merging(build_uses: bool) -> None:
    graph = graph_of("graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%x)\n  %2 : Tensor = aten::neg(%x)\n  %3 : Tensor = aten::exp(%1)\n"
                     "  %4 : Tensor = aten::exp(%2)\n  %5 : Tensor = aten::sub(%3, %4)\n  return (%5)\n")
    if build_uses:
        graph.build_uses()
    assert merge_equal_nodes(graph, lambda kind: True, lambda kept, dropped: kept.kind != "aten::sub")
    assert lines(graph) == ["%1 : Tensor = aten::neg(%x)", "%3 : Tensor = aten::exp(%1)", "%5 : Tensor = aten::sub(%3, %3)", "return (%5)"]
    graph.build_uses()
    assert graph.nodes[1].output.use_count == 2


@pytest.mark.parametrize("build_uses", [False, True])
def test_a_sweep_reroutes_later_readers_in_blocks_too(build_uses: bool) -> None:
    graph = graph_of(TEXT)
    if build_uses:
        graph.build_uses()
    sweep = Sweep(graph)
    kinds = []
    for node in sweep:
        kinds.append(node.kind)
        if node.kind == "aten::add":
            sweep.replace(node.output, node.inputs[0])
    assert kinds == ["prim::Constant", "aten::add", "aten::neg", "prim::If", "prim::TupleConstruct"]
    assert "%b : Tensor = aten::neg(%x)" in str(graph) and "-> (%x)" in str(graph)
    remove_dead_nodes(graph)
    assert "aten::add" not in str(graph)


def test_a_node_becomes_a_constant() -> None:
    graph = graph_of(TEXT)
    graph.build_uses()
    node = graph.nodes[1]
    become_constant(node, Attribute.of(2.5), types.FLOAT)
    assert node.output.type is types.FLOAT and constant(node.output) == 2.5 and not graph.inputs[0].has_uses


def test_results_in_the_place_of_one() -> None:
    graph = graph_of(TEXT)
    node = graph.nodes[3]
    graph.block.set_outputs(())
    fresh = replace_output(node, 0, [types.TENSOR, types.INT])
    assert list(node.outputs) == fresh and [value.index for value in fresh] == [0, 1]


def test_tuples_taken_apart() -> None:
    graph = graph_of(TEXT)
    assert flatten_values(graph.outputs) == [graph.nodes[2].output, graph.inputs[1]]
    assert [t.text for t in flatten_type(types.parse_type("(int, (Tensor, str[]), float)"))] == ["int", "Tensor", "str[]", "float"]


def test_cloning_a_node_into_another_graph() -> None:
    graph, other = graph_of(TEXT), irtool.Graph()
    x = other.block.add_input("x", types.TENSOR)
    mapping = {graph.inputs[0]: x, graph.nodes[0].output: x}
    copy = clone_node(graph.nodes[1], mapping, other.block, other)
    assert copy.output.name == "a" and copy.tail == " # f.py:1:2" and mapping[graph.nodes[1].output] is copy.output


# ---------------------------------------------------------------- constants
@pytest.mark.parametrize(("text", "value"), [
    ("int = prim::Constant[value=1]()", 1), ("float = prim::Constant[value=1]()", 1.0), ("bool = prim::Constant[value=0]()", False),
    ("NoneType = prim::Constant()", None), ('str = prim::Constant[value="a"]()', "a"), ("int[] = prim::Constant[value=[1, 2]]()", [1, 2]),
    ("Tensor = prim::Constant[value={3}]()", TensorLiteral("{3}")), ('Function = prim::Constant[name="f"]()', NOT_CONSTANT),
])
def test_constants(text: str, value: object) -> None:
    node = graph_of(f"graph():\n  %1 : {text}\n  return (%1)\n").nodes[0]
    found = constant(node.output)
    assert found == value and type(found) is type(value)
    assert is_constant(node.output) and is_none(node.output) == (value is None)
    assert not is_constant(graph_of(TEXT).inputs[0])


# ---------------------------------------------------------------- the builder
def empty(dialect: str) -> tuple[irtool.Graph, irtool.Value, irtool.Value, Builder]:
    graph = irtool.Graph(DIALECTS[dialect])
    tensor = types.spell(types.TENSOR, graph.dialect)
    a, b = graph.block.add_input("a", tensor), graph.block.add_input("b", tensor)
    return graph, a, b, Builder(graph)


def test_arguments_are_operands_today() -> None:
    graph, a, b, build = empty("G")
    total = build.call("aten::add", a, b, alpha=2)
    mean = build.call("aten::sum", total, [0, 1], True)
    graph.block.add_output(build.call("aten::mul", mean, 0.5))
    assert lines(graph) == [
        "%0 : int = prim::Constant[value=2]()",
        "%1 : Tensor = aten::add(%a, %b, %0)",
        "%2 : int[] = prim::Constant[value=[0, 1]]()",
        "%3 : bool = prim::Constant[value=1]()",
        "%4 : NoneType = prim::Constant()",
        "%5 : Tensor = aten::sum(%1, %2, %3, %4)",
        "%6 : float = prim::Constant[value=0.5]()",
        "%7 : Tensor = aten::mul(%5, %6)",
        "return (%7)"]


def test_arguments_were_attributes_until_mid_2018() -> None:
    graph, a, b, build = empty("C1")
    total = build.call("aten::add", a, b, alpha=2)
    joined = build.call("aten::cat", [total, b], 1)
    graph.block.add_output(joined)
    assert lines(graph) == ["%0 : Dynamic = aten::add[alpha={2}](%a, %b)", "%1 : Dynamic = aten::cat[dim=1](%0, %b)", "return (%1);", "}"]


def test_kinds_were_unqualified_in_2017() -> None:
    graph, a, b, build = empty("B1")
    graph.block.add_output(build.call("aten::mul", a, b))
    assert "mul(%a, %b)" in str(graph) and "aten::" not in str(graph)


def test_insertion_points() -> None:
    graph, a, b, build = empty("G")
    first = build.call("aten::neg", a).node
    second = build.before(first).call("aten::exp", a).node
    third = build.after(second).call("aten::tanh", a).node
    fourth = build.call("aten::relu", a).node
    assert graph.nodes == [second, third, fourth, first]
    assert build.at_end(graph.block).call("aten::t", a).node is graph.nodes[-1]


def test_results_take_their_types_from_the_operands() -> None:
    graph, a, b, build = empty("G")
    held = build.construct_list([a, b], types.TENSOR)
    assert build.call("aten::__getitem__", held, 0).type is types.TENSOR
    assert build.call("aten::size", a).type.text == "int[]"
    assert build.call("aten::len", held).type is types.INT
    assert build.call("aten::neg", a, type=types.parse_type("Float(2)")).type.text == "Float(2)"
    values, indices = build.call_node("aten::max", a, 0).outputs
    assert values.type is indices.type is types.TENSOR
    assert build.construct_tuple([a, held]).type.text == "(Tensor, Tensor[])"


def test_what_no_overload_takes() -> None:
    _, a, _, build = empty("G")
    with pytest.raises(irtool.Error, match=r"no overload of aten::add takes \(%a : Tensor, 'x'\)"):
        build.call("aten::add", a, "x")
    with pytest.raises(irtool.Error, match="no operator is called aten::nothing"):
        build.call("aten::nothing", a)
    with pytest.raises(irtool.Error, match="has 2 results"):
        build.call("aten::max", a, 0)


@pytest.mark.parametrize("value", [True, 3, 2.5, -0.0, float("inf"), "a\n\"b\"", [1, 2], [1.5], ["x"], (1, 2.0), 1 << 62, 1e16, 0.1])
def test_constants_come_back(value: object) -> None:
    graph, _, _, build = empty("G")
    graph.block.add_output(build.constant(value))
    again = graph_of(str(graph)).outputs[0]
    assert repr(constant(again)) == repr(value) and again.type is type_of(value)
