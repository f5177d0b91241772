"""The dtypes and sizes that propagate-shapes finds for calls of all operators, with operands of several dtypes, against the results."""
from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ir.schema import Schema
from irtool.ir.types import TensorType, tensor_type
from irtool.ops import OPS
from irtool.ops.call import overload
from irtool.testing.formulas import call_graph
from tests.laws import overload_samples

NAMES = [name for name in OPS if name.startswith("aten::") and not overload(name).schema.is_mutable
         and (overload_samples(name) or "keepdim" in overload(name).schema.positions)]
PART = 50


def of_dtype(value: Any, dtype: str) -> Any:
    """An argument with its floats in a dtype: numbers from 0 to 3 times their size, which most operators take."""
    if isinstance(value, list):
        return [of_dtype(each, dtype) for each in value]
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    return np.asarray(value > 0 if dtype == "bool" else (np.abs(value) * 3).astype(dtype))


def is_of(type: Any, array: np.ndarray[Any, Any]) -> bool:
    """Does a type say nothing that is wrong of an array?"""
    return (type.dtype is None or type.dtype == str(array.dtype)) and (type.rank is None or type.rank == array.ndim) and (
        type.shape is None or all(size is None or size == extent for size, extent in zip(type.shape, array.shape, strict=True)))


def reductions(schema: Schema) -> Iterator[list[Any]]:
    """Calls of an operator that keeps or drops dimensions: over one of them, over two and over all, if it has defaults for the rest."""
    choices = []
    for argument in schema.arguments:
        kind = str(argument.type)
        given: list[Any] = []
        if kind == "Tensor" and not choices:
            given = [np.arange(6, dtype="float32").reshape(2, 3)]
        elif argument.name == "keepdim":
            given = [False, True]
        elif argument.name == "dim":
            given = [[0], [0, 1]] if "[" in kind else [0, -1]
        elif kind in ("int", "Scalar", "Scalar?"):
            given = [1]
        choices.append([*given, *[None] * kind.endswith("?")] or [argument.default])
    yield from map(list, itertools.product(*choices))


def variants(name: str) -> Iterator[list[Any]]:
    """Calls of an operator: its samples, the first one in other dtypes, or part of it, and calls that keep dimensions and do not."""
    samples = [each.values[1].arguments(OPS[name].schemas[OPS[name].names.index(name)]) for each in overload_samples(name)]
    yield from samples
    for dtype in ("float16", "int64", "uint8", "bool", "complex64"):
        for sample in samples[:1]:
            yield [of_dtype(each, dtype) for each in sample]
            yield [of_dtype(sample[0], dtype), *sample[1:]]
            yield [sample[0], *[of_dtype(each, dtype) for each in sample[1:]]]
    if "keepdim" in overload(name).schema.positions:
        yield from reductions(overload(name).schema)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, len(NAMES), PART))
def test_types_of_results_hold(first: int) -> None:
    for name in NAMES[first:first + PART]:
        for args in variants(name):
            try:
                with np.errstate(all="ignore"):
                    results = overload(name)([np.array(each) if isinstance(each, np.ndarray) else each for each in args])
            except irtool.Error:
                continue
            graph, inputs, _ = call_graph(overload(name).schema, args)
            for value, array in zip(graph.inputs, inputs, strict=True):
                value.type = tensor_type(str(array.dtype), array.shape)
            irtool.PassManager("propagate-shapes").run(graph)
            call = next(node for node in graph.walk() if node.kind == overload(name).schema.kind)
            for value, result in zip(call.outputs, results if isinstance(results, tuple) else [results], strict=False):
                if isinstance(value.type, TensorType) and isinstance(result, np.ndarray):
                    assert is_of(value.type, result), f"{name} of {args}: {value.type}, not {result.dtype}{list(result.shape)}"
