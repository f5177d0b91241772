"""The offsets of buffers: no two overlap while both live, and all take as little memory as possible.

Memory is kept between runs (`irtool.execute.plan.buffers`), so the sum of all pieces is minimized, not the bytes alive at one time. When
the run is over, a result that leaves the plan is the only buffer in use in its piece of memory; before the result is computed, and in the
bytes that it does not need, other buffers may use that piece.
"""
from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

from irtool.execute.plan.buffers import ALIGNMENT, RECYCLED, Shared
from irtool.execute.plan.program import Call, Variable
from irtool.ops.symbols.array_layout import Meta

MAX_PLACED = 1500
"""Up to this number each buffer is placed against all others; beyond, only buffers of equal size share memory."""
SPAN = 32
"""Buffers per span of positions, about, in which those that live near each other are looked for."""
TRIED = 100
"""Buffers up to which several orders are tried."""
GOOD = 1.03
"""A placement within this factor of the bytes alive at one time is good enough: no further order is tried."""
FEW = 1 << 22
"""Bytes of all buffers up to which the plan of a first run is placed quickly."""
FOREVER = 1 << 60
BY_OPERATOR = -1
"""Number of a buffer that the plan does not allocate: the memory of a result that an operator made."""
LOOSE = 1.01
"""If operators allocate results too, a large plan keeps its buffers between runs only up to this factor of the bytes alive at one time."""
WASTE = 2
"""The piece of a result may be at most this many times as large as the result: a holder of the result keeps all of the piece alive."""


class Buffer:
    """Memory for one result, or for several, one after the other."""

    __slots__ = ("number", "meta", "size", "start", "end", "leaves", "is_once", "offset", "results", "piece", "is_loose")

    def __init__(self, number: int, meta: Meta, start: int, end: int, leaves: bool, is_once: bool = False) -> None:
        self.number = number
        self.meta = meta
        self.size = -(-meta.nbytes // ALIGNMENT) * ALIGNMENT        # bytes taken
        self.start = start
        self.end = end
        self.leaves = leaves        # the result may be held after the run, or after the round of a loop
        self.is_once = is_once      # allocated once per run: other buffers may share its memory
        self.offset = 0             # in the arena, or in its piece
        self.results = 1
        self.is_loose = False       # allocated when needed and freed after use, not kept between runs
        self.piece: Piece | None = None     # of a buffer that leaves: the memory that it shares with others

    def is_handed_to(self, call: Call) -> bool:
        """Does a run hand the memory of a result that leaves to the call? A small result is an array that NumPy allocates, if that lays it
        out as the plan says."""
        return self.meta.nbytes >= RECYCLED or not call.lies_by_itself

    @property
    def until(self) -> int:
        """The last position at which the memory is needed; for a result that leaves, beyond the end of the run."""
        return FOREVER if self.leaves else self.end

    @property
    def life(self) -> tuple[int, int, int]:
        """Start, end, bytes."""
        return self.start, self.end, self.meta.nbytes


class View:
    """A view that begins `shift` bytes after the start of a buffer."""

    __slots__ = ("variable", "meta", "buffer", "shift")

    def __init__(self, variable: Variable, meta: Meta, buffer: Buffer, shift: int) -> None:
        self.variable = variable
        self.meta = meta
        self.buffer = buffer
        self.shift = shift

    @property
    def offset(self) -> int:
        """In the arena."""
        return self.buffer.offset + self.shift


class Piece:
    """One block of memory for several buffers, of which at most one leaves the plan."""

    __slots__ = ("size", "buffers", "result")

    def __init__(self, size: int) -> None:
        self.size = size
        self.buffers: list[tuple[int, int, int, int, Buffer]] = []      # sorted: first offset, end offset, number, last position, buffer
        self.result: Buffer | None = None

    def gap_for(self, buffer: Buffer) -> int | None:
        """The lowest offset at which there is room as long as the buffer lives; None: no room."""
        if buffer.leaves and (self.result is not None or self.size > WASTE * buffer.size):
            return None
        start, end = buffer.start, FOREVER if buffer.leaves else buffer.end
        size, offset, most = buffer.size, 0, self.size - buffer.size
        if most < 0:
            return None
        for low, high, _, until, other in self.buffers:
            if until < start or high <= offset or other.start > end:
                continue
            if low >= offset + size:
                break
            offset = high
            if offset > most:
                return None
        return offset

    def put(self, buffer: Buffer, offset: int) -> None:
        """Place a buffer at an offset."""
        insort(self.buffers, (offset, offset + buffer.size, buffer.number, buffer.until, buffer))
        buffer.offset = offset
        if buffer.leaves:
            self.result = buffer

    def shared(self) -> Shared:
        """The object that allocates the memory."""
        result, *guests = self.all
        return Shared(self.size, result, guests)

    @property
    def all(self) -> list[Buffer]:
        """The buffers of the piece, the result first."""
        return sorted([buffer for *_, buffer in self.buffers], key=lambda buffer: buffer is not self.result)


class Placement:
    """The places of all buffers: in the arena, or in the pieces of results that leave."""

    __slots__ = ("pieces", "arena", "places")

    def __init__(self, pieces: Iterable[Piece], is_final: bool = True) -> None:
        """is_final: look for a placement of the pieces of the arena that is smaller than one after the other."""
        self.pieces = [piece for piece in pieces if piece.result is not None]
        self.places: list[tuple[Buffer, Piece | None, int]] = []
        rest: list[Buffer] = []
        self.arena = 0
        for piece in pieces:
            if piece.result is not None:
                shared = piece if len(piece.buffers) > 1 else None
                self.places += [(buffer, shared, offset) for offset, *_, buffer in piece.buffers]
                continue
            self.places += [(buffer, None, self.arena + offset) for offset, *_, buffer in piece.buffers]
            rest += piece.all
            self.arena += piece.size
        if is_final and self.arena > largest_sum([(each.start, each.end, each.size) for each in rest]):
            offsets, total = in_one(rest)       # in one large piece buffers fit better than in several smaller ones
            if total < self.arena:
                self.arena = total
                self.places = [(buffer, piece, offsets.get(buffer, offset)) for buffer, piece, offset in self.places]

    @property
    def total(self) -> int:
        """The bytes of the arena and of all pieces."""
        return self.arena + sum([piece.size for piece in self.pieces])

    def take_effect(self) -> None:
        """Write the places into the buffers."""
        for buffer, piece, offset in self.places:
            buffer.piece, buffer.offset = piece, offset


Order = Callable[[Buffer], Any]
ORDERS: tuple[Order, ...] = (
    lambda buffer: (-buffer.size, buffer.start),
    lambda buffer: (-buffer.size, -buffer.end),
    lambda buffer: (-buffer.size * (buffer.end - buffer.start + 1), buffer.start),
)
"""Sort keys: the orders in which buffers are placed. The first places the largest buffers first."""


def place(buffers: Sequence[Buffer], live: int, is_first: bool = False) -> Placement:
    """Give each buffer its place. live: the largest number of bytes alive at one time, which every placement needs at least. is_first: the
    placement is for the first run alone, so a few kilobytes matter less than the time that a good one takes."""
    if is_first and sum([buffer.size for buffer in buffers]) <= FEW:
        placement = Placement(by_size(buffers), is_final=False)
    elif len(buffers) > MAX_PLACED:
        placement = Placement(by_size(buffers))
    else:
        placement = Placement(one_by_one(buffers, ORDERS[0]))
        for order in ORDERS[1:] if len(buffers) <= TRIED else ():
            if placement.total > GOOD * live:
                placement = min(placement, Placement(one_by_one(buffers, order)), key=lambda each: each.total)
    placement.take_effect()
    return placement


def one_by_one(buffers: Iterable[Buffer], order: Order) -> list[Piece]:
    """Put each buffer into the first piece that has room for it, or else into a new piece of its size."""
    pieces: list[Piece] = []
    for buffer in sorted(buffers, key=order):
        for piece in pieces:
            offset = piece.gap_for(buffer)
            if offset is not None:
                break
        else:
            piece, offset = Piece(buffer.size), 0
            pieces.append(piece)
        piece.put(buffer, offset)
    return pieces


def in_one(buffers: Iterable[Buffer]) -> tuple[dict[Buffer, int], int]:
    """Place all buffers in one piece, largest first, each at the lowest offset that is free while it lives: offsets, and the size.

    A buffer is compared with those alone that live in the same spans of positions: short lives cost no more in a long plan.
    """
    ordered = sorted(buffers, key=ORDERS[0])
    piece = Piece(sum([buffer.size for buffer in ordered]))
    width = max(max([buffer.end for buffer in ordered], default=0) * SPAN // max(len(ordered), 1), 1)
    spans: dict[int, list[tuple[int, int, int, int, Buffer]]] = {}      # number of a span of positions -> what lives in it
    offsets: dict[Buffer, int] = {}
    total = 0
    for buffer in ordered:
        numbers = range(buffer.start // width, buffer.end // width + 1)
        piece.buffers = sorted({each for number in numbers for each in spans.get(number, ())})
        offset = piece.gap_for(buffer)
        assert offset is not None
        for number in numbers:
            spans.setdefault(number, []).append((offset, offset + buffer.size, buffer.number, buffer.until, buffer))
        offsets[buffer] = offset
        total = max(total, offset + buffer.size)
    return offsets, total


def by_size(buffers: Iterable[Buffer]) -> list[Piece]:
    """Pieces that buffers of one size share; the piece that is free first is used first. For many buffers: looks at each once."""
    taken: dict[int, list[tuple[int, int, Piece]]] = {}      # size -> heap of (last position, number of the buffer, piece)
    pieces: list[Piece] = []
    for buffer in sorted(buffers, key=lambda each: each.start):
        same = taken.setdefault(buffer.size, [])
        if same and same[0][0] < buffer.start:
            piece = heappop(same)[2]
        else:
            piece = Piece(buffer.size)
            pieces.append(piece)
        piece.put(buffer, 0)
        heappush(same, (buffer.until, buffer.number, piece))
    return pieces


def largest_sum(lives: Iterable[tuple[int, int, int]]) -> int:
    """The largest number of bytes alive at one position, from (start, end, bytes); an operand and the result of one instruction are alive
    together."""
    events: dict[int, int] = {}
    for start, end, size in lives:
        events[start] = events.get(start, 0) + size
        events[end + 1] = events.get(end + 1, 0) - size
    now = most = 0
    for position in sorted(events):
        now += events[position]
        most = max(most, now)
    return most
