"""Integers that differ between the rounds of a loop: counters, and numbers computed from them, as plain Python arithmetic.

The plan knows the smallest and the largest value of such a number. So `x[t]` in a loop of known count is an index that cannot fail, and
arithmetic that cannot overflow 64 bits needs no wrapping.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any

from irtool.ir.python_operators import ARITHMETIC, COMPARISONS
from irtool.ops.symbols.array_layout import Meta, dummy, meta_of

Bounds = tuple[int, int]
ROOM = 1 << 62
"""Numbers beyond this are computed by the operators, which wrap around."""


def derived(index: int, start: int, step: int) -> int:
    """The index-th number of a range."""
    return start + index * step


LINEAR: dict[str, tuple[Callable[..., int], int]] = {
    **{each.kind: (each.function, 2) for each in ARITHMETIC[:3]}, "aten::neg": (operator.neg, 1), "aten::__derive_index": (derived, 3)}
"""Kind -> its function on integers, and its number of operands. Each is linear in every operand, so extremes of the result are at extremes
of the operands."""
COMPARING: dict[str, Callable[..., bool]] = {each.kind: each.function for each in COMPARISONS}
SYMBOLS = {each.function: each.sign for each in ARITHMETIC[:3] + COMPARISONS}
"""Function -> its operator in the source of a plan."""


def bounds_of(value: Any) -> Bounds | None:
    """The bounds of a constant integer; None for any other value."""
    if type(value) is int and -ROOM < value < ROOM:
        return value, value
    return None


def computed(kind: str, operands: list[Bounds]) -> tuple[Callable[..., Any], Bounds | None] | None:
    """The function that computes a node on integers within bounds, and the bounds of its result (None: a bool). None if the result may
    overflow 64 bits."""
    arithmetic = LINEAR.get(kind)
    if arithmetic is not None and arithmetic[1] == len(operands):
        values = [arithmetic[0](*corner) for corner in product(*operands)]
        low, high = min(values), max(values)
        return (arithmetic[0], (low, high)) if -ROOM < low and high < ROOM else None
    comparison = COMPARING.get(kind)
    return (comparison, None) if comparison is not None and len(operands) == 2 else None


def selected(meta: Meta, dim: Any, bounds: Bounds) -> tuple[int, Meta] | None:
    """The dimension, counted from the front, and the facts of `x.select(dim, index)`, if all indices within `bounds` are valid; else
    None."""
    rank = len(meta.shape)
    if type(dim) is not int or not rank or not -rank <= dim < rank:
        return None
    dim %= rank
    extent = meta.shape[dim]
    if not (-extent <= bounds[0] and bounds[1] < extent):
        return None
    return dim, meta_of(dummy(meta)[(slice(None),) * dim + (0, ...)])
