"""The verifier's invariants of types: what goes into a graph, or comes out of one, of a container or of an operator, is what is declared.

Passes read values instead of others: an operand instead of the input of a graph that is opened, an element instead of what was taken out
of a tuple. Where the one does not fit the other, they would make nodes that no operator takes.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import irtool.ir.types as types
from irtool.ir.constants import constant
from irtool.ir.custom import CUSTOM_VJP
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import has_variables, is_tensor_like, match_types, schema_of, schemas, substitute
from irtool.ir.types import DictType, ListType, OptionalType, TensorType, TupleType, Type, UnionType

Found = tuple[Node | None, str] | tuple[Node | None, str, str]
"""The node, what is wrong with it, and a code where it is not that of the invariant."""
STRICT_DIALECTS = frozenset(("G", "H", "T"))
FUTURES = frozenset(("prim::fork", "prim::awaitable"))
"""Their result stands for all that their graph gives."""
NUMBERS = frozenset(("int", "float", "bool", "complex", "Scalar"))


def flows(actual: Type, wanted: Type, is_inside: bool = False) -> bool:
    """Tensors flow into tensors whatever is known of their shapes: shapes are observations.

    So do numbers into 0-dim tensors and back, as after erase-number-types, but not inside of containers: those keep their types.
    """
    if types.is_subtype(actual, wanted) or is_tensor_like(actual) and is_tensor_like(wanted):
        return True
    if not is_inside and (is_tensor_like(actual) and wanted.key in NUMBERS or is_tensor_like(wanted) and actual.key in NUMBERS):
        return True
    if isinstance(wanted, OptionalType):
        return actual.key == "None" or flows(actual.element if isinstance(actual, OptionalType) else actual, wanted.element, is_inside)
    if isinstance(actual, UnionType):
        return all(flows(choice, wanted, is_inside) for choice in actual.elements)
    if isinstance(wanted, UnionType):
        return any(flows(actual, choice, is_inside) for choice in wanted.elements)
    if type(actual) is type(wanted) and actual.elements and len(actual.elements) == len(wanted.elements):
        return all(flows(x, y, is_inside=True) for x, y in zip(actual.elements, wanted.elements, strict=True))
    return False


# ---------------------------------------------------------------- graphs of nodes
def is_called(node: Node, name: str) -> bool:
    """Does the graph that a node owns under this name take the node's operands?"""
    return name == "Subgraph" and node.kind not in ("prim::PythonOp", "prim::Closure") and not node.kind.startswith("^")


def call_problem(node: Node, inner: Graph) -> str:
    """What a node hands to the graph that it runs, or takes from it, and that does not fit; counts are another invariant's."""
    for actual, wanted in zip(node.inputs, inner.inputs):
        if not flows(actual.type, wanted.type):
            return f"{node.kind} gives its graph %{actual.name} : {actual.type} for %{wanted.name} : {wanted.type}"
    for actual, wanted in zip(inner.outputs, node.outputs) if node.kind not in FUTURES else ():
        if not flows(actual.type, wanted.type):
            return f"the graph of {node.kind} gives %{actual.name} : {actual.type} for %{wanted.name} : {wanted.type}"
    return ""


def check_calls(graph: Graph) -> Iterator[Found]:
    """What a node gives the graph that it runs, and what that gives, has the types declared."""
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
    """The way back takes gradients of the results that are tensors, and what was saved; it gives gradients of the operands."""
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
    """Can a gradient of a `type` be a `gradient`? For tensors and numbers: a tensor, a number or None; other types are not checked."""
    if isinstance(gradient, OptionalType):
        gradient = gradient.element
    return not _is_tensor_or_number(type) or _is_tensor_or_number(gradient) or gradient.key == "None"


def _is_tensor_or_number(type: Type) -> bool:
    return is_tensor_like(type) or type.key in NUMBERS


# ---------------------------------------------------------------- containers, and values that go on as they are
def check_types(graph: Graph) -> Iterator[Found]:
    """What is taken out of a container, or handed on, has the type that the container, or the operand, says."""
    if graph.dialect.name not in STRICT_DIALECTS:
        return
    for node in graph.walk():
        rule = RULES.get(node.kind)
        for actual, value in rule(node) if rule is not None else ():
            if not flows(actual, value.type):
                yield node, f"{node.kind} gives {actual}, found %{value.name} : {value.type}"
                break


Pairs = Sequence[tuple[Type, Value]]
"""What a node hands out, and the result that it is handed out as."""


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


def _tensors(node: Node) -> Pairs:
    return [(types.TENSOR, value) for value in (*node.outputs, *node.inputs)]


RULES: dict[str, Callable[[Node], Pairs]] = {
    "prim::TupleUnpack": _of_tuple,
    "prim::TupleIndex": _of_index,
    "prim::TupleSlice": _of_slice,
    "prim::ListUnpack": _of_list,
    "prim::Guard": _as_it_is,
    "prim::AutogradAdd": _unwrapped,        # a gradient that may be None is one that may be undefined
    "prim::ReplaceIfUndef": _unwrapped,
    "prim::unchecked_unwrap_optional": _unwrapped,
    "prim::ConstantChunk": _tensors,
    "prim::FusedConcat": _tensors,
}


# ---------------------------------------------------------------- operators
def result_problem(node: Node, strict: bool) -> str:
    """A result is declared as what the operator gives: no list where that is a tensor, and in today's dialects nothing else, either.

    (In 2018 some gave `int[]` that are tensors today; shape analysis declares the one chunk of a list of chunks a tensor.)
    """
    schema = schema_of(node)
    if schema is None or len(schema.returns) != len(node.outputs):
        return ""
    for slot, (value, argument) in enumerate(zip(node.inputs, schema.arguments) if strict and not node.attributes else ()):
        if isinstance(argument.type, ListType) and is_tensor_like(argument.type.element) and isinstance(value.type, TensorType):
            if any(len(each.arguments) == len(node.inputs) and not isinstance(each.arguments[slot].type, ListType)
                   for each in schemas(node.kind)):
                return ""       # numbers were erased, so that another overload is found
            return f"{node.kind} takes {argument.type}, found %{value.name} : {value.type}"
    variables = match_types(schema, [value.type for value in node.inputs]) if strict and not node.attributes else {}
    for value, declared in zip(node.outputs, schema.returns, strict=True):
        if is_tensor_like(declared.type) and isinstance(value.type, ListType | DictType) and _element(value.type).key not in NUMBERS:
            return f"{node.kind} gives a tensor, found %{value.name} : {value.type}"
        type = substitute(declared.type, variables)
        is_free = declared.type.key == "Any" or isinstance(declared.type, ListType) and is_tensor_like(value.type) or has_variables(type) \
            or is_tensor_like(declared.type) and isinstance(value.type, TupleType | ListType) and len(node.outputs) == 1
        if strict and not is_free and not _may_be_declared(type, value.type) and not _is_of_another(node):
            return f"{node.kind} gives {type}, found %{value.name} : {value.type}"
    return ""


def _is_of_another(node: Node) -> bool:
    """Is there another overload that takes the operands and gives what is declared? (`pow` of two ints gives a float, or an int.)"""
    return any(
        len(each.arguments) == len(node.inputs) and len(each.returns) == len(node.outputs)
        and all(flows(value.type, argument.type) for value, argument in zip(node.inputs, each.arguments, strict=True))
        and all(_may_be_declared(declared.type, value.type) for value, declared in zip(node.outputs, each.returns, strict=True))
        for each in schemas(node.kind))


def _may_be_declared(actual: Type, said: Type) -> bool:
    """May a result of type `actual` be declared as `said`: as wide, where a number stands for a tensor and the other way round?"""
    return flows(actual, said) and flows(said, actual) or "Scalar" in (actual.key, said.key) and {actual.key, said.key} <= NUMBERS


def _element(type: Type) -> Type:
    while isinstance(type, OptionalType | ListType):
        type = type.element
    return type
