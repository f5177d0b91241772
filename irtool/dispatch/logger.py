"""A layer that prints each operation that goes through it: `  Torch v2: (2,) = v0 + v1`."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from irtool.dispatch.stack import Boxed, Layer
from irtool.ops.tensor import Tensor

_labels = count()
Print = Callable[[str], None]


def label(value: Any) -> str:
    """The name of a value: that of the tensor at the bottom below all boxes. New tensors are named when they are first printed."""
    if isinstance(value, Tensor):
        while isinstance(value, Boxed):
            value = value.value
        text: str | None = getattr(value, "label", None)
        if text is None:
            text = value.label = f"v{next(_labels)}"
        return text
    if isinstance(value, list | tuple):
        inner = ", ".join(map(label, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    return str(value)


def fresh_labels() -> None:
    """Start names with v0 again."""
    global _labels
    _labels = count()


def line(layer: Layer, result: Any, text: str) -> str:
    """One printed line, without indent: `NAME v2: (2,) = text`; of several results, `v2, v3: (2,), (3,)`."""
    results = result if isinstance(result, tuple) else (result,)
    names = ", ".join(map(label, results))
    sizes = ", ".join(str(tuple(each.shape)) if isinstance(each, Tensor) else type(each).__name__ for each in results)
    return f"{layer.name} {names}: {sizes} = {text}"


class Logger(Layer):
    """Runs operations on the layer below, and prints them with the sizes that it shows."""

    def __init__(self, inner: Layer, name: str = "", write: Print = print) -> None:
        super().__init__(inner, name)
        self.write = write

    def again(self, inner: Layer) -> Layer:
        """A logger with the same name and function."""
        return Logger(inner, self.name, self.write)

    def apply(self, name: str, args: list[Any]) -> Any:
        """Forward and print."""
        result = self.below.apply(name, args)
        if self.rules.is_logged(name):
            self.write("  " + line(self, result, self.rules.spelled(name, args, label)))
        return result

    def custom_vjp(self, forward: Callable[..., Any], backward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """Forward and print."""
        output, saved = self.below.custom_vjp(forward, backward, args)
        named = ", ".join([forward.__name__, backward.__name__, *map(label, args)])
        self.write("  " + line(self, output, f"custom_vjp({named})"))
        return output, saved
