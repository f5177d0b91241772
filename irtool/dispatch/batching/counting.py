"""Counting by value, and places by what is there: with a fixed number of results."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import no_rule, rule, shifted, wrapped_dim
from irtool.dispatch.batching.margins import zeros_where
from irtool.dispatch.batching.shape import ravel
from irtool.ir.errors import UnsupportedError
from irtool.ops.arrays import dtype_of
from irtool.ops.tensor import Tensor

DOUBLE, LONG = 7, 4


def counts(batch: Batch, places: Any, amounts: Any, extent: int) -> Any:
    """Amounts added up by place, of `extent` places."""
    empty = batch.again("aten::new_zeros", amounts, [extent])
    return batch.again("aten::scatter_add", empty, 0, places, amounts)


def amounts_of(batch: Batch, inside: Any, weight: Any, dtype: int) -> Any:
    """What each element counts: 1 or its weight, 0 outside."""
    given = batch.again("aten::to", inside, dtype)
    return given if weight is None else zeros_where(batch, inside, batch.again("aten::to", ravel(batch, weight), dtype))


def between(batch: Batch, x: Any, low: Any, high: Any) -> Any:
    """Is low <= x <= high?"""
    return batch.again("aten::logical_and", batch.again("aten::ge", x, low), batch.again("aten::le", x, high))


def span(batch: Batch, x: Any, low: float, high: float, room: float, own: bool) -> tuple[Any, Any]:
    """Where counting begins and ends, 0-d tensors: as told, or (`own`) the data's own range; one point gets some room."""
    first, last = ((batch.again("aten::min", x), batch.again("aten::max", x)) if own and x.shape[0] else
                   tuple(Tensor(np.asarray(each, dtype_of(x.dtype))) for each in (low, high)))
    is_point = batch.again("aten::eq", first, last)
    return (batch.again("aten::where", is_point, batch.again("aten::sub", first, room), first),
            batch.again("aten::where", is_point, batch.again("aten::add", last, room), last))


@rule("quantile quantile.scalar nanquantile nanquantile.scalar")
def quantile(batch: Batch, self: Any, q: Any, dim: Any, keepdim: bool, interpolation: str) -> Any:
    """Chances stand in front of what shows. Where they are the same for all, as the operator; else between the values in order."""
    rank = self.ndim
    if dim is None:
        flat = ravel(batch, self)
        found = quantile(batch, flat, q, 0, False, interpolation)
        return batch.again("aten::reshape", found, [*found.shape, *[1] * rank]) if keepdim else found
    if not rank:
        return quantile(batch, batch.again("aten::reshape", self, [1]), q, 0, False, interpolation)
    if batch.has(q):
        return interpolated(batch, self, q, wrapped_dim(dim, rank), keepdim, interpolation)
    result = batch.same(batch.front(self), q, shifted(dim, self), keepdim, interpolation)
    return batch.box(result, 1 if isinstance(q, Tensor) and q.ndim else 0)


def interpolated(batch: Batch, self: Any, q: Any, dim: int, keepdim: bool, interpolation: str) -> Any:
    """Quantiles of sorted values. A nan among them is the result, but for nanquantile, which does not count them."""
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
        found = at(batch.again({"lower": "aten::floor", "higher": "aten::ceil", "nearest": "aten::round"}[interpolation], place))
    else:
        low = batch.again("aten::floor", place)
        weight = batch.again("aten::sub", place, low) if interpolation == "linear" else 0.5
        found = batch.again("aten::lerp", at(low), at(batch.again("aten::ceil", place)), weight)
    return batch.again("aten::movedim", found, -1, q.ndim + dim) if keepdim else batch.again("aten::squeeze", found, -1)


@rule("histc")
def histc(batch: Batch, self: Any, bins: int, low: Any, high: Any) -> Any:
    """Each element's bin, counted."""
    x = ravel(batch, self)
    first, last = span(batch, x, float(low), float(high), 1.0, low == high)
    place = batch.again("aten::div", batch.again("aten::mul", batch.again("aten::sub", x, first), bins),
                        batch.again("aten::sub", last, first))
    place = batch.again("aten::clamp", batch.again("aten::to", batch.again("aten::nan_to_num", place), LONG), 0, bins - 1)
    return counts(batch, place, amounts_of(batch, between(batch, x, first, last), None, x.dtype), bins)


def edges_of(batch: Batch, x: Any, bins: int, bounds: Any) -> Any:
    """bins + 1 edges, computed in double precision, from both ends."""
    wide = batch.again("aten::to", x, DOUBLE)
    low, high = (0.0, 1.0) if bounds is None else bounds
    first, last = span(batch, wide, low, high, 0.5, bounds is None)
    step = batch.again("aten::div", batch.again("aten::sub", last, first), bins)
    places = np.arange(bins + 1)
    ahead = batch.again("aten::add", batch.again("aten::mul", step, Tensor(places.astype(float))), first)
    back = batch.again("aten::add", batch.again("aten::neg", batch.again("aten::mul", step, Tensor((bins - places).astype(float)))), last)
    found = batch.again("aten::where", Tensor(places < (bins + 1) // 2), ahead, back)
    return batch.again("aten::to", found, x.dtype)


def counted(batch: Batch, columns: list[Any], edges: list[Any], weight: Any, density: bool) -> Any:
    """A histogram of points, given by columns, between edges."""
    place, inside = None, None
    for column, own in zip(columns, edges, strict=True):
        last = own.shape[0] - 2
        first_edge, last_edge = (batch.again("aten::select", own, 0, each) for each in (0, -1))
        here = between(batch, column, first_edge, last_edge)
        inside = here if inside is None else batch.again("aten::logical_and", inside, here)
        found = batch.again("aten::sub", batch.again("aten::searchsorted", own, column, right=True), 1)
        found = batch.again("aten::clamp", found, 0, last)
        place = found if place is None else batch.again("aten::add", batch.again("aten::mul", place, last + 1), found)
    shape = [own.shape[0] - 1 for own in edges]
    result = counts(batch, place, amounts_of(batch, inside, weight, columns[0].dtype), prod(shape))
    result = batch.again("aten::reshape", result, shape)
    if density:
        result = batch.again("aten::div", result, batch.again("aten::sum", result))
        for dim, own in enumerate(edges):
            widths = batch.again("aten::reshape", batch.again("aten::diff", own), [-1, *[1] * (len(shape) - dim - 1)])
            result = batch.again("aten::div", result, widths)
    return result


@rule("histogram.bin_ct histogram.bins_tensor")
def histogram(batch: Batch, self: Any, bins: Any, *rest: Any) -> Any:
    """Of numbers."""
    *bounds, weight, density = rest
    x = ravel(batch, self)
    edges = bins if isinstance(bins, Tensor) else edges_of(batch, x, bins, bounds[0])
    return counted(batch, [x], [edges], weight, density), edges


@rule("histogramdd histogramdd.int_bins histogramdd.TensorList_bins _histogramdd_bin_edges _histogramdd_from_bin_cts "
      "_histogramdd_from_bin_tensors")
def histogramdd(batch: Batch, self: Any, bins: Any, *rest: Any) -> Any:
    """Of points."""
    *bounds, weight, density = rest
    points = batch.again("aten::reshape", self, [-1, self.shape[-1]])
    columns = [batch.again("aten::select", points, 1, place) for place in range(points.shape[1])]
    given = [bins] * len(columns) if isinstance(bins, int) else list(bins)
    ranges = [None if not bounds or bounds[0] is None else bounds[0][2 * place:2 * place + 2] for place in range(len(columns))]
    edges = [own if isinstance(own, Tensor) else edges_of(batch, column, own, bound)
             for column, own, bound in zip(columns, given, ranges, strict=True)]
    if batch.kind.endswith("bin_edges"):
        return edges
    found = counted(batch, columns, edges, weight, density)
    return found if "_from_" in batch.kind else (found, edges)


# ---- places of what is there

@rule("nonzero_static")
def nonzero_static(batch: Batch, self: Any, size: int, fill: int) -> Any:
    """Places in order, those of zeros last; as many as are asked for."""
    total = prod(self.shape)
    there = ravel(batch, batch.again("aten::ne", self, 0))
    order = batch.again("aten::where", there, Tensor(np.arange(total)), Tensor(np.full(total, total)))
    order = batch.again("aten::sort", order)[0]
    if size > total:
        order = batch.again("aten::constant_pad_nd", order, [0, size - total], total)
    order = batch.again("aten::unsqueeze", batch.again("aten::narrow", order, 0, 0, size), 1)
    steps = [prod(self.shape[dim + 1:]) for dim in range(self.ndim)]
    found = batch.again("aten::remainder", batch.again("aten::floor_divide", order, Tensor(np.array(steps, np.int64))),
                        Tensor(np.array(self.shape, np.int64)))
    return batch.again("aten::where", batch.again("aten::lt", order, total), found, Tensor(np.asarray(fill)))


def places_of(batch: Batch, mask: Any, extent: int) -> Any:
    """For each element of a flat mask how many stand before it that hold, at most `extent - 1`."""
    found = batch.again("aten::sub", batch.again("aten::cumsum", batch.again("aten::to", mask, LONG), 0), 1)
    return batch.again("aten::clamp", found, 0, max(extent - 1, 0))


@rule("masked_scatter")
def masked_scatter(batch: Batch, self: Any, mask: Any, source: Any) -> Any:
    """The source's elements where the mask holds; that there are enough of them is not looked at."""
    shape = list(np.broadcast_shapes(tuple(self.shape), tuple(mask.shape)))
    own, where = (ravel(batch, batch.again("aten::expand", each, shape)) for each in (self, mask))
    total = prod(source.shape)
    if not total or not prod(shape):
        return batch.again("aten::reshape", own, shape)
    taken = batch.again("aten::take", source, places_of(batch, where, total))
    return batch.again("aten::reshape", batch.again("aten::where", where, taken, own), shape)


@rule("masked_scatter_backward")
def masked_scatter_backward(batch: Batch, grad: Any, mask: Any, sizes: Any) -> Any:
    """Gradients where the mask holds, in order."""
    where = ravel(batch, batch.again("aten::expand", mask, list(grad.shape)))
    total = prod(sizes)
    given = zeros_where(batch, where, ravel(batch, grad))
    return batch.again("aten::reshape", counts(batch, places_of(batch, where, total), given, total), list(sizes))


@rule("masked_select_backward")
def masked_select_backward(batch: Batch, grad: Any, input: Any, mask: Any) -> Any:
    """With one mask for all: how many are selected depends on it."""
    if batch.has(mask):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported where the mask is batched")
    shape = list(np.broadcast_shapes(tuple(input.shape), tuple(mask.shape)))
    return batch.again("aten::masked_scatter", batch.again("aten::new_zeros", grad, shape), mask, grad)


no_rule("it looks at the elements of a list", "remove.Tensor index.list_Tensor count.Tensor sort.Tensor sorted.Tensor eq.Tensor_list "
        "ne.Tensor_list")
