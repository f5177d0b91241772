"""`while` and `for`: prim::Loop, in which the variables that the body assigns are loop-carried.

As in torch, `for` iterates over `range`, lists, tuples (unrolled), dicts (their keys), strings, tensors, `enumerate`, `zip`.
"""
from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial

from irtool.ir import types
from irtool.ir.constants import INT_MAX
from irtool.ir.graph import Node, Value
from irtool.ir.types import DictType, ListType, TupleType, Type
from irtool.torchscript.annotations import type_name
from irtool.torchscript.assignment import assign
from irtool.torchscript.conditions import condition
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.environment import FALLS, Branch, Environment, Flow, Meaning
from irtool.torchscript.meanings import Enumeration, Range, Zip


def while_loop(e: Emitter, statement: ast.While) -> Flow:
    """`while`: the condition is compiled in front of the loop and at the end of the body. As in torch, it implies no types in the body."""
    test = condition(e, statement.test)
    e.at(statement)

    def again() -> Value:
        return condition(e, statement.test).as_value(e)

    endless = isinstance(statement.test, ast.Constant) and statement.test.value is True
    return loop(e, statement, e.constant(INT_MAX), test.as_value(e), None, statement.body, None if endless else again, "")


def for_loop(e: Emitter, statement: ast.For) -> Flow:
    """`for`; a loop over a tuple is unrolled."""
    from irtool.torchscript.expressions import meaning_of

    iterated = walkable(e, meaning_of(e, statement.iter), statement.iter)
    e.at(statement)
    count = static_length(iterated)
    if count is not None:
        return unrolled(e, statement, iterated, count)
    trips = length(e, iterated, statement.iter)

    def start(index: Value) -> None:
        assign(e, statement.target, element(e, iterated, index, statement.iter), statement)

    name = statement.target.id if isinstance(statement.target, ast.Name) else ""
    return loop(e, statement, trips, e.constant(True), start, statement.body, None, name)


def unrolled(e: Emitter, statement: ast.For, iterated: Meaning, count: int) -> Flow:
    """A loop over a tuple: its body once per element."""
    from irtool.torchscript.statements import Step, statements

    if any(isinstance(node, ast.Break | ast.Continue) for node in ast.walk(statement)):
        e.fail(statement, "Because we emit iteration over Modulelists or Tuples as unrolled loops, we do not support break or continue "
                          "inside the body of these loops", 3)
    rounds: list[ast.stmt] = []
    for i in range(count):
        rounds.append(Step(statement, partial(next_element, e, statement, iterated, i)))
        rounds += statement.body
    return statements(e, rounds)


def next_element(e: Emitter, statement: ast.For, iterated: Meaning, index: int) -> None:
    """Begin a round of an unrolled loop."""
    assign(e, statement.target, element(e, iterated, e.constant(index), statement.iter, index), statement)


# ---------------------------------------------------------------- iterables
def static_length(iterated: Meaning) -> int | None:
    """The number of rounds, if it is known and elements may differ in type: of a tuple, or of a zip with a tuple."""
    if isinstance(iterated, Value):
        return len(iterated.type.elements) if isinstance(iterated.type, TupleType) else None
    if isinstance(iterated, Zip):
        counts = [count for part in iterated.parts if part is not None and (count := static_length(part)) is not None]
        return min(counts) if counts else None
    return None


def length(e: Emitter, iterated: Meaning, node: ast.expr) -> Value:
    """The largest number of rounds."""
    if isinstance(iterated, Range):
        if iterated.start is None:
            return iterated.stop
        assert iterated.step is not None
        return e.operator(node, "aten::__range_length", [iterated.start, iterated.stop, iterated.step])
    if isinstance(iterated, Zip):
        lengths = [length(e, part, node) for part in iterated.parts if part is not None]
        if len(lengths) == 1 and len(iterated.parts) == 1:
            return lengths[0]
        return e.operator(node, "prim::min", [e.list_value([e.constant(INT_MAX), *lengths], types.INT)])
    value = e.as_value(iterated, node)
    if isinstance(value.type, ListType | DictType | types.TensorType) or value.type.key == "str":
        return e.operator(node, "aten::len", [value])
    e.fail(node, f"'{e.type_name(value)}' object is not iterable")


def element(e: Emitter, iterated: Meaning, index: Value, node: ast.expr, known: int | None = None) -> Meaning:
    """The element of round number `index`."""
    if isinstance(iterated, Range):
        if iterated.start is None:
            return index
        assert iterated.step is not None
        return e.operator(node, "aten::__derive_index", [index, iterated.start, iterated.step])
    if isinstance(iterated, Zip):
        parts = [counter(e, iterated, index, node) if part is None else e.as_value(element(e, part, index, node, known), node)
                 for part in iterated.parts]
        return e.tuple_value(parts)
    value = e.as_value(iterated, node)
    if isinstance(value.type, TupleType):
        assert known is not None
        return e.unpacked(value)[known]
    if isinstance(value.type, types.TensorType):
        return e.operator(node, "aten::select", [value, e.constant(0), index])
    return e.operator(node, "aten::__getitem__", [value, index])


def counter(e: Emitter, iterated: Zip, index: Value, node: ast.expr) -> Value:
    """The number that enumerate adds to an element."""
    return index if iterated.start is None else e.operator(node, "aten::__derive_index", [index, iterated.start, e.constant(1)])


def walkable(e: Emitter, iterated: Meaning, node: ast.expr) -> Meaning:
    """The value over whose positions a `for` iterates: for a dict, the list of its keys."""
    if isinstance(iterated, Enumeration):
        from irtool.torchscript.classes import members_listed

        return members_listed(e, iterated)
    if isinstance(iterated, Value) and isinstance(iterated.type, DictType):
        return e.operator(node, "aten::keys", [iterated])
    return iterated


# ---------------------------------------------------------------- the loop itself
def loop(e: Emitter, statement: ast.stmt, trips: Value, first: Value, start: Callable[[Value], None] | None, body: Sequence[ast.stmt],
         again: Callable[[], Value] | None, index_name: str) -> Flow:
    """prim::Loop around statements; `start` assigns the loop's variables, `again` compiles the condition of the next round."""
    from irtool.torchscript.branches import RESULT
    from irtool.torchscript.statements import statements

    carried = [name for name in assigned_names(statement) if isinstance(e.local(name), Value)]
    initial = [value for name in carried if isinstance(value := e.local(name), Value)]
    outside = [value.type for value in initial]
    node = e.node("prim::Loop", [trips, first, *initial], ())
    inner = Branch(node.add_block(), Environment(e.env), e.env)
    with e.inside(inner.block, inner.env):
        index = inner.block.add_input(e.numbered(index_name) if index_name else e.graph.fresh_id(), types.INT)
        for name, value, type in zip(carried, initial, outside, strict=True):
            seen = inner.block.add_input(e.numbered(name), type)
            if value in e.inferred:
                e.inferred.add(seen)
            inner.env.set(name, seen)
        inner.env = Environment(inner.env)      # assignments of the body are checked against loop-carried values
        e.env = inner.env
        if start is not None:
            start(index)
        e.loops += 1
        flow = statements(e, body)
        e.loops -= 1
        e.at(statement)
        going = next_condition(e, flow, again)
        inner.block.add_output(going)
        finals = [inner.env.find(name) for name in carried]
        for name, final, type in zip(carried, finals, outside, strict=True):
            if isinstance(final, Value) and not types.is_subtype(final.type, type):     # deleted, and assigned again
                e.fail(statement, f"Variable '{name}' previously had type {type_name(type)} but is now being assigned to a value of type "
                                  f"{e.type_name(final)}")
            inner.block.add_output(e.as_value(final, statement) if final is not None else e.uninitialized(type))
    for name, type in zip(carried, outside, strict=True):
        after = node.add_output(e.graph.fresh_name(name), type)
        if e.env.find(name) is not None:        # the body did not delete it
            e.env.set(name, after)
    if flow.returned is False or flow.returned is None:
        return FALLS
    result = inner.env.find(RESULT)
    assert isinstance(result, Value)
    returned = flow.returned if isinstance(flow.returned, Value) else e.constant(True)
    seen_returned = carry(e, node, e.constant(False), returned, types.BOOL)
    e.env.set(RESULT, carry(e, node, uninitialized_before(e, node, result.type), result, result.type))
    going_on = e.operator(statement, "aten::__not__", [seen_returned]) if e.loops else False
    return Flow(seen_returned, going_on, seen_returned)


def uninitialized_before(e: Emitter, node: Node, type: Type) -> Value:
    """A value that is never read, in front of the loop."""
    e.build.before(node)
    try:
        return e.uninitialized(type)
    finally:
        e.build.at_end(e.block)


def carry(e: Emitter, node: Node, initial: Value, final: Value, type: Type) -> Value:
    """Add a loop-carried value to a finished loop."""
    node.add_input(initial)
    node.blocks[0].add_input(e.graph.fresh_id(), type)
    node.blocks[0].add_output(final)
    return node.add_output(e.graph.fresh_id(), type)


def next_condition(e: Emitter, flow: Flow, again: Callable[[], Value] | None) -> Value:
    """Is there another round?"""
    if flow.go is False:
        return e.constant(False)
    if not isinstance(flow.go, Value):
        return again() if again is not None else e.constant(True)
    if again is None:
        return flow.go
    node = e.node("prim::If", (flow.go,), ())
    block = node.add_block()
    with e.inside(block, Environment(e.env)):
        block.add_output(again())
    node.add_block().add_output(e.constant(False))
    return node.add_output(e.graph.fresh_id(), types.BOOL)


def assigned_names(statement: ast.stmt) -> list[str]:
    """The names that a loop's body (and its target) may assign, in order; those of nested functions and comprehensions are theirs."""
    names: dict[str, None] = {}
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            names[node.id] = None
        if not isinstance(node, ast.FunctionDef | ast.ListComp | ast.DictComp | ast.Lambda):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))
    return list(names)
