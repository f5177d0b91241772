"""Which values of f are captured, and which are computed again in df.

What the backward halves of formulas read need not be what is captured: a comparison of captured tensors, a view or a conversion of one is
computed again for next to nothing, by the same operator on the same values, hence with the same bits. By default that is done where it
saves a capture and costs no other (`cheapest`). With `least`, the values that are captured are a minimum cut (`irtool.autodiff.min_cut`):
of all the ways of computing cheap values again, one that keeps the fewest bytes. Nothing random, nothing with an effect, nothing that costs
more than an elementwise operator is ever computed twice.
"""
from __future__ import annotations

from collections.abc import Callable

from irtool.analysis.alias import Aliases
from irtool.autodiff.captures import Captures
from irtool.autodiff.min_cut import min_cut
from irtool.ir.constants import is_constant
from irtool.ir.dtypes import CODES
from irtool.ir.effects import facts_of, node_may_write
from irtool.ir.graph import Node, Value
from irtool.ir.rewrite import clone_node
from irtool.ir.structure_kinds import FREE_QUESTIONS
from irtool.ir.types import ListType, TensorType
from irtool.ops.facts import facts_of_node

NARROWING = 8
"""Bytes of an element whose type does not say."""


def choose_captures(captures: Captures, least: bool) -> None:
    """Change what df takes: values of f that are computed again are no longer captured."""
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
    """May this value of f be computed again? `least`: also where that costs a pass over the elements."""
    f = captures.f
    aliases: list[Aliases | None] = []

    def is_steady(value: Value) -> bool:
        if not aliases:     # asked for when there is something to ask
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
    """Values that cost nothing to compute again: df has all that they are computed from anyway. A result of f that df reads stays a
    capture."""
    captured, outputs = set(wanted), set(captures.f.outputs)
    return {value for value in wanted if value not in outputs and allowed(value)
            and all(_is_free_in_df(each, captured, allowed) for each in value.node.inputs)}


def _is_free_in_df(value: Value, captured: set[Value], allowed: Callable[[Value], bool]) -> bool:
    """Is a value captured, constant, or a list of such values?"""
    if value in captured or is_constant(value):
        return True
    node = value.node
    return node.kind == "prim::ListConstruct" and allowed(value) and all(each in captured or is_constant(each) for each in node.inputs)


def cut(captures: Captures, wanted: list[Value], allowed: Callable[[Value], bool]) -> set[Value]:
    """All values that are computed again when the fewest bytes are kept, and of the ways to do that, the one that computes least."""
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
    """The value in whose memory a view lives: to keep the view is to keep all of it."""
    while facts_of_node(value.node).is_view and value.node.inputs:
        value = value.node.inputs[0]
    return value


def _bytes(value: Value) -> int | None:
    """The bytes that a captured value holds; None where the type does not say. Numbers and lists of them count as nothing."""
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
    """Each value of f in `again` is computed in df, in front of the first node that reads it."""
    in_df: dict[Value, Value] = {}
    stands_for = {stand_in: value for value, stand_in in captures.at_top.items() if value in again}

    def put(value: Value, before: Node) -> Value:
        """The value of df for one of f, computed in front of a node unless df has it already. No recursion, since chains may be long."""
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
        copy.tail, copy.line = "", 0
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
    """What a node and those in its blocks read."""
    operands = list(node.inputs)
    for block in node.blocks:
        operands += block.outputs
        for inner in block:
            operands += _reads(inner)
    return operands
