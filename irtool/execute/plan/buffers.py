"""The memory of plans: arenas, and memory of results that leave the plan, which is reused when nobody refers to the result any more.

The first write to new memory from the system takes longer than most operators, so memory is kept between runs: only as much as concurrent
runs, and results alive at one time, have needed.
"""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol

from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.symbols.array_layout import Meta, allocated

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""
RECYCLED = 1 << 12
"""Bytes from which the memory of a result is reused."""
MOST = 3
"""Arrays that a recycler keeps for one result. Beyond that, results get new memory."""


class Placed(Protocol):
    """A buffer or view with an offset in a piece of memory."""

    meta: Meta
    offset: int


class Arena(Protocol):
    """The size of an arena, and the buffers in it: results that do not leave the plan."""

    arena: int
    inside: list[Any]


def room_of(size: int) -> tuple[Any, int]:
    """New memory, and the offset of the first aligned byte in it."""
    try:
        room = np.empty(size + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError):       # of more bytes than an address counts
        raise RunError(f"not enough memory: a run needs {size:,} bytes for values between its operators", code="E0406") from None
    return room, -room.ctypes.data % ALIGNMENT


def cut(size: int, placed: Sequence[Placed]) -> list[Any]:
    """New memory of a size, as arrays at their offsets in it."""
    room, shift = room_of(size)
    return [np.empty(each.meta.shape, each.meta.dtype) if 0 in each.meta.shape      # its strides may exceed the memory
            else np.ndarray(each.meta.shape, each.meta.dtype, room, shift + each.offset, each.meta.strides) for each in placed]


class Workspace:
    """The arenas of a plan: `borrow` returns the buffers for one run, `give_back` takes them back. There is one per concurrent run."""

    __slots__ = ("plan", "free")

    def __init__(self, plan: Arena) -> None:
        self.plan = plan
        self.free: list[list[Any]] = []

    def borrow(self) -> list[Any]:
        """Arrays, one per buffer of the arena, in the order of `plan.inside`."""
        try:
            return self.free.pop()      # atomic: no two runs get the same arena
        except IndexError:
            return cut(self.plan.arena, self.plan.inside)

    def give_back(self, buffers: list[Any]) -> None:
        """Take the buffers back after a run."""
        self.free.append(buffers)


class Recycler:
    """Memory for one result that leaves the plan: an array to which nobody refers any more is reused.

    An array is free if only this list refers to it, and only the array refers to its `base`. Both counts matter: a view of an array that
    owns its memory refers to the array; a view of an array that has a base (one that is not contiguous) refers to that base. Without a
    global interpreter lock reference counts say nothing, and no memory is reused. most: how many arrays are kept between runs.
    """

    __slots__ = ("meta", "most", "arrays")

    def __init__(self, meta: Meta, most: int = MOST) -> None:
        self.meta = meta
        self.most = most
        self.arrays: list[Any] = []

    def take(self) -> Any:
        """An uninitialised array of the recycler's dtype, shape and strides."""
        for array in self.arrays:
            if sys.getrefcount(array) <= COUNT_OF_FREE and (array.base is None or sys.getrefcount(array.base) <= COUNT_OF_BASE):
                return array
        array = allocated(self.meta)
        if len(self.arrays) < self.most and recycles():
            self.arrays.append(array)
        return array


class Shared:
    """Memory of one result that leaves the plan, shared with temporary buffers (guests): they use it before the result is computed, or use
    bytes that the result does not need.

    `take` returns a tuple of arrays, that of the result first. The run refers to the tuple to its end. The memory is free when nobody else
    refers to the tuple, to the arrays or to the memory.
    """

    __slots__ = ("size", "result", "guests", "entries")

    def __init__(self, size: int, result: Placed, guests: Sequence[Placed]) -> None:
        self.size = size
        self.result = result
        self.guests = list(guests)
        self.entries: list[tuple[Any, ...]] = []

    def take(self) -> tuple[Any, ...]:
        """Uninitialised arrays. If `MOST` results are alive already, the result gets separate memory of exactly its size."""
        free = REFERENCES_OF_FREE + len(self.guests) * MORE_OF_FREE
        for arrays in self.entries:
            if references(arrays) <= free:
                return arrays
        if len(self.entries) < MOST and recycles():
            arrays = tuple(cut(self.size, [self.result, *self.guests]))
            self.entries.append(arrays)
            return arrays
        return (allocated(self.result.meta), *cut(self.size, self.guests))


def references(arrays: tuple[Any, ...]) -> int:
    """The number of references to a tuple of arrays, to each of the arrays, and to their common memory."""
    return sys.getrefcount(arrays) + sum(map(sys.getrefcount, arrays)) + sys.getrefcount(arrays[0].base)


def recycles() -> bool:
    """Do reference counts tell whether an array is in use?"""
    is_enabled = getattr(sys, "_is_gil_enabled", None)
    return is_enabled is None or bool(is_enabled())


def _count_of_free() -> int:
    probe = [np.empty(0)]
    for array in probe:
        return sys.getrefcount(array)
    return 0


def _count_of_base() -> int:
    array = np.ndarray((1,), np.uint8, np.empty(1, np.uint8))
    return sys.getrefcount(array.base)


def _references_of_free(count: int) -> int:
    room = np.empty(1, np.uint8)
    probe = [tuple([np.ndarray((1,), np.uint8, room) for _ in range(count)])]
    del room
    for arrays in probe:
        return references(arrays)
    return 0


COUNT_OF_FREE = _count_of_free()
"""The reference count, inside `take`, of an array to which only the recycler's list refers."""
COUNT_OF_BASE = _count_of_base()
"""The same for the memory of an array that does not own it."""
REFERENCES_OF_FREE = _references_of_free(1)
"""The same for the tuple of a `Shared` with one array."""
MORE_OF_FREE = _references_of_free(2) - REFERENCES_OF_FREE
"""The increase for each further array."""
