"""What a tensor that is given as out= must be: of the dtype of the result, or of one that the result is converted to.

torch converts the result of most pointwise operators, as in place; the two lists have the exceptions. Where it converts, and the operator
is pointwise, it writes while it reads, and so refuses operands of which a part is the tensor that is written.
"""
from __future__ import annotations

from typing import Any

from irtool.ir.errors import RunError
from irtool.ir.schema import Schema
from irtool.ops.arrays import astype, is_array, title
from irtool.ops.checks import c_name, refuse_overlap
from irtool.ops.promotion import can_cast

CONVERTED = frozenset(f"aten::{name}" for name in """
_chunk_cat _fft_c2c _fft_c2r _fft_r2c _logcumsumexp addcdiv addr all angle any bernoulli cat cholesky cholesky_inverse cholesky_solve
column_stack concat concatenate cumprod cumsum diff dstack elu_backward fft_fft fft_fft2 fft_fftn fft_hfft fft_hfft2 fft_hfftn fft_ifft2
fft_ifftn fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn gelu_backward ger glu hardshrink_backward
hardsigmoid_backward hardtanh_backward hstack kron ldexp leaky_relu_backward lerp.Scalar_out linalg_cond linalg_eigvals
linalg_householder_product linalg_matrix_rank linalg_pinv linalg_tensorinv linalg_tensorsolve logical_not logit_backward logsumexp
max.unary_out mean min.unary_out mse_loss mse_loss_backward nanmean nansum orgqr outer pow prod.int_out row_stack silu_backward
smooth_l1_loss_backward soft_margin_loss_backward softplus_backward softshrink_backward special_logsumexp square stack std sum.IntList_out
threshold threshold_backward var vstack
""".split())
"""Kinds, or overloads, without a promotion rule whose results are converted."""
NOT_CONVERTED = frozenset(f"aten::{name}" for name in """
__lshift__ __rshift__ _add_relu.Scalar_out add.Scalar_out bitwise_and.Scalar_Tensor_out bitwise_left_shift.Scalar_Tensor_out
bitwise_or.Scalar_Tensor_out bitwise_right_shift.Scalar_Tensor_out bitwise_xor.Scalar_Tensor_out clamp.out clamp_max.out clamp_min.out
clip.out div.Scalar_mode_out div.Scalar_out floor_divide.Scalar_out mul.Scalar_out remainder.Scalar_Tensor_out rsub sub.Scalar_out where
""".split())
"""Kinds, or overloads, with a promotion rule whose results are not converted."""
OF_BYTES_OR_BOOLS = frozenset(("aten::all", "aten::any"))
STAYS_REAL = frozenset(f"aten::{name}" for name in
                       "fft_hfft fft_hfft2 fft_hfftn fft_irfft fft_irfft2 fft_irfftn nanmean nansum std var".split())
"""Kinds whose real results are not converted to complex numbers."""
ADDED_IN_OUT = frozenset(("aten::sum.IntList_out", "aten::prod.int_out", "aten::cumsum.out", "aten::cumprod.out"))
"""Overloads that compute in the dtype of the tensor they write, if none is given."""
WIDENED_IN_OUT = frozenset(f"aten::{name}" for name in """
mean.out mean.names_out mean.dtype_out nansum.out nanmean.out std.out std.names_out std.correction_out std.correction_names_out var.out
var.names_out var.correction_out var.correction_names_out logsumexp.out logsumexp.names_out
""".split())
"""Overloads that do so without a given dtype if that of the tensor they write has more digits than that of the first operand."""


def widened(schema: Schema, operands: list[Any], out: Any) -> list[Any]:
    """The operands of one of these overloads."""
    x = operands[0]
    is_given = operands[-1] is not None and schema.arguments[len(operands) - 1].name == "dtype"
    if is_given or not is_array(x) or not is_array(out) or x.dtype.kind != out.dtype.kind or out.dtype.itemsize <= x.dtype.itemsize:
        return operands
    return [astype(x, out.dtype), *operands[1:]] if x.dtype.kind in "fc" else operands


def converts(name: str, has_rule: bool) -> bool:
    """Is the result of an overload with out= converted to the dtype of the tensor that is given?"""
    names = {name, name.partition(".")[0]}
    return names.isdisjoint(NOT_CONVERTED) if has_rule else not names.isdisjoint(CONVERTED)


def check_out(kind: str, converted: bool, result: Any, out: Any) -> None:
    """Raises torch's error for a tensor that cannot take a result, because of its dtype, or since its elements share memory."""
    if not converted and result.dtype != out.dtype or kind in OF_BYTES_OR_BOOLS and out.dtype not in ("bool", "uint8"):
        raise RunError(f"Expected out tensor to have dtype {c_name(result.dtype)}, but got {c_name(out.dtype)} instead", code="E0409")
    if not can_cast(result.dtype, out.dtype) or kind in STAYS_REAL and result.dtype.kind != out.dtype.kind == "c":
        raise RunError(f"result type {title(result.dtype)} can't be cast to the desired output type {title(out.dtype)}", code="E0409")
    refuse_overlap(out)
