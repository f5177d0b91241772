"""The tape: which step computed which value, and the backward pass over it.

A `Variable` is an array with a reference to the `Function` (a step of the tape) that computed it. The backward pass starts from cotangents
and runs the `apply` of each step once, when the gradients of its results are complete, in reverse order of the run. None is an undefined
gradient, a zero without an array.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import ref

from irtool.execute.tape_ahead import Ahead
from irtool.ir.errors import RunError
from irtool.ops.arrays import here

if TYPE_CHECKING:
    from irtool.execute.views import Family

Hook = Callable[[Any], Any]
"""Called with a gradient (an array, or None); its result, unless that is None, replaces the gradient."""
PreHook = Callable[[Sequence[Any]], Any]
"""Called with the gradients of the results of a step; a list that it returns replaces them."""
PostHook = Callable[[Sequence[Any], Sequence[Any]], Any]
"""Called with the gradients that a step returned, and those of its results; a list that it returns replaces the former."""

_numbers = count()


class Version:
    """The holders that have saved values in one piece of memory; shared by all variables in that memory."""

    __slots__ = ("holders",)

    def __init__(self) -> None:
        self.holders: list[ref[Holder]] = []

    def hold(self, holder: Holder) -> None:
        """Register a holder that has saved a value in the memory."""
        self.holders.append(ref(holder))

    def written(self) -> None:
        """Called before the memory is written into: every holder copies its value."""
        for each in self.holders:
            holder = each()
            if holder is not None:
                holder.take_copy()
        self.holders = []


class Holder:
    """An object that saves a value in memory that may be written into."""

    __slots__ = ("__weakref__",)

    def take_copy(self) -> None:
        """The memory is about to be written into."""
        raise NotImplementedError


class Variable:
    """An array on the tape: result number `slot` of the step `function` (None: it needs no gradient).

    family: if the graph writes, the tensors that share its memory (`irtool.execute.views`).
    """

    __slots__ = ("data", "function", "slot", "version", "family", "__weakref__")

    def __init__(self, data: Any, function: Function | None = None, slot: int = 0, version: Version | None = None) -> None:
        self.data = data
        self.function = function
        self.slot = slot
        self.version = version
        self.family: Family | None = None

    @property
    def requires_grad(self) -> bool:
        """Does the variable need a gradient?"""
        return self.function is not None

    def __bool__(self) -> bool:
        return bool(self.data)

    def __int__(self) -> int:
        return int(self.data)

    def register_hook(self, hook: Hook) -> None:
        """Have `hook` called with the complete gradient of this variable. Raises RunError if the variable needs no gradient."""
        if self.function is None:
            raise RunError("cannot register a hook on a tensor that doesn't require gradient")
        self.function.hooks.append((self.slot, hook))

    def __repr__(self) -> str:
        return f"Variable({self.data!r})"


class Function:
    """A step of the tape. `edges`: for each gradient that `apply` returns, the step and slot it belongs to."""

    __slots__ = ("number", "edges", "slots", "hooks", "pre_hooks", "post_hooks")

    def __init__(self, edges: Sequence[tuple[Function, int] | None], slots: int) -> None:
        self.number = next(_numbers)        # numbers increase: operands of a step come from steps of smaller numbers
        self.edges = edges
        self.slots = slots
        self.hooks: list[tuple[int, Hook]] = []
        self.pre_hooks: list[PreHook] = []
        self.post_hooks: list[PostHook] = []

    def apply(self, gradients: list[Any], create_graph: bool) -> list[Any]:
        """One gradient (a Variable or None) per edge, from one per slot."""
        raise NotImplementedError

    def may_run_ahead(self) -> bool:
        """Has the step no side effects, so that the backward pass may run it early?"""
        return False


class Leaf(Function):
    """The step of an input whose gradient is wanted."""

    __slots__ = ("data",)

    def __init__(self, data: Any) -> None:
        super().__init__((), 1)
        self.data = data


class Entry(Function):
    """Separates an input that a graph writes into from its copy: later writes belong to the copy, the gradient to the input."""

    __slots__ = ()

    def apply(self, gradients: list[Any], create_graph: bool) -> list[Any]:
        """The gradient, unchanged."""
        return gradients


class Refusal(Function):
    """A step without a gradient."""

    __slots__ = ("error",)

    def __init__(self, edges: Sequence[tuple[Function, int] | None], slots: int, error: Exception) -> None:
        super().__init__(edges, slots)
        self.error = error

    def apply(self, gradients: list[Any], create_graph: bool) -> list[Any]:
        """Raises the error if any gradient is defined."""
        if any(gradient is not None for gradient in gradients):
            raise self.error
        return [None] * len(self.edges)


def edge_of(value: Any) -> tuple[Function, int] | None:
    """The step and slot that the gradient of a value belongs to; None if it needs none."""
    return (value.function, value.slot) if isinstance(value, Variable) and value.function is not None else None


Adder = Callable[[Any, Any, bool], Any]


def backward(roots: Iterable[tuple[Variable, Any]], leaves: Sequence[Leaf], add: Adder, create_graph: bool = False,
             threads: int = 1) -> dict[Leaf, Any]:
    """Gradients by leaf, as Variables; a leaf without a path to the roots is missing, an undefined gradient is None.

    roots: variables with their gradients (Variables, or None). `add(a, b, create_graph)` sums two gradients. threads: how many run steps
    that do not depend on each other.
    """
    buffers: dict[Function, list[Any]] = {}
    starts: list[Function] = []
    for variable, gradient in roots:
        function = variable.function
        if function is None:
            continue
        if function not in buffers:
            buffers[function] = [None] * function.slots
            starts.append(function)
        _put(function, buffers[function], variable.slot, gradient, add, create_graph)
    needed, waiting = _reachable(starts, frozenset(leaves))
    # hooks are called in the order of one thread
    if create_graph or any(function.hooks or function.pre_hooks or function.post_hooks for function in needed):
        threads = 1
    ready = sorted((_turn(function), function) for function in starts if function in needed and not waiting.get(function))
    with Ahead(threads) as ahead:
        return _walked(ready, buffers, needed, waiting, add, create_graph, ahead)


def _walked(ready: list[tuple[tuple[bool, int], Function]], buffers: dict[Function, list[Any]], needed: set[Function],
            waiting: dict[Function, int], add: Adder, create_graph: bool, ahead: Ahead) -> dict[Leaf, Any]:
    """The backward pass from the steps that are ready: the gradient of each leaf."""
    by_leaf: dict[Leaf, Any] = {}
    while ready:
        ahead.look(ready, buffers)
        _, function = heappop(ready)
        gradients = buffers.pop(function)
        for slot, hook in function.hooks:
            gradients[slot] = _hooked(hook, gradients[slot])
        if isinstance(function, Leaf):
            by_leaf[function] = gradients[0]
            continue
        for pre in function.pre_hooks:
            gradients = _replaced(pre([_plain(each) for each in gradients]), gradients)
        handed = ahead.apply(function, gradients, create_graph) if any(g is not None for g in gradients) else [None] * len(function.edges)
        for post in function.post_hooks:
            handed = _replaced(post([_plain(each) for each in handed], [_plain(each) for each in gradients]), handed)
        for edge, gradient in zip(function.edges, handed, strict=True):
            if edge is None or edge[0] not in needed:
                continue
            target, slot = edge
            if target not in buffers:
                buffers[target] = [None] * target.slots
            _put(target, buffers[target], slot, gradient, add, create_graph)
            waiting[target] -= 1
            if not waiting[target]:
                heappush(ready, (_turn(target), target))
    return by_leaf


def _turn(function: Function) -> tuple[bool, int]:
    """The priority of a ready step: leaves first, the oldest before others; then the step that ran last."""
    is_leaf = isinstance(function, Leaf)
    return not is_leaf, function.number if is_leaf else -function.number


def _reachable(starts: Sequence[Function], leaves: frozenset[Leaf]) -> tuple[set[Function], dict[Function, int]]:
    """The steps on a path to a leaf, and how many gradients each of them waits for."""
    seen: set[Function] = set()
    order: list[Function] = []
    stack = list(starts)
    while stack:
        function = stack.pop()
        if function not in seen:
            seen.add(function)
            order.append(function)
            stack += [edge[0] for edge in function.edges if edge is not None]
    order.sort(key=lambda each: each.number)
    needed: set[Function] = set()
    for function in order:      # operands first
        if function in leaves or any(edge is not None and edge[0] in needed for edge in function.edges):
            needed.add(function)
    waiting: dict[Function, int] = {}
    for function in needed:
        for edge in function.edges:
            if edge is not None and edge[0] in needed:
                waiting[edge[0]] = waiting.get(edge[0], 0) + 1
    return needed, waiting


def _put(function: Function, buffer: list[Any], slot: int, gradient: Any, add: Adder, create_graph: bool) -> None:
    """Add a gradient to the sum for a slot of a step. A Refusal only keeps one, since the gradients of its results may not fit in shape."""
    if gradient is not None and (buffer[slot] is None or not isinstance(function, Refusal)):
        buffer[slot] = gradient if buffer[slot] is None else add(buffer[slot], gradient, create_graph)


def _hooked(hook: Hook, gradient: Any) -> Any:
    """A gradient after a hook was called with it."""
    replaced = hook(_plain(gradient))
    return gradient if replaced is None else _replacement(replaced, gradient)


def _replaced(returned: Any, gradients: list[Any]) -> list[Any]:
    """Gradients after a hook on all of them returned `returned`. Raises RunError, in torch's words, for another number of them."""
    if returned is None:
        return gradients
    if not isinstance(returned, list | tuple):
        raise RunError(f"expected a list of gradients, but hook returned {repr(returned)[:40]}")
    if len(returned) != len(gradients):
        raise RunError(f"hook has returned an incorrect number of values (got {len(returned)}, but expected {len(gradients)})")
    return [_replacement(each, gradient) for each, gradient in zip(returned, gradients, strict=True)]


def _plain(gradient: Any) -> Any:
    return gradient.data if isinstance(gradient, Variable) else gradient


def _replacement(returned: Any, gradient: Any) -> Any:
    """The value that a hook returned for a gradient. Raises RunError if it is no array of numbers, or (torch's words) of another size."""
    if returned is None or isinstance(returned, Variable):
        return returned
    array = here(returned)
    if array.dtype.kind not in "biufc":
        raise RunError(f"expected an array of numbers, but hook returned {repr(returned)[:40]}")
    if isinstance(gradient, Variable) and array.shape != gradient.data.shape:
        raise RunError(f"hook has changed the size of value (was {list(gradient.data.shape)}, got {list(array.shape)})")
    return Variable(array)
