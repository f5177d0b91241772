"""Samples of shuffling."""
from irtool.ops.kernels.vision import table
from irtool.ops.samples.draw import call, real

table.sample("pixel_shuffle", call(real(1, 4, 2, 3), 2))
table.sample("pixel_unshuffle", call(real(1, 1, 4, 6), 2))
table.sample("channel_shuffle native_channel_shuffle", call(real(1, 4, 2), 2))
