"""A progress line on the terminal of the messages, shown once a command takes longer than a second, and removed at its end."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Timer
    from typing import Any

    from irtool.cli.console import Console

DELAY = 1.0
"""Seconds before the line appears."""


class Progress:
    """A line with the current step and how many are done; only on a terminal.

    A thread draws the line, since one step may take long. A message removes the line; the next step draws it again.
    """

    def __init__(self, console: Console, text: str, total: int | None = None) -> None:
        self.console = console
        self.text = text
        self.total = total
        self.done = 0
        self.is_due = self.is_over = False
        self.bar: Any = None
        self.task: Any = None
        self.timer: Timer | None = None

    def __enter__(self) -> Progress:
        if self.console.is_watched():
            import threading

            self.lock = threading.Lock()
            self.timer = threading.Timer(DELAY, self._begin)
            self.timer.daemon = True
            self.timer.start()
            self.console.progress = self
        return self

    def __exit__(self, *error: object) -> None:
        if self.timer is not None:
            self.timer.cancel()
            with self.lock:
                self.is_over = True         # the timer may be about to draw
            self.console.progress = None
            self.hide()

    def step(self, text: str, done: int) -> None:
        """Show the text of the current step; done: the number of steps finished."""
        if self.timer is None:
            return
        with self.lock:
            self.text, self.done = text, done
            if self.is_due:
                self._show()

    def hide(self) -> None:
        """Remove the line."""
        with self.lock:
            if self.bar is not None:
                self.bar.stop()
                self.bar = None

    def _begin(self) -> None:
        with self.lock:
            self.is_due = True
            if not self.is_over:
                self._show()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        class Screen(Console):
            def show_cursor(self, show: bool = True) -> bool:
                return False                # Ctrl-C may end the process at any time: a hidden cursor would stay so

        if self.bar is None:
            columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
            if self.total is not None:
                columns += [BarColumn(), TextColumn("{task.completed} of {task.total}")]
            screen = Screen(file=self.console.stderr, no_color=not self.console.color)
            self.bar = Progress(*columns, TimeElapsedColumn(), console=screen, transient=True, redirect_stdout=False, redirect_stderr=False)
            self.task = self.bar.add_task(self.text, total=self.total)
            self.bar.start()
        self.bar.update(self.task, description=self.text, completed=self.done)
