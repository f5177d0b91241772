"""Tangents of operators that write by index: the operator itself, on the tangents of what it reads.

Where an index occurs twice the last write counts, but the gradient, as torch has it, goes to the values of all writes. A tape of tangents
that is walked back over these gradients would add up what was written one over the other.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.ops.arrays import dtype_of
from irtool.ops.tensor import Tensor

OVERWRITING = {"aten::scatter.src": 3, "aten::index_copy": 3, "aten::index_fill.int_Tensor": 3, "aten::put": 2, "aten::index_put": 2,
               "aten::_unsafe_index_put": 2}
"""Overloads that write by index into a copy of their first operand -> position of the values that they write."""


def is_overwriting(name: str, args: Sequence[Any]) -> bool:
    """Does an operation write values by index, and not add them up?"""
    return name in OVERWRITING and args[-1] is not True


def tangent_of(name: str, args: Sequence[Any]) -> Callable[..., list[Any]]:
    """The function from the tangents of operands (None: no tangent) to that of the result, which `apply` computes."""
    def run(tangents: Sequence[Any], apply: Callable[..., Any]) -> list[Any]:
        values, places = list(args), (0, OVERWRITING[name])
        dtype = max((tangents[place].dtype for place in places if isinstance(tangents[place], Tensor)),
                    key=lambda each: dtype_of(each).itemsize)
        for place in places:
            tangent = tangents[place]
            if not isinstance(tangent, Tensor):
                tangent = apply("aten::zeros_like", [args[place], dtype, None, None, None, None])
            values[place] = tangent if tangent.dtype == dtype else apply("aten::_to_copy", [tangent, dtype, None, None, None, False, None])
        return [apply(name, values)]
    return run
