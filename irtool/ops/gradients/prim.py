"""Operators on numbers, strings, lists and dicts have no gradient where they give no tensor. What moves tensors about unchanged
(`prim::unchecked_cast`, list and tuple operators) belongs to differentiation itself."""
from __future__ import annotations

from irtool.ops import dict, list, prim, scalar, string
from irtool.ops.op import OpTable


def declare(table: OpTable) -> None:
    """State it for every overload none of whose results is, or may hold, a tensor."""
    for op in table:
        for text, name in zip(op.schemas, op.names, strict=True):
            results = text.rpartition("->")[2].replace("(", " ").replace(")", " ").replace(",", " ").split()
            if not any("Tensor" in word or word[:1] == "t" or word == "Any" for word in results):
                table.no_gradient("numbers, strings and truth values", name)


for _table in (prim.table, scalar.table, list.table, dict.table, string.table):
    declare(_table)
prim.table.no_gradient("a number made a tensor", "prim::NumToTensor")
