"""Refusals of differentiation, with the line of the graph."""
from __future__ import annotations

from collections.abc import Collection, Sequence

from irtool.analysis.list_changes import Changes
from irtool.autodiff.hidden_writes import hidden_writes
from irtool.autodiff.in_place import live_nodes, writes_for_good
from irtool.autodiff.reach import changes_dict, contains_dict, is_untyped
from irtool.ir.errors import Error, PassError, UnsupportedError
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import node_arguments, schema_of
from irtool.ops.formula import refused_arguments


def at_node(graph: Graph, error: Error, node: Node) -> Error:
    """The error, at the node's line."""
    if error.diagnostics and not isinstance(error, UnsupportedError):
        return error
    if not error.diagnostics and graph.source is not None and node.line:
        error.diagnostics = [graph.source.marked(node.line, error.message)]
    return error


def refuse_omitted(graph: Graph, doing: str) -> None:
    """Raises PassError, at the reader, for a value that the text of the graph omits."""
    for node in (*graph.walk(), graph.block.return_node):
        omitted = next((value for value in node.inputs if value.node.kind == "prim::Omitted"), None)
        if omitted is not None:
            raise at_node(graph, PassError(f"%{omitted.name} is left out of the text, which says '...': there is nothing to {doing}"), node)


def refuse_untyped(graph: Graph, needs: Collection[Value], values: Sequence[Value], node: Node) -> None:
    """Raises UnsupportedError, at the node, for a value of type Any that needs a gradient: the gradient's type is unknown."""
    value = next((each for each in values if each in needs and is_untyped(each.type)), None)
    if value is not None:
        raise at_node(graph, UnsupportedError(f"the gradient of %{value.name} : {value.type} is not supported", code="E0501"), node)


def refuse_shared(graph: Graph, needs: Collection[Value], changes: Changes) -> None:
    """Raises UnsupportedError, at the node, for a list that changes and may have aliases."""
    for value, node in changes.shared.items():
        if value in needs:
            raise at_node(graph, UnsupportedError(f"the gradient of %{value.name}, a list that changes, is not supported if "
                                                  "something else contains the list too", code="E0501"), node)


def refuse_writes(graph: Graph, needs: set[Value]) -> None:
    """Raises UnsupportedError, at the node, for a write that the sweep cannot follow."""
    gives_dict = any(value in needs and contains_dict(value.type) for value in graph.outputs)
    for node in live_nodes(graph):
        if gives_dict and changes_dict(node) and node.inputs[0] in needs:
            raise at_node(graph, UnsupportedError(f"the gradient of {node.kind}, which changes a dict, is not supported yet", code="E0501"),
                          node)
        if writes_for_good(node) and node.outputs[0] in needs or node.kind == "prim::SetAttr" and node.inputs[1] in needs:
            error = UnsupportedError(f"the gradient of {node.kind}, which writes into its operand, is not supported yet", code="E0501")
            raise at_node(graph, error, node)
    for node in hidden_writes(graph, needs):
        raise at_node(graph, UnsupportedError(f"the gradient of {node.kind}, which writes into memory that has another name, "
                                              "is not supported yet", code="E0501"), node)


def refused_inputs(graph: Graph) -> dict[int, str]:
    """Position of each input of the graph that an operator reads as an argument for which it has no gradient (the running mean of
    batch_norm, say) -> the words in which its gradient is refused."""
    places = {value: place for place, value in enumerate(graph.inputs)}
    found: dict[int, str] = {}
    for node in graph.walk():
        schema = schema_of(node)
        refused = refused_arguments(schema.name) if schema is not None else {}
        if schema is not None and refused:
            for place, operand in enumerate(node_arguments(node, schema)):
                if place in refused and isinstance(operand, Value) and operand in places:
                    found.setdefault(places[operand], refused[place])
    return found
