"""Batching rules of scans, differences and integrals along a dimension."""
from __future__ import annotations

from typing import Any

from irtool.ir.errors import UnsupportedError
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import along, shifted
from irtool.ops.kernels.scan import table


@table.batch("diff")
def diff(batch: Batch, self: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    """self, prepend and append (B, ...), dim + 1."""
    return batch.box(batch.same(batch.whole(self), n, shifted(dim, self), batch.whole(prepend), batch.whole(append)))


@table.batch("trapezoid.x trapz.x cumulative_trapezoid.x")
def trapezoid(batch: Batch, y: Any, x: Any, dim: int) -> Any:
    """y (B, ...), dim + 1; a batched x gets y's rank first."""
    if x.ndim > y.ndim:     # y extends along the last dimensions of x, and `dim` counts from the first
        raise UnsupportedError(f"{batch.kind} under vmap is not supported for positions of more dimensions than the values", code="E0504")
    if batch.has(x) and x.ndim < y.ndim:
        shape = [1] * (y.ndim - x.ndim) + [*x.shape]
        if x.ndim == 1:
            shape = [1] * y.ndim
            shape[dim % y.ndim] = -1
        x = batch.again("aten::reshape", x, shape)
    return batch.box(batch.same(batch.whole(y), batch.whole(x) if batch.has(x) else x, shifted(dim, y)))


@table.batch("gradient.scalarint gradient.scalarrayint")
def numerical_gradient(batch: Batch, self: Any, spacing: Any, dim: Any, edge_order: int) -> Any:
    """(B, ...), dim + 1; without dim along all dimensions but the first."""
    dims = list(range(1, 1 + self.ndim)) if dim is None else [shifted(dim, self)]
    if spacing is None:
        return batch.box(batch.do("aten::gradient", batch.front(self), dim=dims, edge_order=edge_order))
    return batch.box(batch.do("aten::gradient", batch.front(self), spacing=spacing, dim=dims, edge_order=edge_order))


@table.batch("gradient.tensorarrayint")
def gradient_between(batch: Batch, self: Any, spacing: Any, dim: Any, edge_order: int) -> Any:
    """The same with coordinates, along dim or all dimensions."""
    dims = list(range(self.ndim)) if dim is None else [dim]
    return gradient_of_dims(batch, self, spacing, dims, edge_order)


@table.batch("gradient.tensorarray")
def gradient_of_dims(batch: Batch, self: Any, spacing: Any, dim: Any, edge_order: int) -> Any:
    """(B, ...), dims + 1, with coordinates. Raises UnsupportedError if these are batched."""
    if batch.has(spacing):
        raise UnsupportedError("aten::gradient under vmap is not supported where spacing is batched", code="E0504")
    return batch.box(batch.do("aten::gradient", batch.front(self), spacing=spacing, dim=shifted(dim, self), edge_order=edge_order))


@table.batch("cumsum cumprod")
def running(batch: Batch, self: Any, dim: int, dtype: int | None) -> Any:
    """(B, ...), dim + 1. Of a number there is nothing to add, so that it may be a bool."""
    if self.ndim:
        return along(batch, self, dim, dtype)
    shifted(dim, self)      # must be 0 or -1
    return batch.again("aten::sum", self, dtype=dtype)


table.batch("cummax cummin logcumsumexp _logcumsumexp trapezoid.dx trapz.dx cumulative_trapezoid.dx gradient.scalararray "
            "gradient.array gradient.scalarrayarray")(along)
