"""The results of a graph as a list that can be compared: outputs, inputs after the run, and for a gradient pair its gradients."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.accepted_values import accept, copied, delivered
from irtool.execute.pairs import Forward
from irtool.interpret import walk
from irtool.ir.graph import Graph
from irtool.ir.pair import GradientPair
from irtool.ops.array_library import np
from irtool.ops.arrays import is_array, seeded
from irtool.ops.node_calls import call_node
from irtool.testing.closeness import compare

Named = list[tuple[str, Any]]
"""Values to compare, each with a name for messages."""


def results_of(graph: Graph, inputs: Sequence[Any], seed: int = 0) -> Named:
    """The outputs, then the inputs after the run, leaf by leaf. Raises the errors of the run."""
    values = copied([accept(value, declared) for value, declared in zip(inputs, graph.inputs, strict=True)])
    before = list(values)
    with np.errstate(all="ignore"), seeded(seed):
        outputs = walk(graph, values, call_node)
    outputs = [delivered(result, declared.type) for result, declared in zip(outputs, graph.outputs, strict=True)]
    return [*leaves("output", copied(outputs)), *leaves("input after the run", copied(before))]


def gradients_of(pair: GradientPair, inputs: Sequence[Any], seed: int = 0) -> Named:
    """The real outputs of a pair, and the gradients of its inputs for random cotangents. Raises the errors of the runs."""
    with seeded(seed):
        forward = Forward(pair, inputs)
        random = np.random.default_rng(seed)
        cotangents = {index: cotangent(forward.outputs[index], random) for index in pair.input_vjps
                      if index < len(forward.outputs) and is_floating(forward.outputs[index])}
        gradients, _ = forward.backward(cotangents)
    return [*leaves("output", forward.outputs), *[row for index in sorted(gradients) for row in leaves(f"gradient of input {index}",
                                                                                                 [gradients[index]], False)]]


def cotangent(output: Any, random: np.random.Generator) -> Any:
    """A random array of an output's shape and dtype."""
    return random.standard_normal(np.shape(output)).astype(np.asarray(output).dtype)


def is_floating(value: Any) -> bool:
    """Is a value a floating-point or complex array?"""
    return is_array(value) and value.dtype.kind in "fc"


def leaves(what: str, values: Sequence[Any], is_numbered: bool = True) -> Named:
    """The leaves of values, with names: `output 1[0]`."""
    rows: Named = []

    def visit(value: Any, name: str) -> None:
        if isinstance(value, list | tuple):
            rows.append((f"length of {name}", len(value)))
            for index, each in enumerate(value):
                visit(each, f"{name}[{index}]")
        elif isinstance(value, dict):
            for key, each in value.items():
                visit(each, f"{name}[{key!r}]")
        else:
            rows.append((name, value))

    for index, value in enumerate(values):
        visit(value, f"{what} {index}" if is_numbered else what)
    return rows


def difference(actual: Named, expected: Named, rtol: float | None = None, atol: float | None = None) -> str:
    """The first value that differs from the expected one, as text with the worst element; empty: none."""
    for (name, one), (other_name, other) in zip(actual, expected, strict=False):
        reason = unlike(one, other, rtol, atol)
        if reason or name != other_name:
            return f"{other_name}: {reason or f'{name} stands in its place'}"
    return "" if len(actual) == len(expected) else f"{len(actual)} results instead of {len(expected)}"


def unlike(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None) -> str:
    """How a value differs from the expected one; empty: not at all."""
    if is_array(expected) and is_array(actual):
        with np.errstate(all="ignore"):
            comparison = compare(actual, expected, rtol, atol)
        return "" if comparison.is_equal else comparison.reason
    if type(actual) is not type(expected):
        return f"{type(actual).__name__} instead of {type(expected).__name__}"
    if isinstance(expected, float | complex):
        return unlike(np.asarray(actual), np.asarray(expected), rtol, atol)
    if isinstance(expected, int | str | bool | type(None)):
        return "" if actual == expected else f"{str(actual)[:40]} instead of {str(expected)[:40]}"
    return ""       # objects, which have no equality
