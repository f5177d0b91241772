"""Functions that read tensors of the function around them, as functions that are given these tensors.

A branch that a layer runs below itself must see its tensors as the layer below does. What a function reads of its surroundings lies in
the cells of its closure, in its defaults, and in those of functions there: all these are looked through.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import CellType, FunctionType
from typing import Any

from irtool.dispatch.stack import Boxed

Function = Callable[..., Any]


class Lifted:
    """Functions, and the tensors in boxes of layers that they read around them."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self.functions = list(functions)
        read: dict[int, Boxed] = {}
        seen: set[int] = set()
        for function in self.functions:
            read.update((id(value), value) for value in around(function, seen))
        self.tensors: list[Any] = list(read.values())
        """What is read, each tensor once."""

    def function(self, which: int, values: Sequence[Any]) -> Function:
        """One of the functions, that reads `values` instead."""
        instead = {id(tensor): value for tensor, value in zip(self.tensors, values, strict=True)}
        return exchanged(self.functions[which], instead, {}) if instead else self.functions[which]


def around(value: Any, seen: set[int]) -> Iterator[Boxed]:
    """The boxes that a function's closure and defaults hold; those of a value in it."""
    if isinstance(value, Boxed):
        yield value
    elif isinstance(value, FunctionType | partial | list | tuple | dict):
        if id(value) in seen:
            return
        seen.add(id(value))
        for each in held(value):
            yield from around(each, seen)


def held(value: Any) -> list[Any]:
    """What a function, list, tuple or dict holds."""
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, FunctionType):
        return [*[cell.cell_contents for cell in value.__closure__ or () if is_filled(cell)], *(value.__defaults__ or ()),
                *(value.__kwdefaults__ or {}).values()]
    return list(value.values() if isinstance(value, dict) else value)


def is_filled(cell: CellType) -> bool:
    """Has the variable of a cell a value?"""
    try:
        cell.cell_contents  # noqa: B018  asking is what raises
    except ValueError:
        return False
    return True


def exchanged(value: Any, instead: dict[int, Any], copies: dict[int, Any]) -> Any:
    """A copy of a value with other tensors in it; the value where it holds none of them. copies: the copies so far, by id of the value."""
    if isinstance(value, Boxed):
        return instead.get(id(value), value)
    if not isinstance(value, FunctionType | partial | list | tuple | dict):
        return value
    if id(value) not in copies:
        if not any(id(each) in instead for each in around(value, set())):
            return value
        copies[id(value)] = None      # of a list that holds itself
        copies[id(value)] = copied(value, instead, copies)
    return copies[id(value)]


def copied(value: Any, instead: dict[int, Any], copies: dict[int, Any]) -> Any:
    """A copy of a function, list, tuple or dict, with other tensors in it."""
    def other(each: Any) -> Any:
        return exchanged(each, instead, copies)
    if isinstance(value, dict):
        return {key: other(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        items = [other(each) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, partial):
        return partial(other(value.func), *map(other, value.args), **{name: other(each) for name, each in value.keywords.items()})
    cells = tuple([CellType() for _ in value.__closure__ or ()])
    copy = copies[id(value)] = FunctionType(value.__code__, value.__globals__, value.__name__, None, cells)
    copy.__defaults__ = other(value.__defaults__) if value.__defaults__ else None
    copy.__kwdefaults__ = other(value.__kwdefaults__) if value.__kwdefaults__ else None
    copy.__dict__.update(value.__dict__)
    for cell, before in zip(cells, value.__closure__ or (), strict=True):
        if is_filled(before):
            cell.cell_contents = other(before.cell_contents)
    return copy


__all__ = ["Lifted"]
