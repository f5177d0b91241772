"""Choosing between two arrays, element by element.

`np.where` branches at each element: if the condition changes often, as after a relu, every second branch is mispredicted, at some 4 ns.
Bits as integers can be chosen without branches: x * 1 is x, x * 0 is 0, and (x ^ y) ^ y is x.
"""
from __future__ import annotations

from typing import Any

from irtool.ops.array_library import np

LEAST = 2048
"""The number of elements from which two or three passes are faster than one that branches."""
BITS: dict[int, np.dtype[Any]] = {2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}
"""The integers of an element's size, by bytes."""


def chooses_bits(dtype: np.dtype[Any], size: int) -> bool:
    """Is a result of this dtype and number of elements chosen without branches?"""
    return size >= LEAST and dtype.itemsize in BITS and dtype.kind in "fiuc"


def select(condition: Any, first: Any, second: Any, out: Any) -> Any:
    """`np.where(condition, first, second)`, written to `out`: the same bits, also those of nan.

    condition: bool; first and second: of out's dtype, or numbers that it can represent; all broadcast to out's shape. out may be one of
    them, or separate memory. Returns out.
    """
    if not chooses_bits(out.dtype, out.size) or np.ndim(condition) == 0:
        np.copyto(out, np.where(condition, first, second))
        return out
    bits = BITS[out.dtype.itemsize]
    place, one, other = out.view(bits), bits_of(first, out.dtype, bits), bits_of(second, out.dtype, bits)
    if is_zero(other):
        np.multiply(one, condition, out=place)
    elif is_zero(one):
        np.multiply(other, np.logical_not(condition), out=place)
    else:
        apart = np.bitwise_xor(one, other)
        # before broadcasting, it is too small
        apart = np.multiply(apart, condition, out=apart if np.shape(apart) == out.shape else None)
        np.bitwise_xor(apart, other, out=place)
    return out


def bits_of(value: Any, dtype: np.dtype[Any], bits: np.dtype[Any]) -> Any:
    """The bits of an array, or of a number, as integers."""
    return np.asarray(value, dtype).view(bits)


def is_zero(bits: Any) -> bool:
    """Is the value one number, whose bits are all 0?"""
    return bits.ndim == 0 and not bits
