"""Batching rules of elementwise operators that no fact declares pointwise."""
from irtool.ops.batching.batch_dim import untouched
from irtool.ops.kernels.pointwise import table

table.batch("real imag conj _conj resolve_conj resolve_neg positive frexp")(untouched)
