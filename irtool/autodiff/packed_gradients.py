"""The gradient of a node that owns a gradient pair: its df, verbatim, in a region of the df that is made."""
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from irtool.autodiff.list_zeros import zeros
from irtool.autodiff.reach import all_there
from irtool.ir.attribute import Attribute
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Node, Value
from irtool.ir.packed import Packed, packed_of
from irtool.ir.pair import DEFINED
from irtool.ir.rewrite import clone_node
from irtool.partial.items import NONE, Item

if TYPE_CHECKING:
    from irtool.autodiff.reverse import Differentiator


def reverse_packed(d: Differentiator, node: Node) -> None:
    """A `GradOf` that holds the node's df. It runs if one of the gradients that df takes is there.

    One that is not there is undefined to a df that knows of such, as what `differentiate` makes does, and zeros to any other.
    Raises UnsupportedError for a gradient that df was specialised not to take; Error for a node that does not fit together.
    """
    packed = packed_of(node)
    results = [node.outputs[index] for index in packed.input_vjps]
    given: list[Item] = [d.gradient(value) if value in d.needs else NONE for value in results]
    there = [item for item in given if isinstance(item, Value)]
    region = d.build.node("prim::GradOf", there, {"name": Attribute.of(node.kind, d.df.dialect)})
    body = region.add_block()
    d.build.at_end(body)
    d.reverse.new_block()
    saved = [d.take(value) for value in (*[node.inputs[index] for index in packed.captured_inputs],
                                         *[node.outputs[index] for index in packed.captured_outputs])]
    takes_undefined = not all_there(packed.df)
    mapping: dict[Value, Value] = {}
    for place, (inner, item, value) in enumerate(zip(packed.df.inputs, given, results, strict=False)):
        mapping[inner] = _taken(d, node, packed, place, item, value, takes_undefined)
        d.note(mapping[inner], value)
    mapping.update(zip(packed.df.inputs[len(results):], saved, strict=True))
    for each in packed.df.block:
        clone_node(each, mapping, body, d.df)
    d.build.at_end(body)
    targets = []
    for index, answer in zip(packed.output_vjps, packed.df.outputs, strict=True):
        target = node.inputs[index]
        if target in d.needs:
            body.add_output(mapping.get(answer, answer))
            targets.append((target, region.add_output(d.df.fresh_id(), d.gradient_type(target.type))))
    d.build.at_end(d.block)
    d.reverse.new_block()
    if not targets:
        region.destroy()
    for target, output in targets:
        d.note(output, target)
        d.add_gradient(target, output)


def _taken(d: Differentiator, node: Node, packed: Packed, place: int, item: Item, value: Value, takes_undefined: bool) -> Value:
    """What df takes for the gradient of a result."""
    is_there = isinstance(item, Value) and item.node.kind != d.df.dialect.undefined_kind
    if packed.defined is not None and not packed.defined[place] and is_there and packed.input_vjps[place] < packed.real_outputs:
        raise UnsupportedError(f"result {packed.input_vjps[place]} of {node.kind} has a gradient, but the node's gradient was "
                               f"specialised for its being undefined ({DEFINED}={[int(flag) for flag in packed.defined]})")
    if packed.defined is not None and packed.defined[place] or not takes_undefined:
        first = node.outputs[0]
        return d.where_defined(item, False, lambda own: own, partial(zeros, d, value, first)) if is_there and isinstance(item, Value) \
            else zeros(d, value, first)
    return item if isinstance(item, Value) else d.undefined(value)
