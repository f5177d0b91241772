"""Batching rules of spreads, norms and covariances."""
from __future__ import annotations

from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import along, flat
from irtool.ops.kernels.statistics import table


@table.batch("std var std_mean var_mean")
def spread_of_all(batch: Batch, self: Any, unbiased: bool) -> Any:
    """(B, n), over dimension 1."""
    return batch.box(batch.do(batch.kind, flat(batch, self), [1], unbiased, False))


@table.batch("norm.Scalar native_norm")
def norm_of_all(batch: Batch, self: Any, p: Any) -> Any:
    """(B, n), over dimension 1."""
    return batch.box(batch.do("aten::norm", flat(batch, self), p, [1], False))


@table.batch("norm.ScalarOpt_dtype")
def norm_in_dtype(batch: Batch, self: Any, p: Any, dtype: int) -> Any:
    """(B, n), over dimension 1, in dtype."""
    return batch.box(batch.do("aten::norm", flat(batch, self), p, [1], False, dtype=dtype))


@table.batch("nuclear_norm")
def nuclear_norm(batch: Batch, self: Any, keepdim: bool) -> Any:
    """(..., n, m) -> (B, ..., n, m): the sum of the singular values."""
    return batch.box(batch.do("aten::nuclear_norm", batch.front(self), [-2, -1], keepdim))


@table.batch("cov")
def cov(batch: Batch, self: Any, correction: int, fweights: Any, aweights: Any) -> Any:
    """rows (n, observations) minus their weighted mean, times their conjugate transpose, over the degrees of freedom -> (n, n)."""
    rows = batch.again("aten::reshape", self, [1, -1]) if self.ndim < 2 else self
    rows = batch.again("aten::mul", rows, 1.0) if rows.dtype < 5 else rows      # whole numbers
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
    covariance = batch.again("aten::div", product, count)
    return batch.again("aten::reshape", covariance, []) if rows.shape[0] == 1 else covariance


@table.batch("corrcoef")
def corrcoef(batch: Batch, self: Any) -> Any:
    """cov over the standard deviations of both rows; real ones clipped to [-1, 1]."""
    covariance = batch.again("aten::cov", self)
    if not covariance.ndim:
        return batch.again("aten::div", covariance, covariance)
    spread = batch.again("aten::sqrt", batch.again("aten::real", batch.again("aten::diagonal", covariance, 0, 0, 1)))
    correlation = batch.again("aten::div", batch.again("aten::div", covariance, batch.again("aten::unsqueeze", spread, 1)), spread)
    return correlation if correlation.dtype in (9, 10) else batch.again("aten::clip", correlation, -1, 1)


table.batch("std.dim var.dim std.correction var.correction std_mean.dim var_mean.dim std_mean.correction var_mean.correction "
            "linalg_vector_norm norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype native_norm.ScalarOpt_dim_dtype frobenius_norm "
            "nuclear_norm.dim")(along)
