"""`torch.no_grad()` under layers: which layers record while gradients are off.

As in torch.func, the mode is one of the whole stack: in a `no_grad` results are constants to the gradients at all levels, and tangents
(`jvp`) pass. A gradient turns the mode on for its function; around it, for the levels below, it stays what it was. So each layer has a mode
of its own: that of the layer above, and off if gradients were off where the layer above began with gradients on.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from irtool.dispatch.stack import Layer, layers_from


def switch(layer: Layer, is_on: bool) -> None:
    """Turn gradients on or off in a layer and those below it."""
    for each in layers_from(layer):
        each.set_mode(is_on)
        is_on = is_on and (each.was_on or not each.begins_with_gradients)


def modes_of(layer: Layer) -> list[tuple[Layer, bool]]:
    """The modes of a layer and those below it."""
    return [(each, each.mode) for each in layers_from(layer)]


def restore(modes: list[tuple[Layer, bool]]) -> None:
    """Set modes to what they were."""
    for layer, mode in modes:
        layer.set_mode(mode)


@contextmanager
def mode_kept(layer: Layer) -> Iterator[None]:
    """A context after which the modes are what they were."""
    modes = modes_of(layer)
    try:
        yield
    finally:
        restore(modes)


@contextmanager
def switched_off(layer: Layer) -> Iterator[None]:
    """A context in which gradients are off in a layer and those below it."""
    with mode_kept(layer):
        switch(layer, False)
        yield
