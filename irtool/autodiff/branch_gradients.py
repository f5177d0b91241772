"""The gradient of an `If` of f (and of a `GradOf`): an `If` of df on the same condition, which differentiates the branch that ran."""
from __future__ import annotations

from collections.abc import Iterable

from irtool.autodiff.gradients import Gradients
from irtool.autodiff.sweep import Sweep
from irtool.ir.constants import constant, is_constant
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Block, Node, Value
from irtool.partial.items import Item


def reverse_choice(sweep: Sweep, node: Node) -> None:
    """Differentiate an `If`: df gets an `If` on the same condition. A `GradOf` counts as an `If` on "is an operand defined?"."""
    grads = sweep.grads
    if len(node.blocks) > 2:
        raise UnsupportedError(f"the gradient of {node.kind} is not supported yet", code="E0501")
    incoming = [grads.current.get(value) for value in node.outputs]
    if node.kind != "prim::GradOf" and is_constant(node.inputs[0]):
        taken = node.blocks[0 if constant(node.inputs[0]) else 1]
        hand_to_results(grads, taken, incoming)
        sweep.walk(taken)
        return
    choice = grads.build.node("prim::If", (condition_of(grads, node),))
    changed = {value: grads.current[value] for value in grads.changes.at.get(node, ()) if value in grads.current}
    branches: list[tuple[Block, dict[Value, Item]]] = []
    for block in node.blocks:
        with grads.inside(choice.add_block(), dict(changed)) as current:
            hand_to_results(grads, block, incoming)
            sweep.walk(block)
            branches.append((grads.block, {value: item for value, item in current.items() if not block.contains(value.node)}))
        grads.whole_in_blocks.update((value, item) for value, item in current.items() if block.contains(value.node))
    if node.kind == "prim::GradOf":
        branches.append((choice.add_block(), dict(changed)))
    reached = list(dict.fromkeys(value for _, current in branches for value in current if value in grads.needs))
    for block, current in branches:
        with grads.inside(block, current):
            for value in reached:
                block.add_output(grads.value_of(value))
    for value in changed:       # from here on, the gradient is that of the list as it was before the `If`
        grads.current.pop(value)
    for value in reached:
        output = choice.add_output(grads.df.fresh_id(), grads.captures.gradient_type(value.type))
        grads.captures.note(output, value)
        grads.add(value, output)
    if not reached:
        choice.remove()


def hand_to_results(grads: Gradients, block: Block, incoming: Iterable[Item | None]) -> None:
    """Add the gradients of a choice's results to the results of one of its blocks. Later results are captures, without gradients yet."""
    for value, item in zip(block.outputs, incoming, strict=False):
        if item is not None and value in grads.needs:
            grads.add(value, grads.renamed(item))


def condition_of(grads: Gradients, node: Node) -> Value:
    """A bool of df: did the first block of an `If` or `GradOf` of f run?"""
    if node.kind != "prim::GradOf":
        return grads.captures.take(node.inputs[0])
    return grads.any_defined([grads.captures.take(value) for value in node.inputs])
