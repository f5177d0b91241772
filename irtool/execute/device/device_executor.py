"""The executor for CuPy arrays: values are on the device, plans are made on the host."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.accepted_values import takes_objects
from irtool.execute.compilation import ExecutionPlan, Options
from irtool.execute.executor import Counters, Executor
from irtool.execute.objects import ObjectExecutor
from irtool.execute.recorded import Recorded
from irtool.ir.graph import Graph
from irtool.ops.array_library import np
from irtool.ops.arrays import using
from irtool.ops.device import backend
from irtool.torchscript.library_calls import opened


class DeviceExecutor(Executor):
    """Runs a graph on CuPy arrays. NumPy arrays among the inputs are copied to the device; outputs stay there.

    Raises RunError if there is no CuPy or no GPU.
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
        """As `Executor.accepted`; arrays are copied to the device."""
        with using(self.namespace):
            return super().accepted(inputs)

    def get_plan(self, values: Sequence[Any], flags: Sequence[bool]) -> ExecutionPlan:
        """As `Executor.get_plan`. Passes compute constants on the host."""
        with using(np):
            return super().get_plan(values, flags)

    def nested(self, graph: Graph, options: Options | None = None) -> Executor:
        """As `Executor.nested`."""
        return DeviceExecutor(graph, options or self.options, self.counters)


def new_executor(graph: Graph, options: Options | None = None) -> Executor:
    """An executor for the graph, of the class for the backend and for its inputs (class instances or not). Raises RunError if CuPy is
    wanted and missing."""
    graph = opened(graph)
    if options is not None and options.backend == "cupy":
        return DeviceExecutor(graph, options)
    return ObjectExecutor(graph, options) if takes_objects(graph) else Executor(graph, options)
