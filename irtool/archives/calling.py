"""Calls of methods: arguments bound to parameters, the lowered graph run, what it wrote put back into the instance."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import numpy as np

from irtool.accepted_values import accept, copied, delivered
from irtool.archives.declared_values import named
from irtool.archives.lowering import Lowered, UnknownInstance
from irtool.archives.opening import MAX_CALLS
from irtool.execute.executor import Executor
from irtool.execute.output_cotangents import leaves, parts_of
from irtool.interpret import walk
from irtool.ir.errors import RunError, UnsupportedError, did_you_mean
from irtool.ir.graph import Graph, Node
from irtool.ops.arrays import is_array
from irtool.ops.node_calls import call_node
from irtool.ops.structure import Object
from irtool.torchscript.annotations import signature
from irtool.torchscript.front import default_value
from irtool.torchscript.library import Library
from irtool.torchscript.source_text import Function

if TYPE_CHECKING:
    from irtool.archives.archive import Archive

MAX_VARIANTS = 16
"""Graphs of one method for different numbers and words among the attributes."""


class Program:
    """What the methods of one archive share: the archive, and the methods called so far."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.library = archive.library
        self._methods: dict[tuple[int, str], MethodRun] = {}

    def method(self, instance: Object, name: str) -> MethodRun:
        """A method of an instance, ready to be called. Raises Error."""
        known = self._methods.get((id(instance), name))
        if known is None:
            known = self._methods[id(instance), name] = MethodRun(self.library, instance, name)
        return known


class MethodRun:
    """A method of one instance: its graph, and a variant for each set of numbers and words among the attributes."""

    def __init__(self, library: Library, instance: Object, name: str) -> None:
        self.library = library
        self.instance = instance
        self.name = name
        definition = library.definition(instance.type)
        function = definition.methods.get(name)
        if function is None:
            raise RunError(f"{definition.type} has no method '{name}'{did_you_mean(name, definition.methods)}", code="E0403")
        self.function: Function = function
        self.graph: Graph = library.method(instance.type, name)
        self.parameters = Parameters(self.function)
        self.variants: list[tuple[Lowered, Executor]] = []
        self.is_lowered = True

    def variant(self) -> tuple[Lowered, Executor]:
        """The graph for the attributes as they are. Raises UnknownInstance."""
        for each in self.variants:
            if each[0].fits():
                return each
        lowered = Lowered(self.library, self.graph, self.instance)
        self.variants.append((lowered, Executor(lowered.graph)))
        del self.variants[:-MAX_VARIANTS]
        return self.variants[-1]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the method. Raises RunError."""
        arguments = self.parameters.bind(args, kwargs)
        try:
            lowered, executor = self.variant()
        except UnknownInstance:
            return self.interpreted(arguments)
        results = executor.run([*arguments, *[holder.attributes[name] for holder, name in lowered.sources]], None)
        self.put_back(lowered, results)
        if lowered.shares:
            results = copied(results)
        return self.result(results[:lowered.result_count])

    def interpreted(self, arguments: Sequence[Any]) -> Any:
        """The result, node by node, instances as they are."""
        values = [accept(value, declared) for value, declared in zip(arguments, self.graph.inputs[1:], strict=True)]
        results = walk(self.graph, [self.instance, *copied(values)], Caller(self.library))
        return self.result(copied([delivered(each, output.type) for each, output in zip(results, self.graph.outputs, strict=True)]))

    def result(self, results: Sequence[Any]) -> Any:
        """Results as Python has them."""
        return named(results[0], self.graph.outputs[0].type)

    def put_back(self, lowered: Lowered, results: Sequence[Any]) -> None:
        """Give the attributes the values that the graph left in them."""
        changed = results[lowered.result_count + len(lowered.assigned):]
        for index, value in zip(lowered.changed, changed, strict=True):
            holder, name = lowered.sources[index]
            holder.attributes[name] = written_over(holder.attributes[name], value)
        for (holder, name), value in zip(lowered.assigned, results[lowered.result_count:], strict=False):
            holder.attributes[name] = value

    def vjp(self, inputs: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int | str],
            places: Mapping[str, tuple[Object, str]]) -> list[Any]:
        """Gradients of arguments by position, and of parameters by dotted name (`places` says whose attribute each is)."""
        arguments = self.parameters.bind(inputs, {})
        try:
            lowered, executor = self.variant()
        except UnknownInstance as unknown:
            raise UnsupportedError(f"gradients of {self.name} are not supported: it hands an instance to {unknown}", code="E0404") from None
        values = [*arguments, *[holder.attributes[name] for holder, name in lowered.sources]]
        index_of = {(id(holder), name): len(arguments) + index for index, (holder, name) in enumerate(lowered.sources)}
        positions = [index_of.get((id(places[each][0]), places[each][1])) if isinstance(each, str) else each for each in wrt]
        chosen = sorted({each for each in positions if each is not None})
        recorded = executor.record(values, chosen, seed=0)
        seeds = per_leaf(recorded.outputs[:lowered.result_count], cotangents)
        state = sum(map(leaves, recorded.outputs[lowered.result_count:]))       # takes no part
        gradients = dict(zip(chosen, recorded.backward([*seeds, *[None] * state]), strict=True)) if chosen else {}
        self.put_back(lowered, recorded.outputs)
        return [None if each is None else gradients[each] for each in positions]


def per_leaf(outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents, one per tensor of the outputs, with None for each number or word among them. Raises RunError for too many or too few."""
    tensors = [is_array(leaf) for leaf in leaves_in(outputs)]
    if len(cotangents) != sum(tensors):
        raise RunError(f"expected {sum(tensors)} cotangents, got {len(cotangents)}", code="E0503")
    remaining = iter(cotangents)
    return [next(remaining) if is_tensor else None for is_tensor in tensors]


def leaves_in(value: Any) -> Iterator[Any]:
    """What nested lists, tuples and dicts hold, as `distributed` takes them apart."""
    if isinstance(value, list | tuple | dict):
        for each in parts_of(value):
            yield from leaves_in(each)
    else:
        yield value


def source_of(function: Function) -> str:
    """The lines of a method in the archive's code, without the indentation of its class."""
    first, last = function.definition.lineno, function.definition.end_lineno or function.definition.lineno
    return dedent("".join(f"{function.place.line(number)}\n" for number in range(first, last + 1)))


class Parameters:
    """What a method takes besides its instance: names, and defaults."""

    def __init__(self, function: Function) -> None:
        declared = signature(function)
        self.owner = function.name
        self.names = declared.names[1:]
        self.text = ", ".join(f"{type} {name}" for type, name in zip(declared.types[1:], self.names, strict=True))
        self.defaults: dict[str, Any] = {}
        for name, node, count in zip(self.names, declared.defaults[1:], declared.repeats[1:], strict=True):
            if node is not None:
                value = default_value(node, function.unit)
                self.defaults[name] = [value] * count if count and isinstance(value, int | float) else value

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """A value per parameter. Raises RunError."""
        if len(args) > len(self.names):
            raise RunError(f"{self.owner} takes {len(self.names)} arguments ({self.text}), but got {len(args)}", code="E0402")
        values = dict(zip(self.names, args, strict=False))
        for name, value in kwargs.items():
            if name not in self.names:
                raise RunError(f"{self.owner} has no argument '{name}'{did_you_mean(name, self.names)}; it takes ({self.text})",
                               code="E0402")
            if name in values:
                raise RunError(f"{self.owner}: the argument '{name}' by position and by name", code="E0402")
            values[name] = value
        missing = [name for name in self.names if name not in values and name not in self.defaults]
        if missing:
            raise RunError(f"{self.owner}: the argument '{missing[0]}' is missing; it takes ({self.text})", code="E0402")
        return [values[name] if name in values else self.defaults[name] for name in self.names]


def written_over(old: Any, new: Any) -> Any:
    """The array or container `old` with the content of `new`, so that all who share it see the change."""
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray) and old.shape == new.shape and old.dtype == new.dtype:
        if old is not new:
            np.copyto(old, new)
        return old
    if isinstance(old, list) and isinstance(new, list):
        old[:] = new
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        items = dict(new)
        old.clear()
        old.update(items)
        return old
    return new


class Caller:
    """Runs nodes, and the functions and methods that nodes call."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.depth = 0

    def __call__(self, node: Node, values: list[Any]) -> Sequence[Any]:
        """The results of a node."""
        if node.kind == "prim::CallMethod":
            return self.run(self.library.method(values[0].type, str(node.attributes["name"].value)), values)
        if node.kind == "prim::CallFunction":
            graph = self.library.function(str(node.inputs[0].node.attributes["name"].value))
            if graph is not None:
                return self.run(graph, values[1:])
        return call_node(node, values)

    def run(self, graph: Graph, values: list[Any]) -> Sequence[Any]:
        """The results of a graph."""
        if self.depth >= MAX_CALLS:
            raise RunError(f"{graph.name}: more than {MAX_CALLS} calls in calls", code="E0404")
        self.depth += 1
        try:
            return walk(graph, values, self)
        finally:
            self.depth -= 1


def call_method(library: Library, instance: Object, name: str, arguments: Sequence[Any]) -> Any:
    """Call a method node by node, on an instance that has not all its attributes yet."""
    return Caller(library).run(library.method(instance.type, name), [instance, *arguments])

