"""`list(...)`, `dict(...)`, `OrderedDict(...)`, `tuple(...)`: new containers made from other values."""
from __future__ import annotations

import ast

from irtool.ir import types
from irtool.ir.graph import Value
from irtool.ir.types import DictType, ListType, OptionalType, TupleType, Type, UnionType
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.meanings import Special, Sugared


def container_hint(hint: Type | None, kind: type[Type]) -> Type | None:
    """The list (or dict, or tuple) type that a place expects: the type itself, the element of an optional, or the only such type of a
    union."""
    if isinstance(hint, OptionalType):
        return container_hint(hint.element, kind)
    if isinstance(hint, UnionType):
        fitting = [each for each in hint.elements if isinstance(each, kind)]
        return fitting[0] if len(fitting) == 1 else None
    return hint if isinstance(hint, kind) else None


def iterable(e: Emitter, node: ast.expr) -> Value | Sugared:
    """The iterable that an argument means."""
    from irtool.torchscript.expressions import meaning_of
    from irtool.torchscript.loop_statements import walkable

    return walkable(e, meaning_of(e, node), node)


def list_(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`list()`, `list(x)`: a new list of the elements of x."""
    wanted = container_hint(hint, ListType)
    if len(node.args) > 1 or node.keywords:
        e.fail(node, f"list expected at most 1 argument but found {len(node.args) + len(node.keywords)}")
    if not node.args:
        return e.list_value((), wanted.element if isinstance(wanted, ListType) else types.TENSOR)
    iterated = iterable(e, node.args[0])
    e.at(node)
    if isinstance(iterated, Value):
        if isinstance(iterated.type, TupleType):
            from irtool.torchscript.expressions import unified_elements

            values = e.unpacked(iterated)
            first = values[0].type if values else types.TENSOR
            return e.list_value(*unified_elements(e, node, values, wanted.element if isinstance(wanted, ListType) else first, "list"))
        if isinstance(iterated.type, ListType) or iterated.type.key == "str":
            return e.operator(node, "aten::list", [iterated])
    from irtool.torchscript.comprehensions import comprehension

    item = ast.copy_location(ast.Name("$item", ast.Load()), node)
    target = ast.copy_location(ast.Name("$item", ast.Store()), node)
    loop = ast.ListComp(elt=item, generators=[ast.comprehension(target=target, iter=node.args[0], ifs=[], is_async=0)])
    return comprehension(e, ast.copy_location(loop, node), hint)


def dict_(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`dict()`, `dict(d)`, `dict(pairs)`, each with further pairs as keyword arguments."""
    from irtool.torchscript.expressions import dict_display, value_of

    wanted = container_hint(hint, DictType)
    if len(node.args) > 1 or any(keyword.arg is None for keyword in node.keywords):
        e.fail(node, "dict expected at most 1 argument, and others by keyword")
    keys = [ast.copy_location(ast.Constant(keyword.arg), keyword.value) for keyword in node.keywords]
    empty = not node.args or isinstance(node.args[0], ast.List | ast.Tuple) and not node.args[0].elts
    if empty or isinstance(node.args[0], ast.Dict):
        first = node.args[0] if node.args and isinstance(node.args[0], ast.Dict) else ast.Dict(keys=[], values=[])
        display = ast.Dict(keys=[*first.keys, *keys], values=[*first.values, *[keyword.value for keyword in node.keywords]])
        return dict_display(e, ast.copy_location(display, node), wanted)
    copy = copied(e, node, node.args[0], wanted)
    for key, keyword in zip(keys, node.keywords, strict=True):
        assert isinstance(copy.type, DictType)
        e.operator(node, "aten::_set_item", [copy, value_of(e, key), value_of(e, keyword.value, copy.type.value_type)])
    return copy


def ordered_dict(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`OrderedDict()`, `OrderedDict(d)`, `OrderedDict(pairs)`: as in torch, what its place expects does not determine its type."""
    if node.keywords:
        e.fail(node, "Arguments for call are not valid: OrderedDict takes no keyword arguments", code="E0609")
    return dict_(e, node, callee, None)


def copied(e: Emitter, node: ast.Call, source: ast.expr, wanted: Type | None) -> Value:
    """A new dict with the pairs of another dict, or of an iterable of pairs."""
    from irtool.torchscript.comprehensions import comprehension
    from irtool.torchscript.expressions import meaning_of

    if not isinstance(source, ast.ListComp | ast.List | ast.Tuple):
        held = meaning_of(e, source, wanted if isinstance(source, ast.DictComp | ast.Call) else None)
        e.at(node)
        if isinstance(held, Value) and isinstance(held.type, DictType):
            return e.operator(node, "aten::dict", [held])
        name = "$pairs"
        e.env.set(name, held)
        source = ast.copy_location(ast.Name(name, ast.Load()), source)
    key, value = (ast.copy_location(ast.Name(name, ast.Load()), node) for name in ("$key", "$value"))
    pair = ast.Tuple([ast.copy_location(ast.Name(name, ast.Store()), node) for name in ("$key", "$value")], ast.Store())
    generator = ast.comprehension(target=ast.copy_location(pair, node), iter=source, ifs=[], is_async=0)
    loop = ast.DictComp(key=key, value=value, generators=[generator])
    return comprehension(e, ast.copy_location(loop, node), wanted)


def tuple_(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`tuple(t)` of a tuple."""
    from irtool.torchscript.expressions import value_of

    if len(node.args) != 1 or node.keywords:
        e.fail(node, f"tuple expected exactly 1 argument but found {len(node.args) + len(node.keywords)}")
    value = value_of(e, node.args[0])
    if not isinstance(value.type, TupleType):
        e.fail(node, f"cannot statically infer the expected size of a list in this context: '{e.type_name(value)}'")
    return value
