"""What a loop leaves behind for the loop that goes back through it.

A value computed in a round of a loop of f, and read by df, is appended to a list beside the loop; in df, where the rounds run in
reverse, it is taken from the list by the round's number. In nested loops these are lists of lists.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.constants import constant
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Block, Node, Value
from irtool.ir.rewrite import put_behind
from irtool.ir.types import ListType, TensorType, Type

if TYPE_CHECKING:
    from irtool.autodiff.captures import Captures


class Round:
    """The body of a loop of f, and the block of df that goes back through one round of it."""

    __slots__ = ("body", "own", "index", "last")

    def __init__(self, body: Block, own: Block, index: Value) -> None:
        self.body = body
        self.own = own
        self.index = index
        """In df, the number that the round had in f."""
        self.last: Node = index.node
        """The last of the nodes at the top of `own` that fetch what the round left."""

    @property
    def top(self) -> Node:
        """The node behind which to fetch more."""
        return self.last if self.last.owner is not None else self.index.node

    def fetch(self, captures: Captures, kind: str, whole: Value, type: Type) -> Value:
        """What a list holds for this round."""
        made = Builder(captures.df).after(self.top).node(kind, (whole, self.index), output_types=(type,))
        self.last = made
        return made.output


def saved(captures: Captures, value: Value, round: Round) -> Value:
    """The value of df that stands for a value of one round."""
    if value is round.body.inputs[0]:
        return round.index
    kept = keep(captures, value, round)
    captures.kept[kept] = value, round
    found = round.fetch(captures, "aten::__getitem__", captures.take(kept), element_type(captures, value.type))
    captures.note(found, value)
    return found


def keep(captures: Captures, value: Value, round: Round) -> Value:
    """A list of f that has the value of every round."""
    loop = round.body.owning_node
    assert loop is not None
    build = Builder(captures.f)
    kept = build.before(loop).construct_list((), element_type(captures, value.type))
    if value.is_block_input:
        build.at_start(round.body)
    else:
        filled = captures.kept.get(value)       # a list of values kept by a loop inside is full only behind that
        build.after(value.node if filled is None else filled[1].body.owning_node or value.node)
    build.node("aten::append", (kept, value), output_types=(kept.type,))
    return kept


def element_type(captures: Captures, type: Type) -> Type:
    """The type under which a list holds values of this type: a tensor of any kind."""
    return captures.tensor if isinstance(type, TensorType) else type


def ask_again(captures: Captures) -> None:
    """The size of a value that is kept anyway is asked for in df rather than kept too."""
    for value, round in captures.kept.values():
        own, node = captures.inner_captures[value], value.node
        if node.kind not in ("aten::size", "prim::dtype") or len(node.inputs) != 1:
            continue
        whole = captures.inner_captures.get(node.inputs[0])
        if whole is not None and whole.has_uses and whole.node.owner is round.own and own.has_uses:
            made = Builder(captures.df).after(whole.node).node(node.kind, (whole,), output_types=(own.type,))
            own.replace_all_uses_with(made.output)
            round.last = made if round.last is whole.node else round.last
            own.node.remove()


def rounds_made(captures: Captures, node: Node) -> Value:
    """In df, how many rounds a loop of f made. One that may stop early counts them."""
    body = node.blocks[0]
    if constant(node.inputs[1]) is True and constant(body.outputs[0]) is True:
        trips = constant(node.inputs[0])
        return captures.build.constant(max(trips, 0)) if isinstance(trips, int) else captures.take(node.inputs[0])
    if node in captures.counted:
        return captures.take(captures.counted[node])
    build = Builder(captures.f)
    start = build.before(node).constant(0)
    one = build.at_end(body).constant(1)
    node.add_input(start)
    body.add_input(captures.f.fresh_id(), types.INT)
    body.add_output(build.call("aten::add", body.inputs[0], one, type=types.INT))
    made = captures.counted[node] = node.add_output(captures.f.fresh_id(), types.INT)
    return captures.take(made)


def hand_in(captures: Captures, value: Value, given: Value) -> None:
    """Add what is handed in as the gradient of a value that f leaves behind to its gradient in df."""
    value = captures.exports.get(value, value)
    found = captures.kept.get(value)
    if found is not None:
        inner, round = found
        type = captures.gradient_type(inner.type)
        region = Builder(captures.df).after(round.top).node(
            "prim::GradOf", (given,), {"name": Attribute.of("aten::append", captures.df.dialect)}, (type,))
        body = region.add_block()
        body.add_output(Builder(captures.df).at_end(body).node("aten::__getitem__", (given, round.index), output_types=(type,)).output)
        round.last = region
        hand_in(captures, inner, region.output)
        return
    old = gradient_in_df(captures, value)
    assert old is not None
    behind = given.node if old.is_block_input and given.node.owner is old.node.owner else old.node
    type = old.type if isinstance(old.type, ListType) else captures.tensor
    total = Builder(captures.df).after(behind).node("prim::AutogradAdd", (given, given), output_types=(type,)).output
    put_behind(total.node, 1, old)


def gradient_in_df(captures: Captures, value: Value) -> Value | None:
    """The gradient that df has for a value that f leaves behind, in rounds and branches too; None where there is none."""
    value = captures.exports.get(value, value)
    if value in captures.kept:
        return gradient_in_df(captures, captures.kept[value][0])
    old = captures.gradients.get(value) or captures.inner_gradients.get(value)
    if value not in captures.needs or not isinstance(old, Value) or old.node.owner is None:
        return None
    return old if old in captures.read else None


def refuse_old_text(captures: Captures, node: Node) -> None:
    """Raises UnsupportedError for loops written before there were lists to save values in."""
    if node.kind != "prim::Loop" or captures.f.dialect.attribute_arguments:
        raise UnsupportedError(f"the gradient of {node.kind} in text of dialect {captures.f.dialect.name} is not supported; "
                               "convert it to a later one first")
