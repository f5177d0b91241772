"""Python operators: `^Name(scalars)(%x)` runs the callable registered under `Name`."""
from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irtool.ir.arguments import check_function
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.extensions import added
from irtool.ir.kinds import SPACES
from irtool.ir.scalars import split_scalars, words_of

_registered: dict[str, Callable[..., Any]] = {}

PYTHON_OP_NAME = re.compile(r"\^?[^\s()^]+")
MAX_SCALARS = 10_000
"""Longer texts of scalars are refused."""


def register_python_op(name: str, function: Callable[..., Any]) -> None:
    """Run `function(*scalars, *operands)` for every `^name(scalars)(operands)`, and for operators of other libraries by their kind
    (`torchvision::nms`).

    Operands are NumPy arrays (or whatever the graph's values are); the function returns one value per result of the node: the value itself,
    or a tuple for several results. Registering a name again replaces the function. Raises RunError if the name is no name, or the function
    cannot be called.
    """
    if not isinstance(name, str) or not PYTHON_OP_NAME.fullmatch(name):
        raise RunError(f"register_python_op: expected the name of an operator, such as 'Twice', got {str(name)[:40]!r}")
    check_function(f"register_python_op: {name}", function)
    name = name.removeprefix("^")
    previous = _registered.get(name)
    _registered[name] = function
    added(lambda: _registered.pop(name, None) if previous is None else _registered.update({name: previous}))


def is_registered(name: str) -> bool:
    """Is a function registered for a Python operator, or for a kind of another library?"""
    return name in _registered


def way_to_bring(kind: str) -> str:
    """How a user can run a kind of another library, for a message; empty for torch's own kinds."""
    space = kind.partition("::")[0]
    return "" if "::" not in kind or space in SPACES else f": irtool.register_python_op('{kind}', function) runs a function for it"


def scalars_of(text: str) -> list[Any]:
    """`2, "sum", None, (1, hi)` -> the Python values. A word that is no literal is a string, since torch prints strings without quotes.

    Raises RunError for the text of an object (`<object at 0x7f>`), and for brackets that do not match.
    """
    text = text.strip()
    if len(text) > MAX_SCALARS:
        raise RunError("the scalars of a Python op are too long to be read", code="E0413")
    if not text:
        return []
    try:
        return list(ast.literal_eval(f"({text},)"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return [_scalar(part) for part in split_scalars(text, ",")]


def _scalar(text: str) -> Any:
    """One scalar, or a tuple or list of them."""
    try:
        if "_" not in text:         # Python reads 1_000 as a number, but prints none so
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    if text in ("inf", "-inf", "nan"):
        return float(text)
    if text.startswith("<"):
        raise RunError(f"the scalar {text[:80]} of a Python op is an object, which no text can contain", code="E0413")
    if text[:1] + text[-1:] in ("()", "[]"):
        items = [_scalar(part) for part in split_scalars(text[1:-1], ",")]
        return tuple(items) if text[0] == "(" else items
    if any(mark in text for mark in "()[]{}'\""):
        raise RunError(f"the scalar {text[:80]} of a Python op is neither a literal nor a word", code="E0413")
    return text


def run_python_op(kind: str, attributes: Mapping[str, Any], operands: Sequence[Any]) -> Any:
    """The results of the registered function. Raises UnsupportedError if none is registered."""
    name = kind.removeprefix("^")
    function = _registered.get(name) or KNOWN.get(name)
    if function is None:
        raise UnsupportedError(f"no Python op registered as '{name}' (irtool.register_python_op, or --load FILE.py)", code="E0413")
    attribute = attributes.get("scalars")
    text = attribute.text if attribute is not None else ""
    return function(*scalars_of(text if kind.startswith("^") else words_of(text)), *operands)


KNOWN: Mapping[str, Callable[..., Any]] = {"Transpose": lambda first, second, x: x.swapaxes(first, second)}
"""Python operators of 2017 that need no registration."""
