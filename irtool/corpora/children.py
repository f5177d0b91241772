"""Processes that run one case after another without being started anew. If a case crashes or hangs, its process is replaced.

Each thread that calls `isolated` has a process for itself; on a cluster these are the threads of the workers.
"""
from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from tempfile import TemporaryFile
from time import perf_counter
from typing import Any

MOST = 1000
"""The number of cases per process, whose caches of facts about graphs would otherwise grow without limit."""
SINGLE_THREADED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that keep the processes from using each other's cores; values that the user set stay."""
SERVE = "from irtool.corpora.children import serve; serve()"


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a process: `function(words)`, which returns an exit code, and whose messages are captured.

    timeout: in seconds. folder: that of relative paths.
    """

    function: Callable[[tuple[str, ...]], tuple[int, str]]
    words: tuple[str, ...]
    timeout: float
    folder: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The result: `status` is ok, failed, crashed, timeout or lost; `code` the exit code, None if there is none."""

    status: str
    code: int | None
    seconds: float
    messages: str


class Child:
    """A process that answers requests."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.cases = 0
        self.errors = TemporaryFile()
        environment = {**dict.fromkeys(SINGLE_THREADED, "1"), **os.environ}
        start = f"import sys; sys.path[:] = {sys.path!r}; {SERVE}"
        self.process = subprocess.Popen([sys.executable, "-P", "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, cwd=folder, env=environment, start_new_session=True)
        with _lock:
            _children.add(self)
        self.read()             # imports take a while, which is not part of a case's time

    def read(self) -> Any:
        """The next object that the process sends. Raises EOFError if it has ended."""
        assert self.process.stdout is not None
        try:
            return pickle.load(self.process.stdout)
        except (pickle.UnpicklingError, OSError) as error:
            raise EOFError from error

    def ask(self, request: Request) -> Answer:
        """Run a case. If the process crashes, or the time is over, that is the answer."""
        self.cases += 1
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            self.kill()
        start = perf_counter()
        clock = threading.Timer(request.timeout, stop)
        clock.daemon = True
        clock.start()
        try:
            assert self.process.stdin is not None
            pickle.dump((request.function, request.words), self.process.stdin)
            self.process.stdin.flush()
            code, messages = self.read()
            return Answer("failed" if code else "ok", code, perf_counter() - start, messages)
        except (EOFError, OSError):
            self.kill()
            seconds = perf_counter() - start
            if is_late.is_set():
                return Answer("timeout", None, seconds, f"it did not end within {request.timeout:g} s")
            return Answer("crashed", None, seconds, f"{ended(self.process.wait())}\n{self.last_words()}".rstrip())
        finally:
            clock.cancel()

    def last_words(self) -> str:
        """The end of the process's standard error: after a fault in C, it has the Python stack."""
        self.errors.seek(0)
        return "\n".join(self.errors.read().decode(errors="replace").strip().split("\n")[:12])

    def kill(self) -> None:
        """End the process and its child processes."""
        with _lock:
            _children.discard(self)
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL) if os.name == "posix" else self.process.kill()
            except ProcessLookupError:
                pass
        self.process.wait()


_lock = threading.Lock()
_children: set[Child] = set()
_mine = threading.local()


def isolated(request: Request) -> Answer:
    """Run a case in this thread's process. A function without a closure, so that it pickles: a cluster calls it on the machine that runs
    the case."""
    child: Child | None = getattr(_mine, "child", None)
    if child is not None and (child.process.poll() is not None or child.folder != request.folder or child.cases >= MOST):
        child.kill()
        child = None
    if child is None:
        try:
            child = _mine.child = Child(request.folder)
        except (EOFError, OSError) as error:
            return Answer("lost", None, 0.0, f"no process for this case: {type(error).__name__}: {error}".rstrip(": "))
    return child.ask(request)


def end_all() -> None:
    """End the processes of all threads, even those that run a case."""
    for child in list(_children):
        child.kill()


def ended(status: int) -> str:
    """How a process ended, for messages."""
    if status >= 0:
        return f"the process ended with status {status}"
    try:
        return f"the process ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"the process ended by signal {-status}"


# Answer requests until standard input ends, also because the parent has died. Output of C code does not mix with pickles.
def serve() -> None:
    """Answer requests until standard input ends, which it also does if whoever asks has died. Prints of C code reach no pickle."""
    import faulthandler

    import irtool.execute.executor  # noqa: F401  # takes long, and must not be part of the first case's time

    faulthandler.enable()
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "r+b") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    queue: SimpleQueue[Any] = SimpleQueue()

    def listen() -> None:
        try:
            while True:
                queue.put(pickle.load(requests))
        except EOFError:
            os._exit(0)         # ends the process even if a case is running
    threading.Thread(target=listen, daemon=True).start()
    answer: object = "ready"
    while True:
        pickle.dump(answer, answers)
        answers.flush()
        function, words = queue.get()
        answer = function(words)
