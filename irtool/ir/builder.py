"""The builder, with which passes and front ends make nodes.

    build = Builder(graph).before(node)
    total = build.call("aten::add", a, b, alpha=1)      # alpha is an operand or attribute, depending on the graph's dialect
    two = build.constant(2)

Nodes are inserted at the insertion point, one after the other. Values get new ids as names.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import irtool.ir.types as types
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.constants import NOT_CONSTANT, constant
from irtool.ir.errors import Error
from irtool.ir.graph import NO_ATTRIBUTES, Block, Graph, Node, Value
from irtool.ir.schema import Argument, Schema, is_tensor_like, match_types, schemas, substitute, takes, takes_leniently
from irtool.ir.types import ListType, OptionalType, TensorType, Type, TypeVar

if TYPE_CHECKING:
    from irtool.ir.dialect import Dialect

NO_SCALARS: Mapping[str, Attribute] = {"scalars": Attribute("")}
"""The attributes of a Python operator without scalars in front of its operands."""
NOTHING: dict[str, object] = {"bool": False, "int": 0, "float": 0.0, "str": ""}
"""Type -> a constant for a value that is never read."""


class Builder:
    """Makes nodes in a graph at an insertion point, at first the end of the graph."""

    __slots__ = ("graph", "dialect", "_next", "_numbers", "tail", "line")

    def __init__(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise Error(f"Builder: expected a Graph, got {type(graph).__name__}")
        self.graph = graph
        self.dialect: Dialect = graph.dialect
        self._next: Node = graph.block.return_node
        self._numbers: dict[tuple[object, ...], tuple[Mapping[str, Attribute], tuple[Type]]] = {}    # the attributes and types of constants
        self.tail = ""
        """Scope and source comment of new nodes; empty by default."""
        self.line = 0
        """The line of new nodes in the text of the graph's `source`; 0: none."""

    def another(self) -> Builder:
        """A builder for another place of the graph, whose nodes have the same scope, source comment and line."""
        build = Builder(self.graph)
        build.tail, build.line = self.tail, self.line
        return build

    def __repr__(self) -> str:
        return f"<Builder in {self.graph!r}>"

    # -- where
    @property
    def block(self) -> Block:
        """The block of the insertion point."""
        return self._next.owner_block

    def at_end(self, block: Block) -> Builder:
        """Insert nodes at the end of `block`."""
        self._next = block.return_node
        return self

    def at_start(self, block: Block) -> Builder:
        """Insert nodes in front of the present nodes of `block`."""
        self._next = block.return_node.next
        return self

    def before(self, node: Node) -> Builder:
        """Insert nodes in front of `node`."""
        self._next = node
        return self

    def after(self, node: Node) -> Builder:
        """Insert nodes after `node`, the first one nearest to it."""
        self._next = node.next
        return self

    # -- what
    def node(self, kind: str, inputs: Iterable[Value] = (), attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
             output_types: Sequence[Type] = ()) -> Node:
        """Make a node of exactly this kind, operands and attributes, and insert it."""
        node = Node(kind, inputs, NO_SCALARS if kind[:1] == "^" and not attributes else attributes)
        node.outputs = tuple([Value(self.graph.fresh_id(), type, node) for type in output_types])
        node.tail, node.line = self.tail, self.line
        return node.insert_before(self._next)

    def constant(self, value: object, type: Type | None = None) -> Value:
        """A `prim::Constant` of a Python value: None, bool, int, float, complex, str, a list or tuple of them, a TensorLiteral.

        type: needed if the value does not determine it (an empty list, an optional, an int that is a device). A number or text of another
        class (IntEnum) is that of its base class.
        """
        dialect = self.dialect
        value = plain_constant(value)
        if value is None:
            if dialect.attribute_arguments:
                return self.node(dialect.none_kind, (), NO_ATTRIBUTES, (self._spelled(types.TENSOR),)).output
            kind = dialect.none_kind if type is None or type.key == "None" else "prim::Constant"
            return self.node(kind, (), NO_ATTRIBUTES, (self._spelled(type or types.NONE),)).output
        # texts of 2018 have numbers where a type says so, else tensors
        is_tensor = type is None or type.key not in ("int", "float", "bool", "complex")
        type = type or type_of(value)
        kind = "prim::Constant" if dialect.qualified_kinds else "Constant"
        if dialect.attribute_arguments and is_tensor and isinstance(value, (bool, int, float, complex)):
            return self.node(kind, (), {"value": Attribute.argument(value, types.TENSOR, dialect)}, (self._spelled(types.TENSOR),)).output
        if value.__class__ not in (int, bool):
            return self.node(kind, (), {"value": Attribute.of(value, dialect, type)}, (self._spelled(type),)).output
        key = value.__class__, value, type.key
        spelled = self._numbers.get(key)
        if spelled is None:
            spelled = self._numbers[key] = {"value": Attribute.of(value, dialect, type)}, (self._spelled(type),)
        return self.node(kind, (), *spelled).output

    def nothing(self, type: Type) -> Value:
        """A value of a type that is never read, for places that need one: an undefined tensor, 0, an empty list."""
        if type.key in NOTHING:
            return self.constant(NOTHING[type.key])
        if isinstance(type, ListType):
            return self.node("prim::ListConstruct", output_types=(type,)).output
        kind = self.dialect.undefined_kind if isinstance(type, TensorType) else "prim::Uninitialized"
        return self.node(kind, output_types=(type,)).output

    def call(self, kind: str, *arguments: object, type: Type | None = None, **named: object) -> Value:
        """The result of a new node of an operator with one result; see `call_node`."""
        node = self.call_node(kind, *arguments, types=None if type is None else (type,), **named)
        if len(node.outputs) != 1:
            raise Error(f"{kind} has {len(node.outputs)} results, expected one")
        return node.outputs[0]

    def call_node(self, kind: str, *arguments: object, types: Sequence[Type] | None = None, **named: object) -> Node:
        """Make a node of an operator. Arguments are Values or Python values, by position or name; others have their defaults.

        Numbers and lists become constants in front of the node, or attributes if the dialect writes them so. types: of the results; by
        default those of the schema. Raises Error if no overload fits.
        """
        if not isinstance(kind, str):
            raise Error(f"Builder: expected a kind such as 'aten::add', got {type(kind).__name__}")
        schema, bound = self._choose(kind, arguments, named)
        if not self.dialect.qualified_kinds:
            kind = kind.partition("::")[2]
        inputs: list[Value] = []
        attributes: dict[str, Attribute] = {}
        has_attributes = self.dialect.attribute_arguments and is_about_tensors(schema)
        for argument, value in zip(schema.arguments, bound, strict=True):
            if has_attributes:
                self._give_attribute(argument, value, inputs, attributes)
            else:
                inputs.append(value if isinstance(value, Value) else self._operand(value, argument))
        if types is None:
            operand_types = [value.type if isinstance(value, Value) else None for value in bound]
            types = [substitute(result.type, match_types(schema, operand_types)) for result in schema.returns]
        return self.node(kind, inputs, attributes or NO_ATTRIBUTES, [self._spelled(t) for t in types])

    def construct_list(self, values: Sequence[Value], element: Type) -> Value:
        """`prim::ListConstruct`."""
        return self.node("prim::ListConstruct", values, NO_ATTRIBUTES, (self._spelled(types.list_of(element)),)).output

    def construct_tuple(self, values: Sequence[Value]) -> Value:
        """`prim::TupleConstruct`."""
        return self.node("prim::TupleConstruct", values, NO_ATTRIBUTES, (types.tuple_of([v.type for v in values]),)).output

    # -- how
    def _spelled(self, type: Type) -> Type:
        return types.spell(type, self.dialect)

    def _choose(self, kind: str, arguments: Sequence[object], named: Mapping[str, object]) -> tuple[Schema, list[object]]:
        candidates = schemas(kind)
        for lenient in (False, True):
            for schema in candidates:
                bound = _bind(schema, arguments, named, lenient)
                if bound is not None:
                    return schema, bound
        shown = ", ".join([*map(_show, arguments), *(f"{name}={_show(value)}" for name, value in named.items())])
        raise Error(f"no overload of {kind} takes ({shown})"
                    + "".join(f"\n  {schema}" for schema in candidates) if candidates else f"no operator is called {kind}")

    def _operand(self, value: object, argument: Argument) -> Value:
        type = argument.type
        if value is None:
            return self.constant(None)
        if isinstance(type, OptionalType):
            type = type.element
        if isinstance(type, ListType) and isinstance(value, (list, tuple)):
            if any(isinstance(each, Value) for each in value) or not value:
                element = type.element.element if isinstance(type.element, OptionalType) else type.element
                items = [each if isinstance(each, Value) else self.constant(each, element if each is not None else None) for each in value]
                return self.construct_list(items, type.element)
            return self.constant(list(value), type)
        if type.key in ("Scalar", types.ANY.key) or is_tensor_like(type):
            return self.constant(value)
        return self.constant(value, type)

    def _give_attribute(self, argument: Argument, value: object, inputs: list[Value], attributes: dict[str, Attribute]) -> None:
        """The form of 2018: tensors (those of a list one after the other) and computed numbers are operands; other arguments are
        attributes."""
        type = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
        if is_tensor_like(type) or argument.name == "other" and isinstance(value, Value):
            inputs.append(value if isinstance(value, Value) else self.constant(value))
            return
        if isinstance(type, ListType) and isinstance(value, (list, tuple)) and any(isinstance(each, Value) for each in value):
            element = type.element.element if isinstance(type.element, OptionalType) else type.element
            if is_tensor_like(element):
                inputs.extend(each if isinstance(each, Value) else self.constant(each) for each in value)
            else:
                inputs.append(self._operand(value, argument))
            return
        if isinstance(value, Value):
            literal = constant(value)
            if literal is NOT_CONSTANT:
                inputs.append(value)
                return
            value = literal.item() if isinstance(literal, TensorLiteral) else literal
        if value is not None:
            attributes[argument.name] = Attribute.argument(value, type, self.dialect)
        elif not argument.has_default:
            inputs.append(self.constant(None))


def is_about_tensors(schema: Schema) -> bool:
    """Does the operator take or return tensors? Only such operators have attributes for arguments, in texts of 2018: torch got operators
    on numbers, lists and strings when attributes were being replaced."""
    for each in (*schema.arguments, *schema.returns):
        type = each.type.element if isinstance(each.type, OptionalType) else each.type
        if isinstance(type, ListType):
            type = type.element.element if isinstance(type.element, OptionalType) else type.element
        if is_tensor_like(type):
            return True
    return False


def type_of(value: object) -> Type:
    """The IR type of a Python value. Raises Error if it has none, or does not determine one (an empty list)."""
    simple = _PYTHON_TYPES.get(value.__class__)
    if simple is not None:
        return simple
    if isinstance(value, list) and value:
        return types.list_of(type_of(value[0]))
    if isinstance(value, tuple):
        return types.tuple_of([type_of(each) for each in value])
    if isinstance(value, dict) and value:
        key, held = next(iter(value.items()))
        return types.dict_of(type_of(key), type_of(held))
    raise Error(f"the type of the constant {value!r} must be given")


def type_of_data(value: Sequence[object]) -> Type:
    """The type of a list of numbers, or of lists of them, as `aten::tensor` takes them: floats where there are none."""
    first = value[0] if value else 0.0
    return types.list_of(type_of_data(first) if isinstance(first, list | tuple) else type_of(first))


def plain_constant(value: object) -> object:
    """A number or text of a subclass (IntEnum, StrEnum) as one of the base class, in lists, tuples and dicts too; any other unchanged."""
    if value.__class__ in _PYTHON_TYPES:
        return value
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, complex):
        return complex(value.real, value.imag)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, dict):
        return {plain_constant(key): plain_constant(each) for key, each in value.items()}
    if value.__class__ in (list, tuple) and any(each.__class__ not in _PYTHON_TYPES for each in value):
        return value.__class__([plain_constant(each) for each in value])
    return value


_PYTHON_TYPES: dict[type, Type] = {bool: types.BOOL, int: types.INT, float: types.FLOAT, complex: types.COMPLEX, str: types.STR,
                                   type(None): types.NONE, TensorLiteral: types.TENSOR}


def _bind(schema: Schema, arguments: Sequence[object], named: Mapping[str, object], lenient: bool) -> list[object] | None:
    """The value of every argument of a schema; None if the arguments do not fit."""
    positional = sum(not argument.keyword_only for argument in schema.arguments)
    is_surplus = len(arguments) > positional and not lenient or len(arguments) > len(schema.arguments)
    if is_surplus or any(name not in schema.positions for name in named):
        return None
    out: list[object] = []
    variables: dict[str, Type] = {}
    for i, argument in enumerate(schema.arguments):
        if i < len(arguments):
            if argument.name in named:
                return None
            value = arguments[i]
        elif argument.name in named:
            value = named[argument.name]
        elif argument.has_default:
            out.append(argument.default)
            continue
        else:
            return None
        if not fits_value(argument, value, variables, lenient):
            return None
        out.append(value)
    return out


def _show(value: object) -> str:
    return f"%{value.name} : {value.type}" if isinstance(value, Value) else repr(value)


_SIMPLE_PYTHON = {"int": (int,), "float": (float,), "bool": (bool,), "complex": (complex,), "str": (str,), "Device": (str,),
                  "Scalar": (int, float, bool, complex)}


def fits_value(argument: Argument, value: object, variables: dict[str, Type], lenient: bool) -> bool:
    """Does a Value or Python value fit an argument? lenient: also a number for a tensor, and an int for a float."""
    formal = argument.type
    if isinstance(value, Value):
        return takes(formal, value.type, variables) or lenient and takes_leniently(argument, value.type)
    if value is None:
        return isinstance(formal, OptionalType) or formal.key in ("None", "Any")
    return _fits_python(formal.element if isinstance(formal, OptionalType) else formal, value, variables, lenient)


def _fits_python(formal: Type, value: object, variables: dict[str, Type], lenient: bool) -> bool:
    simple = _SIMPLE_PYTHON.get(formal.key)
    if simple is not None:
        if isinstance(value, bool) and bool not in simple:
            return lenient and formal.key in ("int", "float", "complex")
        return isinstance(value, simple) or lenient and formal.key in ("float", "complex") and isinstance(value, (int, float))
    if isinstance(formal, ListType):
            return isinstance(value, (list, tuple)) and all(
            takes(formal.element, each.type, variables) if isinstance(each, Value)
            else each is None and isinstance(formal.element, OptionalType) or _fits_python(formal.element, each, variables, lenient)
            for each in value)
    if is_tensor_like(formal):
        return lenient and isinstance(value, (int, float, bool, complex)) or value.__class__.__name__ == "TensorLiteral"
    return formal.key == "Any" or isinstance(formal, TypeVar)
