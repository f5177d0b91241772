"""The verifier's invariants of types: values passed to a graph, container or operator, and those that it returns, have the declared types.

Passes replace values by others: the input of an inlined graph by an operand, an element taken out of a tuple by the element put in. If
their types did not fit, the pass would make nodes that no operator accepts.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import irtool.ir.types as types
from irtool.ir.constants import constant
from irtool.ir.custom import CUSTOM_VJP
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import has_variables, is_tensor_like, match_types, schema_of, schemas, substitute
from irtool.ir.structure_kinds import FORK_KINDS
from irtool.ir.types import DictType, ListType, OptionalType, TensorType, TupleType, Type, UnionType

Found = tuple[Node | None, str] | tuple[Node | None, str, str]
"""The node, what is wrong with it, and a code if it differs from that of the invariant."""
STRICT_DIALECTS = frozenset(("G", "H", "T"))
NUMBERS = frozenset(("int", "float", "bool", "complex", "Scalar"))


def flows(actual: Type, wanted: Type, is_inside: bool = False) -> bool:
    """May a value of type `actual` be used where `wanted` is expected?

    As a subtype; a tensor also for a tensor type with other shapes, since shapes are observations. A number for a 0-dim tensor and the
    other way round, as after erase-number-types, except inside containers, which keep their types, and as a choice of a union.
    """
    if types.is_subtype(actual, wanted) or is_tensor_like(actual) and is_tensor_like(wanted):
        return True
    if not is_inside and is_number_beside_tensor(actual, wanted):
        return True
    if isinstance(wanted, OptionalType):
        return actual.key == "None" or flows(actual.element if isinstance(actual, OptionalType) else actual, wanted.element, is_inside)
    if isinstance(actual, UnionType):
        return all(flows(choice, wanted, is_inside=True) for choice in actual.elements)
    if isinstance(wanted, UnionType):
        return any(flows(actual, choice, is_inside) for choice in wanted.elements)
    if type(actual) is type(wanted) and actual.elements and len(actual.elements) == len(wanted.elements):
        return all(flows(x, y, is_inside=True) for x, y in zip(actual.elements, wanted.elements, strict=True))
    return False


def is_number_beside_tensor(one: Type, other: Type) -> bool:
    """Is one of two types a number, and the other a tensor?"""
    return is_tensor_like(one) and other.key in NUMBERS or is_tensor_like(other) and one.key in NUMBERS


# ---------------------------------------------------------------- graphs of nodes
def is_called(node: Node, name: str) -> bool:
    """Are the inputs of the graph that a node owns under this name the node's operands?"""
    return name == "Subgraph" and node.kind not in ("prim::PythonOp", "prim::Closure") and not node.kind.startswith("^")


def call_problem(node: Node, inner: Graph) -> str:
    """A value that a node passes to its graph, or gets from it, and whose type does not fit; counts are checked by another invariant."""
    for actual, wanted in zip(node.inputs, inner.inputs):
        if not flows(actual.type, wanted.type):
            return f"{node.kind} gives its graph %{actual.name} : {actual.type} for %{wanted.name} : {wanted.type}"
    for actual, wanted in zip(inner.outputs, node.outputs) if node.kind not in FORK_KINDS else ():
        if not flows(actual.type, wanted.type):
            return f"the graph of {node.kind} gives %{actual.name} : {actual.type} for %{wanted.name} : {wanted.type}"
    return ""


def check_calls(graph: Graph) -> Iterator[Found]:
    """Values that a node passes to its graph, and the graph's results, have the declared types."""
    if graph.dialect.name not in STRICT_DIALECTS:
        return
    for node in graph.walk():
        for name, inner in node.graphs.items() if node.attributes else ():
            message = call_problem(node, inner) if is_called(node, name) else ""
            if node.kind == CUSTOM_VJP and name != "Subgraph":
                message = _custom_problem(node, inner)
            if message:
                yield node, message


def _custom_problem(node: Node, backward: Graph) -> str:
    """The backward graph takes gradients of the results that are tensors, and the saved values; it returns gradients of the operands."""
    count = node.attributes["outputs"].value if "outputs" in node.attributes else 0
    for place, (actual, wanted) in enumerate(zip(node.outputs, backward.inputs)):
        is_gradient = isinstance(count, int) and place < count
        if not is_gradient and not flows(actual.type, wanted.type) or is_gradient and not may_be_gradient(actual.type, wanted.type):
            return f"{node.kind} gives its way back %{actual.name} : {actual.type} for %{wanted.name} : {wanted.type}"
    for operand, gradient in zip(node.inputs, backward.outputs):
        if not may_be_gradient(operand.type, gradient.type):
            return f"the gradient of %{operand.name} : {operand.type} is %{gradient.name} : {gradient.type}"
    return ""


def may_be_gradient(type: Type, gradient: Type) -> bool:
    """Can a value of type `gradient` be the gradient of a value of type `type`? For tensors and numbers: a tensor, a number or None;
    other types are not checked."""
    if isinstance(gradient, OptionalType):
        gradient = gradient.element
    return not _is_tensor_or_number(type) or _is_tensor_or_number(gradient) or gradient.key == "None"


def _is_tensor_or_number(type: Type) -> bool:
    return is_tensor_like(type) or type.key in NUMBERS


# ---------------------------------------------------------------- containers, and values that are passed on unchanged
def check_types(graph: Graph) -> Iterator[Found]:
    """Elements taken out of a container, and operands that a node returns, have the type that the container, or the operand, declares. In
    the dialects of 2018, whose types say less, only a sum of gradients is looked at: it is no list of tensors that are none."""
    is_strict = graph.dialect.name in STRICT_DIALECTS
    for node in graph.walk():
        rule = RULES.get(node.kind) if is_strict or node.kind == "prim::AutogradAdd" else None
        for actual, value in rule(node) if rule is not None else ():
            if not flows(actual, value.type) and (is_strict or is_container(actual) != is_container(value.type)):
                yield node, f"{node.kind} gives {actual}, found %{value.name} : {value.type}"
                break


def is_container(type: Type) -> bool:
    """Is it the type of a list, dict or tuple?"""
    return isinstance(type, ListType | DictType | TupleType)


Pairs = Sequence[tuple[Type, Value]]
"""Types of values that a node passes on, and the results that they become."""


def _of_tuple(node: Node) -> Pairs:
    elements = _elements(node)
    return list(zip(elements, node.outputs)) if len(elements) == len(node.outputs) else ()


def _of_index(node: Node) -> Pairs:
    elements, attribute = _elements(node), node.attributes.get("index")
    index = attribute.value if attribute is not None else constant(node.inputs[1]) if len(node.inputs) > 1 else None
    if isinstance(index, int) and -len(elements) <= index < len(elements) and len(node.outputs) == 1:
        return [(elements[index], node.output)]
    return ()


def _of_slice(node: Node) -> Pairs:
    elements = _elements(node)
    first, last = [node.attributes[name].value if name in node.attributes else None for name in ("beg", "end")]
    if not elements or len(node.outputs) != 1 or not isinstance(first, int) or not isinstance(last, int):
        return ()
    return [(types.tuple_of(elements[first:last]), node.output)]


def _elements(node: Node) -> Sequence[Type]:
    return node.inputs[0].type.elements if node.inputs and isinstance(node.inputs[0].type, TupleType) else ()


def _of_list(node: Node) -> Pairs:
    type = node.inputs[0].type if node.inputs else None
    return [(type.element, value) for value in node.outputs] if isinstance(type, ListType) else ()


def _as_it_is(node: Node) -> Pairs:
    return [(value.type, result) for result in node.outputs[:1] for value in node.inputs]


def _unwrapped(node: Node) -> Pairs:
    return [(each.element if isinstance(each, OptionalType) else each, value) for each, value in _as_it_is(node)]


def _cast(node: Node) -> Pairs:
    """A cast is to a part of the operand's type; of None, or in a branch, which inlined arguments may not take, to anything."""
    if node.owner is None or node.owner.owning_node is not None:
        return []
    return [(value.type, result) for value, result in zip(node.inputs, node.outputs)
            if value.type.key != "None" and not flows(result.type, value.type)]


def _tensors(node: Node) -> Pairs:
    return [(types.TENSOR, value) for value in (*node.outputs, *node.inputs)]


RULES: dict[str, Callable[[Node], Pairs]] = {
    "prim::TupleUnpack": _of_tuple,
    "prim::TupleIndex": _of_index,
    "prim::TupleSlice": _of_slice,
    "prim::ListUnpack": _of_list,
    "prim::Guard": _as_it_is,
    "prim::AutogradAdd": _unwrapped,        # a gradient that may be None may be undefined
    "prim::ReplaceIfUndef": _unwrapped,
    "prim::unchecked_unwrap_optional": _unwrapped,
    "prim::unchecked_cast": _cast,
    "prim::ConstantChunk": _tensors,
    "prim::FusedConcat": _tensors,
}


# ---------------------------------------------------------------- operators
def result_problem(node: Node, strict: bool) -> str:
    """What is wrong with the declared types of a node's results: a list instead of a tensor or number; in today's dialects, any other type
    than the schema's.

    In 2018, some operators returned an `int[]` that is a tensor today; shape analysis declares a list of one chunk as a tensor.
    """
    schema = schema_of(node)
    if schema is None or len(schema.returns) != len(node.outputs):
        return ""
    for slot, (value, argument) in enumerate(zip(node.inputs, schema.arguments) if strict and not node.attributes else ()):
        if isinstance(argument.type, ListType) and is_tensor_like(argument.type.element) and isinstance(value.type, TensorType):
            if any(len(each.arguments) == len(node.inputs) and not isinstance(each.arguments[slot].type, ListType)
                   for each in schemas(node.kind)):
                return ""       # without number types, another overload is found
            return f"{node.kind} takes {argument.type}, found %{value.name} : {value.type}"
    variables = match_types(schema, [value.type for value in node.inputs]) if strict and not node.attributes else {}
    for value, declared in zip(node.outputs, schema.returns, strict=True):
        if _is_tensor_or_number(declared.type) and isinstance(value.type, ListType | DictType) and _element(value.type).key not in NUMBERS:
            return f"{node.kind} gives {'a tensor' if is_tensor_like(declared.type) else declared.type}, found %{value.name} : {value.type}"
        type = substitute(declared.type, variables)
        is_free = declared.type.key == "Any" or isinstance(declared.type, ListType) and is_tensor_like(value.type) or has_variables(type) \
            or is_tensor_like(declared.type) and isinstance(value.type, TupleType | ListType) and len(node.outputs) == 1
        if strict and not is_free and not _may_be_declared(type, value.type) and not _is_of_another(node):
            return f"{node.kind} gives {type}, found %{value.name} : {value.type}"
    return ""


def _is_of_another(node: Node) -> bool:
    """Is there another overload that accepts the operands and returns the declared types? (`pow` of two ints is a float, or an int.)"""
    return any(
        len(each.arguments) == len(node.inputs) and len(each.returns) == len(node.outputs)
        and all(flows(value.type, argument.type) for value, argument in zip(node.inputs, each.arguments, strict=True))
        and all(_may_be_declared(declared.type, value.type) for value, declared in zip(node.outputs, each.returns, strict=True))
        for each in schemas(node.kind))


def _may_be_declared(actual: Type, said: Type) -> bool:
    """May a result of type `actual` be declared as `said`? Neither may be wider than the other; a number may stand for a tensor."""
    return flows(actual, said) and flows(said, actual) or "Scalar" in (actual.key, said.key) and {actual.key, said.key} <= NUMBERS


def _element(type: Type) -> Type:
    while isinstance(type, OptionalType | ListType):
        type = type.element
    return type
