"""Counting: bincount, histc, histogram, histogramdd."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import add_at, astype
from irtool.ops.checks import c_name, only, refuse
from irtool.ops.op import OpTable

table = OpTable("histogram")


@table.op("aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor")
def bincount(xp, self, weights, minlength):
    """How often each of 0, 1, 2, ... occurs (int64), or the sum of its weights (float32 for float32, else float64)."""
    if minlength < 0:
        raise RunError("minlength should be >= 0")
    if self.dtype.kind not in "iu":
        refuse("bincount_cpu", self)
    if self.ndim == 1 and self.size == 0:
        return xp.zeros(minlength, xp.int64)
    if self.ndim != 1 or (self < 0).any():
        raise RunError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and (weights.ndim != 1 or weights.shape != self.shape):
        raise RunError("weights should be 1-d and have the same length as input")
    if weights is None:
        return xp.bincount(self, minlength=minlength).astype(xp.int64)
    dtype = xp.float32 if weights.dtype == xp.float32 else xp.float64
    return xp.bincount(self, weights.astype(xp.float64), minlength).astype(dtype)


def _span(xp, name, x, low, high):
    """The range counted over: the data's own when low equals high, widened when it is one point."""
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RunError(f"{name}: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RunError(f"{name}: max must be larger than min")
    return low, high


@table.op("aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", fits="min max")
def histc(xp, self, bins, min, max):
    """Counts, as floats, in equal bins over [min, max] (the range of the data if those are equal); elements outside are ignored."""
    if bins <= 0:
        raise RunError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    only("histogram_cpu", "f", self)
    low, high = _span(xp, "torch.histc", self, float(min), float(max))
    x = self.reshape(-1)
    x = x[(x >= low) & (x <= high)]
    kind = x.dtype.type
    places = xp.minimum(((x - kind(low)) * kind(bins) / (kind(high) - kind(low))).astype(xp.int64), bins - 1)
    return xp.bincount(places, minlength=bins).astype(self.dtype)


def check_bins(count, dimension):
    """Raises RunError unless there are bins."""
    if count <= 0:
        raise RunError(f"torch.histogram(): bins must be > 0, but got {count} for dimension {dimension}")


def _bin_edges(xp, x, bins, bounds):
    """bins + 1 equally spaced edges; bounds None: the data's range, [0, 1] without data."""
    if x.dtype == xp.float16 and x.size:
        refuse("histogramdd", x)
    if bounds is None:
        low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 1.0)
    else:
        low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RunError(f"torch.histogramdd(): dimension 0's range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RunError(f"torch.histogramdd(): min should not exceed max, but got min {low:g} max {high:g} for dimension 0")
    if low == high:
        low, high = low - 0.5, high + 0.5
    check_bins(bins, 0)
    step = (high - low) / bins
    edges = [low + step * place if place < (bins + 1) // 2 else high - step * (bins - place) for place in range(bins + 1)]
    return xp.asarray(edges, x.dtype)


def _counted(xp, points, edges, weight, density, equal_bins):
    """N-dimensional histogram of `points` (count, dimensions) over a list of edges; bins are half open but for the last."""
    inside = xp.ones(len(points), bool)
    places = []
    for column, bounds in zip(points.T, edges, strict=True):
        inside &= (column >= bounds[0]) & (column <= bounds[-1])
        if equal_bins:
            place = ((column - bounds[0]) * (len(bounds) - 1) / (bounds[-1] - bounds[0])).astype(xp.int64)
            place = xp.clip(place, 0, len(bounds) - 2)
            # rounding may land one bin off: look at the edges themselves, as torch does
            further = (column >= bounds[place + 1]) & (place < len(bounds) - 2)
            place = xp.where(column < bounds[place], place - 1, xp.where(further, place + 1, place))
        else:
            place = xp.searchsorted(bounds, column, side="right") - 1
        places.append(xp.clip(place, 0, len(bounds) - 2))
    result = xp.zeros([len(bounds) - 1 for bounds in edges], points.dtype)
    chosen = tuple(place[inside] for place in places)
    add_at(result, chosen, points.dtype.type(1) if weight is None else weight.reshape(-1)[inside])
    if density:
        total = result.sum()
        result = result / total
        for place, bounds in enumerate(edges):
            result = result / xp.diff(bounds).reshape([-1 if axis == place else 1 for axis in range(len(edges))])
    return astype(result, points.dtype)


def _check(self, weight):
    only("histogramdd", "f", self)
    if weight is not None and weight.dtype != self.dtype:
        raise RunError("torch.histogramdd(): if weight tensor is provided, input tensor and weight tensor should have the same dtype",
                       code="E0409")


@table.op("aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False)"
          " -> (Tensor hist, Tensor bin_edges)")
def histogram(xp, self, bins, range, weight, density):
    """Counts (sums of weights, or a density) in equal bins over a range, and the bins' edges."""
    _check(self, weight)
    edges = _bin_edges(xp, self, bins, range)
    return _counted(xp, self.reshape(-1, 1), [edges], weight, density, True), edges


@table.op("aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False)"
          " -> (Tensor hist, Tensor bin_edges)")
def histogram_of_edges(xp, self, bins, weight, density):
    """Counts between given edges, and those edges."""
    _check(self, weight)
    if bins.dtype != self.dtype:
        raise RunError("torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                       f"{c_name(self.dtype)} and bins for dimension 0 with dtype {c_name(bins.dtype)}", code="E0409")
    if bins.ndim != 1:
        raise RunError(f"torch.histogramdd: bins tensor should have one dimension, but got {bins.ndim} dimensions in the bins tensor for "
                       "dimension 0")
    if not bins.size:
        raise RunError("torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
                       "dimension 0")
    check_bins(bins.size - 1, 0)
    return _counted(xp, self.reshape(-1, 1), [bins], weight, density, False), bins.copy()


def _histogramdd(xp, self, bins, range, weight, density):
    _check(self, weight)
    if self.ndim < 2:
        raise RunError(f"torch.histogramdd(): input tensor should have at least 2 dimensions, but got {self.ndim}")
    points = self.reshape(math.prod(self.shape[:-1]), self.shape[-1])
    if isinstance(bins, int):
        bins = [bins] * points.shape[1]
    if len(bins) != points.shape[1]:
        raise RunError(f"torch.histogramdd(): expected {points.shape[1]} sequences of bin edges for a {points.shape[1]}-dimensional "
                       f"histogram but got {len(bins)}")
    equal = not hasattr(bins[0], "dtype")
    edges = list(bins)
    if equal:
        bounds = [None if range is None else range[2 * place:2 * place + 2] for place, _ in enumerate(bins)]
        edges = [_bin_edges(xp, column, each, bound) for column, each, bound in zip(points.T, bins, bounds, strict=True)]
    return _counted(xp, points, edges, weight, density, equal), [each.copy() for each in edges]


for _overload, _bins in (("", "int[] bins"), (".int_bins", "int bins"), (".TensorList_bins", "Tensor[] bins")):
    table.define(f"aten::histogramdd{_overload}(Tensor self, {_bins}, float[]? range=None, Tensor? weight=None, bool density=False)"
                 " -> (Tensor hist, Tensor[] bin_edges)", _histogramdd, doc="Histogram of points in several dimensions, and the edges.")

HISTOGRAM_OPTIONS = "float[]? range=None, Tensor? weight=None, bool density=False"
table.define(f"aten::_histogramdd_bin_edges(Tensor self, int[] bins, *, {HISTOGRAM_OPTIONS}) -> Tensor[]",
             lambda xp, self, bins, range, weight, density: _histogramdd(xp, self, bins, range, weight, density)[1],
             doc="The edges of a histogram with equal bins.")
table.define(f"aten::_histogramdd_from_bin_cts(Tensor self, int[] bins, *, {HISTOGRAM_OPTIONS}) -> Tensor",
             lambda xp, self, bins, range, weight, density: _histogramdd(xp, self, bins, range, weight, density)[0],
             doc="Histogram of points in several dimensions with equal bins.")
table.define("aten::_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
             lambda xp, self, bins, weight, density: _histogramdd(xp, self, bins, None, weight, density)[0],
             doc="Histogram of points in several dimensions between given edges.")
