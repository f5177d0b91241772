"""Operators of whole numbers: bits, shifts, greatest common divisor. They are refused for floats."""
from irtool.ir.errors import RunError
from irtool.ops.arrays import as_array, astype, title
from irtool.ops.checks import only, refuse_growth, refuse_overlap, refuse_partial_overlap
from irtool.ops.op import OpTable
from irtool.ops.promotion import PROMOTE, can_cast, result_type

table = OpTable("bitwise")

TENSOR = "(Tensor self, Tensor other) -> Tensor"
SCALAR = "(Tensor self, Scalar other) -> Tensor"
SCALAR_TENSOR = "(Scalar self, Tensor other) -> Tensor"


def _whole_pair(schemas, kernel_name, function, kinds, doc):
    def kernel(xp, self, other):
        only(kernel_name, kinds, self)
        return function(xp, self, other)
    table.define(schemas, kernel, PROMOTE, doc=doc)


def _gcd(xp, self, other):
    return xp.gcd(self, other)


def _lcm(xp, self, other):
    dtype = self.dtype
    if dtype.itemsize < 4:      # C computes with int, and what does not fit wraps round after that
        self, other = self.astype(xp.int32), other.astype(xp.int32)
    return xp.abs(xp.lcm(self, other)).astype(dtype, copy=False)


_whole_pair("aten::gcd" + TENSOR, "gcd_cpu", _gcd, "iu", "Greatest common divisor, not negative.")
_whole_pair("aten::lcm" + TENSOR, "lcm_cpu", _lcm, "iu", "Least common multiple, not negative.")


def left_shift(xp, self, other):
    """self * 2 ** other without the bits that fall off; 0 for shifts outside [0, bits)."""
    bits = 8 * self.dtype.itemsize
    inside = (other >= 0) & (other < bits)
    return xp.where(inside, xp.left_shift(self, xp.where(inside, other, 0).astype(self.dtype)), as_array(0, self.dtype))


def right_shift(xp, self, other):
    """self >> other; shifts outside [0, bits) leave only the sign."""
    largest = as_array(8 * self.dtype.itemsize - (1 if self.dtype.kind == "i" else 0), self.dtype)
    if self.dtype.kind == "u":
        inside = other < largest
        return xp.where(inside, xp.right_shift(self, xp.where(inside, other, 0).astype(self.dtype)), as_array(0, self.dtype))
    return xp.right_shift(self, xp.where((other >= 0) & (other < largest), other, largest))


def _bit_schemas(name, dunder, shift=False):
    plain, scalar_first = (("Tensor_Scalar", "Scalar_Tensor") if shift else ("Scalar", "Scalar_Tensor"))
    return (f"aten::{name}.Tensor{TENSOR}", f"aten::{name}.{plain}{SCALAR}", f"aten::{name}.{scalar_first}{SCALAR_TENSOR}",
            f"aten::{dunder}.Tensor{TENSOR}", f"aten::{dunder}.Scalar{SCALAR}")


BIT_OPERATORS = {
    "and": ("bitwise_and", "bitwise_and_cpu", lambda xp, self, other: xp.bitwise_and(self, other), "biu"),
    "or": ("bitwise_or", "bitwise_or_cpu", lambda xp, self, other: xp.bitwise_or(self, other), "biu"),
    "xor": ("bitwise_xor", "bitwise_xor_cpu", lambda xp, self, other: xp.bitwise_xor(self, other), "biu"),
    "lshift": ("bitwise_left_shift", "lshift_cpu", left_shift, "iu"),
    "rshift": ("bitwise_right_shift", "rshift_cpu", right_shift, "iu"),
}


def _written_into(function, kernel_name, kinds):
    """`self op= other`: the result in self's dtype, written into self."""
    def kernel(xp, self, other):
        dtype = result_type([self, other])
        operands = as_array(self, dtype), as_array(other, dtype)
        only(kernel_name, kinds, *operands)
        if not can_cast(dtype, self.dtype):
            raise RunError(f"result type {title(dtype)} can't be cast to the desired output type {title(self.dtype)}")
        refuse_overlap(self)
        refuse_partial_overlap(self, (other,))
        result = as_array(function(xp, *operands))
        refuse_growth(self, result.shape)
        self[...] = astype(result, self.dtype)
        return self
    return kernel


for _word, (_name, _kernel_name, _function, _kinds) in BIT_OPERATORS.items():
    _whole_pair(_bit_schemas(_name, f"__{_word}__", "shift" in _word), _kernel_name, _function, _kinds, f"Bitwise {_word}.")
    table.define(tuple(f"aten::__i{_word}__.{_other}(Tensor(a!) self, {_other} other) -> Tensor(a!)" for _other in ("Tensor", "Scalar")),
                 _written_into(_function, _kernel_name, _kinds), doc=f"Bitwise {_word}, written into self.")


@table.op("aten::bitwise_not(Tensor self) -> Tensor")
def bitwise_not(xp, self):
    """Every bit turned over; of bools: not."""
    only("bitwise_not_cpu", "biu", self)
    return xp.invert(self)
