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


class Windows:
    """The windows of images (n, channels, *extents) with zeros around, and their columns. before: zeros in front of the extents; counts:
    numbers of windows.

    The elements at one place of all windows are a part of a phase: of the elements whose distances are multiples of the stride.
    """

    def __init__(self, kernel, stride, before, after, dilation, counts):
        self.kernel, self.stride, self.before, self.after, self.dilation = kernel, stride, before, after, dilation
        self.counts = counts
        self.reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        self.wide = [n + r // s for n, r, s in zip(counts, self.reach, stride, strict=True)]     # extents of a phase
        self.phases, self.places = {}, []
        for place in positions(kernel):
            at = [k * d for k, d in zip(place, dilation, strict=True)]
            phase = self.phases.setdefault(tuple([a % s for a, s in zip(at, stride, strict=True)]), len(self.phases))
            self.places.append((phase, [a // s for a, s in zip(at, stride, strict=True)]))

    def split(self, xp, x, first, last):
        """The phases (phases, n, channels, *extents) of x, for rows `first` to `last` of windows."""
        room = [last - first + self.wide[0] - self.counts[0] + 1, *self.wide[1:]]
        result = xp.zeros((len(self.phases), *x.shape[:2], *room), x.dtype)       # with a row more: a place begins in the middle of a row
        for offsets, number in self.phases.items():
            source, target = [], []
            starts = [first * self.stride[0], *[0] * (len(room) - 1)]
            for offset, start, s, b, n, w in zip(offsets, starts, self.stride, self.before, x.shape[2:], room, strict=True):
                begin = start + offset - b      # of the phase, in x
                low = max(-(begin // s), 0)
                high = max(min((n - 1 - begin) // s + 1, w), low)
                source.append(slice(begin + low * s, begin + (high - 1) * s + 1, s) if high > low else slice(0))
                target.append(slice(low, high))
            result[(number, slice(None), slice(None), *target)] = x[(..., *source)]
        return result

    def columns(self, xp, x, first, last, is_cropped):
        """(n, channels, places, positions) of rows `first` to `last`. Positions are of the windows or, unless cropped, of what the windows
        lie in, which is copied in longer pieces: those between rows of windows are for no use."""
        n, channels = x.shape[:2]
        if is_cropped:
            low = first * self.stride[0] - self.before[0]
            high = (last - 1) * self.stride[0] - self.before[0] + self.reach[0] + 1
            part = x[:, :, max(low, 0):max(high, 0)]
            above, below = [min(max(beside, 0), high - low) for beside in (-low, high - x.shape[2])]
            part = padded_zeros(xp, part, [above, *self.before[1:]], [below, *self.after[1:]])
            rank = len(self.kernel)
            view = windows(xp, part, self.kernel, self.stride, self.dilation, (last - first, *self.counts[1:]))
            view = view.transpose(0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
            return view.reshape(n, channels, len(self.places), -1)
        phases = self.split(xp, x, first, last)
        length = (last - first) * math.prod(self.wide[1:])
        result = xp.empty((n, channels, len(self.places), length), x.dtype)
        if len(self.phases) == 1:
            strides = phases.strides
            steps = [stride * d // s for stride, d, s in zip(strides[3:], self.dilation, self.stride, strict=True)]
            result.reshape(n, channels, *self.kernel, length)[...] = xp.lib.stride_tricks.as_strided(
                phases, (n, channels, *self.kernel, length), (*strides[1:3], *steps, strides[-1]), writeable=False)
            return result
        flat = phases.reshape(*phases.shape[:3], -1)
        for number, (phase, at) in enumerate(self.places):
            start = 0
            for a, w in zip(at, self.wide, strict=True):
                start = start * w + a
            result[:, :, number] = flat[phase, :, :, start:start + length]
        return result


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
