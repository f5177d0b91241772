"""`torch.no_grad()`, `enable_grad()`, `set_grad_enabled(...)`: switch the recording of the innermost tape.

Outside transformations they have no effect. Inside, they affect the innermost tape only, as in torch.func: the result of an operation in a
`no_grad` inside `grad(f)` is a constant to that gradient, but not to the gradient of an outer `grad`.
"""
from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from irtool.dispatch.stack import current, innermost_tape


class GradMode(ContextDecorator):
    """A context, or decorator, in which the innermost tape records (`records`) or not."""

    def __init__(self, records: bool) -> None:
        self.records = records
        self.left: list[tuple[Any, bool]] = []      # per open context: the tape, and its mode before

    def __enter__(self) -> None:
        tape = innermost_tape(current())
        self.left.append((tape, tape is None or tape.records))
        if tape is not None:
            tape.records = self.records

    def __exit__(self, *error: Any) -> None:
        tape, before = self.left.pop()
        if tape is not None:
            tape.records = before


class no_grad(GradMode):        # named as torch names it
    """A context in which results are constants to the innermost gradient."""

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(GradMode):
    """A context in which operations are differentiated, inside a `no_grad` too."""

    def __init__(self) -> None:
        super().__init__(True)


def set_grad_enabled(mode: bool) -> GradMode:
    """`no_grad()` or `enable_grad()`, for a `with` statement."""
    return GradMode(mode)


def is_grad_enabled() -> bool:
    """Does the innermost tape record? Without a tape True, as in torch."""
    tape = innermost_tape(current())
    return tape is None or tape.records
