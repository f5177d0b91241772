"""Checks of a user's operator on its samples: all ways to run it agree, gradients agree with finite differences, batches with their slices.

    check_operator("my::gelu")      # {"runs": [], "gradient": [], "batch": []}: a list of problems per check
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from irtool.dispatch.batch_rules import rule_of
from irtool.dispatch.transforms import vmap
from irtool.execute.executor import compile
from irtool.interpret import run
from irtool.ir.errors import Error
from irtool.ir.graph import Graph
from irtool.ir.schema import parse_schema
from irtool.ops import OPS
from irtool.ops.array_library import np
from irtool.ops.formula import formula_of, run_formula
from irtool.ops.samples.draw import Call
from irtool.ops.tensor import Tensor, calling_kind
from irtool.testing.closeness import compare
from irtool.testing.finite_differences import flattened
from irtool.testing.formulas import call_graph, check_formula

SLICES = 3
"""The number of slices of a batch."""


def check_operator(name: str, seed: int = 0) -> dict[str, list[str]]:
    """Check the operator called `name` (`my::gelu`): name of a check -> a list of problems. No gradient or batching rule: no such check.

    An exception of the operator is a problem too, and is not raised.
    """
    op = OPS[name]
    text = next(text for text, each in zip(op.schemas, op.names, strict=True) if each == name)
    samples = op.samples.get(name, [])
    if not samples:
        return {"samples": [f"there is none: state one with `{name.partition('::')[2] or name}.sample(...)`"]}
    checks = {"runs": runs_alike}
    if formula_of(name) is not None:
        checks["gradient"] = gradients_are_slopes
    if rule_of(name) is not None:
        checks["batch"] = batches_are_slices
    report: dict[str, list[str]] = {}
    for what, check in checks.items():
        problems = report[what] = list[str]()
        for place, sample in enumerate(samples):
            try:
                problems += [f"sample {place}: {each}" for each in check(name, text, sample, np.random.default_rng(seed))]
            except Error as error:
                problems.append(f"sample {place}: {error.message}")
            except Exception as error:      # of the user's function
                problems.append(f"sample {place}: {type(error).__name__}: {error}")
    return report


def runs_alike(name: str, text: str, sample: Call, random: np.random.Generator) -> Iterator[str]:
    """Problems in runs: the number of results, writes into arguments, differences between the reference and the first and second run of a
    plan."""
    schema, args = parse_schema(text), sample.arguments(text)
    graph, inputs, _ = call_graph(schema, args)
    before = [each.copy() for each in inputs]
    expected = run(graph, inputs)
    for each, old in zip(inputs, before, strict=True):
        if not np.array_equal(each, old, equal_nan=each.dtype.kind in "fc"):
            yield "it writes into an argument"
            return
    executor = compile(graph)
    for what in ("a plan", "a plan that is used again"):
        yield from unlike(executor.run(inputs), expected, f"{what} gives another result than the interpreter")


def gradients_are_slopes(name: str, text: str, sample: Call, random: np.random.Generator) -> Iterator[str]:
    """Problems of the formula: its result differs from the kernel's, or its gradients from finite differences, up to order 2."""
    schema, args = parse_schema(text), sample.arguments(text)
    graph, inputs, _ = call_graph(schema, args)
    yield from unlike(run_formula(name, args)[0], run(graph, inputs), "the formula gives another result than the function")
    yield from check_formula(name, sample)


def batches_are_slices(name: str, text: str, sample: Call, random: np.random.Generator) -> Iterator[str]:
    """Problems under vmap, over each one and over all of the tensors: differences from a loop over the slices."""
    schema, args = parse_schema(text), sample.arguments(text)
    places = [place for place, value in enumerate(args) if isinstance(value, np.ndarray)]
    function = calling_kind(schema.kind)
    for chosen in [*[(place,) for place in places], *([tuple(places)] if len(places) > 1 else [])]:
        batched = [stacked(value, random) if place in chosen else value for place, value in enumerate(args)]
        dims = tuple([0 if place in chosen else None for place in range(len(args))])

        def of(*tensors: Any) -> Any:
            return function(*tensors)

        whole = vmap(of, in_dims=dims)(*[Tensor(value) if isinstance(value, np.ndarray) else value for value in batched])
        slices = [run(*called(schema, [value[index] if place in chosen else value for place, value in enumerate(batched)]))
                  for index in range(SLICES)]
        expected = [np.stack(parts) for parts in zip(*[[leaf for each in one for leaf in flattened(each)] for one in slices], strict=True)]
        results = [leaf.numpy() if isinstance(leaf, Tensor) else leaf
                   for each in (whole if isinstance(whole, tuple) else (whole,)) for leaf in flattened(each)]
        names = ", ".join(schema.arguments[place].name for place in chosen)
        yield from unlike(results, expected, f"under vmap over {names} the result is not that of the slices")


def called(schema: Any, args: Sequence[Any]) -> tuple[Graph, list[Any]]:
    """A graph of one call, and its inputs."""
    graph, inputs, _ = call_graph(schema, args)
    return graph, inputs


def stacked(value: Any, random: np.random.Generator) -> Any:
    """SLICES arrays like one, stacked: floating-point numbers are varied a little, others are the same."""
    slices = [value + random.uniform(-0.1, 0.1, value.shape).astype(value.dtype) if value.dtype.kind in "fc" and index else value
              for index in range(SLICES)]
    return np.stack(slices)


def unlike(results: Sequence[Any], expected: Sequence[Any], what: str) -> Iterator[str]:
    """Messages about results that differ."""
    ours, theirs = ([leaf for each in values for leaf in flattened(each)] for values in (results, expected))
    if len(ours) != len(theirs):
        yield f"{what}: {len(ours)} tensors, not {len(theirs)}"
        return
    for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        comparison = compare(np.asarray(one), np.asarray(other))
        if not comparison.is_equal:
            yield f"{what}: result {place}: {comparison.reason}"
