"""Gradients of the elements of a list, with zeros for missing and undefined ones, since formulas (of `cat`, say) read all elements."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from irtool.autodiff.captures import ANY_DTYPE
from irtool.autodiff.gradients import Gradients
from irtool.autodiff.reach import is_list
from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.dtypes import dtype_code
from irtool.ir.graph import Value
from irtool.ir.shapes import shape_of
from irtool.ir.structure_kinds import PARTIAL_GRADIENT_KINDS
from irtool.ir.types import ListType, TensorType
from irtool.partial.items import NONE, Item, Items


def filled(grads: Gradients, gradient: Item, result: Item) -> Item:
    """In a region: the gradient of a list result, with zeros for elements without a gradient. Other gradients are returned unchanged."""
    if isinstance(gradient, Value):
        return filled_list(grads, gradient, result) if isinstance(result, Value) and is_list(gradient) else gradient
    if not isinstance(gradient, Items):
        return gradient
    pieces: Sequence[Value] = [each for each in result.items if isinstance(each, Value)] if isinstance(result, Items) else \
        pieces_of(grads, result, len(gradient.items)) if isinstance(result, Value) else []
    return Items(filled_pieces(grads, gradient.items, pieces), False, gradient.type)


def filled_pieces(grads: Gradients, gradients: Sequence[Item], values: Sequence[Value]) -> list[Item]:
    """The gradients of `values`, elements of a list; zeros for a missing gradient, and for one that is undefined in the run.

    Used inside a region, which runs only if one of the gradients is defined.
    """
    out: list[Item] = []
    is_defined = len({item for item in gradients if item != NONE}) == 1
    for item, value in zip(gradients, values, strict=True):
        if item == NONE:
            item = zeros(grads, value, values[0])
        elif isinstance(item, Value) and not is_defined:
            item = defined_or_zeros(grads, item, value, values[0])
        if isinstance(item, Value):
            grads.captures.note(item, value)
        out.append(item)
    return out


def pieces_of(grads: Gradients, value: Value, count: int) -> Sequence[Value]:
    """The elements of a list of f, as results of a `ListUnpack`, which is added to f if there is none."""
    for user, _ in value.uses:
        if user.kind == "prim::ListUnpack" and len(user.outputs) == count and user.owner is value.node.owner:
            return user.outputs
    return grads.into_f.build.after(value.node).node("prim::ListUnpack", (value,), output_types=[grads.tensor] * count).outputs


def defined_or_zeros(grads: Gradients, item: Value, like: Value, first: Value) -> Value:
    """A gradient, or zeros like the value `like` if the gradient is undefined in the run."""
    return grads.where_defined(item, False, lambda defined: defined, partial(zeros, grads, like, first))


def zeros(grads: Gradients, like: Value, first: Value) -> Value:
    """Zeros, in df, of the size and dtype of a value of f; captures the size, not the value. first: the first element of the list that
    `like` is an element of, or `like` itself."""
    type = grads.facts.get(like, like.type)
    old_text = not grads.modern or grads.df.dialect.is_of_2018
    if old_text or grads.captures.stand_in(like) is not None or not isinstance(type, TensorType):
        return grads.build.call("aten::zeros_like", grads.captures.take(like), type=grads.tensor)
    sizes = shape_of(type)
    grads.into_f.build.after(like.node)
    size = list(sizes) if sizes is not None else grads.captures.take(grads.into_f.size_of(like))
    dtype = grads.dtypes.get(like, like.type.dtype if isinstance(like.type, TensorType) else None)
    code = code_of(grads, like, first) if dtype in (None, ANY_DTYPE) else dtype_code(dtype)
    none = grads.build.constant(None)
    return grads.build.call("aten::zeros", size, code, none, none, none, type=grads.tensor)


def code_of(grads: Gradients, value: Value, first: Value) -> Value:
    """The dtype, for use in df, of a value of f. Elements of a list share that of the first, unless they come from different tensors."""
    maker = value.node.inputs[0].node if value.node.kind == "prim::ListUnpack" else value.node
    asked = value if maker.kind == "aten::broadcast_tensors" else first
    if asked not in grads.codes:
        grads.codes[asked] = grads.into_f.build.after(asked.node).node("prim::dtype", (asked,), output_types=(types.INT,)).output
    return grads.captures.take(grads.codes[asked])


# -- lists of unknown length
def filled_list(grads: Gradients, gradient: Value, result: Value) -> Value:
    """In a region: the gradient of a list of unknown length that an operator returned, with zeros for undefined elements."""
    if is_complete(gradient):
        return gradient
    if grads.changes.is_changed(result):        # capture the elements that the operator returned
        result = Builder(grads.f).after(result.node).node("aten::list", (result,), output_types=(result.type,)).output
    values = grads.captures.take(result)
    build = grads.build
    out = build.construct_list((), grads.tensor)
    count = build.node("aten::len", (gradient,), output_types=(types.INT,)).output
    true = build.constant(True)
    loop = build.node("prim::Loop", (count, true))
    body = loop.add_block()
    place = body.add_input(grads.df.fresh_id(), types.INT)
    build.at_end(body)
    one = build.node("aten::__getitem__", (gradient, place), output_types=(grads.tensor,)).output
    full = grads.where_defined(one, False, lambda defined: defined, partial(zeros_like_item, grads, values, place))
    build.node("aten::append", (out, full), output_types=(out.type,))
    body.add_output(true)
    build.at_end(loop.owner_block)
    return out


def is_complete(gradient: Value) -> bool:
    """Does a defined gradient of a list have only defined elements? Yes, if it comes from a formula. An input of df may have others: a
    caller may give a cotangent for one tensor of a list only."""
    node = gradient.node
    if isinstance(gradient.type, ListType) and isinstance(gradient.type.element, ListType):     # no operator returns lists of lists
        return True
    return node.kind == "prim::GradOf" and node.attributes["name"].value not in PARTIAL_GRADIENT_KINDS


def zeros_like_item(grads: Gradients, values: Value, place: Value) -> Value:
    """Zeros in the shape of an element of a list of df."""
    value = grads.build.node("aten::__getitem__", (values, place), output_types=(grads.tensor,)).output
    return grads.build.call("aten::zeros_like", value, type=grads.tensor)
