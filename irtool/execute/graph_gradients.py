"""Gradients of a graph on arrays: differentiate it, run f, pass its captures to df, run df.

A graph that cannot be differentiated as a whole is interpreted on a tape, node by node; the same inputs have gradients either way.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from irtool.accepted_values import accept, takes_objects
from irtool.analysis.liveness import remove_dead_nodes
from irtool.autodiff.gradient_modes import settle_grad_mode
from irtool.autodiff.groups import open_groups
from irtool.autodiff.inlined_forks import without_forks
from irtool.autodiff.reverse import Reverse, differentiate_graph
from irtool.autodiff.unread_writes import without_writes
from irtool.autodiff.versions import in_versions
from irtool.execute.mixed_dtypes import may_mix
from irtool.execute.output_cotangents import as_seed, conjugate, distributed, parts_of
from irtool.execute.phases import forget_shapes
from irtool.interpret import run
from irtool.ir.arguments import ONE_PER_OUTPUT, check_graph, check_inputs, check_list, positions
from irtool.ir.constants import constant, is_constant
from irtool.ir.edits import clone_graph
from irtool.ir.effects import MUTATORS
from irtool.ir.errors import PassError, RunError, UnsupportedError
from irtool.ir.graph import RETURN, Graph, Node, Value
from irtool.ir.module import Module
from irtool.ir.structure_kinds import CONSTRUCTS
from irtool.ir.types import ListType, OptionalType, TupleType, Type
from irtool.ir.verify import explained
from irtool.ops.array_library import np
from irtool.ops.arrays import is_array, namespace_for, namespace_of, on_this_device, using
from irtool.passes.lower_tuples import lower_tuples

if TYPE_CHECKING:
    from irtool.execute.executor import Executor


def vjp(graph: Graph | Module, inputs: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int]) -> list[Any]:
    """Gradients by reverse differentiation: one array per index in `wrt` (a list of them for a list), None where no gradient can reach.

    cotangents: one per tensor of the outputs, those of tuples, lists and dicts in order, or trees of them
    (`irtool.execute.output_cotangents`); None: the output takes no part.
    `wrt` alone decides what needs a gradient, whatever `requires_grad=0` the types say. A gradient has the dtype and shape of its input.
    Raises UnsupportedError naming an operator that has no gradient yet; RunError for wrong inputs and cotangents.
    """
    graph = check_graph("vjp", graph)
    check_inputs("vjp", graph, inputs)
    check_list("vjp", "cotangents", cotangents, ONE_PER_OUTPUT)
    if takes_objects(graph):
        from irtool.execute.objects import Unfolded  # which imports the executor

        unfolded = Unfolded(graph)
        values, places = unfolded.values(inputs), unfolded.positions(wrt)
        differentiable = [place for place in places if may_have_gradient(values[place])]
        of_these = Differentiated(unfolded.graph, differentiable, values).gradients(values, cotangents)
        gradients = dict(zip(differentiable, of_these, strict=True))
        return unfolded.gathered(wrt, [gradients.get(place) for place in places])
    return Differentiated(graph, wrt, inputs).gradients(inputs, cotangents)


def wanted(where: str, wrt: Any, graph: Graph, values: Sequence[Any]) -> tuple[int, ...]:
    """The positions of the inputs that `wrt` names. Raises RunError for a name of no input, and for numbers and tensors of integers."""
    chosen = positions(where, wrt, graph)
    for place in chosen:
        value = values[place] if place < len(values) else None
        if value.__class__ is np.ndarray and value.dtype.kind == "f":       # the usual case, first
            continue
        if isinstance(value, int | float | complex | str) or is_array(value) and value.dtype.kind not in "fc":
            declared = graph.inputs[place]
            raise RunError(f"{where}: wrt names input {place} (%{declared.name} : {declared.type}), which has no gradient: "
                           f"only tensors of floating-point and complex numbers have, it is {kind_of(value)}", code="E0506")
    return chosen


def may_have_gradient(value: Any) -> bool:
    """Is a value a floating-point or complex tensor, or a list, tuple or dict that contains one?"""
    if isinstance(value, list | tuple | dict):
        return any(map(may_have_gradient, parts_of(value)))
    return is_array(value) and value.dtype.kind in "fc"


def kind_of(value: Any) -> str:
    """`a tensor of int64`, `an int`."""
    return f"a tensor of {value.dtype}" if is_array(value) else f"the {type(value).__name__} {str(value)[:40]}"


class Differentiated:
    """A graph differentiated once, for some of its inputs; `gradients` may be called many times.

    sample: example inputs, which have the sizes and dtypes of those to come, whatever the types say. If operators mix dtypes on them, df
    converts gradients to the dtypes of their values.
    """

    def __init__(self, graph: Graph | Module, wrt: Sequence[int], sample: Sequence[Any] | None = None) -> None:
        if isinstance(graph, Module):
            graph = graph.graph()
        graph = without_forks(graph)
        self.wrt = wanted("vjp", wrt, graph, () if sample is None else sample)
        if sample is not None and not graph.dialect.attribute_arguments:    # a trace's types say what it saw, which may not be the sample
            graph = clone_graph(graph)
            forget_shapes(graph)
        self.count = len(graph.inputs)
        with explained(graph):
            f, self.outline = prepared_with_outline(graph)
        dtypes = {}
        if sample is not None and len(sample) == self.count and may_mix(f, sample):
            from irtool.execute.plan.predicted_dtypes import predicted_dtypes  # here, since in most graphs no dtypes mix

            dtypes = predicted_dtypes(f, sample)
        self.pair: Reverse | None = None
        self.tape: Executor | None = None
        try:
            with explained(graph):
                self.pair = differentiate_graph(f, [index in wrt for index in range(self.count)], True, dtypes=dtypes)
        except UnsupportedError:
            from irtool.execute.compilation import Options
            from irtool.execute.executor import Executor

            self.tape = Executor(graph, Options(optimize=False))

    def gradients(self, inputs: Sequence[Any], cotangents: Sequence[Any], seed: int = 0) -> list[Any]:
        """As `vjp`; random operators draw from a generator seeded with `seed`."""
        if len(inputs) != self.count:
            raise RunError(f"expected {self.count} inputs, got {len(inputs)}", code="E0402")
        with using(namespace_for(inputs)):      # CuPy if an input is on a device
            if self.pair is None:
                assert self.tape is not None
                return self.tape.vjp(inputs, cotangents, self.wrt, seed=seed)
            _, gradients = run_pair(self.pair, inputs, cotangents, seed, self.outline)
            return [fitted(gradients[index], inputs[index]) if index in gradients else None for index in self.wrt]


def prepared(graph: Graph) -> Graph:
    """A copy that returns no tuples and does not write in place, as far as possible."""
    return prepared_with_outline(graph)[0]


def prepared_with_outline(graph: Graph) -> tuple[Graph, list[Outline]]:
    """The same, and for each output of the graph an outline: how it is built from results of the copy."""
    f = without_tuples(graph)
    open_groups(f)
    is_settled = settle_grad_mode(f)
    results = iter(f.outputs)
    outline = [outline_of(value.type, results) for value in graph.outputs]
    f.block.set_outputs([each for part in outline for each in leaves_of_outline(part)])
    remove_dead_nodes(f)        # of tuples that were taken apart: what they hold would count as having another name
    if is_settled:      # else a write where gradients are off, which keeps the gradient of what it writes into, would become a constant
        without_writes(f)
        f = in_versions(f)
    remove_dead_nodes(f)
    return f, outline


def without_tuples(graph: Graph) -> Graph:
    """A copy without tuples; if one cannot be lowered, loop-carried tuples and tuples returned by branches stay."""
    f = clone_graph(graph)
    if any(isinstance(value.type, TupleType) for node in f.walk() if node.blocks for value in node.outputs) and not any(
            isinstance(value.type, TupleType) for value in f.inputs):
        try:
            lower_tuples(f, all=True)
            return f
        except PassError:       # a tuple that cannot be taken apart
            f = clone_graph(graph)
    lower_tuples(f)
    return f


def is_construct(value: Value) -> bool:
    """Is a value a tuple or list that one node constructs, and to which no node adds afterwards, under this name or another?"""
    node = value.node
    if node.kind not in CONSTRUCTS or any(user.kind in MUTATORS for user, _ in value.uses):
        return False
    graph = node.graph
    return all(is_in_place(user, value) for user, _ in value.uses) or graph is not None and not any(
        each.kind in MUTATORS for each in graph.walk())


def is_in_place(user: Node, value: Value) -> bool:
    """Does this user of a list keep no reference to it? True for results of the graph, tuples of them, operators that return no list."""
    if user.kind == RETURN:
        graph = value.node.graph
        return graph is not None and user is graph.block.return_node
    if user.kind in CONSTRUCTS:
        return user.kind == "prim::TupleConstruct" and is_only_result(user.output)
    return not any(isinstance(each.type, ListType | TupleType | OptionalType) or each.type.key == "Any" for each in user.outputs)


def is_dict_construct(value: Value) -> bool:
    """Is a value a dict that one node constructs with different constant keys, and that only the results of the graph hold?"""
    node = value.node
    if node.kind != "prim::DictConstruct" or not is_only_result(value) or not all(map(is_constant, node.inputs[::2])):
        return False
    keys = [constant(key) for key in node.inputs[::2]]
    return all(isinstance(key, str | int) for key in keys) and len(set(keys)) == len(keys)


def is_only_result(value: Value) -> bool:
    """Is a value used only as a result of the graph, or in tuples that are?"""
    return all(user.kind == RETURN or user.kind == "prim::TupleConstruct" and is_only_result(user.output) for user, _ in value.uses)


Outline = Value | list[Any] | dict[Any, Any]
"""An output of a graph: a value, or a list or dict of outlines."""


def outline_of(type: Type, results: Iterator[Value]) -> Outline:
    """The outline of an output of a type; takes the next result, or several, where a tuple was taken apart."""
    value = next(results)
    if not isinstance(type, TupleType) or isinstance(value.type, TupleType):
        return outline_of_value(value)
    rest = chain((value,), results)
    return [outline_of(each, rest) for each in type.elements]


def outline_of_value(value: Value) -> Outline:
    """The outline of a value: of its parts, if the node that constructs it is known; else the value itself."""
    parts = value.node.inputs
    if is_construct(value):
        return [outline_of_value(each) for each in parts]
    if is_dict_construct(value):
        return {constant(key): outline_of_value(each) for key, each in zip(parts[::2], parts[1::2], strict=True)}
    return value


def leaves_of_outline(outline: Outline) -> list[Any]:
    """The values in an outline, in order."""
    return [each for part in parts_of(outline) for each in leaves_of_outline(part)] if isinstance(outline, list | dict) else [outline]


def filled_in(outline: Outline, results: Iterator[Any]) -> Any:
    """The output that an outline describes, from the results of a run."""
    if isinstance(outline, dict):
        return {key: filled_in(part, results) for key, part in outline.items()}
    return [filled_in(part, results) for part in outline] if isinstance(outline, list) else next(results)


def spread_over(outline: Outline, cotangent: Any) -> list[Any]:
    """The cotangents of the values in an outline, in order, from the cotangent of the output."""
    if isinstance(outline, dict):
        return [each for key, part in outline.items() for each in spread_over(part, cotangent[key])]
    if isinstance(outline, list):
        return [each for part, one in zip(outline, cotangent, strict=True) for each in spread_over(part, one)]
    return [cotangent]


def run_pair(pair: Reverse, inputs: Sequence[Any], cotangents: Sequence[Any], seed: int = 0,
             outline: list[Outline] | None = None) -> tuple[list[Any], dict[int, Any]]:
    """Run f, then df on `cotangents` (one per leaf of f's real outputs): the real outputs, and gradients by input index.

    An undefined gradient is None. outline: how the outputs that have cotangents are built from those of f.
    """
    outputs = run(pair.f, inputs, seed=seed)
    real = outputs[:pair.real_outputs]
    if outline is None:
        per_output = distributed(real, cotangents)
    else:
        per_output = spread_over(outline, distributed(filled_in(outline, iter(real)), cotangents))
    seeds = [as_seed(per_output[index], outputs[index]) if index < pair.real_outputs else None for index in pair.input_vjps]
    captured = [accept(inputs[i], declared) for i, declared in zip(pair.captured_inputs, pair.df.inputs[len(seeds):], strict=False)]
    values = [*seeds, *captured, *[outputs[i] for i in pair.captured_outputs]]      # lists that f saved may hold None
    return real, dict(zip(pair.output_vjps, run(pair.df, values, seed=seed, accepted=True), strict=True))


def fitted(gradient: Any, value: Any) -> Any:
    """A gradient with the dtype and shape of its input `value`; zeros if it is undefined; None for an input without a gradient."""
    if isinstance(value, dict):
        return {key: fitted(gradient[key] if isinstance(gradient, dict) else None, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        pieces = gradient if isinstance(gradient, list | tuple) else [None] * len(value)
        return [fitted(piece, each) for piece, each in zip(pieces, value, strict=True)]
    array = on_this_device(value)
    dtype = array.dtype if array.dtype.kind in "fc" else np.dtype(np.float32) if array.dtype.name == "bfloat16" else None
    if dtype is None:
        return None
    if gradient is None:
        return namespace_of(array).zeros(array.shape, dtype)
    result = conjugate(on_this_device(gradient))
    if result.dtype.kind == "c" and dtype.kind != "c":
        result = result.real
    if result.shape != array.shape:
        result = summed(result, array.shape)
    with np.errstate(all="ignore"):     # numbers beyond the range of the input's dtype become infinite
        return on_this_device(result.astype(dtype, copy=False))       # of a tensor without dimensions NumPy makes numbers


def summed(gradient: Any, shape: tuple[int, ...]) -> Any:
    """A gradient summed over the dimensions in which `shape` was broadcast."""
    extra = gradient.ndim - len(shape)
    if extra < 0:
        return namespace_of(gradient).broadcast_to(gradient, shape)
    gradient = gradient.sum(axis=tuple(range(extra))) if extra else gradient
    axes = tuple([i for i, size in enumerate(shape) if size == 1 and gradient.shape[i] != 1])
    gradient = gradient.sum(axis=axes, keepdims=True) if axes else gradient
    if gradient.shape != shape and gradient.size == int(np.prod(shape, dtype=np.int64)):
        raise UnsupportedError(f"a gradient of shape {gradient.shape} for an input of shape {shape}", code="E0501")
    return gradient
