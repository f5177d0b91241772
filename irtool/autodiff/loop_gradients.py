"""The gradient of a loop of f: a loop of df that differentiates the rounds, last one first.

df's loop carries the gradients of f's loop-carried values, and the sums of gradients of outer values that f's body reads. It reads values
that f saved in each round from lists, at the number of the round (`irtool.autodiff.loop_captures`).
"""
from __future__ import annotations

from collections.abc import Iterable

from irtool.autodiff.gradients import Gradients
from irtool.autodiff.loop_captures import Round
from irtool.autodiff.sweep import Sweep
from irtool.ir import types
from irtool.ir.builder import Builder
from irtool.ir.constants import constant
from irtool.ir.effects import CHOICE_KINDS, LOOP_KINDS, MUTATORS
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Block, Node, Value
from irtool.ir.types import NamedTupleType, TupleType


def reverse_loop(sweep: Sweep, node: Node) -> None:
    """Differentiate a loop: pass the gradients of its results on to its initial values, and to the outer values that its body reads."""
    grads = sweep.grads
    captures, build = grads.captures, grads.build
    refuse_old_text(grads, node)
    body = node.blocks[0]
    slots, reached = carried_back(grads, node)
    results = [node.outputs[slot] for slot in slots]
    if any(isinstance(value.type, TupleType | NamedTupleType) for value in results):
        raise UnsupportedError("the gradient of a tuple carried by a loop is not supported; run lower-tuples{all} first", code="E0501")
    changed = [value for value in grads.changes.at.get(node, ()) if value in grads.needs and (value in grads.current or value in reached)]
    count = number_of_rounds(grads, node)
    last = build.node("aten::sub", (count, build.constant(1)), output_types=(types.INT,)).output
    loop = build.node("prim::Loop", (count, build.constant(True), *[grads.value_of(value) for value in results]))
    block = loop.add_block()

    def carry(value: Value) -> Value:
        return block.add_input(grads.df.fresh_id(), captures.gradient_type(value.type))

    number = block.add_input(grads.df.fresh_id(), types.INT)
    incoming = [carry(value) for value in results]
    with grads.inside(block, {}) as current:
        index = build.node("aten::sub", (last, number), output_types=(types.INT,)).output
        captures.rounds[body] = Round(grads.f, grads.df, body, block, index)
        for slot, gradient in zip(slots, incoming, strict=True):
            value = body.outputs[slot + 1]
            captures.note(gradient, value)
            if value in grads.needs:
                grads.add(value, grads.renamed(gradient))
        for value in changed:       # each round reverts its changes in the gradient of such a list
            current[value] = carry(value)
        sweep.walk(body)
        grads.resume()
        outside = [value for value in current if value in grads.needs and not body.contains(value.node) and value not in changed]
        grads.whole_in_blocks.update((value, item) for value, item in current.items() if body.contains(value.node))
        block.add_output(build.constant(True))
        for value in (*[body.inputs[slot + 1] for slot in slots], *changed):
            block.add_output(grads.value_of(value))
        sums = [carry(value) for value in outside]
        for value, so_far in zip(outside, sums, strict=True):
            block.add_output(grads.one_value(grads.sum(so_far, current[value], value), value.type))
    build.before(loop)
    for value in (*changed, *outside):
        loop.add_input(grads.value_of(value))
    build.at_end(grads.block)
    started = [node.inputs[slot + 2] for slot in slots]
    targets = [*started, *changed, *outside]
    declared = [value.type for value in (*[body.inputs[slot + 1] for slot in slots], *changed, *outside)]      # not of None as a start
    outputs = [loop.add_output(grads.df.fresh_id(), captures.gradient_type(each)) for each in declared]
    for value, output in zip(targets, outputs, strict=True):
        captures.note(output, value)
    grads.current.update(zip((*changed, *outside), outputs[len(slots):], strict=True))
    for value, output in zip(started, outputs, strict=False):
        if value in grads.needs:
            grads.add(value, output)


def refuse_old_text(grads: Gradients, node: Node) -> None:
    """Raises UnsupportedError for loops in text of 2018, which has no lists to save values in."""
    if node.kind != "prim::Loop" or grads.f.dialect.is_of_2018:
        raise UnsupportedError(f"the gradient of {node.kind} in text of dialect {grads.f.dialect.name} is not supported; "
                               "convert it to a later one first", code="E0501")


def number_of_rounds(grads: Gradients, node: Node) -> Value:
    """The number of rounds, for use in df, that a loop of f ran. A loop that may stop early gets a counter."""
    body = node.blocks[0]
    if constant(node.inputs[1]) is True and constant(body.outputs[0]) is True:
        trips = constant(node.inputs[0])
        return grads.build.constant(max(trips, 0)) if isinstance(trips, int) else grads.captures.take(node.inputs[0])
    build = Builder(grads.f)
    start = build.before(node).constant(0)
    one = build.at_end(body).constant(1)
    node.add_input(start)
    body.add_input(grads.f.fresh_id(), types.INT)
    body.add_output(build.call("aten::add", body.inputs[0], one, type=types.INT))
    return grads.captures.take(node.add_output(grads.f.fresh_id(), types.INT))


def carried_back(grads: Gradients, node: Node) -> tuple[list[int], set[Value]]:
    """The positions of loop-carried values whose gradients df's loop carries, and all values that gradients reach in the body."""
    body = node.blocks[0]
    slots = {slot for slot, value in enumerate(node.outputs) if value in grads.current and value in grads.needs}
    reached = {value for value in grads.changes.at.get(node, ()) if value in grads.current}
    while True:
        before = len(reached), len(slots)
        go_back(body, [body.outputs[slot + 1] for slot in slots], reached, grads.needs)
        slots.update(slot for slot, value in enumerate(body.inputs[1:]) if value in reached)
        if before == (len(reached), len(slots)):
            return sorted(slots), reached


def go_back(block: Block, results: Iterable[Value], reached: set[Value], needs: set[Value]) -> None:
    """Add to `reached` the values, of a block and from outside, that gradients of its `results` reach."""
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
