"""Every way to have gradients of a graph on arrays, under one form: what one of them takes and gives, all take and give."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import irtool
from irtool.autodiff.refusals import refused_inputs
from irtool.execute.compilation import Options
from irtool.execute.executor import Executor

OPTIONS = {"a plan": Options(native=False), "profiling": Options(profiling=True, native=False),
           "groups": Options(whole=False, native=False),
           "every operator a group": Options(whole=False, autodiff_threshold=1, inline_threshold=1, native=False),
           "not optimised": Options(optimize=False)}
RUNS = 2
"""How often each executor is asked: the second time a plan is there."""


def with_gradients(graph: irtool.Graph) -> list[bool]:
    """For each input whether it can have a gradient: running statistics have none."""
    refused = refused_inputs(graph)
    return [place not in refused for place in range(len(graph.inputs))]


def ways(graph: Any, inputs: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int]) -> Iterator[tuple[str, Callable[[], list[Any]]]]:
    """The name of each way, and what runs it."""
    from irtool.execute.device.device_executor import new_executor

    graph = graph.graph() if isinstance(graph, irtool.Module) else graph
    yield "interpreted", lambda: irtool.vjp(graph, inputs, cotangents, wrt, interpret=True)
    for count in range(RUNS):
        yield f"vjp {count}", lambda: irtool.vjp(graph, inputs, cotangents, wrt)
    for name, options in OPTIONS.items():
        executor: Executor = new_executor(graph, options)
        for count in range(RUNS):
            yield f"{name} {count}", lambda executor=executor: executor.vjp(inputs, cotangents, wrt)     # type: ignore[misc]


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the words with which it refuses."""
    try:
        return call()
    except irtool.Error as error:
        return str(error).splitlines()[-1].rpartition("error: ")[2]


def differences(graph: Any, inputs: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int], expected: Any = None,
                zeros: bool = False) -> list[str]:
    """The ways that give something else than the reference, or than what is expected. zeros: a None counts as zeros."""
    found = []
    for name, call in ways(graph, inputs, cotangents, wrt):
        got = outcome(call)
        if expected is None:
            expected = got
        if not alike(got, expected, zeros):
            found.append(f"{name}: {got}, expected {expected}")
    return found


def alike(got: Any, expected: Any, zeros: bool = False) -> bool:
    """Are gradients, in lists and dicts too, the same but for rounding?"""
    if got is None or expected is None:
        other = expected if got is None else got
        return other is None or zeros and not np.any(other)
    if isinstance(got, dict):
        return isinstance(expected, dict) and got.keys() == expected.keys() and all(alike(got[key], expected[key], zeros) for key in got)
    if isinstance(got, list | tuple):
        return isinstance(expected, list | tuple) and len(got) == len(expected) and all(
            alike(one, other, zeros) for one, other in zip(got, expected, strict=True))
    if isinstance(got, str) or isinstance(expected, str):
        return bool(got == expected)
    return got.dtype == expected.dtype and got.shape == expected.shape and np.allclose(got, expected, 1e-5, 1e-8, equal_nan=True)
