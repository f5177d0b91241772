"""Trees: nested lists, tuples and dicts of values (leaves), flattened and rebuilt."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irtool.ir.errors import RunError


class Leaf:
    """Marks the place of a leaf in the shape of a tree."""


LEAF = Leaf()


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a tree, in order (dicts by insertion), and its shape: the tree with `Leaf` for each leaf."""
    leaves: list[Any] = []
    return leaves, _taken(tree, leaves)


def _taken(node: Any, leaves: list[Any]) -> Any:
    """The shape of a tree; appends its leaves to `leaves`. (A closure that refers to itself would keep arrays alive until a collection.)"""
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return type(node)(*[_taken(each, leaves) for each in node])
    if isinstance(node, list | tuple):
        return type(node)([_taken(each, leaves) for each in node])
    if isinstance(node, dict):
        return {key: _taken(each, leaves) for key, each in node.items()}
    leaves.append(node)
    return LEAF


def unflatten(shape: Any, leaves: list[Any]) -> Any:
    """The tree of a shape with these leaves."""
    return _built(shape, iter(leaves))


def _built(node: Any, leaves: Iterator[Any]) -> Any:
    if node is LEAF:
        return next(leaves)
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return type(node)(*[_built(each, leaves) for each in node])
    if isinstance(node, list | tuple):
        return type(node)([_built(each, leaves) for each in node])
    return {key: _built(each, leaves) for key, each in node.items()}


def aligned(tree: Any, shape: Any) -> list[Any] | None:
    """The leaves of a tree in the order of a shape: dicts by key, lists and tuples by place; a None stands for a whole subtree.

    A flat list or tuple of as many values as the shape has leaves is accepted too. None if tree and shape do not fit.
    """
    leaves: list[Any] = []
    if _aligned(tree, shape, leaves):
        return leaves
    if shape is not LEAF and isinstance(tree, list | tuple) and not any(isinstance(each, list | tuple | dict) for each in tree) and \
            len(tree) == len(flatten(shape)[0]):
        return list(tree)
    return None


def _aligned(node: Any, shape: Any, leaves: list[Any]) -> bool:
    if shape is LEAF:
        leaves.append(node)
        return not isinstance(node, list | tuple | dict)
    if node is None:
        leaves.extend([None] * len(flatten(shape)[0]))
        return True
    if isinstance(shape, dict):
        return isinstance(node, dict) and node.keys() == shape.keys() and all([_aligned(node[key], shape[key], leaves) for key in shape])
    return isinstance(node, list | tuple) and len(node) == len(shape) and \
        all([_aligned(one, each, leaves) for one, each in zip(node, shape, strict=True)])


def spread(prefix: Any, tree: Any, what: str) -> list[Any]:
    """The entry of `prefix` (an int, None, or a tree of these, perhaps less deep) for each leaf of a tree. Raises RunError if they do not
    fit."""
    def walk(entry: Any, node: Any) -> Iterator[Any]:
        if entry is None or isinstance(entry, int) and not isinstance(entry, bool):
            yield from [entry] * len(flatten(node)[0])
        elif isinstance(entry, dict) and isinstance(node, dict) and entry.keys() == node.keys():
            for key in node:
                yield from walk(entry[key], node[key])
        elif isinstance(entry, list | tuple) and isinstance(node, list | tuple) and len(entry) == len(node):
            for one, each in zip(entry, node, strict=True):
                yield from walk(one, each)
        else:
            raise RunError(f"vmap: {what} is {entry!r}, which does not fit {'a tuple' if isinstance(node, list | tuple) else 'a value'}"
                           f"{f' of {len(node)}' if isinstance(node, list | tuple | dict) else ''}")
    return list(walk(prefix, tree))
