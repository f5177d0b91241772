"""Pointwise operators of one tensor. Integers become float32 if the result is not integral; complex follows NumPy's branch cuts."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import copied, real_of
from irtool.ops.checks import only, refuse, row_major, widen
from irtool.ops.conjugates import conjugated, origin
from irtool.ops.op import OpTable
from irtool.ops.promotion import TO_FLOAT

table = OpTable("pointwise")


def _unary(names, kernel, doc, promote=None):
    """One stanza `f(Tensor self) -> Tensor` under all its names."""
    return table.define([f"aten::{name}(Tensor self) -> Tensor" for name in names.split()], kernel, promote, doc=doc)


def _namesake(name):
    """Kernel that is the function `name` of the array namespace."""
    return lambda xp, self: getattr(xp, name)(self)


for _names, _function, _doc in (
    ("acos arccos", "arccos", "Inverse cosine; nan outside [-1, 1]."),
    ("asin arcsin", "arcsin", "Inverse sine; nan outside [-1, 1]."),
    ("asinh arcsinh", "arcsinh", "Inverse hyperbolic sine."),
    ("atan arctan", "arctan", "Inverse tangent."),
    ("atanh arctanh", "arctanh", "Inverse hyperbolic tangent; inf at 1, -inf at -1."),
    ("cos", "cos", "Cosine."),
    ("cosh", "cosh", "Hyperbolic cosine."),
    ("exp", "exp", "e to the power of each element."),
    ("log", "log", "Natural logarithm; -inf at 0, nan below."),
    ("log2", "log2", "Logarithm to base 2."),
    ("log10", "log10", "Logarithm to base 10."),
    ("sin", "sin", "Sine."),
    ("sinh", "sinh", "Hyperbolic sine."),
    ("sqrt", "sqrt", "Square root; nan below 0."),
    ("tan", "tan", "Tangent."),
    ("tanh", "tanh", "Hyperbolic tangent."),
    ("expm1 special_expm1", "expm1", "exp(x) - 1, exact near 0."),
):
    _unary(_names, _namesake(_function), _doc, TO_FLOAT)


def _acosh(xp, self):
    return xp.arccosh(self)


_unary("acosh arccosh", _acosh, "Inverse hyperbolic cosine; nan below 1.", TO_FLOAT)


def _exp2(xp, self):
    return xp.exp(self * math.log(2)) if self.dtype.kind == "c" else xp.exp2(self)


_unary("exp2 special_exp2", _exp2, "2 to the power of each element.", TO_FLOAT)


def _log1p(xp, self):
    if self.dtype.kind != "c":
        return xp.log1p(self)
    # log|1 + z| through the real log1p keeps small z exact, as torch's log1p of complex numbers does.
    x, y = self.real, self.imag
    magnitude = xp.where((abs(x) < 0.5) & (abs(y) < 0.5), xp.log1p(x * (2 + x) + y * y) / 2, xp.log(xp.hypot(x + 1, y)))
    return _complex(xp, magnitude, xp.arctan2(y, x + 1), self.dtype)


_unary("log1p special_log1p", _log1p, "log(1 + x), exact near 0.", TO_FLOAT)


def _complex(xp, real, imag, dtype):
    result = xp.empty_like(real, dtype)
    result.real, result.imag = real, imag
    return result


def _rsqrt(xp, self):
    return 1 / xp.sqrt(widen(xp, self))


_unary("rsqrt", _rsqrt, "1 / sqrt(x).", TO_FLOAT)


def _reciprocal(xp, self):
    return xp.reciprocal(self)


_unary("reciprocal", _reciprocal, "1 / x; integers give float32.", TO_FLOAT)


def sigmoid(xp, self):
    """Logistic function 1 / (1 + exp(-x))."""
    return 1 / (1 + xp.exp(-widen(xp, self)))


_unary("sigmoid special_expit", sigmoid, "", TO_FLOAT)


def _sinc(xp, self):
    product = widen(xp, self) * math.pi
    return xp.where(product == 0, product.dtype.type(1), xp.sin(product) / product)


_unary("sinc special_sinc", _sinc, "sin(pi x) / (pi x), 1 at 0.", TO_FLOAT)


def _logit(xp, self, eps):
    only("logit_cpu", "f", self)
    x = widen(xp, self)
    if eps is not None:
        low, high = x.dtype.type(eps), x.dtype.type(1 - eps)
        x = xp.where(x < low, low, xp.where(x > high, high, x))
    return xp.log(x / (1 - x))


table.define(("aten::logit(Tensor self, float? eps=None) -> Tensor", "aten::special_logit(Tensor self, float? eps=None) -> Tensor"),
             _logit, TO_FLOAT, doc="log(x / (1 - x)), x clamped to [eps, 1 - eps] first when eps is given.", fits="eps")


def _scaled(name, factor):
    """Multiplication by a constant; complex is refused under the op's name."""
    def kernel(xp, self):
        if self.dtype.kind == "c":
            raise RunError(f"{name} is not supported for complex tensors.")
        return widen(xp, self) * factor
    return kernel


_unary("deg2rad", _scaled("deg2rad", math.pi / 180), "Degrees to radians.", TO_FLOAT)
_unary("rad2deg", _scaled("rad2deg", 180 / math.pi), "Radians to degrees.", TO_FLOAT)


def _rounding(name, function):
    """Rounds floats to whole ones, leaves integers alone."""
    def kernel(xp, self):
        if self.dtype.kind == "c" and name != "round":
            raise RunError(f"{name} is not supported for complex inputs")
        only(f"{name}_vml_cpu", "iuf", self)
        return getattr(xp, function)(self) if self.dtype.kind == "f" else copied(self)
    return kernel


_unary("ceil", _rounding("ceil", "ceil"), "Smallest whole number not below each element.")
_unary("floor", _rounding("floor", "floor"), "Largest whole number not above each element.")
_unary("trunc fix", _rounding("trunc", "trunc"), "Whole part, towards 0.")
_unary("round", _rounding("round", "rint"), "Nearest whole number, halves to even.")


@table.op("aten::round.decimals(Tensor self, *, int decimals) -> Tensor", "aten::special_round(Tensor self, *, int decimals=0) -> Tensor")
def round_decimals(xp, self, decimals):
    """Rounded to `decimals` digits after the point (before it when negative), halves to even after scaling."""
    only("round_vml_cpu" if decimals == 0 else "round_cpu", "f", self)
    x, scale = widen(xp, self), float(10 ** min(abs(decimals), 308))
    scale = x.dtype.type(scale)
    scaled = xp.rint(x * scale) / scale if decimals >= 0 else xp.rint(x / scale) * scale
    return scaled.astype(self.dtype)


def _frac(xp, self):
    only("frac_cpu", "f", self)
    return self - xp.trunc(self)


_unary("frac", _frac, "x - trunc(x).")


def _abs(xp, self):
    if self.dtype.kind == "b":
        refuse("abs_cpu", self)
    return xp.abs(self)


_unary("abs absolute", _abs, "Magnitude; of complex numbers a real array.")


def _neg(xp, self):
    if self.dtype.kind == "b":
        raise RunError("Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
                       "use the `~` or `logical_not()` operator instead.")
    return xp.negative(self)


_unary("neg negative", _neg, "-x; unsigned integers wrap.")


@table.op("aten::positive(Tensor(a) self) -> Tensor(a)")
def positive(xp, self):
    """The tensor itself."""
    if self.dtype.kind == "b":
        raise RunError("The `+` operator, on a bool tensor is not supported.")
    return self


def _sign_of_real(xp, self):
    if self.dtype.kind == "b":
        return copied(self)
    return xp.where(xp.isnan(self), self.dtype.type(0), xp.sign(self)) if self.dtype.kind == "f" else xp.sign(self)


def _sign(xp, self):
    if self.dtype.kind == "c":
        raise RunError("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.")
    return _sign_of_real(xp, self)


_unary("sign", _sign, "-1, 0 or 1; nan gives 0.")


def _sgn(xp, self):
    if self.dtype.kind != "c":
        return _sign_of_real(xp, self)
    magnitude = xp.abs(self)
    return xp.where(magnitude == 0, self.dtype.type(0), self / magnitude)


_unary("sgn", _sgn, "Sign; of a complex number z / |z|, 0 at 0.")


def _signbit(xp, self):
    if self.dtype.kind == "c":
        raise RunError("signbit is not implemented for complex tensors.", code="E0409")
    return xp.signbit(self) if self.dtype.kind == "f" else self < 0 if self.dtype.kind == "i" else xp.zeros_like(self, bool)


_unary("signbit", _signbit, "Is the sign bit set (also of -0.0)?")


def _square(xp, self):
    return xp.square(self.astype(xp.int64) if self.dtype.kind == "b" else self)


_unary("square", _square, "x * x; bool gives int64.")


def _angle(xp, self):
    if self.dtype.kind == "c":
        return row_major(xp, xp.arctan2(self.imag, self.real).astype(real_of(self.dtype)))
    if self.dtype.kind != "f":
        self = self.astype(xp.float32)
    kind = self.dtype.type
    return xp.where(xp.isnan(self), self, xp.where(self < 0, kind(math.pi), kind(0)))


_unary("angle", _angle, "Argument in radians; of real numbers 0, pi below 0, nan for nan.")


@table.op("aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)")
def frexp(xp, self):
    """Mantissa in [0.5, 1) and int32 exponent with self = mantissa * 2 ** exponent."""
    if self.dtype.kind != "f":
        raise RunError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = xp.frexp(self)
    return mantissa, exponent.astype(xp.int32)


@table.op("aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor")
def nan_to_num(xp, self, nan, posinf, neginf):
    """nan, inf and -inf replaced: by 0 and the dtype's largest and smallest numbers unless given; complex by parts."""
    if self.dtype.kind == "c":
        parts = [nan_to_num.kernel(xp, part, nan, posinf, neginf) for part in (self.real, self.imag)]
        return _complex(xp, *parts, self.dtype)
    if self.dtype.kind != "f":
        return copied(self)
    kind, limits = self.dtype.type, xp.finfo(self.dtype)
    result = xp.where(xp.isnan(self), kind(0 if nan is None else nan), self)
    result = xp.where(self == math.inf, limits.max if posinf is None else kind(posinf), result)
    return xp.where(self == -math.inf, limits.min if neginf is None else kind(neginf), result)


# ---- complex numbers

table.define(("aten::conj(Tensor(a) self) -> Tensor(a)", "aten::_conj(Tensor(a) self) -> Tensor(a)"), conjugated,
             doc="Complex conjugate, a view; a real tensor itself.")


def _conj_physical(xp, self):
    return xp.conj(self) if self.dtype.kind == "c" else copied(self)


def _conj_copy(xp, self):
    return row_major(xp, xp.conj(self)) if self.dtype.kind == "c" else copied(self)


_unary("_conj_physical", _conj_physical, "Complex conjugate, a new tensor.")
_unary("_conj_copy", _conj_copy, "Complex conjugate, a new tensor.")
table.define("aten::conj_physical(Tensor self) -> Tensor", lambda xp, self: xp.conj(self) if self.dtype.kind == "c" else self,
             doc="Complex conjugate, a new tensor; a real tensor itself.")


@table.op("aten::resolve_conj(Tensor(a) self) -> Tensor(a)")
def resolve_conj(xp, self):
    """A copy of a conjugated view; any other tensor itself."""
    return copied(self) if self.dtype.kind == "c" and origin(self)[1] else self


table.define("aten::resolve_neg(Tensor(a) self) -> Tensor(a)", lambda xp, self: self, doc="The tensor itself: negation is never lazy here.")


@table.op("aten::real(Tensor(a) self) -> Tensor(a)")
def real(xp, self):
    """Real part, a view; a real tensor itself."""
    return self.real


@table.op("aten::imag(Tensor(a) self) -> Tensor(a)")
def imag(xp, self):
    """Imaginary part, a view."""
    if self.dtype.kind != "c":
        raise RunError("imag is not implemented for tensors with non-complex dtypes.", code="E0409")
    return self.imag
