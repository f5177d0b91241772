"""Functions by the kind of node that they are for, each declared where it is written."""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Handler = TypeVar("Handler", bound=Callable[..., object])


class Handlers(dict[str, Handler]):
    """Kind -> function: `@RULES.of("aten::len")` in front of one enters it."""

    def of(self, *kinds: str) -> Callable[[Handler], Handler]:
        """Enters the function that follows."""
        def enter(function: Handler) -> Handler:
            self.update(dict.fromkeys(kinds, function))
            return function
        return enter
