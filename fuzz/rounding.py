"""Does rounding alone explain that two results differ? The sine of a huge power, or a branch at the mean of such, is another number for
each way to round.

The reference runs again and again, with every element that an operator rounded moved by one unit in the last place, up or down. What
these runs make of an element bounds how much of a difference says nothing. Exact elements, those of few significant bits, stay.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from fuzz.judge import Outcome, Wrong, agree, outcome
from irtool.ops.overload import Overload

RUNS = 8
FACTOR = 4.0
"""So many times what moving makes of an element two results may differ in it."""
BITS = {"float16": 6, "float32": 14, "float64": 30}
"""An element of so few significant bits is taken for exact: a rounded one has more, but for one in a thousand and more."""
CANCELLING = ("aten::logaddexp", "aten::logaddexp2")
"""Operators whose zeros are differences of numbers that torch does not round: where the result is 0, it may be of either sign."""
COARSE = ("aten::special_i1", "aten::special_i1e")
"""Operators that torch computes of floats to some 13 units in the last place (i1 of 8): so far their results move."""
UNITS = 16.0
ODD = 0x9E3779B97F4A7C15
"""Multiplied by it, bits are mixed."""
ROUNDING = "differ as the reference does when it rounds otherwise"

Results = Callable[[], Any]


def agree_but_for_rounding(got: Outcome, want: Outcome, way: str, reference: Results, tally: Counter[str], least: float = 0.0,
                           exact: bool = False) -> None:
    """Compare two outcomes, one of which may be that of `reference`, a run by the interpreter. Raises Wrong where more than rounding
    differs, or with `exact` a bit."""
    try:
        agree(got, want, way, exact, least)
    except Wrong:
        if exact or (got[0], want[0]) != ("value", "value") or not is_explained(got[1], want[1], reference):
            raise
        tally[ROUNDING] += 1


def is_explained(one: Any, other: Any, reference: Results) -> bool:
    """Do two results, of one structure, differ by no more than what moving rounded elements makes of them?"""
    base = outcome(reference)
    first, second, start = (arrays(each) for each in (one, other, base[1] if base[0] == "value" else ()))
    if not start or not has_facts(first, start) or not has_facts(second, start):
        return False
    spreads = [np.zeros(each.shape) for each in start]
    for seed in range(RUNS):
        with moved(seed):
            run = outcome(reference)
        leaves = arrays(run[1]) if run[0] == "value" else []
        if not has_facts(leaves, start):
            return False
        spreads = [np.maximum(spread, distance(leaf, each)) for spread, leaf, each in zip(spreads, leaves, start)]
    sizes = [np.nan_to_num(np.abs(wide(each)), nan=0.0, posinf=0.0) for each in second]
    return all(bool((distance(a, b) <= FACTOR * spread + 1e-5 * size).all())
               for a, b, spread, size in zip(first, second, spreads, sizes))


def arrays(value: Any) -> list[Any]:
    """Arrays and numbers in results, in order, as arrays."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in arrays(each)]
    return [np.asarray(value)] if isinstance(value, np.ndarray | float | int | complex) else []


def has_facts(leaves: list[Any], others: list[Any]) -> bool:
    """Are there as many arrays, of the same dtypes and shapes?"""
    return [(each.dtype, each.shape) for each in leaves] == [(each.dtype, each.shape) for each in others]


def wide(array: Any) -> Any:
    """Numbers in double precision."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def distance(one: Any, other: Any) -> Any:
    """How far elements are from each other; infinite if one of them alone is not finite."""
    with np.errstate(all="ignore"):
        a, b = wide(one), wide(other)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        return np.where(same, 0.0, np.where(np.isfinite(a) & np.isfinite(b), np.abs(a - b), np.inf))


@contextmanager
def moved(seed: int) -> Iterator[None]:
    """Let each operator give results that are moved."""
    compute = Overload._compute

    def compute_moved(self: Overload, args: list[Any]) -> Any:
        result = compute(self, args)
        if self.schema.kind in CANCELLING and result.dtype.kind == "f":
            result = np.where(result == 0, (-1) ** seed * np.finfo(result.dtype).eps, result).astype(result.dtype)
        after = map_arrays(result, [each for each in arrays(args) if each.ndim], seed)
        return (result + UNITS * (after - result)).astype(result.dtype) if self.schema.kind in COARSE and result.ndim else after

    with patch.object(Overload, "_compute", compute_moved):
        yield


def map_arrays(value: Any, operands: list[Any], seed: int) -> Any:
    """Results with their new arrays moved: not views of operands."""
    if isinstance(value, list | tuple):
        return type(value)(map_arrays(each, operands, seed) for each in value)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc" or any(np.may_share_memory(value, each) for each in operands):
        return value
    if value.dtype.kind == "c":
        return (move(value.real, seed) + 1j * move(value.imag, seed)).astype(value.dtype)
    return move(value, seed)


def move(array: Any, seed: int) -> Any:
    """Each element that is not exact as its neighbour above or below: the same of equal elements, as a function rounds them."""
    with np.errstate(all="ignore"):
        scaled = np.ldexp(np.frexp(array)[0], BITS[array.dtype.name])
        is_exact = (scaled == np.rint(scaled)) | ~np.isfinite(array)
        bits = np.array(array, order="C").view(f"u{array.itemsize}").reshape(array.shape).astype(np.uint64)
        is_up = (bits * np.uint64(ODD) + np.uint64(seed * ODD % 2**64)) * np.uint64(ODD) >> np.uint64(63)
        return np.where(is_exact, array, np.nextafter(array, np.where(is_up, np.inf, -np.inf).astype(array.dtype)))
