"""Facts about arrays that do not exist yet: dtype, shape, strides; and arrays made from such facts."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from irtool.ir.types import contiguous_strides
from irtool.ops.array_library import np


class Meta(NamedTuple):
    """Facts about an array that does not exist yet. Strides are in bytes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes."""
        count = self.dtype.itemsize
        for extent in self.shape:
            count *= extent
        return count

    @property
    def is_contiguous(self) -> bool:
        """Is the array row-major without gaps?"""
        return self.strides == contiguous_strides(self.shape, self.dtype.itemsize) or dummy(self).flags.c_contiguous


def meta_of(array: Any) -> Meta:
    """The facts about an array."""
    return Meta(array.dtype, array.shape, array.strides)


def fresh_meta(dtype: Any, shape: Sequence[int]) -> Meta:
    """The facts of a new array, which is row-major."""
    dtype = np.dtype(dtype)
    return Meta(dtype, tuple(shape), contiguous_strides(tuple(shape), dtype.itemsize))


_MEMORY = np.zeros(64, np.uint8)


def dummy(meta: Meta) -> Any:
    """An array with these facts whose elements must not be read: most of them have no memory."""
    base = _MEMORY[:meta.dtype.itemsize].view(meta.dtype)
    return np.lib.stride_tricks.as_strided(base, meta.shape, meta.strides)


def reshaped(meta: Meta, shape: tuple[int, ...]) -> Meta | None:
    """The facts of a view with another shape of as many elements (at least one); None if only a copy can have the shape.

    The strides are NumPy's (`_attempt_nocopy_reshape`): dimensions without gaps between them are merged and divided anew. NumPy cannot be
    asked, since it makes the copy before it complains.
    """
    if shape == meta.shape:
        return meta
    if meta.is_contiguous:
        return fresh_meta(meta.dtype, shape)
    old = [(extent, stride) for extent, stride in zip(meta.shape, meta.strides, strict=True) if extent != 1]
    strides: list[int] = []
    start = 0
    while len(strides) < len(shape) and start < len(old):
        end, first = start + 1, len(strides)
        stop, count, wanted = first + 1, old[start][0], shape[first]
        while count != wanted:
            if wanted < count:
                wanted *= shape[stop]
                stop += 1
            else:
                count *= old[end][0]
                end += 1
        if any(old[i][1] != old[i + 1][0] * old[i + 1][1] for i in range(start, end - 1)):
            return None
        step = old[end - 1][1]
        strides += [step * math.prod(shape[place + 1:stop]) for place in range(first, stop)]
        start = end
    last = strides[-1] if strides else meta.dtype.itemsize
    return Meta(meta.dtype, shape, (*strides, *[last] * (len(shape) - len(strides))))


def layout_like(meta: Meta, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Strides of a copy that keeps the layout (order "K")."""
    if len(meta.shape) < 2 or meta.strides == contiguous_strides(meta.shape, meta.dtype.itemsize):
        return contiguous_strides(meta.shape, dtype.itemsize)
    return tuple(np.empty_like(dummy(meta), dtype).strides)


def allocated(meta: Meta) -> Any:
    """A new array with these facts and arbitrary elements."""
    if meta.strides == contiguous_strides(meta.shape, meta.dtype.itemsize):
        return np.empty(meta.shape, meta.dtype)
    if 0 in meta.shape:
        return np.empty(meta.shape, meta.dtype)
    reach = [(extent - 1) * stride for extent, stride in zip(meta.shape, meta.strides, strict=True)]
    before = -sum([each for each in reach if each < 0])
    room = np.empty(before + sum([each for each in reach if each > 0]) + meta.dtype.itemsize, np.uint8)
    return np.ndarray(meta.shape, meta.dtype, room, before, meta.strides)
