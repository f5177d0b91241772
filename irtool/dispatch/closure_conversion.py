"""Closure conversion: functions that read tensors of surrounding functions become functions that take these tensors as arguments.

A layer that runs a branch on the layer below must open the boxes of all tensors that the branch reads. Such tensors are in the cells of
the function's closure, in its defaults, in the object whose method it is, and in the functions, containers and objects of users' classes
that are found there in turn: all these are searched. Global variables are not.
"""
from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import CellType, FunctionType, MemberDescriptorType, MethodType, SimpleNamespace
from typing import Any

from irtool.dispatch.stack import Boxed
from irtool.ops.tensor import Tensor

Function = Callable[..., Any]
HEAP_TYPE = 1 << 9
"""The flag of classes that are made when Python runs, as by a class statement."""
LIBRARIES = frozenset(["irtool", "numpy", *sys.stdlib_module_names]) - {"__main__"}
"""Packages in whose objects no tensor of a layer is looked for."""
MISSING = object()


class Lifted:
    """Functions, and the boxed tensors that they read from outside. since: and other tensors with a larger number of birth."""

    def __init__(self, functions: Sequence[Function], since: float = math.inf) -> None:
        self.functions = list(functions)
        read: dict[int, Tensor] = {}
        self.searched: dict[int, Any] = {}
        """The functions, containers and objects in which the tensors were looked for, by id."""
        for function in self.functions:
            found = around(function, self.searched)
            read.update((id(value), value) for value in found if isinstance(value, Boxed) or value.born > since)
        self.tensors: list[Any] = list(read.values())
        """The tensors read, each once."""

    def function(self, which: int, values: Sequence[Any]) -> Function:
        """A copy of one of the functions that reads `values` instead of `tensors`."""
        instead = {id(tensor): value for tensor, value in zip(self.tensors, values, strict=True)}
        return exchanged(self.functions[which], instead, {}) if instead else self.functions[which]


def around(value: Any, seen: dict[int, Any]) -> Iterator[Tensor]:
    """The tensors in a value: for a function, those in its closure and defaults; for an object, those in its attributes. seen: what was
    searched, by id."""
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, Tensor):
            yield value
        elif is_searched(value) and id(value) not in seen:
            seen[id(value)] = value
            todo += reversed(held(value))


def is_searched(value: Any) -> bool:
    """Is a value a function, a container, or an object of a class that is written in Python and no part of a library?"""
    if isinstance(value, FunctionType | MethodType | partial | list | tuple | dict | SimpleNamespace):
        return True
    kind = type(value)
    return is_written_in_python(kind) and not isinstance(value, type | Tensor) and str(kind.__module__).partition(".")[0] not in LIBRARIES


def is_written_in_python(kind: type) -> bool:
    """Is a class made by a class statement?"""
    return bool(kind.__flags__ & HEAP_TYPE)


def held(value: Any) -> list[Any]:
    """The values that a function, a container or an object refers to."""
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, FunctionType):
        return [*[cell.cell_contents for cell in value.__closure__ or () if is_filled(cell)], *(value.__defaults__ or ()),
                *(value.__kwdefaults__ or {}).values()]
    items = list(value.values() if isinstance(value, dict) else value) if isinstance(value, list | tuple | dict) else []
    return items + [each for _, each in attributes(value)]


def attributes(value: Any) -> list[tuple[str, Any]]:
    """The names and values of an object's own attributes, also of those in `__slots__`."""
    if not is_written_in_python(type(value)) and not isinstance(value, SimpleNamespace):
        return []       # a plain list or dict
    found = list(getattr(value, "__dict__", {}).items())
    for kind in filter(is_written_in_python, type(value).__mro__):
        for name, slot in vars(kind).items():
            if isinstance(slot, MemberDescriptorType) and (each := getattr(value, name, MISSING)) is not MISSING:
                found.append((name, each))
    return found


def is_filled(cell: CellType) -> bool:
    """Has a cell a value?"""
    try:
        cell.cell_contents  # noqa: B018  asking is what raises
    except ValueError:
        return False
    return True


def exchanged(value: Any, instead: dict[int, Any], copies: dict[int, Any]) -> Any:
    """A copy of a value with tensors replaced; the value itself if it contains none of them. copies: the copies so far, by id."""
    if isinstance(value, Tensor):
        return instead.get(id(value), value)
    if not is_searched(value):
        return value
    if id(value) not in copies:
        if not any(id(each) in instead for each in around(value, {})):
            return value
        copies[id(value)] = None      # ends the recursion for a tuple that contains itself
        copies[id(value)] = copied(value, instead, copies)
    return copies[id(value)]


def copied(value: Any, instead: dict[int, Any], copies: dict[int, Any]) -> Any:
    """A copy of a function, container or object, with tensors replaced. What may contain itself is in `copies` before its parts are."""
    def other(each: Any) -> Any:
        return exchanged(each, instead, copies)
    if isinstance(value, dict | list) and not is_written_in_python(type(value)):
        copy: Any = value.copy()        # before its items, which may contain it
        copies[id(value)] = copy
        for key in copy if isinstance(copy, dict) else range(len(copy)):
            copy[key] = other(copy[key])
        return copy
    if isinstance(value, tuple):
        items = [other(each) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, partial):
        return partial(other(value.func), *map(other, value.args), **{name: other(each) for name, each in value.keywords.items()})
    if isinstance(value, MethodType):
        return MethodType(other(value.__func__), other(value.__self__))
    return copied_function(value, other, copies) if isinstance(value, FunctionType) else copied_object(value, other, copies)


def copied_function(value: FunctionType, other: Callable[[Any], Any], copies: dict[int, Any]) -> FunctionType:
    """A copy of a function with another closure and other defaults."""
    cells = tuple([CellType() for _ in value.__closure__ or ()])
    copy = copies[id(value)] = FunctionType(value.__code__, value.__globals__, value.__name__, None, cells)
    copy.__defaults__ = other(value.__defaults__) if value.__defaults__ else None
    copy.__kwdefaults__ = other(value.__kwdefaults__) if value.__kwdefaults__ else None
    copy.__dict__.update(value.__dict__)
    for cell, before in zip(cells, value.__closure__ or (), strict=True):
        if is_filled(before):
            cell.cell_contents = other(before.cell_contents)
    return copy


def copied_object(value: Any, other: Callable[[Any], Any], copies: dict[int, Any]) -> Any:
    """A copy of an object with other attributes and items; the object itself if its class does not make one."""
    base = next((each for each in (dict, list, SimpleNamespace) if isinstance(value, each)), object)
    try:
        copy = copies[id(value)] = base.__new__(type(value))
    except TypeError:       # the class is partly in C
        return value
    for name, each in attributes(value):
        object.__setattr__(copy, name, other(each))     # a class may forbid its own
    if base is dict:
        dict.update(copy, [(key, other(each)) for key, each in dict.items(value)])
    elif base is list:
        list.extend(copy, map(other, list.__iter__(value)))
    return copy
