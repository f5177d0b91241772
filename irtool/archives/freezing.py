"""Inputs as constants: `freeze` of a graph, and methods of a module as graphs of their arguments alone."""
from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, Any, overload

from irtool.accepted_values import accept, arrays_in, overlapping
from irtool.analysis.alias import Aliases
from irtool.analysis.liveness import remove_dead_nodes
from irtool.archives.lowering import Lowered, UnknownInstance
from irtool.ir.arguments import check_graph, is_whole, listed, misfit
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.defaults import DEFAULTS, spelled
from irtool.ir.edits import clone_graph
from irtool.ir.effects import node_may_write
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import Graph, Value
from irtool.ir.module import Module
from irtool.ir.names import Names
from irtool.ir.types import TENSOR, DictType, ListType, OptionalType, TupleType, Type
from irtool.ops.array_library import np
from irtool.ops.arrays import element_strides, is_array
from irtool.ops.folding import tensor_constant
from irtool.ops.quantized import Packed
from irtool.ops.structure import EnumMember
from irtool.ops.tensor import unwrapped
from irtool.shared_inputs import clashes_among, noting_conversions, refuse_clashes

if TYPE_CHECKING:
    from irtool.archives.script_module import ScriptModule

PLAIN = bool, int, float, complex, str, type(None)
WITH_LITERALS = (*PLAIN, tuple, list)
"""Classes of default values that texts may have."""


@overload
def freeze(graph: Graph | Module, values: Mapping[str | int, Any]) -> Graph: ...


@overload
def freeze(graph: ScriptModule) -> ScriptModule: ...


def freeze(graph: Graph | Module | ScriptModule, values: Mapping[str | int, Any] | None = None) -> Graph | ScriptModule:
    """A new graph in which inputs are constants: they leave its signature, the others keep their order.

    values: arrays and Python values by the names of inputs (`x` for `%x.1`, too) or by their positions among those of `graph`. They are
    copied: later writes into them do not change the graph, and writes of the graph into them are lost after each run.
    Of a ScriptModule, without `values`, what its method `freeze` returns.

    Raises RunError for unknown names and positions and for values that do not fit, UnsupportedError for values that cannot be constants.
    """
    if values is None and not isinstance(graph, Graph | Module) and hasattr(graph, "freeze"):
        return graph.freeze()
    graph = clone_graph(check_graph("freeze", graph))
    if values is None:
        raise RunError(f"freeze: expected values of inputs by name or position, there are {listed(graph)}", code="E0402")
    if not isinstance(values, Mapping):
        raise misfit("freeze", "values", values, f"a dict of values by name or position, there are {listed(graph)}")
    names = Names(graph.inputs)
    by_place: dict[int, Any] = {}
    made: dict[int, tuple[Any, Any]] = {}
    for key, value in values.items():
        if not isinstance(key, str) and not (is_whole(key) and 0 <= key < len(graph.inputs)):
            raise RunError(f"freeze: no input is at position {key!r}, there are {listed(graph)}", code="E0402")
        for place in names.places(key) if isinstance(key, str) else [index(key)]:
            if place in by_place:
                raise RunError(f"freeze: input {place} twice, the second time as {key!r}", code="E0402")
            with noting_conversions(made):
                by_place[place] = accept(unwrapped(value), graph.inputs[place])
        if isinstance(key, str) and not names.places(key):
            raise RunError(f"freeze: no input is called '{key}', there are {listed(graph)}", code="E0402")
    touched = Aliases(graph).touched_inputs() if any(map(node_may_write, graph.walk())) else [False] * len(graph.inputs)
    build = Builder(graph).at_start(graph.block)
    if any(touched):
        refuse_clashes(clashes_among([by_place.get(place) for place in range(len(touched))], made), graph.inputs, lambda: touched)
        by_place = on_shared_memory(build, by_place)
    for place, value in by_place.items():
        declared = graph.inputs[place]
        declared.replace_all_uses_with(constant_of(build, value, declared.type, touched[place], f"%{declared.name}"))
    for place in sorted(by_place, reverse=True):
        graph.block.remove_input(place)
    return graph


def on_shared_memory(build: Builder, by_place: dict[int, Any]) -> dict[int, Any]:
    """The values, with arrays that share memory as views of one tensor, so that a write into one reaches the others.

    Raises UnsupportedError if arrays that share memory have several dtypes.
    """
    views: dict[int, Value] = {}        # by the id of an array
    for group in overlapping([each for value in by_place.values() for each in arrays_in(value)]):
        if len(group) < 2:
            continue
        dtype, begin = group[0][0].dtype, group[0][1]
        if any(array.dtype != dtype or (at - begin) % dtype.itemsize for array, at, _ in group):
            raise UnsupportedError("freeze: arrays of several dtypes share memory, and the graph writes: not supported", code="E0404")
        whole = np.zeros((max(end for _, _, end in group) - begin) // dtype.itemsize, dtype)
        for array, at, _ in group:
            view_of(whole, array, (at - begin) // dtype.itemsize)[...] = array
        shared = constant_of(build, whole, TENSOR, True, "arrays that share memory")
        for array, at, _ in group:
            views[id(array)] = build.call("aten::as_strided", shared, list(array.shape), list(element_strides(array)),
                                          (at - begin) // dtype.itemsize, type=TENSOR)
    return {place: with_views(value, views) for place, value in by_place.items()} if views else by_place


def with_views(value: Any, views: Mapping[int, Value]) -> Any:
    """A value in which arrays are replaced by views, also in lists, tuples and dicts."""
    if isinstance(value, list | tuple):
        return type(value)([with_views(each, views) for each in value]) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {key: with_views(each, views) for key, each in value.items()}
    return views.get(id(value), value)


def view_of(whole: Any, array: Any, offset: int) -> Any:
    """The view of a one-dimensional tensor that corresponds to `array`, `offset` elements from the tensor's beginning."""
    return np.lib.stride_tricks.as_strided(whole[offset:], array.shape, array.strides)


def constant_of(build: Builder, value: Any, type: Type, is_written: bool, what: str) -> Value:
    """A value as a value of the graph. Arrays are copied; if they are written into, once per run. Raises UnsupportedError."""
    if isinstance(value, Value):
        return value
    if isinstance(type, OptionalType) and value is not None:
        type = type.element
    if is_array(value) and isinstance(value, np.ndarray):
        array = np.array(value, order="K")
        result = tensor_constant(build, array)
        return build.call("aten::clone", result, None, type=result.type) if is_written else result
    if isinstance(value, PLAIN):
        return build.constant(value, None if value is None and not isinstance(type, OptionalType) else type)
    if isinstance(value, list) and isinstance(type, ListType):
        return build.construct_list([constant_of(build, each, type.element, is_written, what) for each in value], type.element)
    if isinstance(value, tuple) and isinstance(type, TupleType) and len(value) == len(type.elements):
        parts = [constant_of(build, each, inner, is_written, what) for each, inner in zip(value, type.elements, strict=True)]
        return build.node("prim::TupleConstruct", parts, output_types=[type]).output
    if isinstance(value, dict) and isinstance(type, DictType):
        pairs = [constant_of(build, each, inner, is_written, what)
                 for item in value.items() for each, inner in zip(item, (type.key_type, type.value_type), strict=True)]
        return build.node("prim::DictConstruct", pairs, output_types=[type]).output
    if isinstance(value, EnumMember | Packed):
        text = f"{value.owner}.{value.name}" if isinstance(value, EnumMember) else "<Packed>"
        return build.node("prim::Constant", (), {"value": Attribute(text, value)}, [type]).output
    kind = value.__class__.__name__
    raise UnsupportedError(f"{what} : {type} is a {kind}, which cannot be a constant: freezing it is not supported", code="E0404")


def standalone(module: ScriptModule, method: str = "forward") -> Graph:
    """A method as a graph of its arguments alone: the attributes that it reads are constants; its writes into them are lost.

    Raises RunError for an unknown method, UnsupportedError if its instances are known only when it runs, or if it reads an attribute that
    cannot be a constant.
    """
    run = module.method(method)
    try:
        lowered = run.variant().lowered
    except UnknownInstance as unknown:
        raise UnsupportedError(f"{method} hands an instance to {unknown}: it is no graph of arrays; irtool.load in Python runs it",
                               code="E0404") from None
    frozen = with_constants(lowered)
    frozen.name = run.function.name
    defaults = {value.name: run.parameters.defaults[name] for value, name in zip(frozen.inputs, run.parameters.names, strict=True)
                if isinstance(run.parameters.defaults.get(name, ...), WITH_LITERALS)}
    if defaults:
        frozen.metadata[DEFAULTS] = spelled(defaults)
    return frozen


def with_constants(lowered: Lowered) -> Graph:
    """A lowered method with constants for its attributes, and only its results as outputs. Raises UnsupportedError."""
    graph = clone_graph(lowered.graph)
    graph.block.set_outputs(graph.outputs[:lowered.result_count])
    remove_dead_nodes(graph)
    first = len(graph.inputs) - len(lowered.sources)
    frozen = freeze(graph, {first + place: holder.attributes[name] for place, (holder, name) in enumerate(lowered.sources)})
    remove_dead_nodes(frozen)
    return frozen
