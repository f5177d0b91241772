"""The choice between capturing a value of f and recomputing it in df.

df can recompute a comparison of captured tensors, a view or a conversion for next to nothing: the same operator on the same values gives
the same bits. By default df does so where that saves a capture and needs no other (`cheapest`). With `least`, the captures are a minimum
cut (`irtool.autodiff.min_cut`): of all choices of cheap values to recompute, one that saves the fewest bytes. Operators that are random,
have side effects or cost more than an elementwise operator are never run twice.
"""
from __future__ import annotations

from collections.abc import Callable

from irtool.analysis.alias import Aliases
from irtool.autodiff.captures import Captures
from irtool.autodiff.min_cut import min_cut
from irtool.ir.constants import is_constant
from irtool.ir.dtypes import CODES
from irtool.ir.edits import clone_node
from irtool.ir.effects import facts_of, node_may_write
from irtool.ir.graph import Node, Value
from irtool.ir.structure_kinds import FREE_QUESTIONS
from irtool.ir.types import ListType, TensorType
from irtool.ops.facts import facts_of_node

NARROWING = 8
"""Bytes per element assumed for a tensor of unknown dtype."""


def choose_captures(captures: Captures, least: bool) -> None:
    """Recompute some values in df instead of capturing them. least: capture the fewest bytes."""
    read = captures.values_read()
    wanted = [value for value, stand_in in captures.at_top.items() if stand_in in read and value.node.owner is captures.f.block]
    allowed = _allowed(captures, least)
    if least:
        again = cut(captures, wanted, allowed)
    else:
        again = cheapest(captures, wanted, allowed)
    if again:
        compute_again(captures, again)


def _allowed(captures: Captures, least: bool) -> Callable[[Value], bool]:
    """A function: may df recompute a value of f? least: also if that costs a pass over the elements."""
    f = captures.f
    aliases: list[Aliases | None] = []

    def is_steady(value: Value) -> bool:
        if not aliases:     # an expensive analysis, made when first needed
            aliases.append(Aliases(f) if any(map(node_may_write, f.walk())) else None)
        return aliases[0] is None or not aliases[0].is_written(value)

    def allowed(value: Value) -> bool:
        node = value.node
        facts = facts_of_node(node)
        if not (facts.is_cheap if least else facts.is_free) and node.kind not in FREE_QUESTIONS:
            return False
        if node.owner is not f.block or node.blocks or len(node.outputs) != 1 and not facts.is_view:
            return False
        if facts_of(node.kind).is_random or node_may_write(node):
            return False
        return not _holds_tensors(value) and all(is_steady(each) for each in (value, *node.inputs))

    return allowed


def _holds_tensors(value: Value) -> bool:
    return isinstance(value.type, ListType) and isinstance(value.type.element, TensorType)


def cheapest(captures: Captures, wanted: list[Value], allowed: Callable[[Value], bool]) -> set[Value]:
    """The wanted values that df can recompute from other captures. A value that is an output of f anyway stays a capture."""
    captured, outputs = set(wanted), set(captures.f.outputs)
    return {value for value in wanted if value not in outputs and allowed(value)
            and all(_is_free_in_df(each, captured, allowed) for each in value.node.inputs)}


def _is_free_in_df(value: Value, captured: set[Value], allowed: Callable[[Value], bool]) -> bool:
    """Is a value captured, constant, or an allowed list of such values?"""
    if value in captured or is_constant(value):
        return True
    node = value.node
    return node.kind == "prim::ListConstruct" and allowed(value) and all(each in captured or is_constant(each) for each in node.inputs)


def cut(captures: Captures, wanted: list[Value], allowed: Callable[[Value], bool]) -> set[Value]:
    """All values that df recomputes if it captures the fewest bytes; of several such choices, the one with the fewest captures."""
    places: dict[Value, int] = {}
    edges: list[tuple[int, int]] = []
    fixed: list[int] = []
    stack = list(wanted)
    for value in wanted:
        places.setdefault(value, len(places))
    while stack:
        value = stack.pop()
        if value in captures.f.inputs or not allowed(value):
            fixed.append(places[value])
            continue
        for each in value.node.inputs:
            if is_constant(each):
                continue
            if each not in places:
                places[each] = len(places)
                stack.append(each)
            edges.append((places[each], places[value]))
    values = list(places)
    known = [_bytes(_memory_of(value)) for value in values]
    largest = max((size for size in known if size is not None), default=1)
    weights = [(largest if size is None else size) * (len(values) + 1) + 1 for size in known]
    saved = min_cut(weights, edges, fixed, [places[value] for value in wanted])
    needed, again = list(wanted), set()
    while needed:
        value = needed.pop()
        if places[value] not in saved and value not in again:
            again.add(value)
            needed += [each for each in value.node.inputs if not is_constant(each)]
    return again


def _memory_of(value: Value) -> Value:
    """The value that a view is a view of: saving the view keeps all its memory alive."""
    while facts_of_node(value.node).is_view and value.node.inputs:
        value = value.node.inputs[0]
    return value


def _bytes(value: Value) -> int | None:
    """The bytes of a captured value; None if its type does not say; 0 for numbers and lists of numbers."""
    type = value.type
    if not isinstance(type, TensorType):
        return None if _holds_tensors(value) else 0
    if type.shape is None:
        return None
    count = 1
    for size in type.shape:
        count *= size
    return count * _element_bytes(type.dtype)


def _element_bytes(dtype: str | None) -> int:
    digits = "".join(filter(str.isdigit, dtype)) if dtype in CODES else ""
    return int(digits) // 8 if digits else 1 if dtype == "bool" else NARROWING


def compute_again(captures: Captures, again: set[Value]) -> None:
    """Compute the values `again` of f in df, each in front of its first reader."""
    in_df: dict[Value, Value] = {}
    stands_for = {stand_in: value for value, stand_in in captures.at_top.items() if value in again}

    def put(value: Value, before: Node) -> Value:
        """The value of df for a value of f, computed in front of a node if df has none yet. Not recursive, since chains may be long."""
        stack = [value]
        while stack:
            top = stack[-1]
            if top in in_df:
                stack.pop()
                continue
            if top not in again and not is_constant(top):
                in_df[top] = captures.take(top)
                continue
            missing = [each for each in top.node.inputs if each not in in_df]
            if missing:
                stack += missing
                continue
            in_df[top] = place(top, before)
        return in_df[value]

    def place(value: Value, before: Node) -> Value:
        stand_in = captures.at_top.get(value)
        if stand_in is not None and value in again and len(value.node.outputs) == 1:
            node = captures.become(stand_in, value.node.kind, value.node.attributes, [in_df[each] for each in value.node.inputs])
            node.move_before(before)
            return captures.at_top.pop(value)
        copy = clone_node(value.node, {each: in_df[each] for each in value.node.inputs}).insert_before(before)
        for old, new in zip(value.node.outputs, copy.outputs, strict=True):
            new.name = captures.df.fresh_id()
            if old in again:
                taken = captures.at_top.pop(old, None)
                if taken is not None:
                    new.type = taken.type
                    taken.exchange(new)
                    captures.note(taken, old)
                in_df[old] = taken or new
        return in_df.setdefault(value, copy.outputs[value.index])

    for node in [*captures.df.block, captures.df.block.return_node]:
        for read in _reads(node):
            value = stands_for.get(read)
            if value is not None and value not in in_df:
                put(value, node)


def _reads(node: Node) -> list[Value]:
    """The values that a node and the nodes in its blocks read."""
    operands = list(node.inputs)
    for block in node.blocks:
        operands += block.outputs
        for inner in block:
            operands += _reads(inner)
    return operands
