"""Numbers as C++ computes them: 64-bit and 32-bit ints that wrap, doubles that do not raise, floats, complex numbers of two doubles."""
from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from irtool.ir.errors import RunError

BIAS = 1 << 63
MASK = (1 << 64) - 1


def wrap(value: int) -> int:
    """An int wrapped to 64 bits."""
    if -BIAS <= value < BIAS:
        return value
    return ((value + BIAS) & MASK) - BIAS


def wrapped(value: Any) -> Any:
    """ints wrapped, the rest as it is."""
    return wrap(value) if type(value) is int else value


def int32(value: int) -> int:
    """An int wrapped to 32 bits, C's int."""
    return ((value + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def float32(value: float) -> float:
    """A double rounded to C's float."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def narrow(value: Any) -> Any:
    """A number as C's int or float; a complex one as it is."""
    if isinstance(value, float):
        return float32(value)
    return int32(value) if isinstance(value, int) else value


def quotient(a: float, b: float) -> float:
    """a / b as C computes it: infinities and nan instead of an exception."""
    if b:
        return a / b
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def floor_quotient(a: float, b: float) -> float:
    """C's floor(a / b), which keeps the sign of a zero."""
    divided = quotient(a, b)
    return math.copysign(float(math.floor(divided)), divided) if math.isfinite(divided) else divided


def c_modulo(a: int, b: int) -> int:
    """C's a % b: the sign is the dividend's."""
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def polar(length: float, angle: float) -> complex:
    """The complex number of an absolute value and an angle."""
    if not math.isfinite(angle):
        return complex(math.nan, math.nan)
    return complex(length * math.cos(angle), length * math.sin(angle))


def exponential(a: float) -> float:
    """C's exp."""
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


def power(a: Any, b: Any) -> Any:
    """a ** b of doubles or complex numbers, as C++ computes it."""
    if isinstance(a, complex) and not isinstance(b, complex):
        if a.imag == 0 and a.real > 0:
            return complex(power(a.real, b))
        logarithm = of_complex("log", a)
        return polar(exponential(b * logarithm.real), b * logarithm.imag)
    if isinstance(b, complex):
        if not isinstance(a, complex) and a > 0:
            return polar(power(a, b.real), b.imag * math.log(a))
        return of_complex("exp", b * of_complex("log", complex(a)))
    a, b = float(a), float(b)
    if math.isnan(a) or math.isnan(b):
        return 1.0 if a == 1.0 or b == 0.0 else math.nan
    if a == 0.0 and b < 0.0:
        return math.copysign(math.inf, a) if b % 2 == 1 else math.inf
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        return math.nan


def of_complex(name: str, a: complex) -> complex:
    """C's function of a complex number, by NumPy, which follows C at branch points, infinities and nan; Python's cmath raises there."""
    from irtool.ops.array_library import np

    with np.errstate(all="ignore"):
        return complex(getattr(np, name)(np.complex128(a)))


def to_int(a: float, rounding: Callable[[float], int]) -> int:
    """A rounded float as an int. Raises as torch does for nan, infinities and what does not fit."""
    if not math.isfinite(a) or not -9.223372036854776e18 <= a < 9.223372036854776e18:
        shown = "nan" if a != a else f"{a:f}"
        raise RunError(f"Cannot convert float {shown} to integer")
    return rounding(a)


def c_int(a: float) -> int:
    """A double cast to int64 as x86 does it: towards zero; numbers out of range become the smallest int."""
    return int(a) if math.isfinite(a) and -9.223372036854776e18 <= a < 9.223372036854776e18 else -BIAS


def c_double(function: Callable[[float], float], at_edge: Callable[[float], float]) -> Callable[[Any, Any], Any]:
    """A `math` function on doubles; where Python raises, `at_edge` has C's result."""
    def kernel(xp: Any, a: Any) -> float:
        try:
            return function(a)
        except (ValueError, OverflowError):
            return at_edge(a)
    return kernel


def nan(a: float) -> float:
    """Nothing but nan."""
    return math.nan


def log_edge(a: float) -> float:
    """The logarithm of zero and of negative numbers."""
    return -math.inf if a == 0 else math.nan


def big(a: float) -> float:
    """What overflows."""
    return math.inf if math.isfinite(a) else math.nan


def complex_too(function: Callable[[float], float], name: str, at_edge: Callable[[float], float] = nan) -> Callable[[Any, Any], Any]:
    """The same for a kind that takes complex numbers as well; `name` is NumPy's."""
    real = c_double(function, at_edge)
    return lambda xp, a: of_complex(name, a) if isinstance(a, complex) else real(xp, a)


def gamma_edge(a: float) -> float:
    """The gamma function where Python raises."""
    return math.copysign(math.inf, a) if a > -1 else math.nan
