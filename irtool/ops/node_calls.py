"""A node run on values: its overload is chosen, its arguments are collected, and the overload is called.

The overload follows from the static types of the operands; if these do not determine it (text in which everything is `Dynamic`, kinds of
older dialects), from the values.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.ir.callers import warn_in_users_code
from irtool.ir.dtypes import dtype_code
from irtool.ir.effects import FRESH, category_of
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import PARAM, Node, Value
from irtool.ir.kinds import not_supported
from irtool.ir.schema import Literal, Schema, forgets_kinds, node_arguments, qualified, schema_of, schemas
from irtool.ir.types import ListType, Type
from irtool.ops import OPS
from irtool.ops.arrays import is_array
from irtool.ops.call import find_overload, fits, overload, own_schema
from irtool.ops.checks import bind
from irtool.ops.folding import is_number
from irtool.ops.overload import Overload, Resized
from irtool.ops.python_op import is_registered, way_to_bring
from irtool.ops.structure import from_literal, handler_of, python_op


class Plan:
    """How to call nodes of one kind, with these types of operands and attributes: the overload, and the source of each argument."""

    __slots__ = ("overload", "recipe", "plain")

    def __init__(self, overload: Overload, recipe: list[Any]) -> None:
        self.overload = overload
        self.recipe = recipe            # an int: the operand at this position; a slice: a list of operands; a Literal: its value
        self.plain = all(type(step) is int for step in recipe)

    def arguments(self, values: list[Any]) -> list[Any]:
        """One value per argument."""
        if self.plain:
            return values
        return [values[step] if type(step) is int else list(values[step]) if type(step) is slice else from_literal(step.value, None)
                for step in self.recipe]


class ListPlan(Plan):
    """A plan of an overload that makes a tensor from a list, whose static type determines the dtype if the list is empty."""

    __slots__ = ("dtype",)

    def __init__(self, overload: Overload, recipe: list[Any], dtype: int) -> None:
        super().__init__(overload, recipe)
        self.dtype = dtype
        self.plain = False

    def arguments(self, values: list[Any]) -> list[Any]:
        """One value per argument, the dtype among them."""
        args = super().arguments(values)
        if args[1] is None and is_empty(args[0]):
            args = [args[0], self.dtype, *args[2:]]
        return args


OF_LISTS = frozenset(("aten::tensor", "aten::as_tensor.list"))
"""Overloads that make a tensor from lists of numbers."""
DTYPES = {"int": dtype_code("int64"), "bool": dtype_code("bool")}
"""Types of numbers whose tensors are not floating-point -> torch's number of their dtype."""


def element_of(type: Type) -> int | None:
    """The dtype of the numbers in a list, as torch's number, from the list's type; None for floats and for anything else.

    Raises RunError if the elements have no single type of number.
    """
    while isinstance(type, ListType):
        type = type.element
    if not is_number(type):
        raise RunError(f"Input must be of ints, floats, or bools, got {type.text}")
    return DTYPES.get(str(type.key))


def is_empty(value: Any) -> bool:
    """Do nested lists contain no number?"""
    return isinstance(value, list) and all(map(is_empty, value))


_plans: dict[tuple[Any, ...], Plan | None] = forgets_kinds({})
MAX_PLANS = 50_000


def plan_for(node: Node) -> Plan | None:
    """The plan for a node's static types; None if they do not determine the overload, or if it has no kernel. Cached by kind and types."""
    key = (node.kind, *[value.type for value in node.inputs], *[(name, a.text) for name, a in node.attributes.items()])
    if key in _plans:
        return _plans[key]
    if len(_plans) > MAX_PLANS:
        _plans.clear()
    plan = _plans[key] = _make_plan(node)
    return plan


def _make_plan(node: Node) -> Plan | None:
    schema = schema_of(node)
    if schema is None:
        return None
    chosen = find_overload(schema.name)
    if chosen is None:
        return None
    recipe: list[Any] = []
    at = 0
    for argument in node_arguments(node, schema):
        if isinstance(argument, list):
            recipe.append(slice(at, at + len(argument)))
            at += len(argument)
        elif isinstance(argument, Literal):
            recipe.append(argument)
        else:
            recipe.append(at)
            at += 1
    element = element_of(node.inputs[0].type) if schema.name in OF_LISTS and node.inputs else None
    return Plan(chosen, recipe) if element is None else ListPlan(chosen, recipe, element)


def call_node(node: Node, values: list[Any]) -> Sequence[Any]:
    """Run one node (no control flow) on the values of its operands; returns one value per result.

    Raises UnsupportedError, which names the kind, if there is no kernel, RunError if the operator refuses its operands.
    """
    if node.kind[:1] == "^" or "scalars" in node.attributes:        # the latter in 2017: `Dropout 0.2 True(%x)`
        return python_op(node, values)
    handler = handler_of(node.kind)
    if handler is not None:
        return handler(node, values)
    plan = plan_for(node)
    if plan is not None:
        return _spread(node, plan.overload, called(node, plan.overload, plan.arguments(values)))
    if is_registered(node.kind):
        return python_op(node, values)
    chosen, args = from_values(node, values)
    return _spread(node, chosen, called(node, chosen, args))


def called(node: Node, chosen: Overload, args: list[Any]) -> Any:
    """The result of an overload. What is written to takes the shape of the result where nobody else holds it: it is another tensor then."""
    try:
        return chosen(args)
    except Resized as error:
        if not all(map(is_read_once, node.inputs[len(node.inputs) - chosen.outs:] if chosen.outs else node.inputs[:1])):
            raise
        for message in error.warnings:
            warn_in_users_code(message, UserWarning)
        return tuple(error.results) if len(error.results) > 1 else error.results[0]


def is_read_once(value: Value) -> bool:
    """Is a tensor an input or new, and has it one reader, besides nodes that profile it?"""
    while value.use_count == 1 and value.node.kind == "prim::profile":
        value = value.node.inputs[0]
    return value.use_count == 1 and (value.node.kind == PARAM or category_of(value.node) == FRESH)


def _spread(node: Node, chosen: Overload, result: Any) -> Sequence[Any]:
    count = len(node.outputs)
    if len(chosen.schema.returns) > 1:
        if count == 1:
            return (result,)
        if len(result) != count:
            raise RunError(f"{node.kind} gives {len(result)} results, the node has {count}", code="E0208")
        return tuple(result)
    if count == 1:
        return (result,)
    if count == 0:
        return ()
    if isinstance(result, list | tuple) and len(result) == count:       # in 2017: `%a, %b = split(%x)`
        return tuple(result)
    if node.kind == "prim::Uninitialized":      # of a tuple that was taken apart
        return (None,) * count
    raise RunError(f"{node.kind} gives one result, the node has {count}", code="E0208")


# -- chosen by values
def from_values(node: Node, values: list[Any]) -> tuple[Overload, list[Any]]:
    """The overload and its arguments, for operands whose static types do not determine them. Raises UnsupportedError, which names the
    kind."""
    kind = old_name(node.kind)
    named = {name: attribute for name, attribute in node.attributes.items() if name != "scalars"}
    candidates = [schema for schema in schemas(kind) or _kernel_schemas(kind)]
    for lenient in (False, True):
        for schema in candidates:
            if any(name not in schema.positions for name in named):
                continue
            attributes = {name: from_literal(attribute.as_type(schema.arguments[schema.positions[name]].type), None)
                          for name, attribute in named.items()}
            try:
                args = bind(schema, values, attributes)
            except RunError:
                continue
            if all(fits(argument, value, lenient) for argument, value in zip(schema.arguments, args, strict=False)):
                return overload(schema.name), args
    described = ", ".join(_described(value) for value in values)
    if not candidates:
        raise not_supported(node.kind, f"{node.kind} is not supported yet{way_to_bring(node.kind)}")
    raise UnsupportedError(f"{kind} on ({described}) is not supported yet")


def _kernel_schemas(kind: str) -> list[Schema]:
    return [own_schema(op, name) for name, op in OPS.of_kind(kind).items()]


def _described(value: Any) -> str:
    return "Tensor" if is_array(value) else type(value).__name__


OLD_NAMES = {
    "Add": "aten::add", "Mul": "aten::mul", "Sub": "aten::sub", "Div": "aten::div", "Neg": "aten::neg", "Sigmoid": "aten::sigmoid",
    "Tanh": "aten::tanh", "Exp": "aten::exp", "Log": "aten::log", "Sqrt": "aten::sqrt", "Abs": "aten::abs", "Relu": "aten::relu",
    "MatMul": "aten::matmul", "onnx::Add": "aten::add", "onnx::Mul": "aten::mul", "onnx::Sub": "aten::sub", "onnx::Div": "aten::div",
    "onnx::Neg": "aten::neg", "onnx::Sigmoid": "aten::sigmoid", "onnx::Tanh": "aten::tanh", "onnx::Exp": "aten::exp",
    "onnx::Log": "aten::log", "onnx::Sqrt": "aten::sqrt", "onnx::Abs": "aten::abs", "onnx::Relu": "aten::relu",
    "onnx::MatMul": "aten::matmul",
}
"""Kinds of 2017 and of ONNX -> the aten:: kinds that have the same meaning, if there are no attributes."""


def old_name(kind: str) -> str:
    """The aten:: kind for an old or unqualified one; other kinds are unchanged."""
    return OLD_NAMES.get(kind) or qualified(kind)
