"""The results of a run of a trace, and the state of its arguments afterwards: an Item says where each value comes from."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from irtool.ops.array_library import np
from irtool.ops.conjugates import spread
from irtool.ops.overload import reshape_in_place
from irtool.ops.tensor import Tensor

Fetch = Callable[["Item"], Any]


class Item:
    """Where a value comes from: "output" (of the graph, at `place`), "argument" (the leaf itself), "step" (a number computed from the
    arguments' numbers) or "constant". is_tensor: the value is a tensor, for a constant one that the function made."""

    __slots__ = ("source", "place", "value", "is_tensor")

    def __init__(self, source: str, place: int = 0, value: Any = None, is_tensor: bool = False) -> None:
        self.source = source
        self.place = place
        self.value = value
        self.is_tensor = is_tensor


class Write:
    """A write into an argument: the leaf at `place`, the output that is copied into it (-1: none), and its new shape and strides, if they
    change. span: the target is this shared memory instead of a leaf."""

    __slots__ = ("place", "output", "view", "span")

    def __init__(self, place: int, output: int, view: tuple[Any, Any] | None = None, span: Any = None) -> None:
        self.place = place
        self.output = output
        self.view = view
        self.span = span

    def commit(self, arrays: dict[int, Any], content: Any) -> None:
        """Write. content: the array to copy; None if only shape and strides of the leaf change."""
        if self.span is not None:       # memory between the parts is not written
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
            spread(target)      # the caller may have its conjugate


class Rest:
    """A container in the arguments after the call: its parts, and its path if it is one of the caller's containers (else None)."""

    __slots__ = ("kind", "path", "parts")

    def __init__(self, kind: Any, path: tuple[Any, ...] | None, parts: Any) -> None:
        self.kind = kind
        self.path = path
        self.parts = parts


def rebased(result: Any, copy: Any, target: Any) -> Any:
    """If `result` is a view of `copy`, the same view of `target`, the array that was copied. Other results are returned unchanged, and so
    are views if copy or target is not contiguous."""
    if type(result) is not np.ndarray or not result.size or result.dtype != target.dtype or copy.shape != target.shape \
            or not (copy.flags.c_contiguous and target.flags.c_contiguous):
        return result
    offset = result.__array_interface__["data"][0] - copy.__array_interface__["data"][0]
    if not 0 <= offset < copy.nbytes:
        return result
    return np.ndarray(result.shape, result.dtype, target, offset, result.strides)


def containers(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The lists, tuples and dicts of a tree, each with its path of keys."""
    if isinstance(tree, list | tuple):
        yield path, tree
        for place, each in enumerate(tree):
            yield from containers(each, (*path, place))
    elif isinstance(tree, dict):
        yield path, tree
        for key, each in tree.items():
            yield from containers(each, (*path, key))


def rebuilt(tree: Any, leaves: Iterator[Any], copies: dict[int, Any]) -> Any:
    """A tree with other leaves, in which a list or dict that is in several places is one, too. copies: those so far, by id."""
    if isinstance(tree, dict):
        return copies.setdefault(id(tree), {key: rebuilt(each, leaves, copies) for key, each in tree.items()})
    if isinstance(tree, list | tuple):
        parts = [rebuilt(each, leaves, copies) for each in tree]
        copied = type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
        return copied if isinstance(tree, tuple) else copies.setdefault(id(tree), copied)
    return next(leaves)


def rest_of(tree: Any, paths: dict[int, tuple[Any, ...]], item: Callable[[Any], Item], known: dict[int, Rest]) -> Any:
    """A tree of arguments after the call, as Rests and Items. paths: the paths of the containers before the call, by id. known: the Rests
    so far, by the ids of their containers."""
    if not isinstance(tree, list | tuple | dict):
        return item(tree)
    rest = known.get(id(tree))
    if rest is None:
        rest = known[id(tree)] = Rest(dict if isinstance(tree, dict) else type(tree), paths.get(id(tree)), None)
        if isinstance(tree, dict):
            rest.parts = {key: rest_of(each, paths, item, known) for key, each in tree.items()}
        else:
            rest.parts = [rest_of(each, paths, item, known) for each in tree]
    return rest


def refill(rest: Any, known: dict[tuple[Any, ...], Any], fetch: Fetch, filled: dict[int, Any]) -> Any:
    """Update the caller's containers to their state after the call. known: the caller's containers by path. filled: those that are in that
    state, by the ids of their Rests."""
    if isinstance(rest, Item):
        return fetch(rest)
    if id(rest) not in filled:
        filled[id(rest)] = refilled(rest, known.get(rest.path), lambda each: refill(each, known, fetch, filled))
    return filled[id(rest)]


def refilled(rest: Rest, container: Any, refill_part: Callable[[Any], Any]) -> Any:
    """The same for one container, of the caller's; None: it is a new one."""
    if rest.kind is dict:
        entries = {key: refill_part(each) for key, each in rest.parts.items()}
        if container is None:
            return entries
        if list(container) != list(entries) or any(container[key] is not each for key, each in entries.items()):
            replace_contents(container, entries)
        return container
    parts = [refill_part(each) for each in rest.parts]
    if container is not None and isinstance(container, list):
        replace_contents(container, parts)
        return container
    if container is not None and len(container) == len(parts) and all(a is b for a, b in zip(container, parts, strict=True)):
        return container
    return rest.kind(*parts) if hasattr(rest.kind, "_fields") else rest.kind(parts)


def replace_contents(container: Any, contents: Any) -> None:
    """Give a list the items of a list, a dict the entries of a dict."""
    if isinstance(container, dict):
        container.clear()
        container.update(contents)
    else:
        container[:] = contents


def anew(item: Item) -> Any:
    """The value of a constant, of arrays and of tensors that the function made a copy: the caller may write into it."""
    if item.is_tensor:
        return Tensor(item.value.array.copy("K"))
    return item.value.copy("K") if type(item.value) is np.ndarray else item.value


def fetcher(leaves: Sequence[Any], outputs: Sequence[Any], answers: Any) -> Fetch:
    """The function that returns the value of an Item in one run."""
    def fetch(item: Item) -> Any:
        if item.source == "output":
            output = outputs[item.place]
            return Tensor(output) if item.is_tensor else output
        if item.source == "argument":
            leaf = leaves[item.place]
            return Tensor(leaf) if isinstance(leaf, np.ndarray) else leaf
        return answers[item.place] if item.source == "step" else anew(item)
    return fetch
