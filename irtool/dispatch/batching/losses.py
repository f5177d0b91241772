"""Losses: of elements, then their mean or sum of what shows; distances between rows."""
from __future__ import annotations

import math
from typing import Any

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import rule, wrapped_dim
from irtool.dispatch.batching.pointwise import pointwise
from irtool.ops.tensor import Tensor

NONE, MEAN, SUM = range(3)
"""torch's numbers for reductions."""


def reduced(batch: Batch, losses: Any, reduction: int) -> Any:
    """Their mean or sum, or they themselves."""
    if reduction == NONE:
        return losses
    return batch.again("aten::mean" if reduction == MEAN else "aten::sum", losses)


@rule("""mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss kl_div binary_cross_entropy binary_cross_entropy_with_logits
         poisson_nll_loss margin_ranking_loss hinge_embedding_loss""")
def elementwise_loss(batch: Batch, *args: Any) -> Any:
    """Without reduction the operator is pointwise."""
    place = batch.schema.positions["reduction"]
    given = [batch.box(batch.whole(each)) if isinstance(each, Tensor) else each for each in args]      # some want equal shapes
    return reduced(batch, pointwise(batch, *given[:place], NONE, *given[place + 1:]), args[place])


@rule("mse_loss_backward smooth_l1_loss_backward huber_loss_backward soft_margin_loss_backward binary_cross_entropy_backward")
def elementwise_loss_backward(batch: Batch, grad: Any, self: Any, *args: Any) -> Any:
    """The gradient of a mean is that of each element, divided by how many there are."""
    place = batch.schema.positions["reduction"]
    values = [grad, self, *args]
    reduction = values[place]
    if reduction == MEAN:
        count = math.prod(self.shape)
        values[0] = batch.again("aten::div", grad, float(max(count, 1)))
    if reduction != NONE:
        values[0] = batch.again("aten::expand", values[0], list(self.shape))
    values[place] = NONE
    return pointwise(batch, *values)


@rule("cosine_embedding_loss")
def cosine_embedding_loss(batch: Batch, x1: Any, x2: Any, target: Any, margin: float, reduction: int) -> Any:
    """By its parts: of alike rows how far they are, of others how near."""
    def along_rows(a: Any, b: Any) -> Any:
        return batch.again("aten::sum", batch.again("aten::mul", a, b), [-1])

    first, second = (batch.again("aten::add", along_rows(each, each), 1e-12) for each in (x1, x2))
    squares = batch.again("aten::mul", first, second)
    cosine = batch.again("aten::div", along_rows(x1, x2), batch.again("aten::sqrt", squares))
    zero = batch.again("aten::zeros_like", cosine)
    near = batch.again("aten::clamp_min", batch.again("aten::sub", cosine, margin), 0)
    alike = batch.again("aten::where", batch.again("aten::eq", target, 1), batch.again("aten::rsub", cosine, 1), zero)
    apart = batch.again("aten::where", batch.again("aten::eq", target, -1), near, zero)
    return reduced(batch, batch.again("aten::add", alike, apart), reduction)


@rule("triplet_margin_loss")
def row_loss(batch: Batch, *args: Any) -> Any:
    """Rows of what shows, one more dimension of them; then their mean or sum."""
    place = batch.schema.positions["reduction"]
    values = [batch.whole(each) if isinstance(each, Tensor) else each for each in args]
    values[place] = NONE
    return reduced(batch, batch.box(batch.same(*values)), args[place])


# ---- classes

def weights_of(batch: Batch, target: Any, weight: Any, ignore_index: int, like: Any) -> Any:
    """What each target counts: its class's weight, 1 without weights, 0 for the ignored one."""
    there = batch.again("aten::ne", target, ignore_index)
    if weight is None:
        return batch.again("aten::to", there, like.dtype)
    safe = batch.again("aten::where", there, target, batch.again("aten::zeros_like", target))
    return batch.again("aten::mul", batch.again("aten::take", weight, safe), batch.again("aten::to", there, weight.dtype))


@rule("nll_loss nll_loss2d nll_loss_nd nll_loss_forward nll_loss2d_forward")
def nll_loss(batch: Batch, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """What each target picks, times what it counts."""
    dim = 0 if self.ndim == 1 else 1
    there = batch.again("aten::ne", target, ignore_index)
    safe = batch.again("aten::where", there, target, batch.again("aten::zeros_like", target))
    picked = batch.again("aten::squeeze", batch.again("aten::gather", self, dim, batch.again("aten::unsqueeze", safe, dim)), dim)
    counts = weights_of(batch, target, weight, ignore_index, self)
    losses = batch.again("aten::neg", batch.again("aten::mul", picked, counts))
    total = batch.again("aten::sum", counts)
    if reduction == NONE:
        result = losses
    else:
        result = batch.again("aten::sum", losses)
        if reduction == MEAN:
            result = batch.again("aten::div", result, total)
    if "forward" not in batch.kind:
        return result
    return result, total if reduction != NONE or self.ndim == 1 else batch.again("aten::zeros_like", total)


@rule("nll_loss_backward nll_loss2d_backward")
def nll_loss_backward(batch: Batch, grad: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total: Any) -> Any:
    """Put where each target picks."""
    dim = 0 if self.ndim == 1 else 1
    there = batch.again("aten::ne", target, ignore_index)
    safe = batch.again("aten::where", there, target, batch.again("aten::zeros_like", target))
    counts = weights_of(batch, target, weight, ignore_index, self)
    if reduction == MEAN:
        grad = batch.again("aten::div", grad, total)
    put = batch.again("aten::neg", batch.again("aten::mul", counts, grad))
    return batch.again("aten::scatter", batch.again("aten::zeros_like", self), dim, batch.again("aten::unsqueeze", safe, dim),
                       batch.again("aten::unsqueeze", put, dim))


@rule("cross_entropy_loss")
def cross_entropy(batch: Batch, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, smoothing: float) -> Any:
    """A log softmax, and a loss of classes or of chances."""
    dim = 0 if self.ndim == 1 else 1
    logs = batch.again("aten::log_softmax", self, dim)
    shape = [-1, *[1] * (self.ndim - dim - 1)]
    scaled = logs if weight is None else batch.again("aten::mul", logs, batch.again("aten::reshape", weight, shape))
    if target.dtype in (5, 6, 7, 15):       # chances
        if smoothing:
            target = batch.again("aten::add", batch.again("aten::mul", target, 1 - smoothing), smoothing / self.shape[dim])
        losses = batch.again("aten::neg", batch.again("aten::sum", batch.again("aten::mul", scaled, target), [dim]))
        if reduction != MEAN:
            return reduced(batch, losses, reduction)
        count = 1
        for place, extent in enumerate(self.shape):
            count *= extent if place != dim else 1
        return batch.again("aten::div", batch.again("aten::sum", losses), float(max(count, 1)))
    found = batch.again("aten::nll_loss_nd", logs, target, weight, reduction, ignore_index)
    if not smoothing:
        return found
    counts = batch.again("aten::to", batch.again("aten::ne", target, ignore_index), self.dtype)
    smooth = batch.again("aten::mul", batch.again("aten::neg", batch.again("aten::sum", scaled, [dim])), counts)
    if reduction == MEAN:
        total = batch.again("aten::sum", weights_of(batch, target, weight, ignore_index, self))
        smooth = batch.again("aten::div", batch.again("aten::sum", smooth), total)
    else:
        smooth = reduced(batch, smooth, reduction)
    smooth = batch.again("aten::mul", smooth, smoothing / self.shape[dim])
    return batch.again("aten::add", batch.again("aten::mul", found, 1 - smoothing), smooth)


# ---- distances

@rule("pairwise_distance _euclidean_dist cdist _cdist_forward")
def distance(batch: Batch, x1: Any, x2: Any, *args: Any) -> Any:
    """Of rows, whatever stands in front."""
    if batch.kind == "aten::pairwise_distance":
        rank = max(x1.ndim, x2.ndim)
        x1, x2 = (batch.again("aten::reshape", each, [1] * (rank - each.ndim) + list(each.shape)) if each.ndim < rank else each
                  for each in (x1, x2))
    return batch.box(batch.same(batch.whole(x1), batch.whole(x2), *args))


@rule("dist")
def dist(batch: Batch, self: Any, other: Any, p: Any) -> Any:
    """The norm of a difference."""
    return batch.again("aten::norm", batch.again("aten::sub", self, other), p)


@rule("cosine_similarity")
def cosine_similarity(batch: Batch, x1: Any, x2: Any, dim: int, eps: float) -> Any:
    """Along a dimension of what they show together."""
    rank = max(x1.ndim, x2.ndim)
    place = wrapped_dim(dim, rank) - rank
    given = [batch.again("aten::reshape", each, [1] * (rank - each.ndim) + list(each.shape)) if each.ndim < rank else each
             for each in (x1, x2)]
    return batch.box(batch.same(*[batch.whole(each) for each in given], place, eps))


@rule("pdist _pdist_forward")
def pdist(batch: Batch, self: Any, p: float) -> Any:
    """The distances above the diagonal of a matrix of them."""
    import numpy as np

    n = self.shape[0]
    rows, columns = np.triu_indices(n, 1)
    first, second = (batch.again("aten::index_select", self, 0, Tensor(each)) for each in (rows, columns))
    return batch.again("aten::linalg_vector_norm", batch.again("aten::sub", first, second), p, [1])


# ---- covariances

@rule("cov")
def cov(batch: Batch, self: Any, correction: int, fweights: Any, aweights: Any) -> Any:
    """A product of what is centred, columns weighted."""
    rows = batch.again("aten::reshape", self, [1, -1]) if self.ndim < 2 else self
    weights = fweights if aweights is None else aweights if fweights is None else batch.again("aten::mul", fweights, aweights)
    if weights is None:
        centred = batch.again("aten::sub", rows, batch.again("aten::mean", rows, [1], True))
        scaled, count = centred, float(max(rows.shape[1] - correction, 0))
    else:
        total = batch.again("aten::sum", weights)
        mean = batch.again("aten::div", batch.again("aten::sum", batch.again("aten::mul", rows, weights), [1], True), total)
        centred = batch.again("aten::sub", rows, mean)
        scaled, lost = batch.again("aten::mul", centred, weights), correction
        if aweights is not None:
            squares = batch.again("aten::sum", batch.again("aten::mul", weights, aweights))
            lost = batch.again("aten::mul", batch.again("aten::div", squares, total), correction)
        count = batch.again("aten::clamp_min", batch.again("aten::sub", total, lost), 0)
    product = batch.again("aten::matmul", scaled, batch.again("aten::mH", centred))
    found = batch.again("aten::div", product, count)
    return batch.again("aten::reshape", found, []) if self.ndim < 2 else found


@rule("corrcoef")
def corrcoef(batch: Batch, self: Any) -> Any:
    """Covariances over spreads, within [-1, 1]."""
    covariance = batch.again("aten::cov", self)
    if not covariance.ndim:
        return batch.again("aten::div", covariance, covariance)
    spread = batch.again("aten::sqrt", batch.again("aten::real", batch.again("aten::diagonal", covariance, 0, 0, 1)))
    found = batch.again("aten::div", batch.again("aten::div", covariance, batch.again("aten::unsqueeze", spread, 1)), spread)
    return found if found.dtype in (9, 10) else batch.again("aten::clip", found, -1, 1)
