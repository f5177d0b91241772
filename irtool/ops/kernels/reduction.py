"""Reductions: sums, products, extremes, truth. `dim` None or [] means all dimensions; a 0-dim tensor accepts dim 0 and -1.

float16 is summed in float32; float32 across many rows in float64, since NumPy would add one by one. Integers are summed in int64.
"""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import astype, convert, dtype_of, title, wrap_dim
from irtool.ops.checks import only, refuse, wrap_dims
from irtool.ops.op import OpTable

table = OpTable("reduction")

DIMS = "Tensor self, int[1]? dim, bool keepdim=False"
DTYPE = "*, ScalarType? dtype=None"


def add_up(xp, x, axes, keepdim=False):
    """Sum over `axes` in the dtype of x, accumulated in a dtype that is exact enough."""
    if x.dtype.kind in "fc" and x.size:
        wide = _accumulator(xp, x, axes)
        if wide is not None:
            return astype(xp.asarray(xp.sum(x, axis=axes, dtype=wide, keepdims=keepdim)), x.dtype)
    return xp.sum(x, axis=axes, dtype=x.dtype, keepdims=keepdim)


def _accumulator(xp, x, axes):
    """The wider dtype for a sum; None if NumPy adds pairwise (the innermost axis of a row-major array) or there are few elements."""
    if x.dtype == xp.float16:
        return xp.float32
    if x.dtype not in (xp.float32, xp.complex64):
        return None
    inner = bool(axes) and x.ndim - 1 in axes and x.flags.c_contiguous
    outside = math.prod(x.shape[axis] for axis in axes if axis != x.ndim - 1 or not inner)
    return None if outside <= 32 else xp.float64 if x.dtype == xp.float32 else xp.complex128


def as_summed(x, dtype, xp):
    """x in the dtype of its sum: the given one, else int64 for integers and bool."""
    if dtype is not None:
        return convert(x, dtype)
    return astype(x, xp.int64) if x.dtype.kind in "biu" else x


def _sum(xp, self, dim, keepdim, dtype):
    return add_up(xp, as_summed(self, dtype, xp), wrap_dims(dim, self.ndim), keepdim)


@table.op(f"aten::sum(Tensor self, {DTYPE}) -> Tensor")
def sum_all(xp, self, dtype):
    """Sum of all elements, 0-dim."""
    return _sum(xp, self, None, False, dtype)


@table.op(f"aten::sum.dim_IntList({DIMS}, {DTYPE}) -> Tensor")
def sum_dims(xp, self, dim, keepdim, dtype):
    """Sum over dimensions."""
    return _sum(xp, self, dim, keepdim, dtype)


def count(shape, axes):
    """How many elements each result of a reduction over `axes` is made of."""
    return math.prod(shape[axis] for axis in axes)


def average(xp, x, axes, keepdim):
    """Mean of a float or complex array; nan if it is empty."""
    wide = x.astype(xp.float32) if x.dtype == xp.float16 else x
    total = xp.asarray(add_up(xp, wide, axes, keepdim))
    return astype(total / total.dtype.type(count(x.shape, axes)), x.dtype)


def _mean(xp, self, dim, keepdim, dtype):
    x = self if dtype is None else convert(self, dtype)
    if x.dtype.kind not in "fc":
        which = "Input" if dtype is None else "Optional"
        raise RunError(f"mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
                       f"Got: {title(x.dtype)}")
    return average(xp, x, wrap_dims(dim, x.ndim), keepdim)


@table.op(f"aten::mean(Tensor self, {DTYPE}) -> Tensor")
def mean_all(xp, self, dtype):
    """Mean of all elements, 0-dim; nan if there are none. Integers are refused."""
    return _mean(xp, self, None, False, dtype)


@table.op(f"aten::mean.dim({DIMS}, {DTYPE}) -> Tensor")
def mean_dims(xp, self, dim, keepdim, dtype):
    """Mean over dimensions."""
    return _mean(xp, self, dim, keepdim, dtype)


NAN_DIMS = "Tensor self, int[1]? dim=None, bool keepdim=False"


@table.op(f"aten::nansum({NAN_DIMS}, {DTYPE}) -> Tensor")
def nansum(xp, self, dim, keepdim, dtype):
    """Sum over dimensions that takes nan as 0."""
    if self.dtype.kind == "c":
        raise RunError("nansum on CPU does not support complex inputs")
    if dtype is not None and dtype_of(dtype).kind == "c":
        raise RunError(f"\"nansum_cpu\" not implemented for '{title(dtype_of(dtype))}'")
    zeroed = xp.where(self != self, self.dtype.type(0), self) if self.dtype.kind == "f" else self
    return _sum(xp, zeroed, dim, keepdim, dtype)


@table.op(f"aten::nanmean({NAN_DIMS}, {DTYPE}) -> Tensor")
def nanmean(xp, self, dim, keepdim, dtype):
    """Mean over dimensions of the elements that are not nan."""
    if self.dtype.kind not in "fc":
        raise RunError(f"nanmean(): expected input to have floating point or complex dtype but got {title(self.dtype)}")
    if dtype is not None and dtype_of(dtype).kind not in "fc":
        raise RunError("nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. Got: "
                       f"{title(dtype_of(dtype))}")
    total = xp.asarray(nansum.kernel(xp, self, dim, keepdim, dtype))
    counted = xp.sum(self == self, axis=wrap_dims(dim, self.ndim), keepdims=keepdim)
    return astype(total / counted, total.dtype)


def _product(xp, self, axes, keepdim, dtype):
    x = as_summed(self, dtype, xp)
    wide = xp.float32 if x.dtype == xp.float16 else x.dtype
    return astype(xp.asarray(xp.prod(x, axis=axes, dtype=wide, keepdims=keepdim)), x.dtype)


@table.op(f"aten::prod(Tensor self, {DTYPE}) -> Tensor")
def prod_all(xp, self, dtype):
    """Product of all elements, 0-dim."""
    return _product(xp, self, None, False, dtype)


@table.op(f"aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, {DTYPE}) -> Tensor")
def prod_dim(xp, self, dim, keepdim, dtype):
    """Product over one dimension."""
    return _product(xp, self, wrap_dims(dim, self.ndim), keepdim, dtype)


# ---- truth: bool, but uint8 of uint8

def _truth(name, function):
    """`all` or `any`, of everything, over one dimension or several; over [] nothing is reduced."""
    def reduce(xp, self, axes, keepdim):
        result = xp.asarray(getattr(xp, function)(self, axis=axes, keepdims=keepdim))
        return result.astype(xp.uint8) if self.dtype == xp.uint8 else result

    table.define(f"aten::{name}(Tensor self) -> Tensor", lambda xp, self: reduce(xp, self, None, False),
                 doc=f"Do {name} elements differ from 0? 0-dim.")
    table.define(f"aten::{name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
                 lambda xp, self, dim, keepdim: reduce(xp, self, wrap_dims(dim, self.ndim), keepdim),
                 doc=f"Do {name} elements along a dimension differ from 0?")
    table.define(f"aten::{name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
                 lambda xp, self, dim, keepdim: reduce(xp, self, () if dim == [] else wrap_dims(dim, self.ndim), keepdim),
                 doc=f"Do {name} elements along dimensions differ from 0?")


_truth("all", "all")
_truth("any", "any")


@table.op("aten::count_nonzero(Tensor self, int? dim=None) -> Tensor", "aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor")
def count_nonzero(xp, self, dim):
    """How many elements differ from 0, over dimensions; int64."""
    return xp.asarray(xp.sum(self != 0, axis=wrap_dims(dim, self.ndim))).astype(xp.int64)


# ---- extremes

def need_elements(name, x, axes, named):
    """Extremes of nothing do not exist: torch's two messages."""
    if x.size == 0 and not named:
        raise RunError(f"{name}: Expected reduction dim to be specified for input.numel() == 0. "
                       "Specify the reduction dim with the 'dim' argument.")
    for axis in axes:
        if x.ndim and x.shape[axis] == 0:
            raise RunError(f"{name}: Expected reduction dim {axis} to have non-zero size.")


def _extreme_values(name, function, kernel_name):
    def kernel(xp, self, dim, keepdim):
        axes = wrap_dims(dim, self.ndim)
        need_elements(f"{name}()", self, axes, bool(dim))
        only(kernel_name, "biuf", self)
        return getattr(xp, function)(self, axis=axes, keepdims=keepdim)
    table.define(f"aten::{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", kernel,
                 doc="Extreme over dimensions; nan wins.")


_extreme_values("amax", "max", "max_values_cpu")
_extreme_values("amin", "min", "min_values_cpu")


def _extreme_of_all(name):
    def kernel(xp, self):
        need_elements(f"{name}()", self, (), False)
        only(f"{name}_all", "biuf", self)
        return getattr(xp, name)(self)
    table.define(f"aten::{name}(Tensor self) -> Tensor", kernel, doc="Extreme of all elements, 0-dim; nan wins.")


def pick(xp, x, indices, axis):
    """x at one index along `axis` per row; `indices` keep the dimension."""
    return xp.take_along_axis(x, indices, axis)


def _extreme_with_index(name):
    def kernel(xp, self, dim, keepdim):
        axis = wrap_dim(dim, self.ndim)
        need_elements(f"{name}()", self, (axis,), True)
        if self.dtype.kind == "c":
            raise RunError(f"{name}(): does not support complex input")
        if self.ndim == 0:
            return self.copy(), xp.zeros((), xp.int64)
        indices = xp.expand_dims(getattr(xp, "arg" + name)(self, axis=axis), axis)
        values = pick(xp, self, indices, axis)
        return (values, indices) if keepdim else (xp.squeeze(values, axis), xp.squeeze(indices, axis))
    table.define(f"aten::{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", kernel,
                 doc="Extreme along a dimension and the index of its first occurrence; nan wins.")


for _name in ("max", "min"):
    _extreme_of_all(_name)
    _extreme_with_index(_name)


def _extreme_index(name):
    def kernel(xp, self, dim, keepdim):
        if dim is None and self.size == 0:
            raise RunError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        axis = None if dim is None else wrap_dim(dim, self.ndim)
        if axis is not None:
            need_elements(f"{name}()", self, (axis,), True)
        if self.dtype.kind in "bc":
            raise RunError(f"{name}(): does not support {'bool' if self.dtype.kind == 'b' else 'complex'} input")
        if self.ndim == 0:
            return xp.zeros((), xp.int64)
        return xp.asarray(getattr(xp, name)(self, axis=axis, keepdims=keepdim)).astype(xp.int64)
    table.define(f"aten::{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", kernel,
                 doc="Index of the first extreme, in the flat tensor without `dim`; int64; nan wins.")


_extreme_index("argmax")
_extreme_index("argmin")


def _aminmax(xp, self, dim, keepdim):
    if self.dtype.kind == "c":
        refuse("aminmax_cpu", self)
    if dim is None:
        if self.size == 0:
            raise RunError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
        return self.min(keepdims=keepdim), self.max(keepdims=keepdim)
    axes = wrap_dims(dim, self.ndim)
    if any(self.shape[axis] == 0 for axis in axes):
        raise RunError(f"aminmax: Expected reduction dim {axes[0]} to have non-zero size.")
    return xp.min(self, axis=axes, keepdims=keepdim), xp.max(self, axis=axes, keepdims=keepdim)


table.define("aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", _aminmax,
             doc="Smallest and largest element, of all or along a dimension; nan wins.")
table.define("aten::_aminmax(Tensor self) -> (Tensor, Tensor)", lambda xp, self: _aminmax(xp, self, None, False),
             doc="Smallest and largest of all elements.")
table.define("aten::_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)", _aminmax,
             doc="Smallest and largest along a dimension.")


def logsumexp(xp, self, dim, keepdim):
    """log(sum(exp(self))) over dimensions, shifted by the maximum so that it does not overflow. Whole numbers give float32."""
    x = self.astype(xp.float32) if self.dtype.kind in "biu" or self.dtype == xp.float16 else self
    result_dtype = xp.float32 if self.dtype.kind in "biu" else self.dtype
    axes = wrap_dims(dim, x.ndim)
    if x.size == 0:
        return astype(xp.asarray(xp.log(xp.sum(xp.exp(x), axis=axes, keepdims=keepdim))), result_dtype)
    if not dim and not keepdim and x.ndim:
        raise RunError(f"output with shape [] doesn't match the broadcast shape {[1] * x.ndim}")
    highest = xp.max(x.real, axis=axes, keepdims=True)
    highest = xp.where(xp.abs(highest) == math.inf, highest.dtype.type(0), highest)
    total = add_up(xp, xp.exp(x - highest), axes, True)
    result = xp.asarray(xp.log(total) + highest)
    return astype(result if keepdim else xp.squeeze(result, axes), result_dtype)


table.define(("aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
              "aten::special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor"), logsumexp)


# ---- back to a broadcast operand's size

def sum_to(xp, x, size):
    """x summed over the dimensions that broadcasting `size` to x.shape would have made or stretched."""
    lead = x.ndim - len(size)
    if lead < 0 or any(wanted not in (1, had) for wanted, had in zip(size, x.shape[lead:], strict=True)):
        raise RunError(f"size {{{list(size)}}} is not expandable to size {{{list(x.shape)}}}.")
    axes = tuple(range(lead)) + tuple([lead + place for place, wanted in enumerate(size) if wanted == 1 and x.shape[lead + place] != 1])
    if not size:
        return add_up(xp, as_summed(x, None, xp), wrap_dims(None, x.ndim))
    return x if not axes else xp.asarray(add_up(xp, as_summed(x, None, xp), axes, True)).reshape(tuple(size))


@table.op("aten::sum_to_size(Tensor self, SymInt[] size) -> Tensor")
def sum_to_size(xp, self, size):
    """Summed down to a shape that broadcasts to self's."""
    return sum_to(xp, self, size)


@table.op("aten::_grad_sum_to_size(Tensor(a) self, int[]? size) -> Tensor(a)")
def grad_sum_to_size(xp, self, size):
    """self summed down to `size`; self itself for None."""
    return self if size is None else sum_to(xp, self, size)


@table.op("aten::hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor")
def hash_tensor(xp, self, dim, keepdim, mode):
    """Exclusive or over dimensions of the elements' 64 bits (floats as float64); uint64."""
    if mode != 0:
        raise RunError(f"Unknown hash_tensor mode: {mode}")
    only("xor_sum_cpu", "biuf", self)
    need_elements("hash_tensor", self, wrap_dims(dim, self.ndim) if dim else (), bool(dim))
    wide = self.astype(xp.float64 if self.dtype.kind == "f" else xp.int64)
    return xp.bitwise_xor.reduce(wide.view(xp.uint64), axis=wrap_dims(dim, self.ndim), keepdims=keepdim)


@table.op("aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, "
          "bool unsafe=False, Scalar? initial=None) -> Tensor")
def segment_reduce(xp, data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    """Runs of `data` along `axis`, given by lengths or offsets, reduced by sum, mean, prod, max or min; empty runs give `initial`."""
    axis = wrap_dim(axis, data.ndim)
    if indices is not None:
        raise RunError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RunError("segment_reduce(): Either lengths or offsets must be defined.")
    if lengths is not None:
        bounds = xp.concatenate([xp.zeros((*lengths.shape[:-1], 1), xp.int64), xp.cumsum(lengths, -1)], -1)
        if not unsafe and ((lengths < 0).any() or (bounds[..., -1] != data.shape[axis]).any()):
            raise RunError("segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.")
    else:
        bounds = offsets
    start = {"sum": 0, "mean": 0, "prod": 1, "max": -math.inf, "min": math.inf}[reduce] if initial is None else initial
    result = xp.empty((*bounds.shape[:-1], bounds.shape[-1] - 1, *data.shape[axis + 1:]), data.dtype)
    for row in xp.ndindex(*bounds.shape[:-1]):
        for place in range(bounds.shape[-1] - 1):
            begin, end = int(bounds[row + (place,)]), int(bounds[row + (place + 1,)])
            result[row + (place,)] = _segment(xp, data[row + (slice(begin, end),)], reduce, start, initial)
    return result


def _segment(xp, run, reduce, start, initial):
    if reduce in ("sum", "mean"):
        total = start + xp.sum(run, axis=0)
        if reduce == "sum":
            return total
        return total / len(run) if len(run) else math.nan if initial is None else total
    if reduce == "prod":
        return start * xp.prod(run, axis=0)
    if not len(run):
        return start
    bound = run.dtype.type(start)
    return xp.maximum(run.max(0), bound) if reduce == "max" else xp.minimum(run.min(0), bound)


# ---- dtypes that torch serves

table.takes("hf", "segment_reduce")

# whatever the memory order of the operand, as in torch
table.laid_out("C", "sum.dim_IntList mean.dim nansum nanmean prod.dim_int all.dim all.dims any.dim any.dims count_nonzero amax amin "
                    "logsumexp special_logsumexp")
table.laid_out("CC", "max.dim min.dim aminmax _aminmax.dim")
