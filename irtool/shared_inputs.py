"""Inputs of one run that share memory which the run would take apart.

A graph writes into copies of its inputs, and arrays that share memory are copied as one piece (`irtool.accepted_values.copied`). Some
cannot be: an array that no tensor of torch's lies like (backwards, in the other byte order) is copied by itself when it is accepted, as is
one that goes to a device; and a conjugate is tied to its source by the caller's memory. A write into such memory is refused, since only one
of the inputs would show it.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from irtool.accepted_values import accept, arrays_in, conversions
from irtool.ir.effects import group_may_write, may_write_or_is_python, operands_written
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Node, Value
from irtool.ops.array_library import np
from irtool.ops.arrays import current_namespace, share_memory
from irtool.ops.conjugates import has_conjugates, has_pairs, is_tied

Clash = tuple[int, Any, int, Any]
"""Two arrays, each with the position of its input, that do not share the memory that they should."""


def accept_all(inputs: Sequence[Any], declared: Sequence[Value], written: Callable[[], Sequence[bool]]) -> list[Any]:
    """The inputs of a graph that writes, converted (`accept`). written: a function that says which inputs the graph may write into.

    Raises UnsupportedError if one of them loses memory that it shares with another input.
    """
    values, clashes = accept_with_clashes(inputs, declared)
    if clashes:
        refuse_clashes(clashes, declared, written)
    return values


def refuse_clashes(clashes: Sequence[Clash], declared: Sequence[Value], written: Callable[[], Sequence[bool]]) -> None:
    """Raises UnsupportedError if an input that clashes may be written into."""
    flags = written() if clashes else ()
    for place, _, other, _ in clashes:
        if flags[place] or flags[other]:
            raise refusal(declared, place, other)


def accept_with_clashes(inputs: Sequence[Any], declared: Sequence[Value]) -> tuple[list[Any], list[Clash]]:
    """The inputs converted, and what clashes among them."""
    made: dict[int, tuple[Any, Any]] = {}
    token = conversions.set(made)
    try:
        values = [accept(value, one) for value, one in zip(inputs, declared, strict=True)]
    finally:
        conversions.reset(token)
    return values, clashes_among(values, made) if made or has_pairs() or current_namespace() is not np else []


@contextmanager
def noting_conversions(made: dict[int, tuple[Any, Any]]) -> Iterator[None]:
    """A context in which `accept` notes the copies that it makes."""
    token = conversions.set(made)
    try:
        yield
    finally:
        conversions.reset(token)


def clashes_among(values: Sequence[Any], made: Mapping[int, tuple[Any, Any]]) -> list[Clash]:
    """What clashes among accepted values. made: the copies that `accept` made, each with the array that was given."""
    arrays = {id(each): (place, each) for place, value in enumerate(values) for each in arrays_in(value, on_device=True)}
    given = {id(copy): original for original, copy in made.values()}
    on_host = [each for _, each in arrays.values() if isinstance(each, np.ndarray)]
    if not given and len(on_host) == len(arrays) and not has_conjugates(on_host):
        return []

    def clash(one: Any, other: Any) -> bool:
        """Do two arrays share memory, and not as arrays that are copied as one piece?"""
        is_copied = id(one) in given or id(other) in given or not isinstance(one, np.ndarray)
        return is_copied and overlap(given.get(id(one), one), given.get(id(other), other)) or is_tied(one, other)
    entries = list(arrays.values())
    return [(place, one, at, other) for index, (place, one) in enumerate(entries) for at, other in entries[:index] if clash(one, other)]


def overlap(one: Any, other: Any) -> bool:
    """Do two arrays share an element? If that takes long to find out, their bounds tell."""
    if not share_memory(one, other):
        return False
    steps: Any = 10_000
    try:
        return not isinstance(one, np.ndarray) or bool(np.shares_memory(one, other, max_work=steps))
    except np.exceptions.TooHardError:
        return True


def refusal(declared: Sequence[Value], place: int, other: int) -> UnsupportedError:
    """The error for a write into memory that two inputs share."""
    first, second = sorted((place, other))
    which = f"inputs %{declared[first].name} and %{declared[second].name} share" if first != second else \
        f"tensors of input %{declared[first].name} share"
    return UnsupportedError(f"{which} memory that the graph writes into, but one of them must be copied: it lies backwards, has a dtype "
                            "that torch has not, is the conjugate of a tensor, or is on a device or goes to it", code="E0404")


def guarded(call: Callable[[Node, list[Any]], Sequence[Any]], declared: Sequence[Value], clashes: Sequence[Clash],
            copies: Mapping[int, Any]) -> Callable[[Node, list[Any]], Sequence[Any]]:
    """A function that runs a node, and refuses one that writes into what clashes. copies: the run's copies, by the id of the array."""
    watched = [(copies[id(each)], place, other) for place, one, other, two in clashes for each in (one, two)]

    def call_guarded(node: Node, operands: list[Any]) -> Sequence[Any]:
        if may_write_or_is_python(node) or group_may_write(node):
            for target in [each for at in operands_written(node) for each in arrays_in(operands[at], on_device=True)]:
                for memory, place, other in watched:
                    if share_memory(target, memory):
                        raise refusal(declared, place, other)
        return call(node, operands)
    return call_guarded
