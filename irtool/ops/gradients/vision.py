"""Gradients of shuffles of pixels and channels: the shuffle back."""
from __future__ import annotations

from irtool.ops.kernels.vision import table
from irtool.ops.tensor import Tensor, torch

table.derivative("pixel_shuffle", lambda grad, upscale_factor: torch.pixel_unshuffle(grad, upscale_factor))
table.derivative("pixel_unshuffle", lambda grad, downscale_factor: torch.pixel_shuffle(grad, downscale_factor))


@table.gradient("channel_shuffle native_channel_shuffle")
def channel_shuffle_gradient(self: Tensor, groups: int):
    channels = self.size(1)

    def backward(grad: Tensor):
        return torch.channel_shuffle(grad, channels // groups), None

    return torch.channel_shuffle(self, groups), backward
