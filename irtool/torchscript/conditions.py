"""Conditions: short circuits, `is None`, `isinstance`, and what they imply for the types of variables.

If a condition is known while compiling (`x is None` of an int), the branch that it excludes is not compiled.
"""
from __future__ import annotations

import ast

from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.constants import constant, is_constant
from irtool.ir.graph import Block, Value
from irtool.ir.types import DictType, ListType, OptionalType, TupleType, Type, UnionType
from irtool.torchscript.annotations import annotation, dotted, union
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.environment import Environment
from irtool.torchscript.instances import special_method
from irtool.torchscript.meanings import Special

Refinements = dict[str, Type]


class Condition:
    """A bool, with the types that variables have if it is true, and if it is false."""

    __slots__ = ("value", "known", "when_true", "when_false")

    def __init__(self, value: Value | None, known: bool | None = None, when_true: Refinements | None = None,
                 when_false: Refinements | None = None) -> None:
        self.value = value
        self.known = known
        self.when_true = when_true or {}
        self.when_false = when_false or {}

    def as_value(self, e: Emitter) -> Value:
        """The condition as a value of the graph."""
        return self.value if self.value is not None else e.constant(bool(self.known))


def condition(e: Emitter, node: ast.expr) -> Condition:
    """Compile an expression as a condition."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return negated(e, node)
    if isinstance(node, ast.BoolOp):
        return short_circuit(e, node.values, isinstance(node.op, ast.And), node)
    if isinstance(node, ast.Compare):
        if len(node.ops) > 1:
            return short_circuit(e, chain(node), True, node)
        if isinstance(node.ops[0], ast.Is | ast.IsNot):
            return none_check(e, node)
    if isinstance(node, ast.Call) and means_isinstance(e, node.func):
        return instance_check(e, node)
    return Condition(*as_bool(e, node))


def means_isinstance(e: Emitter, node: ast.expr) -> bool:
    """Is the function `isinstance`, or `torch.jit.isinstance`?"""
    from irtool.torchscript.expressions import meaning_of

    path = dotted(node)
    if path is None or not path.endswith("isinstance") or e.local(path.partition(".")[0]) is not None:
        return False
    meaning = meaning_of(e, node)
    return isinstance(meaning, Special) and meaning.name == "isinstance"


def as_bool(e: Emitter, node: ast.expr) -> tuple[Value, bool | None]:
    """The truth of any value, as a value and, if it is constant, as a bool."""
    from irtool.torchscript.expressions import value_of

    value = value_of(e, node)
    of_instance = special_method(e, node, "__bool__", value)
    if of_instance is not None:
        return of_instance, None
    if value.type.key != "bool":
        if isinstance(value.type, ListType | DictType) or value.type.key == "str":
            return e.operator(node, "aten::gt", [e.operator(node, "aten::len", [value]), e.constant(0)]), None
        if value.type.key not in ("int", "float", "Scalar") and not isinstance(value.type, types.TensorType):
            e.fail(node, f"Could not cast value of type {e.type_name(value)} to bool")
        e.at(node)
        return e.operator(node, "aten::Bool", [value]), None
    known = constant(value) if is_constant(value) and isinstance(node, ast.Constant | ast.Call) else None
    return value, known if isinstance(known, bool) else None


def negated(e: Emitter, node: ast.UnaryOp) -> Condition:
    """`not c`."""
    inner = condition(e, node.operand)
    e.at(node)
    if inner.known is not None:
        return Condition(e.constant(not inner.known), not inner.known, inner.when_false, inner.when_true)
    return Condition(e.operator(node, "aten::__not__", [inner.as_value(e)]), None, inner.when_false, inner.when_true)


def chain(node: ast.Compare) -> list[ast.expr]:
    """`a < b < c` as its pairs."""
    operands = [node.left, *node.comparators]
    pairs: list[ast.expr] = []
    for i, op in enumerate(node.ops):
        pair = ast.Compare(left=operands[i], ops=[op], comparators=[operands[i + 1]])
        pairs.append(ast.copy_location(pair, node))
    return pairs


def short_circuit(e: Emitter, parts: list[ast.expr], is_and: bool, node: ast.expr) -> Condition:
    """`a and b and c` is `(a and b) and c`, as in torch: what both a and b imply of a variable may be too much for one type."""
    first = condition(e, parts[0])
    for part in parts[1:]:
        first = with_next(e, first, part, is_and, node)
    return first


def with_next(e: Emitter, first: Condition, part: ast.expr, is_and: bool, node: ast.expr) -> Condition:
    """`a and b`: If(a) {b} {False}; `a or b`: If(a) {True} {b}. An operand that a known first operand makes irrelevant is compiled for the
    errors in it only."""
    refinements = first.when_true if is_and else first.when_false
    if first.known is not None and first.known != is_and:
        rest = e.discard(lambda block: in_block(e, block, refinements, part))[0]
        return both(first.value, first.known, first, rest, is_and)
    if first.known is not None:
        rest, value = in_block(e, e.block, refinements, part)
        return both(value, rest.known, first, rest, is_and)
    e.at(node)
    chosen = e.node("prim::If", (first.as_value(e),), ())
    blocks = chosen.add_block(), chosen.add_block()
    evaluated, skipped = blocks if is_and else reversed(blocks)
    rest, value = in_block(e, evaluated, refinements, part)
    evaluated.add_output(value)
    with e.inside(skipped, e.env):
        skipped.add_output(e.constant(not is_and))
    result = chosen.add_output(e.graph.fresh_id(), types.BOOL)
    return both(result, rest.known if rest.known is not is_and else None, first, rest, is_and)


def both(value: Value | None, known: bool | None, first: Condition, rest: Condition, is_and: bool) -> Condition:
    """`a and b` (or `a or b`) with what it implies."""
    if is_and:
        return Condition(value, known, in_both(first.when_true, rest.when_true), in_either(first.when_false, rest.when_false))
    return Condition(value, known, in_either(first.when_true, rest.when_true), in_both(first.when_false, rest.when_false))


def in_both(first: Refinements, rest: Refinements) -> Refinements:
    """The types of variables where two conditions hold. As in torch, two different types of one variable imply nothing of it."""
    return {name: type for name, type in {**first, **rest}.items() if types.same(first.get(name, type), type)}


def in_either(first: Refinements, rest: Refinements) -> Refinements:
    """The types of variables where at least one of two conditions holds."""
    return {name: type for name, type in first.items() if name in rest and types.same(rest[name], type)}


def in_block(e: Emitter, block: Block, refinements: Refinements, part: ast.expr) -> tuple[Condition, Value]:
    """Compile a condition inside a block."""
    with e.inside(block, Environment(e.env)):
        refine(e, refinements)
        compiled = condition(e, part)
        return compiled, compiled.as_value(e)


# ---------------------------------------------------------------- types
def refine(e: Emitter, refinements: Refinements) -> None:
    """Give variables these types from here on."""
    for name, type in refinements.items():
        value = e.local(name)
        if value is None and e.lookup(name) is None:        # the other branch deleted it
            e.fail(e.build_place(), f"undefined value {name}", len("def"), "E0604")
        if isinstance(value, Value) and not types.same(value.type, type) and types.is_subtype(type, value.type):
            cast = e.cast(value, type)
            e.name_value(cast, name)
            e.env.set(name, cast)


def none_check(e: Emitter, node: ast.Compare) -> Condition:
    """`x is None`, `x is not None`, and `is` between other values."""
    from irtool.torchscript.expressions import value_of

    left, right = value_of(e, node.left), value_of(e, node.comparators[0])
    negative = isinstance(node.ops[0], ast.IsNot)
    e.at(node)
    if left.type.key == "None" and right.type.key != "None":
        left, right = right, left
        name = node.comparators[0]
    else:
        name = node.left
    if right.type.key == "None":
        if left.type.key == "None":
            return Condition(e.constant(not negative), not negative)
        if not may_be_none(left.type):
            return Condition(e.constant(negative), negative)
    if left.type.key == "str" and any(isinstance(each, ast.Constant) for each in (node.left, *node.comparators)):
        # each string literal is an object of its own
        return Condition(e.constant(negative), negative)
    value = e.operator(node, "aten::__isnot__" if negative else "aten::__is__", [left, right])
    is_none: Refinements = {}
    is_something: Refinements = {}
    if right.type.key == "None" and isinstance(name, ast.Name) and any(map(is_none_literal, (node.left, *node.comparators))):
        rest = without(left.type, [types.NONE])
        if rest is not None:
            is_something[name.id] = rest
    return Condition(value, None, is_something if negative else is_none, is_none if negative else is_something)


def is_none_literal(node: ast.expr) -> bool:
    """Is it the word None? Comparing with a variable that is None implies nothing, as in torch."""
    return isinstance(node, ast.Constant) and node.value is None


def may_be_none(type: Type) -> bool:
    """Can a value of the type be None? Of `Any` not, so that `x is None` is never true there, as in torch."""
    return isinstance(type, OptionalType) or type.key == "None" or (
        isinstance(type, UnionType) and any(map(may_be_none, type.elements)))


def parts_of(type: Type) -> list[Type]:
    """The alternatives of an optional or a union."""
    if isinstance(type, OptionalType):
        return [*parts_of(type.element), types.NONE]
    return list(type.elements) if isinstance(type, UnionType) else [type]


def without(type: Type, gone: list[Type]) -> Type | None:
    """The type without these alternatives."""
    remaining = [part for part in parts_of(type) if not any(types.is_subtype(part, each) for each in gone)]
    return union(remaining) if remaining else None


def instance_check(e: Emitter, node: ast.Call) -> Condition:
    """`isinstance(x, T)`, `isinstance(x, (A, B))`: decided here if the type of x determines it, else when the graph runs."""
    from irtool.torchscript.expressions import value_of

    if len(node.args) != 2 or node.keywords:
        e.fail(node, "isinstance expected exactly 2 arguments")
    value = value_of(e, node.args[0])
    wanted = [part for each in _listed(node.args[1]) for type in _checked_types(e, each) for part in parts_of(type)]
    e.at(node)
    parts = parts_of(value.type)
    yes = [part for part in parts if any(_is_instance(part, type) for type in wanted)]
    is_number = types.NUMBER in parts and types.NUMBER not in yes
    kinds = [type for type in wanted if is_number and type.key in ("int", "float", "complex")]
    name = node.args[0].id if isinstance(node.args[0], ast.Name) else None
    unchanged = {name: value.type} if name is not None else {}
    if len(yes) == len(parts) and value.type.key != "Any":
        return Condition(e.constant(True), True, unchanged)
    if not yes and not kinds and value.type.key != "Any":
        return Condition(e.constant(False), False, {}, unchanged)
    answer = e.one("prim::isinstance", (value,), types.BOOL, {"types": Attribute.of(wanted)})
    if name is None:
        return Condition(answer)
    if value.type.key == "Any":
        return Condition(answer, None, {name: union(wanted)} if wanted else {}, unchanged)
    rest = without(value.type, yes)
    return Condition(answer, None, {name: union([*yes, *kinds])}, {name: rest} if rest is not None else {})


def _listed(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Tuple):
        return [each for element in node.elts for each in _listed(element)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_listed(node.left), *_listed(node.right)]
    return [node]


def _checked_types(e: Emitter, node: ast.expr) -> list[Type]:
    if isinstance(node, ast.Name) and node.id in ("list", "tuple"):
        return [types.parse_type(node.id)]
    if isinstance(node, ast.Call):
        e.fail(node, "Expression of type apply cannot be used in a type expression")
    return [annotation(node, e.place)]


def _is_instance(actual: Type, wanted: Type) -> bool:
    if wanted.text == "list":
        return isinstance(actual, ListType)
    if wanted.text == "tuple":
        return isinstance(actual, TupleType)
    return types.is_subtype(actual, wanted)
