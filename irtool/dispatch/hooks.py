"""A layer that shows each operation to functions before and after it is done, which may replace what goes in and what comes out."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.dispatch.stack import Layer

Before = Callable[[str, list[Any]], list[Any] | None]
"""Sees the operator's name, `aten::add.Tensor`, and its operands; may give others."""
After = Callable[[str, list[Any], Any], Any]
"""Sees the name, the operands and the result; may give another (None: it stays)."""


class Hooks(Layer):
    """Forwards what its functions make of each operation."""

    def __init__(self, inner: Layer, before: Before | None = None, after: After | None = None, name: str = "") -> None:
        super().__init__(inner, name)
        self.before = before
        self.after = after

    def again(self, inner: Layer) -> Layer:
        """A layer with the same functions."""
        return Hooks(inner, self.before, self.after, self.name)

    def apply(self, name: str, args: list[Any]) -> Any:
        """Show, forward, show."""
        if self.before is not None:
            replaced = self.before(name, args)
            args = args if replaced is None else replaced
        result = self.below.apply(name, args)
        if self.after is not None:
            replaced = self.after(name, args, result)
            result = result if replaced is None else replaced
        return result

    def custom_vjp(self, forward: Callable[..., Any], backward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """Forward: what the function does is not seen."""
        return self.below.custom_vjp(forward, backward, args)


__all__ = ["Hooks"]
