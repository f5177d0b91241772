"""Batching rules of elementwise operators of two operands that no fact declares pointwise."""
from typing import Any

from irtool.ops.array_library import np
from irtool.ops.arrays import code_of, dtype_of
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import element_by_element
from irtool.ops.kernels.pointwise_binary import table
from irtool.ops.promotion import result_type

table.batch("complex polar")(element_by_element)


@table.batch("lerp.Tensor")
def lerp(batch: Batch, self: Any, end: Any, weight: Any) -> Any:
    """Element by element; a weight without dimensions may have another dtype, and is one with dimensions on the layer below."""
    if weight.ndim == 0 and weight.dtype != self.dtype:
        dtype = code_of(result_type([np.empty((0,) * each.ndim, dtype_of(each.dtype)) for each in (self, end, weight)]))
        self, end, weight = (batch.again("aten::to", each, dtype) for each in (self, end, weight))
    return element_by_element(batch, self, end, weight)
