"""Nested functions: each becomes a graph that takes `(context, parameters...)`."""
from __future__ import annotations

import ast

from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.meanings import ClosureValue
from irtool.torchscript.source_text import Function, fail


def closure(e: Emitter, definition: ast.FunctionDef) -> ClosureValue:
    """The pair `(prim::Closure, context)` of a nested `def`. The context contains the captured values, in order of first use."""
    from irtool.torchscript.front import declare_parameters, finish
    from irtool.torchscript.statements import function_body

    if definition.decorator_list:
        fail(e.place, definition, "decorators of nested functions aren't supported", 3)
    inner = Emitter(Function(definition, e.place, e.function.unit), e.compilation, e)
    context = inner.graph.block.add_input(inner.graph.fresh_name("context"), types.tuple_of(()))
    inner.unpack = inner.node("prim::TupleUnpack", (context,), ())
    declare_parameters(inner, inner.function)
    function_body(inner, definition.body)
    context.type = types.tuple_of([value.type for value in inner.captures])
    if not inner.captures:
        inner.unpack.destroy()
    finish(inner.graph)
    inner.graph.name = ""
    e.at(definition)
    node = e.node("prim::Closure", (), (types.NONE,), {"Subgraph": Attribute("<Graph>", inner.graph)})
    return ClosureValue(e.tuple_value([node.output, e.tuple_value(list(inner.captures))]))
