"""Conjugated views: `x.conj()` of a complex tensor shares memory with x in torch, where it is a view that is conjugated when it is read.

NumPy has no such view. So the conjugate is a separate array, and both are a `Pair`: elements that an operator writes into one are
conjugated and copied to the other (`spread`). A pair keeps the original array alive, as a view would, and ends with the conjugate.
"""
from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from threading import RLock
from typing import Any
from weakref import ref

from irtool.ops.array_library import np
from irtool.ops.arrays import Array, memory_of
from irtool.ops.checks import refuse_overlap


class Pair:
    """An array, and the array that contains its conjugate."""

    __slots__ = ("source", "conjugate")

    def __init__(self, source: Array, conjugate: Array) -> None:
        self.source = source
        self.conjugate = ref(conjugate, partial(forget, id(conjugate)))


_lock = RLock()     # not a Lock: an array may be freed while this thread changes the table
_pairs: dict[int, tuple[Pair, ...]] = {}
"""Identity of the owner of an array's memory (`memory_of`) -> the pairs of which one array has that memory."""
_of_foreign_memory: set[Pair] = set()
"""Pairs of whose source NumPy did not allocate the memory: it may have several owners (`irtool.ops.arrays.are_apart`)."""


def conjugated(xp: Any, x: Any) -> Any:
    """torch's lazily conjugated view of a tensor; a real tensor itself."""
    if x.dtype.kind != "c":
        return x
    if type(x) is not np.ndarray:       # a symbol, or an array on a device
        return xp.conj(x)
    source = x[...]         # a view, since an operator may change the shape of `x` itself
    conjugate = np.asarray(np.conj(source))
    pair = Pair(source, conjugate)
    with _lock:
        if not memory_of(source).flags.owndata:
            _of_foreign_memory.add(pair)
        for each in conjugate, memory_of(source):
            _pairs[id(each)] = (*_pairs.get(id(each), ()), pair)
    return conjugate[...]


def forget(key: int, freed: Any) -> None:
    """Forget the pair whose conjugate, of identity `key`, was freed."""
    with _lock:
        for pair in _pairs.pop(key, ()):
            _of_foreign_memory.discard(pair)
            home = id(memory_of(pair.source))
            rest = tuple([other for other in _pairs.pop(home, ()) if other is not pair])
            if rest:
                _pairs[home] = rest


def origin(x: Any) -> tuple[Any, bool]:
    """The owner of the memory that a tensor has in torch, and whether torch conjugates its elements when they are read."""
    memory, is_odd = memory_of(x), False
    while (source := source_of(memory)) is not None:
        memory, is_odd = memory_of(source), not is_odd
    return memory, is_odd


def is_tied(x: Any, other: Any) -> bool:
    """Is a write into x one into another array, although NumPy does not say so, since one of them shows conjugates?"""
    if not _pairs or not isinstance(x, np.ndarray) or not isinstance(other, np.ndarray):
        return False
    (memory, _), (others, _) = origin(x), origin(other)
    is_shown = memory is not memory_of(x) or others is not memory_of(other)
    return is_shown and memory_of(x) is not memory_of(other) and np.may_share_memory(memory, others)


def has_pairs() -> bool:
    """Is there any conjugate of a tensor?"""
    return bool(_pairs)


def has_conjugates(arrays: Iterable[Any]) -> bool:
    """Is one of these arrays the conjugate of another?"""
    return bool(_pairs) and any(origin(each)[1] for each in arrays)


def source_of(memory: Any) -> Any:
    """The array whose conjugate an array is, to which what is written into the conjugate is copied; None: it is no conjugate."""
    return next((each.source for each in _pairs.get(id(memory), ()) if each.conjugate() is memory), None)


def may_share_memory(x: Any, other: Any) -> bool:
    """May a write into x change an array? As NumPy answers, and also where x shows the conjugates of elements of the array."""
    while x is not None and not np.may_share_memory(x, other):
        x = source_of(memory_of(x))
    return x is not None


def pairs_of(x: Any, memory: Any) -> list[Pair]:
    """The pairs that a write into an array concerns. memory: the owner of its memory.

    Memory that NumPy did not allocate may have several owners, and memory that it did may have been handed to others: addresses tell.
    """
    pairs = list(_pairs.get(id(memory), ()))
    if _of_foreign_memory or not memory.flags.owndata:
        with _lock:
            others = dict.fromkeys([pair for known in _pairs.values() for pair in known])
        pairs += [pair for pair in others if pair not in pairs and np.may_share_memory(x, pair.source)]
    return pairs


def spread(written: Any) -> None:
    """Update conjugates after a write into an array, or into those in a list. Raises RunError for a write into the conjugate of a tensor
    whose elements share memory."""
    if not _pairs:
        return
    arrays = [each for each in (written if isinstance(written, list) else [written]) if isinstance(each, np.ndarray)]
    done: set[Pair] = set()
    while arrays:
        array = arrays.pop()
        memory = memory_of(array)
        for pair in pairs_of(array, memory):
            conjugate = pair.conjugate()
            if pair in done or conjugate is None:
                continue
            done.add(pair)
            if memory is conjugate:
                refuse_overlap(pair.source)
            target, origin = (pair.source, conjugate) if memory is conjugate else (conjugate, pair.source)
            np.conjugate(origin, out=target)
            arrays.append(target)
