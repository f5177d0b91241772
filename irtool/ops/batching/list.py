"""Operators of lists that vmap refuses."""
from irtool.ops.kernels.list import table

table.not_batched("it looks at the elements of a list", "sort.Tensor remove.Tensor index.list_Tensor count.Tensor sorted.Tensor")
