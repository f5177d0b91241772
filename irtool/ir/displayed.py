"""What notebooks show of objects. This package is below `irtool.drawing`, which draws them, so the drawing is imported by name."""
from __future__ import annotations

from importlib import import_module


class Displayed:
    """A base class of objects for which `irtool.drawing.notebook` has a function."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(import_module("irtool.drawing.notebook").html(self))
