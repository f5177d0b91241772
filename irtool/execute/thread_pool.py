"""Work on several threads: one pool for all plans. A task that no thread has begun is run by the thread that waits for it.

    with Crew(threads) as start:
        t0 = start(np.dot, a, b, c)     # a thread of the pool runs this when one is free
        np.dot(a, d, e)                 # meanwhile this thread works too
        t0()                            # the result; if no thread has begun the task, this thread runs it

So there are no deadlocks: not if all threads of the pool are busy, not if a task waits for other tasks, not if the process has no other
threads (after a fork, or in a limited system).
"""
from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextvars import copy_context
from queue import SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any

from irtool.ops.array_library import np


class Task:
    """A call that runs once, in a thread of the pool or in the thread that waits for it. `line`: the line of the plan that started it."""

    __slots__ = ("call", "context", "line", "claim", "done", "result", "error")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], line: int = 0) -> None:
        self.call: tuple[Any, ...] = (function, args, named)
        self.context = copy_context()       # array namespace and random generator
        self.line = line
        self.claim = Lock()
        self.done = Lock()
        self.done.acquire()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run the task, unless another thread has begun it."""
        if not self.claim.acquire(blocking=False):
            return
        try:
            (function, args, named), self.call = self.call, ()      # frees the operands after the call
            with np.errstate(all="ignore"):
                self.result = self.context.run(function, *args, **named)
        except BaseException as error:
            self.error = error
        finally:
            self.done.release()

    def finish(self) -> None:
        """Wait until the task is done; run it in this thread if no other has begun it."""
        self.run()
        with self.done:
            pass

    def drop(self) -> bool:
        """Cancel the task; False if a thread has begun it."""
        return self.claim.acquire(blocking=False)

    def failure(self) -> BaseException | None:
        """The exception that waiting for the task raises, if any."""
        return Failed(self.line, self.error) if isinstance(self.error, Exception) else self.error

    def __call__(self) -> Any:
        """Wait for the result. An Exception of the task is raised as Failed, a KeyboardInterrupt unchanged."""
        self.finish()
        failure = self.failure()
        if failure is not None:
            raise failure
        result, self.result = self.result, None
        return result


class Failed(Exception):
    """A task raised `error`. line: the line of the plan that started it."""

    def __init__(self, line: int, error: Exception) -> None:
        super().__init__(str(error))
        self.line = line
        self.error = error


class Crew:
    """The tasks of one run. Leaving the `with` block waits for all tasks, except after a KeyboardInterrupt: then running tasks finish in
    the background, and their results are dropped.

    Of several errors, the one that a single thread would have raised first is raised: of the task started first, else of the block.
    """

    __slots__ = ("tasks", "threads")

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.tasks: list[Task] = []

    def __enter__(self) -> Callable[..., Task]:
        pool.grow(self.threads - 1)
        return self.start

    def start(self, function: Callable[..., Any], *args: Any, **named: Any) -> Task:
        """Start a task."""
        task = Task(function, args, named, sys._getframe(1).f_lineno)
        self.tasks.append(task)
        pool.tasks.put(task)
        return task

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        tasks, self.tasks = self.tasks, []
        if error is None:       # the block has waited for all tasks
            return
        failure: BaseException | None = None
        for task in tasks:
            if failure is None and isinstance(error, Exception):
                task.finish()
                failure = task.failure()
            elif not task.drop() and isinstance(error, Exception):
                task.finish()
        if failure is not None:
            raise failure


class Pool:
    """Threads that take tasks from one queue: as many as the largest crew has asked for. They end with the process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all threads: a forked process has none."""
        self.tasks: SimpleQueue[Task] = SimpleQueue()
        self.count = 0
        self.lock = Lock()

    def grow(self, count: int) -> None:
        """Have at least `count` threads, if the system allows."""
        if count <= self.count:
            return
        with self.lock:
            try:
                while self.count < count:
                    Thread(target=serve, args=(self.tasks,), name=f"irtool-{self.count + 1}", daemon=True).start()
                    self.count += 1
            except RuntimeError:
                self.count = count      # the system allows no more: fewer threads suffice


def serve(tasks: SimpleQueue[Task]) -> None:
    """The loop of a thread of the pool."""
    while True:
        task = tasks.get()
        task.run()
        del task        # frees the result while this thread waits


def share(threads: int, function: Callable[..., Any], *columns: Iterable[Any]) -> None:
    """Call the function on each row of arguments, on several threads including this one. Raises the error of the first row that fails."""
    tasks = [Task(function, row, {}) for row in zip(*columns, strict=True)]
    pool.grow(threads - 1)
    for task in tasks[1:]:
        pool.tasks.put(task)
    for task in tasks:
        task.finish()
    for task in tasks:
        if task.error is not None:
            raise task.error


pool = Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.forget)      # threads do not survive a fork
