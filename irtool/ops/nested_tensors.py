"""Tensors in lists, tuples and dicts, however deep."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from irtool.ops.tensor import Tensor


def map_tensors(function: Callable[[Any], Any], value: Any) -> Any:
    """A copy of a value in which `function` is applied to each tensor, also in lists, tuples and dicts."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, list | tuple):
        items = [map_tensors(function, each) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: map_tensors(function, each) for key, each in value.items()}
    return value


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors in a value, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            if isinstance(each, Tensor):        # the usual case
                yield each
            elif isinstance(each, list | tuple | dict):
                yield from tensors_in(each)
