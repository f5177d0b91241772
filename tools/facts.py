"""Write what passes and plans know about operators into tables beside `irtool/ops/facts.py`; a test asks that they are current.

    python tools/facts.py

`facts.txt`: the pointwise overloads, and the dtype of their results, as their kernels on symbols say. `result_dtypes.txt`: the dtypes of
all overloads' results for operands of one dtype, as their samples show.
"""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irtool.ops import OPS
from irtool.ops.call import call_op
from irtool.ops.result_dtypes import FLOATS, KEEPS, REAL, REAL_PARTS, UNCERTAIN
from irtool.ops.symbols.overload_facts import pointwise_result

FOLDER = Path(__file__).parent.parent / "irtool" / "ops"


def facts_text() -> str:
    """`aten::mul.Tensor keeps`, a line per pointwise overload, sorted."""
    rows = ((name, pointwise_result(name)) for name in sorted(OPS) if name.startswith("aten::"))
    return "".join(f"{name} {result}\n" for name, result in rows if result is not None)


def dtypes_text() -> str:
    """`aten::max.dim keeps int64`, a line per overload of whose results something is certain, sorted."""
    rows = ((name, result_words(name)) for name in sorted(OPS) if name.startswith("aten::"))
    return "".join(f"{name} {' '.join(words)}\n" for name, words in rows if set(words) - {UNCERTAIN})


def result_words(name: str) -> list[str]:
    """What the samples of an overload show about the dtypes of its results."""
    text = next(text for text, one in zip(OPS[name].schemas, OPS[name].names, strict=True) if one == name)
    seen: list[set[tuple[str, str]]] = []
    for sample in (OPS[name].samples or {}).get(name, ()):
        for dtype in ("float32", "float64", "complex64"):
            arguments = [in_dtype(each, dtype) for each in sample.arguments(text)]
            operands = {each for each in dtypes_in(arguments) if np.dtype(each).kind in "fc"}
            if len(operands) != 1:
                continue
            try:
                results = call_op(name, arguments)
            except Exception:       # not for this dtype
                continue
            results = results if isinstance(results, tuple) else (results,)
            seen = seen or [set() for _ in results]
            for pairs, result in zip(seen, results, strict=True):
                pairs.update((each, *operands) for each in dtypes_in(result) or ["?"])
    return [word_of(pairs) for pairs in seen]


def in_dtype(value: Any, dtype: str) -> Any:
    """An argument whose floating arrays, or those in it, have a dtype; complex ones the complex dtype of that size."""
    if isinstance(value, list | tuple):
        return type(value)([in_dtype(each, dtype) for each in value])
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return value
    return value.astype({"float32": "complex64", "float64": "complex128"}.get(dtype, dtype) if value.dtype.kind == "c" else dtype)


def dtypes_in(value: Any) -> Sequence[str]:
    """The dtypes of the arrays in a value."""
    if isinstance(value, list | tuple):
        return [dtype for each in value for dtype in dtypes_in(each)]
    return [value.dtype.name] if isinstance(value, np.ndarray) else []


def word_of(pairs: set[tuple[str, str]]) -> str:
    """What a set of (dtype of a result, dtype of the operands) has in common."""
    for word, holds in ((KEEPS, all(result == dtype for result, dtype in pairs)),
                        (REAL, all(result == REAL_PARTS.get(dtype, dtype) for result, dtype in pairs))):
        if pairs and holds:
            return word if any(dtype in REAL_PARTS for _, dtype in pairs) else FLOATS
    results = {result for result, _ in pairs}
    return results.pop() if len(results) == 1 and not results & {"float32", "float64", "complex64", "complex128"} else UNCERTAIN


TABLES = {"facts.txt": facts_text, "result_dtypes.txt": dtypes_text}

if __name__ == "__main__":
    for file, text in TABLES.items():
        (FOLDER / file).write_text(text(), encoding="utf-8")
