"""`[f(v) for v in l]` and `{k: v for ...}`: an empty container and a loop that fills it."""
from __future__ import annotations

import ast

from irtool.ir import types
from irtool.ir.graph import Value
from irtool.ir.types import DictType, ListType, Type
from irtool.torchscript.annotations import type_name
from irtool.torchscript.assignment import assign
from irtool.torchscript.containers import container_hint
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.environment import Environment, Meaning
from irtool.torchscript.expressions import meaning_of, unified_elements, value_of
from irtool.torchscript.loop_statements import element, length, static_length, walkable


def comprehension(e: Emitter, node: ast.expr, hint: Type | None) -> Value:
    """A list or dict comprehension with one generator."""
    assert isinstance(node, ast.ListComp | ast.DictComp)
    generator = node.generators[0]
    hint = container_hint(hint, ListType if isinstance(node, ast.ListComp) else DictType)
    iterated = walkable(e, meaning_of(e, generator.iter), generator.iter)
    e.at(node)
    count = static_length(iterated)
    if count is not None:
        return unrolled(e, node, iterated, count, hint)
    trips = length(e, iterated, generator.iter)
    is_list = isinstance(node, ast.ListComp)
    container = e.one("prim::ListConstruct" if is_list else "prim::DictConstruct", (), hint if hint is not None else types.TENSOR)
    loop = e.node("prim::Loop", (trips, e.constant(True)), ())
    block = loop.add_block()
    with e.inside(block, Environment(e.env)):
        index = block.add_input(e.graph.fresh_id(), types.INT)
        assign(e, generator.target, element(e, iterated, index, generator.iter), node)
        if isinstance(node, ast.ListComp):
            fill_list(e, node, container, hint)
        else:
            fill_dict(e, node, container, hint)
        block.add_output(e.constant(True))
    return container


def unrolled(e: Emitter, node: ast.ListComp | ast.DictComp, iterated: Meaning, count: int, hint: Type | None) -> Value:
    """A comprehension over a tuple or modules: the elements one after the other. A list has the type of the first one."""
    generator = node.generators[0]
    values: list[Value] = []
    container = e.one("prim::DictConstruct", (), hint or types.TENSOR) if isinstance(node, ast.DictComp) else None
    for i in range(count):
        with e.inside(e.block, Environment(e.env)):
            assign(e, generator.target, element(e, iterated, e.constant(i), generator.iter, i), node)
            if isinstance(node, ast.ListComp):
                values.append(value_of(e, node.elt))
            elif container is not None:
                fill_dict(e, node, container, hint if i == 0 else container.type)
    e.at(node)
    if container is not None:
        if not count and hint is None:
            container.type = types.dict_of(types.STR, types.TENSOR)
        return container
    first = values[0].type if values else types.TENSOR
    return e.list_value(*unified_elements(e, node, values, hint.element if isinstance(hint, ListType) else first, "list"))


def fill_list(e: Emitter, node: ast.ListComp, container: Value, hint: Type | None) -> None:
    value = value_of(e, node.elt)
    e.at(node)
    if hint is None or not isinstance(hint, types.ListType):
        container.type = types.list_of(value.type)
    elif value in e.empty and not types.is_subtype(value.type, hint.element):
        e.fail(node, f"List type annotation `{type_name(hint)}` did not match the types of the given list elements, which were unified to "
                     f"{type_name(value.type)}")
    e.operator(node, "aten::append", [container, value])


def fill_dict(e: Emitter, node: ast.DictComp, container: Value, hint: Type | None) -> None:
    key, value = value_of(e, node.key), value_of(e, node.value)
    e.at(node)
    if not isinstance(hint, DictType):
        container.type = types.dict_of(key.type, value.type)
    e.operator(node, "aten::_set_item", [container, key, value])
