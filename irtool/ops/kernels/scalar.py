"""Arithmetic of Python numbers as TorchScript does it: 64-bit ints that wrap, C doubles that do not raise, torch's error texts.

One kernel serves all number overloads of a kind; the schemas are written by `forms`, in torch's spelling.
"""
from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from typing import Any

from irtool.ir.errors import RunError
from irtool.ops.op import OpTable

table = OpTable("scalar")

BIAS = 1 << 63
MASK = (1 << 64) - 1
ZERO_DIVISION = "ZeroDivisionError: integer division or modulo by zero"


def wrap(value: int) -> int:
    """An int wrapped to 64 bits."""
    if -BIAS <= value < BIAS:
        return value
    return ((value + BIAS) & MASK) - BIAS


def wrapped(value: Any) -> Any:
    """ints wrapped, the rest as it is."""
    return wrap(value) if type(value) is int else value


def forms(kind: str, names: str, *lines: str) -> list[str]:
    """Schemas of `kind` from lines such as `int_float: int float -> float`; `names` are the argument names, in order."""
    schemas = []
    for line in lines:
        overload, _, rest = line.partition(": ")
        types, _, result = rest.partition(" -> ")
        arguments = ", ".join(f"{t} {n}" for t, n in zip(types.split(), names.split(), strict=True))
        dot = "." if overload else ""
        schemas.append(f"{kind}{dot}{overload}({arguments}) -> {result}")
    return schemas


COMPLEX_ARITHMETIC = (": Scalar Scalar -> Scalar", "complex: complex complex -> complex", "complex_float: complex float -> complex",
                      "complex_int: complex int -> complex", "float: float float -> float", "float_complex: float complex -> complex",
                      "float_int: float int -> float", "int: int int -> int", "int_complex: int complex -> complex",
                      "int_float: int float -> float")
REAL_ARITHMETIC = (": Scalar Scalar -> Scalar", "float: float float -> float", "float_int: float int -> float", "int: int int -> int",
                   "int_float: int float -> float")
REAL_TO_FLOAT = (": Scalar Scalar -> float", "float: float float -> float", "float_int: float int -> float", "int: int int -> float",
                 "int_float: int float -> float")
ORDERING = (": Scalar Scalar -> bool", "float: float float -> bool", "float_int: float int -> bool", "int: int int -> bool",
            "int_float: int float -> bool", "str: str str -> bool")
EQUALITY = (": Scalar Scalar -> bool", "bool: bool bool -> bool", "bool_list: bool[] bool[] -> bool", "complex: complex complex -> bool",
            "complex_float: complex float -> bool", "device: Device Device -> bool",
            "enum: AnyEnumType AnyEnumType -> bool", "float: float float -> bool", "float_complex: float complex -> bool",
            "float_int: float int -> bool", "float_list: float[] float[] -> bool", "int: int int -> bool",
            "int_float: int float -> bool", "int_list: int[] int[] -> bool", "str: str str -> bool",
            "str_list: str[] str[] -> bool")
UNARY_COMPLEX = ("Scalar: Scalar -> Scalar", "complex: complex -> complex", "float: float -> float", "int: int -> float")
UNARY_REAL = ("Scalar: Scalar -> Scalar", "float: float -> float", "int: int -> float")


# -- operators of two numbers
def _add(xp: Any, a: Any, b: Any) -> Any:
    return wrapped(a + b)


def _sub(xp: Any, a: Any, b: Any) -> Any:
    return wrapped(a - b)


def _mul(xp: Any, a: Any, b: Any) -> Any:
    return wrapped(a * b)


def _div(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(a, complex) or isinstance(b, complex):
        if b:
            return a / b
        return complex(quotient(complex(a).real, 0.0), quotient(complex(a).imag, 0.0))
    return quotient(float(a), float(b))


def quotient(a: float, b: float) -> float:
    """a / b as C computes it: infinities and nan instead of an exception."""
    if b:
        return a / b
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _floordiv(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            raise RunError("division by 0")
        return wrap(a // b)
    divided = quotient(float(a), float(b))
    return float(math.floor(divided)) if math.isfinite(divided) else divided


def _remainder(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            raise RunError(ZERO_DIVISION)
        return c_modulo(wrap(b + c_modulo(a, b)), b)        # as torch writes it: the sum may overflow
    if b == 0 or not math.isfinite(a) or not math.isfinite(b):
        return math.nan
    return math.fmod(b + math.fmod(a, b), b)


def c_modulo(a: int, b: int) -> int:
    """C's a % b: the sign is the dividend's."""
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def _fmod(xp: Any, a: Any, b: Any) -> float:
    if b == 0 or math.isinf(a):
        return math.nan
    return math.fmod(a, b)


def _mathremainder(xp: Any, a: Any, b: Any) -> float:
    if b == 0 or math.isinf(a):
        return math.nan
    return math.remainder(a, b)


def _copysign(xp: Any, a: Any, b: Any) -> float:
    return math.copysign(a, b)


def power(a: Any, b: Any) -> Any:
    """a ** b of doubles or complex numbers, as C's pow; 0.0 ** negative raises as torch does."""
    if isinstance(a, complex) or isinstance(b, complex):
        if not a:
            return complex(math.nan, math.nan) if not complex(b).real > 0 or math.isinf(complex(b).real) else 0j
        try:
            return complex(a) ** complex(b)
        except (ZeroDivisionError, OverflowError):
            return complex(math.inf, math.inf)
    a, b = float(a), float(b)
    if a == 0.0 and b < 0.0:
        raise RunError("0.0 cannot be raised to a negative power")
    if math.isnan(a) or math.isnan(b):
        return 1.0 if a == 1.0 or b == 0.0 else math.nan
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        return math.nan


def _pow(xp: Any, a: Any, b: Any) -> Any:
    return power(a, b)


def _int_pow(xp: Any, a: int, b: int) -> int:
    return wrap(pow(a, b, 1 << 64)) if b >= 0 else wrap(int(power(a, b)))


def _atan2(xp: Any, a: Any, b: Any) -> float:
    return math.atan2(a, b)


def _polar(xp: Any, a: Any, b: Any) -> complex:
    if not math.isfinite(b):
        return complex(math.nan, math.nan)
    return complex(a * math.cos(b), a * math.sin(b))


def _divmod(xp: Any, x: Any, y: Any) -> tuple[Any, Any]:
    if y == 0:
        raise RunError(ZERO_DIVISION if isinstance(x, int) and isinstance(y, int) else "ZeroDivisionError: float divmod()")
    if isinstance(x, int) and isinstance(y, int):
        return wrap(x // y), x % y
    if not math.isfinite(x) or not math.isfinite(y):
        return math.nan, math.nan
    rest = math.fmod(x, y)
    if rest and (rest < 0) != (y < 0):
        rest += y
    return float(math.floor(x / y)), rest


table.define(forms("aten::add", "a b", *COMPLEX_ARITHMETIC, "str: str str -> str"), _add, doc="Sum of two numbers; two strings joined.")
table.define(forms("aten::sub", "a b", *COMPLEX_ARITHMETIC), _sub, doc="Difference of two numbers.")
table.define(forms("aten::mul", "a b", *COMPLEX_ARITHMETIC), _mul, doc="Product of two numbers.")
table.define(forms("aten::div", "a b", ": Scalar Scalar -> float", "complex: complex complex -> complex", "float: float float -> float",
                   "int: int int -> float"), _div, doc="True quotient, a float even of ints; x / 0 is inf or nan.")
table.define(forms("aten::floordiv", "a b", *REAL_ARITHMETIC), _floordiv, doc="Quotient rounded down.")
table.define(forms("aten::remainder", "a b", *REAL_ARITHMETIC), _remainder, doc="Python's %: the sign is the divisor's.")
table.define(forms("aten::fmod", "a b", *REAL_TO_FLOAT), _fmod, doc="C's fmod: the sign is the dividend's.")
table.define(forms("aten::mathremainder", "a b", *REAL_TO_FLOAT), _mathremainder, doc="IEEE remainder.")
table.define(forms("aten::copysign", "a b", *REAL_TO_FLOAT), _copysign, doc="Size of a, sign of b.")
table.define(forms("aten::pow", "a b", "Scalar_Scalar: Scalar Scalar -> float", "complex: complex complex -> complex",
                   "complex_float: complex float -> complex", "float: float float -> float", "float_complex: float complex -> complex",
                   "float_int: float int -> float", "int: int int -> float", "int_float: int float -> float"), _pow, doc="Power, a float.")
table.define(forms("aten::pow", "a b", "int_to_int: int int -> int"), _int_pow, doc="Power of ints, an int that wraps.")
table.define(forms("aten::atan2", "a b", "Scalar_Scalar: Scalar Scalar -> float", *REAL_TO_FLOAT[1:]), _atan2, doc="Angle of (b, a).")
table.define(forms("aten::polar", "a b", "Scalar_Scalar: Scalar Scalar -> Scalar", "float: float float -> complex",
                   "float_int: float int -> complex", "int: int int -> complex", "int_float: int float -> complex"), _polar,
             doc="The complex number of absolute value a and angle b.")
table.define(forms("aten::divmod", "x y", "float: float float -> (float, float)", "float_int: float int -> (float, float)",
                   "int: int int -> (int, int)", "int_float: int float -> (float, float)"), _divmod, doc="Quotient rounded down, and rest.")
table.define("aten::gcd.int(int a, int b) -> int", lambda xp, a, b: wrap(math.gcd(a, b)), doc="Greatest common divisor, not negative.")


@table.op("aten::ldexp(float x, int i) -> float")
def ldexp(xp, x, i):
    """x * 2 ** i, of the low 32 bits of i."""
    try:
        return math.ldexp(x, ((i + (1 << 31)) & 0xFFFFFFFF) - (1 << 31))
    except OverflowError:
        return math.copysign(math.inf, x)


# -- comparisons and logic
def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], bool]:
    def kernel(xp: Any, a: Any, b: Any) -> bool:
        if type(a) is not type(b):      # C++ compares doubles, in which a large int is rounded; Python compares exactly
            if type(b) is float and type(a) is int:
                a = float(a)
            elif type(a) is float and type(b) is int:
                b = float(b)
        return bool(compare(a, b))
    return kernel


table.define(forms("aten::eq", "a b", *EQUALITY), _comparison(operator.eq), doc="Equality.")
table.define(forms("aten::ne", "a b", *EQUALITY), _comparison(operator.ne), doc="Inequality.")
table.define(forms("aten::lt", "a b", *ORDERING), _comparison(operator.lt), doc="Less.")
table.define(forms("aten::le", "a b", *ORDERING), _comparison(operator.le), doc="Less or equal.")
table.define(forms("aten::gt", "a b", *ORDERING), _comparison(operator.gt), doc="Greater.")
table.define(forms("aten::ge", "a b", *ORDERING), _comparison(operator.ge), doc="Greater or equal.")
LOGIC = ("bool: bool bool -> bool", "int: int int -> int")
table.define(forms("aten::__and__", "a b", *LOGIC), lambda xp, a, b: a & b, doc="Bitwise and.")
table.define(forms("aten::__or__", "a b", *LOGIC), lambda xp, a, b: a | b, doc="Bitwise or.")
table.define(forms("aten::__xor__", "a b", *LOGIC), lambda xp, a, b: a ^ b, doc="Bitwise exclusive or.")
table.define("aten::__lshift__.int(int a, int b) -> int", lambda xp, a, b: wrap(a << (b & 63)), doc="Shift left, modulo 64 as x86 does.")
table.define("aten::__rshift__.int(int a, int b) -> int", lambda xp, a, b: a >> (b & 63), doc="Arithmetic shift right, modulo 64.")
table.define("aten::__not__(bool self) -> bool", lambda xp, self: not self, doc="Negation.")


@table.op("aten::__round_to_zero_floordiv.int(int a, int b) -> int")
def round_to_zero_floordiv(xp, a, b):
    """Quotient rounded towards zero."""
    if b == 0:
        raise RunError(ZERO_DIVISION)
    quotient_size = abs(a) // abs(b)
    return wrap(quotient_size if (a < 0) == (b < 0) else -quotient_size)


# -- operators of one number
def c_double(function: Callable[[float], float], at_edge: Callable[[float], float]) -> Callable[[Any, Any], Any]:
    """A `math` function on doubles; where Python raises, `at_edge` has C's result."""
    def kernel(xp: Any, a: Any) -> float:
        try:
            return function(a)
        except (ValueError, OverflowError):
            return at_edge(a)
    return kernel


def _nan(a: float) -> float:
    return math.nan


def _log_edge(a: float) -> float:
    return -math.inf if a == 0 else math.nan


def _big(a: float) -> float:
    return math.inf if math.isfinite(a) else math.nan


def of_complex(name: str, a: complex) -> complex:
    """C's function of a complex number, by NumPy, which follows C at branch points, infinities and nan; Python's cmath raises there."""
    from irtool.ops.array_library import np

    with np.errstate(all="ignore"):
        return complex(getattr(np, name)(np.complex128(a)))


def complex_too(function: Callable[[float], float], name: str, at_edge: Callable[[float], float] = _nan) -> Callable[[Any, Any], Any]:
    """The same for a kind that takes complex numbers as well; `name` is NumPy's."""
    real = c_double(function, at_edge)
    return lambda xp, a: of_complex(name, a) if isinstance(a, complex) else real(xp, a)


for _name, _real, _complex, _edge in (
        ("acos", math.acos, "arccos", _nan), ("acosh", math.acosh, "arccosh", _nan), ("asin", math.asin, "arcsin", _nan),
        ("asinh", math.asinh, "arcsinh", _nan), ("atan", math.atan, "arctan", _nan),
        ("atanh", math.atanh, "arctanh", lambda a: math.copysign(math.inf, a) if abs(a) == 1 else math.nan),
        ("cos", math.cos, "cos", _nan), ("cosh", math.cosh, "cosh", _big), ("exp", math.exp, "exp", _big),
        ("log10", math.log10, "log10", _log_edge), ("sin", math.sin, "sin", _nan),
        ("sinh", math.sinh, "sinh", lambda a: math.copysign(math.inf, a)), ("sqrt", math.sqrt, "sqrt", _nan),
        ("tan", math.tan, "tan", _nan), ("tanh", math.tanh, "tanh", _nan)):
    table.define(forms(f"aten::{_name}", "a", *UNARY_COMPLEX), complex_too(_real, _complex, _edge), doc=f"C's {_name} of a number.")


def _gamma_edge(a: float) -> float:
    if a == 0:
        return math.copysign(math.inf, a)
    return math.inf if a > 0 else math.nan


for _name, _real, _edge in (
        ("degrees", math.degrees, _nan), ("erf", math.erf, _nan), ("erfc", math.erfc, _nan), ("expm1", math.expm1, _big),
        ("fabs", math.fabs, _nan), ("gamma", math.gamma, _gamma_edge), ("lgamma", math.lgamma, lambda a: math.inf),
        ("log1p", math.log1p, lambda a: -math.inf if a == -1 else math.nan), ("radians", math.radians, _nan)):
    table.define(forms(f"aten::{_name}", "a", *UNARY_REAL), c_double(_real, _edge), doc=f"C's {_name} of a number.")


def _round(xp: Any, a: Any) -> float:
    value = float(a)
    return math.copysign(float(round(value)), value) if math.isfinite(value) else value


table.define(forms("aten::round", "a", *UNARY_REAL), _round, doc="Nearest whole number, ties to even, as a float.")


def to_int(a: float, rounding: Callable[[float], int]) -> int:
    """A rounded float as an int. Raises as torch does for nan, infinities and what does not fit."""
    if not math.isfinite(a) or not -9.223372036854776e18 <= a < 9.223372036854776e18:
        shown = "nan" if a != a else f"{a:f}"
        raise RunError(f"Cannot convert float {shown} to integer")
    return rounding(a)


def _whole(rounding: Callable[[float], int]) -> Callable[[Any, Any], Any]:
    return lambda xp, a: a if isinstance(a, int) else to_int(a, rounding)


WHOLE = ("Scalar: Scalar -> Scalar", "float: float -> int", "int: int -> int")
table.define(forms("aten::ceil", "a", *WHOLE), _whole(math.ceil), doc="Rounded up, an int.")
table.define(forms("aten::floor", "a", *WHOLE), _whole(math.floor), doc="Rounded down, an int.")


@table.op(*forms("aten::neg", "a", "Scalar: Scalar -> Scalar", "complex: complex -> complex", "float: float -> float", "int: int -> int"))
def neg(xp, a):
    """The negative; the smallest int stays."""
    return wrapped(-a)


@table.op(*forms("prim::abs", "a", "Scalar: Scalar -> Scalar", "complex: complex -> float", "float: float -> float", "int: int -> int"))
def absolute(xp, a):
    """Absolute value; the smallest int stays."""
    return wrapped(abs(a))


@table.op(*forms("aten::angle", "a", "Scalar: Scalar -> Scalar", "complex: complex -> float", "float: float -> float",
                 "int: int -> float"))
def angle(xp, a):
    """0 or pi for real numbers, the phase for complex ones."""
    if isinstance(a, complex):
        return cmath.phase(a)
    return math.pi if math.copysign(1.0, a) < 0 else 0.0


def _log(xp: Any, a: Any, b: Any = None) -> Any:
    if isinstance(a, complex):
        top: Any = of_complex("log", a)
    else:
        top = math.log(a) if a > 0 else _log_edge(a)
    if b is None:
        return top
    bottom = _log(xp, b)
    return _div(xp, top, bottom)


table.define(forms("aten::log", "a", *UNARY_COMPLEX), _log, doc="Natural logarithm.")
table.define(forms("aten::log", "a b", "Scalar_Scalar: Scalar Scalar -> float", "complex_complex: complex complex -> complex",
                   "complex_float: complex float -> complex", "complex_int: complex int -> complex",
                   "float_complex: float complex -> complex", "float_float: float float -> float", "float_int: float int -> float",
                   "int_complex: int complex -> complex", "int_float: int float -> float", "int_int: int int -> float"), _log,
             doc="Logarithm of a to the base b.")


@table.op("aten::factorial.int(int a) -> int")
def factorial(xp, a):
    """a!, wrapping at 64 bits."""
    if a < 0:
        raise RunError("factorial() not defined for negative values")
    return 0 if a > 65 else wrap(math.factorial(a))      # from 66 on, 2 ** 64 divides it


table.define("aten::modf(float a) -> (float, float)", lambda xp, a: math.modf(a), doc="Fraction and whole part, both signed as a.")
table.define("aten::frexp(float a) -> (float, int)", lambda xp, a: math.frexp(a), doc="Mantissa in [0.5, 1) and exponent.")
TESTS = ("complex: complex -> bool", "float: float -> bool")
table.define(forms("aten::isnan", "a", *TESTS), lambda xp, a: cmath.isnan(a), doc="Is it nan?")
table.define(forms("aten::isinf", "a", *TESTS), lambda xp, a: cmath.isinf(a), doc="Is it infinite?")
table.define(forms("aten::isfinite", "a", *TESTS), lambda xp, a: cmath.isfinite(a), doc="Is it finite?")


# -- conversions
def c_int(a: float) -> int:
    """A double cast to int64 as x86 does it: towards zero; numbers out of range become the smallest int."""
    return int(a) if math.isfinite(a) and -9.223372036854776e18 <= a < 9.223372036854776e18 else -BIAS


def _to_int(xp: Any, a: Any) -> int:
    return c_int(a) if isinstance(a, float) else int(a)


table.define(forms("aten::Int", "a", "Scalar: Scalar -> int", "bool: bool -> int", "float: float -> int"), _to_int, doc="int(a).")
table.define(forms("aten::Float", "a", "Scalar: Scalar -> float", "bool: bool -> float", "int: int -> float"),
             lambda xp, a: float(a.real), doc="float(a); the real part of a complex number.")
table.define(forms("aten::Bool", "a", "float: float -> bool", "int: int -> bool"), lambda xp, a: bool(a), doc="bool(a).")
table.define("aten::Complex.Scalar(Scalar a) -> complex", lambda xp, a: complex(a), doc="complex(a).")
table.define([f"aten::Complex.{x}_{y}({x} x, {y} y) -> complex" for x in ("bool", "float", "int") for y in ("bool", "float", "int")],
             lambda xp, x, y: complex(x, y), doc="complex(x, y).")


@table.op("aten::Int.str(str a) -> int")
def int_of_text(xp, a):
    """int(a), base ten, nothing around it."""
    if not a.lstrip("+-").isdecimal() or not a.isascii() or len(a) - len(a.lstrip("+-")) > 1:
        raise RunError(f"invalid literal for int() with base 10: '{a}'" if a.strip()[:1].isdecimal() else "stoll")
    value = int(a) if len(a) < 25 else BIAS
    if not -BIAS <= value < BIAS:
        raise RunError("stoll")
    return value


# -- counting loops
@table.op("aten::__range_length(int lo, int hi, int step) -> int")
def range_length(xp, lo, hi, step):
    """Trips of `for i in range(lo, hi, step)`."""
    if step == 0:
        raise RunError("range() arg 3 must not be zero")
    return len(range(lo, hi, step))


@table.op("aten::__derive_index(int index, int start, int step) -> int")
def derive_index(xp, index, start, step):
    """The loop variable of trip `index`."""
    return wrap(start + index * step)


def _common(a: Any, b: Any) -> tuple[Any, Any]:
    return (float(a), float(b)) if isinstance(a, float) or isinstance(b, float) else (a, b)


@table.op(*forms("prim::max", "a b", *REAL_ARITHMETIC))
def larger(xp, a, b):
    """The larger number; the second one beside nan."""
    a, b = _common(a, b)
    return a if a > b else b


@table.op(*forms("prim::min", "a b", *REAL_ARITHMETIC))
def smaller(xp, a, b):
    """The smaller number; the second one beside nan."""
    a, b = _common(a, b)
    return a if a < b else b
