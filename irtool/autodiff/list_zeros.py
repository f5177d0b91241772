"""Gradients of the pieces of a list: zeros where there is none, or where one turns out to be undefined, so that they can be joined."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from irtool.autodiff.list_gradients import fill, is_list
from irtool.ir import types
from irtool.ir.dtypes import dtype_code
from irtool.ir.graph import Value
from irtool.ir.shapes import shape_of
from irtool.ir.types import TensorType
from irtool.partial.items import NONE, Item, Items

if TYPE_CHECKING:
    from irtool.autodiff.reverse import Differentiator


def whole(d: Differentiator, found: Sequence[Item], values: Sequence[Value], is_one_there: bool = False) -> list[Item]:
    """Gradients of the pieces of a list, zeros where there is none, or where one turns out to be undefined.

    is_one_there: this stands in a region that runs when one of them is.
    """
    out: list[Item] = []
    is_sure = is_one_there and len({item for item in found if item != NONE}) == 1
    for item, value in zip(found, values, strict=True):
        if item == NONE:
            item = zeros(d, value, values[0])
        elif isinstance(item, Value) and not is_sure:
            item = d.where_defined(item, False, lambda there: there, partial(zeros, d, value, values[0]))
        if isinstance(item, Value):
            d.note(item, value)
        out.append(item)
    return out


def zeros(d: Differentiator, like: Value, first: Value) -> Value:
    """Zeros of the size and dtype of a value of f, which need not be saved for that; `first`: the first of the pieces it is one of."""
    type = d.facts.get(like, like.type)
    old_text = not d.modern or d.df.dialect.attribute_arguments
    if old_text or like in d.captures or like in d.inner_captures or not isinstance(type, TensorType):
        return d.build.call("aten::zeros_like", d.take(like), type=d.tensor)
    sizes = shape_of(type)
    forward = d.forward.build
    forward.after(like.node)
    size = list(sizes) if sizes is not None else d.take(d.forward.size_of(like))
    dtype = d.dtypes.get(like) or (like.type.dtype if isinstance(like.type, TensorType) else None)
    none = d.build.constant(None)
    return d.build.call("aten::zeros", size, dtype_code(dtype) if dtype is not None else code_of(d, like, first),
                        none, none, none, type=d.tensor)


def code_of(d: Differentiator, value: Value, first: Value) -> Value:
    """In df, the dtype of a value of f. The pieces of a list have one, unless they are of different tensors."""
    made = value.node.inputs[0].node if value.node.kind == "prim::ListUnpack" else value.node
    of = value if made.kind == "aten::broadcast_tensors" else first
    if of not in d.codes:
        d.codes[of] = d.forward.build.after(of.node).node("prim::dtype", (of,), output_types=(types.INT,)).output
    return d.take(d.codes[of])


def filled(d: Differentiator, given: Item, result: Item) -> Item:
    """In a region: the gradient of a list, with zeros for the pieces that have none."""
    if not isinstance(given, Items):
        return fill(d, given, result) if isinstance(given, Value) and isinstance(result, Value) and is_list(given) else given
    pieces = [each for each in result.items if isinstance(each, Value)] if isinstance(result, Items) else \
        pieces_of(d, result, len(given.items)) if isinstance(result, Value) else []
    return Items(whole(d, given.items, pieces, True), False, given.type)


def pieces_of(d: Differentiator, value: Value, count: int) -> Sequence[Value]:
    """The elements of a list of f, taken out of it there if nothing else does."""
    for user, _ in value.uses:
        if user.kind == "prim::ListUnpack" and len(user.outputs) == count and user.owner is value.node.owner:
            return user.outputs
    return d.forward.build.after(value.node).node("prim::ListUnpack", (value,), output_types=[d.tensor] * count).outputs
