"""Objects that notebooks show as pictures. `irtool.drawing`, which draws them, is above this package, so it is imported by name."""
from __future__ import annotations

from importlib import import_module


class Displayed:
    """A base class of objects for which `irtool.drawing.notebook` has a function."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(import_module("irtool.drawing.notebook").html(self))
