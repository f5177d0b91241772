"""Closure conversion: functions that read tensors of surrounding functions become functions that take these tensors as arguments.

A layer that runs a branch on the layer below must open the boxes of all tensors that the branch reads. Such tensors are in the cells of
the function's closure, in its defaults, and in those of functions that it reads in turn: all these are searched.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import CellType, FunctionType
from typing import Any

from irtool.dispatch.stack import Boxed

Function = Callable[..., Any]


class Lifted:
    """Functions, and the boxed tensors that they read from outside."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self.functions = list(functions)
        read: dict[int, Boxed] = {}
        seen: set[int] = set()
        for function in self.functions:
            read.update((id(value), value) for value in around(function, seen))
        self.tensors: list[Any] = list(read.values())
        """The tensors read, each once."""

    def function(self, which: int, values: Sequence[Any]) -> Function:
        """A copy of one of the functions that reads `values` instead of `tensors`."""
        instead = {id(tensor): value for tensor, value in zip(self.tensors, values, strict=True)}
        return exchanged(self.functions[which], instead, {}) if instead else self.functions[which]


def around(value: Any, seen: set[int]) -> Iterator[Boxed]:
    """The boxes in a value: for a function, those in its closure and defaults."""
    if isinstance(value, Boxed):
        yield value
    elif isinstance(value, FunctionType | partial | list | tuple | dict):
        if id(value) in seen:
            return
        seen.add(id(value))
        for each in held(value):
            yield from around(each, seen)


def held(value: Any) -> list[Any]:
    """The values that a function, list, tuple or dict refers to."""
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, FunctionType):
        return [*[cell.cell_contents for cell in value.__closure__ or () if is_filled(cell)], *(value.__defaults__ or ()),
                *(value.__kwdefaults__ or {}).values()]
    return list(value.values() if isinstance(value, dict) else value)


def is_filled(cell: CellType) -> bool:
    """Has a cell a value?"""
    try:
        cell.cell_contents  # noqa: B018  asking is what raises
    except ValueError:
        return False
    return True


def exchanged(value: Any, instead: dict[int, Any], copies: dict[int, Any]) -> Any:
    """A copy of a value with tensors replaced; the value itself if it contains none of them. copies: the copies so far, by id."""
    if isinstance(value, Boxed):
        return instead.get(id(value), value)
    if not isinstance(value, FunctionType | partial | list | tuple | dict):
        return value
    if id(value) not in copies:
        if not any(id(each) in instead for each in around(value, set())):
            return value
        copies[id(value)] = None      # ends the recursion for a list that contains itself
        copies[id(value)] = copied(value, instead, copies)
    return copies[id(value)]


def copied(value: Any, instead: dict[int, Any], copies: dict[int, Any]) -> Any:
    """A copy of a function, list, tuple or dict, with tensors replaced."""
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
