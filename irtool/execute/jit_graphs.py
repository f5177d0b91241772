"""`irtool.jit` of a graph: its executor runs it, with its branches and loops; nothing is traced."""
from __future__ import annotations

from typing import Any

from irtool.dispatch.backend import BACKEND
from irtool.dispatch.callables import function_of, in_order
from irtool.dispatch.stack import current
from irtool.execute.executor import Executor
from irtool.ir.graph import Graph
from irtool.ops.tensor import unwrapped, wrapped


class JittedGraph:
    """A graph as a function of tensors, run by its executor. Under a layer its operations go through the layer."""

    def __init__(self, graph: Graph) -> None:
        self.executor = Executor(graph)
        self.function = function_of(self.executor.original)
        self.__name__ = self.function.__name__

    def __repr__(self) -> str:
        return repr(self.executor).replace("Executor of", "jitted", 1)

    def __reduce__(self) -> Any:
        return JittedGraph, (self.executor.original,)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The graph's output, a tuple of them when there are several; arguments by position or by the names of the inputs."""
        if current() is not BACKEND:
            return self.function(*args, **named)
        graph = self.executor.graph
        values = in_order(tuple(graph.inputs), args, named, graph)
        results = [wrapped(each) for each in self.executor.run([unwrapped(each) for each in values], None)]
        return results[0] if len(results) == 1 else tuple(results)

    def graphs(self) -> list[Graph]:
        """A list of the graph, as `Jitted.graphs` lists the traces of a function."""
        return [self.executor.graph]
