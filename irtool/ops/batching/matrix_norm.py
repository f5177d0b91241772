"""Batching rules of norms of matrices."""
from __future__ import annotations

from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import matrices, shifted
from irtool.ops.kernels.matrix_norm import table


@table.batch("linalg_matrix_norm linalg_matrix_norm.str_ord")
def matrix_norm(batch: Batch, self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """(B, ...), both dims + 1."""
    return batch.box(batch.same(batch.front(self), ord, shifted(list(dim), self), keepdim, dtype))


@table.batch("linalg_norm linalg_norm.ord_str")
def norm(batch: Batch, self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """(B, ...), dims + 1. Without dim and ord: of the flattened self."""
    if dim is None and ord is None:
        flat = batch.again("aten::linalg_vector_norm", batch.again("aten::reshape", self, [-1]), 2, [0], False, dtype=dtype)
        return batch.again("aten::reshape", flat, [1] * self.ndim) if keepdim else flat
    dims = list(range(self.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return batch.box(batch.do("aten::linalg_norm", batch.front(self), ord, shifted(dims, self), keepdim, dtype=dtype))


table.batch("linalg_cond linalg_cond.p_str")(matrices)
