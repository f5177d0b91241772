"""Pointwise operators of two and three tensors: arithmetic, powers, minimum and maximum, choice.

Operands arrive broadcastable and, where a promotion rule is named, in their common dtype (`alpha` too); `value` stays a Python number.
"""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import as_array, astype, copied, title
from irtool.ops.checks import fit, only, refuse, widen
from irtool.ops.op import OpTable
from irtool.ops.powers import power_in
from irtool.ops.promotion import ARITHMETIC, PROMOTE, QUOTIENT, TO_FLOAT, Rule, float_of, result_type

table = OpTable("pointwise")

TENSOR = "(Tensor self, Tensor other) -> Tensor"
SCALAR = "(Tensor self, Scalar other) -> Tensor"
SCALAR_TENSOR = "(Scalar self, Tensor other) -> Tensor"


def _both(names):
    """The `.Tensor` and `.Scalar` overloads of each name."""
    return [f"aten::{name}.{overload}(Tensor self, {overload} other) -> Tensor"
            for name in names.split() for overload in ("Tensor", "Scalar")]


# ---- sums: self + alpha * other

ALPHA = (", *, Scalar alpha=1", ", Scalar alpha=1")


def _with_alpha(names):
    return [f"aten::{name}.{overload}(Tensor self, {overload} other{tail}) -> Tensor"
            for name in names.split() for overload, tail in zip(("Tensor", "Scalar"), ALPHA, strict=True)]


def _times(xp, other, alpha):
    """alpha * other; a complex product even with 1, because torch makes inf * (1 + 0j) an inf with a nan."""
    return other if alpha == 1 and other.dtype.kind != "c" else xp.multiply(other, alpha)


@table.op(*_with_alpha("add"), promote=ARITHMETIC)
def add(xp, self, other, alpha):
    """Sum, `other` times `alpha` first; of bools: or."""
    return xp.add(self, _times(xp, other, alpha))


def no_bool_difference(operands):
    """Raises torch's error where a tensor of bools would be subtracted."""
    bools = [isinstance(x, bool) or getattr(x, "dtype", None) == "bool" for x in operands]
    if all(bools):
        raise RunError("Subtraction, the `-` operator, with two bool tensors is not supported. "
                       "Use the `^` or `logical_xor()` operator instead.")
    if any(bools):
        raise RunError("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
                       "use the `~` or `logical_not()` operator instead.")


DIFFERENCE = Rule("DIFFERENCE", "common", "compute", no_bool_difference, exact_numbers=True)


@table.op(*_with_alpha("sub subtract"), promote=DIFFERENCE)
def sub(xp, self, other, alpha):
    """Difference, `other` times `alpha` first. Bool is refused."""
    return xp.subtract(self, _times(xp, other, alpha))


@table.op(*_with_alpha("rsub"), promote=DIFFERENCE)
def rsub(xp, self, other, alpha):
    """other - alpha * self."""
    return xp.subtract(other, _times(xp, self, alpha))


@table.op(*_with_alpha("_add_relu"), promote=PROMOTE)
def add_relu(xp, self, other, alpha):
    """Sum with negative results made 0."""
    total = xp.add(self, _times(xp, other, alpha))
    return xp.where(total > 0, total, as_array(0, self.dtype))     # nan becomes 0, as in torch


@table.op(*_both("mul multiply"), promote=ARITHMETIC)
def mul(xp, self, other):
    """Product; of bools: and."""
    return xp.multiply(self, other)


# ---- quotients and remainders

def refuse_zero_divisor(xp, self, other):
    """torch raises when an integer is divided by zero; nothing is divided when the result is empty."""
    if other.dtype.kind in "iu" and self.size and other.size and not other.all():
        raise RunError("ZeroDivisionError")


@table.op(*_both("div divide true_divide"), promote=QUOTIENT)
def div(xp, self, other):
    """True quotient; integers give float32."""
    return xp.true_divide(self, other)


def floor_quotient(xp, self, other):
    """Quotient rounded down, in the common dtype."""
    only("div_floor_cpu", "iuf", self)
    refuse_zero_divisor(xp, self, other)
    return xp.floor_divide(self, other)


def trunc_quotient(xp, self, other):
    """Quotient rounded towards zero, in the common dtype."""
    only("div_trunc_cpu", "iuf", self)
    if self.dtype.kind == "f":
        return xp.trunc(xp.true_divide(self, other))
    refuse_zero_divisor(xp, self, other)
    quotient = xp.floor_divide(self, other)
    if self.dtype.kind == "u":
        return quotient
    return quotient + ((xp.remainder(self, other) != 0) & ((self < 0) != (other < 0)))


def _rule_of_mode(values):
    return QUOTIENT if values[2] is None else ARITHMETIC


@table.op(*(f"aten::{name}.{overload}_mode(Tensor self, {overload} other, *, str? rounding_mode) -> Tensor"
            for name in ("div", "divide") for overload in ("Tensor", "Scalar")), promote=_rule_of_mode)
def div_mode(xp, self, other, rounding_mode):
    """Quotient: true (None), or rounded `trunc` or `floor`, then in the common dtype."""
    if rounding_mode is None:
        return xp.true_divide(self, other)
    if rounding_mode == "floor":
        return floor_quotient(xp, self, other)
    if rounding_mode == "trunc":
        return trunc_quotient(xp, self, other)
    raise RunError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


@table.op("aten::floor_divide" + TENSOR, "aten::floor_divide.Scalar" + SCALAR, promote=ARITHMETIC)
def floor_divide(xp, self, other):
    """Quotient rounded down."""
    return floor_quotient(xp, self, other)


@table.op(*_both("remainder"), "aten::remainder.Scalar_Tensor" + SCALAR_TENSOR, promote=PROMOTE)
def remainder(xp, self, other):
    """self - other * floor(self / other): the sign of the divisor, as Python's %; a zero has the sign of the dividend."""
    only("remainder_cpu", "iuf", self)
    refuse_zero_divisor(xp, self, other)
    if self.dtype.kind != "f":
        return xp.remainder(self, other)
    rest = xp.fmod(self, other)
    return xp.where((rest != 0) & ((rest < 0) != (other < 0)), rest + other, rest)


@table.op(*_both("fmod"), promote=PROMOTE)
def fmod(xp, self, other):
    """Remainder with the sign of the dividend, as C's fmod."""
    only("fmod_cpu", "iuf", self)
    refuse_zero_divisor(xp, self, other)
    return xp.fmod(self, other)


# ---- powers

def _power(xp, base, exponent):
    """base ** exponent, both in one dtype. Integer to a negative power: 1/x truncated, so only 1 and -1 stay."""
    only("pow", "iufc", base)
    if base.dtype.kind == "i":
        negative = exponent < 0
        if negative.any():
            unit = xp.where(base == 1, 1, xp.where(base == -1, 1 - 2 * (exponent & 1), 0)).astype(base.dtype)
            return xp.where(negative, unit, xp.power(base, xp.where(negative, 0, exponent).astype(base.dtype)))
    if base.dtype.kind == "c":
        return complex_power(xp, base, exponent)
    return power_in(xp, base, exponent)


def complex_power(xp, base, exponent):
    """z ** w; of 0, inf and nan it is exp(w log z) as in C++, where NumPy has its own conventions."""
    return xp.where((base == 0) | ~xp.isfinite(base), xp.exp(exponent * xp.log(base)), xp.power(base, exponent))


@table.op("aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", promote=PROMOTE)
def pow_tensor(xp, self, exponent):
    """self ** exponent; integers to negative powers give 0, 1 or -1."""
    return _power(xp, self, exponent)


def _to_number(xp, self, exponent):
    """self ** a number, in their common dtype."""
    dtype = result_type([self, exponent])
    if exponent == 0:
        return xp.ones_like(self, dtype)
    base = astype(self, dtype)
    if exponent == 1:
        return copied(base)
    if dtype.kind in "iu" and exponent < 0:
        raise RunError("Integers to negative integer powers are not allowed.")
    if dtype.kind in "iu" or dtype == xp.float16:
        fit(exponent, dtype)
    if exponent == 2:
        return xp.multiply(base, base)
    if dtype != xp.float16:     # as torch does: a power proper takes many times as long
        if exponent == 3:
            return xp.multiply(xp.multiply(base, base), base)
        if exponent == -1:
            return xp.divide(dtype.type(1), base)
        if exponent == -2:
            return xp.divide(dtype.type(1), xp.multiply(base, base))
        if exponent == -0.5:
            return xp.divide(dtype.type(1), xp.sqrt(base))
        if exponent == 0.5:
            return xp.sqrt(base)
    return _power(xp, base, as_array(exponent, dtype))


table.define("aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", _to_number,
             doc="self ** a number; integers to negative integer powers are refused.")


@table.op("aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor")
def pow_of_number(xp, self, exponent):
    """A number ** exponent, in torch's new memory, which is not laid out as the exponent."""
    dtype = result_type([self, exponent])
    if self == 1 and not isinstance(self, bool):
        return xp.ones(exponent.shape, dtype)
    return _power(xp, as_array(self, dtype), astype(exponent, dtype))


def _float_power(xp, self, exponent):
    """self ** exponent in float64, complex128 when either is complex."""
    dtype = xp.complex128 if result_type([self, exponent]).kind == "c" else xp.float64
    return _power(xp, as_array(self, dtype), as_array(exponent, dtype))


table.define("aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", _float_power, doc="self ** exponent in doubles.")
table.define("aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", _float_power, doc="A number ** exponent in doubles.")
table.laid_out("C", "pow.Scalar float_power.Scalar")


@table.op("aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor")
def float_power_of_tensor(xp, self, exponent):
    """self ** a number in float64, complex128 when either is complex."""
    return _to_number(xp, astype(self, xp.complex128 if result_type([self, exponent]).kind == "c" else xp.float64), exponent)


@table.op("aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor")
def ldexp(xp, self, other):
    """self * 2 ** other; a float tensor keeps its dtype when `other` is whole."""
    if self.dtype.kind == "f" and other.dtype.kind in "biu":
        only("ldexp_cpu_exp", "iu", other)
        return xp.ldexp(self, xp.clip(other, -100000, 100000).astype(xp.int32))
    narrow = float_of(result_type([2.0, other]))
    dtype = result_type([self, astype(other, narrow)])
    if not other.ndim and self.dtype not in (xp.float16, xp.float32):       # the 2 has the dtype of self, and as few dimensions as `other`
        narrow = dtype
    power = as_array(_power(xp, as_array(2.0, narrow), astype(other, narrow)))
    if self.ndim and not other.ndim and dtype == xp.float16:        # a factor without dimensions is not rounded to float16
        return (astype(self, xp.float32) * astype(power, xp.float32)).astype(dtype)
    return xp.multiply(astype(self, dtype), astype(power, dtype))


# ---- two floats

def _float_pair(name, function, doc, promote=PROMOTE):
    """A function of two float arrays, refused for the other dtypes under torch's kernel name."""
    def kernel(xp, self, other):
        only(f"{name}_cpu", "f", self)
        return getattr(xp, function)(self, other)
    table.define(f"aten::{name}{TENSOR}", kernel, promote, doc=doc)
    return kernel


_atan2 = _float_pair("atan2", "arctan2", "Angle of the point (other, self), in (-pi, pi].", TO_FLOAT)
table.define(f"aten::arctan2{TENSOR}", _atan2, TO_FLOAT, doc="Another name of atan2.")
_float_pair("hypot", "hypot", "sqrt(self ** 2 + other ** 2) without overflow.")
_float_pair("nextafter", "nextafter", "The next float after self towards other.")
_float_pair("logaddexp2", "logaddexp2", "log2(2 ** self + 2 ** other) without overflow.")


@table.op("aten::copysign.Tensor" + TENSOR, "aten::copysign.Scalar" + SCALAR, promote=TO_FLOAT)
def copysign(xp, self, other):
    """|self| with the sign of other; -0.0 counts as negative."""
    only("copysign_cpu", "f", self)
    return xp.copysign(self, other)


@table.op("aten::logaddexp" + TENSOR, promote=PROMOTE)
def logaddexp(xp, self, other):
    """log(exp(self) + exp(other)) without overflow."""
    only("logaddexp_cpu", "fc", self)
    if self.dtype.kind == "f":
        return xp.logaddexp(self, other)
    return log_add(xp, self, other).astype(self.dtype, copy=False)


def log_add(xp, x, y):
    """log(exp(x) + exp(y)) of complex numbers; y where both exponentials are 0, and nan in both parts where one is nan, as in torch."""
    is_less = x.real < y.real
    low, high = xp.where(is_less, x, y), xp.where(is_less, y, x)
    difference = low - high
    ratio = xp.where(difference.real == -math.inf, 0, xp.exp(difference))
    same = xp.isinf(low.real) & (low.real == high.real)
    total = xp.where(same, xp.where(low.real < 0, low, xp.log(xp.exp(low) + xp.exp(high))), high + xp.log(1 + ratio))
    return xp.where(xp.isnan(x) | xp.isnan(y), complex(math.nan, math.nan), total)


def _names(name, first, second):
    """Tensor, number-first and number-second overloads, which torch names differently for old and special_ operators."""
    tensor = ".Tensor" if name == "xlogy" else ""
    return (f"aten::{name}{tensor}{TENSOR}", f"aten::{name}.{first}{SCALAR_TENSOR}", f"aten::{name}.{second}{SCALAR}")


def _x_times_log(log, kernel_name):
    def kernel(xp, self, other):
        only(kernel_name, "f", self)
        x, y = widen(xp, self), widen(xp, other)
        product = xp.where(x == 0, x.dtype.type(0), x * getattr(xp, log)(y))
        return xp.where(xp.isnan(y), y, product)
    return kernel


table.define(_names("xlogy", "Scalar_Self", "Scalar_Other") + _names("special_xlogy", "self_scalar", "other_scalar"),
             _x_times_log("log", "xlogy_cpu"), TO_FLOAT, doc="self * log(other), 0 where self is 0 unless other is nan.")
table.define(_names("special_xlog1py", "self_scalar", "other_scalar"), _x_times_log("log1p", "xlog1py_cpu"), TO_FLOAT,
             doc="self * log(1 + other), 0 where self is 0 unless other is nan.")


@table.op("aten::heaviside(Tensor self, Tensor values) -> Tensor")
def heaviside(xp, self, values):
    """0 below zero, `values` at zero, 1 above; 0 for nan."""
    if "c" in (self.dtype.kind, values.dtype.kind):
        raise RunError("heaviside is not yet implemented for complex tensors.")
    if self.dtype != values.dtype:
        raise RunError("heaviside is not yet implemented for tensors with different dtypes.")
    return xp.where(self == 0, values, (self > 0).astype(self.dtype))


# ---- minimum and maximum

def _extreme(name, function):
    def kernel(xp, self, other):
        if self.dtype.kind == "c":
            raise RunError(f"{name} not implemented for complex tensors.", code="E0409")
        return getattr(xp, function)(self, other)
    return kernel


for _name, _also, _namesake in (("maximum", "max.other", "maximum"), ("minimum", "min.other", "minimum")):
    table.define((f"aten::{_name}{TENSOR}", f"aten::{_also}{TENSOR}"), _extreme(_name, _namesake), PROMOTE,
                 doc=f"Elementwise {_name}; nan wins.")
for _name in ("fmax", "fmin"):
    table.define(f"aten::{_name}{TENSOR}", _extreme(_name, _name), PROMOTE, doc="Elementwise extreme; a number wins over nan.")


def within(xp, x, low, high):
    """Elements of x in [low, high], numbers or None. Of equal ones (0.0 and -0.0, too) the element of x is the result."""
    first = x.dtype == xp.float16       # of equal operands NumPy takes the second, of float16 the first
    if low is not None:
        x = xp.maximum(x, low) if first else xp.maximum(low, x)
    if high is not None:
        x = xp.minimum(x, high) if first else xp.minimum(high, x)
    return x


def _check_clamp(self, min, max):
    if self.dtype.kind == "c":
        raise RunError("clamp is not supported for complex types")
    if min is None and max is None:
        raise RunError("torch.clamp: At least one of 'min' or 'max' must not be None")


def _clamp_by_numbers(xp, self, min, max):
    if min is not None or max is not None:
        only("clamp_scalar_cpu", "iufc", self)
    _check_clamp(self, min, max)
    return within(xp, self, min, max)


def _clamp_by_tensors(xp, self, min, max):
    if min is not None and max is not None:     # torch runs one bound as maximum or minimum, which take bools
        only("clamp_cpu", "iufc", self)
    _check_clamp(self, min, max)
    if min is not None:
        self = xp.maximum(self, min)
    return self if max is None else xp.minimum(self, max)


for _overload, _kind, _kernel in (("", "Scalar", _clamp_by_numbers), (".Tensor", "Tensor", _clamp_by_tensors)):
    table.define([f"aten::{name}{_overload}(Tensor self, {_kind}? min=None, {_kind}? max=None) -> Tensor" for name in ("clamp", "clip")],
                 _kernel, PROMOTE, fits="min max",
                 doc="Each element moved into [min, max]; `max` wins when they cross, nan stays and a nan bound gives nan.")


def _bounded(name, bound):
    """clamp_min or clamp_max; the number's overload refuses bool."""
    def by_tensor(xp, self, limit):
        if self.dtype.kind == "c":
            raise RunError("clamp is not supported for complex types")
        return xp.maximum(self, limit) if bound == "min" else xp.minimum(self, limit)

    def by_number(xp, self, limit):
        if self.dtype.kind == "b":
            refuse(f"{name}_scalar_cpu", self)
        if self.dtype.kind == "c":
            raise RunError("clamp is not supported for complex types")
        return within(xp, self, limit, None) if bound == "min" else within(xp, self, None, limit)

    doc = f"Each element, at {'least' if bound == 'min' else 'most'} `{bound}`."
    table.define(f"aten::{name}(Tensor self, Scalar {bound}) -> Tensor", by_number, PROMOTE, doc=doc, fits=bound)
    table.define(f"aten::{name}.Tensor(Tensor self, Tensor {bound}) -> Tensor", by_tensor, PROMOTE, doc=doc)


_bounded("clamp_min", "min")
_bounded("clamp_max", "max")


# ---- three tensors

@table.op("aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
          "aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
          "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
          "aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", promote=PROMOTE, fits="self+ other+")
def where(xp, condition, self, other):
    """Elements of `self` where the bool `condition` holds, else of `other`."""
    if condition.dtype != xp.uint8:
        if condition.dtype.kind != "b":
            raise RunError("where expected condition to be a boolean tensor, but got a tensor with dtype " + title(condition.dtype))
        return xp.where(condition, self, other)
    return xp.where(condition != 0, self, other)


def _wide(xp, dtype):
    """The dtype in which a number beside a tensor of this dtype is computed."""
    return xp.float32 if dtype == xp.float16 else dtype


def _lerp(xp, self, end, weight):
    if self.dtype.kind not in "fc":
        only("lerp_kernel_scalar", "fc", self)
    start, end, weight = widen(xp, self), widen(xp, end), widen(xp, weight)
    near = xp.abs(weight) < 0.5
    return xp.where(near, start + weight * (end - start), end - (end - start) * (1 - weight)).astype(self.dtype)


@table.op("aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
          "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", fits="weight+")
def lerp(xp, self, end, weight):
    """self + weight * (end - self), exact at weight 1. All of one dtype."""
    for name, operand in (("end", end), ("weight", weight)):
        if hasattr(operand, "dtype") and operand.dtype != self.dtype and (name == "end" or operand.ndim):
            raise RunError(f"expected dtype {_c_name(self.dtype)} for `{name}` but got dtype {_c_name(operand.dtype)}", code="E0409")
    if hasattr(weight, "dtype"):
        dtype = result_type([self, end, weight])
        self, end = astype(self, dtype), astype(end, dtype)
    return _lerp(xp, self, end, as_array(weight, _wide(xp, self.dtype)))


def _c_name(dtype):
    """A dtype as lerp's message spells it."""
    names = {"float32": "float", "float64": "double", "float16": "c10::Half", "int64": "long int", "int32": "int"}
    return names.get(dtype.name, dtype.name)


@table.op("aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", promote=PROMOTE, fits="value+")
def addcmul(xp, self, tensor1, tensor2, value):
    """self + value * tensor1 * tensor2."""
    only("addcmul_cpu_out", "iufc", self)
    factor = as_array(value, _wide(xp, self.dtype))
    return widen(xp, self) + factor * widen(xp, tensor1) * widen(xp, tensor2)


def _refuse_whole_quotient(operands):
    _, tensor1, tensor2 = operands
    if tensor1.dtype.kind in "biu" and tensor2.dtype.kind in "biu":
        raise RunError("Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
                       "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
                       "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) "
                       "for float inputs. The future addcdiv behavior is just the latter implementation: "
                       "(input + value * tensor1 / tensor2), for all dtypes.")


@table.op("aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
          promote=Rule("ADDCDIV", "common", "compute", _refuse_whole_quotient), fits="value+")
def addcdiv(xp, self, tensor1, tensor2, value):
    """self + value * tensor1 / tensor2; whole tensor1 and tensor2 are refused."""
    start, over, under = (widen(xp, x) for x in (self, tensor1, tensor2))
    return start + start.dtype.type(value) * over / under


def complex_of_parts(xp, real, imag):
    """Complex array with these parts: complex128 for float64, else complex64."""
    dtype = xp.complex128 if xp.float64 in (real.dtype, imag.dtype) else xp.complex64
    result = xp.empty(xp.broadcast_shapes(real.shape, imag.shape), dtype)
    result.real, result.imag = real, imag
    return result


def _float_parts(first, second):
    a, b = title(first.dtype), title(second.dtype)
    if not {a, b} <= {"Float", "Double", "Half"}:
        raise RunError(f"Expected both inputs to be Half, Float or Double tensors but got {a} and {b}")
    if a != b:
        raise RunError(f"Expected object of scalar type {a} but got scalar type {b} for second argument", code="E0409")


@table.op("aten::complex(Tensor real, Tensor imag) -> Tensor")
def make_complex(xp, real, imag):
    """real + i imag, of two float32 or two float64 tensors."""
    _float_parts(real, imag)
    return complex_of_parts(xp, real, imag)


@table.op("aten::polar(Tensor abs, Tensor angle) -> Tensor")
def polar(xp, abs, angle):
    """abs * exp(i angle)."""
    _float_parts(abs, angle)
    if abs.dtype == xp.float16:
        refuse("polar_cpu", abs)
    return complex_of_parts(xp, abs * xp.cos(angle), abs * xp.sin(angle))
table.laid_out("K", "addcmul addcdiv")
