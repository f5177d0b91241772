"""Gradients of lists of unknown length, and of lists that change.

The gradient of a list is a list of gradients, one per element, some of which may be undefined; or it is undefined as a whole. The sweep
goes backwards in time. Where f changes a list, df reverts the change in the gradient of the list: for an `append`, the last element is
removed, and is the gradient of the value appended. df changes only lists that it constructs in the same region.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from irtool.autodiff.formula_gradients import overload_of, reverse_operator
from irtool.autodiff.gradients import Gradients
from irtool.autodiff.reach import is_list
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.constants import constant
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Node, Value
from irtool.ir.handlers import Handlers
from irtool.ir.schema import schema_of
from irtool.ir.structure_kinds import SHARING_KINDS
from irtool.ir.types import ListType, TensorType, TupleType, Type
from irtool.partial.items import NONE, Item, Items, Known, elements, item_of, place_of
from irtool.partial.target import guard_around


class Lists:
    """Makes nodes of df that compute lists of gradients."""

    __slots__ = ("grads", "type")

    def __init__(self, grads: Gradients, type: Type) -> None:
        self.grads = grads
        self.type = type
        """The type of the lists."""

    @property
    def element(self) -> Type:
        return self.grads.captures.gradient_type(self.type.element) if isinstance(self.type, ListType) else self.grads.tensor

    def node(self, kind: str, *operands: Value | int | None, type: Type | None = None) -> Value:
        """The result of a new node, a list unless `type` is another; numbers among the operands become constants."""
        inputs = [each if isinstance(each, Value) else self.grads.into_df.value(Known(each), types.INT) for each in operands]
        return self.grads.build.node(kind, inputs, output_types=(type or self.type,)).output

    def count(self, kind: str, *operands: Value | int) -> Value:
        """The result of a new node, an integer."""
        return self.node(kind, *operands, type=types.INT)

    def nothing(self, count: Value | int) -> Value:
        """A list of `count` undefined gradients."""
        one = self.node("prim::ListConstruct", self.grads.undefined_like(self.element))
        return one if count == 1 else self.node("aten::mul", one, count)

    def only(self, count: Value | int, place: Value | int, gradient: Value) -> Value:
        """A list of `count` gradients, of which only the one at `place` is defined."""
        gradients = self.nothing(count)
        self.node("aten::_set_item", gradients, place, gradient)
        return gradients

    def item(self, gradients: Value, place: Value | int) -> Value:
        """The element at a place."""
        return self.node("aten::__getitem__", gradients, place, type=self.element)

    def slice(self, gradients: Value, start: Value | int | None, end: Value | int | None) -> Value:
        """The elements from `start` to `end` (None: to the end)."""
        return self.node("aten::slice", gradients, start, end, 1)

    def for_each(self, gradients: Value, visit: Callable[[Value], object]) -> None:
        """A loop over a list, whose body are the nodes that `visit` adds; they take a place in the list."""
        build = self.grads.build
        true = build.constant(True)
        loop = build.node("prim::Loop", (self.count("aten::len", gradients), true))
        body = loop.add_block()
        place = body.add_input(self.grads.df.fresh_id(), types.INT)
        build.at_end(body)
        visit(place)
        body.add_output(true)
        build.at_end(loop.owner_block)

    def join(self, *parts: Value) -> Value:
        """The concatenation of lists."""
        whole = parts[0]
        for part in parts[1:]:
            whole = self.node("aten::add", whole, part)
        return whole


def region(grads: Gradients, kind: str, gradients: Sequence[Value], make: Callable[[], Sequence[Value]]) -> list[Value]:
    """The results of a new `GradOf` region around the nodes that `make` adds; undefined if all of `gradients` are."""
    node = grads.build.node("prim::GradOf", gradients, {"name": Attribute.of(kind, grads.df.dialect)})
    body = node.add_block()
    grads.continue_in(body)
    results = make()
    for value in results:
        body.add_output(value)
    grads.resume()
    return [node.add_output(grads.df.fresh_id(), value.type) for value in results]


def number(grads: Gradients, value: Value) -> Value | int:
    """A number of f for use in df: an int if it is a constant, else a capture."""
    known = constant(value)
    return known if isinstance(known, int) else grads.captures.take(value)


def length_at(grads: Gradients, value: Value, node: Node) -> Value | int:
    """The length, for use in df, that a list of f has in front of `node`."""
    known = elements(item_of(value)) if not grads.changes.is_changed(value) else None
    if known is not None:
        return len(known)
    length = grads.lengths.get(value)
    if length is None:
        build = Builder(grads.f).before(node)
        is_hoisted = is_defined(value, node) and not grads.changes.is_changed(value)
        if is_hoisted and value.is_block_input:
            build.at_start(value.node.owner_block)
        elif is_hoisted:
            build.after(value.node)
        length = build.node("aten::len", (value,), output_types=(types.INT,)).output
        if is_hoisted:
            grads.lengths[value] = length
    return grads.captures.take(length)


def is_defined(value: Value, node: Node) -> bool:
    """Is a list that `node` reads certainly defined where it is computed? A list of gradients may be undefined."""
    if value.is_block_input:
        return guard_around(node.owner_block, value) is None
    return value.node.kind.startswith("aten::") and value.node.kind not in SHARING_KINDS


# -- lists that change
UNDO: Handlers[Callable[[Gradients, Lists, Node, Value | None], list[Value]]] = Handlers()
"""Kind of a node that changes a list -> a function that returns the gradients of the list before the change and of the last operand."""


def reverse_change(grads: Gradients, node: Node) -> Sequence[Node]:
    """Differentiate a node that changes a list: compute the gradient that the list has in front of the node."""
    if node not in grads.changes.at:        # the node writes into a tensor
        return reverse_operator(grads, node)
    changed = node.inputs[0]
    if changed not in grads.needs:
        return ()
    held = grads.current.get(changed)
    taken = grads.current.get(node.output) if node.kind == "aten::pop" else None
    if held is None and taken is None:
        return ()
    after = None if held is None else grads.one_value(held, changed.type)
    maker = UNDO.get(node.kind)
    if maker is None:
        raise UnsupportedError(f"the gradient of {node.kind} is not supported yet", code="E0501")
    refuse_named(node)
    results = maker(grads, Lists(grads, grads.captures.gradient_type(changed.type)), node, after)
    grads.current[changed] = results[0]
    if len(results) > 1 and node.inputs[-1] in grads.needs:
        grads.add(node.inputs[-1], results[1])
    return ()


@UNDO.of("aten::append")
def _append(grads: Gradients, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    assert after is not None
    return region(grads, node.kind, (after,), lambda: (lists.slice(after, None, -1), lists.item(after, -1)))


@UNDO.of("aten::_set_item")
def _set_item(grads: Gradients, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    assert after is not None
    place = number(grads, node.inputs[1])

    def make() -> list[Value]:
        before = lists.node("aten::list", after)
        lists.node("aten::_set_item", before, place, grads.undefined_like(lists.element))
        return [before, lists.item(after, place)]

    return region(grads, node.kind, (after,), make)


@UNDO.of("aten::insert")
def _insert(grads: Gradients, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    assert after is not None
    at = clipped(grads, node.inputs[0], node.inputs[1], node)

    def make() -> list[Value]:
        behind = at + 1 if isinstance(at, int) else lists.count("aten::add", at, 1)
        return [lists.join(lists.slice(after, None, at), lists.slice(after, behind, None)), lists.item(after, at)]

    return region(grads, node.kind, (after,), make)


@UNDO.of("aten::pop", "aten::Delete")
def _pop(grads: Gradients, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    place = number(grads, node.inputs[1]) if len(node.inputs) > 1 else -1
    count = length_at(grads, node.inputs[0], node)
    taken = grads.current.get(node.output) if node.outputs else None
    item = grads.one_value(taken, node.output.type) if taken is not None else None

    def make() -> list[Value]:
        at = place if isinstance(place, int) and place >= 0 else lists.count("aten::remainder", place, count)
        none = grads.undefined_like(lists.element)
        others = lists.nothing(lists.count("aten::sub", count, 1))
        rest = others if after is None else lists.node("prim::AutogradAdd", after, others)
        middle = lists.node("prim::ListConstruct", none if item is None else item)
        return [lists.join(lists.slice(rest, None, at), middle, lists.slice(rest, at, None))]

    return region(grads, node.kind, [each for each in (after, item) if each is not None], make)


@UNDO.of("aten::extend", "aten::add_")
def _extend(grads: Gradients, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    assert after is not None
    count = length_at(grads, node.inputs[0], node)
    return region(grads, node.kind, (after,), lambda: (lists.slice(after, None, count), lists.slice(after, count, None)))


@UNDO.of("aten::reverse")
def _reverse(grads: Gradients, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    assert after is not None

    def make() -> list[Value]:
        before = lists.node("aten::list", after)
        grads.build.node("aten::reverse", (before,))
        return [before]

    return region(grads, node.kind, (after,), make)


@UNDO.of("aten::clear")
def _clear(grads: Gradients, lists: Lists, node: Node, after: Value | None) -> list[Value]:
    return [grads.undefined_like(lists.type)]


def clipped(grads: Gradients, source: Value, place: Value, node: Node) -> Value | int:
    """A place in a list of f as slices and `insert` interpret it: negative places count from the end, places outside are clipped."""
    if constant(place) in (0, None):
        return 0
    build = Builder(grads.f).before(node)
    start = build.node("aten::slice", (source, build.constant(None), place, build.constant(1)), output_types=(source.type,)).output
    return grads.captures.take(build.node("aten::len", (start,), output_types=(types.INT,)).output)


# -- lists as values
def unpack(grads: Gradients, gradients: Value, values: Sequence[Value]) -> list[Item]:
    """The elements of the gradient of a list or tuple that f constructs from `values`."""
    what = "Tuple" if isinstance(gradients.type, TupleType) else "List"

    def make() -> Sequence[Value]:
        declared = gradients.type.elements if what == "Tuple" else [value.type for value in values]
        element_types = [grads.captures.gradient_type(each) for each in declared]
        return grads.build.node(f"prim::{what}Unpack", (gradients,), output_types=element_types).outputs

    return list(region(grads, f"prim::{what}Construct", (gradients,), make))


def refuse_named(node: Node) -> None:
    """Raises UnsupportedError for arguments written as attributes, which the rules for lists do not read, and for a node without
    overload."""
    named = overload_of(node).positions.keys() & node.attributes
    if named:
        raise UnsupportedError(f"the gradient of {node.kind} whose argument '{min(named)}' is an attribute is not supported", code="E0501")


READ: Handlers[Callable[[Gradients, Lists, Node, Item], None]] = Handlers()
"""Kind of a node that takes lists -> a function that passes the gradient of the result on to the operands."""


def reverse_list(grads: Gradients, node: Node) -> Sequence[Node]:
    """Differentiate a node that indexes, slices, copies, repeats or joins lists, or hand an operator on tensors to its formula."""
    source = node.inputs[0]
    if node.kind == "aten::mul":        # the number may stand in front
        source = next(filter(is_list, node.inputs), source)
    if not is_list(source):
        schema = schema_of(node)
        if schema is not None and isinstance(schema.arguments[0].type, ListType) and isinstance(source.type, TensorType):
            raise UnsupportedError(f"the gradient of {node.kind} for %{source.name} : {source.type}, which is no list, is not supported",
                                   code="E0501")
        return reverse_operator(grads, node)
    rule = READ.get(node.kind)
    if not any(value in grads.needs for value in node.inputs):
        return ()
    if rule is None or node.kind == "aten::slice" and len(node.inputs) < 4:
        return reverse_operator(grads, node)
    refuse_named(node)
    rule(grads, Lists(grads, grads.captures.gradient_type(source.type)), node, grads.current[node.output])
    return ()


@READ.of("aten::__getitem__", "aten::select")
def _getitem(grads: Gradients, lists: Lists, node: Node, gradient: Item) -> None:
    source = node.inputs[0]
    if source not in grads.needs:
        return
    known = None if grads.changes.is_changed(source) else elements(item_of(source))
    place = None if known is None else place_of(item_of(node.inputs[1]), len(known))
    if known is not None and place is not None:
        parts: list[Item] = [NONE] * len(known)
        parts[place] = grads.renamed(gradient)
        grads.add(source, Items(parts, False, source.type))
        return
    index, count = number(grads, node.inputs[1]), length_at(grads, source, node)
    value = grads.one_value(gradient, node.output.type)
    (whole,) = region(grads, node.kind, (value,), lambda: (lists.only(count, index, value),))
    grads.add(source, whole)


@READ.of("aten::add")
def _add(grads: Gradients, lists: Lists, node: Node, gradient: Item) -> None:
    count = length_at(grads, node.inputs[0], node)
    value = grads.one_value(gradient, node.output.type)
    pieces = region(grads, node.kind, (value,), lambda: (lists.slice(value, None, count), lists.slice(value, count, None)))
    for source, piece in zip(node.inputs, pieces, strict=True):
        if source in grads.needs:
            grads.add(source, piece)


@READ.of("aten::list", "aten::copy")
def _copy(grads: Gradients, lists: Lists, node: Node, gradient: Item) -> None:
    if node.inputs[0] in grads.needs:
        grads.add(node.inputs[0], grads.renamed(gradient))


@READ.of("aten::mul")
def _mul(grads: Gradients, lists: Lists, node: Node, gradient: Item) -> None:
    source = next(value for value in node.inputs if is_list(value))
    if source not in grads.needs:
        return
    count = length_at(grads, source, node)
    value = grads.one_value(gradient, node.output.type)

    def make() -> list[Value]:
        sums = lists.nothing(count)

        def add(place: Value) -> None:
            at = lists.count("aten::remainder", place, count)
            total = lists.node("prim::AutogradAdd", lists.item(sums, at), lists.item(value, place), type=lists.element)
            lists.node("aten::_set_item", sums, at, total)

        lists.for_each(value, add)
        return [sums]

    grads.add(source, region(grads, node.kind, (value,), make)[0])


@READ.of("aten::slice")
def _slice(grads: Gradients, lists: Lists, node: Node, gradient: Item) -> None:
    source, start, _, step = node.inputs
    if source not in grads.needs:
        return
    count = length_at(grads, source, node)
    value = grads.one_value(gradient, node.output.type)
    if constant(step) == 1:
        at, length = clipped(grads, source, start, node), length_at(grads, node.output, node.next)

        def make() -> list[Value]:
            rest = lists.count("aten::sub", lists.count("aten::sub", count, at), length)
            return [lists.join(lists.nothing(at), value, lists.nothing(rest))]
    else:
        first, distance = first_place(grads, source, start, step, node), number(grads, step)

        def make() -> list[Value]:
            whole = lists.nothing(count)

            def put(place: Value) -> None:
                at = lists.count("aten::add", lists.count("aten::mul", place, distance), first)
                lists.node("aten::_set_item", whole, at, lists.item(value, place))

            lists.for_each(value, put)
            return [whole]

    grads.add(source, region(grads, node.kind, (value,), make)[0])


def first_place(grads: Gradients, source: Value, start: Value, step: Value, node: Node) -> Value:
    """The place in a list of f of the first element that a slice by `step` takes, if it takes any: from there to the list's end are as many
    elements as a slice by 1 has, to its front as many as one by -1 has."""
    build = Builder(grads.f).before(node)

    def whole(kind: str, *operands: Value) -> Value:
        return build.node(kind, operands, output_types=(types.INT,)).output

    def length_from_start(sign: int) -> Value:
        part = build.node("aten::slice", (source, start, build.constant(None), build.constant(sign)), output_types=(source.type,)).output
        return whole("aten::len", part)

    behind = whole("aten::sub", whole("aten::len", source), length_from_start(1))
    before = whole("aten::sub", length_from_start(-1), build.constant(1))
    is_forward = build.node("aten::gt", (step, build.constant(0)), output_types=(types.BOOL,)).output
    choice = build.node("prim::If", (is_forward,))
    for place in (behind, before):
        choice.add_block().add_output(place)
    return grads.captures.take(choice.add_output(grads.f.fresh_id(), types.INT))
