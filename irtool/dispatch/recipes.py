"""Gradient formulas as tapes run them: the forward half on the layer below, the backward half on any layer.

The forward half is the operation itself, then a graph that computes the values that the formula saves besides operands and results. If the
formula draws random numbers, its whole graph runs instead, since result and saved values must come from one draw.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from irtool.analysis.liveness import remove_dead_nodes
from irtool.autodiff.formula_graphs import Formula, formula_of, is_unsteady
from irtool.autodiff.gradient_questions import QUESTIONS
from irtool.dispatch.control_flow import DECIDES, Control, as_condition, is_undecided, logic, only_controls
from irtool.dispatch.custom_functions import WHOLE, run_custom
from irtool.dispatch.gradients_off import switch
from irtool.dispatch.stack import Boxed, Layer, elements_of, is_floating
from irtool.interpret import Plan, walk
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.custom import CUSTOM_VJP
from irtool.ir.edits import clone_node
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.schema import Schema, forgets_kinds
from irtool.ir.structure_kinds import HANDING_ON, NO_ELEMENTS_ASKED
from irtool.ir.types import TensorType, TupleType
from irtool.ops import OPS
from irtool.ops.array_library import np
from irtool.ops.arrays import dtype_of, is_array
from irtool.ops.call import overload
from irtool.ops.kernels.prim import GRAD_MODE
from irtool.ops.nested_tensors import map_tensors, tensors_in
from irtool.ops.node_calls import call_node, plan_for
from irtool.ops.size_facts import ON_TENSORS
from irtool.ops.structure import Object, number_attribute
from irtool.ops.tensor import Tensor, wrapped

Apply = Callable[..., Any]
Way = Callable[[Apply, list[Any]], Sequence[Any]]
"""What runs one node: a function of a layer's `apply` and the operands."""
SWITCHES = frozenset(("prim::Enter", "prim::Exit", "aten::set_grad_enabled", "aten::is_grad_enabled"))
"""Kinds that switch gradients on and off (`torch.no_grad()`), or ask whether they are on."""
SCALARS = frozenset(("Scalar", "Scalar?", "Scalar[]"))
UNCHANGING = frozenset((int, float, bool, str, type(None)))


class Half:
    """The backward half of a formula for some of the operands: a graph from operands, results, saved values and gradients of results.

    read: which of these, counted through, the graph has as inputs; places: for each operand the output of the graph that is its gradient,
    None for no gradient; None instead of a list: the only output is a tuple of them all.
    """

    __slots__ = ("graph", "read", "places")

    def __init__(self, recipe: Recipe, needed: Sequence[bool]) -> None:
        formula = recipe.formula
        self.graph = graph = Graph(formula.backward.dialect)
        graph.source = formula.backward.source
        saved = formula.context.node.inputs
        sources = list(saved) if recipe.is_whole else [*formula.graph.inputs, *formula.results, *([] if recipe.is_later else recipe.extra)]
        inputs = [graph.block.add_input(graph.fresh_id(), value.type) for value in (*sources, *formula.backward.inputs[1:])]
        mapping = dict(zip(sources, inputs, strict=False))
        if recipe.is_later:
            _compute(formula, recipe.extra, mapping, graph)
        mapping.update(zip(formula.backward.inputs[1:], inputs[len(sources):], strict=True))
        context = formula.backward.inputs[0]
        for node in formula.backward.block:
            if context in node.inputs:
                mapping.update((value, mapping[source]) for value, source in zip(node.outputs, saved, strict=True))
            else:
                clone_node(node, mapping, graph.block, graph)
        output = formula.backward.outputs[0]
        gradients = output.node.inputs if output.node.kind == "prim::TupleConstruct" else (output,)
        is_tuple = isinstance(output.type, TupleType) and output.node.kind != "prim::TupleConstruct"
        self.places: list[int | None] | None = None
        if is_tuple:
            graph.block.set_outputs([mapping[output]])
        else:
            wanted = [is_needed and value.type.key not in ("None", "NoneType") for is_needed, value in zip(needed, gradients, strict=True)]
            self.places = [sum(wanted[:place]) if each else None for place, each in enumerate(wanted)]
            graph.block.set_outputs([mapping[value] for value, each in zip(gradients, wanted, strict=True) if each])
        remove_dead_nodes(graph)
        self.read = [place for place, value in enumerate(inputs) if value.has_uses]
        for place in reversed(range(len(inputs))):
            if not inputs[place].has_uses:
                graph.block.remove_input(place)


class Recipe:
    """The gradient formula of one overload, prepared for tapes."""

    __slots__ = ("schema", "formula", "saving", "extra", "is_whole", "whole", "count", "is_later", "scalars", "plans", "ways", "halves")

    def __init__(self, schema: Schema, formula: Formula) -> None:
        self.schema = schema
        self.formula = formula
        self.plans: dict[Block, Plan] = {}      # cached by `walk`; the formula's graphs never change
        self.ways: dict[Node, Way] = {}
        self.halves: dict[tuple[bool, ...], Half] = {}
        self.count = len(formula.backward.inputs) - 1
        self.is_whole = any(map(is_unsteady, formula.graph.walk()))
        self.whole = formula.split()[0] if self.is_whole else None
        known = (*formula.graph.inputs, *formula.results)
        self.extra = [value for value in dict.fromkeys(formula.context.node.inputs) if value not in known]
        """Saved values besides operands and results."""
        self.saving = _slice(formula, self.extra) if self.extra and not self.is_whole else None
        """The graph that computes them; None: there are none."""
        self.is_later = self.saving is not None and all(node.kind in NO_ELEMENTS_ASKED for node in self.saving.walk())
        """Does `saving` compute only sizes and dtypes, which the backward half can compute when it needs them?"""
        self.scalars = frozenset(place for place, each in enumerate(schema.arguments) if each.type.key in SCALARS)
        """Positions of the operands that are numbers of any class, or lists of them."""

    def forward(self, args: list[Any], apply: Apply) -> tuple[Any, Any]:
        """The results, and other saved values."""
        if self.whole is not None:
            *results, saved = self.run(self.whole, list(self.counted(args)), apply)[0]
            return (tuple(results) if len(results) > 1 else results[0]), saved
        result = apply(self.schema.name, args)
        if self.saving is None or self.is_later:
            return result, None
        return result, self.saved(args, result if isinstance(result, tuple) else (result,), None, apply)

    def run(self, graph: Graph, values: list[Any], apply: Apply) -> list[Any]:
        """The outputs of one of the recipe's graphs."""
        return interpreted(graph, values, apply, self.plans, self.ways)

    def saved(self, args: Sequence[Any], results: Sequence[Any], saved: Any, apply: Apply) -> Any:
        """The saved values besides operands and results, computed by `apply`; None if the backward half computes them."""
        return saved if self.saving is None or self.is_later else self.run(self.saving, [*self.counted(args), *results], apply)

    def counted(self, args: Sequence[Any]) -> Sequence[Any]:
        """The operands with 1 and 0 for True and False (`x ** True`): formulas do arithmetic, and TorchScript has none on bools."""
        if not self.scalars:
            return args
        return [as_number(each) if place in self.scalars else each for place, each in enumerate(args)]

    def backward(self, args: Sequence[Any], results: Sequence[Any], saved: Any, grads: Sequence[Any], apply: Apply,
                 needed: tuple[bool, ...], is_fitted: bool = True) -> Sequence[Any]:
        """One gradient per operand; None: no gradient. needed: for each operand whether its gradient is needed. is_fitted: convert the
        gradients to the dtypes of operands."""
        turned = self.formula.is_conjugated or not any(dtype_of(each.dtype).kind == "c" for each in tensors_in([list(args), list(results)]))
        cotangents = [filled(grad if turned else conjugated(grad, apply), result, apply)
                 for grad, result in zip(grads[:self.count], results, strict=False)]
        if all(each is None for each in cotangents):
            return [None] * len(args)
        half = self.half(needed)
        values = [*saved, *cotangents] if self.is_whole else [*self.counted(args), *results, *(saved or ()), *cotangents]
        outputs = self.run(half.graph, [values[place] for place in half.read], apply)
        gradients = outputs[0] if half.places is None else [None if place is None else outputs[place] for place in half.places]
        gradients = gradients if turned else [conjugated(grad, apply) for grad in gradients]
        return [fitted(grad, arg, apply, is_fitted) for grad, arg in zip(gradients, args, strict=True)]

    def half(self, needed: tuple[bool, ...]) -> Half:
        """The backward half for the operands whose gradients are needed."""
        half = self.halves.get(needed)
        if half is None:
            half = self.halves[needed] = Half(self, needed)
        return half


def as_number(value: Any) -> Any:
    """A number, or a list of them, with 1 and 0 for True and False."""
    if isinstance(value, list):
        return [as_number(each) for each in value]
    return int(value) if isinstance(value, bool) else value


def fitted(grad: Any, arg: Any, apply: Apply, is_converted: bool = True) -> Any:
    """A gradient for a real operand made real; converted to the dtype of its operand, if `is_converted`."""
    if isinstance(grad, list | tuple):
        return [fitted(each, one, apply, is_converted) for each, one in zip(grad, arg, strict=True)]
    if grad is None or not isinstance(arg, Tensor) or grad.dtype == arg.dtype:
        return grad
    if dtype_of(grad.dtype).kind == "c" and dtype_of(arg.dtype).kind != "c":
        grad = apply("aten::real", [grad])
    if grad.dtype == arg.dtype or not is_converted:
        return grad
    return apply("aten::_to_copy", [grad, arg.dtype, None, None, None, False, None])


def filled(grad: Any, result: Any, apply: Apply) -> Any:
    """The gradient of a list, with zeros for tensors without one; None if no tensor has a gradient. In a tuple they stay undefined."""
    if not isinstance(grad, list | tuple):
        return grad
    parts = [filled(each, one, apply) for each, one in zip(grad, result, strict=True)]
    if isinstance(grad, tuple):
        return tuple(parts)
    if all(each is None for each in parts):
        return None
    return [apply("aten::zeros_like", [one, None, None, None, None, None]) if each is None and isinstance(one, Tensor) else each
            for each, one in zip(parts, result, strict=True)]


def conjugated(grad: Any, apply: Apply) -> Any:
    """The conjugate of a gradient. Formulas multiply by the derivative; torch's gradient is the conjugate of their result for the
    conjugate of the cotangent."""
    return map_tensors(lambda each: apply("aten::conj_physical", [each]) if dtype_of(each.dtype).kind == "c" else each, grad)


def _slice(formula: Formula, values: list[Value]) -> Graph:
    """The part of a formula that computes `values` from operands and results."""
    graph = Graph(formula.graph.dialect)
    mapping = {value: graph.block.add_input(graph.fresh_id(), value.type) for value in (*formula.graph.inputs, *formula.results)}
    _compute(formula, values, mapping, graph)
    graph.block.set_outputs([mapping[value] for value in values])
    return graph


def _compute(formula: Formula, values: list[Value], mapping: dict[Value, Value], graph: Graph) -> None:
    """Append the nodes of a formula that compute `values` from operands and results, which are in `mapping`."""
    needed = formula.needed(tuple(values), frozenset(formula.results))
    for node in formula.graph.block:
        if node in needed:
            before = dict(mapping)
            clone_node(node, mapping, graph.block, graph)
            mapping.update((value, before[value]) for value in node.outputs if value in before)     # results are inputs of the slice


_recipes: dict[str, Recipe | None] = forgets_kinds({})


def recipe_of(name: str) -> Recipe | None:
    """The recipe of an overload; None if it has no gradient. Raises UnsupportedError if its formula is missing."""
    if name not in _recipes:
        schema = overload(name).schema
        formula = formula_of(schema)
        _recipes[name] = None if formula is None else Recipe(schema, formula)
    return _recipes[name]


def interpreted(graph: Graph, values: list[Any], apply: Apply, plans: dict[Block, Plan] | None = None,
                ways: dict[Node, Way] | None = None) -> list[Any]:
    """The outputs of a graph whose operations run by `apply`, a layer's method. plans: as for `walk`; ways: as for `caller`."""
    call = partial(caller, ways={} if ways is None else ways)
    return walk(graph, values, call(apply), closed=WHOLE, control=Control(apply, call), plans=plans)


def caller(apply: Apply, ways: dict[Node, Way]) -> Callable[[Node, list[Any]], Sequence[Any]]:
    """The function with which `irtool.interpret.walk` runs the nodes of a graph by a layer's `apply`. ways: a cache of what each node runs
    by, for further walks of the graph, which must not change.
    """
    def call(node: Node, values: list[Any]) -> Sequence[Any]:
        way = ways.get(node)
        if way is None:
            way = ways[node] = way_of(node)
        return way(apply, values)
    return call


def way_of(node: Node) -> Way:
    """The function of a layer's `apply` and the operands that runs a node."""
    kind = node.kind
    if kind in DECIDES:
        run = _by_layers(node)
        return lambda apply, values: (as_condition(values[0], apply),) if is_undecided(values[0]) and only_controls(node.output) \
            else run(apply, values)
    if kind in ON_TENSORS and node.output.type.text == "bool":
        run = _by_layers(node)
        return lambda apply, values: (logic(kind, values, apply),) if any(map(is_undecided, values)) else run(apply, values)
    if kind in SWITCHES:
        return partial(_switch, node)
    if kind in QUESTIONS:
        name = kind.partition("::")[2]
        return lambda apply, values: (getattr(values[0], name),) if isinstance(values[0], Tensor) else call_node(node, values)
    if kind == "prim::AutogradAdd":
        return lambda apply, values: (added(values[0], values[1], apply),)
    if kind.startswith(("aten::", "prim::abs")) or kind.partition("::")[0] not in WITHOUT_LAYERS and OPS.of_kind(kind):
        return _by_layers(node)
    if kind == CUSTOM_VJP:
        return lambda apply, values: run_custom(node, values, apply.__self__)     # type: ignore[attr-defined]
    if kind == "prim::ConstantChunk":
        chunks, dim = number_attribute(node, "chunks"), number_attribute(node, "dim")
        return lambda apply, values: tuple(apply("aten::chunk", [values[0], chunks, dim]))
    if kind in CHECKS:
        return lambda apply, values: (*values, wrapped_call(node, values)[-1])
    if kind in OTHERS:
        return lambda apply, values: (OTHERS[kind](apply, values),)
    if kind in CONSTANT_KINDS and len(node.outputs) == 1 and (results := call_node(node, []))[0].__class__ in UNCHANGING:
        return lambda apply, values: results
    return partial(_without_layers, node)


def _switch(node: Node, apply: Apply, values: list[Any]) -> Sequence[Any]:
    """Run a node that switches gradients on or off, or asks whether they are on: under layers, the mode is theirs."""
    layer: Layer = apply.__self__       # type: ignore[attr-defined]
    if layer.inner is None:
        return call_node(node, values)
    with GRAD_MODE.fresh(layer.mode):
        results = call_node(node, values)
        if GRAD_MODE.is_on != layer.mode:
            switch(layer, GRAD_MODE.is_on)
    return results


def _by_layers(node: Node) -> Way:
    """For an operator: by `apply`, unless no tensor takes part or it is one on Python's lists and numbers."""
    kind = node.kind
    plan = plan_for(node)
    makes_tensors = any(isinstance(value.type, TensorType) for value in node.outputs)
    is_python = plan is not None and (plan.overload.op.family in PYTHON or kind in ("aten::__is__", "aten::__isnot__"))

    def run(apply: Apply, values: list[Any]) -> Sequence[Any]:
        if not makes_tensors and not any(True for _ in tensors_in(values)):
            return call_node(node, values)
        if plan is None:
            raise UnsupportedError(f"{kind} is not supported here yet", code="E0501")
        if not is_python:
            return _results(node, apply(plan.overload.schema.name, list(plan.arguments(values))))
        if any(isinstance(value, Tensor) for value in values):      # tensors as elements of lists and keys of dicts
            return _results(node, plan.overload.op.kernel(np, *plan.arguments(values)))
        return call_node(node, values)
    return run


def _without_layers(node: Node, apply: Apply, values: list[Any]) -> Sequence[Any]:
    if node.kind in HANDING_ON and values:       # the same objects, since a list may have aliases
        return call_node(node, values)
    if node.kind == "prim::GetAttr":        # instances made outside of the graph have attributes of arrays
        return [wrapped(each) if has_arrays(each) else each for each in call_node(node, values)]
    if node.kind in HANDING_ON or not any(True for _ in tensors_in(values)):
        return [wrapped(each) for each in call_node(node, values)]
    results = wrapped_call(node, values)
    if any(is_floating(each) for each in tensors_in(results)) and any(isinstance(each, Boxed) for each in tensors_in(values)):
        raise UnsupportedError(f"{node.kind} is not supported here yet: layers do not see what it computes", code="E0501")
    return _results(node, results)


def added(a: Any, b: Any, apply: Apply) -> Any:
    """The sum of two gradients, element by element for lists; None is an undefined gradient."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, list):
        return [added(one, other, apply) for one, other in zip(a, b, strict=True)]
    return apply("aten::add.Tensor", [a, b, 1])


WITHOUT_LAYERS = ("prim", "irtool")
"""Namespaces of kinds that the interpreter runs itself; the other operators go through the layers."""
PYTHON = frozenset(("list", "dict", "scalar", "string"))
"""Families of operators on Python values, which forward tensors in containers."""


def _reduced(apply: Apply, values: list[Any]) -> Any:
    """The sum of the products of the first half of the values with the second."""
    half = len(values) // 2
    products = [apply("aten::mm", [a, b]) for a, b in zip(values[:half], values[half:], strict=True)]
    return reduce(lambda a, b: apply("aten::add.Tensor", [a, b, 1]), products)


CHECKS = ("prim::TypeCheck", "prim::RequiresGradCheck")
"""Kinds that hand on their operands, and say whether these fit the types that were observed."""
OTHERS: dict[str, Callable[[Apply, list[Any]], Any]] = {
    "prim::Guard": lambda apply, values: values[0],
    "prim::profile_ivalue": lambda apply, values: values[0],
    "prim::data": lambda apply, values: apply("aten::detach", values),
    "prim::VarConcat": lambda apply, values: apply("aten::cat", [values[:-1], values[-1]]),
    "prim::VarStack": lambda apply, values: apply("aten::stack", [values[:-1], values[-1]]),
    "prim::MMTreeReduce": _reduced,
}
"""Kind -> a function that runs it by other operators."""


def wrapped_call(node: Node, values: list[Any]) -> Any:
    """Run a node that reads facts of arrays (`prim::dtype`, `prim::device`) on the arrays at the bottom."""
    results = [wrapped(each) for each in call_node(node, [map_tensors(elements_of, value) for value in values])]
    return results[0] if len(results) == 1 else tuple(results)


def has_arrays(value: Any) -> bool:
    """Is there an array without a handle in a value?"""
    if isinstance(value, list | tuple):
        return any(map(has_arrays, value))
    if isinstance(value, dict):
        return any(map(has_arrays, value.values()))
    return has_arrays(value.attributes) if isinstance(value, Object) else is_array(value) or isinstance(value, np.generic)


def _results(node: Node, result: Any) -> Sequence[Any]:
    count = len(node.outputs)
    if count == 1:
        return (result,)
    if isinstance(result, list | tuple) and len(result) == count:
        return tuple(result)
    return () if count == 0 else (result,)
