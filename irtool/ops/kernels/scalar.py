"""Arithmetic of Python numbers as TorchScript does it: 64-bit ints that wrap, C doubles that do not raise, torch's error texts.

One kernel serves all number overloads of a kind; the schemas are written by `forms`, in torch's spelling.
"""
from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from irtool.ir.errors import RunError
from irtool.ops.kernels.c_numbers import (
    BIAS,
    big,
    c_double,
    c_int,
    c_modulo,
    complex_too,
    float32,
    floor_quotient,
    gamma_edge,
    int32,
    log_edge,
    nan,
    narrow,
    of_complex,
    polar,
    power,
    quotient,
    to_int,
    wrap,
    wrapped,
)
from irtool.ops.op import OpTable

table = OpTable("scalar")
ZERO_DIVISION = "ZeroDivisionError: integer division or modulo by zero"
FLOAT_DIVMOD = "ZeroDivisionError: float divmod()"

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
UNARY_COMPLEX = ("complex: complex -> complex", "float: float -> float", "int: int -> float")
UNARY_REAL = ("float: float -> float", "int: int -> float")


def define(kind: str, names: str, lines: Sequence[str], kernel: Callable[..., Any], doc: str, of_scalars: str = "") -> None:
    """An operator with one kernel. For numbers whose types are not known until the run (Scalar, as of `x.item()`), torch takes no bool, and
    complex numbers only where `of_scalars` is "complex"."""
    plain = [line for line in lines if " Scalar" not in line]
    table.define(forms(kind, names, *plain), kernel, doc=doc)
    if len(plain) == len(lines):
        return
    refused = (bool,) if of_scalars else (bool, complex)

    def checked(xp: Any, a: Any, b: Any) -> Any:
        if isinstance(a, refused) or isinstance(b, refused):
            raise RunError("expected int")
        return kernel(xp, a, b)

    table.define(forms(kind, names, *[line for line in lines if " Scalar" in line]), checked, doc=doc)


def define_unary(kind: str, types: tuple[str, ...], kernel: Callable[[Any, Any], Any], doc: str) -> None:
    """An operator of one number. Of a Scalar, whose type is not known until the run, torch makes C's float or int, and takes no bool."""
    table.define(forms(kind, "a", *types), kernel, doc=doc)
    refused = (bool,) if types[0].startswith("complex") else (bool, complex)

    def checked(xp: Any, a: Any) -> Any:
        if isinstance(a, refused):
            raise RunError("expected int")
        return narrow(kernel(xp, a))

    table.define(forms(kind, "a", "Scalar: Scalar -> Scalar"), checked, doc=f"{doc} A float or int of 32 bits.")


# -- operators of two numbers
def _add(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(a, complex) is not isinstance(b, complex):
        return complex(a.real + b.real, a.imag if isinstance(a, complex) else b.imag)
    return wrapped(a + b)


def _sub(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(a, complex) is not isinstance(b, complex):
        return complex(a.real - b.real, a.imag if isinstance(a, complex) else -b.imag)
    return wrapped(a - b)


def _mul(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(a, complex) is not isinstance(b, complex):
        number, factor = (a, b) if isinstance(a, complex) else (b, a)
        return complex(number.real * factor, number.imag * factor)
    return wrapped(a * b)


def _div(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(a, complex) and not isinstance(b, complex):
        return complex(quotient(a.real, b), quotient(a.imag, b))
    if isinstance(a, complex) or isinstance(b, complex):
        if b:
            return a / b
        return complex(quotient(complex(a).real, 0.0), quotient(complex(a).imag, 0.0))
    return quotient(float(a), float(b))


def _floordiv(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            raise RunError("division by 0")
        return wrap(a // b)
    return floor_quotient(float(a), float(b))


def _remainder(xp: Any, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            raise RunError(ZERO_DIVISION)
        return c_modulo(wrap(b + c_modulo(a, b)), b)        # as torch writes it: the sum may overflow
    if b == 0 or not math.isfinite(a) or not math.isfinite(b):
        return math.nan
    return math.fmod(b + math.fmod(a, b), b)


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


def _pow(xp: Any, a: Any, b: Any) -> Any:
    if not isinstance(a, complex) and not isinstance(b, complex) and a == 0 and b < 0:
        raise RunError("0.0 cannot be raised to a negative power")
    return power(a, b)


def _int_pow(xp: Any, a: int, b: int) -> int:
    return wrap(pow(a, b, 1 << 64)) if b >= 0 else wrap(int(_pow(None, a, b)))


def _atan2(xp: Any, a: Any, b: Any) -> float:
    return math.atan2(a, b)


def _polar(xp: Any, a: Any, b: Any) -> complex:
    return polar(a, b)


def _int_divmod(xp: Any, x: int, y: int) -> tuple[int, int]:
    if y == 0:
        raise RunError(ZERO_DIVISION)
    return wrap(x // y), x % y


def _float_divmod(xp: Any, x: float, y: float) -> tuple[float, float]:
    if y == 0:
        raise RunError(FLOAT_DIVMOD)
    rest = _fmod(xp, x, y)
    if rest and (x < 0) != (y < 0):
        rest += y
    return quotient(x - rest, y), rest


def _mixed_divmod(xp: Any, x: Any, y: Any) -> tuple[float, float]:
    x, y = narrow(x), narrow(y)         # torch declares them as C's int and float
    if y == 0:
        raise RunError(FLOAT_DIVMOD)
    whole = float(to_int(float32(quotient(float32(x), float32(y))), math.floor))
    return whole, x - whole * y


define("aten::add", "a b", (*COMPLEX_ARITHMETIC, "str: str str -> str"), _add, "Sum of two numbers; two strings joined.", "complex")
define("aten::sub", "a b", COMPLEX_ARITHMETIC, _sub, "Difference of two numbers.", "complex")
define("aten::mul", "a b", COMPLEX_ARITHMETIC, _mul, "Product of two numbers.", "complex")
define("aten::div", "a b", (": Scalar Scalar -> float", "complex: complex complex -> complex", "float: float float -> float",
                           "int: int int -> float"), _div, "True quotient, a float even of ints; x / 0 is inf or nan.")
define("aten::floordiv", "a b", REAL_ARITHMETIC, _floordiv, "Quotient rounded down.")
define("aten::remainder", "a b", REAL_ARITHMETIC, _remainder, "Python's %: the sign is the divisor's.")
define("aten::fmod", "a b", REAL_TO_FLOAT, _fmod, "C's fmod: the sign is the dividend's.")
define("aten::mathremainder", "a b", REAL_TO_FLOAT, _mathremainder, "IEEE remainder.")
define("aten::copysign", "a b", REAL_TO_FLOAT, _copysign, "Size of a, sign of b.")
define("aten::pow", "a b", ("Scalar_Scalar: Scalar Scalar -> float",), lambda xp, a, b: power(a, b), "C's power, of zero as well.")
table.define(forms("aten::pow", "a b", "complex: complex complex -> complex",
                   "complex_float: complex float -> complex", "float: float float -> float", "float_complex: float complex -> complex",
                   "float_int: float int -> float", "int: int int -> float", "int_float: int float -> float"), _pow, doc="Power, a float.")
table.define(forms("aten::pow", "a b", "int_to_int: int int -> int"), _int_pow, doc="Power of ints, an int that wraps.")
define("aten::atan2", "a b", ("Scalar_Scalar: Scalar Scalar -> float", *REAL_TO_FLOAT[1:]), _atan2, "Angle of (b, a).")
define("aten::polar", "a b", ("Scalar_Scalar: Scalar Scalar -> Scalar", "float: float float -> complex",
                             "float_int: float int -> complex", "int: int int -> complex", "int_float: int float -> complex"), _polar,
       "The complex number of absolute value a and angle b.")
table.define("aten::divmod.int(int x, int y) -> (int, int)", _int_divmod, doc="Quotient rounded down, and rest.")
table.define("aten::divmod.float(float x, float y) -> (float, float)", _float_divmod, doc="The rest with y's sign, and (x - rest) / y.")
table.define(forms("aten::divmod", "x y", "float_int: float int -> (float, float)", "int_float: int float -> (float, float)"),
             _mixed_divmod, doc="Quotient rounded down, and rest, in numbers of 32 bits.")
table.define("aten::gcd.int(int a, int b) -> int", lambda xp, a, b: wrap(math.gcd(a, b)), doc="Greatest common divisor, not negative.")


@table.op("aten::ldexp(float x, int i) -> float")
def ldexp(xp, x, i):
    """x * 2 ** i, of the low 32 bits of i."""
    try:
        return math.ldexp(x, int32(i))
    except OverflowError:
        return math.copysign(math.inf, x)


# -- comparisons and logic
def _equal_lists(a: list[Any], b: list[Any]) -> bool:
    return a is b or len(a) == len(b) and all(map(operator.eq, a, b))      # Python takes a nan in both for equal


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], bool]:
    def kernel(xp: Any, a: Any, b: Any) -> bool:
        if isinstance(a, list):
            return _equal_lists(a, b) is (compare is operator.eq)
        if type(a) is not type(b):      # C++ compares doubles, in which a large int is rounded; Python compares exactly
            if type(b) is float and type(a) is int:
                a = float(a)
            elif type(a) is float and type(b) is int:
                b = float(b)
        return bool(compare(a, b))
    return kernel


define("aten::eq", "a b", EQUALITY, _comparison(operator.eq), "Equality.", "complex")
define("aten::ne", "a b", EQUALITY, _comparison(operator.ne), "Inequality.", "complex")
define("aten::lt", "a b", ORDERING, _comparison(operator.lt), "Less.")
define("aten::le", "a b", ORDERING, _comparison(operator.le), "Less or equal.")
define("aten::gt", "a b", ORDERING, _comparison(operator.gt), "Greater.")
define("aten::ge", "a b", ORDERING, _comparison(operator.ge), "Greater or equal.")
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
for _name, _real, _complex, _edge in (
        ("acos", math.acos, "arccos", nan), ("acosh", math.acosh, "arccosh", nan), ("asin", math.asin, "arcsin", nan),
        ("asinh", math.asinh, "arcsinh", nan), ("atan", math.atan, "arctan", nan),
        ("atanh", math.atanh, "arctanh", lambda a: math.copysign(math.inf, a) if abs(a) == 1 else math.nan),
        ("cos", math.cos, "cos", nan), ("cosh", math.cosh, "cosh", big), ("exp", math.exp, "exp", big),
        ("log10", math.log10, "log10", log_edge), ("sin", math.sin, "sin", nan),
        ("sinh", math.sinh, "sinh", lambda a: math.copysign(math.inf, a)), ("sqrt", math.sqrt, "sqrt", nan),
        ("tan", math.tan, "tan", nan), ("tanh", math.tanh, "tanh", nan)):
    define_unary(f"aten::{_name}", UNARY_COMPLEX, complex_too(_real, _complex, _edge), f"C's {_name} of a number.")


for _name, _real, _edge in (
        ("degrees", math.degrees, nan), ("erf", math.erf, nan), ("erfc", math.erfc, nan), ("expm1", math.expm1, big),
        ("fabs", math.fabs, nan), ("gamma", math.gamma, gamma_edge), ("lgamma", math.lgamma, lambda a: math.inf),
        ("log1p", math.log1p, lambda a: -math.inf if a == -1 else math.nan), ("radians", math.radians, nan)):
    define_unary(f"aten::{_name}", UNARY_REAL, c_double(_real, _edge), f"C's {_name} of a number.")


def _round(xp: Any, a: Any) -> float:
    value = float(a)
    return math.copysign(float(round(value)), value) if math.isfinite(value) else value


define_unary("aten::round", UNARY_REAL, _round, "Nearest whole number, ties to even, as a float.")


def _whole(rounding: Callable[[float], int]) -> Callable[[Any, Any], Any]:
    return lambda xp, a: c_int(float(a)) if isinstance(a, int) else to_int(a, rounding)      # torch rounds an int as a double


WHOLE = ("float: float -> int", "int: int -> int")
define_unary("aten::ceil", WHOLE, _whole(math.ceil), "Rounded up, an int.")
define_unary("aten::floor", WHOLE, _whole(math.floor), "Rounded down, an int.")
define_unary("aten::neg", ("complex: complex -> complex", "float: float -> float", "int: int -> int"), lambda xp, a: wrapped(-a),
             "The negative; the smallest int stays.")
define_unary("prim::abs", ("complex: complex -> float", "float: float -> float", "int: int -> int"), lambda xp, a: wrapped(abs(a)),
             "Absolute value; the smallest int stays.")


def _angle(xp: Any, a: Any) -> float:
    if isinstance(a, complex):
        return cmath.phase(a)
    return math.pi if math.copysign(1.0, a) < 0 else 0.0


define_unary("aten::angle", ("complex: complex -> float", "float: float -> float", "int: int -> float"), _angle,
             "0 or pi for real numbers, the phase for complex ones.")


def _log(xp: Any, a: Any, b: Any = None) -> Any:
    if isinstance(a, complex):
        top: Any = of_complex("log", a)
    else:
        top = math.log(a) if a > 0 else log_edge(a)
    if b is None:
        return top
    bottom = _log(xp, b)
    return _div(xp, top, bottom)


define_unary("aten::log", UNARY_COMPLEX, _log, "Natural logarithm.")
define("aten::log", "a b", ("Scalar_Scalar: Scalar Scalar -> float", "complex_complex: complex complex -> complex",
                  "complex_float: complex float -> complex", "complex_int: complex int -> complex",
                  "float_complex: float complex -> complex", "float_float: float float -> float", "float_int: float int -> float",
                  "int_complex: int complex -> complex", "int_float: int float -> float", "int_int: int int -> float"), _log,
       "Logarithm of a to the base b.")


@table.op("aten::factorial.int(int a) -> int")
def factorial(xp, a):
    """a!, of the low 32 bits of a, wrapping at 64 bits."""
    a = int32(a)
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
def _to_int(xp: Any, a: Any) -> int:
    return c_int(a) if isinstance(a, float) else int(a)


table.define(forms("aten::Int", "a", "bool: bool -> int", "float: float -> int"), _to_int, doc="int(a).")


@table.op("aten::Int.Scalar(Scalar a) -> int")
def int_of_scalar(xp, a):
    """int(a), towards zero; what is no int has to fit into C's int, and a complex number to be real."""
    if isinstance(a, int):
        return int(a)
    if a.imag or not -2.0 ** 31 <= a.real <= 2.0 ** 31 - 1:
        raise RunError("value cannot be converted to type int without overflow")
    return int(a.real)


def _to_float(xp: Any, a: Any) -> float:
    return float(a.real)


def _float_of_scalar(xp: Any, a: Any) -> float:
    if isinstance(a, bool):
        raise RunError("expected int")
    return float(a.real)


table.define(forms("aten::Float", "a", "bool: bool -> float", "int: int -> float"), _to_float, doc="float(a).")
table.define("aten::Float.Scalar(Scalar a) -> float", _float_of_scalar, doc="float(a); the real part of a complex number.")
table.define(forms("aten::Bool", "a", "float: float -> bool", "int: int -> bool"), lambda xp, a: bool(a), doc="bool(a).")


@table.op("aten::Complex.Scalar(Scalar a) -> complex")
def complex_of_scalar(xp, a):
    """complex(a)."""
    if isinstance(a, bool):
        raise RunError("expected int")
    return complex(a)


table.define([f"aten::Complex.{x}_{y}({x} x, {y} y) -> complex" for x in ("bool", "float", "int") for y in ("bool", "float", "int")],
             lambda xp, x, y: complex(*[int32(part) if isinstance(part, int) else part for part in (x, y)]),
             doc="complex(x, y), of the low 32 bits of ints.")


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


table.define("aten::__derive_index(int index, int start, int step) -> int", lambda xp, index, start, step: wrap(start + index * step),
             doc="The loop variable of trip `index`.")


def _common(a: Any, b: Any) -> tuple[Any, Any]:
    return (float(a), float(b)) if isinstance(a, float) or isinstance(b, float) else (a, b)


def _larger(xp: Any, a: Any, b: Any) -> Any:
    a, b = _common(a, b)
    return a if a > b else b


def _smaller(xp: Any, a: Any, b: Any) -> Any:
    a, b = _common(a, b)
    return a if a < b else b


define("prim::max", "a b", REAL_ARITHMETIC, _larger, "The larger number; the second one beside nan.")
define("prim::min", "a b", REAL_ARITHMETIC, _smaller, "The smaller number; the second one beside nan.")
