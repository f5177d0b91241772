"""Gradients of shuffles of pixels and channels: the shuffle back."""
from irtool.ops.kernels.vision import table
from irtool.ops.tensor import torch

table.derivative("pixel_shuffle", lambda grad, upscale_factor: torch.pixel_unshuffle(grad, upscale_factor))
table.derivative("pixel_unshuffle", lambda grad, downscale_factor: torch.pixel_shuffle(grad, downscale_factor))
table.derivative("channel_shuffle native_channel_shuffle",
                 lambda grad, groups, self_size: torch.channel_shuffle(grad, self_size[1] // groups))
