"""Ctrl-C while a graph runs in C: Python acts on the signal only when that comes back, which may take minutes."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

GRACE = 1.0
"""Seconds that Python has to act on the signal by itself, and to tidy up."""


@contextmanager
def interruptible(is_own_process: bool) -> Iterator[None]:
    """Within the block Ctrl-C ends the process, with exit code 130, whatever runs. Does nothing in a process that others own, too.

    What is left unfinished is in memory: files are written whole, after the block.
    """
    import os
    import signal
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
