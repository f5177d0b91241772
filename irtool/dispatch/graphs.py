"""Graphs under layers: a graph as a function of tensors, and transformations by name, `vmap(grad(0))`."""
from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from irtool.dispatch import transforms
from irtool.dispatch.recipes import caller
from irtool.dispatch.stack import current
from irtool.interpret import walk
from irtool.ir.errors import PipelineError
from irtool.ir.graph import Graph

NAMES: dict[str, Callable[..., Any]] = {
    "grad": transforms.grad, "value_and_grad": transforms.value_and_grad, "vmap": transforms.vmap, "jacrev": transforms.jacrev,
    "jacfwd": transforms.jacfwd, "hessian": transforms.hessian,
}
MAX_DEPTH = 32


def function_of(graph: Graph) -> Callable[..., Any]:
    """A graph as a function of tensors: its operations go to the layer on top, whatever that is; control flow runs by concrete values.

    Gives the graph's output, a tuple of them when there are several.
    """
    def function(*args: Any) -> Any:
        results = walk(graph, list(args), caller(current().apply))
        return results[0] if len(results) == 1 else tuple(results)
    function.__name__ = graph.name or "graph"
    return function


def transformed(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    """A function transformed as a text says: `grad(0)`, `vmap(grad(0))`, `vmap(grad(argnums=(0, 1)), in_dims=(0, None))`.

    The innermost transformation is of the function itself; each one outside takes what is in its parentheses first. Raises PipelineError.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PipelineError(f"'{text}' is no transformation, expected one such as vmap(grad(0))") from None
    return _build(function, tree, text, 0)


def _build(function: Callable[..., Any], tree: ast.expr, text: str, depth: int) -> Callable[..., Any]:
    if depth > MAX_DEPTH:
        raise PipelineError(f"more than {MAX_DEPTH} transformations")
    if isinstance(tree, ast.Name):
        tree = ast.Call(tree, [], [])
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise PipelineError(f"'{ast.unparse(tree)}' in '{text}' is no transformation, expected one of {', '.join(NAMES)}")
    make = NAMES.get(tree.func.id)
    if make is None:
        from irtool.ir.errors import did_you_mean

        raise PipelineError(f"there is no transformation '{tree.func.id}'{did_you_mean(tree.func.id, NAMES)}")
    given = list(tree.args)
    if given and isinstance(given[0], ast.Call | ast.Name):
        function = _build(function, given.pop(0), text, depth + 1)
    try:
        values = [ast.literal_eval(each) for each in given]
        named = {each.arg: ast.literal_eval(each.value) for each in tree.keywords if each.arg is not None}
        return make(function, *values, **named)     # type: ignore[no-any-return]
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise PipelineError(f"'{ast.unparse(tree)}': {error}") from None


def trace_transformed(graph: Graph, text: str, inputs: Sequence[Any]) -> Graph:
    """The graph of a transformed graph, traced on inputs that it takes."""
    from irtool.dispatch.tracer import trace

    names = [value.name if not value.name.isdecimal() else "" for value in graph.inputs]
    return trace(transformed(function_of(graph), text), inputs, names)


__all__ = ["NAMES", "function_of", "trace_transformed", "transformed"]
