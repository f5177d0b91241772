"""Which value is meant by a name: `x` is `%x.1` too, where no other could be meant.

torch puts a number behind a name to make it unique (`%x.1`, `%x.25`); whoever wrote `def f(x)` does not know it.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from irtool.ir.graph import Value


class Names:
    """Places of values (the inputs of a graph) by their names."""

    def __init__(self, values: Sequence[Value]) -> None:
        self.names = [value.name for value in values]
        self.exact = {name: place for place, name in enumerate(self.names)}
        self.short: dict[str, list[int]] = {}
        for place, name in enumerate(self.names):
            for stem in stems(name):
                self.short.setdefault(stem, []).append(place)

    def places(self, name: str) -> list[int]:
        """The places that a name, with or without `%`, may mean: one that is called so, else those called so but for a number behind it."""
        name = name.removeprefix("%")
        place = self.exact.get(name)
        return self.short.get(name, []) if place is None else [place]

    def known(self) -> list[str]:
        """All that finds a value: names, and short names."""
        return [*self.names, *[stem for stem, places in self.short.items() if len(places) == 1]]

    def choice(self, name: str) -> str:
        """What is said of a name that may mean several."""
        return f"'{name}' may be {' or '.join(f'%{self.names[place]}' for place in self.places(name))}; give the whole name"


def stems(name: str) -> Iterator[str]:
    """The name without the number behind it, and without a number behind that: `x.1.2` gives `x.1` and `x`."""
    stem, dot, number = name.rpartition(".")
    while dot and stem and number.isdecimal():
        yield stem
        stem, dot, number = stem.rpartition(".")
