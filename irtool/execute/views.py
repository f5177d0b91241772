"""Gradients of tensors that share memory: how a write through one of them changes the gradients of the others.

As in torch, a write recomputes views. `origin` is the tensor that the views belong to. A write into a part of it makes a new origin: the
gradient of that part goes to the written value, the rest to the old origin. From then on all other views are parts of the new origin.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import ref

from irtool.execute.differentiable import small
from irtool.execute.tape import Function, Variable, edge_of
from irtool.ir.errors import UnsupportedError
from irtool.ops.array_library import np
from irtool.ops.arrays import here

Edge = tuple[Function, int] | None


class Family:
    """Tensors that are views of one another. A detached tensor shares their memory but is not in the family."""

    __slots__ = ("data", "edge", "members")

    def __init__(self, origin: Variable) -> None:
        self.data = origin.data         # not the Variable, which would make a reference cycle
        self.edge: Edge = edge_of(origin)
        self.members: list[ref[Variable]] = []

    def join(self, member: Variable) -> None:
        """Add a member."""
        member.family = self
        self.members.append(ref(member))

    def written(self, target: Variable, result: Variable, kind: str) -> None:
        """After `result` was written into `target`, change the edges of all members that share its memory.

        Raises UnsupportedError if a member is no part of the origin.
        """
        part = places_of(target.data, self.data, kind)
        old, new = self.edge, edge_of(result)
        if part is None:
            self.edge = new
        elif old is not None or new is not None:
            self.edge = Written(old, new, part, target.data.shape), 0
        alive = [member for each in self.members if (member := each()) is not None]
        self.members = [ref(member) for member in alive]
        for member in alive:
            edge = new if member is target else self.seen_by(member, kind)
            member.function, member.slot = edge if edge is not None else (None, 0)

    def refused(self, function: Function) -> None:
        """Let the gradients of all members go to this step, which refuses them."""
        self.edge = function, 0
        for each in self.members:
            member = each()
            if member is not None:
                member.function, member.slot = self.edge

    def seen_by(self, member: Variable, kind: str) -> Edge:
        """The edge of a member: a step that takes its part of the current origin."""
        part = places_of(member.data, self.data, kind)
        if part is None or self.edge is None:
            return self.edge
        return Part(self.edge, part, self.data.shape), 0


class Written(Function):
    """A tensor of which a part was overwritten: the gradient of the part goes to the written value, the rest to the old tensor."""

    __slots__ = ("places", "shape")

    def __init__(self, old: Edge, new: Edge, places: Any, shape: tuple[int, ...]) -> None:
        super().__init__((old, new), 1)
        self.places = places
        self.shape = shape

    def apply(self, gradients: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of the old tensor and of the written value."""
        (gradient,) = gradients
        old, new = self.edges
        return [None if old is None else small("without")(gradient, here(self.places), create_graph),
                None if new is None else small("part")(gradient, here(self.places), list(self.shape), create_graph)]


class Part(Function):
    """A view of a tensor that was written into."""

    __slots__ = ("places", "shape")

    def __init__(self, edge: Edge, places: Any, shape: tuple[int, ...]) -> None:
        super().__init__((edge,), 1)
        self.places = places
        self.shape = shape

    def apply(self, gradients: list[Any], create_graph: bool) -> list[Any]:
        """The gradient of the tensor: zeros except at the places of the view."""
        return [small("whole")(gradients[0], here(self.places), list(self.shape), int(np.prod(self.shape)), create_graph)]


def places_of(part: Any, whole: Any, kind: str) -> Any:
    """The flat indices in `whole` of the elements of `part`: int64, one dimension; None if both have the same elements in the same order.

    Raises UnsupportedError if some are not in it.
    """
    if is_same_tensor(part, whole):
        return None
    sought, present = addresses(part), addresses(whole)
    order = np.argsort(present, kind="stable")
    places = order[np.minimum(np.searchsorted(present, sought, sorter=order), len(order) - 1)] if len(order) else np.zeros(0, np.int64)
    if part.dtype != whole.dtype or len(places) != len(sought) or (present[places] != sought).any():
        raise UnsupportedError(f"the gradient of {kind} on a tensor that shares its memory with another is not supported yet", code="E0501")
    return places


def is_same_tensor(a: Any, b: Any) -> bool:
    """Have two arrays the same elements of one memory, in the same order?"""
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides and start_of(a) == start_of(b))


def addresses(array: Any) -> Any:
    """The address of each element."""
    table = np.asarray(start_of(array))
    for size, stride in zip(array.shape, array.strides, strict=True):
        table = table[..., None] + np.arange(size) * stride
    return table.reshape(-1)


def start_of(array: Any) -> int:
    """The address of the first element."""
    return int(array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else array.data.ptr)


def variables(values: Sequence[Any]) -> Iterator[Variable]:
    """The Variables among values, in lists and tuples too."""
    for value in values:
        if isinstance(value, Variable):
            yield value
        elif isinstance(value, list | tuple):
            yield from variables(value)
        elif isinstance(value, dict):
            yield from variables(list(value.values()))
