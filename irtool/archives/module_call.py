"""A call of a module: `forward`, with the archive's hooks before and after it."""
from __future__ import annotations

from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.graph import Graph, Value
from irtool.ir.types import TupleType, Type, tuple_of
from irtool.torchscript.class_definitions import ClassDefinition
from irtool.torchscript.library import Library

CALL = "__call__"
"""The name among the module's methods of a call of the module itself."""


def graph_of_call(library: Library, definition: ClassDefinition) -> Graph:
    """A graph that calls a module: hooks before it may replace the arguments, hooks after it the result. Raises Error."""
    forward = library.method(definition.type, "forward")
    before, behind = (definition.lists.get(f"__forward_{which}__", []) for which in ("pre_hooks", "hooks"))
    if not before and not behind:
        return forward
    graph = Graph(forward.dialect, "forward")
    graph.source = forward.source
    build = Builder(graph)
    instance, *arguments = [graph.block.add_input(value.name, value.type) for value in forward.inputs]

    def called(name: str, *operands: Value) -> Value:
        (output,) = library.method(definition.type, name).outputs
        return build.node("prim::CallMethod", (instance, *operands), {"name": Attribute.of(name)}, [output.type]).output

    def packed() -> Value:
        return build.node("prim::TupleConstruct", arguments, output_types=[tuple_of([value.type for value in arguments])]).output

    for name in before:
        value = called(name, packed())
        if isinstance(value.type, TupleType):
            arguments = list(build.node("prim::TupleUnpack", (value,), output_types=value.type.elements).outputs)
        elif not is_none(value.type):
            arguments = [value]
    result = called("forward", *arguments)
    for name in behind:
        value = called(name, packed(), result)
        result = result if is_none(value.type) else value
    graph.block.set_outputs([result])
    return graph


def is_none(type: Type) -> bool:
    """Is the type that of None?"""
    return str(type.key) in ("None", "NoneType")
