"""Steps of the backward pass that other threads run early.

A step whose gradients are complete may run at once, in parallel with others. Its results are used only when its turn comes: so gradients
are summed in the order of one thread, with the same bits, and of several errors the first is raised.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import nsmallest
from types import TracebackType
from typing import TYPE_CHECKING, Any

from irtool.execute.thread_pool import Task, pool

if TYPE_CHECKING:
    from irtool.execute.tape import Function, Variable

WORTH_AHEAD = 1 << 18
"""Bytes of gradients from which another thread is worth its overhead."""


class Ahead:
    """The steps that other threads have begun; `threads - 1` at most."""

    __slots__ = ("threads", "tasks")

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.tasks: dict[Function, Task] = {}

    def __enter__(self) -> Ahead:
        pool.grow(self.threads - 1)
        return self

    def look(self, ready: Sequence[tuple[Any, Function]], gradients: Mapping[Function, list[Variable | None]]) -> None:
        """Start the steps whose turns come next, except the first, which this thread runs."""
        if self.threads < 2 or len(ready) < 2:
            return
        for _, function in nsmallest(self.threads, ready)[1:]:
            if len(self.tasks) == self.threads - 1:
                return
            incoming = gradients[function]
            if function not in self.tasks and function.may_run_ahead() \
                    and sum([each.data.nbytes for each in incoming if each is not None]) >= WORTH_AHEAD:
                task = self.tasks[function] = Task(function.apply, (incoming, False), {})
                pool.tasks.put(task)

    def apply(self, function: Function, gradients: list[Any], create_graph: bool) -> list[Any]:
        """The results of a step whose turn has come."""
        task = self.tasks.pop(function, None)
        if task is None:
            return function.apply(gradients, create_graph)
        task.finish()
        if task.error is not None:
            raise task.error
        handed: list[Any] = task.result
        return handed

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for task in self.tasks.values():
            if not task.drop() and isinstance(error, Exception):        # after a KeyboardInterrupt, do not wait
                task.finish()
        self.tasks.clear()


__all__ = ["WORTH_AHEAD", "Ahead"]
