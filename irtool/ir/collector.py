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


def hand_over() -> None:
    """All objects there are belong to the oldest generation: otherwise the next allocation anywhere would walk those made in a pause.

    Nothing stays frozen; a host that froze objects itself is left alone.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


__all__ = ["Paused", "hand_over"]
