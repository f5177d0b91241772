"""What a jitted function reads from outside its arguments: globals, variables of enclosing functions, attributes, items of containers.

A trace contains the values that these had. `irtool.execute.jit_reached` finds their places by the names in the function's code, and in
all code that it reaches; before each call `Surroundings` compares the values there with those of the last call. So a changed value gives
another trace, as a changed argument does. What the function itself changes while it is traced is no change. Elements of tensors, and of
arrays that are operands, are not compared: the graph reads those itself.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.execute.jit_arguments import Same, array_of, by_value, has_identity
from irtool.execute.jit_reached import MISSING, Known, Walk, are_same, content, facts_of, instance_of, is_of_library, walked
from irtool.ops.array_library import np
from irtool.ops.tensor import Tensor

Test = Callable[[Walk], bool]
PLAIN = frozenset((Tensor, np.ndarray, int, float, complex, bool, str, bytes, type(None)))
"""Classes of arguments that have neither code of their own nor contents beside elements."""
COMMON = PLAIN | {list, tuple, dict}


class Surroundings:
    """The values that a function, or a tuple of a function and objects, reads from outside, as they were when they were last looked at."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.keys: dict[Any, Any] | None = None         # of values by keys of places; None: never looked at
        self.known = Known()
        self.walk = Walk(self.known)
        self.tests: list[Test] = []         # of the walk, those that have something to test
        self.opaque = ""        # what the function reads that cannot be compared, in words: no trace holds for another call

    def has_changed(self) -> bool:
        """Has some place another value than at the last comparison?"""
        for test in self.tests:
            if test(self.walk):
                return True
        return self.keys is None

    def look(self) -> tuple[Any, str]:
        """A hashable key of all values, and the first place whose value is another than before, in words; empty if there is none."""
        walk = walked(self.function, self.known)
        keys, earlier, names = walk.keys, self.keys, self.walk.names
        changed = "" if earlier is None else next((walk.names.get(place) or names[place] for place in keys.keys() | earlier.keys()
                                                   if keys.get(place, MISSING) != earlier.get(place, MISSING)), "")
        self.tests = tests_of(walk)
        self.walk, self.keys, self.opaque = walk, keys, walk.opaque
        return self.key, changed

    @property
    def key(self) -> Any:
        """A hashable key of all values, as they were at the last look."""
        return tuple((self.keys or {}).items())

    def accept_changes(self) -> bool:
        """Take what has changed since the last look as unchanged: the function has changed it. Has anything?"""
        if not self.has_changed():
            return False
        self.look()
        return True

    def take_inputs(self, arrays: list[Any]) -> Callable[[Any], Any] | None:
        """Compare the elements of arrays no longer, since a graph reads them. Returns a function that takes these elements out of keys of
        earlier looks; None if there are none."""
        new = {(id(each), "items") for each in arrays if id(each) not in self.known.inputs}
        if not new:
            return None
        self.known.inputs.update({id(each): each for each in arrays})
        self.look()
        return lambda key: tuple([item for item in key if item[0] not in new])


def tests_of(walk: Walk) -> list[Test]:
    """The tests whether something in a walk has changed."""
    tests: list[Test] = [have_variables_changed] if walk.entries or walk.cells else []
    if walk.functions or walk.spaces:
        tests.append(have_functions_changed)
    if walk.classes or walk.objects or walk.orders:
        tests.append(have_classes_changed)
    if walk.containers or walk.dicts or walk.arrays or walk.others:
        tests.append(have_contents_changed)
    return tests


def have_variables_changed(walk: Walk) -> bool:
    """Has a variable or an attribute another value?"""
    for namespace, name, value in walk.entries:
        if namespace.get(name, MISSING) is not value:
            return True
    for cell, value in walk.cells:
        if content(cell) is not value:
            return True
    return False


def have_functions_changed(walk: Walk) -> bool:
    """Has a function other code or default values, or a namespace other names?"""
    for namespace, names in walk.spaces:
        if len(namespace) != len(names) or names and tuple(namespace) != names:
            return True
    for function, code, defaults, named in walk.functions:
        if function.__code__ is not code or function.__defaults__ is not defaults or function.__kwdefaults__ is not named:
            return True
    return False


def have_classes_changed(walk: Walk) -> bool:
    """Is an attribute looked up elsewhere?"""
    for namespace, count, last in walk.classes:     # a new name is the last one
        if len(namespace) != count or next(reversed(namespace)) != last:
            return True
    for kind, order in walk.orders:
        if kind.__mro__ is not order:
            return True
    for value, kind, own in walk.objects:
        if value.__class__ is not kind or own is not None and value.__dict__ is not own:
            return True
    return False


def have_contents_changed(walk: Walk) -> bool:
    """Has a container other items, or a tensor other sizes?"""
    for container, items in walk.containers:
        if not are_same(container, items):
            return True
    for container, keys, items in walk.dicts:
        if not are_same(container, keys) or not are_same(container.values(), items):
            return True
    for array, facts in walk.arrays:
        if facts_of(array) != facts:
            return True
    for other in walk.others:
        if other():
            return True
    return False


def held_by(leaves: Sequence[Any], shape: Any) -> dict[Any, Any]:
    """What a function may read from arguments beside their values, by key: leaves that are compared by identity (functions, sets, objects
    with attributes), and those of classes with code of their own, as well as such classes of containers."""
    held: dict[Any, Any] = {}
    for leaf in leaves:
        kind = leaf.__class__
        if kind in COMMON or array_of(leaf) is not None or isinstance(leaf, np.generic) and is_of_library(kind):
            continue
        key = by_value(leaf)
        if has_identity(key) or not is_of_library(kind) or instance_of(leaf) is not None:
            held[key] = leaf
    containers = [shape]
    while containers:
        container = containers.pop()
        if isinstance(container, list | tuple | dict):
            if container.__class__ not in COMMON and not is_of_library(container.__class__):
                held[Same(container.__class__)] = container.__class__
            containers += container.values() if isinstance(container, dict) else container
    return held
