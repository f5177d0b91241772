"""What tests of plans share: graphs, inputs made from a graph's types, and results compared bit for bit."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import irtool
from irtool.execute.plan.compiled import Plan
from irtool.interpret import run
from irtool.ir.effects import LOOP_KINDS
from irtool.ir.types import ListType, OptionalType, TensorType, TupleType, Type

MAX_ELEMENTS = 20_000


def graph_of(text: str) -> irtool.Graph:
    """The one graph of a text."""
    return irtool.parse(text, filename="g.ir").graph()


def chain(count: int) -> str:
    """A graph of pointwise operators, each on the one before and the first input."""
    lines = ["graph(%v0 : Tensor, %v1 : Tensor):", "  %one : int = prim::Constant[value=1]()"]
    for i in range(count):
        op, more = (("add", ", %one"), ("mul", ""), ("sub", ", %one"), ("maximum", ""))[i % 4]
        lines.append(f"  %v{i + 2} : Tensor = aten::{op}(%v{i + 1}, %v0{more})")
    return "\n".join([*lines, f"  return (%v{count + 1})", ""])


def runnable(path: Path) -> Iterator[tuple[irtool.Graph, list[Any]]]:
    """The graphs of a text that can be run on made-up inputs, and such inputs."""
    for graph in irtool.parse(path.read_text(encoding="utf-8"), filename=path.name).graphs:
        if any(node.kind in LOOP_KINDS for node in graph.walk()):       # on numbers not meant for it, a loop may never end
            continue
        try:
            yield graph, [input_for(value.type, np.random.default_rng(0)) for value in graph.inputs]
        except (LookupError, TypeError):
            continue


def input_for(type: Type, generator: np.random.Generator) -> Any:
    """A value of a type. Raises LookupError for one of which there is none, or only large ones."""
    if isinstance(type, OptionalType):
        return None
    if isinstance(type, TensorType):
        shape = (2, 3) if type.sizes is None or None in type.sizes else tuple(size for size in type.sizes if size is not None)
        if math.prod(shape) > MAX_ELEMENTS:
            raise LookupError(type.text)
        return array(type.dtype or "float32", shape, generator)
    if isinstance(type, ListType):
        return [input_for(type.element, generator) for _ in range(2)]
    if isinstance(type, TupleType):
        return tuple(input_for(element, generator) for element in type.elements)
    return {"int": 2, "float": 0.5, "bool": True, "str": "a", "None": None, "Scalar": 1.5}[str(type.key)]


def array(dtype: str, shape: tuple[int, ...], generator: np.random.Generator) -> Any:
    """Numbers of both signs, none of them special."""
    if dtype.startswith(("float", "complex", "bfloat")):
        numbers = generator.standard_normal(shape)
        return np.asarray(numbers).astype({"bfloat16": "float32", "complex32": "complex64"}.get(dtype, dtype))
    return np.asarray(generator.integers(0, 2 if dtype == "bool" else 5, shape)).astype(dtype)


def outcome(call: Callable[[], list[Any]]) -> Any:
    """What a call gives, or the error it raises, with its text."""
    try:
        return call()
    except irtool.Error as error:
        return type(error).__name__, str(error)


def difference(a: Any, b: Any) -> str:
    """How two results differ, in any bit; empty when they do not. Two nans are alike."""
    if type(a) is not type(b):
        return f"{type(a).__name__} and {type(b).__name__}"
    if isinstance(a, np.ndarray):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"{a.dtype}{a.shape} and {b.dtype}{b.shape}"
        if a.size and a.strides != b.strides:
            return f"strides {a.strides} and {b.strides}"
        alike = np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
        alike = alike or np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
        return "" if alike else f"{a} and {b}"
    if isinstance(a, list | tuple):
        if len(a) != len(b):
            return f"{len(a)} and {len(b)} items"
        return next((found for x, y in zip(a, b, strict=True) if (found := difference(x, y))), "")
    if isinstance(a, dict):
        return difference(list(a.items()), list(b.items()))
    return "" if repr(a) == repr(b) else f"{a!r} and {b!r}"


def arrays_in(value: Any) -> list[Any]:
    """The arrays in a value, in order."""
    if isinstance(value, list | tuple):
        return [each for item in value for each in arrays_in(item)]
    if isinstance(value, dict):
        return arrays_in(list(value.values()))
    return [value] if isinstance(value, np.ndarray) else []


def sharing(results: Any, inputs: list[Any]) -> list[tuple[int, int]]:
    """Which results share memory with which later ones, and with which inputs."""
    arrays = arrays_in(results)
    everything = arrays + arrays_in(inputs)
    return [(i, j) for i, a in enumerate(arrays) for j in range(i + 1, len(everything)) if np.may_share_memory(a, everything[j])]


def check(graph: irtool.Graph, inputs: Callable[[], list[Any]], threads: int = 1, native: bool | None = None) -> Plan:
    """A plan gives what the interpreter gives: by slots, then compiled, then once more. Inputs stay what they are."""
    first = inputs()
    wanted = outcome(lambda: run(graph, first))
    plan = Plan(graph, threads=threads, native=native)
    for turn in ("slots", "compiled", "compiled again"):
        given = inputs()
        results = outcome(lambda given=given: plan(given))
        found = difference(results, wanted)
        assert not found, f"{turn}: {found}\n{plan.source}"
        assert sharing(results, given) == sharing(wanted, first), f"{turn}: other memory is shared\n{plan.source}"
        changed = difference(given, inputs())
        assert not changed, f"{turn} changed its inputs: {changed}"
    slots = Plan(graph, compile_after=-1, threads=threads, native=native)
    for _ in range(2):
        assert not difference(outcome(lambda: slots(inputs())), wanted)
    return plan
