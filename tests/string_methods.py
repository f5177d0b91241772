"""Methods of strings on a grid of strings, places and widths.

`python tests/string_methods.py` (with torch) records what torch gives in tests/data/string_methods.json: by overload, a result for each
combination of arguments; "!" and the text where torch raises. Calls that never end in torch are left out, as are parts of a character.
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from irtool.ir.schema import Schema, parse_schema
from irtool.ops import OPS
from irtool.ops.kernels.string import table

RECORDED = Path(__file__).parent / "data" / "string_methods.json"
STRINGS = ["", "a", "banana", "a_", "_a", "1a", "aB", "a1", "  x y ", "a\nb", "Ab Cd"]
SEARCHED = ["", "a", "banana"]
SUBSTRINGS = ["", "a", "an", "na"]
PLACES = [-9, -6, -2, -1, 0, 1, 3, 6, 9]
ENTIRE: dict[str, list[Any]] = {"max": [-1, 0, 1, 2], "width": [0, 1, 3, 6, 8], "tabsize": [-1, 0, 3, 8], "fillchar": ["-", ""],
                                "chars": ["a", " ", "", "ba"], "values": [[], ["a"], ["a", "", "b"]], "separator": ["a", "an", " "],
                                "old": ["a", "an"], "new": ["", "Z", "a"], "keepends": [False, True]}
UNTRIED = ("aten::str", "aten::hash.generic", "aten::format", "aten::percentFormat", "aten::Float.str")


def arguments(schema: Schema) -> list[tuple[Any, ...]]:
    """Every combination of arguments for a method."""
    is_search = any(argument.name in ("substr", "step") for argument in schema.arguments)
    grid: list[list[Any]] = []
    for argument in schema.arguments:
        if argument.name in ENTIRE:
            grid.append(ENTIRE[argument.name])
        elif argument.name == "substr":
            grid.append(SUBSTRINGS[schema.kind == "aten::count":])
        elif argument.type.text == "str":
            grid.append(SEARCHED if is_search else STRINGS)
        else:
            grid.append(PLACES if argument.type.text == "int" else [None, *PLACES[1:6]])
    return list(product(*grid))


def methods() -> Iterator[Schema]:
    """The operators whose first argument is a string."""
    for op in table.ops:
        for schema in map(parse_schema, op.schemas):
            if schema.name not in UNTRIED and schema.arguments[0].type.text == "str":
                yield schema


def by_torch(schema: Schema) -> list[Any]:
    """torch's results."""
    import torch

    kind, _, name = schema.name.partition(".")
    space, _, kind = kind.partition("::")
    call = getattr(getattr(getattr(torch.ops, space), kind), name or "default")
    found: list[Any] = []
    for values in arguments(schema):
        try:
            found.append(call(*values))
        except (RuntimeError, IndexError, ValueError) as error:
            found.append("!" + str(error).splitlines()[0])
    return found


if __name__ == "__main__":
    assert OPS
    rows = [f"{json.dumps(schema.name)}:{json.dumps(by_torch(schema), separators=(',', ':'))}" for schema in methods()]
    RECORDED.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
