"""Batching rules of elementwise operators of two operands that no fact declares pointwise."""
from typing import Any

from irtool.ops.arrays import dtype_of
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import element_by_element, promoted_dtype
from irtool.ops.kernels.pointwise_binary import table

table.batch("complex polar")(element_by_element)


@table.batch("lerp.Tensor")
def lerp(batch: Batch, self: Any, end: Any, weight: Any) -> Any:
    """Element by element; a weight without dimensions may have another dtype, and is one with dimensions on the layer below."""
    if weight.ndim == 0 and weight.dtype != self.dtype:
        dtype = promoted_dtype((self, end, weight))
        self, end, weight = (batch.again("aten::to", each, dtype) for each in (self, end, weight))
    return element_by_element(batch, self, end, weight)


@table.batch("ldexp.Tensor")
def ldexp(batch: Batch, self: Any, other: Any) -> Any:
    """Element by element; whole exponents of floating-point numbers have a dtype of their own."""
    if self.dtype != other.dtype and not (dtype_of(self.dtype).kind == "f" and dtype_of(other.dtype).kind in "biu"):
        dtype = promoted_dtype((self, other))
        self, other = (batch.again("aten::to", each, dtype) for each in (self, other))
    return element_by_element(batch, self, other)
