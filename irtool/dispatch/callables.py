"""The arguments of transformations: functions; and graphs, modules of one graph and executors as functions of tensors."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from irtool.accepted_values import refuse_none
from irtool.analysis.gradients_off import modes_in
from irtool.autodiff.gradient_modes import refuse_grad_mode, settle_grad_mode
from irtool.autodiff.groups import open_writing_groups
from irtool.autodiff.hidden_writes import is_writer
from irtool.autodiff.inlined_forks import without_forks
from irtool.autodiff.refusals import refuse_omitted
from irtool.autodiff.unread_writes import without_writes
from irtool.autodiff.versions import in_versions
from irtool.dispatch.gradients_off import mode_kept
from irtool.dispatch.recipes import interpreted
from irtool.dispatch.stack import Boxed, current, is_floating, layers_from
from irtool.dispatch.tracer import Tracer
from irtool.dispatch.trees import flatten
from irtool.ir.arguments import check_function, signature
from irtool.ir.defaults import defaults_of
from irtool.ir.edits import clone_graph
from irtool.ir.effects import group_may_write
from irtool.ir.errors import RunError, UnsupportedError, did_you_mean
from irtool.ir.graph import Graph, Value
from irtool.ir.module import Module
from irtool.ir.names import Names
from irtool.ir.packed import packed_nodes
from irtool.ir.rounded import warn_of_rounded
from irtool.ir.types import ListType, OptionalType, TensorType, TupleType, Type
from irtool.ir.verify import explained
from irtool.ops.array_library import np
from irtool.ops.arrays import as_array, dtype_named
from irtool.ops.kernels.prim import GRAD_MODE
from irtool.ops.nested_tensors import tensors_in
from irtool.ops.tensor import Tensor, wrapped


def as_function(where: str, function: Any) -> Callable[..., Any]:
    """A function unchanged, a graph as a function of tensors. Raises RunError for a module of several graphs, and for any other value."""
    graph = graph_of(where, function)
    if graph is not None:
        return function_of(graph)
    check_function(where, function)
    return function     # type: ignore[no-any-return]


def graph_of(where: str, function: Any) -> Graph | None:
    """The graph of a graph, a module of one graph or an executor; None for a function. Raises RunError for a module of several."""
    if isinstance(function, Module):
        if len(function.graphs) != 1:
            names = ", ".join(function.names()) or "none"
            raise RunError(f"{where}: expected a module of one graph, this one has {len(function.graphs)} ({names}); "
                           "choose one: module.graph(NAME)")
        return function.graph()
    if isinstance(function, Graph):
        return function
    graph = getattr(function, "original", getattr(function, "graph", None)) if callable(function) else None     # an executor
    return graph if isinstance(graph, Graph) else None


def loses_gradient(tensor: Tensor) -> str:
    """For messages: the name of the layer under which the tensor would lose the gradients that nodes define themselves; else empty."""
    from irtool.dispatch.autograd import Autograd

    while isinstance(tensor, Boxed):
        if isinstance(tensor.layer, Autograd) or type(tensor.layer) is Tracer:       # a function of jit is not differentiated as a graph
            return "tape" if isinstance(tensor.layer, Autograd) else "trace"
        tensor = tensor.value
    return ""


def function_of(graph: Graph) -> Callable[..., Any]:
    """A graph as a function of tensors: its operations go to the layer on top; control flow runs by concrete values.

    Branches and loops whose conditions are undecided (batched, traced) are run by the layers (`irtool.dispatch.control_flow`).

    The graph is functionalised as far as possible, as for differentiation. `torch.no_grad()` in it detaches operands, unless tangents are
    computed, which pass it, or the mode is known only when it runs: then it switches the tape off and on.

    The function takes arguments by position or by the names of the inputs. It returns the graph's output, or a tuple of several. It raises
    RunError for arguments that do not fit. Raises PassError for a graph whose text omits values.
    """
    warn_of_rounded(graph)
    refuse_omitted(graph, "compute")
    inputs = tuple(graph.inputs)
    graph = without_forks(graph)
    if any(map(group_may_write, graph.walk())):
        graph = clone_graph(graph)
        open_writing_groups(graph)
    original, has_modes = graph, next(modes_in(graph), None) is not None
    if has_modes:
        graph = clone_graph(graph)
        is_settled = settle_grad_mode(graph)
    if any(map(is_writer, graph.walk())) and (not has_modes or is_settled):
        with explained(original):
            graph = clone_graph(graph)
            without_writes(graph)
            graph = in_versions(graph)

    packed = packed_nodes(graph)

    def function(*args: Any, **named: Any) -> Any:
        given = in_order(inputs, args, named, graph)
        refuse_none(original, given)
        values = [taken(value, declared) for value, declared in zip(given, inputs, strict=True)]
        layer = next(filter(None, map(loses_gradient, tensors_in(values))), "") if packed else ""
        if layer:
            raise UnsupportedError(f"{packed[0].kind} has a gradient of its own, which a {layer} does not take; "
                                   "irtool.vjp and `irtool grad --via differentiate` do", code="E0501")
        runs = original if has_modes and is_switched(original, is_settled) else graph
        with modes_kept(has_modes), explained(original):
            outputs = interpreted(runs, values, current().apply)
        results = [converted_result(each, declared.type) for each, declared in zip(outputs, runs.outputs, strict=True)]
        return results[0] if len(results) == 1 else tuple(results)
    function.__name__ = graph.name or "graph"
    setattr(function, NUMBERS_OF, frozenset(place for place, value in enumerate(inputs) if str(value.type.key) in NUMBERS))
    return function


def is_switched(graph: Graph, is_settled: bool) -> bool:
    """Must a graph with `torch.no_grad()` switch the tape off and on when it runs, and not detach operands? is_settled: could it detach?

    Raises UnsupportedError where neither will do: a trace has no switches.
    """
    layers = list(layers_from(current()))
    first = next((place for place, layer in enumerate(layers) if layer.is_tape and not layer.is_of_tangents), len(layers))
    is_traced = any(type(layer) is Tracer for layer in layers[:first])
    if is_settled:
        return any(layer.is_for_tangents for layer in layers) and not is_traced
    if is_traced:
        refuse_grad_mode(clone_graph(graph))
    return True


@contextmanager
def modes_kept(is_needed: bool) -> Iterator[None]:
    """A context after which the mode of gradients is what it was."""
    if not is_needed:
        yield
        return
    with GRAD_MODE.fresh(current().mode), mode_kept(current()):
        yield


def may_vary(function: Callable[..., Any], place: int, value: Any) -> bool:
    """Can an argument of a function have a gradient? Not if the function is a graph's and its input is a number, an index or None."""
    numbers = getattr(function, NUMBERS_OF, None)
    if numbers is None:
        return True
    return place not in numbers and any(is_floating(each) or isinstance(each, float | complex | np.inexact) or
                                        isinstance(each, np.ndarray) and each.dtype.kind in "fc" for each in flatten(value)[0])


def in_order(inputs: Sequence[Value], args: Sequence[Any], named: Mapping[str, Any], graph: Graph) -> list[Any]:
    """One argument per input, by position and by name (`%x.1` is also `x`). Raises RunError for a wrong number of arguments or name."""
    values = dict(enumerate(args))
    names = Names(inputs) if named else None
    for name, value in named.items():
        assert names is not None
        places = names.places(name)
        if not places:
            raise RunError(f"the graph has no input '{name}' ({signature(graph)}){did_you_mean(name, names.known())}")
        if len(places) > 1:
            raise RunError(names.choice(name))
        place = places[0]
        if place in values and place >= len(args):
            raise RunError(f"input %{inputs[place].name} is there by two names")
        if place in values:
            raise RunError(f"input %{inputs[place].name} is there by position and by name")
        values[place] = value
    if len(values) < len(inputs):
        known = defaults_of(graph)
        values = {**{place: known[value.name] for place, value in enumerate(inputs) if value.name in known}, **values}
    if sorted(values) != list(range(len(inputs))):
        raise RunError(f"expected {len(inputs)} inputs ({signature(graph)}), got {len(values)}")
    return [values[place] for place in range(len(inputs))]


def taken(value: Any, declared: Value) -> Any:
    """An argument converted to the declared type of its input. Raises RunError if it does not fit."""
    from irtool.accepted_values import accept

    if not any(True for _ in tensors_in([value])):
        return wrapped(accept(value, declared))
    return fitted(value, declared.type, declared.name)


def fitted(value: Any, type: Type, name: str) -> Any:
    """The same for tensors and containers of tensors."""
    if isinstance(type, OptionalType):
        return fitted(value, type.element, name)
    if isinstance(value, list | tuple):
        types = type.elements if isinstance(type, TupleType) and len(type.elements) == len(value) else \
            [type.element if isinstance(type, ListType) else None] * len(value)
        parts = [each if one is None else fitted(each, one, name) for each, one in zip(value, types, strict=True)]
        return tuple(parts) if isinstance(type, TupleType) else parts
    if not isinstance(value, Tensor) or str(type.key) not in NUMBERS:
        return value
    if isinstance(value, Boxed):
        raise RunError(f"input %{name} is {type}, which can be neither differentiated nor batched nor traced")
    if value.ndim:
        raise RunError(f"input %{name}: expected {type}, got a tensor of shape {value.shape}")
    number = value.array.item()
    return float(number) if str(type.key) == "float" else number


NUMBERS = frozenset(("int", "float", "bool", "complex", "str"))
NUMBERS_OF = "places_of_numbers"
"""The attribute, of the function made from a graph, with the positions of inputs that are numbers."""


def converted_result(value: Any, type: Type) -> Any:
    """A result converted for the caller: a number becomes a tensor if the output's type is Tensor."""
    if isinstance(type, TensorType) and isinstance(value, bool | int | float | complex):
        return Tensor(as_array(value, dtype_named(type.dtype) if type.dtype is not None else None))
    return value
