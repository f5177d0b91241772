"""One walk over what a function reaches: the values that it may read, each with its place, a key, and a quick test whether it changed.

The walk follows code: of functions, methods, properties and descriptors, and all special methods of the classes of objects that it meets.
All names of attributes in that code are looked up in every object, class and module that it meets, since an object may be passed on from
function to function. Where Python looks first counts too: an attribute of an object hides one of its class, which hides one of a base.
What has no code to follow and no contents to compare (`threading.local`, a `ContextVar`, an iterator) makes the walk `opaque`.
"""
from __future__ import annotations

import operator
import random
import sys
import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence, MutableSet
from contextvars import ContextVar
from functools import cached_property, partial
from io import IOBase
from operator import attrgetter, methodcaller
from types import BuiltinFunctionType, CellType, FunctionType, MappingProxyType, MemberDescriptorType, MethodType, ModuleType
from typing import Any
from weakref import ref

from irtool.execute.jit_arguments import Same, array_of, by_value
from irtool.execute.jit_reads import reads_of
from irtool.ir.arguments import with_article
from irtool.ops.array_library import np
from irtool.ops.structure import Object
from irtool.ops.tensor import Tensor

MAX_ITEMS = 1000
MAX_PLACES = 20_000
PLAIN = (int, float, complex, bool, str, bytes, type(None), np.generic)
"""Classes of values that are compared by value, not by identity."""
ARRAY_LIBRARIES = frozenset(("irtool", "numpy", "scipy"))
LIBRARIES = ARRAY_LIBRARIES | frozenset(sys.stdlib_module_names) - {"__main__"}
"""Packages whose modules and functions do not change between calls."""
CODE = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)
"""Classes of values that a module has as a rule for good."""
UNCOMPARED = (threading.local, ContextVar, random.Random, np.random.Generator, np.random.RandomState)
"""Classes of values that give something else from call to call, or from thread to thread, which nothing shows."""
CONTAINERS = (list, tuple, dict, set, frozenset, deque, MappingProxyType)
MISSING = object()
BEING_WALKED: dict[Any, Any] = {"": "being walked"}
CHANGED: dict[Any, Any] = {"": "changed"}
NOTHING: Mapping[str, Any] = MappingProxyType({})
Namespace = Mapping[str, Any]


class Known:
    """What walks know of earlier ones. inputs: arrays whose elements graphs read in each run, by id; cached: functions with a cache, by id,
    each with what it read from outside when a walk first met it, or CHANGED."""

    def __init__(self) -> None:
        self.inputs: dict[int, Any] = {}
        self.cached: dict[int, tuple[Any, dict[Any, Any]]] = {}


class Walk:
    """One walk. attributes: the names of attributes in all code that it may meet, as far as they are known; `found`: those it met.
    is_whole: does some code compute names, so that all attributes are compared?"""

    def __init__(self, known: Known, attributes: tuple[str, ...] = (), is_whole: bool = False) -> None:
        self.known = known
        self.attributes = attributes
        self.is_whole = is_whole
        self.found: dict[str, None] = {}
        self.found_whole = False
        self.keys: dict[Any, Any] = {}
        self.names: dict[Any, str] = {}
        self.entries: list[tuple[Namespace, str, Any]] = []
        self.spaces: list[tuple[Namespace, tuple[str, ...]]] = []       # namespaces, and all names in them
        self.classes: list[tuple[Any, int, str]] = []           # namespaces of classes, the number of names, and the last
        self.objects: list[tuple[Any, type, Any]] = []          # objects, their classes and namespaces
        self.orders: list[tuple[type, tuple[type, ...]]] = []   # classes whose attributes are looked up, and where
        self.cells: list[tuple[CellType, Any]] = []
        self.functions: list[tuple[Any, ...]] = []          # function, code, default values
        self.containers: list[tuple[Any, list[Any]]] = []
        self.dicts: list[tuple[Any, list[Any], list[Any]]] = []
        self.arrays: list[tuple[Any, Any]] = []
        self.others: list[Callable[[], bool]] = []          # tests whether something changed
        self.opaque = ""        # what cannot be compared, in words
        self.seen: dict[int, Any] = {}
        self.orders_seen: set[type] = set()
        self.classes_seen: set[type] = set()
        self.pending: deque[Any] = deque()

    def run(self, value: Any) -> None:
        """Walk from a value on."""
        self.pending.append(value)
        while self.pending:
            value = self.pending.popleft()
            if id(value) in self.seen or isinstance(value, PLAIN) and is_of_library(type(value)):
                continue
            self.seen[id(value)] = value
            self.visit(value)
            if len(self.keys) > MAX_PLACES:
                self.opaque = f"it reads more than {MAX_PLACES} values from outside"
                return

    def reach(self, *values: Any) -> None:
        """Visit values later."""
        self.pending += values

    def visit(self, value: Any) -> None:
        """Note what a value has, and reach what it refers to."""
        if isinstance(value, Tensor | np.ndarray):
            self.array(value)
        elif isinstance(value, FunctionType):
            self.function(value)
        elif isinstance(value, MethodType):
            self.reach(value.__func__, value.__self__)
        elif isinstance(value, type):
            self.look_up_in(value, type(value))
        elif isinstance(value, ModuleType):
            self.module(value)
        elif isinstance(value, partial):
            self.reach(value.func, value.args, value.keywords)
        elif isinstance(value, staticmethod | classmethod):
            self.reach(value.__func__)
        elif isinstance(value, property):
            self.reach(value.fget, value.fset)
        elif isinstance(value, cached_property):
            self.reach(value.func)
        elif isinstance(value, attrgetter | methodcaller):
            self.found.update({part: None for each in value.__reduce__()[1] if isinstance(each, str) for part in each.split(".")})
        elif isinstance(value, ref):
            held = value()
            if self.note((id(value), "referent"), "a weak reference", held):
                self.others.append(lambda: value() is not held)
        elif isinstance(value, UNCOMPARED) or isinstance(value, Iterator) and is_of_library(value) and not is_output(value):
            self.opaque = self.opaque or f"it reads {with_article(name_of(type(value)))}, which cannot be compared"
        else:
            self.object(value)

    # -- code
    def function(self, function: FunctionType) -> None:
        """A function: its variables of enclosing functions, the globals and modules that it names, its default values. Of a function of a
        library only the first, since what `irtool.grad` returns holds the user's function there."""
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            value = content(cell)
            if self.note((id(cell), ""), name, value):
                self.cells.append((cell, value))
        space = attributes(function)
        self.reach(space.get("__wrapped__"))
        if is_of_library(function):
            return
        code, defaults, named = function.__code__, function.__defaults__, function.__kwdefaults__
        self.functions.append((function, code, defaults, named))
        self.put((id(function), "code"), f"the code of {function.__name__}", (Same(code), Same(defaults), Same(named)))
        self.reach(defaults, named)
        self.space(function, space, function.__name__)
        reads = reads_of(code)
        self.found.update(dict.fromkeys(reads.attributes))
        self.found_whole = self.found_whole or reads.is_whole
        for name in reads.modules:
            for each in (name, package := function.__globals__.get("__package__"), f"{package}.{name}"):
                if each in sys.modules:
                    self.entry(sys.modules, sys.modules, each, each)
        builtins: dict[str, Any] = function.__builtins__        # type: ignore[attr-defined, unused-ignore]
        for name in reads.names:
            self.entry(function.__globals__, function.__globals__, name, name)
            if name not in function.__globals__ and name not in builtins:
                self.entry(builtins, builtins, name, name)

    def module(self, module: ModuleType) -> None:
        """The attributes of a module. Those of the standard library have data that programs change, such as `os.environ`."""
        if not is_of_library(module):
            for name in (*self.attributes, "__getattr__", *self.all_of(vars(module))):
                self.entry(module, vars(module), name, f"{module.__name__}.{name}")
        elif module.__name__.partition(".")[0] not in ARRAY_LIBRARIES:
            for name in self.attributes:
                if not isinstance(vars(module).get(name, len), CODE):
                    self.entry(module, vars(module), name, f"{module.__name__}.{name}")

    def look_up_in(self, *kinds: type) -> None:
        """What classes and their bases have under the names in code, and their special methods, which code calls without naming them."""
        for kind in kinds:
            if kind in self.orders_seen or is_of_library(kind):
                continue
            self.orders_seen.add(kind)
            self.orders.append((kind, kind.__mro__))
            for each in kind.__mro__:
                if each not in self.classes_seen and not is_of_library(each):
                    self.classes_seen.add(each)
                    space = vars(each)
                    self.classes.append((space, len(space), next(reversed(space))))
                    special = [name for name, value in space.items() if name[:2] == name[-2:] == "__"
                               and isinstance(value, FunctionType | classmethod | staticmethod | property)]
                    self.named(each, space, each.__name__, special)

    # -- values
    def object(self, value: Any) -> None:
        """An object of any other class: its contents, the attributes that it has itself, and those of its classes."""
        self.contents(value)
        kind, space = type(value), attributes(value)
        if "__wrapped__" in space:
            self.reach(value.__wrapped__)
            if hasattr(kind, "cache_clear"):
                self.cache(value)
        elif not is_of_library(kind):
            self.objects.append((value, kind, space if isinstance(space, dict) else None))
            self.space(value, space, kind.__name__)
            self.look_up_in(kind)
            for each in kind.__mro__:
                for name in (*self.attributes, *self.all_of(vars(each))):
                    if isinstance(slot := vars(each).get(name), MemberDescriptorType):
                        self.slot(value, slot, f"{kind.__name__}.{name}")
        elif (instance := instance_of(value)) is not None:
            self.contents(instance.attributes)
        elif str(kind.__module__).partition(".")[0] not in ARRAY_LIBRARIES:
            is_container = isinstance(value, MutableMapping | MutableSequence | MutableSet | Mapping)
            self.space(value, space, kind.__name__, list(space) if is_container else ())

    def slot(self, value: Any, slot: Any, words: str) -> None:
        """An attribute in `__slots__`."""
        def current() -> Any:
            try:
                return slot.__get__(value)
            except AttributeError:
                return MISSING
        held = current()
        if self.note((id(value), slot), words, held):
            self.others.append(lambda: current() is not held)

    def cache(self, value: Any) -> None:
        """A function with a cache. What it reads from outside may change, and then its results may be of earlier times, until the cache is
        cleared, which nothing shows."""
        _, first = self.known.cached.get(id(value), (value, None))
        if first is BEING_WALKED:       # it calls itself
            return
        self.known.cached[id(value)] = value, BEING_WALKED
        known = Known()         # without inputs: the function may read their elements
        known.cached = self.known.cached
        inner = walked(value.__wrapped__, known)
        self.known.cached[id(value)] = value, inner.keys if first is None else first
        if first is not None and (first is CHANGED or first != inner.keys):
            self.known.cached[id(value)] = value, CHANGED
            self.opaque = self.opaque or f"it calls {value.__name__}, whose cached results may be of before a change of what it reads"
        self.opaque = self.opaque or inner.opaque

    def array(self, value: Any) -> None:
        """A tensor or array: its dtype, sizes and strides. The graph reads the elements, except those of arrays that are no operands: of
        these NumPy reads them while the function is traced."""
        facts = facts_of(value)
        self.arrays.append((value, facts))
        self.put((id(value), "sizes"), "the sizes of a tensor", facts)
        if isinstance(value, np.ndarray) and id(value) not in self.known.inputs and value.size <= MAX_ITEMS and not value.dtype.hasobject:
            held = value.tobytes()
            self.put((id(value), "items"), "an element of an array", held)
            self.others.append(lambda: value.tobytes() != held)

    def contents(self, value: Any) -> None:
        """The items of a container of Python or its standard library."""
        words = f"an item of a {type(value).__name__}"
        if isinstance(value, bytearray | array | memoryview):
            held = bytes(value)
            self.put((id(value), "items"), words, held)
            self.others.append(lambda: bytes(value) != held)
        elif (base := container_of(value)) is None:
            return
        elif base.__len__(value) > MAX_ITEMS:
            count = base.__len__(value)
            self.put((id(value), "items"), words, count)
            self.others.append(lambda: base.__len__(value) != count)
        else:
            names, items = list(base.__iter__(value)), list(base.values(value)) if base in (dict, MappingProxyType) else []
            self.put((id(value), "items"), words, (tuple(map(value_key, names)), tuple(map(value_key, items))))
            self.reach(*names, *items)
            if type(value).__iter__ is not base.__iter__ or type(value).__len__ is not base.__len__:
                self.others.append(lambda: not are_same(list(base.__iter__(value)), names)
                                   or base in (dict, MappingProxyType) and not are_same(list(base.values(value)), items))
            elif base in (dict, MappingProxyType):
                self.dicts.append((value, names, items))
            elif base not in (tuple, frozenset):
                self.containers.append((value, names))

    # -- places
    def space(self, owner: Any, namespace: Namespace, label: str, more: Any = ()) -> None:
        """The names in a namespace that code reads, and `more`."""
        self.spaces.append((namespace, tuple(namespace)))
        self.named(owner, namespace, label, more)

    def named(self, owner: Any, namespace: Namespace, label: str, more: Any = ()) -> None:
        """The same of a namespace that is compared in another way."""
        for name in (*self.attributes, *more, *self.all_of(namespace)):
            if name in namespace:
                self.entry(owner, namespace, name, f"{label}.{name}")

    def all_of(self, namespace: Namespace) -> list[str]:
        """All names in a namespace, if code computes names, except special ones."""
        return [name for name in namespace if name[:2] != "__"] if self.is_whole else []

    def entry(self, owner: Any, namespace: Namespace, name: str, words: str) -> None:
        """A name in the namespace of an owner; it need not be there."""
        value = namespace.get(name, MISSING)
        if self.note((id(owner), name), words, value):
            self.entries.append((namespace, name, value))

    def note(self, place: Any, words: str, value: Any) -> bool:
        """Enter the value of a place, and reach it; False if the place is known."""
        if place in self.keys:
            return False
        self.keys[place] = value_key(value)
        self.names[place] = words
        self.reach(value)
        return True

    def put(self, place: Any, words: str, key: Any) -> None:
        """Enter a key for a place."""
        self.keys[place] = key
        self.names[place] = words


def walked(function: Any, known: Known) -> Walk:
    """The walk from a function that knows the names of attributes in all code that it meets."""
    walk = Walk(known)
    walk.run(function)
    while not walk.opaque and (len(walk.found) > len(walk.attributes) or walk.found_whole > walk.is_whole):
        walk = Walk(known, tuple(walk.found), walk.found_whole)
        walk.run(function)
    return walk


def facts_of(value: Any) -> Any:
    """The facts about a tensor or array that a trace depends on; None for a tensor of a trace that is over."""
    if type(value) is not Tensor and not isinstance(value, np.ndarray):
        return None
    held = array_of(value)
    return held.dtype, held.shape, held.strides


def value_key(value: Any) -> Any:
    """A hashable key: by value for numbers, texts and keys; else by identity."""
    return by_value(value) if isinstance(value, PLAIN) else Same(value)


def attributes(value: Any) -> Namespace:
    """The attributes that an object itself has; its class has others."""
    try:
        namespace = value.__dict__
    except Exception:       # the object has none, or code of its own that fails
        return NOTHING
    return namespace if isinstance(namespace, dict | MappingProxyType) else NOTHING


def content(cell: CellType) -> Any:
    """The value of a variable of an enclosing function; MISSING before its assignment."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def instance_of(value: Any) -> Object | None:
    """The instance of a TorchScript class that a value is, or that a module of an archive or a method of it is about; else None."""
    if isinstance(value, Object):
        return value
    name = next((name for name in ("_instance", "instance") if hasattr(type(value), name)), None)
    instance = getattr(value, name) if name is not None else None
    return instance if isinstance(instance, Object) else None


def container_of(value: Any) -> Any:
    """The class of CONTAINERS that holds the items of a value; None if none does."""
    return next((each for each in CONTAINERS if isinstance(value, each)), None)


def are_same(some: Any, others: Any) -> bool:
    """Have two containers the same objects as items?"""
    return len(some) == len(others) and all(map(operator.is_, some, others))


def is_output(value: Any) -> bool:
    """Is a value a file that code can only write into, such as `sys.stderr`?"""
    try:
        return isinstance(value, IOBase) and not value.readable()
    except ValueError:      # it is closed
        return True


def name_of(kind: type) -> str:
    """The name of a class with its module: `thread.local`, `list_iterator`."""
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.").replace("_thread._", "threading.").lstrip("_")


def is_of_library(value: Any) -> bool:
    """Is a value a module, function or class of LIBRARIES, a function in C, or an object of such a class?"""
    owner = value if isinstance(value, ModuleType | FunctionType | type) else type(value)
    name = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
    return str(name).partition(".")[0] in LIBRARIES
