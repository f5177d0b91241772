"""Use-def chains: lazy, then kept up to date by every edit."""
from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.ir.attribute import Attribute
from irtool.ir.graph import Graph, Node, Use, Value
from irtool.ir.types import INT, TENSOR
from irtool.ir.verify import violations


def broken(graph: Graph) -> list[str]:
    """Violations of the structure; these graphs mean nothing as programs."""
    return [found.message for found in violations(graph) if found.code not in ("E0103", "E0208", "E0212")]


def chain(n: int) -> Graph:
    """An input and n nodes that each read the value before them."""
    graph = Graph()
    value = graph.block.add_input("0", TENSOR)
    for i in range(1, n + 1):
        node = Node("aten::neg", (value,))
        value = node.add_output(str(i), TENSOR)
        graph.block.append(node)
    graph.block.add_output(value)
    return graph


def test_uses_are_built_when_asked_for() -> None:
    graph = chain(3)
    assert graph.has_uses_built is False
    value = graph.inputs[0]
    assert value.uses == [Use(graph.nodes[0], 0)]
    assert graph.has_uses_built
    assert graph.outputs[0].uses == [Use(graph.block.return_node, 0)]


@pytest.mark.parametrize("build", [False, True])
def test_replacing_all_uses(build: bool) -> None:
    graph = chain(3)
    if build:
        graph.build_uses()
    first, second, third = graph.nodes
    second.output.replace_all_uses_with(graph.inputs[0])
    assert third.inputs == (graph.inputs[0],) and not second.output.has_uses
    second.destroy()
    assert graph.nodes == [first, third] and graph.inputs[0].use_count == 2
    assert broken(graph) == []


def test_a_used_node_is_not_destroyed_before_anybody_asked_for_uses() -> None:
    graph = irtool.parse("graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%x)\n  %2 : Tensor = aten::neg(%1)\n  return (%2)\n").graph()
    with pytest.raises(ValueError, match="%1 is still used by aten::neg"):
        next(iter(graph.nodes)).destroy()


def test_a_used_node_is_not_destroyed() -> None:
    graph = chain(2)
    graph.build_uses()
    with pytest.raises(ValueError, match="%1 is still used by aten::neg"):
        graph.nodes[0].destroy()
    with pytest.raises(ValueError, match="%2 is used"):
        graph.nodes[1].remove_output(0)


def test_operand_edits_keep_slots() -> None:
    graph = chain(1)
    (node,) = graph.nodes
    graph.build_uses()
    extra = graph.block.add_input("n", INT)
    node.add_input(extra)
    node.insert_input(0, extra)
    assert extra.uses == [Use(node, 0), Use(node, 2)] and graph.inputs[0].uses == [Use(node, 1)]
    node.remove_input(0)
    assert extra.uses == [Use(node, 1)]
    node.replace_input_with(extra, graph.inputs[0])
    assert not extra.has_uses and graph.inputs[0].use_count == 2
    assert broken(graph) == []


def test_attributes_come_and_go() -> None:
    graph = chain(2)
    first, second = graph.nodes
    second.attributes = first.attributes        # as nodes of one line have them
    first.set_attribute("a", Attribute("1"))
    first.set_attribute("b", Attribute("2"))
    first.remove_attribute("a")
    assert {name: each.text for name, each in first.attributes.items()} == {"b": "2"} and not second.attributes
    with pytest.raises(KeyError, match="a"):
        first.remove_attribute("a")


def test_moving_and_order() -> None:
    graph = chain(4)
    a, b, c, d = graph.nodes
    assert a.before_in_block(d) and not d.before_in_block(a) and not a.before_in_block(a)
    d.move_before(a)
    a.move_after(c)
    assert graph.nodes == [d, b, c, a]
    assert [node.kind for node in reversed(graph.block)] == ["aten::neg"] * 4 and list(reversed(graph.block)) == [a, c, b, d]


def test_nodes_enter_with_everything_in_them() -> None:
    graph = chain(1)
    graph.build_uses()
    condition = graph.block.add_input("c", INT)
    branch = Node("prim::If", (condition,))
    result = branch.add_output("r", TENSOR)
    for _ in range(2):
        block = branch.add_block()
        inner = Node("aten::neg", (graph.inputs[0],))
        value = inner.add_output("i", TENSOR)
        block.append(inner)
        block.add_output(value)
    branch.insert_before(graph.block.return_node)
    assert condition.use_count == 1 and graph.inputs[0].use_count == 3
    assert not result.has_uses and branch.blocks[0].outputs[0].use_count == 1
    assert branch.blocks[0].graph is graph and graph.block.contains(branch.blocks[1].nodes[0])
    branch.remove()
    assert graph.inputs[0].use_count == 1 and branch.owner is None


def test_fresh_names() -> None:
    graph = chain(2)
    assert [graph.fresh_id(), graph.fresh_id()] == ["3", "4"]
    assert [graph.fresh_name("x"), graph.fresh_name("x"), graph.fresh_name("x.1"), graph.fresh_name("7")] == ["x", "x.1", "x.2", "7.1"]
    graph.forget_names()
    assert graph.fresh_id() == "3"


def test_walks() -> None:
    graph = irtool.parse("graph(%c : bool, %x : Tensor):\n  %r : Tensor = prim::If(%c)\n    block0():\n      %a : Tensor = aten::neg(%x)\n"
                         "      -> (%a)\n    block1():\n      -> (%x)\n  %b : Tensor = aten::exp(%r)\n  return (%b)\n").graphs[0]
    assert [node.kind for node in graph.walk()] == ["prim::If", "aten::neg", "aten::exp"]
    assert [value.name for value in graph.values()] == ["c", "x", "r", "a", "b"]
    assert len(list(graph.walk_blocks())) == 3


def test_a_node_stands_in_one_block() -> None:
    graph = Graph()
    node = graph.block.append(Node("aten::neg"))
    with pytest.raises(ValueError, match="is already in a block"):
        graph.block.append(node)


EDITS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 30), st.integers(0, 30)), max_size=40)


@given(st.integers(0, 20), EDITS)
@settings(max_examples=200, deadline=None)
def test_any_sequence_of_edits_keeps_uses_consistent(build_at: int, edits: list[tuple[int, int, int]]) -> None:
    graph = chain(4)
    for step, (what, i, j) in enumerate(edits):
        if step == build_at:
            graph.build_uses()
        nodes = graph.nodes
        values: list[Value] = [*graph.inputs, *(node.output for node in nodes)]
        node = nodes[i % len(nodes)] if nodes else None
        above = values[: values.index(node.output)] if node is not None else values
        value = above[j % len(above)]
        if what == 0:
            fresh = Node("aten::exp", (value,))
            fresh.add_output(graph.fresh_id(), TENSOR)
            fresh.insert_before(node if node is not None else graph.block.return_node)
        elif node is None:
            graph.block.set_outputs((value,))
        elif what == 1:
            node.replace_input(j % len(node.inputs), value) if node.inputs else node.add_input(value)
        elif what == 2:
            node.output.replace_all_uses_with(value)
            node.destroy()
        elif what == 3:
            node.insert_input(j % (len(node.inputs) + 1), value)
        elif what == 4 and node.inputs:
            node.remove_input(j % len(node.inputs))
        elif what == 5:
            node.set_inputs((value, value))
        elif what == 6:
            graph.block.add_output(values[j % len(values)])
        elif what == 7 and node.next is not graph.block.return_node and node.output not in node.next.inputs:
            node.move_after(node.next)
    assert broken(graph) == []
    graph.build_uses()
    assert broken(graph) == []
    read = [value for each in (*graph.nodes, graph.block.return_node) for value in each.inputs]
    assert {value: read.count(value) for value in set(read)} == {value: value.use_count for value in graph.values() if value.has_uses}


def test_types_survive_copying() -> None:
    assert copy.deepcopy(TENSOR) is TENSOR
