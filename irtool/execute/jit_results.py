"""What a run of a trace hands back: results, and what the function left in its arguments, each said by where it comes from."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from irtool.dispatch.trees import LEAF
from irtool.ops.overload import reshape_in_place
from irtool.ops.tensor import Tensor

Fetch = Callable[["Item"], Any]


class Item:
    """Where a value comes from: "output" of the graph (at `place`), "argument" (the leaf itself), "step" of the arguments' numbers, or
    "constant"; `is_tensor`: as a tensor, else as a number."""

    __slots__ = ("source", "place", "value", "is_tensor")

    def __init__(self, source: str, place: int = 0, value: Any = None, is_tensor: bool = False) -> None:
        self.source = source
        self.place = place
        self.value = value
        self.is_tensor = is_tensor


class Write:
    """An argument that the function writes into: the leaf at `place`; the output that it holds then, and the shape and strides it shows
    then, if those are others than before. span: it is that piece of memory, and no leaf."""

    __slots__ = ("place", "output", "view", "span")

    def __init__(self, place: int, output: int, view: tuple[Any, Any] | None = None, span: Any = None) -> None:
        self.place = place
        self.output = output
        self.view = view
        self.span = span

    def commit(self, arrays: dict[int, Any], content: Any) -> None:
        """Write. content: None for a leaf that only shows its memory otherwise."""
        if self.span is not None:       # not what lies between its parts
            for place, start in self.span.parts.items():
                part = arrays[place]
                if part.size:
                    np.copyto(part, np.lib.stride_tricks.as_strided(content[start:], part.shape, part.strides))
            return
        target = arrays[self.place]
        if self.view is not None:
            reshape_in_place(target, np.lib.stride_tricks.as_strided(target, *self.view), "a change of shape")
        if content is not None:
            np.copyto(target, content)


class Rest:
    """A container of the arguments as the function left it: its own parts, and which of the caller's containers it is, if it is one."""

    __slots__ = ("kind", "path", "parts")

    def __init__(self, kind: Any, path: tuple[Any, ...] | None, parts: Any) -> None:
        self.kind = kind
        self.path = path
        self.parts = parts


def rebased(found: Any, copy: Any, target: Any) -> Any:
    """A result that is a part of a copy as that part of what was copied; any other as it is, and where one of them has gaps."""
    if type(found) is not np.ndarray or not found.size or found.dtype != target.dtype or copy.shape != target.shape \
            or not (copy.flags.c_contiguous and target.flags.c_contiguous):
        return found
    offset = found.__array_interface__["data"][0] - copy.__array_interface__["data"][0]
    if not 0 <= offset < copy.nbytes:
        return found
    return np.ndarray(found.shape, found.dtype, target, offset, found.strides)


def containers(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The lists, tuples and dicts of a tree, each with the keys that lead to it."""
    if isinstance(tree, list | tuple):
        yield path, tree
        for place, each in enumerate(tree):
            yield from containers(each, (*path, place))
    elif isinstance(tree, dict):
        yield path, tree
        for key, each in tree.items():
            yield from containers(each, (*path, key))


def rest_of(tree: Any, paths: dict[int, tuple[Any, ...]], item: Callable[[Any], Item]) -> Any:
    """What a tree of arguments is after the function ran. paths: of its containers before, by their ids."""
    path = paths.get(id(tree))
    if isinstance(tree, list | tuple):
        return Rest(type(tree), path, [rest_of(each, paths, item) for each in tree])
    if isinstance(tree, dict):
        return Rest(dict, path, {key: rest_of(each, paths, item) for key, each in tree.items()})
    return item(tree)


def refill(rest: Any, known: dict[tuple[Any, ...], Any], fetch: Fetch) -> Any:
    """The caller's containers, with what the function left in them. known: the caller's containers by path."""
    if isinstance(rest, Item):
        return fetch(rest)
    own = known.get(rest.path) if rest.path is not None else None
    if rest.kind is dict:
        found = {key: refill(each, known, fetch) for key, each in rest.parts.items()}
        if own is None:
            return found
        if list(own) != list(found) or any(own[key] is not each for key, each in found.items()):
            own.clear()
            own.update(found)
        return own
    parts = [refill(each, known, fetch) for each in rest.parts]
    if own is not None and isinstance(own, list):
        own[:] = parts
        return own
    if own is not None and len(own) == len(parts) and all(a is b for a, b in zip(own, parts, strict=True)):
        return own
    return rest.kind(*parts) if hasattr(rest.kind, "_fields") else rest.kind(parts)


def fetcher(leaves: Sequence[Any], outputs: Sequence[Any], answers: Any) -> Fetch:
    """What gives the value of an Item for one run."""
    def fetch(item: Item) -> Any:
        if item.source == "output":
            found = outputs[item.place]
            return Tensor(found) if item.is_tensor else found
        if item.source == "argument":
            leaf = leaves[item.place]
            return Tensor(leaf) if isinstance(leaf, np.ndarray) else leaf
        return answers[item.place] if item.source == "step" else item.value
    return fetch


__all__ = ["LEAF", "Fetch", "Item", "Rest", "Write", "containers", "fetcher", "rebased", "refill", "rest_of"]
