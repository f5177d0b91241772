"""Expressions: `meaning_of` compiles an expression to its meaning (a value, or an object that only the compiler knows), `value_of` to a
value."""
from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from functools import reduce

import irtool.torchscript.calls as calls
from irtool.ir import types
from irtool.ir.constants import constant, is_constant
from irtool.ir.errors import ParseError, did_you_mean
from irtool.ir.graph import Value
from irtool.ir.python_operators import BY_SYNTAX
from irtool.ir.schema import schemas
from irtool.ir.types import DictType, EnumType, ListType, NamedTupleType, OptionalType, TupleType, Type, UnionType
from irtool.torchscript.annotations import check_key
from irtool.torchscript.class_definitions import ClassDefinition
from irtool.torchscript.classes import member_constant, member_field
from irtool.torchscript.conditions import condition, refine
from irtool.torchscript.containers import container_hint
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.environment import Environment, Meaning
from irtool.torchscript.instances import (
    UNARY_METHODS,
    definition_of,
    load_attribute,
    method_of_one,
    missing_attribute,
    special_method,
    static_member,
)
from irtool.torchscript.meanings import Alias, Builtin, Enumeration, Known, Literal, Namespace, Packaged, Python, Special
from irtool.torchscript.python_names import MODULES, OPERATORS_TOO, member, members
from irtool.torchscript.source_text import unsupported
from irtool.torchscript.subscripts import load_item

PROPERTIES = {      # of a tensor
    **{name: f"prim::{name}" for name in (
        "dtype device grad data is_cuda is_cpu is_xla is_xpu is_sparse is_sparse_csr is_mkldnn is_mps is_quantized is_vulkan is_ipu "
        "is_meta is_mtia is_maia is_nested requires_grad layout name itemsize nbytes names").split()},
    "shape": "aten::size", "retains_grad": "aten::retains_grad", "is_leaf": "aten::is_leaf", "T": "aten::numpy_T", "H": "aten::matrix_H",
    "mT": "aten::mT", "mH": "aten::mH", "real": "aten::real", "imag": "aten::imag", "ndim": "aten::dim"}
CASTS = {"byte": 0, "char": 1, "short": 2, "int": 3, "long": 4, "half": 5, "float": 6, "double": 7, "bool": 11, "bfloat16": 15,
         "cfloat": 9, "cdouble": 10}
NUMBERS = ("int", "float", "complex", "Scalar", "bool")


def value_of(e: Emitter, node: ast.expr, hint: Type | None = None) -> Value:
    """Compile an expression to a value. Raises ParseError if it is no value."""
    return e.as_value(meaning_of(e, node, hint), node)


def meaning_of(e: Emitter, node: ast.expr, hint: Type | None = None) -> Meaning:
    """Compile an expression; `hint` is the expected type, for displays that do not determine their type."""
    compiler = EXPRESSIONS.get(type(node))
    if compiler is None:
        unsupported(e.place, node)
    return compiler(e, node, hint)


# ---------------------------------------------------------------- names and attributes
def name(e: Emitter, node: ast.expr, hint: Type | None) -> Meaning:
    assert isinstance(node, ast.Name)
    meaning = e.lookup(node.id)
    if meaning is None:
        why = error_of(e, node.id)
        if why is not None:
            message, where = why
            note = e.place.diagnostic(node, "used here", 0, "note")
            diagnostic = e.place.diagnostic(where, message, len("if"))
            diagnostic.notes.append(note)
            raise ParseError(message, [diagnostic], "E0604")
        if node.id in e.place.classes:
            e.fail(node, f"class {node.id} cannot be compiled: only named tuples, enumerations, exceptions and those without bases can")
        e.fail(node, f"undefined value {node.id}{did_you_mean(node.id, e.env.all_names() | set(e.function.unit.functions))}", code="E0604")
    return literal(e, meaning, node)


def error_of(e: Emitter, name: str) -> tuple[str, ast.AST] | None:
    """The reason why a name has no value here."""
    emitter: Emitter | None = e
    while emitter is not None:
        why = emitter.env.error_of(name)
        if why is not None:
            return why
        emitter = emitter.outer
    return None


def literal(e: Emitter, meaning: Meaning, node: ast.expr) -> Meaning:
    """An object that only the compiler knows, as a constant if it can be one."""
    if isinstance(meaning, Alias):
        return aliased(e, meaning)
    if isinstance(meaning, Known):
        e.at(node)
        if isinstance(meaning.value, tuple):
            return e.tuple_value([e.constant(each) for each in meaning.value])
        return e.constant(meaning.value)
    if isinstance(meaning, Literal):
        return meaning_of(e, meaning.node) if e.compilation.literals else Python(type(getattr(meaning.node, "value", None)).__name__)
    return meaning


def aliased(e: Emitter, alias: Alias) -> Meaning:
    """The meaning of an alias at the file's top level: a module, a function, a member of an enumeration. Aliases of numbers are refused."""
    before, e.env = e.env, Environment()
    try:
        meaning = meaning_of(e, alias.node)
    finally:
        e.env = before
    if isinstance(meaning, Value) and not isinstance(meaning.type, EnumType):
        is_infinity = is_constant(meaning) and constant(meaning) == math.inf        # which torch knows by its object
        return meaning if is_infinity else Python(e.type_name(meaning))
    return meaning


def attribute(e: Emitter, node: ast.expr, hint: Type | None) -> Meaning:
    assert isinstance(node, ast.Attribute)
    holder = meaning_of(e, node.value)
    e.at(node)
    if isinstance(holder, Packaged):
        return holder.library.constant(e, node) if holder.path == "CONSTANTS" else holder.library.member(f"{holder.path}.{node.attr}")
    if isinstance(holder, Namespace):
        meaning = member(holder.path, node.attr, e.place.library is not None)
        if meaning is None:
            e.fail(node, f"object has no attribute {node.attr}{did_you_mean(node.attr, members(holder.path))}", code="E0604")
        return literal(e, meaning, node)
    if isinstance(holder, Builtin) and holder.receiver is None and f"{OPERATORS_TOO.get(holder.kind)}.{node.attr}" in MODULES:
        return Namespace(f"{OPERATORS_TOO[holder.kind]}.{node.attr}")
    if isinstance(holder, Enumeration):
        if node.attr not in holder.members:
            e.fail(node, f"{holder.type}' has no attribute '{node.attr}'{did_you_mean(node.attr, holder.members)}", code="E0604")
        return member_constant(e, holder, node.attr)
    if isinstance(holder, ClassDefinition):
        return static_member(e, node, holder)
    if isinstance(holder, Python) and holder.kind in ("type", "module"):
        return Python("type")
    value = e.as_value(holder, node.value)
    meaning = value_attribute(e, node, value) or method_of_one(e, node, value)
    if meaning is None:
        if definition_of(e, value.type) is not None:
            missing_attribute(e, node, node.attr, value.type)
        near = [*PROPERTIES, *CASTS] if isinstance(value.type, types.TensorType) else []
        e.fail(node, f"'{e.type_name(value)}' object has no attribute or method '{node.attr}'.{did_you_mean(node.attr, near)}",
           code="E0604")
    return meaning


def value_attribute(e: Emitter, node: ast.Attribute, value: Value) -> Meaning | None:
    """`value.attr`: a property, a field, or a method bound to the value."""
    attr, type = node.attr, value.type
    if isinstance(type, EnumType):
        return member_field(e, node, value)
    definition = definition_of(e, type)
    if definition is not None:
        return load_attribute(e, node, value, definition)
    if isinstance(type, NamedTupleType) and attr in type.names:
        index = type.names.index(attr)
        if value.node.kind == "prim::TupleConstruct":
            return value.node.inputs[index]
        return e.one("prim::TupleIndex", (value, e.constant(index)), type.elements[index])
    if isinstance(type, types.TensorType):
        if attr in PROPERTIES:
            return e.operator(node, PROPERTIES[attr], [value])
        if attr in CASTS and attr not in ("bool", "bfloat16"):      # torch has no such methods
            return Special("tensor." + attr, value)
        if attr in ("tolist", "size", "type", "__getitem__"):
            return Special("tensor." + attr, value)
    elif type.key == "Device":
        if attr in ("type", "index"):
            return e.operator(node, f"prim::{attr}", [value])
    kind = f"aten::{attr}"
    return Builtin(kind, value) if accepts_receiver(kind, type) else None


def accepts_receiver(kind: str, type: Type) -> bool:
    """Is there an overload whose first argument may be of the type?"""
    for schema in schemas(kind):
        for formal in [argument.type for argument in schema.arguments if argument.name == "self"]:
            if types.is_subtype(type, formal) or formal.elements and formal.__class__ is type.__class__ or formal.key in ("t", "t1"):
                return True
    return False


# ---------------------------------------------------------------- operators
def binary_operation(e: Emitter, node: ast.expr, hint: Type | None) -> Value:
    assert isinstance(node, ast.BinOp)
    spine: list[ast.BinOp] = [node]         # a + b + c + ... nests on the left, possibly very deep
    while isinstance(spine[-1].left, ast.BinOp):
        spine.append(spine[-1].left)
    left = value_of(e, spine[-1].left)
    for each in reversed(spine):
        right = value_of(e, each.right)
        e.at(each)
        left = binary(e, each, type(each.op), left, right)
    return left


def binary(e: Emitter, node: ast.AST, op: type[ast.operator], left: Value, right: Value) -> Value:
    """`left op right`."""
    has_method = op not in (ast.FloorDiv, ast.MatMult)      # of which torch knows no methods
    of_instance = special_method(e, node, BY_SYNTAX[op].method, left, [right]) if has_method else None
    if of_instance is not None:
        return of_instance
    kind = BY_SYNTAX[op].kind
    if op is ast.Mod and left.type.key == "str":
        return e.one("aten::percentFormat", (left, right), types.STR)
    if op is ast.Add and isinstance(left.type, TupleType) and isinstance(right.type, TupleType):
        return e.tuple_value([*e.unpacked(left), *e.unpacked(right)])
    if op is ast.FloorDiv and isinstance(left.type, types.TensorType) and right.type.key != "bool":     # by a bool: of two ints
        kind = "aten::floor_divide"
    if op is ast.Mult and isinstance(right.type, ListType) and left.type.key == "int":
        left, right = right, left
    return e.operator(node, kind, [left, right])


OUT_OF_RANGE = "Integral constant out of range (must fit in a signed 64 bit integer)"


def is_smallest(operand: ast.expr) -> bool:
    """Is `-operand` the smallest int? Archives contain it; in Python source torch refuses it, since the sign is not part of the literal."""
    return isinstance(operand, ast.Constant) and type(operand.value) is int and operand.value == 2 ** 63


def unary_operation(e: Emitter, node: ast.expr, hint: Type | None) -> Value:
    assert isinstance(node, ast.UnaryOp)
    if isinstance(node.op, ast.Not):
        return condition(e, node).as_value(e)
    if isinstance(node.op, ast.USub) and e.place.library is not None and is_smallest(node.operand):
        e.at(node)
        return e.constant(-2 ** 63)
    value = value_of(e, node.operand)
    e.at(node)
    of_instance = special_method(e, node, UNARY_METHODS[type(node.op)], value)
    if of_instance is not None:
        return of_instance
    if isinstance(node.op, ast.Invert):
        return e.operator(node, "aten::bitwise_not", [value])
    known = constant(value) if is_constant(value) else None
    if isinstance(known, int | float | complex) and not isinstance(known, bool):
        if known == -2 ** 63 and isinstance(known, int):
            e.fail(node, OUT_OF_RANGE)
        return e.constant(-known)
    return e.operator(node, "aten::neg", [value])


def comparison(e: Emitter, node: ast.expr, hint: Type | None) -> Value:
    assert isinstance(node, ast.Compare)
    op = node.ops[0]
    if len(node.ops) > 1 or isinstance(op, ast.Is | ast.IsNot):
        return condition(e, node).as_value(e)
    left = value_of(e, node.left)
    right = value_of(e, node.comparators[0])
    e.at(node)
    if isinstance(op, ast.In | ast.NotIn):
        membership = contains(e, node, right, left)
        return e.operator(node, "aten::__not__", [membership]) if isinstance(op, ast.NotIn) else membership
    of_instance = special_method(e, node, BY_SYNTAX[type(op)].method, left, [right])
    return of_instance if of_instance is not None else e.operator(node, BY_SYNTAX[type(op)].kind, [left, right])


def contains(e: Emitter, node: ast.expr, container: Value, item: Value) -> Value:
    """`item in container`, also for strings."""
    of_instance = special_method(e, node, "__contains__", container, [item])
    if of_instance is not None:
        return of_instance
    if container.type.key == "str" and item.type.key == "str":
        position = e.operator(node, "aten::find", [container, item, e.constant(0), e.operator(node, "aten::len", [container])])
        return e.operator(node, "aten::ne", [position, e.constant(-1)])
    return e.operator(node, "aten::__contains__", [container, item])


def boolean(e: Emitter, node: ast.expr, hint: Type | None) -> Value:
    """`and`, `or`, `not` as a value."""
    return condition(e, node).as_value(e)


def conditional(e: Emitter, node: ast.expr, hint: Type | None) -> Value:
    """`a if c else b`."""
    assert isinstance(node, ast.IfExp)
    test = condition(e, node.test)
    e.at(node)
    if test.known is not None:
        refine(e, test.when_true if test.known else test.when_false)
        return value_of(e, node.body if test.known else node.orelse, hint)
    chosen = e.node("prim::If", (test.as_value(e),), ())
    values = []
    for part, refinements in ((node.body, test.when_true), (node.orelse, test.when_false)):
        block = chosen.add_block()
        with e.inside(block, Environment(e.env)):
            refine(e, refinements)
            values.append(value_of(e, part, hint))
    type = types.join(values[0].type, values[1].type)
    if type is None:
        e.fail(node, f"if-expression's true branch has type {e.type_name(values[0])} but false branch has type {e.type_name(values[1])}")
    for block, value in zip(chosen.blocks, values, strict=True):
        block.add_output(value)
    return chosen.add_output(e.graph.fresh_id(), type)


def subscript(e: Emitter, node: ast.expr, hint: Type | None) -> Meaning:
    assert isinstance(node, ast.Subscript)
    holder = meaning_of(e, node.value)
    return load_item(e, node, e.as_value(holder, node.value), hint)


# ---------------------------------------------------------------- displays
def constant_literal(e: Emitter, node: ast.expr, hint: Type | None) -> Value:
    assert isinstance(node, ast.Constant)
    e.at(node)
    if node.value is Ellipsis:
        e.fail(node, "Cannot emit expr for: (dots)")
    if isinstance(node.value, bytes):
        e.fail(node, f"Unknown Constant expression type {type(node.value).__name__}")
    if isinstance(node.value, int) and not isinstance(node.value, bool) and not -(2 ** 63) <= node.value < 2 ** 63:
        e.fail(node, OUT_OF_RANGE)
    return e.constant(node.value)


def element_hint(hint: Type | None) -> Type | None:
    """The type that the elements of a list should have."""
    hint = container_hint(hint, ListType)
    return hint.element if isinstance(hint, ListType) else None


def list_display(e: Emitter, node: ast.expr, hint: Type | None) -> Value:
    assert isinstance(node, ast.List)
    wanted = element_hint(hint)
    values = listed(e, node.elts, None)
    e.at(node)
    if not values and hint is None:
        display = e.list_value((), types.TENSOR)
        e.empty.add(display)
        return display
    return as_hinted(e, e.list_value(*unified_elements(e, node, values, wanted, "list")), hint)


def as_hinted(e: Emitter, display: Value, hint: Type | None) -> Value:
    """A list or dict that is written out, as the optional or the union that its place expects."""
    return e.cast(display, hint) if isinstance(hint, OptionalType | UnionType) and types.is_subtype(display.type, hint) else display


def listed(e: Emitter, elements: Sequence[ast.expr], wanted: Type | None) -> list[Value]:
    """The values of a display; the elements of a tuple t for `*t`."""
    values: list[Value] = []
    for element in elements:
        if isinstance(element, ast.Starred):
            held = value_of(e, element.value)
            if not isinstance(held.type, TupleType):
                e.fail(element, f"Expected a tuple for starred expression, found {e.type_name(held)}")
            values += e.unpacked(held)
        else:
            values.append(value_of(e, element, wanted))
    return values


def unified_elements(e: Emitter, node: ast.expr, values: list[Value], wanted: Type | None, what: str,
                     annotated: str = "") -> tuple[list[Value], Type]:
    """Values of one type, and the type: the wanted one, else one that fits all, else their union. `annotated`: the type of the dict."""
    if wanted is not None:
        wrong = next((value for value in values if not types.is_subtype(value.type, wanted)), None)
        if wrong is not None:
            given = calls.union([value.type for value in values])
            names = sorted(calls.type_name(each) for each in given.elements) if isinstance(given, UnionType) else []
            unified = f"Union[{', '.join(names)}]" if names else calls.type_name(given)
            if what == "list":
                e.fail(node, f"List type annotation `List[{calls.type_name(wanted)}]` did not match the types of the given list elements, "
                             f"which were unified to {unified}")
            e.fail(node, f"Type annotation was inferred to be `{annotated}`, but the type of {what} given by the dict literal is {unified}")
        return values, wanted
    if not values:
        return values, types.TENSOR
    return values, reduce(united, [value.type for value in values])


def united(a: Type, b: Type) -> Type:
    """The type of elements of two types: one that fits both, else their union; of tuples element by element."""
    if types.is_subtype(a, b) or types.is_subtype(b, a):
        return b if types.is_subtype(a, b) else a
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.elements) == len(b.elements):
        return types.tuple_of(map(united, a.elements, b.elements))
    joined = None if isinstance(a, UnionType) else types.join(a, b)
    return calls.union([a, b]) if joined is None else joined


def tuple_display(e: Emitter, node: ast.expr, hint: Type | None) -> Value:
    assert isinstance(node, ast.Tuple)
    if any(isinstance(each, ast.Starred) for each in node.elts):
        return e.tuple_value(listed(e, node.elts, None))
    values = [value_of(e, each) for each in node.elts]
    e.at(node)
    return e.tuple_value(values)


def dict_display(e: Emitter, node: ast.expr, hint: Type | None) -> Value:
    assert isinstance(node, ast.Dict)
    expected, hint = hint, container_hint(hint, DictType)
    wanted = (hint.key_type, hint.value_type) if isinstance(hint, DictType) else (None, None)
    keys: list[Value] = []
    held: list[Value] = []
    for key, value in zip(node.keys, node.values, strict=True):
        assert key is not None      # `{**d}` was refused before
        keys.append(value_of(e, key))
        held.append(value_of(e, value))
    e.at(node)
    if not keys and wanted[0] is None:
        return e.one("prim::DictConstruct", (), types.dict_of(types.STR, types.TENSOR))
    other = next((key for key in keys if not types.is_subtype(key.type, keys[0].type)), None)
    if other is not None:
        e.fail(node, f"Dict keys must contain only a single type. Expected: {e.type_name(keys[0])} but found {e.type_name(other)} instead")
    annotated = calls.type_name(hint) if hint is not None else ""
    keys, key_type = unified_elements(e, node, keys, wanted[0], "keys", annotated)
    held, value_type = unified_elements(e, node, held, wanted[1], "values", annotated)
    check_key(key_type, e.place, node)
    pairs = [each for pair in zip(keys, held, strict=True) for each in pair]
    return as_hinted(e, e.one("prim::DictConstruct", pairs, types.dict_of(key_type, value_type)), expected)


def joined_string(e: Emitter, node: ast.expr, hint: Type | None) -> Value:
    """An f-string: `aten::format` with `{}` for each value."""
    assert isinstance(node, ast.JoinedStr)
    text = ""
    values: list[Value] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            text += "{}"
            values.append(value_of(e, part.value))
        else:
            assert isinstance(part, ast.Constant)
            text += str(part.value)
    e.at(node)
    return e.one("aten::format", (e.constant(text), *values), types.STR)


def comprehension(e: Emitter, node: ast.expr, hint: Type | None) -> Value:
    from irtool.torchscript.comprehensions import comprehension as compile_comprehension

    if isinstance(node, ast.GeneratorExp):      # evaluated at once, as a list
        node = ast.copy_location(ast.ListComp(node.elt, node.generators), node)
    return compile_comprehension(e, node, hint)


def call(e: Emitter, node: ast.expr, hint: Type | None) -> Meaning:
    assert isinstance(node, ast.Call)
    return calls.call(e, node, hint)


EXPRESSIONS: dict[type[ast.expr], Callable[[Emitter, ast.expr, Type | None], Meaning]] = {
    ast.Name: name, ast.Attribute: attribute, ast.Constant: constant_literal, ast.BinOp: binary_operation, ast.UnaryOp: unary_operation,
    ast.Compare: comparison, ast.BoolOp: boolean, ast.IfExp: conditional, ast.Subscript: subscript, ast.List: list_display,
    ast.Tuple: tuple_display, ast.Dict: dict_display, ast.JoinedStr: joined_string, ast.ListComp: comprehension,
    ast.DictComp: comprehension, ast.Call: call, ast.GeneratorExp: comprehension,
}
