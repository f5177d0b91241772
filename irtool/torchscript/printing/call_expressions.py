"""Nodes as expressions of TorchScript.

A form takes the printer and the node, and returns the text. It gets the texts of operands by `printer.take(values)`, called once, with all
values in the order in which Python evaluates the text.
"""
from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from irtool.ir import types
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.constants import argument_value, constant, is_constant, is_none
from irtool.ir.custom import CUSTOM_VJP
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import PARAM, Graph, Node, Value
from irtool.ir.handlers import Handlers
from irtool.ir.kinds import unknown_operator
from irtool.ir.packed import owns_gradient
from irtool.ir.schema import DEFAULT_WORDS, Argument, Literal, Schema, is_tensor_like, node_arguments, qualified, schema_of, schemas
from irtool.ir.structure_kinds import FORK_KINDS, UNDEFINED_KINDS
from irtool.ir.types import DictType, ListType, NamedTupleType, OptionalType, TupleType, Type
from irtool.ir.verify import diagnostic_at
from irtool.ir.verify_nodes import operator_problem
from irtool.ir.verify_types import STRICT_DIALECTS
from irtool.torchscript.nn_functional import WRITTEN_IN_PYTHON
from irtool.torchscript.printing.literals import joined, literal, type_key
from irtool.torchscript.python_names import TORCH_CONSTANTS
from irtool.torchscript.resolve import Resolver

Given = Value | Literal | list[Value]
Pair = tuple[Argument, Given]
NOWHERE = Node(PARAM)
"""The node that defines values of which only the type matters."""
NOTES = frozenset(("warn_id",))
"""Attributes without effect on the result."""


class Printer(Protocol):
    """What forms need of the printer of the function."""

    def take(self, values: Sequence[Value]) -> list[str]:
        """The texts of values, which the expression reads in this order."""

    def helper(self, node: Node, graph: Graph) -> str:
        """The name of the function for a graph that a node owns."""

    def annotation(self, type: Type) -> str:
        """The text of a type."""

    def fork(self, kind: str) -> str:
        """The text of a call that starts an asynchronous function: of `prim::fork` or `prim::awaitable`."""

    def call_by_name(self, name: str) -> str:
        """The text of a call of this function, without arguments."""


Form = Callable[[Printer, Node], str]


FORMS: Handlers[Form] = Handlers()
"""Kind -> its form, for kinds with a syntax of their own; all others are calls."""


def expression(printer: Printer, node: Node) -> str:
    """The text of a node without blocks. Raises UnsupportedError, which names the kind, if source cannot express it."""
    form = form_of(node.kind)
    if form is not None and not has_named_arguments(node):
        return form(printer, node)
    if node.blocks:
        refuse_unknown(node)
        raise UnsupportedError(f"{node.kind} cannot be written as TorchScript", code="E0606")
    subgraph = node.attributes.get("Subgraph")
    if subgraph is not None and isinstance(subgraph.value, Graph):
        return held_graph(printer, node, subgraph.value)
    return call(printer, node)


def has_named_arguments(node: Node) -> bool:
    """Are arguments of a node's schema written as attributes, which forms do not read?"""
    schema = schema_of(node) if node.attributes and node.kind.startswith("aten::") else None
    return schema is not None and not schema.positions.keys().isdisjoint(node.attributes)


def form_of(kind: str) -> Form | None:
    """The form of a kind with a syntax of its own; old texts leave out `prim::`."""
    return FORMS.get(kind) or (FORMS.get("prim::" + kind) if "::" not in kind else None)


def held_graph(printer: Printer, node: Node, graph: Graph) -> str:
    """A call of the function for a graph that a node owns. Raises UnsupportedError for a node with a gradient of its own."""
    if owns_gradient(node) or node.kind == CUSTOM_VJP:
        way = "lower-custom-vjp drops it" if node.kind == CUSTOM_VJP else "unpack-gradient makes a pair of graphs of it"
        raise UnsupportedError(f"{node.kind} has a gradient of its own, which TorchScript does not take; irtool.vjp and "
                               f"`irtool grad --via differentiate` do, and {way}", code="E0606")
    name, operands = printer.helper(node, graph), printer.take(node.inputs)
    if node.kind in FORK_KINDS:
        return f"{printer.fork(node.kind)}({', '.join([name, *operands])})"
    text = f"{name}({', '.join(operands)})"
    if len(node.outputs) >= len(graph.outputs) or not node.outputs:
        return text
    return f"{text}[0:{len(node.outputs)}]" if len(node.outputs) > 1 else f"{text}[0]"


def function_text(kind: str) -> str:
    """The function that a kind is in source: `torch.add`, `ops.prim.min`. Raises UnsupportedError if it has no such name."""
    space, _, name = qualified(kind).partition("::")
    if not (space.isidentifier() and name.isidentifier()) or keyword.iskeyword(name) or keyword.iskeyword(space):
        raise UnsupportedError(f"{kind} cannot be written as TorchScript", code="E0606")
    by_name = space == "aten" and name not in TORCH_CONSTANTS and name not in WRITTEN_IN_PYTHON
    return f"torch.{name}" if by_name else f"ops.{space}.{name}"


def call(printer: Printer, node: Node) -> str:
    """`torch.add(x, y, alpha=2)`. Arguments equal to the schema's defaults are left out, if the call still means the same overload."""
    if node.kind[:1] == "^" and is_plain_python(node):
        return f"ops.python.{node.kind[1:]}({', '.join(printer.take(node.inputs))})"
    schema = schema_of(node)
    if schema is None:
        refuse_unknown(node)
    function = function_text(node.kind)
    if schema is not None and (schema.is_varret or not NOTES.issuperset(set(node.attributes).difference(schema.positions))):
        raise UnsupportedError(f"{node.kind} cannot be written as TorchScript", code="E0606")
    if schema is None:
        if node.attributes:
            raise UnsupportedError(f"{node.kind} with attributes cannot be written as TorchScript: it has no schema", code="E0606")
        if "::" not in node.kind or node.kind.startswith("prim::"):
            raise UnsupportedError(f"{node.kind} cannot be written as TorchScript: it has no schema", code="E0606")
        return f"{function}({', '.join(printer.take(node.inputs))})"
    operands: list[Given] = list(node_arguments(node, schema))
    extra = operands[len(schema.arguments):]
    meant, pairs = with_numbers(schema, [(argument, as_number(argument, each))
                                         for argument, each in zip(schema.arguments, operands, strict=False)])
    written = without_defaults(pairs) if not extra else pairs
    if len(written) < len(pairs) and not means(meant, written):
        written = pairs
    texts = iter(printer.take([value for each in (*[pair[1] for pair in written], *extra) for value in _values(each)]))
    parts = [(f"{argument.name}=" if argument.keyword_only else "") + _argument(meant, argument, each, texts) for argument, each in written]
    return typed(printer, f"{function}({', '.join([*parts, *texts])})", schema, node)


def refuse_unknown(node: Node) -> None:
    """Raises UnsupportedError for an operator that does not exist, and for operands that none of its overloads takes."""
    graph = node.graph
    message, code = operator_problem(node, graph is None or graph.dialect.name in STRICT_DIALECTS)
    if not message and not schemas(node.kind):
        is_torchs = node.kind.startswith("aten::") and node.kind != "aten::ATen"        # that one names its operator by an attribute
        message, code = unknown_operator(node.kind) or (f"unknown operator '{node.kind}'" if is_torchs else ""), "E0103"
    if message:
        raise UnsupportedError(diagnostics=[diagnostic_at(graph.source if graph is not None else None, node, message, code)])


def is_plain_python(node: Node) -> bool:
    """Is the node a Python operator that takes only values and returns a tensor? Others have no source."""
    scalars = node.attributes.get("scalars")
    if len(node.attributes) > 1 or scalars is not None and scalars.text:
        return False
    if len(node.outputs) != 1 or not is_tensor_like(node.outputs[0].type):
        return False
    return node.kind[1:].isidentifier() and not keyword.iskeyword(node.kind[1:])


def typed(printer: Printer, text: str, schema: Schema, node: Node) -> str:
    """A cast around the text, if the schema says `Any` and the graph has a more precise type."""
    if len(node.outputs) == 1 and len(schema.returns) == 1 and schema.returns[0].type.key == "Any" != node.outputs[0].type.key:
        return f"unchecked_cast({printer.annotation(node.outputs[0].type)}, {text})"
    return text


def _values(operand: Given) -> list[Value]:
    return operand if isinstance(operand, list) else [operand] if isinstance(operand, Value) else []


def _argument(schema: Schema, argument: Argument, operand: Given, texts: Iterator[str]) -> str:
    if isinstance(operand, list):
        return f"[{', '.join([next(texts) for _ in operand])}]"
    text = literal(operand.value, argument.type) if isinstance(operand, Literal) else next(texts)
    return truth_as_number(schema, argument, text) if is_truth_as_number(argument, operand) else text


def is_truth_as_number(argument: Argument, operand: Given) -> bool:
    """Is the operand a bool where a number is expected? The compiler would make an int of it, and so ints of a tensor of bools."""
    formal = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
    return formal.key in ("Scalar", "Tensor") and (operand.type.key == "bool" if isinstance(operand, Value) else
                                                   isinstance(operand, Literal) and isinstance(operand.value, bool))


def truth_as_number(schema: Schema, argument: Argument, text: str) -> str:
    """A bool as a tensor, if an overload takes one, else as its item, which torch's compiler does not take everywhere."""
    names = [each.name for each in schema.arguments]
    takes = any(each.arguments[names.index(argument.name)].type.key == "Tensor" for each in schemas(schema.kind)
                if [other.name for other in each.arguments] == names)
    return f"torch.tensor({text})" if takes else f"torch.tensor({text}).item()"


# -- numbers as tensors
def as_number(argument: Argument, operand: Given) -> Given:
    """The number, where one is expected. Before mid-2018, numbers were constant tensors, and numbers stood for words."""
    formal = argument.type.element if isinstance(argument.type, OptionalType) else argument.type
    if isinstance(operand, Literal):
        value = operand.value
        if isinstance(value, str) and formal.key == "int":
            return Literal(DEFAULT_WORDS.get(value, value), operand.attribute)
        if isinstance(value, TensorLiteral) and value.has_data and value.shape == () and not is_tensor_like(formal):
            return _number(value.item())
    elif isinstance(operand, Value) and formal.key in _AS and is_tensor_like(operand.type):
        tensor = constant(operand)
        if isinstance(tensor, TensorLiteral) and tensor.has_data and len(tensor.numbers()) == 1:
            return _number(_AS[formal.key](tensor.item()))
    elif isinstance(operand, Value) and is_constant(operand) and is_tensor_like(operand.type) and isinstance(formal, ListType):
        tensor = constant(operand)
        if formal.element.key in _AS and isinstance(tensor, TensorLiteral) and tensor.has_data:
            return _number([_AS[formal.element.key](each) for each in tensor.numbers()])
    return operand


def _number(value: object) -> Literal:
    return Literal(value, Attribute(str(value), value))


def _same(value: bool | int | float | complex) -> bool | int | float | complex:
    return value


_AS: dict[str, Callable[..., object]] = {"int": int, "float": float, "bool": bool, "Scalar": _same}
WRAPPED: dict[str | None, Callable[..., object]] = {None: _same, "int64": int, "float64": float, "complex128": complex}
"""The dtypes that a Python number has when it becomes a tensor."""


def with_numbers(schema: Schema, pairs: list[Pair]) -> tuple[Schema, list[Pair]]:
    """The arguments with constant tensors as numbers, if an overload accepts that: in a trace, `x * 2` is a product with the constant
    tensor `{2}`."""
    wrapped = {i: number for i, (argument, operand) in enumerate(pairs)
               if argument.type.key == "Tensor" and (number := wrapped_number(operand)) is not None}
    if not wrapped or not any(argument.type.key == "Tensor" and i not in wrapped for i, (argument, _) in enumerate(pairs)):
        return schema, pairs
    for other in schemas(schema.kind):
        if len(other.arguments) == len(pairs) and len(other.returns) == len(schema.returns):
            if all(formal.type.key == ("Scalar" if i in wrapped else argument.type.key)
                   for i, (formal, (argument, _)) in enumerate(zip(other.arguments, pairs, strict=True))):
                numbered: list[Pair] = [(formal, _number(wrapped[i]) if i in wrapped else pair[1])
                                        for i, (formal, pair) in enumerate(zip(other.arguments, pairs, strict=True))]
                if means(other, numbered):
                    return other, numbered
    return schema, pairs


def wrapped_number(operand: Given) -> object:
    """The number of a constant 0-d tensor of a dtype that numbers have, also of an attribute; None for any other operand."""
    tensor = argument_value(operand)
    if not isinstance(tensor, TensorLiteral) or not tensor.is_number or tensor.dtype not in WRAPPED:
        return None
    return WRAPPED[tensor.dtype](tensor.item())


# -- defaults
def without_defaults(pairs: Sequence[Pair]) -> list[Pair]:
    """The arguments without trailing positional ones, and without keyword-only ones, that equal their defaults."""
    positional = [pair for pair in pairs if not pair[0].keyword_only]
    while positional and is_default(*positional[-1]):
        positional.pop()
    return positional + [pair for pair in pairs if pair[0].keyword_only and not is_default(*pair)]


def is_default(argument: Argument, operand: Given) -> bool:
    """Is the argument exactly the schema's default?"""
    if not argument.has_default or isinstance(operand, list):
        return False
    if isinstance(operand, Literal) and operand.attribute is None:
        return True
    default = argument.default
    if isinstance(default, str) and argument.type.key in ("int", "int?"):
        default = DEFAULT_WORDS.get(default, default)
    if isinstance(operand, Literal):
        value = operand.value
    elif is_constant(operand):
        value = constant(operand)
    elif operand.node.kind == "prim::ListConstruct" and operand.use_count == 1 and all(map(is_constant, operand.node.inputs)):
        value = [constant(each) for each in operand.node.inputs]
    else:
        return False
    if isinstance(value, list) and not isinstance(default, list) and argument.fixed_size == len(value):
        return all(_equal(each, default, argument.type) for each in value)
    return _equal(value, default, argument.type)


def _equal(value: object, default: object, type: Type) -> bool:
    if isinstance(value, list) and isinstance(default, list):
        return len(value) == len(default) and all(_equal(x, y, type) for x, y in zip(value, default, strict=True))
    if value.__class__ is not default.__class__ and not (isinstance(value, float) and default.__class__ is int and "float" in type.key):
        return False
    return value == default and str(value)[:1] == str(default)[:1]      # -0.0 is not 0.0


_chosen: dict[tuple[object, ...], bool] = {}
_TYPES: dict[type, Type] = {bool: types.BOOL, int: types.INT, float: types.FLOAT, complex: types.COMPLEX, str: types.STR,
                            type(None): types.NONE}


def means(schema: Schema, pairs: Sequence[Pair]) -> bool:
    """Would these arguments alone choose this overload?"""
    typed_arguments = [(argument, _type_of(argument, each)) for argument, each in pairs]
    key = (schema.name, *[(argument.name if argument.keyword_only else "", type) for argument, type in typed_arguments])
    is_chosen = _chosen.get(key)
    if is_chosen is None:
        if len(_chosen) > 20_000:
            _chosen.clear()
        positional = [Value("", type, NOWHERE) for argument, type in typed_arguments if not argument.keyword_only]
        named = {argument.name: Value("", type, NOWHERE) for argument, type in typed_arguments if argument.keyword_only}
        match, _ = Resolver(set(), set()).choose(schemas(schema.kind), positional, named)
        is_chosen = _chosen[key] = match is not None and match.schema is schema
    return is_chosen


def _type_of(argument: Argument, operand: Given) -> Type:
    if isinstance(operand, Value):
        return types.TENSOR if is_tensor_like(operand.type) else types.NONE if is_none(operand) else operand.type
    return argument.type if isinstance(operand, list) else _TYPES.get(type(operand.value), argument.type)


# -- forms with syntax of their own
@FORMS.of("prim::ListConstruct")
def _list(printer: Printer, node: Node) -> str:
    parts = printer.take(node.inputs)
    type = node.outputs[0].type
    text = f"[{', '.join(parts)}]"
    element = type.element if isinstance(type, ListType) else type
    plain = bool(parts) and all(type_key(value.type) == type_key(element) for value in node.inputs)
    return text if plain else f"annotate({printer.annotation(type)}, {text})"


@FORMS.of("prim::TupleConstruct")
def _tuple(printer: Printer, node: Node) -> str:
    parts = printer.take(node.inputs)
    type = node.outputs[0].type
    if isinstance(type, NamedTupleType) and not (name := printer.annotation(type)).startswith("Tuple["):
        return f"{name}({', '.join(parts)})"
    text = f"({joined(parts, ',')})" if parts else "()"
    if not isinstance(type, TupleType):     # `Tuple` of 2018 has no types of elements
        return text
    if len(type.elements) == len(parts):
        if all(type_key(value.type) == type_key(element) for value, element in zip(node.inputs, type.elements, strict=True)):
            return text
    return f"annotate({printer.annotation(type)}, {text})"


@FORMS.of("prim::DictConstruct")
def _dict(printer: Printer, node: Node) -> str:
    parts = printer.take(node.inputs)
    type = node.outputs[0].type
    text = "{" + ", ".join([f"{key}: {value}" for key, value in zip(parts[::2], parts[1::2], strict=True)]) + "}"
    if parts and isinstance(type, DictType):
        if all(type_key(v.type) == type_key((type.key_type, type.value_type)[i % 2]) for i, v in enumerate(node.inputs)):
            return text
    return f"annotate({printer.annotation(type)}, {text})"


@FORMS.of("prim::TupleIndex")
def _tuple_index(printer: Printer, node: Node) -> str:
    return _subscript(printer, node) if len(node.inputs) == 2 else f"{atom(printer.take(node.inputs)[0])}[{node.attributes['index'].text}]"


def _subscript(printer: Printer, node: Node) -> str:
    whole, index = printer.take(node.inputs)
    return f"{atom(whole)}[{index}]"


@FORMS.of("aten::__getitem__")
def _get_item(printer: Printer, node: Node) -> str:
    if node.inputs and isinstance(node.inputs[0].type, ListType | DictType):
        return _subscript(printer, node)
    return call(printer, node)


@FORMS.of("prim::TupleSlice")
def _tuple_slice(printer: Printer, node: Node) -> str:
    beg, end = node.attributes["beg"].text, node.attributes["end"].text
    return f"{atom(printer.take(node.inputs)[0])}[{beg}:{end}]"


def atom(text: str) -> str:
    """The text, in parentheses unless it can be subscripted without them."""
    return text if text.isidentifier() or text.endswith((")", "]")) and text[0] not in "([{-" else f"({text})"


@FORMS.of("prim::unchecked_cast")
def _unchecked_cast(printer: Printer, node: Node) -> str:
    return f"unchecked_cast({printer.annotation(node.outputs[0].type)}, {printer.take(node.inputs)[0]})"


@FORMS.of("prim::isinstance")
def _is_instance(printer: Printer, node: Node) -> str:
    wanted = node.attributes["types"].types
    if wanted is None:
        raise UnsupportedError(f"{node.kind} with types {node.attributes['types'].text[:80]} cannot be written as TorchScript",
                               code="E0606")
    names = [type.text if type.text in ("list", "tuple") else printer.annotation(type) for type in wanted]
    return f"isinstance({printer.take(node.inputs)[0]}, {names[0] if len(names) == 1 else f'({joined(names)})'})"


@FORMS.of("prim::ConstantChunk", "prim::FusedChunk")
def _chunk(printer: Printer, node: Node) -> str:
    return f"torch.chunk({printer.take(node.inputs)[0]}, {node.attributes['chunks'].text}, {node.attributes['dim'].text})"


@FORMS.of("prim::FusedConcat")
def _concat(printer: Printer, node: Node) -> str:
    return f"torch.cat([{', '.join(printer.take(node.inputs))}], {node.attributes['dim'].text})"


@FORMS.of("prim::TensorToNum", "prim::ImplicitTensorToNum")
def _old_number(printer: Printer, node: Node) -> str:
    """A number read out of a tensor by a kind of 2018, which does not say the type of the number."""
    text, wanted = printer.take(node.inputs)[0], node.outputs[0].type.key
    if wanted in ("int", "float", "bool"):
        return f"{wanted}({text})"
    return f"annotate(number, {text})" if wanted == "Scalar" else text


@FORMS.of("prim::tolist")
def _tolist(printer: Printer, node: Node) -> str:
    return f"annotate({printer.annotation(node.outputs[0].type)}, {atom(printer.take(node.inputs[:1])[0])}.tolist())"


@FORMS.of("prim::CallFunction")
def _call_function(printer: Printer, node: Node) -> str:
    name = node.inputs[0].node.attributes.get("name") if node.inputs else None
    if name is None or not str(name.value).isidentifier():
        raise UnsupportedError(f"{node.kind} of a function without a name cannot be written as TorchScript", code="E0606")
    return f"{printer.call_by_name(str(name.value))}({', '.join(printer.take(node.inputs[1:]))})"


@FORMS.of("aten::_unwrap_optional", "prim::unchecked_unwrap_optional")
def _unwrapped(printer: Printer, node: Node) -> str:
    """`unwrap_optional`; its operand may also be a constant None of that type, in code that never runs, whose type must be known."""
    if not is_none(node.inputs[0]) and node.inputs[0].type.key not in ("None", "NoneType"):
        return call(printer, node)
    nothing = printer.take(node.inputs)[0] if node.inputs[0].type.key in ("None", "NoneType") else "None"
    return f"torch._unwrap_optional(annotate(Optional[{printer.annotation(node.outputs[0].type)}], {nothing}))"


def _as_call(name: str) -> Form:
    """A form for `int(x)`: a Python function of all operands."""
    def form(printer: Printer, node: Node) -> str:
        return f"{name}({', '.join(printer.take(node.inputs))})"
    return form


def _implicit(name: str) -> Form:
    """A form for `annotate(int, x)`: torch's implicit conversion of a tensor where a number is expected."""
    def form(printer: Printer, node: Node) -> str:
        return f"annotate({name}, {printer.take(node.inputs)[0]})"
    return form
FORMS.of("prim::Print")(_as_call("print"))
FORMS.of("aten::Int", "prim::Int", "prim::FloatToInt")(_as_call("int"))
FORMS.of("aten::Float", "prim::Float", "prim::IntToFloat", "prim::StringToFloat")(_as_call("float"))
FORMS.of("aten::Bool", "prim::Bool", "prim::TensorToBool")(_as_call("bool"))
FORMS.of("aten::Complex")(_as_call("complex"))
FORMS.of("aten::str")(_as_call("str"))
FORMS.of("aten::len", "prim::ListLen", "prim::TupleLen")(_as_call("len"))
FORMS.of("prim::BoolToTensor")(_as_call("ops.prim.NumToTensor"))
FORMS.of("prim::AnyDefined")(_as_call("ops.prim.AutogradAnyNonZero"))
FORMS.of("aten::IntImplicit")(_implicit("int"))
FORMS.of("aten::FloatImplicit")(_implicit("float"))
FORMS.of("aten::ComplexImplicit")(_implicit("complex"))
FORMS.of("aten::ScalarImplicit")(_implicit("number"))
FORMS.of("prim::awaitable_wait")(_as_call("torch.jit._awaitable_wait"))
FORMS.of("prim::awaitable_nowait")(_as_call("torch.jit._awaitable_nowait"))
FREE = UNDEFINED_KINDS | {"prim::Uninitialized"}
"""Kinds that may be printed wherever their value is read."""


def free_text(printer: Printer, node: Node) -> str:
    """The text of a node of a `FREE` kind."""
    return "ops.prim.AutogradZero()" if node.kind in UNDEFINED_KINDS else f"uninitialized({printer.annotation(node.outputs[0].type)})"

