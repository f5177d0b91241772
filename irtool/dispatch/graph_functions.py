"""Graphs under layers: a graph as a function of tensors, and transformations by name, `vmap(grad(0))`."""
from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from irtool.dispatch import jacobians, transforms
from irtool.dispatch.autograd import Autograd
from irtool.dispatch.callables import function_of
from irtool.dispatch.given_inputs import leaf_names
from irtool.dispatch.logger import Logger, fresh_labels
from irtool.dispatch.recipes import interpreted
from irtool.dispatch.stack import current, pushed
from irtool.dispatch.trees import flatten
from irtool.ir.arguments import signature
from irtool.ir.errors import PassError, PipelineError, RunError
from irtool.ir.graph import Graph, Value
from irtool.ir.source import Diagnostic
from irtool.ir.types import TensorType
from irtool.ops.arrays import dtype_named, seeded
from irtool.ops.made_inputs import MOST_ELEMENTS
from irtool.ops.nested_tensors import map_tensors
from irtool.ops.tensor import Tensor, unwrapped, wrapped

NAMES: dict[str, Callable[..., Any]] = {
    "grad": transforms.grad, "value_and_grad": transforms.value_and_grad, "grad_and_value": transforms.grad_and_value,
    "vmap": transforms.vmap, "jacrev": jacobians.jacrev, "jacfwd": jacobians.jacfwd, "hessian": jacobians.hessian,
}
MAX_DEPTH = 32


def tape_gradients(graph: Graph, inputs: Sequence[Any], wrt: Sequence[int], cotangents: Sequence[Any], seed: int = 0) -> list[Any]:
    """Gradients of the inputs named by `wrt`, by a tape: arrays of the inputs' shapes and dtypes, or None where no gradient can reach.

    inputs: values as graphs take them; cotangents: arrays, one per tensor of the outputs, those of tuples and lists in order; None: takes
    no part. Raises RunError for another number of cotangents.
    """
    from irtool.accepted_values import accept, refuse_none

    refuse_none(graph, inputs)
    tape = Autograd(current())
    values = [with_handles(accept(value, declared)) for value, declared in zip(inputs, graph.inputs, strict=True)]
    operands = [tape.variable(value) if place in wrt else value for place, value in enumerate(values)]
    wanted = [map_tensors(tape.snapshot, operands[place]) for place in wrt]       # the graph may write into the operand
    with pushed(tape), seeded(seed):
        outputs = flatten(function_of(graph)(*operands))[0]
    if len(outputs) != len(cotangents):
        raise RunError(f"expected {len(outputs)} cotangents, got {len(cotangents)}")
    seeds = [None if each is None else wrapped(each) for each in cotangents]
    return [arrays_alone(each) for each in tape.gradients(outputs, seeds, wanted)]


def with_handles(value: Any) -> Any:
    """A value of an input with handles for arrays, also in lists, tuples and dicts."""
    if isinstance(value, dict):
        return {key: with_handles(each) for key, each in value.items()}
    return type(value)([with_handles(each) for each in value]) if isinstance(value, list | tuple) else wrapped(value)


def arrays_alone(value: Any) -> Any:
    """A value with arrays for tensors and None for all else, also in lists, tuples and dicts."""
    if isinstance(value, dict):
        return {key: arrays_alone(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([arrays_alone(each) for each in value])
    return unwrapped(value) if isinstance(value, Tensor) else None


def logged(graph: Graph, inputs: Sequence[Any], write: Callable[[str], None], seed: int = 0) -> list[Any]:
    """Run a graph on values under a Logger, which calls `write` with a line per operation on tensors; returns the outputs."""
    from irtool.accepted_values import accept, delivered, refuse_none

    refuse_none(graph, inputs)
    fresh_labels()
    layer = Logger(current(), "NumPy", write)
    values = [with_handles(accept(value, declared)) for value, declared in zip(inputs, graph.inputs, strict=True)]
    with pushed(layer), seeded(seed):
        results = interpreted(graph, values, layer.apply)
    return [delivered(map_tensors(unwrapped, each), declared.type) for each, declared in zip(results, graph.outputs, strict=True)]


def transformed(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    """A function transformed as a text says: `grad(0)`, `vmap(grad(0))`, `vmap(grad(argnums=(0, 1)), in_dims=(0, None))`.

    The innermost transformation is applied to the function, each outer one to the result of the inner one. Raises PipelineError.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PipelineError(f"'{text}' is no transformation, expected one such as vmap(grad(0))", code="E0309") from None
    return _build(function, tree, text, 0)


def _build(function: Callable[..., Any], tree: ast.expr, text: str, depth: int) -> Callable[..., Any]:
    if depth > MAX_DEPTH:
        raise PipelineError(f"more than {MAX_DEPTH} transformations", code="E0309")
    if isinstance(tree, ast.Name):
        tree = ast.Call(tree, [], [])
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise PipelineError(f"'{ast.unparse(tree)}' in '{text}' is no transformation, expected one of {', '.join(NAMES)}", code="E0309")
    make = NAMES.get(tree.func.id)
    if make is None:
        from irtool.ir.errors import did_you_mean

        hint = did_you_mean(tree.func.id, NAMES) or f", expected one of {', '.join(NAMES)}"
        raise PipelineError(f"there is no transformation '{tree.func.id}'{hint}", code="E0309")
    arguments = list(tree.args)
    if arguments and isinstance(arguments[0], ast.Call | ast.Name):
        function = _build(function, arguments.pop(0), text, depth + 1)
    try:
        values = [ast.literal_eval(each) for each in arguments]
        named = {each.arg: ast.literal_eval(each.value) for each in tree.keywords if each.arg is not None}
        return make(function, *values, **named)     # type: ignore[no-any-return]
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise PipelineError(f"'{ast.unparse(tree)}': {error}", code="E0309") from None


def trace_transformed(graph: Graph, text: str, inputs: Sequence[Any]) -> Graph:
    """The graph of a graph transformed as a text says, traced on inputs of the transformed graph."""
    from irtool.dispatch.tracer import trace

    return trace(transformed(function_of(graph), text), inputs, leaf_names(graph, inputs))


# -- vmap by itself
def in_dims_of(text: str, graph: Graph, what: str = "in-dims") -> list[int | None]:
    """`0,None,1` as one dimension, or None, per input of a graph; a single entry holds for all tensors. Raises PipelineError.

    what: the name of the text in messages.
    """
    words = [word.strip() for word in text.split(",")]
    dims: list[int | None] = []
    for word in words:
        if word.lower() in ("none", ""):
            dims.append(None)
        elif word.removeprefix("-").isdecimal() and len(word) < 5:
            dims.append(int(word))
        else:
            raise PipelineError(f"{what}: expected a dimension or None, not '{word[:40]}'", code="E0309")
    if len(dims) == 1:
        return [dims[0] if isinstance(value.type, TensorType) else None for value in graph.inputs]
    if len(dims) != len(graph.inputs):
        raise PipelineError(f"{what}: {len(dims)} dimensions, the graph has {len(graph.inputs)} inputs ({signature(graph)})", code="E0309")
    return dims


def check_size(value: Value, length: int) -> None:
    """Raises PassError for a type of more than MOST_ELEMENTS elements, since operators are tried on allocated tensors."""
    type = value.type
    if isinstance(type, TensorType) and type.shape is not None and prod(max(size, 1) for size in type.shape) * length > MOST_ELEMENTS:
        message = f"vmap: %{value.name} : {type} has too many elements to be batched by trying: {MOST_ELEMENTS} is the most"
        graph = value.node.graph
        raise PassError(diagnostics=[Diagnostic("error", message, graph.source if graph is not None else None, value.node.line)],
                        code="E0504")


def sample_inputs(graph: Graph, dims: Sequence[int | None], length: int, what: str = "in-dims") -> list[Any]:
    """Arrays of ones in the shapes of a graph's input types, with batch dimensions added. Raises PipelineError for types without sizes."""
    from irtool.ops.array_library import np

    samples: list[Any] = []
    for value, dim in zip(graph.inputs, dims, strict=True):
        kind = value.type
        if not isinstance(kind, TensorType) or kind.shape is None or kind.dtype is None:
            raise PipelineError(f"vmap: the type of %{value.name} does not say its sizes, dtype: give arrays", code="E0309")
        check_size(value, 1 if dim is None else length)
        shape = list(kind.shape)
        if dim is not None:
            if not -len(shape) - 1 <= dim <= len(shape):
                raise PipelineError(f"{what}: %{value.name} of {len(shape)} dimensions cannot be batched over dimension {dim}",
                                    code="E0309")
            shape.insert(dim % (len(shape) + 1), length)
        samples.append(np.ones(shape, dtype_named(kind.dtype)))
    return samples


def trace_vmap(graph: Graph, dims: Sequence[int | None], values: Sequence[Any], out_dim: int = 0, randomness: str = "error",
               stand_ins: bool = False) -> Graph:
    """The graph of a batched graph, traced on batched inputs. stand_ins: these have the right dtypes and sizes alone (`sample_inputs`)."""
    from irtool.dispatch.tracer import check_names, record

    function = transforms.vmap(function_of(graph), tuple(dims), out_dim, randomness)
    names = leaf_names(graph, values)
    leaves, shape = flatten([transforms.tensors(value) for value in values])
    check_names(leaves, names)
    return record(function, leaves, shape, names, stand_ins=stand_ins)[0]
