"""Batching rules of sorting."""
from __future__ import annotations

import math
from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import DOUBLE, along
from irtool.ops.batching.reduction import extreme_of_all
from irtool.ops.kernels.sort import table


@table.batch("msort")
def msort(batch: Batch, self: Any) -> Any:
    """A sort along dimension 0."""
    return batch.again("aten::sort", self, 0, False)[0]


table.batch("sort sort.stable argsort argsort.stable topk kthvalue median.dim nanmedian.dim mode")(along)


@table.batch("median nanmedian")
def median_of_all(batch: Batch, self: Any) -> Any:
    """(B, n), over dimension 1, without the index; of no elements NaN."""
    if math.prod(self.shape):
        return extreme_of_all(batch, self)
    return batch.again("aten::to", batch.again("aten::new_full", self, [], math.nan, dtype=DOUBLE), self.dtype)
