"""Calls of a jitted function under a layer (inside `grad`, `vmap`, `trace` or another `jit`), where the Python function itself runs.

It gets the caller's own lists and dicts, since what it writes into them is the caller's. As elsewhere, its arrays are tensors: where some
container holds an array, the function gets copies of all containers, and what it changes in them is changed in the caller's.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

from irtool.dispatch.transforms import as_tensor, becomes_tensor
from irtool.execute.jit_results import replace_contents


def run_on_layer(function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The function's result, by operations on the layer on top."""
    if not hold_arrays([*args, *named.values()]):
        return function(*map(as_tensor, args), **{name: as_tensor(each) for name, each in named.items()})
    copies = Copies()
    try:
        return function(*map(copies.of, args), **{name: copies.of(each) for name, each in named.items()})
    finally:
        copies.write_back()


def hold_arrays(values: Sequence[Any]) -> bool:
    """Does a container among values hold an array, at any depth?"""
    containers = [each for each in values if isinstance(each, list | tuple | dict)]
    seen = set()
    while containers:
        container = containers.pop()
        if id(container) not in seen:       # it may hold itself
            seen.add(id(container))
            for each in container.values() if isinstance(container, dict) else container:
                if isinstance(each, list | tuple | dict):
                    containers.append(each)
                elif becomes_tensor(each):
                    return True
    return False


class Copies:
    """Copies of the containers of one call, with tensors for arrays. What is in several places is copied once, so that it stays one."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, Any]] = {}         # values and their copies, by the id of the value
        self.origins: dict[int, tuple[Any, Any]] = {}       # the same, by the id of the copy
        self.containers: list[tuple[Any, Any, list[Any]]] = []      # lists and dicts, their copies, and what is in these before the call

    def of(self, value: Any) -> Any:
        """The copy of a container, the tensor of an array; any other value unchanged."""
        if id(value) in self.known:
            return self.known[id(value)][1]
        if isinstance(value, list | dict):
            copied = self.note(value, copy(value))      # before its items, which may refer to it
            for key, each in list(value.items() if isinstance(value, dict) else enumerate(value)):
                copied[key] = self.of(each)
            self.containers.append((value, copied, contents(copied)))
            return copied
        if isinstance(value, tuple):
            return self.note(value, with_parts(value, [self.of(each) for each in value]))
        return self.note(value, as_tensor(value)) if becomes_tensor(value) else value

    def note(self, value: Any, copied: Any) -> Any:
        """Note a copy, and return it."""
        self.known[id(value)] = self.origins[id(copied)] = value, copied
        return copied

    def write_back(self) -> None:
        """Change the caller's containers as the function has changed the copies."""
        seen: set[int] = set()
        for container, copied, before in self.containers:
            if not are_same(contents(copied), before):
                replace_contents(container, self.returned_parts(copied, seen))

    def returned(self, value: Any, seen: set[int]) -> Any:
        """What stands for a value in the caller's containers: what it is a copy of; new containers are changed so that they hold that.
        seen: the ids of those that are changed already."""
        if id(value) in self.origins:
            return self.origins[id(value)][0]
        if isinstance(value, tuple):
            return with_parts(value, self.returned_parts(value, seen))
        if isinstance(value, list | dict) and id(value) not in seen:
            seen.add(id(value))
            before = contents(value)
            parts = self.returned_parts(value, seen)
            if not are_same(contents(parts), before):
                replace_contents(value, parts)
        return value

    def returned_parts(self, container: Any, seen: set[int]) -> Any:
        """The same for all that is in a container: a dict for a dict, else a list."""
        if isinstance(container, dict):
            return {key: self.returned(each, seen) for key, each in container.items()}
        return [self.returned(each, seen) for each in container]


def contents(container: Any) -> list[Any]:
    """What is in a list or dict, with the keys of a dict."""
    return [*container, *container.values()] if isinstance(container, dict) else [*container]


def are_same(some: list[Any], others: list[Any]) -> bool:
    """Are the items of two lists the same objects?"""
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


def with_parts(value: Any, parts: list[Any]) -> Any:
    """A tuple with other parts; itself, if they are the same objects."""
    if are_same(list(value), parts):
        return value
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
