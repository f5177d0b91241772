"""The verifier: every violation found, with its place; real graphs accepted."""
from __future__ import annotations

import pytest

import irtool
from irtool.ir.attribute import Attribute
from irtool.ir.graph import Node
from irtool.ir.types import parse_type
from irtool.ir.verify import violations

GOOD = """graph(%x : Tensor, %n : int, %c : bool):
  %1 : Tensor = aten::neg(%x)
  %2 : Tensor = prim::If(%c)
    block0():
      %3 : Tensor = aten::exp(%1)
      -> (%3)
    block1():
      -> (%1)
  %4 : Tensor = prim::Loop(%n, %c, %2)
    block0(%i : int, %5 : Tensor):
      %6 : Tensor = aten::mul(%5, %1)
      -> (%c, %6)
  %7 : (Tensor, int) = prim::TupleConstruct(%4, %n)
  return (%7)
"""


def graph_of(text: str) -> irtool.Graph:
    return irtool.parse(text, filename="f.ir").graphs[0]


def messages(graph: irtool.Graph) -> list[str]:
    return [f"{d.code}: {d.message}" for d in violations(graph)]


def test_a_good_graph_passes_before_and_after_uses_are_built() -> None:
    graph = graph_of(GOOD)
    irtool.verify(graph)
    graph.build_uses()
    irtool.verify(graph)


BAD = [
    ("%2 : Tensor = aten::ngé(%x)", "E0103: unknown operator 'aten::ngé' (did you mean 'aten::neg'?)"),
    ("%2 : Tensor = aten::neg(%x, %x, %x)", "E0208: aten::neg takes at most 2 operands"),
    ("%2 : Tensor = aten::neg(%s)", "E0212: no overload of aten::neg takes (str)"),
    ("%2 : Tensor = aten::matmul(%x, %s)", "E0212: no overload of aten::matmul takes (Tensor, str)"),
    ("%2 : Tensor, %3 : Tensor = aten::tanh(%x)", "E0208: aten::tanh gives 1 result, found 2"),
    ("%2 : int = prim::Constant[value=abc]()", "E0208: a constant of type int needs a number, found 'abc'"),
    ("%2 : int = prim::Constant[value=[1, 2]]()", "E0208: a constant of type int needs a number, found '[1, 2]'"),
    ("%2 : int = prim::Constant[val=1]()", "E0208: a constant of type int needs the attribute 'value', found 'val'"),
    ("%2 : int[] = prim::Constant[values=[1]]()", "E0208: a constant of type int[] needs the attribute 'value', found 'values'"),
    ("%2 : int[] = prim::Constant[value=1]()", "E0208: a constant of type int[] needs a list, found '1'"),
    ('%2 : int[] = prim::Constant[value="abc"]()', "E0208: a constant of type int[] needs numbers, found '\"abc\"'"),
    ("%2 : int[] = prim::Constant[value=[1, 2.5]]()", "E0208: a constant of type int[] needs whole numbers, found '[1, 2.5]'"),
    ("%2 : (Tensor, int) = prim::TupleConstruct(%x)", "E0208: prim::TupleConstruct makes (Tensor, int) of 1 values"),
    ("%2 : (Tensor, int) = prim::TupleConstruct(%x, %s)", "E0208: prim::TupleConstruct makes (Tensor, int) of %s : str"),
    ("%2 : int[] = prim::ListConstruct(%s)", "E0208: prim::ListConstruct makes int[] of %s : str"),
    ("%2 : Tensor = prim::ListConstruct(%x)", "E0208: prim::ListConstruct gives a list, found Tensor"),
    ("%2 : int = prim::Constant[value=1](%x)", "E0208: prim::Constant takes no operands, found 1"),
    ("%2 : Dict(str, Tensor) = prim::DictConstruct(%s)", "E0208: prim::DictConstruct takes keys and values in turn, found 1 operands"),
    ("%2 : Tensor, %3 : Tensor = prim::TupleUnpack(%p)", "E0208: prim::TupleUnpack gives the 3 values"),
    ("%2 : Tensor = prim::ListUnpack(%p)", "E0208: prim::ListUnpack takes a list, found %p"),
]


@pytest.mark.parametrize(("line", "message"), BAD, ids=[message.partition(":")[2][:40] for _, message in BAD])
def test_a_wrong_node(line: str, message: str) -> None:
    graph = graph_of(f"graph(%x : Tensor, %s : str, %p : (int, int, int)):\n  {line}\n  return (%x)\n")
    (found,) = violations(graph)
    assert f"{found.code}: {found.message}".startswith(message.partition("operands")[0])
    assert found.line == 2 and found.col == line.index(" = ") + 6
    with pytest.raises(irtool.VerifyError, match="f.ir:2:"):
        irtool.verify(graph)


FLOW = [
    ("prim::If(%s)", "", "the condition of prim::If is a bool, found %s : str"),
    ("prim::If(%c, %c)", "", "prim::If takes one operand, the condition, found 2"),
    ("prim::If(%c)", "    block0():\n      -> (%s)\n    block1():\n      -> (%x)\n", "block0 of prim::If gives %s : str for %r : Tensor"),
    ("prim::If(%c)", "    block0():\n      -> ()\n    block1():\n      -> (%x)\n", "block0 of prim::If gives 0 values, expected 1"),
    ("prim::Loop(%n, %c, %x)", "    block0(%i : int, %y : Tensor):\n      -> (%c)\n", "block0 of prim::Loop gives 0 values, expected 1"),
    ("prim::Loop(%n, %c, %x)", "    block0(%i : int):\n      -> (%c, %x)\n", "prim::Loop carries 1 values, expected 0"),
    ("Loop(%n, %c)", "    block0(%i : int):\n      -> (%c)\n", "Loop carries 0 values, but its block takes 0 and gives 0, and it gives 1"),
    ("prim::Loop(%s, %c, %x)", "    block0(%i : int, %y : Tensor):\n      -> (%c, %y)\n", "the trip count of prim::Loop is an int"),
    ("prim::Loop(%n, %c, %x)", "    block0(%i : int, %y : Tensor):\n      -> (%s, %y)\n", "block0 of prim::Loop gives a bool first"),
    ("prim::Loop(%n)", "    block0(%i : int, %y : Tensor):\n      -> (%c, %y)\n", "prim::Loop takes a trip count and a condition"),
]
BRANCHES = "    block0():\n      -> (%x)\n    block1():\n      -> (%x)\n"


@pytest.mark.parametrize(("node", "blocks", "message"), FLOW, ids=[message[:40] for _, _, message in FLOW])
def test_wrong_control_flow(node: str, blocks: str, message: str) -> None:
    graph = graph_of(f"graph(%x : Tensor, %s : str, %n : int, %c : bool):\n  %r : Tensor = {node}\n{blocks or BRANCHES}  return (%r)\n")
    assert any(message in found.message for found in violations(graph))


def test_a_value_from_a_neighbouring_block() -> None:
    graph = graph_of(GOOD)
    inner = next(value for value in graph.values() if value.name == "3")
    graph.nodes[3].set_inputs((inner, graph.inputs[1]))
    assert messages(graph) == ["E0202: %7 = prim::TupleConstruct reads %3, which is defined in a block that does not enclose it"]


def test_a_value_from_below_and_from_nowhere() -> None:
    graph = graph_of(GOOD)
    graph.nodes[0].set_inputs((graph.nodes[1].output,))
    lost = Node("aten::exp", (graph.inputs[0],)).add_output("99", parse_type("Tensor"))
    graph.nodes[1].blocks[1].set_outputs((lost,))
    assert messages(graph) == ["E0202: %1 = aten::neg reads %2, which is defined below",
                               "E0202: the results read %99, which no node of the graph defines"]


def test_names_clash() -> None:
    graph = graph_of(GOOD)
    graph.nodes[0].output.name = "2"
    assert messages(graph) == ["E0204: the name %2 is used twice"]


def test_broken_links_hide_the_rest() -> None:
    graph = graph_of(GOOD)
    node = graph.nodes[1]
    node.prev.next = node.next
    assert [d.code for d in violations(graph)] == ["E0201"]


def test_uses_that_do_not_agree() -> None:
    graph = graph_of(GOOD)
    graph.build_uses()
    node = graph.nodes[0]
    node.inputs = (graph.inputs[0], graph.inputs[0])
    assert messages(graph)[0].startswith("E0203: operand 1 of %1 = aten::neg is missing from the uses of %x")


def test_a_group_and_its_graph() -> None:
    graph = graph_of(GOOD)
    inner = graph_of("graph(%a : Tensor, %b : Tensor):\n  return (%a)\n")
    group = Node("prim::FusionGroup", (graph.inputs[0],), {"Subgraph": Attribute("<Graph>", inner)})
    group.add_output("50", parse_type("Tensor"))
    group.insert_before(graph.block.return_node)
    assert messages(graph) == ["E0210: the graph of %50 = prim::FusionGroup takes 2 values, it is given 1"]


def test_old_texts_may_use_kinds_that_are_gone() -> None:
    irtool.verify(graph_of("graph(%0 : Float(2)\n      %1 : Float(2)) {\n  %2 : Float(2) = aten::gone[alpha={1}](%0, %1)\n"
                           "  %3 : Float(2) = onnx::Anything(%2)\n  return (%3);\n}\n"))
    irtool.verify(graph_of("graph(%x : Tensor):\n  %2 : Tensor = my::op(%x)\n  %3 : Tensor = prim::MyOwn(%2)\n  return (%3)\n"))


def test_all_violations_are_collected() -> None:
    graph = graph_of("graph(%x : Tensor, %s : str):\n  %1 : Tensor = aten::nge(%x)\n  %2 : Tensor = aten::exq(%x)\n  return (%1)\n")
    with pytest.raises(irtool.VerifyError) as caught:
        irtool.verify(graph)
    assert [d.line for d in caught.value.diagnostics] == [2, 3]


FORMS = [
    ("%2 : Tensor = prim::ConstantChunk(%x)", "E0208: prim::ConstantChunk needs the attribute 'chunks'"),
    ("%2 : Tensor = prim::ConstantChunk[chunks=two, dim=0](%x)",
     "E0208: the attribute 'chunks' of prim::ConstantChunk is an int, found 'two'"),
    ("%2 : Tensor = prim::ConstantChunk[chunks=2, dim=99999999999999999999](%x)",
     "E0208: the attribute 'dim' of prim::ConstantChunk is an int, found '99999999999999999999'"),
    ("%2 : Tensor = prim::TupleIndex(%p)", "E0208: prim::TupleIndex needs an index, as an operand or as the attribute 'index'"),
    ("%2 : (Tensor) = prim::TupleSlice[beg=0](%p)", "E0208: prim::TupleSlice needs the attribute 'end'"),
    ("%2 : Tensor = prim::unchecked_cast()", "E0208: prim::unchecked_cast takes at least 1 operands, found 0"),
    ("%2 : Tensor = prim::GradOf[name=\"aten::neg\"](%x)", "E0207: prim::GradOf has one block, found 0"),
    ("%2 : int = aten::cat[value=1]()", "E0212: no overload of aten::cat takes (value=1)"),
]


@pytest.mark.parametrize(("line", "expected"), FORMS)
def test_forms_of_undeclared_kinds(line: str, expected: str) -> None:
    graph = graph_of(f"graph(%x : Tensor, %p : (Tensor, Tensor)):\n  {line}\n  return (%x)\n")
    assert any(message.startswith(expected) for message in messages(graph)), messages(graph)


OLD = [
    ("%2 : Dynamic, %3 : Dynamic = aten::add(%x, %x, %n)", "E0208: aten::add gives 1 result, found 2"),
    ("%2 : Dynamic = aten::mul[other={2}, a=1, b=2](%x, %x)", "E0208: aten::mul takes 2 to 3 arguments, found 5"),
    ("%2 : Dynamic = aten::neg()", "E0208: aten::neg takes 1 to 2 arguments, found 0"),
]


@pytest.mark.parametrize(("line", "expected"), OLD)
def test_old_dialects_are_held_to_numbers_of_arguments_and_results(line: str, expected: str) -> None:
    graph = graph_of(f"graph(%x : Dynamic\n      %n : int) {{\n  {line}\n  return (%x);\n}}\n")
    assert any(message.startswith(expected) for message in messages(graph)), messages(graph)


def test_old_results_that_are_one_list_today() -> None:
    graph = graph_of("graph(%x : Dynamic) {\n  %2 : Dynamic, %3 : Dynamic = aten::chunk[chunks=2, dim=1](%x)\n"
                     "  %4 : Dynamic, %5 : Dynamic = aten::max_pool2d[kernel_size=[2, 2]](%2)\n  return (%3, %4);\n}\n")
    assert not messages(graph)


def test_lists_of_fractions_are_no_lists_of_ints() -> None:
    """Texts of 2018 have constants in place, which no declaration of a value types."""
    for number in ("0.5", "-inf", "nan"):
        text = f"graph(%x : Dynamic) {{\n  %1 : int[] = prim::ListConstruct({number}, 1)\n  return (%1);\n}}\n"
        with pytest.raises(irtool.Error, match=f"prim::ListConstruct makes int\\[\\] of {number}, expected whole numbers"):
            irtool.verify(irtool.parse(text).graph())


@pytest.mark.parametrize(("line", "message"), [
    ("%2 : (Dynamic, Dynamic) = prim::TupleConstruct(%x, %x, %x)", "prim::TupleConstruct makes (Dynamic, Dynamic) of 3 values"),
    ("%2 : Dynamic, %3 : Dynamic, %4 : Dynamic = prim::TupleUnpack(%p)", "prim::TupleUnpack gives the 2 values"),
])
def test_wrong_numbers_of_values_in_the_text_of_2018(line: str, message: str) -> None:
    graph = graph_of(f"graph(%x : Dynamic\n      %p : (Dynamic, Dynamic)) {{\n  {line}\n  return (%x);\n}}\n")
    (found,) = violations(graph)
    assert found.message.startswith(message)


@pytest.mark.parametrize("declared", ["Union(int, Tensor)", "Union(Tensor, float, None)", "Optional[Union(int, Tensor)]"])
def test_a_union_is_no_tensor_although_each_choice_may_stand_for_one(declared: str) -> None:
    """A number may stand for a tensor, as after erase-number-types; a pass that inlines the graph would make a node of no overload."""
    text = (f"graph(%x : {declared}):\n  %1 : Tensor = prim::DifferentiableGraph_0(%x)\n  return (%1)\n"
            "with prim::DifferentiableGraph_0 = graph(%0 : Tensor):\n  %1 : Tensor = aten::tanh(%0)\n  return (%1)\n")
    with pytest.raises(irtool.Error, match="for %0 : Tensor|expected"):
        irtool.verify(irtool.parse(text))
