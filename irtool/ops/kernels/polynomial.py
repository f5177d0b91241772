"""Orthogonal polynomials by their recurrences. torch truncates the degree to an integer, and returns 0 for a negative one.

Closed forms are used where torch has them (Chebyshev at |x| = 1, and cosines for high degrees inside): far outside [-1, 1] and for high
degrees torch computes the recurrence itself, including its overflow.
"""
from irtool.ir.errors import UnsupportedError
from irtool.ops.arrays import memory_order
from irtool.ops.checks import in_memory_order, only, refuse
from irtool.ops.op import OpTable
from irtool.ops.promotion import TO_FLOAT

table = OpTable("polynomial")


LARGEST_DEGREE = 100_000


def _by_recurrence(xp, x, n, first, second, step):
    """P(n) from P(0) = first, P(1) = second, P(k + 1) = step(k, P(k), P(k - 1)); each element stops at its own degree."""
    highest = max(int(n.max()), 0) if n.size else 0
    if highest > LARGEST_DEGREE:
        raise UnsupportedError(f"polynomials of degree {highest} are not supported")
    result = xp.where(n == 0, first, xp.where(n == 1, second, x.dtype.type(0)))
    older, newer = first, second
    for degree in range(1, highest):
        older, newer = newer, step(degree, newer, older)
        result = xp.where(n == degree + 1, newer, result)
    return result


def _chebyshev(closed):
    """Chebyshev-like recurrence 2 x P(k) - P(k - 1); `second(x)` is P(1), `closed` gives (x = 1, x = -1, |x| < 1 with n > 6)."""
    second, at_one, at_minus_one, inside, recursion = closed

    def values(xp, x, n):
        kind = x.dtype.type
        twice = recursion(x)
        result = _by_recurrence(xp, x, n, xp.ones_like(x), second(x), lambda _, newer, older: twice * newer - older)
        if inside is not None:
            high = (n > inside[0]) & (xp.abs(inside[2](x)) < 1)
            result = xp.where(high & (n > 0), inside[1](xp, xp.arccos(xp.clip(inside[2](x), -1, 1)), n.astype(x.dtype)), result)
        result = xp.where(inside[2](x) == 1, at_one(n).astype(x.dtype), result)
        result = xp.where(inside[2](x) == -1, at_minus_one(n).astype(x.dtype), result)
        return xp.where(n < 0, kind(0), result)
    return values


def _sign(n):
    """1 for even n, -1 for odd."""
    return 1 - 2 * (n % 2)


def _same(x):
    return x


def _shifted(x):
    return 2 * x - 1


def _kinds(argument):
    """The four kinds of Chebyshev polynomials in terms of y = argument(x): T, U, V, W."""
    def recursion(x):
        y = argument(x)
        return y + y

    return {
        "t": (argument, lambda n: 1.0 + 0 * n, lambda n: 1.0 * _sign(n), (6, lambda xp, a, n: xp.cos(n * a), argument), recursion),
        "u": (recursion, lambda n: n + 1.0, lambda n: (n + 1.0) * _sign(n),
              (8, lambda xp, a, n: xp.where(xp.sin(a) != 0, xp.sin((n + 1) * a) / xp.sin(a), (n + 1) * xp.cos((n + 1) * a) / 1), argument),
              recursion),
        "v": (lambda x: recursion(x) - 1, lambda n: 1.0 + 0 * n, lambda n: (2 * n + 1.0) * _sign(n),
              (8, lambda xp, a, n: xp.where(xp.sin(a / 2) != 1, xp.cos((n + 0.5) * a) / xp.cos(a / 2), (2 * n + 1.0) * _sign(n)), argument),
              recursion),
        "w": (lambda x: recursion(x) + 1, lambda n: 2 * n + 1.0, lambda n: 1.0 * _sign(n),
              (8, lambda xp, a, n: xp.where(xp.cos(a / 2) != 1, xp.sin((n + 0.5) * a) / xp.sin(a / 2), 2 * n + 1.0), argument),
              recursion),
    }


def _hermite_h(xp, x, n):
    return _by_recurrence(xp, x, n, xp.ones_like(x), x + x, lambda k, newer, older: (x + x) * newer - 2 * k * older)


def _hermite_he(xp, x, n):
    return _by_recurrence(xp, x, n, xp.ones_like(x), x, lambda k, newer, older: x * newer - k * older)


def _laguerre(xp, x, n):
    result = _by_recurrence(xp, x, n, xp.ones_like(x), 1 - x, lambda k, newer, older: ((2 * k + (1 - x)) * newer - k * older) / (k + 1))
    return xp.where((x == 0) & (n >= 0), x.dtype.type(1), result)


def _legendre(xp, x, n):
    result = _by_recurrence(xp, x, n, xp.ones_like(x), x, lambda k, newer, older: ((2 * k + 1) * x * newer - k * older) / (k + 1))
    ends = xp.where(x > 0, 1, _sign(n)).astype(x.dtype)
    return xp.where((xp.abs(x) == 1) & (n >= 0), ends, result)


def _define(name, values, doc):
    def kernel(xp, x, n):
        only(f"{name}_cpu", "f", x)
        if x.dtype == xp.float16:
            refuse(f"{name}_cpu", x)
        order = memory_order(x if x.ndim >= n.ndim else n)
        x, n = xp.broadcast_arrays(x, n)
        degrees = xp.where(xp.isfinite(n), n, -1).astype(xp.int64)
        return in_memory_order(xp, values(xp, x, degrees), order)
    table.define([f"aten::special_{name}{overload}({first} x, {second} n) -> Tensor" for overload, first, second in
                  (("", "Tensor", "Tensor"), (".x_scalar", "Scalar", "Tensor"), (".n_scalar", "Tensor", "Scalar"))], kernel, TO_FLOAT,
                 doc=doc)


for _letter, _closed in _kinds(_same).items():
    _define(f"chebyshev_polynomial_{_letter}", _chebyshev(_closed), f"Chebyshev polynomial {_letter.upper()} of degree n at x.")
for _letter, _closed in _kinds(_shifted).items():
    _define(f"shifted_chebyshev_polynomial_{_letter}", _chebyshev(_closed),
            f"Chebyshev polynomial {_letter.upper()} of degree n at 2 x - 1.")
_define("hermite_polynomial_h", _hermite_h, "Physicist's Hermite polynomial of degree n at x.")
_define("hermite_polynomial_he", _hermite_he, "Probabilist's Hermite polynomial of degree n at x.")
_define("laguerre_polynomial_l", _laguerre, "Laguerre polynomial of degree n at x.")
_define("legendre_polynomial_p", _legendre, "Legendre polynomial of degree n at x.")
