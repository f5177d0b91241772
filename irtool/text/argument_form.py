"""Arguments as attributes and as operands: `aten::add[alpha={1}](%a, %b)` of early 2018, `aten::add(%a, %b, %1)` since.

The schema assigns operands and attributes to arguments. A node that fits no schema, or whose other form would be read differently, stays.
"""
from __future__ import annotations

from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.builder import Builder, is_about_tensors
from irtool.ir.constants import CONSTANT_KINDS, NOT_CONSTANT, constant
from irtool.ir.dialect import Dialect
from irtool.ir.errors import Error
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import Argument, Literal, Schema, is_tensor_like, node_arguments, resolve, schema_of
from irtool.ir.types import BOOL, COMPLEX, FLOAT, INT, NUMBER, TENSOR, ListType, OptionalType, Type, list_of, spell


def _plain(type: Type) -> Type:
    return type.element if isinstance(type, OptionalType) else type


def _is_tensor_list(type: Type) -> bool:
    return isinstance(type, ListType) and is_tensor_like(_plain(type.element))


# ---------------------------------------------------------------- operands -> attributes
def arguments_to_attributes(graph: Graph, node: Node, target: Dialect) -> bool:
    """Make constant operands that are no tensors attributes, and write lists of tensors out as several operands. Returns whether the
    node changed."""
    if not node.kind.startswith("aten::") or node.owner is None:
        return False
    schema = schema_of(node)
    if schema is None or schema.is_vararg or schema.is_varret or not is_about_tensors(schema):
        return False
    try:
        arguments = node_arguments(node, schema)
    except ValueError:
        return False
    inputs: list[Value] = []
    attributes = {name: attribute for name, attribute in node.attributes.items() if name not in schema.positions}
    left_out: list[Value] = []
    for argument, value in zip(schema.arguments, arguments, strict=False):
        if not _give(argument, value, inputs, attributes, left_out, target):
            return False
    changed = _take(node, schema, arguments, tuple(inputs), attributes)
    return _unpack_results(node) or changed


ATTRIBUTE_KEYS = frozenset(f"{word}{suffix}" for word in ("int", "float", "bool", "complex", "Scalar", "str", "Device")
                           for suffix in ("", "[]"))
"""Types of arguments that an attribute can contain."""


def _give(argument: Argument, value: Value | Literal | list[Value], inputs: list[Value], attributes: dict[str, Attribute],
          left_out: list[Value], target: Dialect) -> bool:
    """Add one argument to the operands or attributes. Returns False if the node cannot be written in this form."""
    if isinstance(value, list):
        inputs.extend(value)
        return True
    if isinstance(value, Literal):
        if value.attribute is not None:
            attributes[argument.name] = value.attribute
        return True
    literal = _constant(value)
    type = _plain(argument.type)
    if literal is None and argument.has_default and argument.default is None and not is_tensor_like(type):
        left_out.append(value)
        return True
    if _is_tensor_list(argument.type) and value.node.kind == "prim::ListConstruct" and value.node.inputs and _is_fixed(value):
        inputs.extend(value.node.inputs)
    elif literal is None or literal is NOT_CONSTANT or type.key not in ATTRIBUTE_KEYS and not is_tensor_like(type) \
            or isinstance(literal, TensorLiteral) and (is_tensor_like(type) or not literal.text.startswith("{")):
        if left_out:
            return False        # it would be read as the omitted argument
        inputs.append(value)
    else:
        item = literal.item() if isinstance(literal, TensorLiteral) else literal
        attributes[argument.name] = _attribute(item, type, target)
    return True


def _attribute(value: object, type: Type, target: Dialect) -> Attribute:
    if type.key == "Device" and isinstance(value, str) and target.device_constants == "list":
        kind, _, index = value.partition(":")
        if kind in ("cpu", "cuda") and (not index or index.isdecimal()):
            return Attribute(f"[{('cpu', 'cuda').index(kind)}, {index or -1}]")
    return Attribute.argument(value, type, target)


def _constant(value: Value) -> object:
    """The Python value of a constant, or of a list made of constants; else NOT_CONSTANT."""
    if value.node.kind == "prim::ListConstruct" and not _is_tensor_list(value.type) and _is_fixed(value):
        parts = [constant(each) for each in value.node.inputs]
        return NOT_CONSTANT if any(part is NOT_CONSTANT or part is None for part in parts) else parts
    return constant(value)


def _is_fixed(value: Value) -> bool:
    """Is a list only read, by operators that keep no reference to it?"""
    for use in value.uses:
        schema = schema_of(use.user)
        if schema is None or use.slot >= len(schema.arguments) or schema.arguments[use.slot].alias is not None:
            return False
    return True


def _take(node: Node, schema: Schema, arguments: list[Value | Literal | list[Value]], inputs: tuple[Value, ...],
          attributes: dict[str, Attribute]) -> bool:
    """Set the node's new operands and attributes, unless they would be read as other arguments, or as those of another overload."""
    if inputs == node.inputs:
        return False
    again = resolve(node.kind, [value.type for value in inputs], [name for name in attributes if name in schema.positions])
    if again is None or list(again.positions) != list(schema.positions):
        return False
    if any(not _reads_alike(again.arguments[again.positions[name]], argument) for name in attributes
           if (argument := _argument(schema, name)) is not None):
        return False
    try:
        read = node_arguments(Node(node.kind, inputs, attributes), again)
    except ValueError:
        return False
    if any(isinstance(value, Value) and isinstance(reread, (Value, list)) and reread is not value and reread != list(value.node.inputs)
           for value, reread in zip(arguments, read, strict=False)):
        return False
    dropped = [value for value in node.inputs if value not in inputs]
    node.set_inputs(inputs)
    node.attributes = attributes
    for value in dropped:
        _drop_unused(value)
    return True


def _argument(schema: Schema, name: str) -> Argument | None:
    return schema.arguments[schema.positions[name]] if name in schema.positions else None


def _reads_alike(other: Argument, argument: Argument) -> bool:
    """Has an attribute the same meaning for both overloads? `{2}` is the same number for `Tensor other` and for `Scalar other`."""
    wanted, actual = _plain(argument.type), _plain(other.type)
    return wanted.key == actual.key or wanted.key == NUMBER.key and is_tensor_like(actual)


def _drop_unused(value: Value) -> None:
    """Remove a constant, or a list of constants, that has no user any more."""
    node = value.node
    if node.kind not in CONSTANT_KINDS and node.kind != "prim::ListConstruct":
        return
    if node.owner is None or any(each.has_uses for each in node.outputs):
        return
    parts = node.inputs
    node.destroy()
    for part in parts:
        if part.node.kind in CONSTANT_KINDS:
            _drop_unused(part)


def _unpack_results(node: Node) -> bool:
    """Make the elements of `aten::chunk` its results, as in 2018; today its result is a list, which `prim::ListUnpack` takes apart."""
    if len(node.outputs) != 1 or not _is_tensor_list(node.outputs[0].type):
        return False
    uses = node.outputs[0].uses
    if len(uses) != 1 or uses[0].user.kind != "prim::ListUnpack" or uses[0].user.owner is not node.owner:
        return False
    unpack = uses[0].user
    if len(unpack.outputs) < 2:     # one result would be read as the list
        return False
    for old in unpack.outputs:
        old.replace_all_uses_with(node.add_output(old.name, old.type))
    unpack.destroy()
    node.remove_output(0)
    return True


# ---------------------------------------------------------------- attributes -> operands
def arguments_to_operands(graph: Graph, node: Node) -> bool:
    """Make attributes, and omitted arguments with defaults, operands: constants in front of the node. Returns whether the node changed.

    The graph's dialect is already the new one.
    """
    if not node.kind.startswith("aten::") or node.owner is None:
        return False
    schema = schema_of(node)
    if schema is None or schema.is_vararg:
        return False
    others = {name: attribute for name, attribute in node.attributes.items() if name not in schema.positions}
    if len(others) == len(node.attributes) and len(node.inputs) == len(schema.arguments):
        return False        # `aten::warn[warn_id=0](%1, %2)`: an attribute that is no argument stays
    try:
        arguments = node_arguments(node, schema)
    except ValueError:
        return False
    if not all(_has_operand(argument, value) for argument, value in zip(schema.arguments, arguments, strict=False)):
        return False
    build = Builder(graph).before(node)
    numbers = _takes_numbers(node, schema, arguments)
    inputs: list[Value] = []
    for argument, value in zip(schema.arguments, arguments, strict=False):
        if isinstance(value, Literal):
            inputs.append(_operand(build, argument, value.value, numbers))
        elif isinstance(value, list):
            inputs.append(build.construct_list(value, _element(argument.type)))
        else:
            inputs.append(value)
    node.set_inputs(inputs)
    node.attributes = others
    pack_results(graph, node, schema)
    return True


def _has_operand(argument: Argument, value: Value | Literal | list[Value]) -> bool:
    """Can a constant be the operand? Not a word, if a number is declared."""
    if not isinstance(value, Literal):
        return True
    key = _plain(argument.type).key
    return not isinstance(value.value, str) or key in ("str", "Device", "Any")


def _element(type: Type) -> Type:
    plain = _plain(type)
    return plain.element if isinstance(plain, ListType) else TENSOR


def _takes_numbers(node: Node, schema: Schema, arguments: list[Value | Literal | list[Value]]) -> bool:
    """May `{2}` for a tensor be the number 2 (`aten::mul.Scalar`)? It was a number when it was written."""
    types: list[Type] = []
    has_number = False
    for argument, value in zip(schema.arguments, arguments, strict=False):
        number = _number(argument, value.value) if isinstance(value, Literal) else None
        if number is not None:
            has_number = True
        types.append(_type_of(number) if number is not None else argument.type if not isinstance(value, Value) else value.type)
    if not has_number:
        return False
    other = resolve(node.kind, types)
    return other is not None and any(argument.type.key == NUMBER.key for argument in other.arguments)


def _number(argument: Argument, value: object) -> object | None:
    if is_tensor_like(_plain(argument.type)) and isinstance(value, TensorLiteral) and value.text.startswith("{"):
        return value.item()
    return None


def _type_of(value: object) -> Type:
    if isinstance(value, bool):
        return BOOL
    return INT if isinstance(value, int) else COMPLEX if isinstance(value, complex) else FLOAT


def _operand(build: Builder, argument: Argument, value: object, numbers: bool) -> Value:
    if value is None:
        return build.constant(None)
    number = _number(argument, value)
    if numbers and number is not None:
        return build.constant(number)
    type = _plain(argument.type)
    if isinstance(type, ListType) and not isinstance(value, (list, tuple)) and isinstance(value, (bool, int, float)):
        value = [value] * max(argument.fixed_size, 1)       # a single number stands for all elements
    if type.key in (NUMBER.key, "Any") or is_tensor_like(type):
        return build.constant(value)
    try:
        return build.constant(list(value) if isinstance(value, tuple) else value, type)
    except Error:
        return build.constant(value)


def pack_results(graph: Graph, node: Node, schema: Schema) -> None:
    """Replace several results by the list that the schema declares, and take the list apart."""
    if len(schema.returns) != 1 or not _is_tensor_list(schema.returns[0].type):
        return
    if not node.outputs or len(node.outputs) == 1 and isinstance(node.outputs[0].type, ListType):
        return
    old = node.outputs
    packed = spell(list_of(TENSOR), graph.dialect)
    whole = node.add_output(graph.fresh_id(), packed)
    unpack = Node("prim::ListUnpack", (whole,)).insert_after(node)
    unpack.tail = node.tail
    for value in old:
        new = unpack.add_output(value.name, value.type)
        value.replace_all_uses_with(new)
    for _ in old:
        node.remove_output(0)
