"""The gradient of a loop: a loop of df that goes back through the rounds.

It carries the gradients of what the loop of f carries, and the sums so far of the gradients of values from outside that its body reads.
What the body left behind is looked up by the number of the round (`irtool.autodiff.loop_captures`).
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from irtool.autodiff.loop_captures import Round, refuse_old_text, rounds_made
from irtool.ir import types
from irtool.ir.effects import CHOICE_KINDS, LOOP_KINDS, MUTATORS
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Block, Node, Value
from irtool.ir.types import NamedTupleType, TupleType

if TYPE_CHECKING:
    from irtool.autodiff.reverse import Differentiator


def reverse_loop(d: Differentiator, node: Node) -> None:
    """Hand the gradients of a loop's results to what it starts with, and to what its body reads."""
    refuse_old_text(d, node)
    body = node.blocks[0]
    slots, reached = carried_back(d, node)
    results = [node.outputs[slot] for slot in slots]
    if any(isinstance(value.type, TupleType | NamedTupleType) for value in results):
        raise UnsupportedError("the gradient of a tuple carried by a loop is not supported; run lower-tuples{all} first")
    threaded = [value for value in d.changes.at.get(node, ()) if value in d.needs and (value in d.gradients or value in reached)]
    count = rounds_made(d, node)
    last = d.build.node("aten::sub", (count, d.build.constant(1)), output_types=(types.INT,)).output
    made = d.build.node("prim::Loop", (count, d.build.constant(True), *[d.gradient_value(value) for value in results]))
    inner = made.add_block()
    number = inner.add_input(d.df.fresh_id(), types.INT)
    given = [inner.add_input(d.df.fresh_id(), d.gradient_type(value.type)) for value in results]
    index = d.build.at_end(inner).node("aten::sub", (last, number), output_types=(types.INT,)).output
    d.rounds[body] = Round(body, inner, index)
    outer, outer_block = d.gradients, d.block
    d.gradients, d.block = {}, inner
    d.reverse.new_block()
    for slot, gradient in zip(slots, given, strict=True):
        value = body.outputs[slot + 1]
        d.note(gradient, value)
        if value in d.needs:
            d.add_gradient(value, d.own(gradient))
    for value in threaded:      # a list that changes: its gradient changes from round to round
        d.gradients[value] = inner.add_input(d.df.fresh_id(), d.gradient_type(value.type))
    d.sweep(body)
    d.build.at_end(inner)
    d.reverse.new_block()
    inside = d.gradients
    outside = [value for value in inside if value in d.needs and not body.contains(value.node) and value not in threaded]
    d.inner_gradients.update((value, item) for value, item in inside.items() if body.contains(value.node))
    inner.add_output(d.build.constant(True))
    for slot in slots:
        inner.add_output(d.gradient_value(body.inputs[slot + 1]))
    for value in threaded:
        inner.add_output(d.gradient_value(value))
    sums = [inner.add_input(d.df.fresh_id(), d.gradient_type(value.type)) for value in outside]
    for value, so_far in zip(outside, sums, strict=True):
        inner.add_output(d.one_value(d.sum(so_far, inside[value], value), value.type))
    d.gradients, d.block = outer, outer_block
    d.build.before(made)
    d.reverse.new_block()
    for value in (*threaded, *outside):
        made.add_input(d.gradient_value(value))
    d.build.at_end(d.block)
    started = [node.inputs[slot + 2] for slot in slots]
    outputs = [made.add_output(d.df.fresh_id(), d.gradient_type(value.type)) for value in (*started, *threaded, *outside)]
    for value, output in zip((*started, *threaded, *outside), outputs, strict=True):
        d.note(output, value)
    d.gradients.update(zip((*threaded, *outside), outputs[len(slots):], strict=True))
    for value, output in zip(started, outputs, strict=False):
        if value in d.needs:
            d.add_gradient(value, output)


def carried_back(d: Differentiator, node: Node) -> tuple[list[int], set[Value]]:
    """The carried values of a loop whose gradients go from round to round, and all values that gradients reach in it."""
    body = node.blocks[0]
    slots = {slot for slot, value in enumerate(node.outputs) if value in d.gradients and value in d.needs}
    reached = {value for value in d.changes.at.get(node, ()) if value in d.gradients}
    while True:
        before = len(reached), len(slots)
        go_back(body, [body.outputs[slot + 1] for slot in slots], reached, d.needs)
        slots.update(slot for slot, value in enumerate(body.inputs[1:]) if value in reached)
        if before == (len(reached), len(slots)):
            return sorted(slots), reached


def go_back(block: Block, results: Iterable[Value], reached: set[Value], needs: set[Value]) -> None:
    """Add the values of a block, and outside it, that gradients of `results` can reach."""
    reached.update(value for value in results if value in needs)
    for node in reversed(block):
        if node.kind in CHOICE_KINDS:
            for inner in node.blocks:
                go_back(inner, [value for value, result in zip(inner.outputs, node.outputs, strict=False) if result in reached],
                        reached, needs)
        elif node.kind in LOOP_KINDS:
            body = node.blocks[0]
            slots = {slot for slot, value in enumerate(node.outputs) if value in reached}
            size = -1
            while size != len(reached):
                size = len(reached)
                go_back(body, [body.outputs[slot + 1] for slot in slots], reached, needs)
                slots.update(slot for slot, value in enumerate(body.inputs[1:]) if value in reached)
            reached.update(node.inputs[slot + 2] for slot in slots if node.inputs[slot + 2] in needs)
        elif not reached.isdisjoint(node.outputs) or node.kind in MUTATORS and node.inputs[0] in reached:
            reached.update(value for value in node.inputs if value in needs)
