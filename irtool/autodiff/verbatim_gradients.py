"""Nodes that have a gradient of their own, a graph: its nodes are copied verbatim into a region of df.

The graph is the backward function of an `irtool::custom_vjp`, or the df of a node that holds a gradient pair.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from irtool.autodiff.gradients import Gradients
from irtool.autodiff.list_zeros import defined_or_zeros, zeros
from irtool.autodiff.reach import has_no_undefined
from irtool.ir import types
from irtool.ir.attribute import Attribute
from irtool.ir.custom import CUSTOM_VJP, custom_parts, saved_values
from irtool.ir.edits import clone_node
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.packed import Packed, packed_of
from irtool.ir.pair import DEFINED
from irtool.ir.types import TensorType, TupleType
from irtool.partial.items import NONE, Item


def read_saved(f: Graph) -> None:
    """Let readers of the values that `custom_vjp` nodes save read the operands and results themselves, of which these are copies."""
    for node in f.walk():
        parts = custom_parts(node) if node.kind == CUSTOM_VJP else None
        if parts is not None:
            forward, _, count = parts
            for value, source in zip(node.outputs[count:], saved_values(node, forward, count), strict=True):
                if value is not source:
                    value.replace_all_uses_with(source)


def reverse_custom(grads: Gradients, node: Node) -> None:
    """Differentiate a `custom_vjp`: a `GradOf` with its backward graph, which takes zeros for results without a gradient.

    An operand for which backward returns None gets zeros. Raises UnsupportedError if the node's graphs do not fit each other.
    """
    parts = custom_parts(node)
    if parts is None:
        raise UnsupportedError(f"the gradient of {CUSTOM_VJP} whose graphs do not take and give what it takes and gives is not supported",
                               code="E0501")
    forward, backward, count = parts
    results = node.outputs[:count]
    incoming = [grads.of(value) if value in grads.needs else NONE for value in results]
    is_one = sum(isinstance(item, Value) for item in incoming) == 1

    def taken(place: int, item: Item) -> Value:
        if not isinstance(item, Value):
            return zeros(grads, results[place], results[0])
        return item if is_one else defined_or_zeros(grads, item, results[place], results[0])

    put_verbatim(grads, node, backward, results, incoming, taken, saved_values(node, forward, count), node.inputs)


def reverse_packed(grads: Gradients, node: Node) -> None:
    """Differentiate a node that holds a gradient pair: a `GradOf` with the node's df.

    An undefined gradient is passed as it is to a df that may take undefined ones, as those of `differentiate` do; as zeros to any other.
    Raises UnsupportedError for a gradient that df was specialised not to take; Error if the node and its pair do not fit each other.
    """
    packed = packed_of(node)
    results = [node.outputs[index] for index in packed.input_vjps]
    incoming: list[Item] = [grads.of(value) if value in grads.needs else NONE for value in results]
    saved = [*[node.inputs[index] for index in packed.captured_inputs], *[node.outputs[index] for index in packed.captured_outputs]]
    takes_undefined = not has_no_undefined(packed.df)

    def taken(place: int, item: Item) -> Value:
        return _taken_by_df(grads, node, packed, place, item, takes_undefined)

    put_verbatim(grads, node, packed.df, results, incoming, taken, saved, [node.inputs[index] for index in packed.output_vjps])


def put_verbatim(grads: Gradients, node: Node, backward: Graph, results: Sequence[Value], incoming: Sequence[Item],
                 taken: Callable[[int, Item], Value], saved: Iterable[Value], targets: Sequence[Value]) -> None:
    """Copy the nodes of `backward` into a new `GradOf` region of df, whose results are the gradients of `targets` (zeros for None).

    The inputs of `backward` are the gradients of `results`, then the values of f in `saved`. taken: a function of a position and the
    gradient of that result (`incoming`), which returns the value of df to pass.
    """
    defined = [item for item in incoming if isinstance(item, Value)]
    region = grads.build.node("prim::GradOf", defined, {"name": Attribute.of(node.kind, grads.df.dialect)})
    body = region.add_block()
    grads.continue_in(body)
    captured = [grads.captures.take(value) for value in saved]
    mapping: dict[Value, Value] = {}
    for place, (parameter, item, result) in enumerate(zip(backward.inputs, incoming, results, strict=False)):
        mapping[parameter] = taken(place, item)
        grads.captures.note(mapping[parameter], result)
    mapping.update(zip(backward.inputs[len(results):], captured, strict=True))
    for each in backward.block:
        copy = clone_node(each, mapping, body, grads.df)
        copy.tail, copy.line = copy.tail or grads.build.tail, grads.build.line
    grads.build.at_end(body)
    outputs = []
    for target, answer in zip(targets, backward.outputs, strict=True):
        if target in grads.needs:
            gradient = mapping.get(answer, answer)
            body.add_output(zeros(grads, target, target) if gradient.type.key == types.NONE.key else gradient)
            outputs.append((target, region.add_output(grads.df.fresh_id(), grads.captures.gradient_type(target.type))))
    grads.resume()
    if not outputs:
        region.destroy()
    for target, output in outputs:
        grads.captures.note(output, target)
        grads.add(target, output)


def _taken_by_df(grads: Gradients, node: Node, packed: Packed, place: int, item: Item, takes_undefined: bool) -> Value:
    """The value to pass to a node's df as the gradient of one of its results."""
    index, first = packed.input_vjps[place], node.outputs[0]
    result = node.outputs[index]
    flag = packed.defined[place] if packed.defined is not None else None
    has_gradient = isinstance(item, Value) and item.node.kind != grads.df.dialect.undefined_kind
    if flag is False and has_gradient and index < packed.real_outputs:
        raise UnsupportedError(f"result {index} of {node.kind} has a gradient, but the node's gradient was "
                               f"specialised for its being undefined ({DEFINED}={[int(each) for each in packed.defined or ()]})",
                               code="E0501")
    if flag and isinstance(result.type, TupleType):     # specialize-undef assumes nothing of tuples: such a df takes undefined ones
        flag, takes_undefined = None, True
    if flag or not takes_undefined:
        if not isinstance(result.type, TensorType):
            raise UnsupportedError(f"the gradient of {node.kind} whose df takes no undefined gradient of result {index}, of type "
                                   f"{result.type.text}, is not supported: pack the pair before specialize-undef", code="E0501")
        return defined_or_zeros(grads, item, result, first) if has_gradient and isinstance(item, Value) else zeros(grads, result, first)
    return item if isinstance(item, Value) else grads.undefined(result)
