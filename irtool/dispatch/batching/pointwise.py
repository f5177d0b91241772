"""The rule of all pointwise operators: align what is visible, let the rest broadcast."""
from __future__ import annotations

from typing import Any

import numpy as np

from irtool.dispatch.batched import Batch
from irtool.ops.arrays import code_of, dtype_of
from irtool.ops.call import overload
from irtool.ops.promotion import result_type
from irtool.ops.tensor import Tensor


def pointwise(batch: Batch, *args: Any) -> Any:
    """Operands with a hidden dimension get it in front, and as many dimensions behind it as the largest visible rank asks for."""
    operands = [each for each in args if isinstance(each, Tensor)]
    rank = max(each.ndim for each in operands)
    dtype = common_dtype(batch, args)
    result = batch.same(*[aligned(batch, each, rank, dtype) if isinstance(each, Tensor) else each for each in args])
    if isinstance(result, tuple):
        return tuple([_boxed(batch, each, rank) for each in result])
    return _boxed(batch, result, rank)


def _boxed(batch: Batch, result: Any, rank: int) -> Any:
    """A result in a box, unless it does not depend on what is batched (a buffer that is not looked at)."""
    return batch.box(result) if result.ndim > rank else result


def aligned(batch: Batch, value: Any, rank: int, dtype: int | None = None) -> Any:
    """The tensor on the layer below, its visible dimensions the last of `rank`, in a dtype."""
    if dtype is not None and value.dtype != dtype and dtype_of(value.dtype).kind != "b":
        value = batch.again("aten::to", value, dtype)
    if not batch.has(value):
        return value
    found = batch.front(value)
    missing = rank - value.ndim
    if missing <= 0:
        return found
    return batch.do("aten::reshape", found, [batch.length, *[1] * missing, *value.shape])


def common_dtype(batch: Batch, args: tuple[Any, ...]) -> int | None:
    """The dtype to convert to beforehand: a tensor that shows no dimensions counts less in promotion, and would not with a hidden one."""
    promoted = overload(batch.name).promoted
    values = [args[place] for place in promoted if args[place] is not None]
    tensors = [each for each in values if isinstance(each, Tensor)]
    if not any(batch.has(each) and not each.ndim for each in tensors) or len({each.dtype for each in tensors}) < 2:
        return None
    return code_of(result_type([np.empty((0,) * each.ndim, dtype_of(each.dtype)) if isinstance(each, Tensor) else each for each in values]))


__all__ = ["aligned", "pointwise"]
