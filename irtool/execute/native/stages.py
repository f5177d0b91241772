"""The parts of a round of a loop in C: stores (memory), places (arrays in stores), and stages that read and write places."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.ops.symbols.array_layout import Meta
from irtool.ops.symbols.elementwise import Symbol


class NotNative(Exception):
    """The reason why a loop does not become a function in C."""


class Store:
    """Memory that a round uses, by the name of its pointer in C. Stages from `ready` on may read it; in the workspace, it is free after
    stage `last`."""

    __slots__ = ("name", "meta", "first", "ready", "last")

    def __init__(self, name: str, meta: Meta, first: int = 0, ready: int = 0) -> None:
        self.name = name
        self.meta = meta
        self.first = self.last = first
        self.ready = ready


class Place:
    """Where an array is: a store, an offset in it, and `moving`, the part of the offset that depends on the round. In elements."""

    __slots__ = ("store", "shape", "strides", "offset", "moving")

    def __init__(self, store: Store, shape: Sequence[int], strides: Sequence[int], offset: int = 0, moving: str = "") -> None:
        self.store = store
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.offset = offset
        self.moving = moving        # C: ` + t * 512`

    @property
    def key(self) -> tuple[Any, ...]:
        """A key that is equal for equal places."""
        return id(self.store), self.shape, self.strides, self.offset, self.moving


def whole(store: Store) -> Place:
    """The place that is all of a store."""
    itemsize = store.meta.dtype.itemsize
    return Place(store, store.meta.shape, [stride // itemsize for stride in store.meta.strides])


class Elementwise:
    """Steps over all elements of a shape. read: the places that are loaded, with their symbols; written: symbols that are stored, with
    their places."""

    __slots__ = ("shape", "read", "written", "calls")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.read: dict[Any, tuple[Place, Symbol]] = {}
        self.written: list[tuple[Symbol, Place]] = []
        self.calls = 0

    def load(self, place: Place) -> Symbol:
        """The symbol of the element at a place."""
        entry = self.read.get(place.key)
        if entry is None:
            entry = self.read[place.key] = place, Symbol(place.store.meta.dtype, not place.shape)
        return entry[1]

    def places(self) -> list[Place]:
        """What is read."""
        return [place for place, _ in self.read.values()]


class Product:
    """`into = left right`; with `more`, `into += left right`. packed: the right factor lies in panels (`Packing`)."""

    __slots__ = ("left", "right", "into", "more", "packed")

    def __init__(self, left: Place, right: Place, into: Store, packed: bool) -> None:
        self.left = left
        self.right = right
        self.into = into
        self.more = False
        self.packed = packed

    def places(self) -> list[Place]:
        """What is read."""
        return [self.left, self.right]


class Packing:
    """`into` is the right factor of products of `rows` rows, in panels."""

    __slots__ = ("source", "into", "rows")

    def __init__(self, source: Place, into: Store, rows: int) -> None:
        self.source = source
        self.into = into
        self.rows = rows

    def places(self) -> list[Place]:
        """What is read."""
        return [self.source]


class Sum:
    """`into[j]` is the sum of `source[i][j]`, in the order of i, as NumPy adds up rows."""

    __slots__ = ("source", "into")

    def __init__(self, source: Place, into: Store) -> None:
        self.source = source
        self.into = into

    def places(self) -> list[Place]:
        """What is read."""
        return [self.source]


class Either:
    """One of two stages over the elements of a shape: the first if the C expression `condition` is not 0."""

    __slots__ = ("condition", "first", "second")

    def __init__(self, condition: str, first: Elementwise, second: Elementwise) -> None:
        self.condition = condition
        self.first = first
        self.second = second

    def places(self) -> list[Place]:
        """What is read."""
        return [*self.first.places(), *self.second.places()]


Stage = Elementwise | Product | Packing | Sum | Either


class Carried:
    """A loop-carried array: read at `now`, written at `next`. changes: False if each round returns the array unchanged; in_place: it has
    one buffer, which each round updates."""

    __slots__ = ("now", "next", "changes", "in_place", "meta")

    def __init__(self, number: int, meta: Meta, changes: bool) -> None:
        self.meta = meta
        self.now = Store(f"now{number}", meta)
        self.next = Store(f"next{number}", meta)
        self.changes = changes
        self.in_place = False


def turned(place: Place) -> Place:
    """The transpose of a matrix."""
    return Place(place.store, place.shape[::-1], place.strides[::-1], place.offset, place.moving)
