"""Comparisons, logic and tests of floats: the results are bool."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import as_array, title
from irtool.ops.checks import refuse
from irtool.ops.kernels.shape import view_as_shape
from irtool.ops.op import OpTable
from irtool.ops.promotion import COMPARE, result_type

table = OpTable("comparison")


def _comparison(names, function, ordered, doc):
    """`.Tensor` and `.Scalar` overloads of a comparison; complex numbers have no order."""
    kernel_name = f"{names.split()[0]}_cpu"

    def kernel(xp, self, other):
        if ordered and self.dtype.kind == "c":
            refuse(kernel_name, self)
        return getattr(xp, function)(self, other)
    table.define([f"aten::{name}.{kind}(Tensor self, {kind} other) -> Tensor" for name in names.split() for kind in ("Tensor", "Scalar")],
                 kernel, COMPARE, doc=doc)


_comparison("eq", "equal", False, "Is self equal to other? nan is not equal to anything.")
_comparison("ne not_equal", "not_equal", False, "Is self different from other?")
_comparison("lt less", "less", True, "Is self below other?")
_comparison("le less_equal", "less_equal", True, "Is self at most other?")
_comparison("gt greater", "greater", True, "Is self above other?")
_comparison("ge greater_equal", "greater_equal", True, "Is self at least other?")


def _logical(name, function):
    def kernel(xp, self, other):
        return getattr(xp, function)(self != 0, other != 0)
    table.define(f"aten::{name}(Tensor self, Tensor other) -> Tensor", kernel, COMPARE, doc=f"{name} of what is not 0; nan is not 0.")


for _name in ("logical_and", "logical_or", "logical_xor"):
    _logical(_name, _name)


@table.op("aten::logical_not(Tensor self) -> Tensor")
def logical_not(xp, self):
    """Is each element 0?"""
    return self == 0


# ---- tests of floats; whole numbers are finite

def _test(name, kernel, doc):
    table.define(f"aten::{name}(Tensor self) -> Tensor", kernel, doc=doc)


def _isnan(xp, self):
    return self != self


def _isinf(xp, self):
    return xp.isinf(self) if self.dtype.kind in "fc" else xp.zeros_like(self, bool)


def _isfinite(xp, self):
    return xp.isfinite(self) if self.dtype.kind in "fc" else xp.ones_like(self, bool)


def _isreal(xp, self):
    return self.imag == 0 if self.dtype.kind == "c" else xp.ones_like(self, bool)


def _is_infinity(name, infinity):
    def kernel(xp, self):
        if self.dtype.kind == "c":
            raise RunError(f"{name} does not support complex inputs.")
        return self == infinity if self.dtype.kind == "f" else xp.zeros_like(self, bool)
    return kernel


_test("isnan", _isnan, "Is each element nan?")
_test("isinf", _isinf, "Is each element infinite? Complex: is either part?")
_test("isfinite", _isfinite, "Is each element neither infinite nor nan?")
_test("isreal", _isreal, "Is the imaginary part 0?")
_test("isposinf", _is_infinity("isposinf", math.inf), "Is each element inf?")
_test("isneginf", _is_infinity("isneginf", -math.inf), "Is each element -inf?")


# ---- closeness and equality

CLOSE = "(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False)"


@table.op(f"aten::isclose{CLOSE} -> Tensor")
def isclose(xp, self, other, rtol, atol, equal_nan):
    """|self - other| <= atol + rtol * |other|, or equal; nan is close to nan when `equal_nan`. Both of one dtype."""
    if self.dtype != other.dtype:
        raise RunError(f"{title(self.dtype)} did not match {title(other.dtype)}")
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if not bound >= 0:
            raise RunError(f"{name} must be greater than or equal to zero, but got {bound:g}")
    close = self == other
    if equal_nan and self.dtype.kind in "fc":
        close |= (self != self) & (other != other)
    if rtol == 0 and atol == 0:
        return close
    wide = other.astype(xp.float32) if other.dtype.kind in "biu" else other
    mine = self.astype(xp.float32) if other.dtype.kind in "biu" else self
    if self.dtype == xp.float16:        # whose bounds are not halves
        allowed = (xp.float32(atol) + xp.abs(xp.float32(rtol) * wide).astype(wide.dtype)).astype(wide.dtype)
    else:
        allowed = atol + (rtol * xp.abs(wide) if self.dtype.kind == "c" else xp.abs(rtol * wide))
    actual = xp.abs(mine - wide)        # whole numbers are compared in single precision, as in torch: 5 and 6 as bytes differ by 1
    return close | (xp.isfinite(actual) & (actual <= allowed))


@table.op(f"aten::allclose{CLOSE} -> bool")
def allclose(xp, self, other, rtol, atol, equal_nan):
    """Are all elements close (`isclose`)?"""
    return bool(isclose.kernel(xp, self, other, rtol, atol, equal_nan).all())


@table.op("aten::equal(Tensor self, Tensor other) -> bool")
def equal(xp, self, other):
    """Same shape, and same elements in the common dtype? nan is not equal to itself."""
    dtype = result_type([self, other])
    return self.shape == other.shape and bool((as_array(self, dtype) == as_array(other, dtype)).all())


def _same_lists(xp, a, b):
    if len(a) != len(b):
        return False
    return all(bool(_truth(xp.equal(x, y))) for x, y in zip(a, b, strict=True))


def _truth(array):
    if array.size != 1:
        raise RunError("Boolean value of Tensor with no values is ambiguous" if array.size == 0 else
                       "Boolean value of Tensor with more than one value is ambiguous")
    return array.reshape(-1)[0]


@table.op("aten::eq.Tensor_list(Tensor[] a, Tensor[] b) -> bool")
def eq_lists(xp, a, b):
    """Are two lists of one-element tensors equal?"""
    return _same_lists(xp, a, b)


@table.op("aten::ne.Tensor_list(Tensor[] a, Tensor[] b) -> bool")
def ne_lists(xp, a, b):
    """Do two lists of one-element tensors differ?"""
    return not _same_lists(xp, a, b)


@table.op("aten::is_nonzero(Tensor self) -> bool")
def is_nonzero(xp, self):
    """Is the only element not 0?"""
    return bool(_truth(self) != 0)


ISIN = ", *, bool assume_unique=False, bool invert=False) -> Tensor"


@table.op(f"aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements{ISIN}",
          f"aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element{ISIN}",
          f"aten::isin.Scalar_Tensor(Scalar element, Tensor test_elements{ISIN}")
def isin(xp, elements, test_elements, assume_unique, invert):
    """Is each element among `test_elements`? The opposite with `invert`. A few `test_elements` must have a flat view."""
    dtype = result_type([elements, test_elements])
    originals = elements, test_elements
    elements, tests = as_array(elements, dtype), as_array(test_elements, dtype)
    for type in (as_array(x).dtype for x in originals):
        if type.kind in "bc":
            raise RunError(f"Unsupported input type encountered for isin(): {title(type)}")
    if elements.size and tests.size < 10 * elements.size ** 0.145:      # torch compares with each; more it sorts, in copies
        tests = view_as_shape(xp, tests, (tests.size,))
    return xp.isin(elements, tests, assume_unique=False, invert=invert)


@table.op("aten::_is_all_true(Tensor self) -> Tensor")
def is_all_true(xp, self):
    """Do all elements of a bool tensor hold? 0-dim bool."""
    return xp.asarray(_bools(self).all())


@table.op("aten::_is_any_true(Tensor self) -> Tensor")
def is_any_true(xp, self):
    """Does any element of a bool tensor hold? 0-dim bool."""
    return xp.asarray(_bools(self).any())


def _bools(array):
    if array.dtype.kind != "b":
        raise RunError("Expected a boolean tensor")
    return array
