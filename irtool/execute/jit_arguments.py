"""Arguments of a jitted function: their signature, and memory that several of them share."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from types import MethodType
from typing import Any

from irtool.accepted_values import overlapping
from irtool.ops.array_library import np
from irtool.ops.arrays import are_apart
from irtool.ops.conjugates import has_conjugates
from irtool.ops.tensor import Tensor

LONGEST = 1 << 63
"""Integers from here on are not inputs of traces, since no tensor can hold them."""


class Same:
    """A key that is equal only to a key of the same object; it keeps the object alive, so that no other gets its id."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value


def array_of(leaf: Any) -> Any:
    """The array that a leaf is or contains; None for any other leaf."""
    if isinstance(leaf, Tensor):
        return leaf.array
    return leaf if isinstance(leaf, np.ndarray) else None


def is_data(leaf: Any) -> bool:
    """Is a leaf a number that a trace takes as an input?"""
    if type(leaf) is int:
        return -LONGEST <= leaf < LONGEST
    return type(leaf) is float or isinstance(leaf, np.integer | np.floating)


def signature(leaves: Sequence[Any], shape: Any) -> Any:
    """The key of a call's variants, hashable: arrays by dtype and sizes, numbers by class, all other leaves by value."""
    parts: list[Any] = [structure(shape)]
    for leaf in leaves:
        array = array_of(leaf)
        if array is not None:
            parts.append((array.dtype.str, array.shape, None if array.flags.c_contiguous else array.strides))
        elif is_data(leaf):
            parts.append(leaf.__class__)
        else:
            parts.append(by_value(leaf))
    return tuple(parts)


def by_value(leaf: Any) -> Any:
    """A hashable key for a leaf that is neither array nor number: by class and value, also of what it consists of (1, 1.0 and True are
    equal, but give different traces); by identity if it cannot be hashed, or if Python compares it so."""
    kind = leaf.__class__
    if kind in (float, complex) or isinstance(leaf, np.inexact):
        return kind, repr(leaf)
    if kind in (tuple, frozenset):
        return kind, *map(by_value, leaf)
    if kind is slice:
        return kind, *map(by_value, (leaf.start, leaf.stop, leaf.step))
    if kind is MethodType:
        return kind, Same(leaf.__func__), Same(leaf.__self__)
    if kind.__hash__ in (None, object.__hash__):
        return Same(leaf)
    if is_dataclass(kind):
        return kind, *[by_value(getattr(leaf, each.name, None)) for each in fields(kind)]
    try:
        hash(leaf)
    except TypeError:
        return Same(leaf)
    return kind, leaf


def has_identity(key: Any) -> bool:
    """Does a key of `by_value` depend on the identity of some object? Then the object may have other contents in the next call."""
    return isinstance(key, Same) or isinstance(key, tuple) and any(map(has_identity, key))


def structure(tree: Any) -> Any:
    """The shape of a tree, hashable."""
    if isinstance(tree, list | tuple):
        return (tree.__class__, *map(structure, tree))
    if isinstance(tree, dict):
        return (tree.__class__, *[(by_value(key), structure(each)) for key, each in tree.items()])
    return None


def repeats(arguments: Any) -> Any:
    """A hashable key of the lists and dicts that are in a tree of arguments in several places; None if there are none."""
    places: list[int] = []
    note_containers(arguments, places)
    return None if len(set(places)) == len(places) else tuple([places.index(each) for each in places])


def note_containers(tree: Any, places: list[int]) -> None:
    """Append the ids of the lists and dicts in a container, in order."""
    for each in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(each, list | tuple | dict):
            if not isinstance(each, tuple):
                places.append(id(each))
            note_containers(each, places)


def described(leaves: Sequence[Any]) -> str:
    """Leaves as `f.variants` shows them: `float64[2], int, 'mean'`."""
    words = []
    for leaf in leaves:
        array = array_of(leaf)
        if array is not None:
            words.append(f"{array.dtype}{list(array.shape)}")
        else:
            words.append(type(leaf).__name__ if is_data(leaf) else repr(leaf)[:40])
    return ", ".join(words)


class Span:
    """Memory that several arguments share: `count` items from the start of argument `first`; parts: the offset of each argument in it."""

    __slots__ = ("first", "count", "parts")

    def __init__(self, first: int, count: int, parts: dict[int, int]) -> None:
        self.first = first
        self.count = count
        self.parts = parts

    def is_one(self, arrays: dict[int, Any]) -> bool:
        """Are all parts the same array?"""
        first = arrays[self.first]
        return not any(self.parts.values()) and all((arrays[place].shape, arrays[place].strides) == (first.shape, first.strides)
                                                    for place in self.parts)

    def of(self, arrays: dict[int, Any]) -> Any:
        """The memory as an array of one dimension."""
        first = arrays[self.first]
        return np.lib.stride_tricks.as_strided(first, (self.count,), (first.itemsize,))

    def view(self, place: int, array: Any) -> list[Any]:
        """Sizes, strides and offset, in items, by which `aten::as_strided` of the memory is the array at a place."""
        return [list(array.shape), [each // array.itemsize for each in array.strides], self.parts[place]]


def spans_of(arrays: dict[int, Any]) -> list[Span] | None:
    """The memory that arrays, by position, share; None if arrays that share memory have items of different sizes or lie backwards, or if
    one is the conjugate of a tensor."""
    if has_conjugates(arrays.values()):
        return None
    if are_apart(list(arrays.values())):
        return []
    spans = []
    views = {place: each.view() for place, each in arrays.items()}      # one array may be several arguments
    places = {id(view): place for place, view in views.items()}
    for piece in overlapping(views.values()):
        if len(piece) < 2:
            continue
        if any(stride < 0 for each, _, _ in piece for stride in each.strides):
            return None
        first, low, _ = piece[0]
        parts = {places[id(each)]: start - low for each, start, _ in piece}
        if any(each.dtype != first.dtype or start % each.itemsize for each, start, _ in piece) or \
                any(offset % first.itemsize for offset in parts.values()):
            return None
        count = (max(high for _, _, high in piece) - low) // first.itemsize
        spans.append(Span(places[id(first)], count, {place: offset // first.itemsize for place, offset in parts.items()}))
    return spans


def pattern(leaves: Sequence[Any]) -> Any:
    """A hashable key of how arguments share memory."""
    arrays = {place: array for place, leaf in enumerate(leaves) if (array := array_of(leaf)) is not None}
    spans = spans_of(arrays)
    return None if spans is None else tuple([(each.first, each.count, tuple(each.parts.items())) for each in spans])
