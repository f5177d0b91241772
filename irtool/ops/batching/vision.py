"""Batching rules of shuffled pixels and channels."""
from irtool.ops.batching.batch_dim import leading, of_ranks, with_batch
from irtool.ops.kernels.vision import table

table.batch("pixel_shuffle pixel_unshuffle")(of_ranks(3)(leading))
table.batch("channel_shuffle native_channel_shuffle")(with_batch)
