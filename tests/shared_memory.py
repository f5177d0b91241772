"""Calls of every operator, in which results may share memory with operands; and graphs that write into one of them after the call."""
from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from irtool.ir.builder import Builder
from irtool.ir.graph import Graph, Value
from irtool.ir.schema import MISSING, Argument, Schema, parse_schema
from irtool.ir.types import TENSOR
from irtool.ops import OPS
from irtool.ops.arrays import seeded
from irtool.ops.call import call_op
from irtool.ops.conjugates import origin
from irtool.testing.formulas import call_graph

RECORDED: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parent / "data" / "shared_memory.json").read_text(encoding="utf-8"))
"""Overload -> call (`calls`) -> what shares memory in torch. Overloads of which no call gives shared memory are not there; nor are calls
that torch refuses."""
NUMBERS = {"int": [0, 1, -1, 2], "bool": [True, False], "float": [0.0, 1.0], "Scalar": [0.0, 1.0]}


def overloads() -> list[str]:
    """The overloads that write nothing and give tensors."""
    return [name for name, op in OPS.items() if name.startswith("aten::") and not schema_of(name).is_mutable
            and any("Tensor" in result.type.text for result in schema_of(name).returns)]


def schema_of(name: str) -> Schema:
    """The schema of an overload that has a stanza."""
    return parse_schema(dict(zip(OPS[name].names, OPS[name].schemas, strict=True))[name])


def each_array(function: Callable[[Any], Any], value: Any) -> Any:
    """A value with a function applied to its arrays."""
    if isinstance(value, list | tuple):
        return [each_array(function, each) for each in value]
    return function(value) if isinstance(value, np.ndarray) else value


def arrays_in(value: Any, kind: type = np.ndarray) -> list[Any]:
    """The arrays in a value, in order."""
    if isinstance(value, list | tuple):
        return [each for item in value for each in arrays_in(item, kind)]
    return [value] if isinstance(value, kind) else []


def copied(args: list[Any]) -> list[Any]:
    """Arguments with arrays of their own, of the same strides."""
    return each_array(lambda array: with_gaps(array) if has_gaps(array) else array.copy(order="K"), args)


def with_gaps(array: Any) -> Any:
    """The same elements in row-major order, every second one of a memory of their own."""
    return np.repeat(array[..., None], 2, -1)[..., 0]


def has_gaps(array: Any) -> bool:
    """Are elements, in whatever order, not next to each other in memory?"""
    return array.size > 1 and array.copy(order="K").strides != array.strides


def calls(name: str) -> Iterator[tuple[str, list[Any]]]:
    """Calls of an overload: its samples, and those with one thing changed: dtype, sizes, order in memory, or a number."""
    schema = schema_of(name)
    samples = (OPS[name].samples or {}).get(name, ())
    for place, args in enumerate([sample.arguments(schema.text) for sample in samples] or made_up(schema)):
        yield f"{place}", args
        for axes in (0, 1), (-1, -2):
            if any(array.ndim > 1 for array in arrays_in(args)):
                yield f"{place} order {axes[0]} {axes[1]}", each_array(lambda array, axes=axes: turned(array, axes), args)
        yield f"{place} gaps", each_array(with_gaps, args)
        for dtype in "float32", "int64", "bool", "complex128":
            yield f"{place} {dtype}", each_array(lambda array, dtype=dtype: in_dtype(array, dtype), args)
        yield f"{place} one", each_array(lambda array: array[(slice(0, 1),) * array.ndim].copy(), args)
        yield f"{place} scalar", each_array(lambda array: array[(0,) * array.ndim].reshape(()).copy() if array.size else array, args)
        for at, (value, argument) in enumerate(zip(args, schema.arguments, strict=True)):
            for number, other in enumerate(others(value, argument)):
                yield f"{place} {argument.name} {number}", [*args[:at], other, *args[at + 1:]]


def turned(array: Any, axes: tuple[int, int]) -> Any:
    """The same elements, two dimensions in another order in memory."""
    return np.ascontiguousarray(array.swapaxes(*axes)).swapaxes(*axes) if array.ndim > 1 else array


def in_dtype(array: Any, dtype: str) -> Any:
    """A floating-point or complex array in another dtype, the real part of it where the other is real."""
    real = array.real if array.dtype.kind == "c" and dtype[0] != "c" else array
    return real.astype(dtype) if array.dtype.kind in "fc" else array


def others(value: Any, argument: Argument) -> list[Any]:
    """Other values of an argument, with which an operator may have nothing to do."""
    text = argument.type.text
    none = [None] if text.endswith("?") and value is not None else []
    text = text.removesuffix("?").replace("SymInt", "int")
    if "[" not in text and argument.type_text.removesuffix("?") in ("ScalarType", "Layout", "MemoryFormat"):
        return [6, 7] if "ScalarType" in argument.type_text else none
    if text == "int[]":
        count = len(value) if isinstance(value, list) else 1
        return [*none, [], [0], [1], [0, 1], [1, 1], [1] * count, [0] * count, list(range(count))]
    if text == "Tensor[]" and isinstance(value, list):
        return [value[:1]]
    return none + NUMBERS.get(text, [])


def made_up(schema: Schema) -> list[list[Any]]:
    """Arguments for an overload that has no samples; none where it takes no tensor."""
    values = {"Tensor": np.arange(1.0, 7.0).reshape(2, 3), "Tensor[]": [np.arange(1.0, 7.0).reshape(2, 3)], "int": 1, "bool": False,
              "Scalar": 1, "float": 1.0, "int[]": [1], "ScalarType": 7}
    if not any(argument.type.text.startswith("Tensor") for argument in schema.arguments):
        return []
    return [[values.get(argument.type.text) if argument.default is MISSING else argument.default for argument in schema.arguments]]


def shared_pairs(results: Any, args: list[Any], kind: type, memory: Callable[[Any], Any]) -> list[str]:
    """What shares memory, of the tensors that have elements: `0 1` for result 0 and operand 1, `0 = 1` for two results. `0 is 1`: result 0
    is operand 1 itself, so that what changes its shape changes that of the operand."""
    first, second = [list(enumerate(arrays_in(value, kind))) for value in (results, args)]
    pairs = [(f"{i} is {j}" if one is other else f"{i} {j}", one, other) for i, one in first for j, other in second]
    pairs += [(f"{i} = {j}", one, other) for (i, one), (j, other) in itertools.combinations(first, 2)]
    return [pair for pair, one, other in pairs if memory(one) is not None and memory(one) == memory(other)]


def shared_here(name: str, args: list[Any]) -> list[str]:
    """What shares memory after a call, as torch counts: a conjugated view too."""
    args = copied(args)
    with seeded(0):
        results = call_op(name, args)
    return shared_pairs(results, args, np.ndarray, lambda array: id(origin(array)[0]) if array.size else None)


def scale(call: Callable[..., Any], target: Any, is_bool: bool) -> None:
    """Write into a tensor: another number in nearly every element. call: runs an overload."""
    call("aten::logical_not_", [target]) if is_bool else call("aten::mul_.Scalar", [target, 3])


def written_here(name: str, args: list[Any], place: int) -> list[Any]:
    """The operands and results of a call after a write into one of them: the operator run directly, and so the write."""
    args = copied(args)
    with seeded(0):
        tensors = arrays_in(args)
        tensors += arrays_in(call_op(name, args))
        scale(call_op, tensors[place], tensors[place].dtype.kind == "b")
    return tensors


def program(name: str, args: list[Any], place: int) -> tuple[Graph, list[Any]]:
    """A graph of such a call and write, which returns the operands and results, and its inputs."""
    graph, inputs, _ = call_graph(schema_of(name), args)
    results = call_op(name, copied(args))
    build = Builder(graph).at_start(graph.block)
    tensors = []
    for value in graph.inputs:
        operand = build.node("aten::mul", (value, build.constant(1)), output_types=(TENSOR,)) if inputs[len(tensors)].dtype.kind != "b" \
            else build.node("aten::clone", (value, build.constant(None)), output_types=(TENSOR,))
        value.replace_all_uses_with(operand.output)
        operand.replace_input(0, value)
        tensors.append(operand.output)
    build.at_end(graph.block)
    for value, result in zip(graph.outputs, results if isinstance(results, tuple) else [results], strict=True):
        tensors += [value] if isinstance(result, np.ndarray) else [
            build.node("aten::__getitem__", (value, build.constant(at)), output_types=(TENSOR,)).output for at in range(len(result))]
    scale(lambda kind, operands: build.node(kind.partition(".")[0], [
        each if isinstance(each, Value) else build.constant(each) for each in operands], output_types=(TENSOR,)),
        tensors[place], arrays_in([args, results])[place].dtype.kind == "b")
    graph.block.set_outputs(tensors)
    return graph, inputs
