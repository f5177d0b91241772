"""Functions that torch's gradient graphs call by name, and whose bodies no text contains, as TorchScript.

The output of `irtool decompile` must be complete, so the source of `AD_permute_backward` precedes a graph that calls it.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def gradient_functions() -> dict[str, Callable[..., Any]]:
    """Name -> function (`irtool.ops.composed.autodiff_functions`)."""
    from irtool.ops.composed import autodiff_functions

    return {name: each for name, each in vars(autodiff_functions).items() if name.startswith("AD_")}


def function_source(name: str) -> str:
    """The source of a function, indented as in archives, without its docstring."""
    head, rest = inspect.getsource(gradient_functions()[name]).split('    """', 1)
    body = rest[rest.index('"""\n') + 4:].splitlines(keepends=True)
    return head + "".join([line[(len(line) - len(line.lstrip())) // 2:] for line in body])


def uses(name: str) -> list[str]:
    """The functions that a function calls, in the order in which they must precede it."""
    called = gradient_functions()[name].__code__.co_names
    return [each for each in gradient_functions() if each in called]
