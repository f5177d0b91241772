"""Choosing between two arrays, element by element.

`np.where` branches at each element: where the condition changes often, as behind a relu, the processor guesses wrong every other time,
at some 4 ns. Bits taken as whole numbers can be chosen without branches: x * 1 is x, x * 0 is 0, and (x ^ y) ^ y is x.
"""
from __future__ import annotations

from typing import Any

from irtool.ops.array_library import np

LEAST = 2048
"""Elements from which two or three passes are sooner done than one that branches."""
BITS: dict[int, np.dtype[Any]] = {2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}
"""The whole numbers as wide as an element, by bytes."""


def chooses_bits(dtype: np.dtype[Any], size: int) -> bool:
    """Is a result of this dtype and number of elements chosen without branches?"""
    return size >= LEAST and dtype.itemsize in BITS and dtype.kind in "fiuc"


def select(condition: Any, first: Any, second: Any, out: Any) -> Any:
    """`np.where(condition, first, second)`, written to `out`: the same bits, those of a nan too.

    condition: bool; first and second: of out's dtype, or numbers that it holds; all broadcast to out's shape. out may be one of them, or
    lie elsewhere. Returns out.
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
        apart = np.multiply(apart, condition, out=apart if np.shape(apart) == out.shape else None)      # broadcast, it is too small
        np.bitwise_xor(apart, other, out=place)
    return out


def bits_of(value: Any, dtype: np.dtype[Any], bits: np.dtype[Any]) -> Any:
    """An array's bits, or a number's, as whole numbers."""
    return np.asarray(value, dtype).view(bits)


def is_zero(bits: Any) -> bool:
    """Is the value one number, whose bits are all 0?"""
    return bits.ndim == 0 and not bits


__all__ = ["chooses_bits", "select"]
