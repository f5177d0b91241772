"""Gradient formulas as tapes run them: the forward half on the layer below, the backward half on any layer.

The forward half is the operation itself, then a graph that computes the values that the formula saves besides operands and results. If the
formula draws random numbers, its whole graph runs instead, since result and saved values must come from one draw.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from irtool.autodiff.formula_graphs import Formula, formula_of, is_unsteady
from irtool.dispatch.control_flow import DECIDES, Control, as_condition, is_undecided, logic, only_controls
from irtool.dispatch.custom_functions import WHOLE, run_custom
from irtool.interpret import Plan, walk
from irtool.ir.custom import CUSTOM_VJP
from irtool.ir.edits import clone_node
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.schema import Schema, forgets_kinds
from irtool.ir.structure_kinds import HANDING_ON, NO_ELEMENTS_ASKED
from irtool.ir.types import TensorType, TupleType
from irtool.ops import OPS
from irtool.ops.arrays import dtype_of
from irtool.ops.call import overload
from irtool.ops.nested_tensors import map_tensors, tensors_in
from irtool.ops.node_calls import call_node, plan_for
from irtool.ops.size_facts import ON_TENSORS
from irtool.ops.tensor import Tensor, wrapped

Apply = Callable[..., Any]


class Recipe:
    """The gradient formula of one overload, prepared for tapes."""

    __slots__ = ("schema", "formula", "saving", "wanted", "is_whole", "whole", "count", "is_later", "plans")

    def __init__(self, schema: Schema, formula: Formula) -> None:
        self.schema = schema
        self.formula = formula
        self.plans: dict[Block, Plan] = {}      # cached by `walk`; the formula's graphs never change
        self.count = len(formula.backward.inputs) - 1
        self.is_whole = any(map(is_unsteady, formula.graph.walk()))
        self.whole = formula.split()[0] if self.is_whole else None
        places: dict[Value, tuple[str, int]] = {value: ("arg", i) for i, value in enumerate(formula.graph.inputs)}
        places.update((value, ("result", i)) for i, value in enumerate(formula.results))
        saved = formula.context.node.inputs
        extra = [value for value in dict.fromkeys(saved) if value not in places]
        places.update((value, ("extra", i)) for i, value in enumerate(extra))
        self.wanted = [places[value] for value in saved]
        self.saving = _slice(formula, extra) if extra and not self.is_whole else None
        """The graph that computes saved values besides operands and results; None: there are none."""
        self.is_later = self.saving is not None and all(node.kind in NO_ELEMENTS_ASKED for node in self.saving.walk())
        """Does `saving` compute only sizes and dtypes, which the backward half can compute when it needs them?"""

    def forward(self, args: list[Any], apply: Apply) -> tuple[Any, Any]:
        """The results, and other saved values."""
        if self.whole is not None:
            *results, saved = interpreted(self.whole, list(args), apply, self.plans)[0]
            return (tuple(results) if len(results) > 1 else results[0]), saved
        result = apply(self.schema.name, args)
        if self.saving is None or self.is_later:
            return result, None
        return result, self.saved(args, result if isinstance(result, tuple) else (result,), None, apply)

    def saved(self, args: Sequence[Any], results: Sequence[Any], saved: Any, apply: Apply) -> Any:
        """The saved values besides operands and results, computed by `apply`."""
        if self.saving is None:
            return saved
        return interpreted(self.saving, [*args, *results], apply, self.plans)

    def backward(self, args: Sequence[Any], results: Sequence[Any], saved: Any, grads: Sequence[Any], apply: Apply) -> Sequence[Any]:
        """One gradient per operand; None: no gradient."""
        if self.is_later and saved is None:
            saved = self.saved(args, results, None, apply)
        if self.is_whole:
            context = saved
        else:
            sources = {"arg": args, "result": results, "extra": saved}
            context = tuple([sources[source][i] for source, i in self.wanted])
        turned = self.formula.is_conjugated or not any(dtype_of(each.dtype).kind == "c" for each in tensors_in([list(args), list(results)]))
        cotangents = [filled(grad if turned else conjugated(grad, apply), result, apply)
                 for grad, result in zip(grads[:self.count], results, strict=False)]
        if all(each is None for each in cotangents):
            return [None] * len(args)
        (gradients,) = interpreted(self.formula.backward, [context, *cotangents], apply, self.plans)
        if not isinstance(self.formula.backward.outputs[0].type, TupleType):
            gradients = (gradients,)
        return [self.fitted(grad if turned else conjugated(grad, apply), arg, apply) for grad, arg in zip(gradients, args, strict=True)]

    def fitted(self, grad: Any, arg: Any, apply: Apply) -> Any:
        """A gradient converted to the dtype of its operand; for a real operand, the real part."""
        if isinstance(grad, list | tuple):
            return [self.fitted(each, one, apply) for each, one in zip(grad, arg, strict=True)]
        if grad is None or not isinstance(arg, Tensor) or grad.dtype == arg.dtype:
            return grad
        if dtype_of(grad.dtype).kind == "c" and dtype_of(arg.dtype).kind != "c":
            grad = apply("aten::real", [grad])
        return grad if grad.dtype == arg.dtype else apply("aten::_to_copy", [grad, arg.dtype, None, None, None, False, None])


def filled(grad: Any, result: Any, apply: Apply) -> Any:
    """The gradient of a list, with zeros for tensors without one; None if no tensor has a gradient."""
    if not isinstance(grad, list | tuple):
        return grad
    if all(each is None for each in grad):
        return None
    return [apply("aten::zeros_like", [one, None, None, None, None, None]) if each is None else each
            for each, one in zip(grad, result, strict=True)]


def conjugated(grad: Any, apply: Apply) -> Any:
    """The conjugate of a gradient. Formulas multiply by the derivative; torch's gradient is the conjugate of their result for the
    conjugate of the cotangent."""
    return map_tensors(lambda each: apply("aten::conj_physical", [each]) if dtype_of(each.dtype).kind == "c" else each, grad)


def _slice(formula: Formula, values: list[Value]) -> Graph:
    """The part of a formula that computes `values` from operands and results."""
    graph = Graph(formula.graph.dialect)
    mapping = {value: graph.block.add_input(graph.fresh_id(), value.type) for value in (*formula.graph.inputs, *formula.results)}
    needed = formula.needed(tuple(values), frozenset(formula.results))
    for node in formula.graph.block:
        if node in needed:
            before = dict(mapping)
            clone_node(node, mapping, graph.block, graph)
            mapping.update((value, before[value]) for value in node.outputs if value in before)     # results are inputs of the slice
    graph.block.set_outputs([mapping[value] for value in values])
    return graph


_recipes: dict[str, Recipe | None] = forgets_kinds({})


def recipe_of(name: str) -> Recipe | None:
    """The recipe of an overload; None if it has no gradient. Raises UnsupportedError if its formula is missing."""
    if name not in _recipes:
        schema = overload(name).schema
        formula = formula_of(schema)
        _recipes[name] = None if formula is None else Recipe(schema, formula)
    return _recipes[name]


def interpreted(graph: Graph, values: list[Any], apply: Apply, plans: dict[Block, Plan] | None = None) -> list[Any]:
    """The outputs of a graph whose operations run by `apply`, a layer's method. plans: as for `walk`."""
    return walk(graph, values, caller(apply), closed=WHOLE, control=Control(apply, caller), plans=plans)


def caller(apply: Apply) -> Callable[[Node, list[Any]], Sequence[Any]]:
    """The function with which `irtool.interpret.walk` runs the nodes of a graph by a layer's `apply`."""
    def call(node: Node, values: list[Any]) -> Sequence[Any]:
        kind = node.kind
        if kind in DECIDES and is_undecided(values[0]) and only_controls(node.output):
            return (as_condition(values[0], apply),)
        if kind in ON_TENSORS and any(map(is_undecided, values)) and node.output.type.text == "bool":
            return (logic(kind, values, apply),)
        if kind == "prim::AutogradAdd":
            return (added(values[0], values[1], apply),)
        if kind.startswith("aten::") or kind.partition("::")[0] not in WITHOUT_LAYERS and OPS.of_kind(kind):
            if not any(True for _ in tensors_in(values)) and not _makes_tensors(node):
                return call_node(node, values)
            plan = plan_for(node)
            if plan is None:
                raise UnsupportedError(f"{kind} is not supported here yet", code="E0501")
            if plan.overload.op.family in PYTHON or kind in ("aten::__is__", "aten::__isnot__"):
                if any(isinstance(value, Tensor) for value in values):      # tensors as elements of lists and keys of dicts
                    return _results(node, plan.overload.op.kernel(np, *plan.arguments(values)))
                return call_node(node, values)
            return _results(node, apply(plan.overload.schema.name, list(plan.arguments(values))))
        if kind == CUSTOM_VJP:
            return run_custom(node, values, apply.__self__)     # type: ignore[attr-defined]
        if kind in OTHERS:
            return (OTHERS[kind](apply, values),)
        if kind in HANDING_ON and values:       # the same objects, since a list may have aliases
            return call_node(node, values)
        if kind in HANDING_ON or not any(True for _ in tensors_in(values)):
            return [wrapped(each) for each in call_node(node, values)]
        return _results(node, wrapped_call(node, values))
    return call


def added(a: Any, b: Any, apply: Apply) -> Any:
    """The sum of two gradients, element by element for lists; None is an undefined gradient."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, list):
        return [added(one, other, apply) for one, other in zip(a, b, strict=True)]
    return apply("aten::add.Tensor", [a, b, 1])


WITHOUT_LAYERS = ("prim", "irtool")
"""Name spaces of what the interpreter does by itself; the other operators go through the layers."""
PYTHON = frozenset(("list", "dict", "scalar", "string"))
"""Families of operators on Python values, which forward tensors in containers."""


def _reduced(apply: Apply, values: list[Any]) -> Any:
    """The sum of the products of the first half of the values with the second."""
    half = len(values) // 2
    products = [apply("aten::mm", [a, b]) for a, b in zip(values[:half], values[half:], strict=True)]
    return reduce(lambda a, b: apply("aten::add.Tensor", [a, b, 1]), products)


OTHERS: dict[str, Callable[[Apply, list[Any]], Any]] = {
    "prim::Guard": lambda apply, values: values[0],
    "prim::data": lambda apply, values: apply("aten::detach", values),
    "prim::VarConcat": lambda apply, values: apply("aten::cat", [values[:-1], values[-1]]),
    "prim::VarStack": lambda apply, values: apply("aten::stack", [values[:-1], values[-1]]),
    "prim::MMTreeReduce": _reduced,
}
"""Kind -> a function that runs it by other operators."""


def wrapped_call(node: Node, values: list[Any]) -> Any:
    """Run a node that reads facts of arrays (`prim::dtype`, `prim::device`) on the arrays at the bottom."""
    from irtool.dispatch.stack import elements_of

    results = call_node(node, [map_tensors(elements_of, value) for value in values])
    return results[0] if len(results) == 1 else tuple(results)


def _makes_tensors(node: Node) -> bool:
    return any(isinstance(value.type, TensorType) for value in node.outputs)


def _results(node: Node, result: Any) -> Sequence[Any]:
    count = len(node.outputs)
    if count == 1:
        return (result,)
    if isinstance(result, list | tuple) and len(result) == count:
        return tuple(result)
    return () if count == 0 else (result,)


__all__ = ["Recipe", "caller", "conjugated", "interpreted", "recipe_of"]
