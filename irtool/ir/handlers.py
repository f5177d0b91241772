"""Tables of functions by kind of node, filled by a decorator at each function."""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Handler = TypeVar("Handler", bound=Callable[..., object])


class Handlers(dict[str, Handler]):
    """Kind -> function. `@RULES.of("aten::len")` enters the function that follows."""

    def of(self, *kinds: str) -> Callable[[Handler], Handler]:
        """A decorator that enters a function for these kinds."""
        def enter(function: Handler) -> Handler:
            self.update(dict.fromkeys(kinds, function))
            return function
        return enter
