"""Values for people and programs: plain lines, a table on a terminal, JSON."""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from irtool.ops.array_library import np
from irtool.ops.arrays import is_of_numbers

MOST = 1000
"""Tensors of more elements are shown by their corners and range."""


def kind(value: Any) -> str:
    """The kind of a value: `float32 (2, 3)`, `int`, `list of 3`."""
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype} {value.shape}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, Mapping):
        return f"dict of {len(value)}"
    return "None" if value is None else type(value).__name__


def extent(array: Any) -> str:
    """The range of the elements and the number that is not finite: `-1.5 to 2, 3 nan`; empty for complex arrays and for other values."""
    if not isinstance(array, np.ndarray) or not array.size or array.dtype.kind not in "iufb":
        return ""
    if array.dtype.kind == "b":
        return f"{int(array.sum())} of {array.size} true"
    nan, inf = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    finite = array[np.isfinite(array)] if nan or inf else array
    parts = [f"{short(finite.min())} to {short(finite.max())}"] if finite.size else []
    return ", ".join(parts + [f"{nan} nan"] * bool(nan) + [f"{inf} inf"] * bool(inf))


def short(number: Any) -> str:
    """A number with at most six digits."""
    return str(int(number)) if np.asarray(number).dtype.kind in "iub" else f"{float(number):.6g}"


def digits(array: Any) -> str:
    """The elements in NumPy's form."""
    text = np.array2string(np.asarray(array), threshold=MOST, max_line_width=120, separator=", " if array.dtype.kind == "U" else " ")
    return str(text)


def lines(label: str, value: Any, indent: str = "") -> list[str]:
    """A value as lines: its label and kind, then its elements."""
    if isinstance(value, np.ndarray | np.generic):
        head = f"{indent}{label}: {kind(value)}"
        if value.ndim == 0:
            return [f"{head} {digits(value)}"]
        if not value.size:
            return [head]
        more = f", {extent(value)}" if value.size > MOST else ""
        return [head + more, *(f"{indent}  {line}" for line in digits(value).split("\n"))]
    if isinstance(value, list | tuple) and value:
        if is_of_numbers(value):
            return [f"{indent}{label}: {kind(value)} {plain(value)}"]
        rows = [row for i, element in enumerate(value) for row in lines(f".{i}", element, indent + "  ")]
        return [f"{indent}{label}: {kind(value)}", *rows]
    if isinstance(value, Mapping) and value:
        rows = [row for key, element in value.items() for row in lines(f"[{plain(key)}]", element, indent + "  ")]
        return [f"{indent}{label}: {kind(value)}", *rows]
    if value is None or isinstance(value, list | tuple | Mapping):
        return [f"{indent}{label}: {kind(value)}"]
    return [f"{indent}{label}: {kind(value)} {plain(value)}"]


def cells(value: Any) -> tuple[str, str]:
    """A value as two cells of a table: its kind, and its elements (for a large tensor their range)."""
    if isinstance(value, np.ndarray | np.generic):
        more = f"{extent(value)}\n" if value.size > MOST else ""
        return kind(value), more + digits(value)
    rows = lines("", value)
    head = rows[0].removeprefix(": ")
    return (kind(value), head.removeprefix(kind(value)).strip()) if len(rows) == 1 else (head, "\n".join(rows[1:]))


def plain(value: Any) -> str:
    """A Python value as a literal; long lists are cut."""
    if isinstance(value, list | tuple) and len(value) > MOST:
        return f"{list(value[:10])!r} ...".replace("] ...", ", ...]")
    if isinstance(value, np.ndarray | np.generic):
        return digits(value).replace("\n", "")
    return repr(value)


def as_json(value: Any) -> Any:
    """A value as JSON data: tensors as `{"dtype", "shape", "data"}`, dicts as a list of pairs, nan and infinities as strings."""
    if isinstance(value, np.ndarray | np.generic):
        return {"dtype": str(value.dtype), "shape": list(value.shape), "data": as_json(value.tolist())}
    if isinstance(value, list | tuple):
        return [as_json(element) for element in value]
    if isinstance(value, Mapping):
        return {"items": [[as_json(key), as_json(element)] for key, element in value.items()]}
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, complex):
        return [as_json(value.real), as_json(value.imag)]
    return value if value is None or isinstance(value, bool | int | str) else str(value)
