"""Sliding windows over the last dimensions, shared by convolution and pooling: sizes, padding, views."""
import math

from irtool.ir.errors import RunError


def per_dim(values, rank, name="stride", default=None):
    """A number per spatial dimension: one value is used for all; without values, `default`."""
    values = [values] if isinstance(values, int) else list(values)
    if not values:
        return list(default)
    if len(values) == 1:
        return values * rank
    if len(values) != rank:
        raise RunError(f"expected {name} to be a single integer value or a list of {rank} values to match the convolution dimensions, but "
                       f"got {name}={values}")
    return values


def padded_zeros(xp, x, before, after, value=0):
    """`x` with borders of `value` around its last dimensions; itself if there are none."""
    if not any(before) and not any(after):
        return x
    rank = len(before)
    shape = x.shape[:-rank] + tuple(n + b + a for n, b, a in zip(x.shape[-rank:], before, after, strict=True))
    result = xp.full(shape, value, x.dtype) if value else xp.zeros(shape, x.dtype)
    target = tuple(slice(max(b, 0), n - max(a, 0)) for n, b, a in zip(shape[-rank:], before, after, strict=True))
    source = tuple(slice(max(-b, 0), n - max(-a, 0)) for n, b, a in zip(x.shape[-rank:], before, after, strict=True))
    result[(..., *target)] = x[(..., *source)]
    return result


def windows(xp, x, kernel, stride, dilation, counts):
    """View (lead..., *counts, *kernel) of the windows over the last len(kernel) dimensions of `x`."""
    rank = len(kernel)
    lead_shape, lead_strides, strides = x.shape[:-rank], x.strides[:-rank], x.strides[-rank:]
    return xp.lib.stride_tricks.as_strided(
        x, (*lead_shape, *counts, *kernel),
        (*lead_strides, *(s * t for s, t in zip(strides, stride, strict=True)), *(s * d for s, d in zip(strides, dilation, strict=True))),
        writeable=False)


def conv_extents(extents, kernel, stride, dilation, before, after):
    """Number of window positions per dimension."""
    return [(n + b + a - d * (k - 1) - 1) // s + 1
            for n, k, s, d, b, a in zip(extents, kernel, stride, dilation, before, after, strict=True)]


def pool_extents(extents, kernel, stride, dilation, padding, ceil_mode):
    """Number of positions of a pooling's windows: with `ceil_mode` the last may hang over, but begins in the tensor or its left border."""
    counts = []
    for n, k, s, d, p in zip(extents, kernel, stride, dilation, padding, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        counts.append(count)
    return counts


def positions(kernel):
    """All places in a window, in row-major order."""
    if not kernel:
        yield ()
        return
    for first in range(kernel[0]):
        for rest in positions(kernel[1:]):
            yield (first, *rest)


def place_slices(place, stride, dilation, counts):
    """The elements at one position of every window: a slice per dimension."""
    return tuple(slice(k * d, k * d + (n - 1) * s + 1, s) for k, s, d, n in zip(place, stride, dilation, counts, strict=True))


def spread(xp, columns, kernel, stride, dilation, extents):
    """The opposite of `windows`: columns (lead..., *kernel, *counts) added up in a new (lead..., *extents) array."""
    rank = len(kernel)
    counts = columns.shape[-rank:]
    result = xp.zeros((*columns.shape[:-2 * rank], *extents), columns.dtype)
    if not math.prod(counts):
        return result
    for place in positions(kernel):
        result[(..., *place_slices(place, stride, dilation, counts))] += columns[(..., *place, *(slice(None),) * rank)]
    return result


PIECE = 1 << 17
"""The number of elements of images that are processed at once, if that needs extra memory."""


def pieces(shape, rank):
    """Indices that take (lead..., *extents) apart, each a few images of at most `PIECE` elements in all, or one; a single one, which is
    empty, where that is all."""
    size = math.prod(shape)
    if size <= PIECE or len(shape) == rank:
        return [()]
    inner = size // shape[0]
    if inner > PIECE and len(shape) > rank + 1:
        return [(slice(at, at + 1), *rest) for at in range(shape[0]) for rest in pieces(shape[1:], rank)]
    few = max(PIECE // inner, 1)
    return [(slice(at, at + few),) for at in range(0, shape[0], few)]


def add_places(result, columns, kernel, stride, dilation, padding):
    """Add columns (lead..., *kernel, *counts) up in (lead..., *extents), whose first place is `padding` behind that of the windows; what
    falls beside it is left out."""
    rank = len(kernel)
    extents, counts = result.shape[-rank:], columns.shape[-rank:]
    for place in positions(kernel):
        target, source = [], []
        for k, s, d, p, n, m in zip(place, stride, dilation, padding, extents, counts, strict=True):
            shift = k * d - p
            low, high = max(-(shift // s), 0), min((n - 1 - shift) // s + 1, m)
            target.append(slice(low * s + shift, max((high - 1) * s + shift + 1, 0), s))
            source.append(slice(low, max(high, low)))
        if all(each.start < each.stop for each in source):
            result[(..., *target)] += columns[(..., *place, *source)]


def cropped(x, before, after):
    """`x` without borders around its last dimensions."""
    if not any(before) and not any(after):
        return x
    edges = zip(x.shape[-len(before):], before, after, strict=True)
    return x[(..., *(slice(b, n - a) for n, b, a in edges))]
