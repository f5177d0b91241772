"""Calls of methods: arguments are bound to parameters, the lowered graph runs, and what it wrote goes into the instance's attributes."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property, reduce
from textwrap import dedent
from threading import RLock
from typing import TYPE_CHECKING, Any

from irtool.accepted_values import accept, accepted, copied, delivered, noting_copies
from irtool.archives.declared_values import holds_instance, inward, is_plain, named, outward
from irtool.archives.lowering import Lowered, Place, UnknownInstance, is_unchanged
from irtool.archives.module_call import CALL, graph_of_call
from irtool.archives.opening import MAX_CALLS
from irtool.archives.replacing import (
    NOTHING,
    Replaced,
    array_called,
    copied_if_shared,
    new_handle,
    originals,
    refilled,
    settled,
    written_over,
)
from irtool.dispatch.backend import BACKEND
from irtool.dispatch.callables import function_of
from irtool.dispatch.stack import current, elements_of
from irtool.dispatch.transforms import tensors
from irtool.execute.executor import Executor
from irtool.execute.output_cotangents import leaves, parts_of
from irtool.interpret import walk
from irtool.ir.arguments import is_whole, misfit, shown
from irtool.ir.collector import Paused
from irtool.ir.errors import RunError, UnsupportedError, did_you_mean
from irtool.ir.graph import Graph, Node
from irtool.ir.types import INT
from irtool.ops.array_library import np
from irtool.ops.arrays import generator, is_array, seeded
from irtool.ops.nested_tensors import map_tensors, tensors_in
from irtool.ops.node_calls import call_node
from irtool.ops.structure import Attributes, Object
from irtool.ops.tensor import unwrapped, wrapped
from irtool.torchscript.annotations import signature
from irtool.torchscript.front import declared_default
from irtool.torchscript.library import Library
from irtool.torchscript.source_text import Function

if TYPE_CHECKING:
    from irtool.archives.archive import Archive

MAX_METHODS = 2000
MAX_VARIANTS = 16
"""The most graphs of one method, each for other numbers and strings in the attributes."""


class Program:
    """State shared by the methods of one module: the archive, and the methods called so far, at most MAX_METHODS. Calls of several
    threads compile one after the other; so run calls that change attributes."""

    def __init__(self, archive: Archive, view: Callable[[Object, Program], Any], trainable: dict[int, tuple[Any, bool]],
                 lock: Any = None) -> None:
        """view: makes the object that users see of an instance; trainable: id of a tensor -> the tensor, and whether it requires
        gradients; lock: that of the program of which this is a copy, since both compile the same code."""
        self.archive = archive
        self.view = view
        self.trainable = trainable
        self.library = archive.library
        self.lock = lock or RLock()
        self._methods: dict[tuple[int, str], MethodRun] = {}

    def outward(self, value: Any) -> Any:
        """A value as users see it."""
        return outward(value, self.library, lambda instance: self.view(instance, self))

    def method(self, instance: Object, name: str) -> MethodRun:
        """A method of an instance, ready for calls. Raises Error."""
        with self.lock:
            known = self._methods.pop((id(instance), name), None) or MethodRun(self, instance, name)
            self._methods[id(instance), name] = known
            if len(self._methods) > MAX_METHODS:
                del self._methods[next(iter(self._methods))]
        return known


class Variant:
    """A graph of a method, made for certain numbers and strings in the attributes."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        self.executor = Executor(lowered.graph)
        self.has_state = bool(lowered.assigned or lowered.changed)
        self._fitted: object = None
        self._state: tuple[object, list[Any]] = (None, [])

    def fits(self) -> bool:
        """Have the attributes still the values for which the graph was made? Compared again after an attribute was written."""
        last_write = Attributes.last_write
        if last_write is not self._fitted:
            if not self.lowered.fits():
                return False
            self._fitted = last_write
        return True

    def state(self) -> list[Any]:
        """The values of the attributes that are inputs of the graph. Raises RunError."""
        last_write, state = Attributes.last_write, self._state
        if state[0] is not last_write:
            self._state = state = (last_write, NOTHING.attributes(self.lowered))
        return state[1]

    def needs_lists(self) -> bool:
        """Must a call work on the lists of attributes themselves? A graph takes and gives copies."""
        return self.lowered.keeps_lists or self.changes_shared_list()

    def changes_shared_list(self) -> bool:
        """May the method change a list that two attributes are? For its graph these are two lists."""
        return self.lowered.rebinds and has_one_twice(self.state())

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The graph as a function of tensors, for layers."""
        return function_of(self.lowered.graph)


class MethodRun:
    """A method of one instance: its graph, with a variant for each set of numbers and strings in the attributes."""

    __slots__ = ("program", "library", "instance", "name", "function", "code_graph", "parameters", "gives_plain", "variants", "varying",
                 "unknown")

    def __init__(self, program: Program, instance: Object, name: str) -> None:
        self.program = program
        self.library = library = program.library
        self.instance = instance
        self.name = name
        definition = library.definition(instance.type)
        function = definition.methods.get("forward" if name == CALL else name)
        if function is None:
            listed = ", ".join([*definition.methods][:12])
            raise RunError(f"{definition.type} has no method '{name}'{did_you_mean(name, definition.methods)}, "
                           f"expected one of: {listed or '(none)'}", code="E0605")
        self.function: Function = function
        # not called `graph`: jit, grad and vmap take an object with a `graph` for an executor
        self.code_graph: Graph = graph_of_call(library, definition) if name == CALL else library.method(instance.type, name)
        self.parameters = Parameters(self.function)
        self.gives_plain = is_plain(self.code_graph.outputs[0].type)
        self.variants: list[Variant] = []
        self.varying: set[Place] = set()
        self.unknown: UnknownInstance | None = None

    def __repr__(self) -> str:
        return f"<method {self.name}({self.parameters.text}) of {self.instance.type}>"

    def variant(self) -> Variant:
        """The variant for the present values of the attributes. Raises UnknownInstance."""
        variant = self.fitting()
        if variant is None:
            with self.program.lock:
                variant = self.fitting() or self.new_variant()
        return variant

    def new_variant(self) -> Variant:
        """Make a variant. Numbers and strings that differ from those of the last variant become inputs of its graph. Raises
        UnknownInstance."""
        if self.unknown is not None and is_unchanged(self.unknown.read):
            raise UnknownInstance(*self.unknown.args)
        for holder, name, value in self.variants[-1].lowered.read if self.variants else ():
            now = holder.attributes.get(name)
            if now is not value and type(now) is type(value) in (int, float, str):
                self.varying.add((id(holder), name))
        try:
            with Paused():
                variant = Variant(Lowered(self.library, self.code_graph, self.instance, self.varying))
        except UnknownInstance as unknown:
            self.unknown = unknown
            raise
        self.variants = [*self.variants[-MAX_VARIANTS + 1:], variant]
        return variant

    def fitting(self) -> Variant | None:
        """The variant for the present values of the attributes, if one exists."""
        for each in self.variants:
            if each.fits():
                return each
        return None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the method. Raises RunError."""
        return self.call(args, kwargs, NOTHING)

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any], replaced: Replaced) -> Any:
        """The result of the method with some attributes replaced. Raises RunError."""
        arguments = self.parameters.bind(args, kwargs)
        try:
            if not all_arrays(arguments):
                self.parameters.refuse_floats(arguments)
                arguments = [inward(each) for each in arguments]
                if any(map(holds_instance, arguments)):
                    raise UnknownInstance("it, as an argument")
            variant = self.variant()
        except UnknownInstance as unknown:
            if replaced.names or current() is not BACKEND:
                raise self.refusal("calls under grad, vmap, jit and with other parameters are", unknown) from None
            return self.interpreted(arguments)
        if variant.lowered.reshapes:        # on the arrays themselves, since the new shape of a copy would be lost
            if replaced.names or current() is not BACKEND:
                raise self.refused_shapes("calls under grad, vmap, jit and with other parameters are")
            return self.interpreted_as_given(arguments)
        if not replaced.names and current() is BACKEND and variant.needs_lists():
            return self.interpreted_as_given(arguments)
        if current() is not BACKEND:
            return self.under_layers(variant, arguments, replaced)
        if not variant.has_state:
            return self.run(variant, arguments, replaced)
        with self.program.lock:
            return self.run(variant, arguments, replaced)

    def refusal(self, what: str, unknown: UnknownInstance) -> UnsupportedError:
        """The error for a use that needs a graph without instances."""
        return UnsupportedError(f"{self.name}: {what} not supported, since it hands an instance to {unknown}", code="E0404")

    def refused_shapes(self, what: str) -> UnsupportedError:
        """The error for a use in which an attribute cannot get another shape."""
        return UnsupportedError(f"{self.name}: {what} not supported, since it may change the shape of an attribute in place", code="E0404")

    def run(self, variant: Variant, arguments: Sequence[Any], replaced: Replaced) -> Any:
        """The results of the executor: arrays, or tensors if some arguments are tensors."""
        lowered = variant.lowered
        values = [*arguments, *(replaced.attributes(lowered) if replaced.names else variant.state())]
        has_tensors = (replaced is not NOTHING or not all_arrays(arguments)) and any(
            True for _ in tensors_in([*arguments, replaced.parameters]))
        if has_tensors:
            values = map_tensors(elements_of, values)
        if lowered.by_reference and not replaced.names:
            with noting_copies() as copies:
                results = variant.executor.run(values, None)
            self.put_back_originals(lowered, results, copies, values[len(arguments):], values[:len(arguments)])
        else:
            results = variant.executor.run(values, None)
            if variant.has_state:
                self.put_back(lowered, results, replaced, values[:len(arguments)])
        outputs = copied(results[:lowered.result_count]) if lowered.shares or lowered.assigned else results[:lowered.result_count]
        return self.result(wrapped(outputs) if has_tensors else outputs)

    def put_back_originals(self, lowered: Lowered, results: Sequence[Any], copies: Mapping[int, tuple[Any, Any]], state: Sequence[Any],
                           arguments: Sequence[Any]) -> None:
        """Set the attributes to the values that the graph computed; attributes that were one array, or shared memory, still do."""
        count = len(lowered.assigned)
        values = originals(results[lowered.result_count:], copies, state, arguments)
        for index, value in zip(lowered.changed, values[count:], strict=True):
            holder, name = lowered.sources[index]
            holder.attributes[name] = refilled(holder.attributes[name], value)
        for (holder, name), value in zip(lowered.assigned, values[:count], strict=True):
            holder.attributes[name] = value

    def under_layers(self, variant: Variant, arguments: Sequence[Any], replaced: Replaced) -> Any:
        """The result on the top layer, as tensors. Raises UnsupportedError if the layer hides the values written into attributes."""
        lowered = variant.lowered
        values = replaced.attributes(lowered)
        replaced.check(lowered, values)
        values = tensors([*arguments, *values])
        for place in lowered.changed:
            values[len(arguments) + place] = map_tensors(new_handle, values[len(arguments) + place])
        results = variant.function(*values)
        results = list(results) if len(lowered.graph.outputs) > 1 else [results]
        if variant.has_state:
            self.put_back(lowered, results, replaced, ())
        outputs = results[:lowered.result_count]
        return self.result(map_tensors(lambda each: each.clone(), outputs) if lowered.shares else outputs)

    def interpreted(self, arguments: Sequence[Any]) -> Any:
        """The result of running node by node, with instances as values."""
        values = [accept(unwrapped(value), declared) for value, declared in zip(arguments, self.code_graph.inputs[1:], strict=True)]
        with self.program.lock, np.errstate(all="ignore"):
            copies = iter(copied([each for each in values if not holds_instance(each)]))       # together, since they may share memory
            results = walk(self.code_graph, [self.instance, *[each if holds_instance(each) else next(copies) for each in values]],
                           Caller(self.library))
            results = [delivered(each, output.type) for each, output in zip(results, self.code_graph.outputs, strict=True)]
            return self.result([each if holds_instance(each) else copied([each])[0] for each in results])

    def interpreted_as_given(self, arguments: Sequence[Any]) -> Any:
        """As `interpreted`; with tensors as results if some arguments are tensors."""
        result = self.interpreted(arguments)
        return wrapped([result])[0] if any(True for _ in tensors_in(list(arguments))) else result

    def result(self, results: Sequence[Any]) -> Any:
        """Results as users see them."""
        result = results[0]
        return result if self.gives_plain else self.program.outward(named(result, self.code_graph.outputs[0].type, self.program.library))

    def put_back(self, lowered: Lowered, results: Sequence[Any], replaced: Replaced, arguments: Sequence[Any]) -> None:
        """Set the attributes, or the arrays that replace them, to the values that the graph computed. They share no memory with
        arguments."""
        end = lowered.result_count + len(lowered.assigned)
        for (holder, name), value in zip(lowered.assigned, results[lowered.result_count:], strict=False):
            if not replaced.holds(holder.attributes.get(name)):
                settled(value)          # raises before anything is written
        for index, value in zip(lowered.changed, results[end:], strict=True):
            holder, name = lowered.sources[index]
            old = holder.attributes[name]
            new = written_over(replaced.value(old), value, lowered.rebinds and isinstance(old, list | dict | tuple))
            if not replaced.holds(old):
                holder.attributes[name] = new
        for (holder, name), value in zip(lowered.assigned, copied_if_shared(results[lowered.result_count:end], arguments), strict=True):
            if not replaced.assign(holder.attributes.get(name), value):
                holder.attributes[name] = settled(value)

    def vjp(self, inputs: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int | str],
            places: Mapping[str, tuple[Object, str]]) -> list[Any]:
        """Gradients of arguments by position, and of parameters by dotted name (`places` says whose attribute each is)."""
        arguments = [inward(each) for each in self.parameters.bind(inputs, {})]
        check_wrt(wrt, len(arguments))
        try:
            variant = self.variant()
        except UnknownInstance as unknown:
            raise self.refusal("gradients are", unknown) from None
        lowered = variant.lowered
        if lowered.reshapes:
            raise self.refused_shapes("gradients are")
        if variant.changes_shared_list():
            raise UnsupportedError(f"{self.name}: gradients are not supported, since it may change a list or dict that is several of the "
                                   "attributes it reads", code="E0404")
        state = [holder.attributes[name] for holder, name in lowered.sources]
        arrays = {each: array_called(each, places, "vjp") for each in wrt if isinstance(each, str)}
        readers = {each: [index for index, value in enumerate(state, len(arguments)) if any(leaf is array for leaf in leaves(value))]
                   for each, array in arrays.items()}
        chosen = sorted({index for each in wrt for index in (readers[each] if isinstance(each, str) else [each])})
        seed = int(generator().integers(2 ** 31))
        with self.program.lock if variant.has_state else nullcontext():
            with noting_copies() as copies:
                recorded = variant.executor.record([*arguments, *state], chosen, seed=seed)
            seeds = per_leaf(recorded.outputs[:lowered.result_count], cotangents)
            rest = len(leaves(recorded.outputs[lowered.result_count:]))       # gets no cotangents
            gradients = dict(zip(chosen, recorded.backward([*seeds, *[None] * rest]), strict=True)) if chosen else {}
            if lowered.keeps_lists:
                with seeded(seed):
                    self.interpreted(arguments)
            elif lowered.by_reference:
                self.put_back_originals(lowered, recorded.outputs, copies, state, arguments)
            else:
                self.put_back(lowered, recorded.outputs, NOTHING, arguments)
        return [gradients[each] if not isinstance(each, str) else
                total([gradient for index in readers[each] for gradient in parts(gradients[index], state[index - len(arguments)],
                                                                                 arrays[each])]) for each in wrt]


def check_wrt(wrt: Any, count: int) -> None:
    """Raises RunError unless `wrt` is a list of names and of positions of `count` arguments."""
    if isinstance(wrt, str | dict) or not hasattr(wrt, "__iter__"):
        raise misfit("vjp", "wrt", wrt, "a list of positions of arguments and of dotted names of parameters")
    for each in wrt:
        if not isinstance(each, str) and not (is_whole(each) and 0 <= each < count):
            raise RunError(f"vjp: wrt names argument {shown(each)}, the method takes {count}; parameters have dotted names", code="E0402")


def has_one_twice(values: Sequence[Any]) -> bool:
    """Is a list or dict several of the values, or in several of them?"""
    seen: set[int] = set()
    todo = list(values)
    while todo:
        each = todo.pop()
        if isinstance(each, list | dict):
            if id(each) in seen:
                return True
            seen.add(id(each))
        if isinstance(each, list | tuple | dict):
            todo += each.values() if isinstance(each, dict) else each
    return False


def all_arrays(values: Sequence[Any]) -> bool:
    """Are all values NumPy arrays? (the usual case)"""
    return all([type(each) is np.ndarray for each in values])


def parts(gradient: Any, value: Any, array: Any) -> Iterator[Any]:
    """The gradients of an array in the gradient of a value that is the array, or contains it."""
    if value is array:
        yield gradient
    elif isinstance(value, list | tuple | dict) and gradient is not None:
        for one, each in zip(parts_of(gradient), parts_of(value), strict=True):
            yield from parts(one, each, array)


def total(gradients: Sequence[Any]) -> Any:
    """The sum of gradients; None if there are none."""
    present = [each for each in gradients if each is not None]
    return reduce(np.add, present) if present else None


def per_leaf(outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents, one per tensor of the outputs, and None for each number or string among them. Raises RunError for too many or too few."""
    tensors = [is_array(leaf) for leaf in leaves(outputs)]
    if len(cotangents) != sum(tensors):
        raise RunError(f"expected {sum(tensors)} cotangents, got {len(cotangents)}", code="E0503")
    remaining = iter(cotangents)
    return [next(remaining) if is_tensor else None for is_tensor in tensors]


def source_of(function: Function) -> str:
    """The source lines of a method in the archive's code, without the indentation of the class."""
    first, last = function.definition.lineno, function.definition.end_lineno or function.definition.lineno
    return dedent("".join(f"{function.place.line(number)}\n" for number in range(first, last + 1)))


class Parameters:
    """The parameters of a method besides its instance: names, and defaults."""

    def __init__(self, function: Function) -> None:
        declared = signature(function)
        self.owner = function.name
        self.names = declared.names[1:]
        self.text = ", ".join(f"{type} {name}" for type, name in zip(declared.types[1:], self.names, strict=True))
        self.ints = tuple(place for place, type in enumerate(declared.types[1:]) if type == INT)
        self.defaults: dict[str, Any] = {}
        for name, node, count in zip(self.names, declared.defaults[1:], declared.repeats[1:], strict=True):
            if node is not None:
                value = declared_default(node, function.unit)
                self.defaults[name] = [value] * count if count and isinstance(value, int | float) else value

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """A value per parameter. Raises RunError."""
        if len(args) > len(self.names):
            raise RunError(f"{self.owner} takes {len(self.names)} arguments ({self.text}), but got {len(args)}", code="E0402")
        if len(args) == len(self.names) and not kwargs:
            return list(args)
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

    def refuse_floats(self, values: Sequence[Any]) -> None:
        """Raises RunError for a float in place of an int, which a graph takes if it is a whole number."""
        for place in self.ints:
            if values[place].__class__ is float:
                accepted(values[place], INT, self.names[place])


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
    """Call a method node by node, on an instance that does not have all its attributes yet."""
    return Caller(library).run(library.method(instance.type, name), [instance, *arguments])

