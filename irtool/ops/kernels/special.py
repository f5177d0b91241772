"""Special functions, by SciPy (CuPy's copy of it on a GPU), with torch's values at edges where SciPy has others."""
import math
from importlib import import_module

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.arrays import astype, memory_order, title
from irtool.ops.checks import in_memory_order, only, refuse, refuse_windows, widen
from irtool.ops.op import OpTable
from irtool.ops.promotion import PROMOTE, TO_FLOAT, Rule

table = OpTable("special")


def library(xp):
    """The special functions for an array namespace."""
    return import_module("scipy.special") if xp.__name__ == "numpy" else xp.special


def _exact(xp, x):
    """float64 for all but float64: SciPy's own float32 loops are less exact than torch's tolerance."""
    return astype(x, xp.float64)


NOT_FLOAT16 = frozenset("""erfcx_cpu bessel_j0_cpu bessel_j1_cpu bessel_y0_cpu bessel_y1_cpu modified_bessel_k0_cpu modified_bessel_k1_cpu
    scaled_modified_bessel_k0_cpu scaled_modified_bessel_k1_cpu log_ndtr_cpu ndtri_cpu airy_ai_cpu spherical_bessel_j0_cpu zeta_cpu
    modified_bessel_i0_cpu modified_bessel_i1_cpu""".split())


def _floats(kernel_name, x):
    """Raises torch's error for dtypes that its kernel of that name does not support."""
    only(kernel_name, "f", x)
    if kernel_name in NOT_FLOAT16 and x.dtype == "float16":
        refuse(kernel_name, x)


def _define(names, function, kernel_name, doc):
    """One float function under its names: `function(sp, xp, x)` in float64, rounded once."""
    def kernel(xp, self):
        _floats(kernel_name, self)
        return astype(function(library(xp), xp, _exact(xp, self)), self.dtype)
    table.define([f"aten::{name}(Tensor {argument}) -> Tensor" for name, _, argument in
                  ((word.partition(":")[0], "", word.partition(":")[2] or "self") for word in names.split())], kernel, TO_FLOAT, doc=doc)


def _namesake(name):
    return lambda sp, xp, x: getattr(sp, name)(x)


for _names, _function, _kernel_name, _doc in (
    ("erfc special_erfc", "erfc", "erfc_vml_cpu", "1 - erf(x), exact for large x."),
    ("special_erfcx", "erfcx", "erfcx_cpu", "exp(x * x) * erfc(x)."),
    ("special_i0e", "i0e", "i0e", "exp(-|x|) * i0(x)."),
    ("special_i1e", "i1e", "i1e", "exp(-|x|) * i1(x)."),
    ("special_bessel_j0", "j0", "bessel_j0_cpu", "Bessel function of the first kind, order 0."),
    ("special_bessel_j1", "j1", "bessel_j1_cpu", "Bessel function of the first kind, order 1."),
    ("special_bessel_y0", "y0", "bessel_y0_cpu", "Bessel function of the second kind, order 0; -inf at 0."),
    ("special_bessel_y1", "y1", "bessel_y1_cpu", "Bessel function of the second kind, order 1; -inf at 0."),
    ("special_modified_bessel_k0", "k0", "modified_bessel_k0_cpu", "Modified Bessel function of the second kind, order 0; inf at 0."),
    ("special_modified_bessel_k1", "k1", "modified_bessel_k1_cpu", "Modified Bessel function of the second kind, order 1; inf at 0."),
    ("special_scaled_modified_bessel_k0:x", "k0e", "scaled_modified_bessel_k0_cpu", "exp(x) * k0(x)."),
    ("special_scaled_modified_bessel_k1:x", "k1e", "scaled_modified_bessel_k1_cpu", "exp(x) * k1(x)."),
    ("special_log_ndtr", "log_ndtr", "log_ndtr_cpu", "Logarithm of the normal distribution function."),
    ("special_ndtr", "ndtr", "ndtr_cpu", "Normal distribution function."),
    ("special_ndtri", "ndtri", "ndtri_cpu", "Inverse of the normal distribution function."),
    ("special_entr", "entr", "entr", "-x log(x), 0 at 0, -inf below."),
):
    _define(_names, _namesake(_function), _kernel_name, _doc)
_define("erfinv special_erfinv", lambda sp, xp, x: xp.copysign(sp.erfinv(x), x), "erfinv_vml_cpu",
        "Inverse of erf; inf at 1, nan outside [-1, 1]; SciPy's is 0.0 at -0.0.")


ERF = (1.12837911, 0.189664677, 0.0526677184, 0.00373822963, 0.000285055343, 2.06643517e-06), \
    (1.0, 0.50141871, 0.113817997, 0.0149140507, 0.0011573399, 3.8269267e-05)
"""Coefficients of polynomials in x * x, whose quotient times x is erf(x) within 4e-7 of it (7 ulp) for x up to 3.92, and 1 there: fitted by
least squares, with weights that make the largest relative error small."""


def _polynomial(x, coefficients):
    kind = x.dtype.type
    result = x * kind(coefficients[-1])
    for coefficient in coefficients[-2:0:-1]:
        result = (result + kind(coefficient)) * x
    return result + kind(coefficients[0])


def _erf(xp, self):
    _floats("erf_vml_cpu", self)
    if self.dtype != "float32":
        return astype(library(xp).erf(_exact(xp, self)), self.dtype)
    kind = self.dtype.type
    x = xp.minimum(xp.maximum(self, kind(-3.92)), kind(3.92))
    square = x * x
    above, below = [_polynomial(square, each) for each in ERF]
    return xp.minimum(xp.maximum(x * above / below, kind(-1)), kind(1))


table.define([f"aten::{name}(Tensor self) -> Tensor" for name in ("erf", "special_erf")], _erf, TO_FLOAT, doc="Error function.")


def _growing(names, scaled, kernel_name, doc):
    """i0 and i1 as exp(|x|) times their scaled form, exp in the dtype itself: it overflows early in float32, as torch's does."""
    def kernel(xp, self):
        _floats(kernel_name, self)
        wide = widen(xp, self)
        return astype(astype(getattr(library(xp), scaled)(_exact(xp, self)), wide.dtype) * xp.exp(xp.abs(wide)), self.dtype)
    table.define([f"aten::{name}(Tensor self) -> Tensor" for name in names.split()], kernel, TO_FLOAT, doc=doc)


_growing("i0 special_i0", "i0e", "i0_vml_cpu", "Modified Bessel function of the first kind, order 0.")
_growing("special_i1", "i1e", "i1", "Modified Bessel function of the first kind, order 1.")
_growing("special_modified_bessel_i0", "i0e", "modified_bessel_i0_cpu", "Modified Bessel function of the first kind, order 0.")
_growing("special_modified_bessel_i1", "i1e", "modified_bessel_i1_cpu", "Modified Bessel function of the first kind, order 1.")


def _lgamma(sp, xp, x):
    return xp.where(xp.isinf(x), math.inf, sp.gammaln(x))


_define("lgamma special_gammaln", _lgamma, "lgamma_vml_cpu", "Logarithm of |gamma(x)|; inf at 0, negative whole numbers, inf and -inf.")


def _digamma(sp, xp, x):
    """psi; at 0 torch gives inf with the opposite sign, at negative whole numbers and -inf nan."""
    whole = (x < 0) & (x == xp.floor(x))
    return xp.where(x == 0, xp.copysign(math.inf, -x), xp.where(whole, math.nan, sp.psi(x)))


_define("digamma special_digamma special_psi", _digamma, "digamma", "Derivative of lgamma.")


def _airy(sp, xp, x):
    return sp.airy(x)[0]


_define("special_airy_ai:x", _airy, "airy_ai_cpu", "Airy function Ai.")


def _spherical_bessel_j0(sp, xp, x):
    small = xp.abs(x) < 0.5
    square = xp.where(small, x * x, 0)
    series = 1 + square * (-1 / 6 + square * (1 / 120 + square * (-1 / 5040 + square * (1 / 362880 + square * (-1 / 39916800)))))
    return xp.where(xp.isinf(x), 0, xp.where(small, series, xp.sin(x) / x))


_define("special_spherical_bessel_j0:x", _spherical_bessel_j0, "spherical_bessel_j0_cpu", "sin(x) / x.")


# ---- families with an order

def _trigamma(xp, x):
    """torch's own reflection and asymptotic series, in x's dtype: at poles sin(pi x) is not quite 0, and so the result is finite."""
    reflected = x < 0.5
    sine = xp.sin(math.pi * x)
    result = xp.where(reflected, -(math.pi * math.pi) / (sine * sine), x.dtype.type(0))
    x = xp.where(reflected, 1 - x, x)
    for _ in range(6):
        result = result + 1 / (x * x)
        x = x + 1
    inverse = 1 / (x * x)
    result = result + (1 + 1 / (2 * x) + inverse * (1 / 6 - inverse * (1 / 30 - inverse * (1 / 42)))) / x
    return xp.where(reflected, -result, result)


def _polygamma(xp, n, self):
    if n < 0:
        raise RunError("polygamma(n, x) does not support negative n.")
    only("polygamma", "f", self)
    sp, x = library(xp), _exact(xp, self)
    if n == 0:
        return astype(xp.asarray(_digamma(sp, xp, x)), self.dtype)
    if n == 1:
        return astype(xp.asarray(_trigamma(xp, widen(xp, self))), self.dtype)
    wide = widen(xp, self)
    zeta = _exact(xp, _zeta(xp, xp.asarray(n + 1, wide.dtype), wide))
    return astype(xp.asarray((-1.0) ** (n + 1) * sp.gamma(n + 1.0) * zeta), self.dtype)


table.define(("aten::polygamma(int n, Tensor self) -> Tensor", "aten::special_polygamma(int n, Tensor self) -> Tensor"), _polygamma,
             TO_FLOAT, doc="n-th derivative of digamma.")


@table.op("aten::polygamma_(Tensor(a!) self, int n) -> Tensor(a!)")
def polygamma_into(xp, self, n):
    """polygamma, written into self."""
    if self.dtype.kind != "f":
        raise RunError(f"result type Float can't be cast to the desired output type {title(self.dtype)}")
    refuse_windows("aten::polygamma_", self)
    self[...] = _polygamma(xp, n, self)
    return self


def _no_bool(operands):
    if operands[0].dtype == "bool":
        raise RunError("The input tensor may not be a boolean tensor.")


MVLGAMMA = Rule("MVLGAMMA", "float", "compute", _no_bool)


def _mvlgamma(xp, self, p):
    if p < 1:
        raise RunError("p has to be greater than or equal to 1")
    sp, x = library(xp), _exact(xp, self)
    total = sum(_lgamma(sp, xp, x - place / 2) for place in range(p))
    return astype(xp.asarray(total + p * (p - 1) / 4 * math.log(math.pi)), self.dtype)


table.define(("aten::mvlgamma(Tensor self, int p) -> Tensor", "aten::special_multigammaln(Tensor self, int p) -> Tensor"), _mvlgamma,
             MVLGAMMA, doc="Logarithm of the multivariate gamma function with dimension p.")


LEFTMOST = 1_000_000
"""How far left of 0 zeta adds terms."""


def _zeta(xp, s, q):
    """Hurwitz zeta as torch computes it: SciPy's right of 0, the terms left of it added one by one in the dtype itself.

    inf at s = 1 and at whole q <= 0; nan for s < 1, for a fractional s with other q <= 0, and at q = inf.
    """
    laid = memory_order(max((s, q), key=lambda each: each.ndim))
    s, q = xp.broadcast_arrays(s, q)
    whole = q == xp.floor(q)
    with_pole = (q <= 0) & whole
    undefined = (s < 1) | ((q <= 0) & ~whole & (s != xp.floor(s))) | (xp.isnan(s) & ~with_pole) | xp.isnan(q) | (q == math.inf)
    left = (q < 0) & ~whole & ~undefined & (s != 1) & xp.isfinite(q)
    if (q[left] < -LEFTMOST).any():
        raise UnsupportedError(f"zeta left of {-LEFTMOST} is not supported")
    place, total = xp.where(left | (q > 0), q, q.dtype.type(1)), xp.zeros(q.shape, q.dtype)
    while True:
        going = left & (place < 0)
        if not going.any():
            break
        total = total + xp.where(going, xp.power(xp.where(going, place, q.dtype.type(1)), -s), q.dtype.type(0))
        place = xp.where(going, place + 1, place)
    total = total + astype(xp.asarray(library(xp).zeta(_exact(xp, s), _exact(xp, place))), q.dtype)
    total = xp.where(s == 1, q.dtype.type(math.inf), xp.where(undefined, q.dtype.type(math.nan), xp.where(with_pole, math.inf, total)))
    return in_memory_order(xp, total, laid)


def _zeta_kernel(xp, self, other):
    _floats("zeta_cpu", self)
    return astype(xp.asarray(_zeta(xp, self, other)), self.dtype)


table.define(("aten::special_zeta(Tensor self, Tensor other) -> Tensor",
              "aten::special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor",
              "aten::special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor"), _zeta_kernel, TO_FLOAT, doc="Hurwitz zeta function.")


def _incomplete_gamma(function, upper):
    """Regularised incomplete gamma functions; torch's values where an argument is 0 or infinite."""
    def kernel(xp, self, other):
        only("igammac" if upper else "igamma", "f", self)
        a, x = _exact(xp, self), _exact(xp, other)
        result = getattr(library(xp), function)(a, x)
        low, high = (1.0, 0.0) if upper else (0.0, 1.0)      # the values left and right of everything
        result = xp.where(~(a <= 0) & (x == 0), low, xp.where((a == 0) & (x > 0), high, result))
        result = xp.where(xp.isinf(a), xp.where(xp.isinf(x), math.nan, low), xp.where(xp.isinf(x), high, result))
        bad = (x < 0) | (a < 0) | ((a == 0) & (x == 0))
        return astype(xp.asarray(xp.where(bad, math.nan, result)), self.dtype)
    return kernel


table.define(("aten::igamma(Tensor self, Tensor other) -> Tensor", "aten::special_gammainc(Tensor self, Tensor other) -> Tensor"),
             _incomplete_gamma("gammainc", False), PROMOTE, doc="Regularised lower incomplete gamma function.")
table.define(("aten::igammac(Tensor self, Tensor other) -> Tensor", "aten::special_gammaincc(Tensor self, Tensor other) -> Tensor"),
             _incomplete_gamma("gammaincc", True), PROMOTE, doc="Regularised upper incomplete gamma function.")


# ---- dtypes that torch serves

table.takes("uilhf", "mvlgamma special_multigammaln")
table.laid_out("C", "mvlgamma special_multigammaln")
