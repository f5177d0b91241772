"""Batching rules of gather and scatter."""
from irtool.ops.batching.indexing import gather, index_add
from irtool.ops.kernels.scatter import table

table.batch("scatter scatter_add scatter_reduce")(gather)
table.batch("index_reduce")(index_add)
