"""Batching rules of histograms, as sums of weights by bin (scatter_add)."""
from __future__ import annotations

from math import prod
from typing import Any

from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.arrays import dtype_of
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import DOUBLE, FLOAT, LONG, ravel, zeros_where
from irtool.ops.kernels.histogram import table
from irtool.ops.tensor import Tensor


def counts(batch: Batch, places: Any, amounts: Any, extent: int) -> Any:
    """amounts (n) added up by places (n) -> (extent)."""
    empty = batch.again("aten::new_zeros", amounts, [extent])
    return batch.again("aten::scatter_add", empty, 0, places, amounts)


def amounts_of(batch: Batch, inside: Any, weight: Any, dtype: int) -> Any:
    """What each element adds to its bin: 1 or its weight; 0 where it is outside."""
    ones = batch.again("aten::to", inside, dtype)
    return ones if weight is None else zeros_where(batch, inside, batch.again("aten::to", ravel(batch, weight), dtype))


def between(batch: Batch, x: Any, low: Any, high: Any) -> Any:
    """low <= x <= high."""
    return batch.again("aten::logical_and", batch.again("aten::ge", x, low), batch.again("aten::le", x, high))


def span(batch: Batch, x: Any, low: float, high: float, room: float, by_data: bool) -> tuple[Any, Any]:
    """The bounds as two 0-d tensors: low and high, or (by_data) the least and largest of x; equal ones move apart by `room`."""
    first, last = ((batch.again("aten::min", x), batch.again("aten::max", x)) if by_data and x.shape[0] else
                   tuple(Tensor(np.asarray(each, dtype_of(x.dtype))) for each in (low, high)))
    is_point = batch.again("aten::eq", first, last)
    return (batch.again("aten::where", is_point, batch.again("aten::sub", first, room), first),
            batch.again("aten::where", is_point, batch.again("aten::add", last, room), last))


@table.batch("histc")
def histc(batch: Batch, self: Any, bins: int, low: Any, high: Any) -> Any:
    """Flattened: the bin of each element, then sums by bin -> (bins)."""
    x = ravel(batch, self)
    first, last = span(batch, x, float(low), float(high), 1.0, low == high)
    place = batch.again("aten::div", batch.again("aten::mul", batch.again("aten::sub", x, first), bins),
                        batch.again("aten::sub", last, first))
    place = batch.again("aten::clamp", batch.again("aten::to", batch.again("aten::nan_to_num", place), LONG), 0, bins - 1)
    return counts(batch, place, amounts_of(batch, between(batch, x, first, last), None, x.dtype), bins)


def edges_of(batch: Batch, x: Any, bins: int, bounds: Any) -> Any:
    """(bins + 1) edges between the bounds, in float64; the first half is counted from the low end, the rest from the high one."""
    wide = batch.again("aten::to", x, DOUBLE)
    low, high = (0.0, 1.0) if bounds is None else bounds
    first, last = span(batch, wide, low, high, 0.5, bounds is None)
    step = batch.again("aten::div", batch.again("aten::sub", last, first), bins)
    places = np.arange(bins + 1)
    ahead = batch.again("aten::add", batch.again("aten::mul", step, Tensor(places.astype(float))), first)
    back = batch.again("aten::add", batch.again("aten::neg", batch.again("aten::mul", step, Tensor((bins - places).astype(float)))), last)
    edges = batch.again("aten::where", Tensor(places < (bins + 1) // 2), ahead, back)
    return batch.again("aten::to", edges, x.dtype)


def counted(batch: Batch, columns: list[Any], edges: list[Any], weight: Any, density: bool) -> Any:
    """A histogram of n points, `columns` one (n) per dimension, `edges` one (bins + 1) per dimension -> (bins, ...)."""
    place, inside = None, None
    for column, axis in zip(columns, edges, strict=True):
        last = axis.shape[0] - 2
        first_edge, last_edge = (batch.again("aten::select", axis, 0, each) for each in (0, -1))
        here = between(batch, column, first_edge, last_edge)
        inside = here if inside is None else batch.again("aten::logical_and", inside, here)
        bin = batch.again("aten::sub", batch.again("aten::searchsorted", axis, column, right=True), 1)
        bin = batch.again("aten::clamp", bin, 0, last)
        place = bin if place is None else batch.again("aten::add", batch.again("aten::mul", place, last + 1), bin)
    shape = [axis.shape[0] - 1 for axis in edges]
    result = counts(batch, place, amounts_of(batch, inside, weight, columns[0].dtype), prod(shape))
    result = batch.again("aten::reshape", result, shape)
    if density:
        result = batch.again("aten::div", result, batch.again("aten::sum", result))
        for dim, axis in enumerate(edges):
            widths = batch.again("aten::reshape", batch.again("aten::diff", axis), [-1, *[1] * (len(shape) - dim - 1)])
            result = batch.again("aten::div", result, widths)
    return result


@table.batch("histogram")
def histogram(batch: Batch, self: Any, bins: Any, *rest: Any) -> Any:
    """(counts, edges) of the flattened self."""
    *bounds, weight, density = rest
    x = ravel(batch, self)
    edges = bins if isinstance(bins, Tensor) else edges_of(batch, x, bins, bounds[0])
    return counted(batch, [x], [edges], weight, density), edges


@table.batch("histogramdd histogramdd.int_bins histogramdd.TensorList_bins _histogramdd_bin_edges _histogramdd_from_bin_cts "
             "_histogramdd_from_bin_tensors")
def histogramdd(batch: Batch, self: Any, bins: Any, *rest: Any) -> Any:
    """(..., D) -> counts (bins, ...) and D edges; some overloads give only one of both."""
    *bounds, weight, density = rest
    points = batch.again("aten::reshape", self, [-1, self.shape[-1]])
    columns = [batch.again("aten::select", points, 1, place) for place in range(points.shape[1])]
    bins_of = [bins] * len(columns) if isinstance(bins, int) else list(bins)
    ranges = [None if not bounds or bounds[0] is None else bounds[0][2 * place:2 * place + 2] for place in range(len(columns))]
    edges = [each if isinstance(each, Tensor) else edges_of(batch, column, each, bound)
             for column, each, bound in zip(columns, bins_of, ranges, strict=True)]
    if batch.kind.endswith("bin_edges"):
        return edges
    result = counted(batch, columns, edges, weight, density)
    return result if "_from_" in batch.kind else (result, edges)


def decided(batch: Batch, x: Any) -> list[Any]:
    """A number of each place as Python numbers, on which sizes depend."""
    return np.ravel(batch.numbers(batch.front(x))).tolist()     # type: ignore[no-any-return]


@table.batch("bincount")
def bincount(batch: Batch, self: Any, weights: Any, minlength: int) -> Any:
    """(n) -> (bins): as many bins as the greatest number of all places needs, and as torch does, an error if places need fewer."""
    if batch.elements(self).size and batch.elements(self).min() < 0:
        raise RunError("bincount only supports 1-d non-negative integral inputs.")
    if not self.shape[0]:
        return batch.again("aten::new_zeros", self, [minlength], dtype=LONG)
    if weights is None:
        amounts = batch.again("aten::ones_like", self, dtype=LONG)
    else:
        amounts = batch.again("aten::detach", weights)       # no gradient passes
        amounts = amounts if weights.dtype == FLOAT else batch.again("aten::to", amounts, DOUBLE)
    top = batch.again("aten::max", self)
    extents = [minlength]
    if not all(decided(batch, batch.again("aten::lt", top, minlength))):
        extents = [max(each + 1, minlength) for each in decided(batch, top)]
    if len(set(extents)) > 1:
        raise RunError(f"stack expects each tensor to be equal size, but got {extents}")
    return counts(batch, batch.again("aten::to", self, LONG), amounts, extents[0])
