"""Batching rules of elementwise operators of two operands that no fact declares pointwise."""
from irtool.ops.batching.batch_dim import element_by_element
from irtool.ops.kernels.pointwise_binary import table

table.batch("complex polar")(element_by_element)
