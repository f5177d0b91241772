"""Gradients of shuffles of pixels and channels: the shuffle back."""
from __future__ import annotations

from irtool.ops.kernels.vision import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("pixel_shuffle")
def pixel_shuffle_gradient(self: Tensor, upscale_factor: int):
    def backward(grad: Tensor):
        return torch.pixel_unshuffle(grad, upscale_factor), None

    return torch.pixel_shuffle(self, upscale_factor), backward


@table.gradient("pixel_unshuffle")
def pixel_unshuffle_gradient(self: Tensor, downscale_factor: int):
    def backward(grad: Tensor):
        return torch.pixel_shuffle(grad, downscale_factor), None

    return torch.pixel_unshuffle(self, downscale_factor), backward


@table.gradient("channel_shuffle native_channel_shuffle")
def channel_shuffle_gradient(self: Tensor, groups: int):
    channels = self.size(1)

    def backward(grad: Tensor):
        return torch.channel_shuffle(grad, channels // groups), None

    return torch.channel_shuffle(self, groups), backward
