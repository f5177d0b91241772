"""Gradients of a graph on arrays: differentiate it, run f, wire the captured values, run df."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from irtool.execute.dtypes import may_mix, observed_dtypes
from irtool.interpret import run
from irtool.ir.arguments import ONE_PER_OUTPUT, check_graph, check_inputs, check_list, positions
from irtool.ir.errors import PassError, RunError, UnsupportedError
from irtool.ir.graph import Graph, Value
from irtool.ir.liveness import remove_dead_nodes
from irtool.ir.module import Module
from irtool.ir.rewrite import clone_graph
from irtool.ir.types import TupleType
from irtool.ops.arrays import here, is_array, namespace_for, namespace_of, using
from irtool.passes.lower_tuples import lower_tuples
from irtool.script.inlining import MUTATORS
from irtool.script.reverse import Reverse, differentiate_graph
from irtool.script.versions import in_versions
from irtool.script.writes import without_writes

CONSTRUCTS = ("prim::TupleConstruct", "prim::ListConstruct")


def vjp(graph: Graph | Module, inputs: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int]) -> list[Any]:
    """Gradients by reverse differentiation: one array per index in `wrt` (a list of them for a list), None where no gradient can reach.

    cotangents: one per output of the graph, tensors in tuples and lists counted one by one; None: the output takes no part.
    `wrt` alone decides what needs a gradient, whatever `requires_grad=0` the types say. A gradient has the dtype and shape of its input.
    Raises UnsupportedError naming an operator whose gradient is not there yet; RunError for wrong inputs and cotangents.
    """
    graph = check_graph("vjp", graph)
    check_inputs("vjp", graph, inputs)
    check_list("vjp", "cotangents", cotangents, ONE_PER_OUTPUT)
    return Differentiated(graph, wrt, inputs).gradients(inputs, cotangents)


def wanted(where: str, wrt: Any, graph: Graph, values: Sequence[Any]) -> tuple[int, ...]:
    """The inputs that `wrt` names, by position. Raises RunError for what names none, and for numbers, whole ones in tensors too."""
    chosen = positions(where, wrt, graph)
    for place in chosen:
        value = values[place] if place < len(values) else None
        if value.__class__ is np.ndarray and value.dtype.kind == "f":       # as nearly all are
            continue
        if isinstance(value, int | float | complex | str) or is_array(value) and value.dtype.kind not in "fc":
            declared = graph.inputs[place]
            raise RunError(f"{where}: wrt names input {place} (%{declared.name} : {declared.type}), which has no gradient: "
                           f"only tensors of floating-point and complex numbers have, it is {kind_of(value)}")
    return chosen


def kind_of(value: Any) -> str:
    """`a tensor of int64`, `an int`."""
    return f"a tensor of {value.dtype}" if is_array(value) else f"the {type(value).__name__} {str(value)[:40]}"


class Differentiated:
    """A graph differentiated once, for some of its inputs; `gradients` runs it as often as wanted.

    sample: inputs such as will be given; where they make several dtypes meet, gradients are converted back on the way.
    """

    def __init__(self, graph: Graph | Module, wrt: Sequence[int], sample: Sequence[Any] | None = None) -> None:
        if isinstance(graph, Module):
            graph = graph.graph()
        self.wrt = wanted("vjp", wrt, graph, () if sample is None else sample)
        self.count = len(graph.inputs)
        f = prepared(graph)
        dtypes = {}
        if sample is not None and len(sample) == self.count and may_mix(f, sample):
            dtypes = observed_dtypes(f, sample)
        self.pair = differentiate_graph(f, [index in wrt for index in range(self.count)], True, dtypes=dtypes)

    def gradients(self, inputs: Sequence[Any], cotangents: Sequence[Any], seed: int = 0) -> list[Any]:
        """As `vjp`; random operators draw from a generator seeded with `seed`."""
        if len(inputs) != self.count:
            raise RunError(f"expected {self.count} inputs, got {len(inputs)}")
        with using(namespace_for(inputs)):      # that of an array on a device, if there is one
            _, found = run_pair(self.pair, inputs, cotangents, seed)
            return [fitted(found[index], inputs[index]) if index in found else None for index in self.wrt]


def prepared(graph: Graph) -> Graph:
    """A copy that gives its results one by one and writes into nothing, as far as that can be had."""
    f = without_tuples(graph)
    outputs = list(f.outputs)
    while any(map(is_construct, outputs)):
        outputs = [each for value in outputs for each in (value.node.inputs if is_construct(value) else (value,))]
    f.block.set_outputs(outputs)
    without_writes(f)
    f = in_versions(f)
    remove_dead_nodes(f)
    return f


def without_tuples(graph: Graph) -> Graph:
    """A copy with fewer tuples, without those that loops carry and branches give where that can be had."""
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
    """Is it a tuple or list put together by one node, to which nothing is added afterwards?"""
    return value.node.kind in CONSTRUCTS and not any(user.kind in MUTATORS for user, _ in value.uses)


def run_pair(pair: Reverse, inputs: Sequence[Any], cotangents: Sequence[Any], seed: int = 0) -> tuple[list[Any], dict[int, Any]]:
    """Run f, then df on `cotangents` (one per leaf of f's real outputs): the real outputs, and gradients by input index.

    A gradient is None where it turned out to be undefined.
    """
    outputs = run(pair.f, inputs, seed=seed)
    real = outputs[:pair.real_outputs]
    given = distributed(real, list(cotangents))
    seeds = [as_seed(given[index], outputs[index]) if index < pair.real_outputs else None for index in pair.input_vjps]
    values = [*seeds, *[inputs[i] for i in pair.captured_inputs], *[outputs[i] for i in pair.captured_outputs]]
    return real, dict(zip(pair.output_vjps, run(pair.df, values, seed=seed), strict=True))


def distributed(outputs: Sequence[Any], cotangents: list[Any]) -> list[Any]:
    """One cotangent per output: for a list or tuple a list of them, nested likewise. Raises RunError when there are too few or too many."""
    counts = [leaves(output) for output in outputs]
    counts_nones = sum(counts) == len(cotangents)       # outputs that are None may or may not have been counted
    if not counts_nones:
        counts = [0 if output is None else count for output, count in zip(outputs, counts, strict=True)]
    if sum(counts) != len(cotangents):
        raise RunError(f"expected {sum(counts)} cotangents, got {len(cotangents)}")
    given = iter(cotangents)
    return [None if output is None and not counts_nones else taken(output, given) for output in outputs]


def taken(output: Any, given: Iterator[Any]) -> Any:
    """The next cotangents, as many as an output has tensors, in lists as it has them in lists and tuples."""
    return [taken(each, given) for each in output] if isinstance(output, list | tuple) else next(given)


def is_absent(cotangent: Any) -> bool:
    """Is there no cotangent, in none of the lists?"""
    return all(map(is_absent, cotangent)) if isinstance(cotangent, list) else cotangent is None


def leaves(output: Any) -> int:
    """How many values there are in lists and tuples."""
    return sum(map(leaves, output)) if isinstance(output, list | tuple) else 1


def as_seed(cotangent: Any, output: Any) -> Any:
    """A cotangent as an array of its output's dtype; zeros for the missing ones of a list. Raises RunError for a wrong shape."""
    if isinstance(output, list | tuple):
        if is_absent(cotangent):
            return None
        return [namespace_of(one).zeros_like(one) if each is None else as_seed(each, one)
                for each, one in zip(cotangent, output, strict=True)]
    if cotangent is None:
        return None
    array, given = here(output), as_numbers(cotangent)
    if given.shape != array.shape:
        raise RunError(f"a cotangent has shape {given.shape}, its output {array.shape}")
    if given.dtype.kind == "c" != array.dtype.kind:
        raise RunError(f"a cotangent is of {given.dtype}, its output of {array.dtype}")
    return conjugate(given.astype(array.dtype, copy=False))


def as_numbers(cotangent: Any) -> Any:
    """A cotangent as an array. Raises RunError for what is not made of numbers."""
    try:
        array = here(cotangent)
    except (TypeError, ValueError):
        array = None
    if array is None or array.dtype.kind in "OUSMm":
        raise RunError(f"a cotangent is an array of numbers or None, not {type(cotangent).__name__} {str(cotangent)[:40]}")
    return array


def fitted(gradient: Any, given: Any) -> Any:
    """A gradient with the dtype and shape of its input; zeros where it turned out to be undefined; None for what has no gradient."""
    if isinstance(given, list | tuple):
        pieces = gradient if isinstance(gradient, list | tuple) else [None] * len(given)
        return [fitted(piece, each) for piece, each in zip(pieces, given, strict=True)]
    array = here(given)
    dtype = array.dtype if array.dtype.kind in "fc" else np.dtype(np.float32) if array.dtype.name == "bfloat16" else None
    if dtype is None:
        return None
    if gradient is None:
        return namespace_of(array).zeros(array.shape, dtype)
    found = conjugate(here(gradient))
    if found.dtype.kind == "c" and dtype.kind != "c":
        found = found.real
    if found.shape != array.shape:
        found = summed(found, array.shape)
    return found.astype(dtype, copy=False)


def conjugate(gradient: Any) -> Any:
    """Formulas multiply by the plain derivative; torch's gradient is the conjugate of what they make of the conjugate."""
    return gradient.conj() if gradient.dtype.kind == "c" else gradient


def summed(gradient: Any, shape: tuple[int, ...]) -> Any:
    """A gradient summed to the shape that was broadcast."""
    extra = gradient.ndim - len(shape)
    if extra < 0:
        return namespace_of(gradient).broadcast_to(gradient, shape)
    gradient = gradient.sum(axis=tuple(range(extra))) if extra else gradient
    axes = tuple([i for i, size in enumerate(shape) if size == 1 and gradient.shape[i] != 1])
    gradient = gradient.sum(axis=axes, keepdims=True) if axes else gradient
    if gradient.shape != shape and gradient.size == int(np.prod(shape, dtype=np.int64)):
        raise UnsupportedError(f"a gradient of shape {gradient.shape} for an input of shape {shape}")
    return gradient


__all__ = ["run_pair", "vjp"]
