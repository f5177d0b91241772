"""Assignments: names, tuples, subscripts; augmented assignment; `del`."""
from __future__ import annotations

import ast
from collections.abc import Sequence

from irtool.ir import types
from irtool.ir.graph import Value
from irtool.ir.python_operators import BY_SYNTAX
from irtool.ir.types import ListType, TupleType, Type
from irtool.torchscript.annotations import type_name
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.environment import Meaning
from irtool.torchscript.expressions import binary, meaning_of, value_of
from irtool.torchscript.instances import definition_of, load_attribute, missing_attribute, special_method, store_attribute
from irtool.torchscript.subscripts import add_in_place, delete_item, store_item


def assign(e: Emitter, target: ast.expr, meaning: Meaning, statement: ast.AST, declared: Type | None = None) -> None:
    """Assign a value to a target."""
    if isinstance(target, ast.Name):
        set_variable(e, target.id, meaning, target, declared)
    elif isinstance(target, ast.Tuple):
        unpack(e, target.elts, e.as_value(meaning, statement), target)
    elif isinstance(target, ast.Subscript):
        e.at(statement)
        store_item(e, target, e.as_value(meaning, statement))
    elif isinstance(target, ast.Attribute):
        holder = meaning_of(e, target.value)
        definition = definition_of(e, holder.type) if isinstance(holder, Value) else None
        if isinstance(holder, Value) and definition is not None:
            store_attribute(e, target, holder, e.as_value(meaning, statement), definition)
            return
        what = e.type_name(holder) if isinstance(holder, Value) else holder.what
        e.fail(target, f"Tried to set an attribute: {target.attr} on a non-class: {what}")
    elif isinstance(target, ast.Starred):
        e.fail(target, "Starred assignment target must be in a list or tuple")
    else:
        e.fail(target, "unexpected expression on left-hand side of assignment")


def set_variable(e: Emitter, name: str, meaning: Meaning, node: ast.AST, declared: Type | None = None) -> None:
    """Assign to a variable. A variable of an outer frame keeps its type, else: `Variable 'y' previously had type int but ...`."""
    if name.startswith("__jit"):
        e.fail(node, "names of variables used in JIT-ed functions can't start with __jit")
    outside = e.env.find_outside(name)
    if outside is not None:
        if declared is not None:
            e.fail(node, f"Attempting to declare and annotate the type of variable '{name}' that is already defined in an outer block")
        if not isinstance(meaning, Value):
            what = meaning.what
            e.fail(node, f"Cannot re-assign '{name}' to a value of type {what} because {name} is not a first-class value.  Only "
                         "reassignments to first-class values are allowed")
        if not isinstance(outside, Value):
            e.fail(node, f"Cannot re-assign '{name}' because it has type {outside.what} and {name} is not a first-class value.  Only "
                         "reassignments to first-class values are allowed")
        meaning = checked(e, name, meaning, outside, node)
    if isinstance(meaning, Value):
        e.empty.discard(meaning)
        if declared is not None:
            meaning = as_declared(e, name, meaning, declared, node)
        e.name_value(meaning, name)
    e.env.set(name, meaning)


def checked(e: Emitter, name: str, value: Value, outside: Value, node: ast.AST) -> Value:
    """The value, converted to the type that the variable has outside, be it more exact than an annotation declared. Raises ParseError if
    it has another type."""
    wanted = outside.type
    value = e.converted(value, wanted)
    if not types.is_subtype(value.type, wanted):
        message = (f"Variable '{name}' previously had type {type_name(wanted)} but is now being assigned to a value of type "
                   f"{e.type_name(value)}")
        if isinstance(wanted, ListType) and isinstance(value.type, ListType):
            message += ("\nEmpty lists default to List[Tensor]. Add a variable annotation to the assignment to create an empty list of "
                        "another type (torch.jit.annotate(List[T, []]) where T is the type of elements in the list for Python 2)")
        e.fail(node, message)
    return value


def as_declared(e: Emitter, name: str, value: Value, declared: Type, node: ast.AST) -> Value:
    """The value with the type that the variable's annotation declares."""
    if not isinstance(value.type, TupleType):
        value = e.converted(value, declared, implicit=False)
    if not types.is_subtype(value.type, declared):
        e.fail(node, f"Variable '{name}' is annotated with type {type_name(declared)} but is being assigned to a value of type "
                     f"{e.type_name(value)}")
    return value if types.same(value.type, declared) or isinstance(declared, types.TensorType) else widened(e, value, declared)


def widened(e: Emitter, value: Value, type: Type) -> Value:
    """The value with a wider type."""
    if value.type.key == "None":
        return e.constant(None, type)
    return e.cast(value, type)


def unpack(e: Emitter, targets: Sequence[ast.expr], value: Value, node: ast.AST) -> None:
    """`a, (b, *c) = value`; a list must have as many elements as there are targets."""
    starred = [i for i, target in enumerate(targets) if isinstance(target, ast.Starred)]
    if starred and len(targets) == 1:
        e.fail(node, "A Starred expression may only appear on the lhs within the presence of another non-starred expression")
    if len(starred) > 1:
        e.fail(node, "Only one starred expression is allowed on the lhs")
    e.at(node)
    if isinstance(value.type, TupleType):
        parts = e.unpacked(value)
    elif isinstance(value.type, ListType):
        if starred:
            e.fail(node, "cannot statically infer the expected size of a list in this context")
        parts = list(e.node("prim::ListUnpack", (value,), [value.type.element] * len(targets)).outputs)
    else:
        e.fail(node, f"{e.type_name(value)} cannot be used as a tuple")
    after = len(targets) - starred[0] - 1 if starred else 0
    if not starred and len(parts) != len(targets):
        e.fail(node, f"need {len(targets)} values to unpack but found only {len(parts)}" if len(parts) < len(targets)
               else f"too many values to unpack: need {len(targets)} but found {len(parts)}")
    if starred and len(parts) < len(targets) - 1:
        e.fail(node, f"need at least {len(targets) - 1} values to unpack, but found only {len(parts)}")
    for i, target in enumerate(targets):
        if starred and i == starred[0]:
            assert isinstance(target, ast.Starred)
            assign(e, target.value, e.tuple_value(parts[i:len(parts) - after]), node)
        else:
            assign(e, target, parts[i if not starred or i < starred[0] else len(parts) - (len(targets) - i)], node)


def augmented(e: Emitter, statement: ast.AugAssign) -> None:
    """`x += v`: in place for tensors and lists, else `x = x + v`."""
    target, op = statement.target, type(statement.op)
    if op in (ast.FloorDiv, ast.MatMult):
        e.fail(statement, f"unsupported kind of augmented assignment: {op.__name__}")
    if isinstance(target, ast.Subscript):
        add_in_place(e, target, statement)
        return
    if isinstance(target, ast.Attribute):
        add_to_attribute(e, target, statement)
        return
    if not isinstance(target, ast.Name):
        e.fail(target, "left-hand side of augmented assignment to module parameters/buffers can only be a variable or a subscript")
    load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
    held = value_of(e, load)
    value = value_of(e, statement.value)
    e.at(statement)
    set_variable(e, target.id, combined(e, statement, held, value), target)


def add_to_attribute(e: Emitter, target: ast.Attribute, statement: ast.AugAssign) -> None:
    """`instance.x += v`: the attribute is read, changed, and assigned."""
    holder = value_of(e, target.value)
    definition = definition_of(e, holder.type)
    if definition is None:
        e.fail(target, f"Tried to set an attribute: {target.attr} on a non-class: {e.type_name(holder)}")
    load = ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    held = load_attribute(e, load, holder, definition)
    if held is None:
        missing_attribute(e, load, load.attr, holder.type)
    value = value_of(e, statement.value)
    e.at(statement)
    store_attribute(e, target, holder, combined(e, statement, e.as_value(held, load), value), definition)


def combined(e: Emitter, statement: ast.AugAssign, held: Value, value: Value) -> Value:
    """The result of an augmented assignment to a variable that has the value `held`."""
    op = type(statement.op)
    changed = augmented_instance(e, statement, held, value)
    if changed is not None:
        return changed
    if isinstance(held.type, types.TensorType) or isinstance(held.type, ListType) and op in (ast.Add, ast.Mult):
        return e.operator(statement, augmented_kind(op), [held, value])
    return combined_anew(e, statement, held, value)


def combined_anew(e: Emitter, statement: ast.AugAssign, held: Value, value: Value) -> Value:
    """The same where `held` itself stays as it is. `%=` is C's remainder."""
    op = type(statement.op)
    if op is ast.Mod:
        return e.operator(statement, "aten::fmod", [held, value])
    if op is ast.Add and isinstance(held.type, TupleType):
        return e.operator(statement, "aten::add", [held, value])
    return binary(e, statement, op, held, value)


NOT_IN_PLACE = {ast.BitOr: "aten::bitwise_or", ast.BitAnd: "aten::bitwise_and", ast.BitXor: "aten::bitwise_xor", ast.Pow: "aten::pow"}
"""Augmented assignments that TorchScript, other than Python, makes by an operator that gives a new tensor."""


def augmented_kind(op: type[ast.operator]) -> str:
    """The kind of an augmented assignment of tensors and lists. That of `%=` is C's remainder, not Python's."""
    if op is ast.Mod:
        return "aten::fmod_"
    kind = NOT_IN_PLACE.get(op)
    if kind is not None:
        return kind
    kind = BY_SYNTAX[op].kind
    return kind.replace("::__", "::__i") if kind[-1] == "_" else f"{kind}_"


def augmented_instance(e: Emitter, statement: ast.AugAssign, held: Value, value: Value) -> Value | None:
    """The result of `__iadd__` and its kin, if the class has such a method."""
    definition = definition_of(e, held.type)
    name = f"__i{BY_SYNTAX[type(statement.op)].name}__"
    return special_method(e, statement, name, held, [value]) if definition is not None and name in definition.methods else None


def delete(e: Emitter, statement: ast.Delete) -> None:
    """`del x`, `del l[i]`, `del d[k]`."""
    for target in statement.targets:
        if isinstance(target, ast.Subscript):
            e.at(statement)
            delete_item(e, target)
        elif isinstance(target, ast.Name):
            if not e.env.delete(target.id):
                e.fail(target, f"undefined value {target.id}", code="E0604")
        else:
            e.fail(statement, "del statements are only supported for deleting list and dict items and variables")
