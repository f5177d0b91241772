"""The tape of a run of an executor, and how a plan's graph runs on it, node by node.

Tensors of a run are handles (`irtool.ops.tensor`), in boxes of the tape where a gradient may reach. A node that has f and df is one entry
of the tape (`irtool.execute.differentiable`). Operators are recorded as those of a function under `irtool.grad` are, so that writes give
tensors new values (`irtool.dispatch.layer_writes`). Nodes that only construct or unpack values run on the handles.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

from irtool.accepted_values import copied
from irtool.autodiff.versions import takes_a_view
from irtool.dispatch.autograd import Autograd, Entry, Refusal
from irtool.dispatch.backend import BACKEND, Backend
from irtool.dispatch.backward_pass import BackwardPass
from irtool.dispatch.layer_writes import chain_of, root_of, write
from irtool.dispatch.recipes import Way, has_arrays, recipe_of, way_of
from irtool.dispatch.stack import elements_of, is_floating
from irtool.execute.tape_ahead import ParallelPass
from irtool.ir.effects import node_may_write, operands_written
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import Node
from irtool.ir.schema import qualified, schema_of
from irtool.ir.structure_kinds import MOVERS, NO_ELEMENTS_ASKED
from irtool.ir.types import Type, TypeVar
from irtool.ops.array_library import np
from irtool.ops.arrays import current_namespace, is_array, on_host, share_memory
from irtool.ops.checks import OVERLAP, overlaps, repeats
from irtool.ops.formula import refused_arguments
from irtool.ops.nested_tensors import map_tensors, tensors_in
from irtool.ops.node_calls import call_node
from irtool.ops.structure import Object, handler_of
from irtool.ops.tensor import Tensor, next_birth

if TYPE_CHECKING:
    from irtool.execute.differentiable import Differentiable


class Recording(Autograd):
    """The tape of a run of an executor. threads: how many differentiate entries that do not depend on each other. checks: refuse to
    differentiate an entry if an array that it saved is not what it was, which only a checksum shows."""

    def __init__(self, threads: int = 1, checks: bool = False) -> None:
        super().__init__(BACKEND if current_namespace() is np else DEVICE)
        self.threads = threads if current_namespace() is np else 1      # a device orders its operations itself
        self.checks = checks
        self.has_hooks = False
        self.shares_inputs = False      # does the graph write into inputs, some of which are in one memory?
        self.has_written = False        # has a node written into a tensor?
        self.sums: dict[Entry, list[tuple[str, Any, int]]] = {}

    def leaf(self, value: Any) -> Any:
        """An input whose gradient is wanted: its floating-point and complex tensors become inputs of the tape."""
        return map_tensors(lambda each: self.variable(each) if is_floating(each) else each, as_handles(value))

    def reaches(self, value: Any) -> bool:
        """Is a tensor on the tape in a value?"""
        return any(map(self.owns, tensors_in(value)))

    def backward_pass(self, apply: Callable[..., Any]) -> BackwardPass:
        """A walk back. Hooks are called in the order of one thread."""
        if self.checks:
            return CheckedPass(self, apply)
        is_parallel = self.threads > 1 and not self.has_hooks and apply != self.apply
        return ParallelPass(self, apply, self.threads) if is_parallel else BackwardPass(self, apply)

    def reached_from(self, outputs: Sequence[Any]) -> set[int]:
        """The ids of the variables on which outputs depend, in this run."""
        reached = {id(each.known) for each in tensors_in(outputs) if self.owns(each)}
        for entry in reversed(self.tape):
            if any(id(each.known) in reached for each in tensors_in(entry.results) if self.owns(each)):
                reached.update([id(each.known) for each in tensors_in(entry.args) if self.owns(each)])
        return reached

    def watch(self, entry: Entry, saved: Iterator[tuple[str, Any]]) -> None:
        """Take a checksum of the arrays that an entry has saved, by name."""
        self.sums[entry] = [(name, array, checksum(array)) for name, value in saved for array in map(elements_of, tensors_in([value]))
                            if is_array(array)]

    def verify(self, entry: Entry) -> None:
        """Raises RunError, in torch's words, if an array that an entry has saved is not what it was."""
        for name, array, before in self.sums.get(entry, ()):
            if checksum(array) != before:
                which = "a tensor" if name.isdecimal() else f"%{name}"        # users do not know numbers of values in groups
                raise RunError("one of the variables needed for gradient computation has been modified by an inplace operation: "
                               f"{which}, {array.dtype} of shape {list(array.shape)}, is not what it was when the graph ran")


class DeviceBackend(Backend):
    """Runs operations on arrays of a device, without NumPy's short cuts."""

    def __init__(self) -> None:
        super().__init__("device")
        self.is_quick = False


DEVICE = DeviceBackend()


class CheckedPass(BackwardPass):
    """A walk back that verifies what each entry has saved."""

    def propagate(self, entry: Entry, cotangents: list[Any]) -> Sequence[Any]:
        """As any walk."""
        assert isinstance(self.tape, Recording)
        self.tape.verify(entry)
        return super().propagate(entry, cotangents)


def checksum(array: Any) -> int:
    """A checksum of the bytes of an array."""
    return crc32(on_host(array).tobytes())


class NodeCalls:
    """Runs the nodes of a plan's graph on a tape. ways: what operators run by, a cache for all runs of the plan."""

    def __init__(self, tape: Recording, known: dict[Node, Differentiable], ways: dict[Node, Way],
                 note: Callable[[Node, Any], None] | None = None) -> None:
        if tape.shares_inputs:
            raise UnsupportedError("the gradient of a graph that writes into inputs is not supported here if inputs share memory",
                                   code="E0501")
        self.tape = tape
        self.known = known
        self.ways = ways
        self.note = note        # called with the operands of `prim::profile` nodes

    def __call__(self, node: Node, values: list[Any]) -> Sequence[Any]:
        """The results of a node."""
        if self.note is not None and node.kind == "prim::profile":
            self.note(node, values[0])
        known = self.known.get(node)
        if known is not None:
            return known.on_tape(self.tape, values)
        if moves_values(node):
            results = call_node(node, values)       # lists stay the lists that they are; instances of constants have attributes of arrays
            is_array_here = has_arrays if node.kind == "prim::GetAttr" else is_array        # `torch.tensor(numbers)` makes an array
            return [as_handles(each) if is_array_here(each) else each for each in results]
        if node.kind[:1] == "^":
            return self.python_operator(node, values)
        if node.kind in ("prim::CallFunction", "prim::CallMethod"):
            return call_node(node, values)      # which says that its body is not in the text
        written = operands_written(node) if node_may_write(node) else []
        self.tape.has_written = self.tape.has_written or bool(written)
        if 0 in written and not takes_a_view(node) and isinstance(values[0], Tensor) and shows_twice(elements_of(values[0])):
            return self.overlapping(node, values)
        places = [place for place in written if place]
        results = self.write(node, values, places) if any(isinstance(values[place], Tensor) for place in places) else self.run(node, values)
        for each in tensors_in(results):
            each.born = each.born or next_birth()       # made in this run, which may write into it
        return results

    def run(self, node: Node, values: list[Any]) -> Sequence[Any]:
        """Run an operator by the tape."""
        way = self.ways.get(node)
        if way is None:
            way = self.ways[node] = way_of(node)
        count = len(self.tape.tape)
        results = way(self.tape.apply, values)
        if self.tape.checks:
            for entry in self.tape.tape[count:]:
                self.tape.watch(entry, saved_by(entry, node, values))
        return results

    def python_operator(self, node: Node, values: list[Any]) -> Sequence[Any]:
        """Run a Python operator, whose gradient is unknown: asking for it later raises an error."""
        results = as_handles(list(call_node(node, [as_arrays(value) for value in values])))
        if not self.tape.reaches(values):
            return results      # type: ignore[no-any-return]
        error = UnsupportedError(f"the gradient of {node.kind} is not known: it is a Python operator", code="E0501")
        return self.tape.note(Refusal(self.tape, node.kind, list(values), [], error), tuple(results))     # type: ignore[no-any-return]

    def overlapping(self, node: Node, values: list[Any]) -> Sequence[Any]:
        """Write into a tensor whose elements share memory (an expanded one), as in torch: asking for the gradient is an error."""
        target, root = values[0], root_of(values[0])
        memory: Any = Tensor(copied([elements_of(root)])[0])
        part = memory
        for view in chain_of(target):
            part = view.of(part, BACKEND)
        if not share_memory(part.array, memory.array):
            raise UnsupportedError(f"{node.kind} into a tensor whose elements share memory is not supported here", code="E0501")
        results = call_node(node, [part.array, *[as_arrays(value) for value in values[1:]]])
        if self.tape.reaches([root, *values]):
            entry = Refusal(self.tape, node.kind, [root, *values[1:]], [], RunError(OVERLAP))
            memory = self.tape.note(entry, memory)
        write(self.tape, node.kind, root, memory)
        return [target] * len(results)

    def write(self, node: Node, values: list[Any], places: Sequence[int]) -> Sequence[Any]:
        """Run a node that writes into operands besides the first: running statistics, `out=`. It writes into copies, which become the
        values of the operands. Raises RunError, in torch's words, for the gradient of an `out=` form."""
        copies = list(values)
        for place in places:
            copies[place] = Tensor(elements_of(values[place]).copy())
        schema = schema_of(node)
        refusals = refused_arguments(schema.name) if schema is not None else {}
        refused = [refusals[place] for place in places if place in refusals and self.tape.reaches([values[place]])]
        if refused:
            outputs = as_handles(list(call_node(node, [as_arrays(each) for each in copies])))
            entry = Refusal(self.tape, node.kind, list(values), [], UnsupportedError(refused[0], code="E0501"))
            results: Sequence[Any] = self.tape.note(entry, tuple(outputs))
        elif not writes_out(node):
            results = self.run(node, copies)
        else:
            if self.tape.reaches(values):
                raise RunError(f"{qualified(node.kind).partition('::')[2]}(): functions with out=... arguments don't support automatic "
                               "differentiation, but one of the arguments requires grad.")
            results = call_node(node, [as_arrays(each) for each in copies])
            written = {id(copies[place].array): values[place] for place in places}
            results = [written.get(id(each)) or as_handles(each) for each in results]
        with self.tape.silently():      # gradients do not see these writes
            for place in places:
                write(self.tape, node.kind, values[place], copies[place])
        return results


def saved_by(entry: Entry, node: Node, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """What the gradient of an entry of an operator reads of operands and results, by the names of the node that ran it."""
    recipe = None if isinstance(entry, Refusal) else recipe_of(entry.name)
    if recipe is None or recipe.is_whole:
        return
    needed = tuple([entry.tape.reaches(each) for each in entry.args])      # type: ignore[attr-defined]
    saved, nodes = [*entry.args, *entry.results], [*node.inputs, *node.outputs]
    names = {id(elements_of(value)): name.name for value, name in zip([*values, *entry.results], nodes, strict=False)}
    half = recipe.half(needed)
    for place, value in zip(half.read, half.graph.inputs, strict=True):
        if place < len(saved) and any(user.kind not in NO_ELEMENTS_ASKED for user, _ in value.uses):
            yield names.get(id(elements_of(saved[place])), "0"), saved[place]


# -- values
def as_handles(value: Any) -> Any:
    """A value with handles for arrays, in lists, tuples, dicts and instances too."""
    if is_array(value) or isinstance(value, np.generic):
        handle = Tensor(value)
        handle.born = next_birth()
        return handle
    if isinstance(value, list):
        return [as_handles(each) for each in value]
    if isinstance(value, tuple):
        return tuple([as_handles(each) for each in value])
    if isinstance(value, dict):
        return {key: as_handles(each) for key, each in value.items()}
    if isinstance(value, Object):
        instance = Object(value.type)
        instance.attributes.update({name: as_handles(each) for name, each in value.attributes.items()})
        return instance
    return value


def as_arrays(value: Any) -> Any:
    """A value with arrays for handles and boxes, in lists, tuples and dicts too."""
    return value.array if value.__class__ is Tensor else map_tensors(elements_of, value)


def shows_twice(array: Any) -> bool:
    """Do elements of an array share a place in memory?"""
    return overlaps(array) or repeats(array)


# -- facts
def moves_values(node: Node) -> bool:
    """Does a node only construct, unpack or forward values?"""
    if handler_of(node.kind) is not None:
        return node.kind in MOVERS
    schema = schema_of(node)
    return schema is not None and bool(schema.arguments) and any(isinstance(leaf, TypeVar) for leaf in leaves(schema.arguments[0].type))


def leaves(type: Type) -> list[Type]:
    """The leaf types of a type, which are no lists, tuples or dicts."""
    return [leaf for element in type.elements for leaf in leaves(element)] if type.elements else [type]


def writes_out(node: Node) -> bool:
    """Does a node write into `out=` arguments? Else into running statistics."""
    schema = schema_of(node)
    return schema is None or any(argument.keyword_only and argument.alias is not None for argument in schema.arguments)
