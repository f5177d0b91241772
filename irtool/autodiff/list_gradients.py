"""Gradients of lists of unknown length, and of lists that change.

The gradient of a list is a list of gradients, element by element, some of which may be undefined; or it is undefined as a whole. Where a
list was changed, the sweep, which goes backwards in time, changes its gradient back: what was appended is taken off the end and is the
gradient of what was appended. Nothing is written in place but lists that were made in the same region.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irtool.autodiff.captures import SOURCE
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.constants import constant
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Node, Value
from irtool.ir.structure_kinds import PARTIAL_GRADIENT_KINDS, SHARING_KINDS
from irtool.ir.types import ListType, TupleType, Type
from irtool.partial.evaluate import guard_around
from irtool.partial.items import NONE, Item, Items, Known, elements, item_of, place_of

if TYPE_CHECKING:
    from irtool.autodiff.reverse import Differentiator


class Lists:
    """Makes the nodes of df that work on lists of gradients."""

    __slots__ = ("d", "type")

    def __init__(self, d: Differentiator, type: Type) -> None:
        self.d = d
        self.type = type
        """Of the lists."""

    @property
    def element(self) -> Type:
        return self.d.gradient_type(self.type.element) if isinstance(self.type, ListType) else self.d.tensor

    def node(self, kind: str, *operands: Value | int | None, type: Type | None = None) -> Value:
        """A node, of a list unless the type says otherwise; numbers become constants."""
        inputs = [each if isinstance(each, Value) else self.d.reverse.value(Known(each), types.INT) for each in operands]
        return self.d.build.node(kind, inputs, output_types=(type or self.type,)).output

    def count(self, kind: str, *operands: Value | int) -> Value:
        """A node that gives a number."""
        return self.node(kind, *operands, type=types.INT)

    def nothing(self, count: Value | int) -> Value:
        """So many undefined elements."""
        none = self.d.build.node(self.d.df.dialect.undefined_kind, output_types=(self.element,)).output
        one = self.node("prim::ListConstruct", none)
        return one if count == 1 else self.node("aten::mul", one, count)

    def only(self, count: Value | int, place: Value | int, gradient: Value) -> Value:
        """A list in which one element is defined."""
        made = self.nothing(count)
        self.node("aten::_set_item", made, place, gradient)
        return made

    def item(self, gradients: Value, place: Value | int) -> Value:
        """An element."""
        return self.node("aten::__getitem__", gradients, place, type=self.element)

    def slice(self, gradients: Value, start: Value | int | None, end: Value | int | None) -> Value:
        """Some elements."""
        return self.node("aten::slice", gradients, start, end, 1)

    def join(self, *parts: Value) -> Value:
        """Lists one after the other."""
        whole = parts[0]
        for part in parts[1:]:
            whole = self.node("aten::add", whole, part)
        return whole


def region(d: Differentiator, kind: str, given: Sequence[Value], make: Callable[[], Sequence[Value]]) -> list[Value]:
    """The results of a `GradOf` region: undefined where all that is given is."""
    made = d.build.node("prim::GradOf", given, {"name": Attribute.of(kind, d.df.dialect)})
    body = made.add_block()
    d.build.at_end(body)
    d.reverse.new_block()
    results = make()
    for value in results:
        body.add_output(value)
    d.build.at_end(d.block)
    d.reverse.new_block()
    return [made.add_output(d.df.fresh_id(), value.type) for value in results]


def number(d: Differentiator, value: Value) -> Value | int:
    """In df, a number of f: known, or captured."""
    found = constant(value)
    return found if isinstance(found, int) else d.take(value)


def length_at(d: Differentiator, value: Value, node: Node) -> Value | int:
    """In df, how long a list of f is when `node` gets it."""
    known = elements(item_of(value)) if not d.changes.is_changed(value) else None
    if known is not None:
        return len(known)
    made = d.lengths.get(value)
    if made is None:
        build = Builder(d.f).before(node)
        is_hoisted = is_there(value, node) and not d.changes.is_changed(value)
        if is_hoisted and value.is_block_input:
            build.at_start(value.node.owner_block)
        elif is_hoisted:
            build.after(value.node)
        made = build.node("aten::len", (value,), output_types=(types.INT,)).output
        if is_hoisted:
            d.lengths[value] = made
    return d.take(made)


def is_there(value: Value, node: Node) -> bool:
    """Is a list that `node` reads certain to be there where it comes from? In a graph of gradients it may be undefined."""
    if value.is_block_input:
        return guard_around(node.owner_block, value) is None
    return value.node.kind.startswith("aten::") and value.node.kind not in SHARING_KINDS


def is_list(value: Value) -> bool:
    """Is it a list?"""
    return isinstance(value.type, ListType)


# -- lists that change
def undo(d: Differentiator, node: Node) -> None:
    """A node of f that changes a list: its gradient becomes what it was before."""
    changed = node.inputs[0]
    if changed not in d.needs:
        return
    held = d.gradients.get(changed)
    taken = d.gradients.get(node.output) if node.kind == "aten::pop" else None
    if held is None and taken is None:
        return
    after = None if held is None else d.one_value(held, changed.type)
    maker = UNDO.get(node.kind)
    if maker is None:
        raise UnsupportedError(f"the gradient of {node.kind} is not supported yet")
    results = maker(d, Lists(d, d.gradient_type(changed.type)), node, after)
    d.gradients[changed] = results[0]
    if len(results) > 1 and node.inputs[-1] in d.needs:
        d.add_gradient(node.inputs[-1], results[1])


def _append(d: Differentiator, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    assert after is not None
    return region(d, node.kind, (after,), lambda: (lists.slice(after, None, -1), lists.item(after, -1)))


def _set_item(d: Differentiator, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    assert after is not None
    place = number(d, node.inputs[1])

    def make() -> list[Value]:
        before = lists.node("aten::list", after)
        none = d.build.node(d.df.dialect.undefined_kind, output_types=(lists.element,)).output
        lists.node("aten::_set_item", before, place, none)
        return [before, lists.item(after, place)]

    return region(d, node.kind, (after,), make)


def _insert(d: Differentiator, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    assert after is not None
    at = clipped(d, node.inputs[0], node.inputs[1], node)

    def make() -> list[Value]:
        behind = at + 1 if isinstance(at, int) else lists.count("aten::add", at, 1)
        return [lists.join(lists.slice(after, None, at), lists.slice(after, behind, None)), lists.item(after, at)]

    return region(d, node.kind, (after,), make)


def _pop(d: Differentiator, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    place = number(d, node.inputs[1]) if len(node.inputs) > 1 else -1
    count = length_at(d, node.inputs[0], node)
    taken = d.gradients.get(node.output) if node.outputs else None
    given = d.one_value(taken, node.output.type) if taken is not None else None

    def make() -> list[Value]:
        at = place if isinstance(place, int) and place >= 0 else lists.count("aten::remainder", place, count)
        none = d.build.node(d.df.dialect.undefined_kind, output_types=(lists.element,)).output
        others = lists.nothing(lists.count("aten::sub", count, 1))
        rest = others if after is None else lists.node("prim::AutogradAdd", after, others)
        middle = lists.node("prim::ListConstruct", none if given is None else given)
        return [lists.join(lists.slice(rest, None, at), middle, lists.slice(rest, at, None))]

    return region(d, node.kind, [each for each in (after, given) if each is not None], make)


def _extend(d: Differentiator, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    assert after is not None
    count = length_at(d, node.inputs[0], node)
    return region(d, node.kind, (after,), lambda: (lists.slice(after, None, count), lists.slice(after, count, None)))


def _reverse(d: Differentiator, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    assert after is not None

    def make() -> list[Value]:
        before = lists.node("aten::list", after)
        d.build.node("aten::reverse", (before,))
        return [before]

    return region(d, node.kind, (after,), make)


def _clear(d: Differentiator, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    return [d.build.node(d.df.dialect.undefined_kind, output_types=(lists.type,)).output]


UNDO: dict[str, Callable[[Differentiator, Lists, Node, Value | None], list[Value]]] = {
    "aten::append": _append, "aten::_set_item": _set_item, "aten::insert": _insert, "aten::pop": _pop, "aten::Delete": _pop,
    "aten::extend": _extend, "aten::add_": _extend, "aten::reverse": _reverse, "aten::clear": _clear,
}
"""Kind -> the gradient of the list before, and of the last operand."""


def clipped(d: Differentiator, source: Value, place: Value, node: Node) -> Value | int:
    """A place in a list of f as slices and `insert` read it: counted from the end when negative, never outside the list."""
    if constant(place) in (0, None):
        return 0
    build = Builder(d.f).before(node)
    start = build.node("aten::slice", (source, build.constant(None), place, build.constant(1)), output_types=(source.type,)).output
    return d.take(build.node("aten::len", (start,), output_types=(types.INT,)).output)


# -- lists as values
def is_whole(d: Differentiator, gradients: Value) -> bool:
    """Are the elements of a gradient that is there all certain to be there? Those from outside, or from an operator's formula, are."""
    node = gradients.node
    if node.kind == "prim::GradOf":
        return node.attributes["name"].value not in PARTIAL_GRADIENT_KINDS
    return node.kind == SOURCE


def fill(d: Differentiator, gradients: Value, like: Value) -> Value:
    """In a region: the gradient of a list that an operator gave, with zeros for the elements that have none."""
    if is_whole(d, gradients):
        return gradients
    if d.changes.is_changed(like):      # of what it is now
        like = Builder(d.f).after(like.node).node("aten::list", (like,), output_types=(like.type,)).output
    likes = d.take(like)
    whole = d.build.construct_list((), d.tensor)
    count = d.build.node("aten::len", (gradients,), output_types=(types.INT,)).output
    true = d.build.constant(True)
    loop = d.build.node("prim::Loop", (count, true))
    body = loop.add_block()
    place = body.add_input(d.df.fresh_id(), types.INT)
    d.build.at_end(body)
    one = d.build.node("aten::__getitem__", (gradients, place), output_types=(d.tensor,)).output
    full = d.where_defined(one, False, lambda there: there, lambda: zeros_like(d, likes, place))
    d.build.node("aten::append", (whole, full), output_types=(whole.type,))
    body.add_output(true)
    d.build.at_end(loop.owner_block)
    return whole


def zeros_like(d: Differentiator, values: Value, place: Value) -> Value:
    """Zeros in the shape of an element of a list."""
    value = d.build.node("aten::__getitem__", (values, place), output_types=(d.tensor,)).output
    return d.build.call("aten::zeros_like", value, type=d.tensor)


def unpack(d: Differentiator, gradients: Value, values: Sequence[Value]) -> list[Item]:
    """The elements of the gradient of a list or tuple that was put together from `values`."""
    what = "Tuple" if isinstance(gradients.type, TupleType) else "List"

    def make() -> Sequence[Value]:
        return d.build.node(f"prim::{what}Unpack", (gradients,), output_types=[d.gradient_type(value.type) for value in values]).outputs

    return list(region(d, f"prim::{what}Construct", (gradients,), make))


def hand_on_list(d: Differentiator, node: Node) -> None:
    """A node that takes lists apart, or puts them together."""
    given = d.gradients[node.output]
    source = node.inputs[0]
    if not any(value in d.needs for value in node.inputs):
        return
    maker = READ.get(node.kind)
    if maker is None:       # all elements are to be there
        d.apply_formula(node)
    else:
        maker(d, Lists(d, d.gradient_type(source.type)), node, given)


def _getitem(d: Differentiator, lists: Lists, node: Node, given: Item) -> None:
    source = node.inputs[0]
    if source not in d.needs:
        return
    known = None if d.changes.is_changed(source) else elements(item_of(source))
    place = None if known is None else place_of(item_of(node.inputs[1]), len(known))
    if known is not None and place is not None:
        found: list[Item] = [NONE] * len(known)
        found[place] = d.own(given)
        d.add_gradient(source, Items(found, False, source.type))
        return
    index, count = number(d, node.inputs[1]), length_at(d, source, node)
    value = d.one_value(given, node.output.type)
    (found_list,) = region(d, node.kind, (value,), lambda: (lists.only(count, index, value),))
    d.add_gradient(source, found_list)


def _add(d: Differentiator, lists: Lists, node: Node, given: Item) -> None:
    count = length_at(d, node.inputs[0], node)
    value = d.one_value(given, node.output.type)
    pieces = region(d, node.kind, (value,), lambda: (lists.slice(value, None, count), lists.slice(value, count, None)))
    for source, piece in zip(node.inputs, pieces, strict=True):
        if source in d.needs:
            d.add_gradient(source, piece)


def _copy(d: Differentiator, lists: Lists, node: Node, given: Item) -> None:
    if node.inputs[0] in d.needs:
        d.add_gradient(node.inputs[0], d.own(given))


def _slice(d: Differentiator, lists: Lists, node: Node, given: Item) -> None:
    source, start, _, step = node.inputs
    if source not in d.needs:
        return
    if constant(step) != 1:
        d.apply_formula(node)
        return
    count = length_at(d, source, node)
    length = length_at(d, node.output, node.next)
    at = clipped(d, source, start, node)
    value = d.one_value(given, node.output.type)

    def make() -> list[Value]:
        rest = lists.count("aten::sub", lists.count("aten::sub", count, at), length)
        return [lists.join(lists.nothing(at), value, lists.nothing(rest))]

    d.add_gradient(source, region(d, node.kind, (value,), make)[0])


READ: dict[str, Callable[[Differentiator, Lists, Node, Item], None]] = {
    "aten::__getitem__": _getitem, "aten::select": _getitem, "aten::add": _add, "aten::list": _copy, "aten::copy": _copy,
    "aten::slice": _slice,
}
"""Kind -> what hands the gradient of the result to the operands."""
