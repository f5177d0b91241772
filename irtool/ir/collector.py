"""Python's collector of cycles, off while many objects are made that live: it would walk the growing graph again and again."""
from __future__ import annotations

import gc


class Paused:
    """`with Paused():` nothing is collected, whether or not something was before. Blocks nest, and may meet in several threads."""

    __slots__ = ("was_enabled",)

    def __enter__(self) -> None:
        self.was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: object) -> None:
        if self.was_enabled:
            gc.enable()


FEWEST = 250_000
"""So many objects may wait to be looked through, whatever else there is."""


class Handed:
    """How many objects were handed over since all were last looked through, and how many may be; how often all were looked through,
    by irtool or its host; pauses that are left alone from now on."""

    waiting = 0
    most = FEWEST
    collections = 0
    left_alone = 0


def hand_over() -> None:
    """All objects there are belong to the oldest generation: otherwise the next allocation anywhere would walk those made in a pause.

    Python does not count them: `collect_where_due` does. Nothing stays frozen; a host that froze objects itself is left alone. Python walks
    what is frozen to count it, a tenth of a second for some millions of objects: so the more there is, the more rarely it is asked.
    """
    forget_collected()
    if Handed.left_alone:
        Handed.left_alone -= 1
    elif not (frozen := gc.get_freeze_count()):
        Handed.waiting += gc.get_count()[0]
        gc.freeze()
        gc.unfreeze()
    else:
        Handed.left_alone = frozen // 1000


def forget_collected() -> None:
    """Nothing waits any more where all objects were looked through since this was last asked."""
    collections = gc.get_stats()[-1]["collections"]
    if collections != Handed.collections:
        Handed.waiting, Handed.collections = 0, collections


def collect_where_due() -> None:
    """Collect cycles where a quarter of all objects were handed over since this was last done, as Python does for those that it counts.

    A process that reads one text after another would else keep them all. Does nothing where the host turned the collector off, or has
    just collected itself.
    """
    forget_collected()
    if Handed.waiting > Handed.most and gc.isenabled():
        Handed.most = max(FEWEST, len(gc.get_objects()) // 4)
        if Handed.waiting > Handed.most:
            gc.collect()
            Handed.waiting = 0


class Building(Paused):
    """As `Paused`, for what makes many objects that live: they are handed over at the end."""

    __slots__ = ()

    def __enter__(self) -> None:
        collect_where_due()
        super().__enter__()

    def __exit__(self, *error: object) -> None:
        hand_over()
        super().__exit__(*error)


__all__ = ["Building", "Paused", "collect_where_due", "hand_over"]
