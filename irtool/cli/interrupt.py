"""Ctrl-C ends the process with exit code 130 and no traceback, also during imports, in code that catches all exceptions, and in C."""
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
"""Seconds for Python to handle the signal and to clean up."""

_arrived: list[int] = []


def listen() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, and `was_interrupted` return True, in case other code catches the exception.

    Does nothing if Ctrl-C is ignored, or has another handler.
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
    """Raises KeyboardInterrupt if Ctrl-C has arrived: modules that are being imported turn it into other errors."""
    if _arrived:
        raise KeyboardInterrupt


def stop_listening() -> None:
    """After the result is written: let Ctrl-C end the process silently."""
    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))


def _interrupted(number: int, frame: FrameType | None) -> None:
    _arrived.append(number)
    raise KeyboardInterrupt


def _unraisable(what: sys.UnraisableHookArgs) -> None:
    """End the process also for a KeyboardInterrupt where exceptions are ignored (in a destructor)."""
    if issubclass(what.exc_type, KeyboardInterrupt):
        os._exit(130)
    sys.__unraisablehook__(what)


@contextmanager
def interruptible(is_own_process: bool) -> Iterator[None]:
    """A context in which Ctrl-C ends the process at once, with exit code 130, also during C code, whose end Python would wait for.

    Does nothing in a process that is not irtool's. No file is left incomplete, since files are written after the context.
    """
    import threading

    if not is_own_process or threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    is_done = threading.Event()

    def watch() -> None:
        while number := os.read(reading, 1):        # the signal's number, written by the handler in C
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
