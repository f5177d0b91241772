"""What a jitted function reads from outside its arguments: globals, variables of enclosing functions, attributes, items of containers.

A trace contains the values that these had. `Surroundings` finds their places by the names in the function's code, and in the code of the
functions and methods that it reaches; before each call it compares the values there with those of the last call. So a changed value
gives another trace, as a changed argument does. What the function itself changes while it is traced is not compared, and neither are the
items of containers of more than MAX_ITEMS items, modules of the standard library, and elements of arrays: the graph reads those itself.
"""
from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from irtool.execute.jit_arguments import Same, by_value
from irtool.ops.array_library import np
from irtool.ops.tensor import Tensor

MAX_ITEMS = 1000
MAX_DEPTH = 8
PLAIN = (int, float, complex, bool, str, bytes, type(None))
"""Classes of values that are compared by value, not by identity."""
LIBRARIES = frozenset(("irtool", "numpy", "scipy", *sys.stdlib_module_names)) - {"__main__"}
"""Packages whose modules and functions do not change between calls."""
READ = (*PLAIN, Tensor, np.ndarray, list, tuple, dict, FunctionType, MethodType, staticmethod, classmethod, property, partial)
"""Classes of values that are looked at although a library defines them."""
MISSING = object()


class Surroundings:
    """The values that a function reads from outside its arguments, as they were when they were last looked at."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.ignored: set[Any] = set()          # keys of places that the function changes itself
        self.keys: dict[Any, Any] | None = None         # of values by keys of places; None: never looked at
        self.names: dict[Any, str] = {}
        self.entries: list[tuple[Mapping[str, Any], str, Any]] = []     # namespace, name and value
        self.cells: list[tuple[CellType, Any]] = []
        self.containers: list[tuple[Any, list[Any]]] = []

    def has_changed(self) -> bool:
        """Has some place another value than at the last comparison?"""
        for namespace, name, value in self.entries:
            if namespace.get(name, MISSING) is not value:
                return True
        for cell, value in self.cells:
            if content(cell) is not value:
                return True
        for container, items in self.containers:
            if len(container) != len(items) or not all(map(operator.is_, items_of(container), items)):
                return True
        return self.keys is None

    def look(self) -> tuple[Any, str]:
        """A hashable key of all values, and the first place whose value is another than before, in words; empty if there is none."""
        walk = Walk(self.ignored)
        walk.reach(self.function, 0)
        keys, earlier = walk.keys, self.keys
        changed = "" if earlier is None else next((walk.names.get(place) or self.names[place] for place in keys.keys() | earlier.keys()
                                                   if keys.get(place, MISSING) != earlier.get(place, MISSING)), "")
        self.entries, self.cells, self.containers = walk.entries, walk.cells, walk.containers
        self.keys, self.names = keys, walk.names
        return self.key, changed

    @property
    def key(self) -> Any:
        """A hashable key of all values, as they were at the last look."""
        return tuple((self.keys or {}).items())

    def ignore_changes(self, earlier: dict[Any, Any]) -> bool:
        """Leave out, from now on, what has changed since the values had the keys `earlier`: the function has changed it. Has anything?"""
        if not self.has_changed():
            return False
        self.look()
        now = self.keys or {}
        self.ignored |= {place for place in now.keys() | earlier.keys() if now.get(place, MISSING) != earlier.get(place, MISSING)}
        self.look()
        return True


class Walk:
    """One walk over what a function reaches."""

    def __init__(self, ignored: set[Any]) -> None:
        self.ignored = ignored
        self.keys: dict[Any, Any] = {}
        self.names: dict[Any, str] = {}
        self.entries: list[tuple[Mapping[str, Any], str, Any]] = []
        self.cells: list[tuple[CellType, Any]] = []
        self.containers: list[tuple[Any, list[Any]]] = []
        self.seen: set[Any] = set()

    def reach(self, value: Any, depth: int, names: tuple[str, ...] = ()) -> None:
        """Walk on from a value, which code reads that contains `names`."""
        if isinstance(value, (*PLAIN, Tensor, np.ndarray)) or depth > MAX_DEPTH or (id(value), names) in self.seen:
            return
        self.seen.add((id(value), names))
        if isinstance(value, MethodType):
            self.reach(value.__func__, depth + 1)
            self.reach(value.__self__, depth + 1, names_of(value.__func__))
        elif isinstance(value, FunctionType):
            self.reach_function(value, depth)
        elif isinstance(value, partial):
            for each in (value.func, value.args, value.keywords):
                self.reach(each, depth + 1, names)
        elif isinstance(value, list | tuple | dict):
            self.reach_items(value, depth, names)
        elif "__wrapped__" in attributes(value):
            self.reach(value.__wrapped__, depth + 1)
        elif not is_of_library(value):
            self.reach_attributes(value, depth, names)

    def reach_function(self, function: FunctionType, depth: int) -> None:
        """The variables of enclosing functions and the globals that a function's code names; of a function of a library only the former,
        since what `irtool.grad` returns holds the user's function there."""
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            value = content(cell)
            if self.note((id(cell), ""), name, value_key(value)):
                self.cells.append((cell, value))
                self.reach(value, depth + 1, names_of(function))
        if not is_of_library(function):
            for name in names_of(function):
                if name in function.__globals__:
                    self.entry(function.__globals__, function.__globals__, name, name, depth, names_of(function))
        self.reach(attributes(function).get("__wrapped__"), depth + 1)

    def reach_items(self, container: Any, depth: int, names: tuple[str, ...]) -> None:
        """The items of a list, tuple or dict."""
        if len(container) > MAX_ITEMS:
            return
        items = list(items_of(container))
        key = (tuple(container) if isinstance(container, dict) else None, tuple(map(value_key, items)))
        if self.note((id(container), "items"), f"an item of a {type(container).__name__}", key):
            if not isinstance(container, tuple):
                self.containers.append((container, items))
            for each in items:
                self.reach(each, depth + 1, names)

    def reach_attributes(self, value: Any, depth: int, names: tuple[str, ...]) -> None:
        """The attributes of an object, class or module that code names, and its methods."""
        is_module, kind = isinstance(value, ModuleType), value if isinstance(value, type) else type(value)
        owners = () if is_module else kind.__mro__
        label = value.__name__ if is_module else kind.__name__
        for name in names if is_module else (*names, "__call__"):
            owner = next((each for each in owners if name in vars(each)), None)
            if owner is not None and not is_of_library(owner):
                self.entry(owner, vars(owner), name, f"{label}.{name}", depth, names)
                method = vars(owner)[name]
                self.reach(value, depth + 1, names_of(getattr(method, "fget", None) or getattr(method, "__func__", method)))
            if name in attributes(value) and value is not kind:
                self.entry(value, attributes(value), name, f"{label}.{name}", depth, names)

    def entry(self, owner: Any, namespace: Mapping[str, Any], name: str, words: str, depth: int, names: tuple[str, ...]) -> None:
        """A name in the namespace of an owner, and what its value reaches."""
        value = namespace[name]
        if isinstance(value, ModuleType):
            if not is_of_library(value):
                self.reach(value, depth + 1, names)
        elif isinstance(value, READ) or "__wrapped__" in attributes(value) or not is_of_library(value):
            if self.note((id(owner), name), words, value_key(value)):
                self.entries.append((namespace, name, value))
                self.reach(value, depth + 1, names)

    def note(self, place: Any, words: str, key: Any) -> bool:
        """Enter the key of the value of a place; False if it is there already, or the place is ignored."""
        if place in self.keys or place in self.ignored:
            return False
        self.keys[place] = key
        self.names[place] = words
        return True


def value_key(value: Any) -> Any:
    """A hashable key: by value for numbers, texts and keys; else by identity."""
    return by_value(value) if isinstance(value, PLAIN) else Same(value)


def attributes(value: Any) -> Mapping[str, Any]:
    """The attributes that an object itself has; its class has others."""
    namespace: Mapping[str, Any] = getattr(value, "__dict__", {})
    return namespace


def content(cell: CellType) -> Any:
    """The value of a variable of an enclosing function; MISSING before its assignment."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def items_of(container: Any) -> Any:
    """The items of a list or tuple, the values of a dict."""
    return container.values() if isinstance(container, dict) else container


def names_of(function: Any) -> tuple[str, ...]:
    """The names of globals and attributes in a function's code, and in that of the functions inside it."""
    code = getattr(function, "__code__", None)
    return () if code is None else tuple(dict.fromkeys(names_in(code)))


def names_in(code: CodeType) -> Iterator[str]:
    """The same for code, with repetitions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def is_of_library(value: Any) -> bool:
    """Is a value a module, function or class of LIBRARIES, a function in C, or an object of such a class?"""
    owner = value if isinstance(value, ModuleType | FunctionType | type) else type(value)
    name = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
    return str(name).partition(".")[0] in LIBRARIES
