"""Batching rules of distances between rows."""
from __future__ import annotations

from typing import Any

from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import lined_up, promoted_dtype, shifted, wrapped_dim
from irtool.ops.kernels.distance import table
from irtool.ops.tensor import Tensor


@table.batch("renorm")
def renorm(batch: Batch, self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """(..., n, ...) -> (B * n, ...): the norms are of slices of one place in the batch."""
    x = batch.do("aten::movedim", batch.front(self), shifted(dim, self), 1)
    slices = batch.do("aten::flatten", x, 0, 1)
    scaled = batch.do("aten::reshape", batch.do("aten::renorm", slices, p, 0, maxnorm), list(x.shape))
    return batch.box(batch.do("aten::movedim", scaled, 1, shifted(dim, self)))


@table.batch("pairwise_distance _euclidean_dist cdist _cdist_forward")
def distance(batch: Batch, x1: Any, x2: Any, *args: Any) -> Any:
    """x1 (..., n, d), x2 (..., m, d) -> (B, ...). All dimensions in front are broadcast, so the operands get one rank."""
    rank = max(x1.ndim, x2.ndim, 1)
    is_of_numbers = max(x1.ndim, x2.ndim) == 0      # the kept dimension of a number is none
    if batch.kind == "aten::pairwise_distance":
        dtype = promoted_dtype((x1, x2))        # a number does not promote what has dimensions
        x1, x2 = (each if each.dtype == dtype else batch.again("aten::to", each, dtype) for each in (x1, x2))
    elif min(x1.ndim, x2.ndim) < 2:
        raise RunError(f"{batch.kind} only supports at least 2D tensors, got {x1.ndim}D and {x2.ndim}D")
    result = batch.same(*[lined_up(batch, each, rank - each.ndim) for each in (x1, x2)], *args)
    return batch.box(batch.do("aten::reshape", result, [batch.length]) if is_of_numbers else result)


@table.batch("dist")
def dist(batch: Batch, self: Any, other: Any, p: Any) -> Any:
    """The norm of self - other."""
    return batch.again("aten::norm", batch.again("aten::sub", self, other), p)


@table.batch("cosine_similarity")
def cosine_similarity(batch: Batch, x1: Any, x2: Any, dim: int, eps: float) -> Any:
    """dim counted from the end of the larger rank, so that it holds for both (B, ...)."""
    rank = max(x1.ndim, x2.ndim, 1)      # of two numbers: along a dimension of one element
    place = wrapped_dim(dim, rank) - rank
    return batch.box(batch.same(*[lined_up(batch, each, rank - each.ndim) for each in (x1, x2)], place, eps))


@table.batch("pdist _pdist_forward")
def pdist(batch: Batch, self: Any, p: float) -> Any:
    """(n, d) -> (n * (n - 1) / 2): norms of the differences of rows i < j."""
    n = self.shape[0]
    rows, columns = np.triu_indices(n, 1)
    first, second = (batch.again("aten::index_select", self, 0, Tensor(each)) for each in (rows, columns))
    return batch.again("aten::linalg_vector_norm", batch.again("aten::sub", first, second), p, [1])
