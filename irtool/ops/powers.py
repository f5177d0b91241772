"""Powers of floating-point numbers, by one rule for every element.

Where one exponent serves many elements, and for one element that is overwritten, `np.power` takes a root for 0.5 (nan for -inf, where the
power is inf), a square for 2 and a reciprocal for -1: bits that would depend on where operands lie in memory.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from irtool.ops.array_library import np

SHORT_CUTS = (-1.0, 0.5, 2.0)
"""The exponents for which NumPy has another function, whose results differ."""


def power(base: Any, exponent: Any, out: Any = None) -> Any:
    """`np.power` of NumPy arrays, with the results that each element has among others, each to its own exponent. out: may be an operand."""
    base, exponent = np.asarray(base), np.asarray(exponent)
    shape = base.shape if base.shape == exponent.shape else np.broadcast_shapes(base.shape, exponent.shape)
    is_each = exponent.shape == shape and exponent.size > 1 and 0 not in exponent.strides
    if is_each or exponent.dtype.kind != "f" or not np.isin(exponent, SHORT_CUTS).any():
        return np.power(base, exponent, out=out)
    if math.prod(shape) != 1:
        return np.power(base, np.broadcast_to(exponent, shape).copy(), out=out)
    result = np.power(base.repeat(2), exponent.repeat(2))[:1].reshape(shape)
    if out is None:
        return result
    out[...] = result
    return out


def power_in(xp: Any, base: Any, exponent: Any) -> Any:
    """`power` in a kernel, which may also run on what stands for arrays."""
    are_arrays = all(issubclass(type(each), np.ndarray | np.generic) for each in (base, exponent))
    return (power if are_arrays else xp.power)(base, exponent)


def at_run(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that computes what an instruction says: `power` for `np.power`."""
    return power if function is np.power else function
