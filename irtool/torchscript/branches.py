"""The names after an `if`: which have a value, and of which type.

A branch that returns or raises says nothing about names. One that breaks or continues does, in torch as here: a name needs a value in it
too, and what its condition rules out is not ruled out afterwards.
"""
from __future__ import annotations

import ast
from dataclasses import dataclass, field

from irtool.ir import types
from irtool.ir.graph import Node, Value
from irtool.ir.types import OptionalType, Type, UnionType
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.environment import THROWS, Branch, Flow

RESULT = "$result"
"""The variable that contains the returned value."""


def join(e: Emitter, at: ast.AST, node: Node, first: Branch, second: Branch) -> Flow:
    """Make the results of an `if`: the variables that either branch assigned, and how control leaves it."""
    names = dict.fromkeys([*first.assigned(), *second.assigned()])
    for name in names:
        join_variable(e, at, node, name, first, second)
    for branch in (first, second):
        for name, why in branch.undefined().items():
            if name not in names:
                e.env.errors.setdefault(name, why)
    if first.flow.throws and second.flow.throws:
        return THROWS
    parts = [join_flag(e, node, a, b) for a, b in (
        (first.flow.skip, second.flow.skip), (first.flow.go, second.flow.go), (first.flow.returned, second.flow.returned))]
    return Flow(*parts)


def join_flag(e: Emitter, node: Node, a: Value | bool | None, b: Value | bool | None) -> Value | bool | None:
    """One part of the flow after an `if`; known if both branches agree."""
    if a is None or b is None:
        known = b if a is None else a
        if not isinstance(known, Value):
            return known
    if isinstance(a, bool) and a is b:
        return a
    values = [part if isinstance(part, Value) else e.constant(bool(part)) for part in (a, b)]
    return add_result(e, node, values[0], values[1], types.BOOL, e.graph.fresh_id())


def add_result(e: Emitter, node: Node, a: Value, b: Value, type: Type, name: str) -> Value:
    """Add a result to an If."""
    node.blocks[0].add_output(a)
    node.blocks[1].add_output(b)
    return node.add_output(name, type)


def join_variable(e: Emitter, at: ast.AST, node: Node, name: str, first: Branch, second: Branch) -> None:
    """One variable after an `if`."""
    a, b = first.env.find(name), second.env.find(name)
    if a is b:
        if isinstance(a, Value) and e.env.find(name) is not a:      # both branches assign the same value from outside, such as a constant
            e.env.set(name, a)
        return
    if a is None and not first.flow.exits or b is None and not second.flow.exits:
        if name == RESULT:
            known = a if isinstance(a, Value) else b
            assert isinstance(known, Value)
            a, b = (a, missing(e, second, known)) if b is None else (missing(e, first, known), b)
        else:
            e.env.errors[name] = f"{name} is not defined in the {'true' if a is None else 'false'} branch", at
            return
    if a is None and b is None or first.flow.exits and second.flow.exits and not matters_outside(e, name, first, second):
        return
    if a is None or b is None:
        known = b if a is None else a
        if not isinstance(known, Value):
            return
        a, b = (a, missing(e, second, known)) if b is None else (missing(e, first, known), b)
    if not isinstance(a, Value) or not isinstance(b, Value):
        e.env.errors[name] = f"{name} is not a first-class value in both branches of the if", at
        return
    a, b = replaced_where_left(e, name, first, second, a, b)
    type = unified(e, name, a, b)
    if type is None:
        message = (f"Type mismatch: {name} is set to type {e.type_name(a)} in the true branch and type {e.type_name(b)} in the false "
                   "branch")
        if e.env.find(name) is not None:
            e.fail(at, message)
        e.env.errors[name] = message, at
        return
    joined = add_result(e, node, a, b, type, e.graph.fresh_id() if name == RESULT else e.graph.fresh_name(name))
    if a in e.inferred and b in e.inferred:
        e.inferred.add(joined)
    e.env.set(name, joined)


def matters_outside(e: Emitter, name: str, first: Branch, second: Branch) -> bool:
    """If both branches leave, only the result matters, and variables from outside the loop that continues or ends."""
    if name == RESULT:
        return True
    jumps = any(branch.flow.returned is not True and not branch.flow.throws for branch in (first, second))
    return jumps and e.env.find(name) is not None


def replaced_where_left(e: Emitter, name: str, first: Branch, second: Branch, a: Value, b: Value) -> tuple[Value, Value]:
    """Replace the value of a branch that leaves the function or raises, so that its type does not constrain the other branch."""
    if name != RESULT:
        for branch, other in ((first, b), (second, a)):
            gone = branch.flow.throws or branch.flow.exits and branch.flow.returned is True
            if gone and not (first.flow.exits and second.flow.exits):
                unused = missing(e, branch, other)
                a, b = (unused, b) if branch is first else (a, unused)
    return a, b


def missing(e: Emitter, branch: Branch, like: Value) -> Value:
    """A value that is never read, at the end of a branch."""
    with e.inside(branch.block, branch.env):
        return e.uninitialized(like.type)


def unified(e: Emitter, name: str, a: Value, b: Value) -> Type | None:
    """The type of a variable that is `a` in one branch and `b` in the other."""
    outside = e.env.find(name)
    declared = outside.type if isinstance(outside, Value) else None
    if isinstance(declared, UnionType | OptionalType) and types.is_subtype(a.type, declared) and types.is_subtype(b.type, declared):
        joined = types.join(a.type, b.type)
        return joined if joined is not None else declared
    return types.join(a.type, b.type)


# ---------------------------------------------------------------- branches that break or continue
@dataclass
class Jump:
    """What a branch that breaks or continues leaves of the names of the statements after the `if`."""

    errors: dict[str, tuple[str, ast.AST]] = field(default_factory=dict)
    """Names that have no value: the reason, and the `if`."""
    widened: dict[str, tuple[Value, Type]] = field(default_factory=dict)
    """Names that have a less exact type than in the branch that goes on: the value from outside, and that type."""


def jump_of(e: Emitter, at: ast.AST, first: Branch, second: Branch) -> Jump | None:
    """The names of a branch that goes on as the other one, which breaks or continues, leaves them; None if none does."""
    if first.flow.jumps == second.flow.jumps or (second if first.flow.jumps else first).flow.exits:
        return None
    jump = Jump()
    for name in dict.fromkeys([*first.assigned(), *second.assigned()]):
        a, b = first.env.find(name), second.env.find(name)
        if a is b or name == RESULT:
            continue
        if a is None or b is None:
            jump.errors[name] = f"{name} is not defined in the {'true' if a is None else 'false'} branch", at
        elif isinstance(a, Value) and isinstance(b, Value):
            stays, outside = b if first.flow.jumps else a, e.env.find(name)
            type = unified(e, name, a, b)
            if type is None:
                jump.errors[name] = (f"Type mismatch: {name} is set to type {e.type_name(a)} in the true branch and type {e.type_name(b)} "
                                     "in the false branch"), at
            elif isinstance(outside, Value) and not types.same(type, stays.type):
                jump.widened[name] = outside, type
    return jump


def names_after(e: Emitter, jump: Jump | None) -> None:
    """Give names the meanings that a branch which breaks or continues leaves them."""
    if jump is None:
        return
    for name, why in jump.errors.items():
        e.env.names.pop(name, None)
        e.env.errors[name] = why
    for name, (outside, type) in jump.widened.items():
        value = e.env.find(name)
        if isinstance(value, Value) and not types.same(value.type, type):
            is_refined = value.node.kind == "prim::unchecked_cast" and value.node.inputs[0] is outside and types.same(outside.type, type)
            e.env.set(name, outside if is_refined else e.cast(value, type))
