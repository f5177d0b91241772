"""Batching rules of tensors made like others, or between bounds that are tensors."""
from __future__ import annotations

from typing import Any

from irtool.ops.array_library import np
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import untouched
from irtool.ops.kernels.factory import table
from irtool.ops.tensor import Tensor


@table.batch("linspace.Tensor_Tensor linspace.Tensor_Scalar linspace.Scalar_Tensor")
def linspace(batch: Batch, start: Any, end: Any, steps: int, dtype: Any, *rest: Any) -> Any:
    """start + (end - start) * (0 .. 1 in `steps` numbers), computed in float64 -> (steps)."""
    places = Tensor(np.linspace(0, 1, steps))
    low, high = (batch.again("aten::to", batch.again("aten::unsqueeze", each, -1), 7) if isinstance(each, Tensor) else float(each)
                 for each in (start, end))
    difference = batch.again("aten::add", batch.again("aten::neg", low), high) \
        if isinstance(low, Tensor) else batch.again("aten::sub", high, low)
    numbers = batch.again("aten::add", batch.again("aten::mul", difference, places), low)
    return batch.again("aten::to", numbers, 6 if dtype is None else dtype)


@table.batch("logspace.Tensor_Tensor logspace.Tensor_Scalar logspace.Scalar_Tensor")
def logspace(batch: Batch, start: Any, end: Any, steps: int, base: float, dtype: Any, *rest: Any) -> Any:
    """base ** linspace."""
    return batch.again("aten::to", batch.again("aten::pow", base, linspace(batch, start, end, steps, 7)), 6 if dtype is None else dtype)


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
