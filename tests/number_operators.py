"""Operators of numbers on a grid of numbers: zeros of both signs, infinities, nan, what does not fit into 32 bits, bools, complex numbers.

`python tests/number_operators.py` (with torch) records what torch's overloads give in tests/data/number_operators.json: by overload, a
result for each combination of operands; {"e": text} where torch raises; null where it ends the process or gives nothing.
"""
from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from irtool.ir.schema import Schema, parse_schema
from irtool.ops import OPS
from irtool.ops.kernels.scalar import table

RECORDED = Path(__file__).parent / "data" / "number_operators.json"
INF, NAN = float("inf"), float("nan")
NUMBERS: dict[str, list[Any]] = {
    "float": [0.0, -0.0, 0.1, 1.25, -1.25, INF, -INF, NAN, 1e308, 1e-10],
    "int": [0, 1, -3, 7, (1 << 24) + 1, (1 << 31) + 5, -1 << 62],
    "bool": [False, True],
    "complex": [0j, complex(0.0, -0.0), 1 + 2j, -1.25 + 0j, complex(INF, 0), complex(NAN, 1)],
    "str": ["", "a", "b", "ab"],
    "Scalar": [0.0, -0.0, 0.1, -1.25, INF, NAN, 3e9, 0, -3, (1 << 31) + 5, True, 0j, 1 + 2j],
}
UNTRIED = ("aten::pow.int_to_int", "aten::Float.int", "aten::factorial.int", "aten::__range_length", "aten::__derive_index")
"""Overloads that no program reaches in torch, those that count, and one that overflows."""


def overloads() -> Iterator[Schema]:
    """All overloads whose operands are numbers or strings."""
    for op in table.ops:
        for schema in map(parse_schema, op.schemas):
            if schema.name not in UNTRIED and all(argument.type.text in NUMBERS for argument in schema.arguments):
                yield schema


def operands(schema: Schema) -> list[tuple[Any, ...]]:
    """Every combination of numbers for an overload."""
    return list(product(*[NUMBERS[argument.type.text] for argument in schema.arguments]))


def written(value: Any) -> Any:
    """A result for JSON."""
    if isinstance(value, complex):
        return {"c": [value.real, value.imag]}
    return [written(each) for each in value] if isinstance(value, tuple) else value


def by_torch(schema: Schema) -> list[Any]:
    """What torch's overload gives. It runs in a process of its own, which some quotients of ints end."""
    import torch

    kind, _, name = schema.name.partition(".")
    space, _, kind = kind.partition("::")
    call = getattr(getattr(getattr(torch.ops, space), kind), name or "default")
    found: list[Any] = []
    tried = operands(schema)
    while len(found) < len(tried):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            with os.fdopen(writer, "w") as out:
                for values in tried[len(found):]:
                    try:
                        result = written(call(*values))
                    except (RuntimeError, ValueError) as error:
                        result = {"e": str(error).splitlines()[0].rpartition("please report a bug to PyTorch. ")[2]}
                    print(json.dumps(result), file=out, flush=True)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as lines:
            found += map(json.loads, lines)
        if os.waitpid(child, 0)[1]:
            found.append(None)
    return found


if __name__ == "__main__":
    assert OPS
    rows = [f"{json.dumps(schema.name)}:{json.dumps(by_torch(schema), separators=(',', ':'))}" for schema in overloads()]
    RECORDED.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
