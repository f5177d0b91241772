"""Python's garbage collector of cycles, paused while many long-lived objects are made: it would walk the growing graph again and again."""
from __future__ import annotations

import gc


class Paused:
    """`with Paused():` no garbage is collected. Blocks nest, and several threads may use them at once."""

    __slots__ = ("was_enabled",)

    def __enter__(self) -> None:
        self.was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: object) -> None:
        if self.was_enabled:
            gc.enable()


FEWEST = 250_000
"""As many new objects may wait for a collection, however few objects there are in all."""


class Counters:
    """Counters: `waiting`, objects handed over since the last full collection; `most`, how many may wait; `collections`, full
    collections so far, by irtool or its host; `left_alone`, the next pauses after which nothing is handed over."""

    waiting = 0
    most = FEWEST
    collections = 0
    left_alone = 0


def move_to_oldest_generation() -> None:
    """Move all objects to the oldest generation, else the next allocation would walk those made in the pause.

    Python does not count objects moved so; `collect_where_due` does. Objects that the host froze itself stay frozen. Counting frozen
    objects takes Python a tenth of a second for some millions, so the more there are, the more rarely they are counted.
    """
    forget_collected()
    if Counters.left_alone:
        Counters.left_alone -= 1
    elif not (frozen := gc.get_freeze_count()):
        Counters.waiting += gc.get_count()[0]
        gc.freeze()
        gc.unfreeze()
    else:
        Counters.left_alone = frozen // 1000


def forget_collected() -> None:
    """Reset the count of waiting objects if a full collection has happened since the last call."""
    collections = gc.get_stats()[-1]["collections"]
    if collections != Counters.collections:
        Counters.waiting, Counters.collections = 0, collections


MANY = 8_000_000
"""As many new objects, about a gigabyte, may wait for a collection between the passes of one pipeline: the next text is soon enough."""


def collect_where_due(fewest: int = 0) -> None:
    """Collect cycles if a quarter of all objects were handed over since the last collection, the rule that Python has for objects that it
    counts, and at least `fewest`.

    Otherwise a process that reads one text after another would keep them all. Does nothing if the host turned the collector off, or has
    just collected.
    """
    forget_collected()
    if Counters.waiting > max(Counters.most, fewest) and gc.isenabled():
        Counters.most = max(FEWEST, len(gc.get_objects()) // 4)
        if Counters.waiting > Counters.most:
            gc.collect()
            Counters.waiting = 0


class HandedOver(Paused):
    """As `Paused`, for code that makes many long-lived objects, which are moved to the oldest generation at the end: before the collector
    goes on, else it would walk them at once."""

    __slots__ = ()

    def __exit__(self, *error: object) -> None:
        move_to_oldest_generation()
        super().__exit__(*error)


class Building(HandedOver):
    """As `HandedOver`; at the start, cycles are collected where that is due."""

    __slots__ = ()

    def __enter__(self) -> None:
        collect_where_due()
        super().__enter__()
