"""The gradient of a choice: a choice of df on the same condition, which goes back through the branch that was taken."""
from __future__ import annotations

from typing import TYPE_CHECKING

from irtool.ir.constants import constant, is_constant
from irtool.ir.graph import Block, Node, Value
from irtool.partial.items import Item

if TYPE_CHECKING:
    from irtool.autodiff.reverse import Differentiator


def reverse_choice(d: Differentiator, node: Node) -> None:
    """An `If`: an `If` on the same condition, which goes back through the branch that was taken. A `GradOf` is one on its gradients."""
    given = [d.gradients.get(value) for value in node.outputs]
    if node.kind != "prim::GradOf" and is_constant(node.inputs[0]):
        taken = node.blocks[0 if constant(node.inputs[0]) else 1]
        for value, item in zip(taken.outputs[:len(given)], given, strict=True):
            if item is not None and value in d.needs:
                d.add_gradient(value, d.own(item))
        d.sweep(taken)
        return
    made = d.build.node("prim::If", (condition_of(d, node),))
    outer, outer_block = d.gradients, d.block
    branches: list[tuple[Block, dict[Value, Item]]] = []
    threaded = {value: outer[value] for value in d.changes.at.get(node, ()) if value in outer}
    for inner in node.blocks:
        d.gradients, d.block = dict(threaded), made.add_block()
        d.build.at_end(d.block)
        for value, item in zip(inner.outputs[:len(given)], given, strict=True):     # captures add results
            if item is not None and value in d.needs:
                d.add_gradient(value, d.own(item))
        d.sweep(inner)
        d.inner_gradients.update((value, item) for value, item in d.gradients.items() if inner.contains(value.node))
        branches.append((d.block, {value: item for value, item in d.gradients.items() if not inner.contains(value.node)}))
    if node.kind == "prim::GradOf":
        branches.append((made.add_block(), dict(threaded)))
    reached = list(dict.fromkeys(value for _, found in branches for value in found if value in d.needs))
    for block, found in branches:
        d.build.at_end(block)
        d.reverse.new_block()
        for value in reached:
            item = found.get(value)
            if item is None:
                item = d.undefined(value)
            block.add_output(d.one_value(item, value.type))
    d.gradients, d.block = outer, outer_block
    d.build.at_end(d.block)
    d.reverse.new_block()
    for value in threaded:      # lists that change: the gradient that was is changed back
        outer.pop(value)
    for value in reached:
        output = made.add_output(d.df.fresh_id(), d.gradient_type(value.type))
        d.note(output, value)
        d.add_gradient(value, output)
    if not reached:
        made.remove()


def condition_of(d: Differentiator, node: Node) -> Value:
    """Whether the first block of an `If` or a `GradOf` of f ran."""
    if node.kind != "prim::GradOf":
        return d.take(node.inputs[0])
    return d.asked([d.take(value) for value in node.inputs])
