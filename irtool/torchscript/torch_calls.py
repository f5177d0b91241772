"""Functions and methods of torch that are no operators: `torch._check`, `torch._assert`, `torch.LongTensor(...)`, `x.type(...)`,
`slice(...)`."""
from __future__ import annotations

import ast
from collections.abc import Callable

from irtool.ir import types
from irtool.ir.constants import INT_MAX, constant, is_constant
from irtool.ir.dtypes import CODES
from irtool.ir.graph import Value
from irtool.ir.schema import parse_schema
from irtool.ir.types import Type
from irtool.torchscript.conditions import condition
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.environment import Environment, Meaning
from irtool.torchscript.meanings import Nothing, SliceValue, Special
from irtool.torchscript.python_names import CONSTRUCTORS


def constructed(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`torch.LongTensor([1, 2])`, `torch.FloatTensor(2, 3)`: a tensor of the list's numbers, or of a size without values."""
    from irtool.torchscript.calls import arguments

    positional, named = arguments(e, node)
    code = e.constant(CODES[CONSTRUCTORS[callee.name]])
    if named:
        e.fail(node, f"Legacy tensor constructor of {callee.name} takes no keyword arguments: {', '.join(named)}")
    e.at(node)
    if not positional:
        return e.operator(node, "aten::empty", [e.list_value([e.constant(0)], types.INT)], {"dtype": code})
    if all(value.type.key == "int" for value in positional):
        return e.operator(node, "aten::empty", [e.list_value(positional, types.INT)], {"dtype": code})
    if len(positional) != 1:
        e.fail(node, f"{callee.name}: multiple positional arguments that were not all integers")
    return e.operator(node, "aten::tensor", positional, {"dtype": code})


ASSERTIONS = [parse_schema(f"_assert({type} condition, str message) -> None") for type in ("bool", "Tensor")]


def asserted(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`torch._assert(condition, message)`."""
    from irtool.torchscript.calls import arguments

    match, reasons = e.resolver.choose(ASSERTIONS, *arguments(e, node))
    e.at(node)
    if match is None:
        e.refuse_call(node, "_assert", ASSERTIONS, reasons)
    holds, message = map(e.make, match.recipes)
    start, text = "AssertionError: ", constant(message) if is_constant(message) else None
    raise_unless(e, holds if holds.type.key == "bool" else e.operator(node, "aten::Bool", [holds]), lambda: (
        e.constant(start + text) if isinstance(text, str) else e.operator(node, "aten::add", [e.constant(start), message])))
    return e.none()


def raise_unless(e: Emitter, holds: Value, text: Callable[[], Value]) -> None:
    """Raise an exception with a text, which is made only then, unless the condition holds."""
    chosen = e.node("prim::If", (holds,), ())
    chosen.add_block()
    other = chosen.add_block()
    with e.inside(other, Environment(e.env)):
        e.node("prim::RaiseException", (text(), e.none()), ())


def check(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Nothing:
    """`torch._check(condition, message)`: an assertion."""
    from irtool.torchscript.statements import assertion_message

    names = [str(keyword.arg) for keyword in node.keywords]
    if not 1 <= len(node.args) + len(names) <= 2:
        e.fail(node, f"torch._check() expects 1 or 2 arguments, got {len(node.args) + len(names)}")
    parts: dict[str, ast.expr] = dict(zip(("cond", "message"), node.args, strict=False))
    for keyword in node.keywords:
        if keyword.arg not in ("cond", "message"):
            e.fail(node, f"torch._check() got unexpected keyword argument '{keyword.arg}'")
        if keyword.arg in parts:
            e.fail(node, f"torch._check() got multiple values for argument '{keyword.arg}'")
        parts[keyword.arg] = keyword.value
    if "cond" not in parts:
        e.fail(node, "torch._check() missing required argument 'cond'")
    test = condition(e, parts["cond"])
    e.at(node)
    raise_unless(e, test.as_value(e), lambda: (
        assertion_message(e, parts["message"]) if "message" in parts else e.constant("AssertionError: ")))
    return Nothing()


def converted_type(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`x.type(torch.float64)` is `x.to`, whatever the arguments."""
    from irtool.torchscript.calls import arguments

    assert callee.receiver is not None
    positional, named = arguments(e, node)
    e.at(node)
    return e.operator(node, "aten::to", [callee.receiver, *positional], named)


def called_item(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`x.__getitem__(t)`, which takes a tensor of indices only."""
    from irtool.torchscript.calls import arguments

    assert callee.receiver is not None
    positional, named = arguments(e, node)
    if len(positional) != 1 or named:
        e.fail(node, f"Unable to call __getitem__: expected exactly 1 argument, got {len(positional) + len(named)}")
    key, element = positional[0], types.optional(types.TENSOR)
    if not types.is_subtype(key.type, element):
        e.fail(node, f"Expected a list element that subtypes 'Optional[Tensor]' but got an element of type '{e.type_name(key)}'")
    e.at(node)
    return e.operator(node, "aten::index", [callee.receiver, e.list_value((key,), element)])


def slice_(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Meaning:
    """`slice(stop)`, `slice(start, stop, step)`, for subscripts. As in torch a bound that is None is the first or the last whatever the
    step, so that `[3, 4, 5][slice(None, None, -1)]` is `[3]`."""
    from irtool.torchscript.calls import arguments

    positional, named = arguments(e, node)
    if named:
        e.fail(node, "Slice does not accept any keyword arguments")
    if not 1 <= len(positional) <= 3:
        e.fail(node, f"slice expected 1 to 3 arguments, got {len(positional)}")
    start, stop, *step = positional if len(positional) > 1 else (e.none(), positional[0])
    bounds = [e.constant(absent) if value.type.key == "None" else value for value, absent in ((start, 0), (stop, INT_MAX))]
    return SliceValue([*bounds, step[0] if step and step[0].type.key != "None" else None])
