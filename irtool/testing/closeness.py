"""Do two arrays, or two archives of them, agree? If not: the worst element, and the smallest tolerance that would pass."""
from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any

from irtool.ops.array_library import np

Array = np.ndarray[Any, np.dtype[Any]]

TOLERANCES: dict[str, tuple[float, float]] = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}
"""dtype -> (rtol, atol), those of torch.testing.assert_close; every other dtype is compared exactly."""


class Comparison:
    """The result of comparing an array with the expected one: `is_equal`, or `reason` with the worst element and tolerances."""

    def __init__(self, is_equal: bool, reason: str = "", worst: tuple[int, ...] | None = None, rtol_needed: float | None = None,
                 atol_needed: float | None = None, wrong: int = 0) -> None:
        self.is_equal = is_equal
        self.reason = reason
        self.worst = worst
        self.rtol_needed = rtol_needed
        """The smallest rtol that would accept the arrays with this atol; None if no tolerance would."""
        self.atol_needed = atol_needed
        self.wrong = wrong
        """The number of elements out of tolerance."""


def compare(actual: Array, expected: Array, rtol: float | None = None, atol: float | None = None, dtype: str | None = None) -> Comparison:
    """Compare dtype, shape, then elements: |actual - expected| <= atol + rtol * |expected|; nan equals nan.

    The default tolerances are `TOLERANCES` of `dtype` (default: the expected array's). Integers, bools and strings are compared exactly
    unless a tolerance is given.
    """
    if actual.dtype.kind != "U" or expected.dtype.kind != "U":
        if actual.dtype != expected.dtype:
            return Comparison(False, f"dtype {actual.dtype}, expected {expected.dtype}")
    if actual.shape != expected.shape:
        return Comparison(False, f"shape {actual.shape}, expected {expected.shape}")
    default_rtol, default_atol = TOLERANCES.get(dtype or expected.dtype.name, (0.0, 0.0))
    rtol = default_rtol if rtol is None else rtol
    atol = default_atol if atol is None else atol
    if expected.dtype.kind in "Ub" or not rtol and not atol and expected.dtype.kind in "iu":
        return _exactly(actual, expected)
    return _closely(actual, expected, rtol, atol)


def _exactly(actual: Array, expected: Array) -> Comparison:
    wrong = actual != expected
    count = int(np.count_nonzero(wrong))
    if not count:
        return Comparison(True)
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    if expected.dtype.kind in "iu":
        distance = np.abs(actual.astype(object) - expected.astype(object)) if expected.dtype.itemsize == 8 else \
            np.abs(actual.astype(np.int64) - expected.astype(np.int64))
        index = tuple(int(i) for i in np.unravel_index(int(np.argmax(distance)), actual.shape))
    return Comparison(False, _worst_text(actual, expected, index, count), index, wrong=count)


def _closely(actual: Array, expected: Array, rtol: float, atol: float) -> Comparison:
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    got, want = actual.astype(wide), expected.astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        distance = np.where(same, 0.0, np.abs(got - want))
        size = np.abs(want)
        distance = np.where(np.isnan(distance) | ~np.isfinite(want) & ~same, np.inf, distance)
        wrong = ~same & ~(np.isfinite(distance) & (distance <= atol + rtol * size))
    count = int(np.count_nonzero(wrong))
    if not count:
        return Comparison(True)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        allowed = atol + rtol * size
        excess = np.where(wrong, np.where(allowed > 0, distance / allowed, distance * np.inf), -1.0)
        excess = np.where(np.isnan(excess), np.inf, excess)
        index = _index_of_largest(np.where(excess == np.inf, distance, -1.0) if np.isinf(excess).any() else excess)
        out_of_reach = bool(np.isinf(distance).any())
        need_rtol = float(np.max(np.where(wrong, (distance - atol) / size, 0.0)))
        need_atol = float(np.max(np.where(wrong, distance - rtol * size, 0.0)))
    rtol_needed = None if out_of_reach or not math.isfinite(need_rtol) else round_up(need_rtol)
    atol_needed = None if out_of_reach or not math.isfinite(need_atol) else round_up(need_atol)
    return Comparison(False, _worst_text(actual, expected, index, count), index, rtol_needed, atol_needed, count)


def _index_of_largest(array: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(array)), array.shape))


def _worst_text(actual: Array, expected: Array, index: tuple[int, ...], count: int) -> str:
    got, want = actual[index], expected[index]
    place = f" at [{', '.join(map(str, index))}]" if index else ""
    text = f"{number_text(got)}{place}, expected {number_text(want)}"
    if expected.dtype.kind in "fc" and np.isfinite(got) and np.isfinite(want):
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        distance = float(np.abs(wide(got) - wide(want)))
        text += f" (off by {distance:.3g}" + (f", {distance / float(np.abs(wide(want))):.3g} relative)" if want else ")")
    return text + (f"; {count} of {actual.size} elements differ" if actual.size > 1 else "")


def number_text(value: Any) -> str:
    """The shortest text that restores a number, without NumPy's `np.float32(...)`."""
    return repr(value.item()) if isinstance(value, np.str_) else str(value)


def round_up(number: float) -> float:
    """The next larger number with three digits, so that a printed tolerance is sufficient."""
    if number <= 0:
        return 0.0
    unit = 2 - math.floor(math.log10(number))
    rounded = float(f"{number:.2e}")
    return rounded if rounded >= number * (1 + 1e-12) else float(f"{number + 10.0 ** -unit:.2e}")


def compare_members(actual: Mapping[str, Array], expected: Mapping[str, Array], rtol: float | None = None, atol: float | None = None,
                    actual_none: Set[str] = frozenset(), expected_none: Set[str] = frozenset(),
                    bfloat16: Set[str] = frozenset()) -> dict[str, Comparison]:
    """Compare arrays by key; a missing or extra key, or None on one side only, is a difference."""
    comparisons: dict[str, Comparison] = {}
    for key in [*expected, *(key for key in actual if key not in expected)]:
        if key not in actual:
            comparisons[key] = Comparison(False, "missing")
        elif key not in expected:
            comparisons[key] = Comparison(False, "not expected")
        elif key in actual_none or key in expected_none:
            both = key in actual_none and key in expected_none
            difference = "" if both else "None, expected a value" if key in actual_none else "a value, expected None"
            comparisons[key] = Comparison(both, difference)
        else:
            comparisons[key] = compare(actual[key], expected[key], rtol, atol, "bfloat16" if key in bfloat16 else None)
    return comparisons
