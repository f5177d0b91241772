"""Tensors in one memory, as gradients see them: what a write through one of them means to the others.

As torch has it: views are taken anew. `origin` is the tensor that the views come from. A write into a part of it makes a new origin, whose
gradient goes to the part where it was written and to the old origin elsewhere; all other views are from then on parts of the new one.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import ref

import numpy as np

from irtool.execute.differentiable import small
from irtool.execute.tape import Function, Variable, edge_of
from irtool.ir.errors import UnsupportedError
from irtool.ops.arrays import here

Edge = tuple[Function, int] | None


class Family:
    """Tensors that are views of one another. A detached tensor shares memory with its family and is not of it."""

    __slots__ = ("data", "edge", "members")

    def __init__(self, origin: Variable) -> None:
        self.data = origin.data         # its place in memory; not the Variable, which refers to the family
        self.edge: Edge = edge_of(origin)
        self.members: list[ref[Variable]] = []

    def join(self, member: Variable) -> None:
        """One more of them."""
        member.family = self
        self.members.append(ref(member))

    def written(self, target: Variable, made: Variable, kind: str) -> None:
        """`target` holds `made` from now on, and so do the others, where they share its memory.

        Raises UnsupportedError where one of them is no part of the origin.
        """
        part = places_of(target.data, self.data, kind)
        old, new = self.edge, edge_of(made)
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
        """Gradients of all of them go to this step from now on."""
        self.edge = function, 0
        for each in self.members:
            member = each()
            if member is not None:
                member.function, member.slot = self.edge

    def seen_by(self, member: Variable, kind: str) -> Edge:
        """Where the gradient of a member goes, as the origin is now."""
        part = places_of(member.data, self.data, kind)
        if part is None or self.edge is None:
            return self.edge
        return Part(self.edge, part, self.data.shape), 0


class Written(Function):
    """A tensor of which a part was replaced: its gradient goes to the old one but for the part, and to what the part became."""

    __slots__ = ("places", "shape")

    def __init__(self, old: Edge, new: Edge, places: Any, shape: tuple[int, ...]) -> None:
        super().__init__((old, new), 1)
        self.places = places
        self.shape = shape

    def apply(self, gradients: list[Any], create_graph: bool) -> list[Any]:
        """For the old tensor, then for the part."""
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
        """For the tensor: zeros but at the places of the view."""
        return [small("whole")(gradients[0], here(self.places), list(self.shape), int(np.prod(self.shape)), create_graph)]


def places_of(part: Any, whole: Any, kind: str) -> Any:
    """Which elements of `whole`, counted in its order, those of `part` are: int64, of one dimension; None where they are the same.

    Raises UnsupportedError where some are not in it.
    """
    if part.shape == whole.shape and part.strides == whole.strides and start_of(part) == start_of(whole):
        return None
    sought, there = addresses(part), addresses(whole)
    order = np.argsort(there, kind="stable")
    found = order[np.minimum(np.searchsorted(there, sought, sorter=order), len(order) - 1)] if len(order) else np.zeros(0, np.int64)
    if part.dtype != whole.dtype or len(found) != len(sought) or (there[found] != sought).any():
        raise UnsupportedError(f"the gradient of {kind} on a tensor that shares its memory with another is not supported yet")
    return found


def addresses(array: Any) -> Any:
    """Where each element lies, in bytes."""
    found = np.asarray(start_of(array))
    for size, stride in zip(array.shape, array.strides, strict=True):
        found = found[..., None] + np.arange(size) * stride
    return found.reshape(-1)


def start_of(array: Any) -> int:
    """The address of the first element."""
    return int(array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else array.data.ptr)


def variables(values: Sequence[Any]) -> Iterator[Variable]:
    """The tensors among values, in lists and tuples too."""
    for value in values:
        if isinstance(value, Variable):
            yield value
        elif isinstance(value, list | tuple):
            yield from variables(value)
        elif isinstance(value, dict):
            yield from variables(list(value.values()))
