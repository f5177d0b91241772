"""Batching rules of tensors made like others, or between bounds that are tensors."""
from __future__ import annotations

from typing import Any

from irtool.ops.array_library import np
from irtool.ops.arrays import dtype_of
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import untouched
from irtool.ops.kernels.factory import check_ends, check_steps, default_between, table
from irtool.ops.tensor import Tensor

FLOAT, DOUBLE, COMPLEX_FLOAT, COMPLEX_DOUBLE = 6, 7, 9, 10
"""torch's numbers of dtypes."""


def dtypes_between(name: str, start: Any, end: Any, dtype: int | None) -> tuple[int, int]:
    """The dtype in which numbers between two bounds are computed, and that of the result. Raises torch's error for a real result of complex
    bounds, and for bounds with dimensions."""
    check_ends(start, end)
    is_complex = any(isinstance(each, complex) or isinstance(each, Tensor) and dtype_of(each.dtype).kind == "c" for each in (start, end))
    default_between(name, is_complex, dtype)
    result = (COMPLEX_FLOAT if is_complex else FLOAT) if dtype is None else dtype
    return (COMPLEX_DOUBLE if dtype_of(result).kind == "c" else DOUBLE), result


def spaced(batch: Batch, start: Any, end: Any, steps: int, wide: int, whole: int | None) -> Any:
    """`steps` numbers from start to end in double precision, counted from both ends, as the kernel counts them -> (steps). whole: the dtype
    of whole numbers to which the bounds are truncated first, and the numbers later; their products with places are exact."""
    def bound(value: Any) -> Any:
        column = batch.again("aten::unsqueeze", value, -1) if isinstance(value, Tensor) else Tensor(np.asarray([value], dtype_of(wide)))
        return batch.again("aten::to", column if whole is None else batch.again("aten::to", column, whole), wide)

    low, high = bound(start), bound(end)
    step = batch.again("aten::div", batch.again("aten::sub", high, low), max(steps - 1, 1))
    parts = [step]
    if whole is not None:
        rough = batch.again("aten::to", batch.again("aten::to", step, FLOAT), wide)
        parts = [rough, batch.again("aten::sub", step, rough)]
    places = np.arange(steps, dtype=np.float64)
    up, down = low, high
    for part in parts:
        up = batch.again("aten::add", up, batch.again("aten::mul", part, Tensor(places)))
        down = batch.again("aten::sub", down, batch.again("aten::mul", part, Tensor(places[::-1].copy())))
    return batch.again("aten::where", Tensor(places < (steps // 2 if steps > 1 else 1)), up, down)


@table.batch("linspace.Tensor_Tensor linspace.Tensor_Scalar linspace.Scalar_Tensor")
def linspace(batch: Batch, start: Any, end: Any, steps: int, dtype: Any, *rest: Any) -> Any:
    """`steps` numbers from start to end, as `spaced` -> (steps)."""
    wide, result = dtypes_between("linspace", start, end, dtype)
    check_steps("linspace", steps, dtype_of(result))
    return batch.again("aten::to", spaced(batch, start, end, steps, wide, result if dtype_of(result).kind in "iu" else None), result)


@table.batch("logspace.Tensor_Tensor logspace.Tensor_Scalar logspace.Scalar_Tensor")
def logspace(batch: Batch, start: Any, end: Any, steps: int, base: float, dtype: Any, *rest: Any) -> Any:
    """base ** linspace, in double precision; whole numbers to the power of whole numbers, if more than one."""
    wide, result = dtypes_between("logspace", start, end, dtype)
    check_steps("logspace", steps, dtype_of(result))
    if dtype_of(result).kind in "iu" and steps != 1:
        start, end = (batch.again("aten::trunc", batch.again("aten::to", each, wide)) if isinstance(each, Tensor) else int(each)
                      for each in (start, end))
    return batch.again("aten::to", batch.again("aten::pow", base, spaced(batch, start, end, steps, wide, None)), result)


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
