"""`custom_vjp` functions in graphs: a trace records a node with the graphs of forward and backward; a layer runs the node as the function.

`irtool.ir.custom` defines the node.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from irtool.dispatch.stack import Boxed, Layer, current, pushed
from irtool.dispatch.trees import aligned, flatten, unflatten
from irtool.ir.builder import Builder
from irtool.ir.custom import CUSTOM_VJP, custom_attributes, custom_parts
from irtool.ir.dialect import LATEST
from irtool.ir.errors import RunError
from irtool.ir.graph import Graph, Node, Value
from irtool.ops.tensor import Tensor

if TYPE_CHECKING:
    from irtool.dispatch.tracer import Tracer


class Part:
    """A second graph of a trace: while a function is recorded in it, the trace's operations become its nodes."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.graph = Graph(LATEST)

    def write(self, function: Callable[..., list[Any]], samples: Sequence[tuple[Tensor, Any]]) -> list[Any]:
        """Run a function on samples (tensor, type) and record its operations. Returns its results, which are the graph's outputs."""
        tracer = self.tracer
        outer = tracer.graph, tracer.build, tracer.constants, tracer.numbers
        tracer.graph, tracer.build, tracer.constants, tracer.numbers = self.graph, Builder(self.graph), {}, {}
        try:
            boxes = [Boxed(tracer, value, self.graph.block.add_input(self.graph.fresh_id(), type)) for value, type in samples]
            with pushed(tracer):
                results = function(*boxes)
            self.graph.block.set_outputs([tracer.operand(each) for each in results])
        finally:
            tracer.graph, tracer.build, tracer.constants, tracer.numbers = outer
        return results

    def take_in(self) -> list[Value]:
        """Turn the values of surrounding graphs that this graph reads into inputs; returns these values."""
        graph = self.graph
        readers = [*graph.walk(), *[block.return_node for block in graph.walk_blocks()]]
        outer_values = dict.fromkeys(value for node in readers for value in node.inputs if value.node.graph is not graph)
        for outer in outer_values:
            inner = graph.block.add_input(graph.fresh_id(), outer.type)
            for node in readers:
                node.replace_input_with(outer, inner)
        return list(outer_values)

    def give(self, values: Sequence[Value]) -> None:
        """Add outputs: values of surrounding graphs, which become inputs too."""
        self.graph.block.set_outputs([*self.graph.outputs, *values])


def record_custom(tracer: Tracer, forward: Callable[..., Any], backward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
    """Record the node for a function of a trace's tensors; returns (output, saved) as `forward` does. Raises RunError.

    Other values of the trace that the two functions read become operands without a gradient.
    """
    from irtool.dispatch.tracer import type_of, undrawn

    leaves, shape = flatten(list(args))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    operands = [tracer.operand(leaves[place]) for place in places]
    ahead = Part(tracer)
    traced: dict[str, Any] = {}     # leaves and shapes of the output and of the saved values

    def run_forward(*boxes: Any) -> list[Any]:
        filled = list(leaves)
        for place, box in zip(places, boxes, strict=True):
            filled[place] = box
        output, saved = forward(*unflatten(shape, filled))
        outputs, traced["output_shape"] = flatten(output)
        saved_leaves, traced["saved_shape"] = flatten(saved)
        wrong = next((each for each in outputs if not isinstance(each, Tensor)), None)
        if wrong is not None or not outputs:
            raise RunError(f"the function of a custom_vjp must give tensors, it gave {type(wrong).__name__}")
        known = {tracer.operand(each) for each in (*boxes, *outputs)}
        saved_leaves = [each if not tracer.owns(each) or each.known in known else tracer.apply("aten::detach", [each])
                        for each in saved_leaves]
        traced["outputs"], traced["saved_leaves"] = outputs, saved_leaves
        return [*outputs, *[each for each in saved_leaves if isinstance(each, Tensor)]]

    results = ahead.write(run_forward, [(tracer.opened(leaves[place]), type_of(leaves[place])) for place in places])
    outputs, saved_leaves = traced["outputs"], traced["saved_leaves"]
    count = len(outputs)

    def run_backward(*boxes: Any) -> list[Any]:
        saved = iter(boxes[count:])
        saved_tree = unflatten(traced["saved_shape"], [next(saved) if isinstance(each, Tensor) else each for each in saved_leaves])
        grads = unflatten(traced["output_shape"], list(boxes[:count]))
        if isinstance(grads, tuple):
            grads = list(grads) if len(grads) > 1 else grads[0]
        return spread_gradients(backward(grads, saved_tree), args)

    opened = [tracer.opened(each) for each in results]
    seeds = [tracer.below.apply("aten::ones_like", [each, None, None, None, None, None]) for each in opened[:count]]
    back = Part(tracer)
    with undrawn():         # this run draws the random numbers of `backward` when a gradient is asked for
        back.write(run_backward, [(each, type_of(each)) for each in (*seeds, *opened[count:])])

    for value in (also := back.take_in()):
        ahead.give([value])
    more = ahead.take_in()
    back.graph.block.set_outputs([*back.graph.outputs, *[Builder(back.graph).constant(None) for _ in more]])
    values = [tracer.opened(each) for each in results]
    node = tracer.build.node(CUSTOM_VJP, [*operands, *more], custom_attributes(ahead.graph, back.graph, count),
                             [type_of(each) for each in values] + [value.type for value in also])
    boxed = [Boxed(tracer, value, defined) for value, defined in zip(values, node.outputs, strict=False)]
    known = {inner: leaves[place] for inner, place in zip(ahead.graph.inputs, places, strict=False)}
    for value, box in zip(ahead.graph.outputs, boxed, strict=False):
        known.setdefault(value, box)        # saved operands and results keep their boxes
    saved = iter(ahead.graph.outputs[count:])
    saved_leaves = [known[next(saved)] if isinstance(each, Tensor) else each for each in saved_leaves]
    return unflatten(traced["output_shape"], boxed[:count]), unflatten(traced["saved_shape"], saved_leaves)


def spread_gradients(gradients: Any, args: Sequence[Any]) -> list[Any]:
    """The result of a function's backward as one gradient, or None, for each tensor in the arguments. Raises RunError."""
    grads = gradients_as_arguments(gradients, args)
    return [one for one, leaf in zip(flatten(grads)[0], flatten(list(args))[0], strict=True) if isinstance(leaf, Tensor)]


def gradients_as_arguments(gradients: Any, args: Sequence[Any]) -> list[Any]:
    """The result of a function's backward in the trees of its arguments, dicts by key; None: no gradient. Raises RunError."""
    out: list[Any] = []
    for grad, arg in zip(gradient_per_argument(gradients, len(args)), args, strict=True):
        leaves, shape = flatten(arg)
        parts = aligned(grad, shape)
        if parts is None:
            raise RunError(f"the backward of a custom_vjp gave {len(flatten(grad)[0])} gradients for an argument of {len(leaves)} tensors")
        for one, leaf in zip(parts, leaves, strict=True):
            check_gradient(one, leaf)
        out.append(unflatten(shape, parts))
    return out


def gradient_per_argument(gradients: Any, count: int) -> list[Any]:
    """The result of a function's backward as a list of `count` gradients. Raises RunError for another number of them."""
    grads = list(gradients) if isinstance(gradients, list | tuple) else [gradients]
    if len(grads) != count:
        raise RunError(f"the backward of a custom_vjp gave {len(grads)} gradients for {count} arguments")
    return grads


def check_gradient(grad: Any, arg: Any) -> None:
    """Raises RunError for a gradient that is neither None nor a tensor of its argument's shape."""
    if isinstance(arg, Tensor) and not isinstance(grad, Tensor | None):
        raise RunError(f"the backward of a custom_vjp gave {type(grad).__name__} for a gradient, expected a tensor or None")
    if isinstance(grad, Tensor) and isinstance(arg, Tensor) and list(grad.shape) != list(arg.shape):
        raise RunError(f"the backward of a custom_vjp gave a gradient of shape {list(grad.shape)} "
                       f"for an argument of shape {list(arg.shape)}")


def run_custom(node: Node, values: Sequence[Any], layer: Layer) -> list[Any]:
    """The results of a node on a layer, with the node's gradient. Raises RunError if the node's graphs do not fit each other."""
    from irtool.dispatch.recipes import interpreted

    parts = custom_parts(node)
    if parts is None:
        raise RunError(f"{CUSTOM_VJP}: its graphs do not take and give what it takes and gives")
    ahead, back, count = parts

    def forward(*args: Any) -> tuple[Any, Any]:
        results = interpreted(ahead, list(args), current().apply)
        return tuple(results[:count]), tuple(results[count:])

    def backward(grads: Any, saved: Any) -> list[Any]:
        return interpreted(back, [*(grads if count > 1 else [grads]), *saved], current().apply)

    output, saved = layer.custom_vjp(forward, backward, values)
    return [*output, *saved]


class Whole:
    """The set of nodes that a walk runs as a whole, though they have inner graphs."""

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Node) and node.kind == CUSTOM_VJP


WHOLE = Whole()
