"""Entries of a tape that other threads differentiate early.

An entry whose results have their complete gradients may be differentiated at once, in parallel with others. What that gives is used only
when the entry's turn comes: so gradients are summed in the order of one thread, with the same bits, and of several errors the first is
raised.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush, nsmallest
from types import TracebackType
from typing import TYPE_CHECKING, Any

from irtool.dispatch.backward_pass import BackwardPass
from irtool.execute.thread_pool import Task, pool
from irtool.ops.nested_tensors import tensors_in
from irtool.ops.tensor import Tensor

if TYPE_CHECKING:
    from irtool.dispatch.autograd import Autograd, Entry

WORTH_AHEAD = 1 << 18
"""Bytes of gradients from which another thread is worth its overhead."""


class ParallelPass(BackwardPass):
    """A walk back with several threads, on a tape without hooks."""

    def __init__(self, tape: Autograd, apply: Callable[..., Any], threads: int) -> None:
        super().__init__(tape, apply)
        self.threads = threads

    def run(self, last: int) -> None:
        """Differentiate the entries up to a number; this thread takes them last first, the others those that are ready."""
        entries = self.tape.tape[:last + 1]
        first_readers: dict[int, int] = {}
        for reader in range(last, -1, -1):
            for each in tensors_in(entries[reader].args):
                if self.tape.owns(each):
                    first_readers[each.known.made_by] = reader
        self.opened_by: dict[int, list[int]] = {}
        for place, reader in first_readers.items():
            self.opened_by.setdefault(reader, []).append(place)
        self.ready = [-place for place in range(last + 1) if place not in first_readers]
        heapify(self.ready)
        with Ahead(self.threads) as self.ahead:
            super().run(last)

    def step(self, place: int) -> None:
        """Differentiate an entry, which is the last one that is ready."""
        self.ahead.look(self, [-each for each in nsmallest(self.threads, self.ready)[1:]] if len(self.ready) > 1 else ())
        heappop(self.ready)
        super().step(place)
        for opened in self.opened_by.get(place, ()):
            if opened >= 0:
                heappush(self.ready, -opened)

    def propagate(self, entry: Entry, cotangents: list[Any]) -> Sequence[Any]:
        """What a thread has computed early, or computes now."""
        task = self.ahead.tasks.pop(entry, None)
        return super().propagate(entry, cotangents) if task is None else finished(task)


class Ahead:
    """The entries that other threads have begun; `threads - 1` at most."""

    __slots__ = ("threads", "tasks")

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.tasks: dict[Entry, Task] = {}

    def __enter__(self) -> Ahead:
        pool.grow(self.threads - 1)
        return self

    def look(self, walk: ParallelPass, places: Sequence[int]) -> None:
        """Start entries, whose turns come next."""
        for place in places:
            if len(self.tasks) == self.threads - 1:
                return
            entry = walk.tape.tape[place]
            if entry not in self.tasks and entry.may_run_ahead:
                cotangents = walk.cotangents(entry)
                if sum([each.array.nbytes for each in tensors_in(cotangents) if type(each) is Tensor]) >= max(WORTH_AHEAD, 1):
                    task = self.tasks[entry] = Task(entry.propagate, (cotangents, walk.apply), {})
                    pool.tasks.put(task)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for task in self.tasks.values():
            if not task.drop() and isinstance(error, Exception):        # after a KeyboardInterrupt, do not wait
                task.finish()
        self.tasks.clear()


def finished(task: Task) -> Any:
    """The result of a task, or its error."""
    task.finish()
    if task.error is not None:
        raise task.error
    return task.result
