"""The executor on CuPy arrays: values are made on the device, plans where they always are."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irtool.accepted_values import takes_objects
from irtool.execute.compilation import ExecutionPlan, Options
from irtool.execute.executor import Counters, Executor
from irtool.execute.objects import ObjectExecutor
from irtool.execute.recorded import Recorded
from irtool.ir.graph import Graph
from irtool.ops.arrays import using
from irtool.ops.device import backend
from irtool.torchscript.library_calls import opened


class DeviceExecutor(Executor):
    """Runs a graph on CuPy arrays. Inputs may be NumPy arrays, which are moved to the device; what comes out stays there.

    Raises RunError where CuPy, or a GPU, is not there.
    """

    __slots__ = ("namespace",)

    def __init__(self, graph: Graph, options: Options | None = None, counters: Counters | None = None) -> None:
        self.namespace = backend("cupy")
        super().__init__(graph, options, counters)

    def __call__(self, *inputs: Any, seed: int = 0) -> list[Any]:
        """As `Executor.__call__`, on the device."""
        with using(self.namespace):
            return super().__call__(*inputs, seed=seed)

    def vjp(self, inputs: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int], *, seed: int = 0) -> list[Any]:
        """As `Executor.vjp`, on the device."""
        return self.record(inputs, wrt, seed=seed).backward(cotangents)

    def record(self, inputs: Sequence[Any], wrt: Sequence[int], *, seed: int = 0) -> Recorded:
        """As `Executor.record`, on the device."""
        with using(self.namespace):
            return super().record(inputs, wrt, seed=seed)

    def accepted(self, inputs: Sequence[Any]) -> list[Any]:
        """As `Executor.accepted`; arrays are moved to the device."""
        with using(self.namespace):
            return super().accepted(inputs)

    def get_plan(self, values: Sequence[Any], flags: Sequence[bool]) -> ExecutionPlan:
        """As `Executor.get_plan`. What passes compute, they compute on the host."""
        with using(np):
            return super().get_plan(values, flags)

    def nested(self, graph: Graph, options: Options | None = None) -> Executor:
        """As `Executor.nested`."""
        return DeviceExecutor(graph, options or self.options, self.counters)


def new_executor(graph: Graph, options: Options | None = None) -> Executor:
    """The executor for a backend, and for what the graph takes. Raises RunError where the backend is not there."""
    graph = opened(graph)
    if options is not None and options.backend == "cupy":
        return DeviceExecutor(graph, options)
    return ObjectExecutor(graph, options) if takes_objects(graph) else Executor(graph, options)


__all__ = ["DeviceExecutor", "new_executor"]
