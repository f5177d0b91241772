"""Functions that a tape calls again on its way back, when what they read from outside may have changed.

A loop binds a variable anew, a list grows, a tensor is written into: the branch of a `cond` must then read what it read at first.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any

from irtool.dispatch.closure_conversion import MISSING, Function, Lifted, attributes, is_filled
from irtool.dispatch.stack import Layer, layers_from

State = tuple[list[Any], list[Any], dict[Any, Any], dict[str, Any]]
"""What a value refers to and can lose: contents of the cells of a closure, items of a list, items of a dict, attributes."""


class Lasting(Lifted):
    """Functions that run on a layer now, and perhaps later. All tensors that were made since the first tape began are lifted: a write gives
    the tape's own handle of an operand no other elements."""

    def __init__(self, functions: Sequence[Function], layer: Layer) -> None:
        tapes = [each for each in layers_from(layer) if each.is_tape]
        super().__init__(functions, tapes[-1].start if tapes else math.inf)
        self.before = [(value, state_of(value)) for value in self.searched.values()] if tapes else []
        self.is_later = False
        """Has the layer run them? From then on the functions are those of before, whatever has changed."""

    @contextmanager
    def called(self, which: int, values: Sequence[Any]) -> Iterator[Function]:
        """One of the functions, to call in this context, that reads `values` instead of `tensors`. Later, the variables, containers and
        objects that have changed are as they were."""
        now = [(value, before, state) for value, before in self.before if self.is_later and not is_same(state := state_of(value), before)]
        try:
            for value, before, _ in now:
                set_state(value, before)
            yield self.function(which, values)
        finally:
            for value, _, state in now:
                set_state(value, state)


def state_of(value: Any) -> State:
    """What a value refers to and can lose."""
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents if is_filled(cell) else MISSING for cell in value.__closure__ or ()]
        return cells, [], {}, {"__defaults__": value.__defaults__, "__kwdefaults__": value.__kwdefaults__}
    return ([], list(list.__iter__(value)) if isinstance(value, list) else [], dict(dict.items(value)) if isinstance(value, dict) else {},
            {} if isinstance(value, partial) else dict(attributes(value)))      # a partial never changes


def is_same(one: State, other: State) -> bool:
    """Do two states refer to the same objects?"""
    parts = [(list(a), list(b)) for a, b in zip(one, other, strict=True)]      # of dicts the keys
    parts += [(list(a.values()), list(b.values())) for a, b in zip(one[2:], other[2:], strict=True)]
    return all(len(a) == len(b) and all(map(operator.is_, a, b)) for a, b in parts)


def set_state(value: Any, state: State) -> None:
    """Let a value refer to what a state says."""
    cells, items, pairs, named = state
    if isinstance(value, FunctionType):
        for cell, contents in zip(value.__closure__ or (), cells, strict=True):
            if contents is not MISSING:
                cell.cell_contents = contents
            elif is_filled(cell):
                del cell.cell_contents
    if isinstance(value, list):
        list.__setitem__(value, slice(None), items)
    if isinstance(value, dict):
        dict.clear(value)
        dict.update(value, pairs)
    own = dict(attributes(value))
    for name in own.keys() - named.keys():
        object.__delattr__(value, name)
    for name, each in named.items():
        if own.get(name, MISSING) is not each:
            object.__setattr__(value, name, each)       # a class may forbid its own
