"""Batching rules of quantiles and searchsorted; unique values are refused."""
from __future__ import annotations

from typing import Any

from irtool.ops.array_library import np
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import ravel, shifted, wrapped_dim
from irtool.ops.kernels.order import table
from irtool.ops.tensor import Tensor


@table.batch("quantile quantile.scalar nanquantile nanquantile.scalar")
def quantile(batch: Batch, self: Any, q: Any, dim: Any, keepdim: bool, interpolation: str) -> Any:
    """q () or (n) for all: dim + 1, n in front of B. A batched q: between sorted values. Without dim: of the flattened self."""
    rank = self.ndim
    if dim is None:
        flat = ravel(batch, self)
        values = quantile(batch, flat, q, 0, False, interpolation)
        return batch.again("aten::reshape", values, [*values.shape, *[1] * rank]) if keepdim else values
    if not rank:
        return quantile(batch, batch.again("aten::reshape", self, [1]), q, 0, False, interpolation)
    if batch.has(q):
        return interpolated(batch, self, q, wrapped_dim(dim, rank), keepdim, interpolation)
    result = batch.same(batch.front(self), q, shifted(dim, self), keepdim, interpolation)
    return batch.box(result, 1 if isinstance(q, Tensor) and q.ndim else 0)


def interpolated(batch: Batch, self: Any, q: Any, dim: int, keepdim: bool, interpolation: str) -> Any:
    """Quantiles of sorted values: result (*q.shape, ...). A nan makes the result nan, but in nanquantile does not count."""
    values = batch.again("aten::sort", batch.again("aten::movedim", self, dim, -1), -1)[0]
    lost = batch.again("aten::isnan", values)
    if batch.kind == "aten::quantile":
        values = batch.again("aten::masked_fill", values, batch.again("aten::any", lost, -1, True), float("nan"))
        last: Any = values.shape[-1] - 1
    else:
        last = batch.again("aten::rsub", batch.again("aten::sum", lost, [-1], True), values.shape[-1] - 1)
        last = batch.again("aten::clamp", last, 0)
    chances = batch.again("aten::reshape", q, [*q.shape, *[1] * values.ndim])
    place = batch.again("aten::expand", batch.again("aten::mul", chances, last), [*q.shape, *values.shape[:-1], 1])
    values = batch.again("aten::expand", values, [*q.shape, *values.shape])

    def at(where: Any) -> Any:
        return batch.again("aten::gather", values, -1, batch.again("aten::to", where, 4))
    if interpolation in ("lower", "higher", "nearest"):
        quantiles = at(batch.again({"lower": "aten::floor", "higher": "aten::ceil", "nearest": "aten::round"}[interpolation], place))
    else:
        low = batch.again("aten::floor", place)
        weight = batch.again("aten::sub", place, low) if interpolation == "linear" else 0.5
        quantiles = batch.again("aten::lerp", at(low), at(batch.again("aten::ceil", place)), weight)
    return batch.again("aten::movedim", quantiles, -1, q.ndim + dim) if keepdim else batch.again("aten::squeeze", quantiles, -1)


@table.batch("searchsorted.Tensor")
def searchsorted(batch: Batch, sequence: Any, self: Any, out_int32: bool, right: bool, side: Any, sorter: Any) -> Any:
    """self (..., m) against sequence (..., n): a sum over n of sequence < self, or <= from the right."""
    if sorter is not None:
        sequence = batch.again("aten::gather", sequence, -1, sorter)
    if sequence.ndim == 1 and self.ndim != 1:
        flat = searchsorted(batch, sequence, batch.again("aten::reshape", self, [-1]), out_int32, right, side, None)
        return batch.again("aten::reshape", flat, list(self.shape))
    before = "aten::le" if right or side == "right" else "aten::lt"
    counted = batch.again(before, batch.again("aten::unsqueeze", sequence, -2), batch.again("aten::unsqueeze", self, -1))
    return batch.again("aten::sum", counted, [-1], dtype=3 if out_int32 else 4)


@table.batch("searchsorted.Scalar")
def searchsorted_number(batch: Batch, sequence: Any, self: Any, out_int32: bool, right: bool, side: Any, sorter: Any) -> Any:
    """The same for a number."""
    value = Tensor(np.asarray(self))
    return searchsorted(batch, sequence, batch.again("aten::to", value, sequence.dtype), out_int32, right, side, sorter)


@table.batch("bucketize.Tensor")
def bucketize(batch: Batch, self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    """searchsorted with the arguments changed over."""
    return searchsorted(batch, boundaries, self, out_int32, right, None, None)


@table.batch("bucketize.Scalar")
def bucketize_number(batch: Batch, self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    """The same for a number."""
    return searchsorted_number(batch, boundaries, self, out_int32, right, None, None)


table.not_batched("its sizes depend on the values", "unique_dim unique_dim_consecutive _unique _unique2 unique_consecutive")
