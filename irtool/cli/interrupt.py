"""Ctrl-C: exit code 130 and no traceback, wherever it arrives: in an import, in what takes every error for its own, in C."""
from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

GRACE = 1.0
"""Seconds that Python has to act on the signal by itself, and to tidy up."""

_arrived: list[int] = []


def listen() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, and `was_interrupted` knows of it where somebody takes that for another error.

    Does nothing where Ctrl-C is ignored, or is somebody else's.
    """
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupted)
            sys.unraisablehook = _unraisable
    except ValueError:      # not in the main thread
        pass


def was_interrupted() -> bool:
    """Has Ctrl-C arrived?"""
    return bool(_arrived)


def raise_interrupt() -> None:
    """Raises KeyboardInterrupt where Ctrl-C has arrived: modules that are being imported turn it into errors of their own."""
    if _arrived:
        raise KeyboardInterrupt


def stop_listening() -> None:
    """The result is out: from now on Ctrl-C ends the process without a word."""
    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))


def _interrupted(number: int, frame: FrameType | None) -> None:
    _arrived.append(number)
    raise KeyboardInterrupt


def _unraisable(what: sys.UnraisableHookArgs) -> None:
    """KeyboardInterrupt in a place that passes no exceptions on (a destructor) ends the process, too."""
    if issubclass(what.exc_type, KeyboardInterrupt):
        os._exit(130)
    sys.__unraisablehook__(what)


@contextmanager
def interruptible(is_own_process: bool) -> Iterator[None]:
    """Within the block Ctrl-C ends the process, with exit code 130, whatever runs: Python acts on the signal only when C comes back.

    Does nothing in a process that others own, too. What is left unfinished is in memory: files are written whole, after the block.
    """
    import threading

    if not is_own_process or threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    is_done = threading.Event()

    def watch() -> None:
        while number := os.read(reading, 1):        # the signal's, written by the handler in C
            if number[0] == signal.SIGINT and not is_done.wait(GRACE):
                os._exit(130)
        os.close(reading)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        is_done.set()
        signal.set_wakeup_fd(before)
        os.close(writing)
