"""Operators as text, each with a rule for dtype, shape and exactness of its result: programs are well typed as they are written.

A rule gives None where torch would refuse the operands, or where the result would be large or say nothing. Comparing and rounding what was
itself rounded would make every last bit count, so `bits` are followed: how many bits an element needs at most; None once it was rounded.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Shape: TypeAlias = tuple[int, ...]
MANTISSA = {"float16": 11, "float32": 24, "float64": 53, "complex64": 24, "complex128": 53, "int32": 31, "int64": 63, "uint8": 8}
ORDER = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")


@dataclass
class Facts:
    """What is known of a tensor. Names of one tensor share it, so that shapes that change in place change for all of them."""

    dtype: str
    shape: Shape
    bits: int | None = 6

    @property
    def is_float(self) -> bool:
        return "float" in self.dtype

    @property
    def is_exact(self) -> bool:
        """May its elements be compared and rounded?"""
        return self.dtype == "bool" or self.bits is not None and self.bits <= MANTISSA[self.dtype]

    @property
    def count(self) -> int:
        """How many elements."""
        return math.prod(self.shape)


Rule: TypeAlias = Callable[[Facts, Facts], Facts | None]


def category(dtype: str) -> int:
    """bool, whole, floating, complex: torch promotes between these first."""
    return 0 if dtype == "bool" else 3 if "complex" in dtype else 2 if "float" in dtype else 1


def promoted(a: Facts, b: Facts) -> str:
    """torch's common dtype: tensors without dimensions count only where their category is higher."""
    one, two = category(a.dtype), category(b.dtype)
    if one != two and bool(a.shape) != bool(b.shape):
        scalar, other = (a, b) if not a.shape else (b, a)
        if category(scalar.dtype) < category(other.dtype):
            return other.dtype
    elif one == two and bool(a.shape) != bool(b.shape):
        return a.dtype if a.shape else b.dtype
    if {a.dtype, b.dtype} == {"complex64", "float64"}:
        return "complex128"
    return max(a.dtype, b.dtype, key=ORDER.index)


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The common shape."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b)
    sizes = [one if two == 1 else two if one in (1, two) else None for one, two in pairs]
    return None if None in sizes else tuple(size for size in sizes if size is not None)


def like(a: Facts, b: Facts) -> Facts | None:
    """Elementwise, exact."""
    return Facts(a.dtype, a.shape, a.bits)


def signed(a: Facts, b: Facts) -> Facts | None:
    """Elementwise, exact, on numbers."""
    return None if a.dtype in ("bool", "uint8") or "complex" in a.dtype else like(a, b)


def rounding(a: Facts, b: Facts) -> Facts | None:
    """Elementwise, on real numbers that are exact."""
    return like(a, b) if a.is_exact and a.is_float and a.dtype != "float16" else None


def smooth(a: Facts, b: Facts) -> Facts | None:
    """A function of floating point numbers; whole numbers become float32."""
    return None if "complex" in a.dtype or a.dtype == "float16" else Facts(a.dtype if a.is_float else "float32", a.shape, None)


def floats(a: Facts, b: Facts) -> Facts | None:
    """A function of floating point numbers only."""
    return smooth(a, b) if a.is_float else None


def both(a: Facts, b: Facts) -> Facts | None:
    """Elementwise with promotion; a sum needs one bit more."""
    shape = broadcast(a.shape, b.shape)
    if shape is None or "bool" in (a.dtype, b.dtype):
        return None
    bits = None if a.bits is None or b.bits is None else max(a.bits, b.bits) + 2
    return Facts(promoted(a, b), shape, bits)


def products(a: Facts, b: Facts) -> Facts | None:
    """Elementwise with promotion; a product needs the bits of both."""
    result = both(a, b)
    if result is not None:
        result.bits = None if a.bits is None or b.bits is None else a.bits + b.bits + 2
    return result


def smooth_both(a: Facts, b: Facts) -> Facts | None:
    """With promotion to floating point, rounded."""
    result = both(a, b)
    if result is None or "complex" in result.dtype or "float16" in (a.dtype, b.dtype):
        return None
    return Facts(result.dtype if result.is_float else "float32", result.shape, None)


def compared(a: Facts, b: Facts) -> Facts | None:
    """A comparison of exact numbers."""
    shape = broadcast(a.shape, b.shape)
    is_real = "complex" not in a.dtype + b.dtype
    return Facts("bool", shape) if shape is not None and a.is_exact and b.is_exact and is_real else None


def logical(a: Facts, b: Facts) -> Facts | None:
    """Of truth values or whole numbers."""
    result = both(a, b) if "bool" not in (a.dtype, b.dtype) else None
    if a.dtype == b.dtype == "bool":
        shape = broadcast(a.shape, b.shape)
        return None if shape is None else Facts("bool", shape)
    return result if result is not None and category(result.dtype) == 1 else None


def conditional(a: Facts, b: Facts) -> Facts | None:
    """`where(b > 0, a, b)`."""
    return both(a, b) if compared(b, b) else None


def matrices(a: Facts, b: Facts) -> Facts | None:
    """A product of matrices or of a matrix and a vector, of one floating dtype."""
    if a.dtype != b.dtype or a.dtype not in ("float32", "float64") or not 1 <= len(a.shape) <= 2 or not 1 <= len(b.shape) <= 2:
        return None
    if a.shape[-1] != b.shape[0] or a.count * b.count > 10**7:
        return None
    return Facts(a.dtype, a.shape[:-1] + b.shape[1:], None)


def square_matrices(a: Facts, b: Facts) -> Facts | None:
    """Both of rank two."""
    return matrices(a, b) if len(a.shape) == len(b.shape) == 2 else None


def total(a: Facts, b: Facts) -> Facts | None:
    """A sum of all; of few elements."""
    if a.count > 4000:
        return None
    dtype = a.dtype if category(a.dtype) >= 2 else "int64"
    return None if a.dtype == "float16" else Facts(dtype, (), None if a.bits is None else a.bits + 12)


def average(a: Facts, b: Facts) -> Facts | None:
    """A mean of all, rounded."""
    return Facts(a.dtype, (), None) if a.dtype in ("float32", "float64", "complex64") and a.count else None


def over(dim: int, keep: bool = False, rounds: bool = False, whole: bool = False) -> Rule:
    """Reduced over one dimension. rounds: floating point only; whole: of numbers that compare."""
    def rule(a: Facts, b: Facts) -> Facts | None:
        if not a.shape or a.dtype == "float16" or a.shape[dim] > 4000 or rounds and a.dtype not in ("float32", "float64"):
            return None
        if whole and (not a.shape[dim] or not a.is_exact or "complex" in a.dtype):
            return None
        place = dim % len(a.shape)
        shape = a.shape[:place] + ((1,) if keep else ()) + a.shape[place + 1:]
        dtype = a.dtype if category(a.dtype) >= 2 or whole else "int64"
        return Facts(dtype, shape, None if rounds or a.bits is None else a.bits if whole else a.bits + 12)
    return rule


def along(dim: int, rounds: bool = True) -> Rule:
    """Something over one dimension that keeps the shape."""
    def rule(a: Facts, b: Facts) -> Facts | None:
        if not a.shape or a.dtype not in ("float32", "float64") or rounds and a.shape[dim] > 4000:
            return None
        return Facts(a.dtype, a.shape, None) if rounds or a.is_exact else None
    return rule


def extreme(a: Facts, b: Facts) -> Facts | None:
    """The largest of all."""
    return Facts(a.dtype, (), a.bits) if a.count and a.is_exact and "complex" not in a.dtype else None


def truth(a: Facts, b: Facts) -> Facts | None:
    """Is any of it true?"""
    return Facts("bool", ()) if a.is_exact else None


def fixed(dtype: str, shape: Shape) -> Rule:
    """A new tensor of constants."""
    return lambda a, b: Facts(dtype, shape)


def cast(dtype: str) -> Rule:
    """A conversion: of exact numbers to whole ones, of whole or floating ones to floating ones."""
    def rule(a: Facts, b: Facts) -> Facts | None:
        if "complex" in a.dtype or "float" not in dtype and not a.is_exact or dtype == "uint8" and a.dtype != "bool":
            return None
        return Facts(dtype, a.shape, a.bits if a.bits is not None and (a.bits <= MANTISSA.get(dtype, 0)) else None)
    return rule


def viewed(change: Callable[[Shape], Shape | None]) -> Rule:
    """A view, or what else moves elements about."""
    def rule(a: Facts, b: Facts) -> Facts | None:
        try:
            shape = change(a.shape)
        except IndexError:
            return None
        return None if shape is None or math.prod(shape) > 3 * 10**6 or len(shape) > 5 else Facts(a.dtype, shape, a.bits)
    return rule


def ranked(rank: int, change: Callable[[Shape], Shape | None], most: int = 9) -> Rule:
    """A view of a tensor of at least so many dimensions."""
    return viewed(lambda s: change(s) if rank <= len(s) <= most else None)


def stepped(size: int, start: int, step: int) -> int:
    """How many elements a slice holds."""
    return len(range(start, size, step))


def joined(dim: int) -> Rule:
    """Two of one dtype behind each other."""
    def rule(a: Facts, b: Facts) -> Facts | None:
        if a.dtype != b.dtype or not a.shape or len(a.shape) != len(b.shape) or a.count + b.count > 10**6:
            return None
        place = dim % len(a.shape)
        if a.shape[:place] + a.shape[place + 1:] != b.shape[:place] + b.shape[place + 1:]:
            return None
        shape = a.shape[:place] + (a.shape[place] + b.shape[place],) + a.shape[place + 1:]
        return Facts(a.dtype, shape, None if a.bits is None or b.bits is None else max(a.bits, b.bits))
    return rule


def stacked(a: Facts, b: Facts) -> Facts | None:
    """Two of one dtype and shape."""
    if a.dtype != b.dtype or a.shape != b.shape or len(a.shape) > 3 or a.count > 10**6:
        return None
    return Facts(a.dtype, (2, *a.shape), None if a.bits is None or b.bits is None else max(a.bits, b.bits))


def masked(a: Facts, b: Facts) -> Facts | None:
    """`a` where `b` is not positive, else a number."""
    return like(a, b) if compared(b, b) and broadcast(a.shape, b.shape) == a.shape and category(a.dtype) in (1, 2) else None


def picked(count: int) -> Rule:
    """So many rows of a, by constant places."""
    return ranked(1, lambda s: (count, *s[1:]) if s[0] else None)


def batched(a: Facts, b: Facts) -> Facts | None:
    """A product of batches of matrices."""
    if a.dtype != b.dtype or a.dtype not in ("float32", "float64") or len(a.shape) != 3 or len(b.shape) != 3:
        return None
    fits = a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1] and a.count * b.count < 10**7
    return Facts(a.dtype, (*a.shape[:2], b.shape[2]), None) if fits else None


def linear(a: Facts, b: Facts) -> Facts | None:
    """A product with the transpose of a matrix."""
    return matrices(a, Facts(b.dtype, b.shape[::-1], None)) if len(a.shape) == len(b.shape) == 2 else None


def outer(a: Facts, b: Facts) -> Facts | None:
    """Of two vectors."""
    if len(a.shape) != 1 or len(b.shape) != 1 or a.count * b.count > 10**6 or "bool" in (a.dtype, b.dtype):
        return None
    return Facts(promoted(a, b), a.shape + b.shape, None)


pairs: Rule = viewed(lambda s: (*s, 2))
shorter: Rule = ranked(1, lambda s: (s[0] - 1, *s[1:]) if s[0] > 1 else None)
first: Rule = ranked(1, lambda s: (1, *s[1:]) if s[0] else None)


def whole(a: Facts, b: Facts) -> Facts | None:
    """Elementwise, of whole numbers."""
    return like(a, b) if category(a.dtype) == 1 and a.shape else None


def half(a: Facts, b: Facts) -> Facts | None:
    """Through half precision."""
    return cast("float32")(a, b) if a.bits is not None and a.bits <= 10 else None


def padded(a: Facts, b: Facts) -> Facts | None:
    """One more element on each side of the last dimension."""
    return Facts(a.dtype, (*a.shape[:-1], a.shape[-1] + 2), a.bits) if a.shape and a.is_float else None


def scanned(a: Facts, b: Facts) -> Facts | None:
    """Running sums over the first dimension."""
    if not a.shape or a.shape[0] > 4000 or a.dtype == "float16":
        return None
    return Facts(a.dtype if category(a.dtype) >= 2 else "int64", a.shape, None if a.bits is None else a.bits + 12)


def as_other(a: Facts, b: Facts) -> Facts | None:
    """The elements of a in the shape of b."""
    return Facts(a.dtype, b.shape, a.bits) if broadcast(a.shape, b.shape) == b.shape else None
