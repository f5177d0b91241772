"""Distances between vectors: row by row, between all pairs, within a set; cosines; rows scaled to a largest norm."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import astype, is_contiguous, real_of, title, wrap_dim
from irtool.ops.checks import only, refuse
from irtool.ops.kernels.pointwise_binary import no_bool_difference
from irtool.ops.kernels.statistics import vector_norm
from irtool.ops.op import OpTable
from irtool.ops.promotion import float_of, result_type

table = OpTable("distance")


def pairwise(xp, x1, x2, p, eps, keepdim):
    """Norm of x1 - x2 + eps along the last dimension."""
    no_bool_difference([x1, x2])
    dtype = result_type([x1, x2])
    difference = astype(x1, dtype) - astype(x2, dtype)
    wide = difference.astype(float_of(dtype), copy=False)
    return vector_norm(xp, wide + real_of(wide.dtype).type(eps), p, [-1], keepdim)


@table.op("aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) -> Tensor")
def pairwise_distance(xp, x1, x2, p, eps, keepdim):
    """Norm of x1 - x2 + eps along the last dimension."""
    return pairwise(xp, x1, x2, p, eps, keepdim)


@table.op("aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor")
def dist(xp, self, other, p):
    """Norm of the difference, 0-dim."""
    no_bool_difference([self, other])
    dtype = result_type([self, other])
    difference = astype(self, dtype) - astype(other, dtype)
    if not difference.size and abs(p) == math.inf:
        return xp.zeros((), real_of(difference.dtype))
    return vector_norm(xp, difference, p, None, False)


@table.op("aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor")
def cosine_similarity(xp, x1, x2, dim, eps):
    """Cosine of the angle between vectors along a dimension; norms count as at least eps."""
    if not eps >= 0:        # nan, too
        raise RunError(f"eps must be non-negative, got: {eps:g}")
    dtype = result_type([x1, x2])
    if dtype.kind not in "fc":
        raise RunError("expected common dtype to be floating point, yet common dtype is " + title(dtype))
    shape = xp.broadcast_shapes(x1.shape, x2.shape)
    a, b = (xp.broadcast_to(x if x.dtype.kind in "fc" else astype(x, dtype), shape) for x in (x1, x2))      # norms are rounded to its dtype
    axis = wrap_dim(dim, len(shape))
    dtype = result_type([a, b])     # now that both have all dimensions: float64 of a single number counts

    def unit(x):
        size = vector_norm(xp, x, 2, [axis], True) if shape else xp.abs(x)
        return astype(x / xp.maximum(size, size.dtype.type(eps)), dtype)
    product = unit(a) * unit(b)
    return xp.asarray(product.sum(axis, dtype=dtype) if shape else product)


# ---- all pairs

def _norm_of(xp, difference, p):
    """Norm along the last dimension for a p of at least 0."""
    sizes = xp.abs(difference)
    if p > xp.finfo(sizes.dtype).max:       # in torch's kernels the order has the dtype of the distance
        p = math.inf
    if p == 0:      # nan stays nan, as in torch's kernels
        return xp.minimum(xp.ceil(sizes), 1).sum(-1, dtype=sizes.dtype)
    if p == 1:
        return sizes.sum(-1, dtype=sizes.dtype)
    if p == 2:
        return xp.sqrt((sizes * sizes).sum(-1, dtype=sizes.dtype))
    if p == math.inf:
        return sizes.max(-1) if sizes.shape[-1] else xp.zeros(sizes.shape[:-1], sizes.dtype)
    return (sizes ** p).sum(-1, dtype=sizes.dtype) ** sizes.dtype.type(1 / p)


def between(xp, x1, x2, p, compute_mode):
    """(..., n, m) distances between the rows of (..., n, width) and (..., m, width)."""
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RunError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
        only("cdist", "f", x)
    if x1.shape[-1] != x2.shape[-1]:
        raise RunError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if not p >= 0:      # nan, too
        raise RunError("cdist only supports non-negative p values")
    if compute_mode is not None and not 0 <= compute_mode <= 2:
        raise RunError(f"possible modes: 0, 1, 2, but was: {compute_mode}")
    dtype = result_type([x1, x2])
    x1, x2 = astype(x1, dtype), astype(x2, dtype)
    lead = xp.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    rows, columns = x1.shape[-2], x2.shape[-2]
    by_product = p == 2 and (compute_mode == 1 or compute_mode in (None, 0) and (rows > 25 or columns > 25))
    if by_product and x1.shape[-1]:
        return _euclidean(xp, x1, x2)
    result = xp.empty((*lead, rows, columns), dtype)
    p = math.inf if p > xp.finfo(dtype).max else p
    step = max((1 << 24) // max(columns * x1.shape[-1] * math.prod(lead), 1), 1)
    for start in range(0, rows, step):
        part = x1[..., start:start + step, None, :] - x2[..., None, :, :]
        if p == math.inf:       # torch takes the largest number here, and nan is none
            part = xp.where(xp.isnan(part), part.dtype.type(0), part)
        result[..., start:start + step, :] = _norm_of(xp, part, p)
    return result


def _euclidean(xp, x1, x2):
    """sqrt(|a|^2 - 2 a.b + |b|^2), which torch computes for many rows."""
    first = (x1 * x1).sum(-1, keepdims=True, dtype=x1.dtype)
    second = (x2 * x2).sum(-1, keepdims=True, dtype=x2.dtype)
    ones = xp.ones_like
    left = xp.concatenate([-2 * x1, first, ones(first)], -1)
    right = xp.concatenate([x2, ones(second), second], -1)
    return xp.sqrt(xp.maximum(xp.matmul(left, right.swapaxes(-1, -2)), x1.dtype.type(0)))


def _cdist(xp, x1, x2, p, compute_mode):
    return between(xp, x1, x2, p, compute_mode)


table.define(("aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor",
              "aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor"), _cdist,
             doc="Distances of order p between all rows of two stacks.")


@table.op("aten::_euclidean_dist(Tensor x1, Tensor x2) -> Tensor")
def euclidean_dist(xp, x1, x2):
    """Distances of order 2 by one matrix product."""
    return _euclidean(xp, x1, x2)


def _pdist(xp, self, p):
    if self.ndim != 2:
        raise RunError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    only("pdist", "f", self)
    if not p >= 0:      # nan, too
        raise RunError("pdist only supports non-negative p values")
    if self.shape[0] > 1 and self.shape[1] and self.dtype == xp.float16:
        refuse("pdist", self)
    rows, columns = xp.triu_indices(self.shape[0], 1)
    return _norm_of(xp, self[rows] - self[columns], p)


table.define("aten::pdist(Tensor self, float p=2.) -> Tensor", _pdist, doc="Distances of order p between each row and all later ones.")


@table.op("aten::_pdist_forward(Tensor self, float p=2.) -> Tensor")
def pdist_forward(xp, self, p):
    """pdist of rows without gaps."""
    if not is_contiguous(self):
        raise RunError("_pdist_forward requires contiguous input")
    return _pdist(xp, self, p)


@table.op("aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor")
def renorm(xp, self, p, dim, maxnorm):
    """Slices along a dimension scaled down to a norm of at most maxnorm."""
    if not p > 0:       # nan, too
        raise RunError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:        # nan, too
        raise RunError("renorm: expected maxnorm to be >= 0 but got " + str(maxnorm))
    if self.ndim < 2:
        raise RunError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    axis = wrap_dim(dim, self.ndim)
    others = [place for place in range(self.ndim) if place != axis]
    norms = vector_norm(xp, self, p, others, True)
    factor = xp.where(norms > maxnorm, maxnorm / (norms + norms.dtype.type(1e-7)), norms.dtype.type(1))
    return (self * factor).astype(self.dtype, copy=False)


# ---- dtypes that torch serves

table.takes("hf+", "cosine_similarity")
table.takes("f=", "cdist _cdist_forward")
table.laid_out("C", "renorm pairwise_distance cosine_similarity")
