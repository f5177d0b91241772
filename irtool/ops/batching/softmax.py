"""Batching rules of softmax."""
from __future__ import annotations

from typing import Any

from irtool.ops.array_library import np
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import along
from irtool.ops.kernels.softmax import spread_mask, table


@table.batch("_masked_softmax")
def masked_softmax(batch: Batch, self: Any, mask: Any, dim: Any, mask_type: Any) -> Any:
    """softmax of self with -inf where mask is true; a mask of type 1 (B, L) is one of (B, 1, 1, L)."""
    spread_mask(np, np.zeros(tuple(mask.shape), bool), mask_type, tuple(self.shape))     # type: ignore[no-untyped-call]  # for other sizes
    if mask_type == 1 and mask.ndim == 2 and self.ndim == 4:
        mask = batch.again("aten::unsqueeze", batch.again("aten::unsqueeze", mask, 1), 1)
    masked = batch.again("aten::masked_fill", self, mask, float("-inf"))
    return batch.again("aten::softmax", masked, self.ndim - 1 if dim is None else dim)


@table.batch("_masked_softmax_backward")
def masked_softmax_backward(batch: Batch, grad_output: Any, output: Any, mask: Any, dim: Any) -> Any:
    """The gradient of softmax with 0 where mask is true."""
    shown = batch.again("aten::masked_fill", output, mask, 0)
    return batch.again("aten::_softmax_backward_data", grad_output, shown, output.ndim - 1 if dim is None else dim, output.dtype)


table.batch("softmax special_softmax _softmax log_softmax special_log_softmax _log_softmax _safe_softmax _softmax_backward_data "
            "_log_softmax_backward_data")(along)
