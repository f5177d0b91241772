"""Channels traded for pixels, and channels shuffled."""
from irtool.ir.errors import RunError
from irtool.ops.op import OpTable

table = OpTable("vision")


@table.op("aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor")
def pixel_shuffle(xp, self, upscale_factor):
    """(..., c * r * r, h, w) as (..., c, h * r, w * r)."""
    r = upscale_factor
    if self.ndim < 3:
        raise RunError(f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {self.ndim} dimension(s)")
    if r <= 0:
        raise RunError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, channels, height, width = self.shape
    if channels % (r * r):
        raise RunError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
                       f"input.size(-3)={channels} is not divisible by {r * r}")
    count = len(lead)
    parts = self.reshape(*lead, channels // (r * r), r, r, height, width)
    order = (*range(count), count, count + 3, count + 1, count + 4, count + 2)
    return parts.transpose(order).reshape(*lead, channels // (r * r), height * r, width * r)


@table.op("aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor")
def pixel_unshuffle(xp, self, downscale_factor):
    """(..., c, h * r, w * r) as (..., c * r * r, h, w)."""
    r = downscale_factor
    if self.ndim < 3:
        raise RunError(f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {self.ndim} dimension(s)")
    if r <= 0:
        raise RunError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, channels, height, width = self.shape
    for name, extent, place in (("height", height, -2), ("width", width, -1)):
        if extent % r:
            raise RunError(f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({place})={extent} is not "
                           f"divisible by {r}")
    if not self.size:
        return self.copy()      # of the same sizes, in torch too
    count = len(lead)
    parts = self.reshape(*lead, channels, height // r, r, width // r, r)
    order = (*range(count), count, count + 2, count + 4, count + 1, count + 3)
    return parts.transpose(order).reshape(*lead, channels * r * r, height // r, width // r)


def _channel_shuffle(xp, self, groups):
    if self.ndim < 3:
        raise RunError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self.shape)}")
    if groups <= 0:
        raise RunError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    channels = self.shape[1]
    if channels % groups:
        raise RunError(f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups.")
    parts = self.reshape(self.shape[0], groups, channels // groups, -1) if self.size else self
    return parts.swapaxes(1, 2).reshape(self.shape) if self.size else self.copy()


table.define(("aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor", "aten::native_channel_shuffle(Tensor self, SymInt groups) -> "
              "Tensor"), _channel_shuffle, doc="Channels of all groups interleaved.")


table.laid_out("M", "pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle")
