"""`irtool.jit(f)`: a function traced once per signature, its graph run by the executor.

    fast = irtool.jit(irtool.vmap(irtool.grad(loss), in_dims=(None, 0, 0)))
    fast(w, x, y)               # traces, compiles, runs
    fast(w, x2, y2)             # runs: shapes, dtypes and everything that is no array are as they were

A signature is the shapes and dtypes of arrays and the values of everything else. Under a layer (inside grad, vmap, trace) the function
itself is called: its operations are that layer's business.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Any

import numpy as np

from irtool.dispatch.backend import BACKEND
from irtool.dispatch.callables import graph_of
from irtool.dispatch.stack import current
from irtool.dispatch.tracer import record
from irtool.dispatch.trees import flatten, unflatten
from irtool.execute.executor import Executor
from irtool.execute.jit_graphs import JittedGraph
from irtool.execute.kept import arrays_key
from irtool.ir.arguments import check_function
from irtool.ops.tensor import Tensor

MAX_SIGNATURES = 1000
SIMPLE = (int, float, bool, str, complex, type(None))


class Jitted:
    """A function with an executor for each signature it was called with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.made: dict[Any, tuple[Executor, list[int], Any]] = {}
        self.quick: dict[Any, tuple[Executor, Any]] = {}        # the same, for arguments that are all arrays, by what these are
        self.by_name: Jitted | None = None      # the same function of a list and a dict of arguments
        self._lock = Lock()
        update_wrapper(self, function)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The function's result, of tensors where it has tensors. Raises RunError for a function that gives no tensors."""
        if current() is not BACKEND:
            return self.function(*args, **named)
        if named:
            if self.by_name is None:
                self.by_name = Jitted(lambda args, named: self.function(*args, **named))
            return self.by_name(list(args), named)
        kind = arrays_key(args)
        known = self.quick.get(kind)
        if known is None:
            executor, made, values = self.find(args)
            if kind is not None and len(values) == len(args):
                self.quick[kind] = executor, made
            results = executor.run(values, None)
        else:
            executor, made = known
            results = executor.run(args, None)
        return unflatten(made, [Tensor(each) for each in results])

    def find(self, args: tuple[Any, ...]) -> tuple[Executor, Any, list[Any]]:
        """The executor for arguments, made if need be, the shape of the result, and what the executor takes."""
        leaves, shape = flatten(args)
        key = signature(leaves, shape)
        found = self.made.get(key)
        if found is None:
            with self._lock:
                found = self.made.get(key)
                if found is None:
                    if len(self.made) >= MAX_SIGNATURES:
                        self.made.clear()
                        self.quick.clear()
                    found = self.made[key] = self.make(leaves, shape)
        executor, places, made = found
        return executor, made, [each.array if isinstance(each, Tensor) else each for each in [leaves[place] for place in places]]

    def make(self, leaves: list[Any], shape: Any) -> tuple[Executor, list[int], Any]:
        """Trace: the executor, which leaves it takes, and the shape of the result."""
        given = [Tensor(each) if isinstance(each, np.ndarray | np.generic) else each for each in leaves]
        graph, made = record(self.function, given, shape, where="jit")
        return Executor(graph), [place for place, each in enumerate(given) if isinstance(each, Tensor)], made

    def graphs(self) -> list[Any]:
        """The graphs that were traced so far."""
        more = [] if self.by_name is None else self.by_name.graphs()
        return [*[executor.graph for executor, _, _ in self.made.values()], *more]


def signature(leaves: list[Any], shape: Any) -> Any:
    """What a trace holds for, hashable."""
    parts: list[Any] = [structure(shape)]
    for each in leaves:
        if isinstance(each, Tensor):
            each = each.array
        if isinstance(each, np.ndarray | np.generic):
            parts.append((each.dtype.str, each.shape))
        else:
            parts.append((each.__class__, each if isinstance(each, SIMPLE) else repr(each)))
    return tuple(parts)


def structure(tree: Any) -> Any:
    """The shape of a tree, hashable."""
    if isinstance(tree, list | tuple):
        return (tree.__class__, *map(structure, tree))
    if isinstance(tree, dict):
        return (dict, *[(key, structure(each)) for key, each in tree.items()])
    return None


def jit(function: Any) -> Any:
    """The function, traced once for each signature and run by the executor after that; a graph by its executor. See the module."""
    graph = graph_of("jit", function)
    if graph is not None:
        return JittedGraph(graph)
    check_function("jit", function)
    return Jitted(function)


__all__ = ["Jitted", "jit"]
