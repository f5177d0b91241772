"""How a plan calls the nodes that it cannot lower to calls of NumPy: through the operator, or, on plain Python values, its kernel.

Operands whose types are exactly those of the schema need no conversion, and go to the kernel. For other operands, and if the kernel fails,
the operator is called, which converts operands and reports errors in torch's words. Of some results the form is known before.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irtool.execute.plan.program import Item, Known, meta_of_item, numbers_of
from irtool.ir.effects import RESHAPES
from irtool.ir.graph import Node
from irtool.ir.types import TupleType
from irtool.ops.array_library import np
from irtool.ops.arrays import default_dtype, dtype_of, xp
from irtool.ops.node_calls import Plan as CallPlan
from irtool.ops.node_calls import call_node, plan_for
from irtool.ops.overload import Overload
from irtool.ops.structure import handler_of
from irtool.ops.symbols.array_layout import Meta, fresh_meta

Visitor = Callable[[list[Any]], Any]
EXACT: dict[str, Any] = {
    "int": int, "float": float, "bool": bool, "str": str, "Tensor": np.ndarray, "t": object, "t[]": list, "Any[]": list,
}
"""Type of an argument -> the Python type whose values need no conversion; object: no value needs any."""
LISTS = ("prim::ListConstruct", "ListConstruct")


def itself(values: list[Any]) -> Any:
    """prim::ListConstruct: the list of operands, which is a new one in each run, is the result."""
    return values


def visitor(node: Node) -> tuple[Visitor, bool, bool]:
    """A function from operands to results; whether it returns the sole result, not a sequence; whether the results are new memory."""
    fresh = False
    if node.kind in LISTS and len(node.outputs) == 1:
        return itself, True, False
    if handler_of(node.kind) is None and node.kind[:1] != "^":
        plan = plan_for(node)
        if plan is not None:
            schema = plan.overload.schema
            types = [*[each.type for each in schema.returns], *[value.type for value in node.outputs]]      # AutogradAdd takes lists, too
            holds = any("[]" in type.text or isinstance(type, TupleType) for type in types)
            fresh = plan.overload.fresh and plan.overload.mode == "plain" and not holds
            if len(node.outputs) == 1 and plan.overload.mode != "out" and schema.kind not in RESHAPES:      # that may give another tensor
                shortcut = SHORTCUTS.get(schema.name)
                if shortcut is not None and plan.plain:
                    return shortcut(plan.overload), True, fresh
                function = (direct(plan.overload) or plan.overload) if plan.plain else bound(plan)
                return function, True, fresh
    return lambda values: call_node(node, values), False, fresh


def predicted_meta(node: Node, items: list[Item]) -> Meta | None:
    """The form of a tensor that is made of sizes and a dtype, or with borders around another, where all is known."""
    if node.kind == "aten::constant_pad_nd":
        inner, borders = meta_of_item(items[0]), numbers_of(items[1])
        count = len(borders) // 2
        if not count or len(borders) % 2 or min(borders) < 0:
            return None
        if inner is None or not inner.is_contiguous or count > len(inner.shape) or 0 in inner.shape:    # others keep their memory order
            return None
        around = [*[0] * (len(inner.shape) - count), *[sum(borders[2 * place:2 * place + 2]) for place in reversed(range(count))]]
        return fresh_meta(inner.dtype, tuple(map(sum, zip(inner.shape, around, strict=True))))
    if node.kind not in ("aten::zeros", "aten::ones") or len(items) < 2 or not isinstance(items[1], Known):
        return None
    sizes, code = numbers_of(items[0]), items[1].value
    return fresh_meta(default_dtype if code is None else dtype_of(code), tuple(sizes)) if sizes and min(sizes) > 0 else None


def bound(plan: CallPlan) -> Visitor:
    """The call of an overload, with the arguments that are attributes or defaults filled in."""
    overload, arguments = plan.overload, plan.arguments
    return lambda values: overload(arguments(values))


def sum_to_size(overload: Overload) -> Visitor:
    """aten::sum_to_size, fast if the operand has the size already, as mostly in backward graphs."""
    def call(values: list[Any]) -> Any:
        x, size = values
        if type(x) is np.ndarray and type(size) is list and size and list(x.shape) == size:
            return x
        return overload(values)

    return call


def autograd_add(overload: Overload) -> Visitor:
    """prim::AutogradAdd, fast for two gradients of one dtype."""
    def call(values: list[Any]) -> Any:
        a, b = values
        if type(a) is type(b) is np.ndarray and a.dtype == b.dtype and a.ndim and b.ndim:
            try:
                return a + b
            except ValueError:
                return overload(values)
        return overload(values)

    return call


SHORTCUTS: dict[str, Callable[[Overload], Visitor]] = {"aten::sum_to_size": sum_to_size, "prim::AutogradAdd": autograd_add}
"""Operators of every backward graph, with a function that is fast in the usual case."""


def direct(overload: Overload) -> Visitor | None:
    """A call of the kernel for operands of exactly the schema's types, and of the overload for others. None: the kernel's results would
    need conversions."""
    schema = overload.schema
    wanted = [EXACT.get(argument.type.text) for argument in schema.arguments]
    if overload.mode != "plain" or overload.promote is not None or None in wanted or not 1 <= len(wanted) <= 3 or schema.is_vararg:
        return None
    if len(schema.returns) != 1 or "Tensor" in schema.returns[0].type.text:
        return None
    kernel = overload.kernel
    if len(wanted) == 1:
        (only,) = wanted

        def one(values: list[Any]) -> Any:
            if only is object or type(values[0]) is only:
                try:
                    return kernel(xp, values[0])
                except Exception:
                    return overload(values)
            return overload(values)
        return one

    def several(values: list[Any]) -> Any:
        for value, type_ in zip(values, wanted):
            if type(value) is not type_ and type_ is not object:
                return overload(values)
        try:
            return kernel(xp, *values)
        except Exception:
            return overload(values)

    return several
