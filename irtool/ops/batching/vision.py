"""Batching rules of shuffled pixels and channels."""
from irtool.ops.batching.batch_dim import leading, with_batch
from irtool.ops.kernels.vision import table

table.batch("pixel_shuffle pixel_unshuffle")(leading)
table.batch("channel_shuffle native_channel_shuffle")(with_batch)
