"""Batching rules of tensors made like others, or between bounds that are tensors."""
from __future__ import annotations

from typing import Any

from irtool.ops.array_library import np
from irtool.ops.arrays import dtype_of
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import untouched
from irtool.ops.kernels.factory import table
from irtool.ops.tensor import Tensor

FLOAT, DOUBLE, COMPLEX_FLOAT, COMPLEX_DOUBLE = 6, 7, 9, 10
"""torch's numbers of dtypes."""


def dtypes_between(start: Any, end: Any) -> tuple[int, int]:
    """The dtype in which numbers between two bounds are computed, and the one that they have by default."""
    is_complex = any(isinstance(each, complex) or isinstance(each, Tensor) and dtype_of(each.dtype).kind == "c" for each in (start, end))
    return (COMPLEX_DOUBLE, COMPLEX_FLOAT) if is_complex else (DOUBLE, FLOAT)


@table.batch("linspace.Tensor_Tensor linspace.Tensor_Scalar linspace.Scalar_Tensor")
def linspace(batch: Batch, start: Any, end: Any, steps: int, dtype: Any, *rest: Any) -> Any:
    """start + (end - start) * (0 .. 1 in `steps` numbers), computed in double precision -> (steps)."""
    places = Tensor(np.linspace(0, 1, steps))
    wide, usual = dtypes_between(start, end)
    low, high = (batch.again("aten::to", batch.again("aten::unsqueeze", each, -1), wide) if isinstance(each, Tensor) else
                 each if isinstance(each, complex) else float(each) for each in (start, end))
    difference = batch.again("aten::add", batch.again("aten::neg", low), high) \
        if isinstance(low, Tensor) else batch.again("aten::sub", high, low)
    numbers = batch.again("aten::add", batch.again("aten::mul", difference, places), low)
    return batch.again("aten::to", numbers, usual if dtype is None else dtype)


@table.batch("logspace.Tensor_Tensor logspace.Tensor_Scalar logspace.Scalar_Tensor")
def logspace(batch: Batch, start: Any, end: Any, steps: int, base: float, dtype: Any, *rest: Any) -> Any:
    """base ** linspace, in double precision."""
    wide, usual = dtypes_between(start, end)
    power = batch.again("aten::pow", base, linspace(batch, start, end, steps, wide))
    return batch.again("aten::to", power, usual if dtype is None else dtype)


@table.batch("zeros_like ones_like empty_like full_like")
def like(batch: Batch, self: Any, *rest: Any) -> Any:
    """(B, ...), each place in the batch like self."""
    return batch.box(batch.same(batch.front(self), *rest))


@table.batch("new_zeros new_ones new_empty new_full new_empty_strided")
def new(batch: Batch, self: Any, size: Any, *rest: Any) -> Any:
    """A tensor of `size`, which is not batched: the same for all."""
    return batch.same(batch.front(self), size, *rest)


table.batch("chalf")(untouched)
table.not_batched("it makes a Python number of elements", "_tensor_to_list")
