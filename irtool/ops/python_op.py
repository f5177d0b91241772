"""Python operators: `^Name(scalars)(%x)` runs the callable registered under `Name`."""
from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irtool.ir.arguments import check_function
from irtool.ir.errors import RunError, UnsupportedError

_registered: dict[str, Callable[..., Any]] = {}

PYTHON_OP_NAME = re.compile(r"\^?[^\s()^]+")
MAX_SCALARS = 10_000
"""Longer scalar texts are not read."""


def register_python_op(name: str, function: Callable[..., Any]) -> None:
    """Run `function(*scalars, *operands)` for every `^name(scalars)(operands)`.

    Operands are NumPy arrays (or whatever the graph's values are); it gives one value per result of the node: the value itself, or
    a tuple for several results. Registering a name again replaces it. Raises RunError for what is no name, and for no function.
    """
    if not isinstance(name, str) or not PYTHON_OP_NAME.fullmatch(name):
        raise RunError(f"register_python_op: expected the name of an operator, such as 'Twice', got {str(name)[:40]!r}")
    check_function(f"register_python_op: {name}", function)
    _registered[name.removeprefix("^")] = function


def scalars_of(text: str) -> list[Any]:
    """`2, "sum", None, (1, 2)` -> the Python values. Raises RunError for anything but literals."""
    text = text.strip()
    if not text:
        return []
    if len(text) > MAX_SCALARS:
        raise RunError("the scalars of a Python op are too long to be read")
    try:
        return list(ast.literal_eval(f"({text},)"))
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise RunError(f"the scalars ({text}) of a Python op are no literals") from error


def run_python_op(kind: str, attributes: Mapping[str, Any], operands: Sequence[Any]) -> Any:
    """What the registered callable gives. Raises UnsupportedError when none is registered."""
    name = kind.removeprefix("^")
    function = _registered.get(name)
    if function is None:
        raise UnsupportedError(f"no Python op registered as '{name}' (irtool.register_python_op, or --load FILE.py)")
    attribute = attributes.get("scalars")
    return function(*scalars_of(attribute.text if attribute is not None else ""), *operands)
