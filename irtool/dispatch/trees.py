"""Lists, tuples and dicts of values, taken apart and put together."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irtool.ir.errors import RunError


class Leaf:
    """Where a value stands in a tree."""


LEAF = Leaf()


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The values in a tree, in order (dicts by insertion), and its shape."""
    leaves: list[Any] = []

    def walk(node: Any) -> Any:
        if isinstance(node, tuple) and hasattr(node, "_fields"):
            return type(node)(*[walk(each) for each in node])
        if isinstance(node, list | tuple):
            return type(node)([walk(each) for each in node])
        if isinstance(node, dict):
            return {key: walk(each) for key, each in node.items()}
        leaves.append(node)
        return LEAF
    return leaves, walk(tree)


def unflatten(shape: Any, leaves: list[Any]) -> Any:
    """A tree of a shape with these values."""
    given = iter(leaves)

    def build(node: Any) -> Any:
        if node is LEAF:
            return next(given)
        if isinstance(node, tuple) and hasattr(node, "_fields"):
            return type(node)(*[build(each) for each in node])
        if isinstance(node, list | tuple):
            return type(node)([build(each) for each in node])
        return {key: build(each) for key, each in node.items()}
    return build(shape)


def spread(prefix: Any, tree: Any, what: str) -> list[Any]:
    """One entry of `prefix`, an int, None or a tree of them, for each value of a tree. Raises RunError where the two do not fit."""
    def walk(own: Any, node: Any) -> Iterator[Any]:
        if own is None or isinstance(own, int):
            yield from [own] * len(flatten(node)[0])
        elif isinstance(own, dict) and isinstance(node, dict) and own.keys() == node.keys():
            for key in node:
                yield from walk(own[key], node[key])
        elif isinstance(own, list | tuple) and isinstance(node, list | tuple) and len(own) == len(node):
            for one, each in zip(own, node, strict=True):
                yield from walk(one, each)
        else:
            raise RunError(f"vmap: {what} is {own!r}, which does not fit {'a tuple' if isinstance(node, list | tuple) else 'a value'}"
                           f"{f' of {len(node)}' if isinstance(node, list | tuple | dict) else ''}")
    return list(walk(prefix, tree))
