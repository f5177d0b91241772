"""Writing along a dimension at places named by an index tensor: scatter, scatter_add, scatter_reduce, index_reduce, segment_reduce."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import add_at, as_array, max_at, min_at, mul_at, wrap_dim
from irtool.ops.checks import refuse
from irtool.ops.kernels.index_checks import check_added
from irtool.ops.kernels.indexing import check_gather, grid_index
from irtool.ops.op import OpTable

table = OpTable("scatter")


def _prepare(name, self, dim, index, src):
    """Checked dimension; target, index and source with at least one dimension."""
    dim = wrap_dim(dim, self.ndim)
    if src is not None and src.dtype != self.dtype:
        raise RunError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    check_gather(name, self, dim, index, src)
    return dim


def _scatter(xp, target, dim, index, src, combine):
    """Writes `src` (cut to `index`'s shape) into `target` by `combine(target, place, values)`."""
    if not index.size:
        return target
    whole = target if target.ndim else target.reshape(1)
    index = index if index.ndim else index.reshape(1)
    src = src if src.ndim else src.reshape((1,) * index.ndim)
    values = src[tuple(slice(0, n) for n in index.shape)] if src.size != 1 else src
    combine(whole, grid_index(xp, whole, dim, index), values)
    return target


def _assign(target, place, values):
    target[place] = values


def _or_at(xp):
    return lambda target, place, values: xp.logical_or.at(target, place, values)


@table.op("aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor")
def scatter(xp, self, dim, index, src):
    """A copy with `src` written along `dim` at the places of `index`."""
    dim = _prepare("scatter", self, dim, index, src)
    return _scatter(xp, self.copy(), dim, index, src, _assign)


@table.op("aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", fits="value")
def scatter_value(xp, self, dim, index, value):
    """A copy with one value written along `dim` at the places of `index`."""
    dim = _prepare("scatter", self, dim, index, None)
    return _scatter(xp, self.copy(), dim, index, as_array(value, self.dtype), _assign)


def _old_reduction(reduce):
    if reduce not in ("add", "multiply"):
        raise RunError("reduce argument must be either add or multiply.")
    return add_at if reduce == "add" else mul_at


@table.op("aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor")
def scatter_by(xp, self, dim, index, src, reduce):
    """A copy with `src` added to (`add`) or multiplied into (`multiply`) the places of `index`."""
    dim = _prepare("scatter", self, dim, index, src)
    return _scatter(xp, self.copy(), dim, index, src, _old_reduction(reduce))


@table.op("aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor", fits="value")
def scatter_value_by(xp, self, dim, index, value, reduce):
    """A copy with one value added to (`add`) or multiplied into (`multiply`) the places of `index`."""
    dim = _prepare("scatter", self, dim, index, None)
    return _scatter(xp, self.copy(), dim, index, as_array(value, self.dtype), _old_reduction(reduce))


@table.op("aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor")
def scatter_add(xp, self, dim, index, src):
    """A copy with `src` added along `dim` at the places of `index`, repetitions included."""
    dim = _prepare("scatter_add", self, dim, index, src)
    return _scatter(xp, self.copy(), dim, index, src, _or_at(xp) if self.dtype.kind == "b" else add_at)


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
ALIASES = {"max": "amax", "min": "amin"}


def _neutral(xp, dtype, reduce):
    """The initial value of a reduction."""
    if reduce in ("sum", "mean"):
        return dtype.type(0)
    if reduce == "prod":
        return dtype.type(1)
    if dtype.kind == "f":
        return dtype.type(-math.inf if reduce == "amax" else math.inf)
    if dtype.kind == "b":
        return dtype.type(reduce == "amin")
    if dtype.kind == "c":       # of no elements: it has no extremes
        return dtype.type(0)
    return xp.iinfo(dtype).min if reduce == "amax" else xp.iinfo(dtype).max


def _combiner(xp, dtype, reduce):
    if dtype.kind == "b":
        return _or_at(xp) if reduce in ("sum", "mean", "amax") else lambda t, p, v: xp.logical_and.at(t, p, v)
    return {"sum": add_at, "mean": add_at, "prod": mul_at, "amax": max_at, "amin": min_at}[reduce]


def reduced_at(xp, self, place, src, reduce, include_self, scatter_into):
    """Copy of `self` with `src` reduced into places; `scatter_into(target, values, combine)` does the addressing."""
    dtype = self.dtype
    result = self.copy()
    ones = as_array(1, xp.int64)
    if not include_self:
        scatter_into(result, xp.full((), _neutral(xp, dtype, reduce), dtype), _assign)
    scatter_into(result, src, _combiner(xp, dtype, reduce))
    if reduce == "mean":
        count = xp.ones(self.shape, xp.int64) if include_self else xp.zeros(self.shape, xp.int64)
        scatter_into(count, ones, add_at)
        count = xp.maximum(count, 1)
        result = result // count.astype(dtype) if dtype.kind in "iu" else (result / count.astype(dtype)).astype(dtype)
    return result


@table.op("aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor")
def scatter_reduce(xp, self, dim, index, src, reduce, include_self):
    """A copy with `src` reduced along `dim` into the places of `index`: sum, prod, mean, amax or amin."""
    reduce = ALIASES.get(reduce, reduce)
    if reduce not in REDUCTIONS:
        raise RunError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    dim = _prepare("scatter", self, dim, index, src)
    if index.size and (self.dtype.kind == "b" and reduce == "mean" or self.dtype.kind == "c" and reduce in ("amax", "amin")):
        refuse(f"scatter_gather_tensor_cpu_reduce_{reduce}", self)
    if self.dtype.kind == "b" and reduce == "mean":
        refuse("div_floor_cpu", self)
    return reduced_at(xp, self, index, src, reduce, include_self,
                      lambda target, values, combine: _scatter(xp, target, dim, index, values, combine))


@table.op("aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor")
def index_reduce(xp, self, dim, index, source, reduce, include_self):
    """A copy with slices of `source` reduced into the places of an index vector: prod, mean, amax or amin."""
    if reduce not in REDUCTIONS[1:]:
        raise RunError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    dim = check_added("index_reduce_", self, dim, index, source)
    if self.dtype.kind in "bc" and (self.ndim < 2 or not include_self):
        refuse("index_func_" if include_self else "index_reduce_func_exclude_input_init", self)

    def into(target, values, combine):
        place = (slice(None),) * dim + (index.reshape(-1),)
        combine(target if target.ndim else target.reshape(1), place, values)
    return reduced_at(xp, self, index, source if source.ndim or self.ndim else source.reshape(1), reduce, include_self, into)
