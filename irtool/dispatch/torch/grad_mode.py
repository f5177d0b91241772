"""`torch.no_grad()`, `enable_grad()`, `set_grad_enabled(...)`: do operations go on a tape?

Outside transformations nothing does, and they change nothing. Inside, they are about the innermost tape alone, as torch.func has it: what
is done without gradients inside `grad(f)` is a constant to that gradient, and none to one around it.
"""
from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from irtool.dispatch.autograd import Autograd
from irtool.dispatch.stack import Layer, current


class GradMode(ContextDecorator):
    """Within the block, or the function that it decorates, operations go on the innermost tape or not."""

    def __init__(self, records: bool) -> None:
        self.records = records
        self.left: list[tuple[Autograd | None, bool]] = []      # per block that is open: the tape, and what was so before

    def __enter__(self) -> None:
        tape = innermost_tape()
        self.left.append((tape, tape is None or tape.records))
        if tape is not None:
            tape.record(self.records)

    def __exit__(self, *error: Any) -> None:
        tape, before = self.left.pop()
        if tape is not None:
            tape.record(before)


class no_grad(GradMode):        # named as torch names it
    """Operations within are constants to the innermost gradient."""

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(GradMode):
    """Operations within are differentiated, inside a `no_grad` too."""

    def __init__(self) -> None:
        super().__init__(True)


def set_grad_enabled(mode: bool) -> GradMode:
    """`no_grad()` or `enable_grad()`, for a `with` statement."""
    return GradMode(mode)


def is_grad_enabled() -> bool:
    """Do operations go on the innermost tape? Where there is none: True, as torch says."""
    tape = innermost_tape()
    return tape is None or tape.records


def innermost_tape() -> Autograd | None:
    """The tape that is nearest to the top, but for one that a tangent is made with: torch gives tangents inside no_grad, too."""
    layer: Layer | None = current()
    while layer is not None and not isinstance(layer, Autograd):
        layer = layer.inner
    below = None if layer is None else layer.inner
    return None if isinstance(below, Autograd) and below.is_for_tangents else layer
