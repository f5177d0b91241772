"""`torch.no_grad()`, `enable_grad()`, `set_grad_enabled(...)`: turn gradients on and off.

Inside transformations as in torch.func (`irtool.dispatch.gradients_off`): the results of a `no_grad` inside `grad(f)` are constants to that
gradient and to those around it; `grad(f)` inside a `no_grad` is computed, and a constant to those around it.
"""
from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, TypeVar

from irtool.dispatch.gradients_off import modes_of, restore, switch
from irtool.dispatch.stack import Layer, current

Function = TypeVar("Function", bound=Callable[..., Any])


class GradMode(ContextDecorator):
    """A context, or decorator, in which gradients are on or off (`records`)."""

    def __init__(self, records: bool) -> None:
        self.records = records
        self.left: list[list[tuple[Layer, bool]]] = []      # per open context the modes before

    def __enter__(self) -> None:
        self.left.append(modes_of(current()))
        switch(current(), self.records)

    def __exit__(self, *error: Any) -> None:
        restore(self.left.pop())


class no_grad(GradMode):        # named as torch names it
    """A context in which results are constants to gradients."""

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(GradMode):
    """A context in which operations are differentiated, inside a `no_grad` too."""

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(GradMode):
    """Turns gradients on or off at once; in a `with` statement, or as a decorator, for that time."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self.before = modes_of(current())
        switch(current(), mode)

    def __call__(self, function: Function) -> Function:
        restore(self.before)
        return super().__call__(function)

    def __enter__(self) -> None:
        self.left.append(self.before if not self.left and current() is self.before[0][0] else modes_of(current()))
        switch(current(), self.records)


def is_grad_enabled() -> bool:
    """Are gradients on?"""
    return current().mode
