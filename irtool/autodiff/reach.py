"""Which values a gradient can reach."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from irtool.autodiff.formula_graphs import hands_on_gradients, has_gradient
from irtool.ir import types
from irtool.ir.custom import CUSTOM_VJP, results_of_custom
from irtool.ir.effects import CHOICE_KINDS, LOOP_KINDS, MUTATORS, OF_THE_FIRST, node_may_write
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.packed import operands_of_packed, owns_gradient, results_of_packed
from irtool.ir.pair import DEFINED, OF
from irtool.ir.schema import schema_of
from irtool.ir.type_model import AwaitType, FutureType
from irtool.ir.types import DictType, ListType, OptionalType, TensorType, TupleType, Type, UnionType

FLOATING = ("float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128")


def holds_tensors(type: Type) -> bool:
    """May values of a type contain a tensor with a gradient: one of floating-point, complex or unknown dtype?"""
    if isinstance(type, TensorType):
        return type.dtype is None or type.dtype in FLOATING
    if isinstance(type, (ListType, OptionalType, TupleType, DictType, UnionType, FutureType, AwaitType)):
        return any(holds_tensors(element) for element in type.elements)
    return type.key == "Any"


def is_list(value: Value) -> bool:
    """Has a value a list type?"""
    return isinstance(value.type, ListType)


def is_untyped(type: Type) -> bool:
    """Is a type Any or a union with tensors, or a container of such? Then the type of the gradient is unknown."""
    return type.key == "Any" or isinstance(type, UnionType) and holds_tensors(type) or any(map(is_untyped, type.elements))


def has_no_undefined(graph: Graph) -> bool:
    """True unless the graph contains `GradOf` or `AutogradAdd` or is a recorded reverse graph: only there may a tensor be undefined."""
    dialect = graph.dialect
    kinds = {"prim::GradOf", "prim::AutogradAdd", dialect.undefined_kind, dialect.any_defined_kind}
    return OF not in graph.metadata and DEFINED not in graph.metadata and not any(node.kind in kinds for node in graph.walk())


def requiring(graph: Graph, flags: Sequence[bool], trust_types: bool) -> set[Value]:
    """The values that a gradient can reach if it can reach the inputs whose flag is set. trust_types: not those of `requires_grad=0`."""
    needs = {value for value, flag in zip(graph.inputs, flags, strict=True) if flag and holds_tensors(value.type)}
    reach(graph.block, needs, trust_types)
    if any(changes_dict(node) and not needs.isdisjoint(node.inputs) for node in graph.walk()):
        needs.update(value for value in graph.values() if contains_dict(value.type))   # which names one dict has is not known
        reach(graph.block, needs, trust_types)
    return needs


def contains_dict(type: Type) -> bool:
    """Is a type a dict that may contain tensors with gradients, or does it contain one?"""
    return isinstance(type, DictType) and holds_tensors(type) or any(map(contains_dict, type.elements))


def reach(block: Iterable[Node], needs: set[Value], trust_types: bool) -> None:
    """Add to `needs` the values of a block, and of blocks in it, that a gradient can reach."""
    for node in block:
        reached: Sequence[Value] = ()
        if node.kind in CHOICE_KINDS:
            for inner in node.blocks:
                reach(inner, needs, trust_types)
            reached = [output for i, output in enumerate(node.outputs) if any(inner.outputs[i] in needs for inner in node.blocks)]
        elif node.kind in LOOP_KINDS:
            reached = _reach_rounds(node, needs, trust_types)
        elif node.kind == CUSTOM_VJP:
            reached = results_of_custom(node) if not needs.isdisjoint(node.inputs) else ()
        elif owns_gradient(node):
            reached = results_of_packed(node) if not needs.isdisjoint(operands_of_packed(node)) else ()
        elif not needs.isdisjoint(_read_by(node)) and (node.kind in MUTATORS or changes_dict(node) or _passes_gradients(node, needs)):
            results = node.outputs if len(node.outputs) == 1 else filter(hands_on_gradients, node.outputs)
            reached = [*results, *changed_lists(node)]
        for value in reached:
            if trust_types and isinstance(value.type, TensorType) and value.type.requires_grad is False:
                continue
            if holds_tensors(value.type):
                needs.add(value)


def _reach_rounds(node: Node, needs: set[Value], trust_types: bool) -> list[Value]:
    """The results of a loop that a gradient can reach: iterates, since a value reached in one round may reach more in the next."""
    body = node.blocks[0]
    carried = body.inputs[len(body.inputs) - len(node.outputs):]    # in texts of early 2018 further inputs precede
    size = -1
    while size != len(needs):
        size = len(needs)
        for value, start, following in zip(carried, node.inputs[2:], body.outputs[1:], strict=True):
            if (start in needs or following in needs) and holds_tensors(value.type):
                needs.add(value)
        reach(body, needs, trust_types)
    return [output for output, value in zip(node.outputs, carried, strict=True) if value in needs]


def changed_lists(node: Node) -> list[Value]:
    """The lists and dicts that a node, or one in its blocks, changes: afterwards they may contain its operands."""
    nodes = [node, *[each for block in node.blocks for each in block.walk()]]
    return [each.inputs[0] for each in nodes if each.kind in MUTATORS and is_list(each.inputs[0]) or changes_dict(each)]


def changes_dict(node: Node) -> bool:
    """Does a node change the dict that is its first operand?"""
    return bool(node.inputs) and isinstance(node.inputs[0].type, DictType) and not node.blocks and node_may_write(node)


def _read_by(node: Node) -> Sequence[Value]:
    if not node.blocks:
        return node.inputs
    inner = [each for block in node.blocks for each in block.walk()]
    return [*node.inputs, *[value for each in inner for value in each.inputs], *[value for block in node.blocks for value in block.outputs]]


def _passes_gradients(node: Node, needs: set[Value]) -> bool:
    """May a result depend differentiably on an operand?"""
    if node.kind in OF_THE_FIRST:
        return node.inputs[0] in needs
    if node.kind in ("prim::AnyDefined", "aten::detach"):
        return False
    schema = schema_of(node)
    if schema is None:
        return True
    if schema.returns and not any(holds_tensors(result.type) or _is_variable(result.type) for result in schema.returns):
        return False
    return has_gradient(schema) is not False


def _is_variable(type: Type) -> bool:
    return isinstance(type, types.TypeVar) or any(_is_variable(element) for element in type.elements)
