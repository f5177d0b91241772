"""Writing into tensors under layers, where values never change: a write gives its target, and all that shares memory with it, new values.

Views are remembered as they are made: of what, by which operator. A write into a part makes a new whole with the part's elements in their
places, and every view is taken of it anew; so gradients and batches go through writes as through anything else. (torch calls it
functionalization.)
"""
from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any
from weakref import ref

import numpy as np

from irtool.dispatch.backend import BACKEND
from irtool.dispatch.stack import Boxed, Layer, elements_of, tensors_in
from irtool.ir.errors import Error, RunError, UnsupportedError
from irtool.ir.schema import schema_named
from irtool.ops.call import overload
from irtool.ops.tensor import Tensor

RESHAPING = frozenset(f"aten::{name}" for name in """
as_strided_ resize_ resize_as_ set_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_ detach_
""".split())
"""Kinds that change what a handle shows of its memory, and no element."""


class View:
    """How a tensor was made of another that may share its memory; at `place` of the results where there are several."""

    __slots__ = ("whole", "name", "rest", "place")

    def __init__(self, whole: Boxed, name: str, rest: list[Any], place: int) -> None:
        self.whole = whole
        self.name = name
        self.rest = rest
        self.place = place

    def of(self, whole: Any, layer: Layer) -> Any:
        """The same view of another tensor."""
        found = layer.apply(self.name, [whole, *self.rest])
        return next(each for at, each in enumerate(tensors_in(found)) if at == self.place)


@cache
def is_view(name: str) -> bool:
    """May the results of an operator share memory with its first operand, which it does not write into?"""
    schema = schema_named(name) or overload(name).schema
    first = schema.arguments[0].alias if schema.arguments else None
    return first is not None and not schema.is_mutable and any(each.alias is not None for each in schema.returns)


def remember(layer: Layer, name: str, args: list[Any], results: Any) -> None:
    """Note that `results` may be views of the first operand, in boxes of a layer."""
    whole = args[0]
    if not layer.owns(whole):
        return
    views = getattr(whole, "parts", None)
    if views is None:
        views = whole.parts = []
    for place, each in enumerate(tensors_in(results)):
        if layer.owns(each):
            each.origin = View(whole, name, args[1:], place)
            views.append(ref(each))


def shares_memory(view: Boxed, whole: Boxed) -> bool:
    """Does it, or has the operator made a copy?"""
    a, b = elements_of(view), elements_of(whole)
    return not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or np.may_share_memory(a, b)


def views_of(whole: Any) -> Iterator[Boxed]:
    """The tensors there are that share memory with a tensor by being views of it, each behind what it is a view of."""
    for each in getattr(whole, "parts", ()):
        view = each()
        if view is not None and shares_memory(view, whole):
            yield view
            yield from views_of(view)


def write(layer: Layer, name: str, target: Boxed, result: Any) -> Any:
    """`target`, in a box of the layer, holds `result` from now on. Raises RunError for a result of another size, UnsupportedError
    where a part of something cannot be put back into it."""
    chain: list[View] = []
    root = target
    while (view := getattr(root, "origin", None)) is not None and shares_memory(root, view.whole):
        chain.append(view)
        root = view.whole
    others = list(views_of(root))
    if name.partition(".")[0] in RESHAPING:
        if chain or others:
            raise UnsupportedError(f"{name.partition('.')[0]} is not supported here yet on a tensor that shares its memory with another")
        return layer.rebind(target, result)
    if result.shape != target.shape:
        raise RunError(f"output with shape {target.shape} doesn't match the broadcast shape {result.shape}")
    if result.dtype != target.dtype:
        result = layer.apply("aten::_to_copy", [result, target.dtype, None, None, None, False, None])
    if chain:
        flat, size = layer.apply("aten::reshape", [root, [-1]]), list(root.shape)
        part = layer.apply("aten::reshape", [result, [-1]])
        places = Tensor(places_of(root, chain[::-1], name))
        result = layer.apply("aten::reshape", [layer.apply("aten::index_put", [flat, [places], part, False]), size])
    layer.rebind(root, result)
    for each in others:
        layer.rebind(each, each.origin.of(each.origin.whole, layer))
    return target


def places_of(root: Boxed, chain: list[View], name: str) -> Any:
    """Which elements of a tensor, in its order, a view of a view of it shows. Raises UnsupportedError where that cannot be told."""
    places: Any = Tensor(np.arange(int(np.prod(root.shape, dtype=np.int64))).reshape(root.shape))
    kind = name.partition(".")[0]
    try:
        for view in chain:
            places = view.of(places, BACKEND)
        found = np.asarray(places.array).reshape(-1)
    except Error as error:
        raise UnsupportedError(f"{kind} into what {chain[-1].name.partition('.')[0]} gives is not supported here yet") from error
    if found.dtype != np.int64 or len(np.unique(found)) != len(found):
        raise UnsupportedError(f"{kind} into a tensor whose elements share memory with one another is not supported here")
    return found


__all__ = ["is_view", "remember", "write"]
