"""The gradient of a function that has one of its own: its backward, verbatim, in a region of df."""
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from irtool.autodiff.list_zeros import zeros
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.custom import CUSTOM_VJP, custom_parts, saved_values
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.rewrite import clone_node
from irtool.partial.items import NONE

if TYPE_CHECKING:
    from irtool.autodiff.reverse import Differentiator


def read_saved(f: Graph) -> None:
    """What reads saved operands and results of such functions reads those themselves, as gradients do."""
    for node in f.walk():
        parts = custom_parts(node) if node.kind == CUSTOM_VJP else None
        if parts is not None:
            forward, _, count = parts
            for value, own in zip(node.outputs[count:], saved_values(node, forward, count), strict=True):
                if value is not own:
                    value.replace_all_uses_with(own)


def reverse_custom(d: Differentiator, node: Node) -> None:
    """A `GradOf` that holds the backward. It runs if one of the results has a gradient, with zeros for those that have none.

    An operand for which it gives None has zeros for its gradient. Raises UnsupportedError for a node that does not fit together.
    """
    parts = custom_parts(node)
    if parts is None:
        raise UnsupportedError(f"the gradient of {CUSTOM_VJP} whose graphs do not take and give what it takes and gives is not supported")
    forward, backward, count = parts
    results = node.outputs[:count]
    given = [d.gradient(value) if value in d.needs else NONE for value in results]
    there = [item for item in given if isinstance(item, Value)]
    region = d.build.node("prim::GradOf", there, {"name": Attribute.of(CUSTOM_VJP, d.df.dialect)})
    body = region.add_block()
    d.build.at_end(body)
    d.reverse.new_block()
    saved = [d.take(value) for value in saved_values(node, forward, count)]
    mapping: dict[Value, Value] = {}
    for place, (inner, item, value) in enumerate(zip(backward.inputs, given, results, strict=False)):
        if not isinstance(item, Value):
            mapping[inner] = zeros(d, value, results[0])
        else:
            mapping[inner] = d.where_defined(item, len(there) == 1, lambda own: own, partial(zeros, d, value, results[0]))
        d.note(mapping[inner], results[place])
    mapping.update(zip(backward.inputs[count:], saved, strict=True))
    for inner_node in backward.block:
        clone_node(inner_node, mapping, body, d.df)
    d.build.at_end(body)
    targets = []
    for target, answer in zip(node.inputs, backward.outputs, strict=True):
        if target in d.needs:
            found = mapping.get(answer, answer)
            body.add_output(zeros(d, target, target) if found.type.key == types.NONE.key else found)
            targets.append((target, region.add_output(d.df.fresh_id(), d.gradient_type(target.type))))
    d.build.at_end(d.block)
    d.reverse.new_block()
    if not targets:
        region.destroy()
    for target, output in targets:
        d.note(output, target)
        d.add_gradient(target, output)
