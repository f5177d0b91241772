"""Finding values by name: `x` also means `%x.1`, if no other value can be meant.

torch appends a number to make names unique (`%x.1`, `%x.25`), which the author of `def f(x)` does not know.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from irtool.ir.graph import Value


class Names:
    """The positions of values, such as a graph's inputs, by name."""

    def __init__(self, values: Sequence[Value]) -> None:
        self.names = [value.name for value in values]
        self.exact = {name: place for place, name in enumerate(self.names)}
        self.short: dict[str, list[int]] = {}
        for place, name in enumerate(self.names):
            for stem in stems(name):
                self.short.setdefault(stem, []).append(place)

    def places(self, name: str) -> list[int]:
        """The positions that a name, with or without `%`, may mean: that of the value with this name, else of all values whose names
        differ from it only by a number at the end."""
        name = name.removeprefix("%")
        place = self.exact.get(name)
        return self.short.get(name, []) if place is None else [place]

    def known(self) -> list[str]:
        """All names that mean one value: whole names, and unambiguous short ones."""
        return [*self.names, *[stem for stem, places in self.short.items() if len(places) == 1]]

    def choice(self, name: str) -> str:
        """The message for a name that may mean several values."""
        return f"'{name}' may be {' or '.join(f'%{self.names[place]}' for place in self.places(name))}; give the whole name"


def stems(name: str) -> Iterator[str]:
    """The name without its last number, then without the one before it: `x.1.2` yields `x.1` and `x`."""
    stem, dot, number = name.rpartition(".")
    while dot and stem and number.isdecimal():
        yield stem
        stem, dot, number = stem.rpartition(".")
