"""`torch.jit.fork` and `wait`, `torch.jit._awaitable` and its kin: nodes that own the graph of the function."""
from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.graph import Value
from irtool.ir.types import AwaitType, Type
from irtool.torchscript.annotations import type_name
from irtool.torchscript.class_definitions import ClassDefinition
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.meanings import Builtin, Called, ClosureValue, Method, Overloads, Special, Structure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.torchscript.calls import Callee


def fork(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`torch.jit.fork(function, arguments...)`: `prim::fork`, whose result is a Future of the function's result. Awaitables are Awaits."""
    from irtool.torchscript.calls import arguments, call_meaning, called_instance
    from irtool.torchscript.expressions import meaning_of
    from irtool.torchscript.front import finish

    if not node.args:
        e.fail(node, f"Expected at least one argument to {callee.name}()")
    called = meaning_of(e, node.args[0])
    if isinstance(called, ClosureValue):
        return fork_closure(e, node, callee, called)
    if isinstance(called, Value):
        called = called_instance(e, node, called)
    if not isinstance(called, Builtin | Called | ClassDefinition | Method | Overloads | Special | Structure):
        e.fail(node, f"cannot call {called.what}")
    rest = ast.copy_location(ast.Call(func=node.args[0], args=node.args[1:], keywords=node.keywords), node)
    positional, named = arguments(e, rest)
    receiver = getattr(called, "receiver", None)
    operands = [*([receiver] if receiver is not None else []), *positional, *named.values()]
    e.at(node)
    inner = Emitter(e.function, e.compilation)
    inputs = [inner.graph.block.add_input(inner.graph.fresh_id(), value.type) for value in operands]
    inner.at(node)
    if receiver is not None:
        called, inputs = bound(called, inputs[0]), inputs[1:]
    given = dict(zip(named, inputs[len(positional):], strict=True))
    if isinstance(called, Special):
        result = special(inner, rest, called, inputs[:len(positional)], given)
    else:
        result = call_meaning(inner, rest, called, inputs[:len(positional)], given)
    inner.graph.block.add_output(result)
    finish(inner.graph)
    inner.graph.name = ""
    future = types.parse_type(f"{'Future' if callee.name == 'fork' else 'Await'}({result.type.text})")
    return e.one(f"prim::{callee.name}", operands, future, {"Subgraph": Attribute("<Graph>", inner.graph)})


def bound(method: Callee | Special, receiver: Value) -> Callee | Special:
    """The method of the value that stands for its instance in the graph of the fork."""
    if isinstance(method, Builtin):
        return Builtin(method.kind, receiver)
    if isinstance(method, Special):
        return Special(method.name, receiver)
    assert isinstance(method, Method)
    return Method(method.function, receiver)


def special(e: Emitter, node: ast.Call, called: Special, positional: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """Call a function that compiles its arguments itself, such as `len`, on values: they get names for it."""
    from irtool.torchscript.calls import SPECIALS

    for i, value in enumerate((*positional, *named.values())):
        e.env.set(f"${i}", value)
    names: list[ast.expr] = [ast.copy_location(ast.Name(f"${i}", ast.Load()), node) for i in range(len(positional) + len(named))]
    keywords = [ast.keyword(word, name) for word, name in zip(named, names[len(positional):], strict=True)]
    call = ast.Call(func=node.func, args=names[:len(positional)], keywords=keywords)
    return e.as_value(SPECIALS[called.name](e, ast.copy_location(call, node), called, None), node)


def fork_closure(e: Emitter, node: ast.Call, callee: Special, closure: ClosureValue) -> Value:
    """`fork(__forked_function)` in the code of archives: the nested function captures the values that it names."""
    pair, context = closure.pair.node.inputs
    graph = pair.node.subgraph
    assert graph is not None
    e.at(node)
    future = types.parse_type(f"{'Future' if callee.name == 'fork' else 'Await'}({graph.outputs[0].type.text})")
    return e.one(f"prim::{callee.name}", (context,), future, {"Subgraph": Attribute("<Graph>", graph)})


def wait(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`torch.jit.wait(future)`."""
    from irtool.torchscript.calls import operator

    return operator("aten::wait")(e, node, callee, hint)


def awaited(e: Emitter, node: ast.Call, callee: Special, hint: Type | None) -> Value:
    """`torch.jit._awaitable_wait(awaitable)`, and `torch.jit._awaitable_nowait(value)`, which makes one."""
    from irtool.torchscript.expressions import value_of

    if len(node.args) != 1 or node.keywords:
        e.fail(node, f"{callee.name}() expected exactly 1 argument")
    value = value_of(e, node.args[0])
    e.at(node)
    if callee.name == "awaitable_nowait":
        return e.one("prim::awaitable_nowait", (value,), types.parse_type(f"Await({value.type.text})"))
    if not isinstance(value.type, AwaitType):
        e.fail(node, f"expected an awaitable, got {type_name(value.type)}")
    return e.one("prim::awaitable_wait", (value,), value.type.element)
