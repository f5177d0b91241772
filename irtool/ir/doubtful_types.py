"""Declared types that differ from what the operators say. The verifier accepts them, since torch has printed such graphs.

A pass that makes new nodes of such values may make an invalid graph. Then the declared types are wrong, not the pass.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, SPECIAL_PRIMS
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.module import Module
from irtool.ir.schema import has_variables, is_tensor_like, match_types, schema_of, substitute
from irtool.ir.source import Diagnostic
from irtool.ir.structure_kinds import FORK_KINDS, UNDEFINED_KINDS
from irtool.ir.types import TENSOR, OptionalType, Type
from irtool.ir.verify import diagnostic_at
from irtool.ir.verify_types import STRICT_DIALECTS, flows, is_called, is_number_beside_tensor


def doubtful(module: Module) -> list[Diagnostic]:
    """One diagnostic per doubtful node, in the order of the graphs."""
    return [diagnostic_at(graph.source, node, problem, "E0209") for graph in module.graphs for node, problem in problems(graph)]


def problems(graph: Graph) -> Iterator[tuple[Node, str]]:
    """Nodes whose types are not those that their operators say, each with the types that the operator says."""
    for node in graph.walk() if graph.dialect.name in STRICT_DIALECTS else ():
        problem = problem_of(node)
        if problem:
            yield node, problem


def _gives_none(node: Node) -> bool:
    return node.kind == "prim::Print" or node.kind in CONSTANT_KINDS and not node.attributes


def _may_be_none(type: Type, as_tensor: bool) -> bool:
    """May None be of a type? as_tensor: in the place of an undefined tensor, or of a list or tuple of them."""
    return type.key == "None" or isinstance(type, OptionalType) or as_tensor and (is_tensor_like(type) or bool(type.elements))


def _passed_on(node: Node) -> Iterator[tuple[Sequence[Value], Sequence[Value]]]:
    """Values that a node passes into its blocks and graphs, or out of them, each beside those that they become."""
    if node.kind in LOOP_KINDS and len(node.blocks) == 1:
        body = node.blocks[0]
        yield node.inputs[2:], body.inputs[1:]
        yield body.outputs[1:], body.inputs[1:]
        yield body.inputs[1:], node.outputs
    elif node.kind in IF_KINDS:
        for block in node.blocks:
            yield block.outputs, node.outputs
    for name, inner in node.graphs.items() if node.attributes else ():
        if is_called(node, name):
            yield node.inputs, inner.inputs
            if node.kind not in FORK_KINDS:
                yield inner.outputs, node.outputs


def _is_another(actual: Type, wanted: Type) -> bool:
    """Does a value of type `actual` not fit where a `wanted` is declared, or is one of them a number and the other a tensor?"""
    return not flows(actual, wanted) or is_number_beside_tensor(actual, wanted)


def problem_of(node: Node) -> str:
    """What is doubtful about the types of a node; empty if nothing is."""
    if node.kind in LOOP_KINDS and node.inputs and not (flows(node.inputs[0].type, TENSOR) or node.inputs[0].type.key == "int"):
        return f"the trip count of {node.kind} is an int, found %{node.inputs[0].name} : {node.inputs[0].type}"
    for given, places in _passed_on(node):
        for value, place in zip(given, places, strict=False):
            if _is_another(value.type, place.type):
                return f"{node.kind} passes on %{value.name} : {value.type} as %{place.name} : {place.type}"
    gives = "an undefined tensor" if node.kind in UNDEFINED_KINDS else "None" if _gives_none(node) else ""
    if gives:
        wrong = next((each for each in node.outputs if not _may_be_none(each.type, node.kind in UNDEFINED_KINDS)), None)
        return "" if wrong is None else f"{node.kind} gives {gives}, found %{wrong.name} : {wrong.type}"
    if node.blocks or node.kind in SPECIAL_PRIMS:
        return ""
    schema = schema_of(node)
    if schema is None:
        return "" if "::" in node.kind or node.kind[:1] == "^" else f"unknown operator '{node.kind}'"
    if node.attributes or len(schema.arguments) < len(node.inputs) or len(schema.returns) != len(node.outputs):
        return ""
    variables = match_types(schema, [value.type for value in node.inputs])
    for verb, values, declared in (("takes", node.inputs, schema.arguments), ("gives", node.outputs, schema.returns)):
        for value, argument in zip(values, declared, strict=False):
            type = substitute(argument.type, variables)
            if type.key == "Any" or has_variables(type):
                type = argument.type
                if not type.elements or type.elements[0].key == value.type.key or value.type.elements:
                    continue
            if not (flows(value.type, type) and (verb == "takes" or value.type.key == type.key or flows(type, value.type))) \
                    or verb == "gives" and {value.type.key, type.key} == {"bool", "int"} \
                    or argument.alias is not None and argument.alias.is_write and is_number_beside_tensor(value.type, type):
                return f"{node.kind} {verb} {type}, found %{value.name} : {value.type}"
    return ""
