"""Calling a compiled graph inside a trace: computes the results, and inlines a copy specialised for the inputs into the traced graph."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irtool.dispatch.stack import Boxed, current, elements_of
from irtool.dispatch.tracer import Tracer, type_of
from irtool.dispatch.write_guard import WriteGuard
from irtool.execute.phases import Phases
from irtool.ir.edits import inline_graph
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Value
from irtool.ir.schema import MISSING, Argument
from irtool.ops.array_library import np
from irtool.ops.nested_tensors import map_tensors, tensors_in
from irtool.ops.tensor import Tensor

if TYPE_CHECKING:
    from irtool.execute.executor import Executor


def run_on_tensors(executor: Executor, inputs: Sequence[Any], seed: int) -> list[Any]:
    """The outputs, as Tensors, for inputs that contain Tensors. Under a trace the graph is inlined into it, with its branches and loops.

    Raises UnsupportedError under any other transformation.
    """
    plain = [map_tensors(elements_of, value) for value in inputs]
    boxed = [each for each in tensors_in(list(inputs)) if isinstance(each, Boxed)]
    layer = current()
    if not boxed:
        return [tensors_of(each) for each in executor(*plain, seed=seed)]
    while isinstance(layer, WriteGuard):
        layer = layer.below
    if not isinstance(layer, Tracer) or any(not layer.owns(each) or isinstance(each.value, Boxed) for each in boxed):
        raise UnsupportedError(f"a compiled graph under {layer}: it runs on arrays, and inside a trace; under other transformations "
                               "call the function it was made of", code="E0504")
    values = executor.accepted(plain)
    results = executor.delivered(executor.fallback_plan().code(values))
    graph = Phases().specialized(executor.graph, executor.spec_maker.make(values))
    operands = [layer.operand(argument, Argument(declared.name, declared.type, declared.type.text, 0, MISSING, False, None))
                for argument, declared in zip(inputs, executor.graph.inputs, strict=True)]
    outputs = inline_graph(graph, layer.graph.block.return_node, operands)
    return [bound(layer, value, tensors_of(result)) for value, result in zip(outputs, results, strict=True)]


def tensors_of(value: Any) -> Any:
    """Arrays as Tensors, in lists and tuples too."""
    if isinstance(value, np.ndarray):
        return Tensor(value)
    return type(value)([tensors_of(each) for each in value]) if isinstance(value, list | tuple) else value


def bound(layer: Tracer, value: Value, result: Any) -> Any:
    """A result of the inlined graph as a tensor of the trace; for a tuple or list, unpacking nodes are added to the trace."""
    if isinstance(result, list | tuple) and any(True for _ in tensors_in(result)):
        kind = "prim::TupleUnpack" if isinstance(result, tuple) else "prim::ListUnpack"
        elements = value.type.elements if isinstance(result, tuple) else ()
        types = [type_of(each, elements[i] if i < len(elements) else None) for i, each in enumerate(result)]
        node = layer.build.node(kind, (value,), output_types=types)
        return type(result)([bound(layer, output, each) for output, each in zip(node.outputs, result, strict=True)])
    return Boxed(layer, result, value) if isinstance(result, Tensor) else result
