"""Tensors given as out= that share memory with operands: what torch refuses, and what it gets wrong since it reads what it just wrote.

The reference computes a result before it writes it. A result that torch gets wrong is not supported, rather than another one than torch's.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.array_library import np
from irtool.ops.checks import PARTIAL, refuse_partial_overlap

COMPUTES_FIRST = frozenset(f"aten::{name}" for name in """
_add_relu.Scalar_out _conj_copy _conj_physical add.Scalar_out alias_copy celu clone detach_copy div.Scalar_mode_out div.Scalar_out fill
floor_divide.Scalar_out hardswish_backward lift_fresh_copy masked_fill mul.Scalar_out mvlgamma relu remainder.Scalar_Tensor_out
rrelu_with_noise_backward rsub special_multigammaln special_ndtr sub.Scalar_out zero
""".split())
"""Pointwise kinds, or overloads, that torch computes before it writes, so that they may read parts of what they write."""
REFUSES_PARTS = frozenset(f"aten::{name}" for name in """
_addmm_activation _logcumsumexp addbmm addmm addmv addr baddbmm cumprod cumsum ger huber_loss huber_loss_backward index_add index_copy
index_reduce kron lift logcumsumexp mse_loss msort outer renorm scatter scatter_add scatter_reduce smooth_l1_loss
""".split())
"""Other kinds of which torch refuses operands that are parts of what they write."""
REFUSES_ALL = frozenset(f"aten::{name}" for name in """
cat column_stack concat concatenate cross diff dstack gather hstack index.Tensor_out index_reduce index_select linalg_cross masked_select
row_stack stack take take_along_dim vstack
""".split())
"""Kinds of which torch refuses operands that share memory with what they write."""
READS_WHAT_IT_WROTE = frozenset(f"aten::{name}" for name in """
_addmm_activation _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d adaptive_avg_pool2d adaptive_avg_pool3d
addbmm addmm addmv amax amin avg_pool2d avg_pool3d baddbmm bmm chain_matmul col2im frobenius_norm glu histc im2col inverse linalg_inv
linalg_matmul linalg_matrix_power linalg_multi_dot linalg_solve_triangular linalg_vector_norm linear matmul matrix_power max_unpool2d
max_unpool3d mean mm mv nanmean nansum nll_loss norm prod.int_out reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d
replication_pad2d replication_pad3d slow_conv3d std sum thnn_conv2d upsample_bicubic2d upsample_bilinear2d upsample_linear1d
upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d var
""".split())
"""Kinds that torch gets wrong if an operand shares memory with what they write."""
ROW_BY_ROW = frozenset(f"aten::{name}" for name in """
_log_softmax _log_softmax_backward_data _softmax _softmax_backward_data as_strided_scatter binary_cross_entropy log_sigmoid log_softmax
soft_margin_loss softmax threshold tril triu
""".split())
"""Kinds that torch gets wrong if a part of what they write is a part of an operand; all of it may be the operand."""
FIRST_IS_READ_FIRST = frozenset(f"aten::{name}" for name in "_addmm_activation addbmm addmm addmv baddbmm index_reduce".split())
"""Kinds whose first operand may be what they write."""


def refuse_shared_out(name: str, is_pointwise: bool, out: Any, operands: Sequence[Any]) -> None:
    """Raises torch's error, or UnsupportedError, for an overload that writes into memory of its operands while it reads them."""
    if type(out) is not np.ndarray:
        return
    kind = name.partition(".")[0]
    names = {name, kind}
    later = operands[1:] if kind in FIRST_IS_READ_FIRST else operands
    if not names.isdisjoint(REFUSES_ALL) and any(np.may_share_memory(each, out) for each in arrays_of(later)):
        raise RunError(PARTIAL)
    if not names.isdisjoint(READS_WHAT_IT_WROTE) and any(np.may_share_memory(each, out) for each in arrays_of(later)) or (
            kind in ROW_BY_ROW and any(each is not out and np.may_share_memory(each, out) for each in arrays_of(operands))):
        raise UnsupportedError(f"{name}: out= shares memory with an operand, which torch reads after it wrote into it; clone the operand")
    if is_pointwise and names.isdisjoint(COMPUTES_FIRST) or not names.isdisjoint(REFUSES_PARTS):
        refuse_partial_overlap(out, operands)


def arrays_of(operands: Sequence[Any]) -> Iterator[Any]:
    """The arrays with elements in operands, and in their lists."""
    for each in operands:
        if isinstance(each, list | tuple):
            yield from arrays_of(each)
        elif type(each) is np.ndarray and each.size:
            yield each
