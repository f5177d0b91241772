"""A layer that calls functions before and after each operation, which may replace the operands and the result."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.dispatch.stack import Layer

Before = Callable[[str, list[Any]], list[Any] | None]
"""Called with the operator's name, `aten::add.Tensor`, and its operands; a returned list replaces them."""
After = Callable[[str, list[Any], Any], Any]
"""Called with the name, the operands and the result; a returned value other than None replaces the result."""


class Hooks(Layer):
    """Forwards each operation to the layer below, with its functions called before and after."""

    def __init__(self, inner: Layer, before: Before | None = None, after: After | None = None, name: str = "") -> None:
        super().__init__(inner, name)
        self.before = before
        self.after = after

    def again(self, inner: Layer) -> Layer:
        """A layer with the same functions."""
        return Hooks(inner, self.before, self.after, self.name)

    def apply(self, name: str, args: list[Any]) -> Any:
        """Run the operation on the layer below, with hooks."""
        if self.before is not None:
            replaced = self.before(name, args)
            args = args if replaced is None else replaced
        result = self.below.apply(name, args)
        if self.after is not None:
            replaced = self.after(name, args, result)
            result = result if replaced is None else replaced
        return result

    def custom_vjp(self, forward: Callable[..., Any], backward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """As the layer below: hooks are not called for the operations of the function."""
        return self.below.custom_vjp(forward, backward, args)
