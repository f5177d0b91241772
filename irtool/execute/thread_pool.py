"""Work on several threads: one pool for all plans, and tasks that whoever waits for them may begin as well.

    with Crew(threads) as start:
        t0 = start(np.dot, a, b, c)     # some thread of the pool, when one is free
        np.dot(a, d, e)                 # meanwhile, here
        t0()                            # its result; if no thread has begun it, it is run here

As whoever waits does the work that nobody has begun, nothing waits for what cannot come: not when all threads are taken by other
callers, not when a task waits for tasks of its own, not where there are no threads at all (after a fork, in a limited system).
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

import numpy as np


class Task:
    """A call that is run once, by whoever comes first: a thread of the pool, or the one who waits. `line`: where it was started."""

    __slots__ = ("call", "context", "line", "claim", "done", "result", "error")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], line: int = 0) -> None:
        self.call: tuple[Any, ...] = (function, args, named)
        self.context = copy_context()       # which arrays and which random numbers are meant
        self.line = line
        self.claim = Lock()
        self.done = Lock()
        self.done.acquire()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run it, unless somebody else does or has."""
        if not self.claim.acquire(blocking=False):
            return
        try:
            (function, args, named), self.call = self.call, ()      # operands are let go of with the call
            with np.errstate(all="ignore"):
                self.result = self.context.run(function, *args, **named)
        except BaseException as error:
            self.error = error
        finally:
            self.done.release()

    def finish(self) -> None:
        """Wait until it has been run; run it here, if nobody has begun."""
        self.run()
        with self.done:
            pass

    def drop(self) -> bool:
        """It need not be run any more. Says whether nobody has begun."""
        return self.claim.acquire(blocking=False)

    def failure(self) -> BaseException | None:
        """What waiting for it raises."""
        return Failed(self.line, self.error) if isinstance(self.error, Exception) else self.error

    def __call__(self) -> Any:
        """Its result. Raises Failed; what is no Exception (an interruption, here), as it is."""
        self.finish()
        failure = self.failure()
        if failure is not None:
            raise failure
        result, self.result = self.result, None
        return result


class Failed(Exception):
    """A task raised `error`. line: of the function that started it."""

    def __init__(self, line: int, error: Exception) -> None:
        super().__init__(str(error))
        self.line = line
        self.error = error


class Crew:
    """The tasks of one run. When it is left, nobody goes on working behind the caller's back, but after an interruption, which waits for
    nobody: then what a task had begun is finished, and forgotten.

    Of several errors the one comes out that one thread alone would have met: of the task started first, or else what was raised within.
    """

    __slots__ = ("tasks", "threads")

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.tasks: list[Task] = []

    def __enter__(self) -> Callable[..., Task]:
        pool.grow(self.threads - 1)
        return self.start

    def start(self, function: Callable[..., Any], *args: Any, **named: Any) -> Task:
        """Have it run by another thread."""
        task = Task(function, args, named, sys._getframe(1).f_lineno)
        self.tasks.append(task)
        pool.tasks.put(task)
        return task

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        tasks, self.tasks = self.tasks, []
        if error is None:       # all have been waited for
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
        """There are no threads (any more)."""
        self.tasks: SimpleQueue[Task] = SimpleQueue()
        self.count = 0
        self.lock = Lock()

    def grow(self, count: int) -> None:
        """Have at least so many threads, if the system gives them."""
        if count <= self.count:
            return
        with self.lock:
            try:
                while self.count < count:
                    Thread(target=serve, args=(self.tasks,), name=f"irtool-{self.count + 1}", daemon=True).start()
                    self.count += 1
            except RuntimeError:
                self.count = count      # fewer will do


def serve(tasks: SimpleQueue[Task]) -> None:
    """What a thread of the pool does."""
    while True:
        task = tasks.get()
        task.run()
        del task        # its result is not kept while this thread waits


def share(threads: int, function: Callable[..., Any], *columns: Iterable[Any]) -> None:
    """The function on each row of arguments, on several threads, of which this is one. Raises the error of the first row that has one."""
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


__all__ = ["Crew", "Failed", "Task", "pool", "share"]
