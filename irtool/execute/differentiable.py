"""Running a gradient pair on the tape: the forward pass runs f and saves what df needs; the backward pass runs df in its own executor."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from irtool.autodiff.reverse import Reverse
from irtool.execute.tape import Function, Holder, Variable, Version, edge_of
from irtool.interpret import all_nodes
from irtool.ir.effects import facts_of, node_may_write
from irtool.ir.errors import RunError
from irtool.ops.arrays import code_of, current_namespace, here, is_array, memory_of, namespace_of, on_host
from irtool.ops.structure import Object

if TYPE_CHECKING:
    from irtool.execute.compilation import Code
    from irtool.execute.executor import Executor
    from irtool.ir.graph import Node


class Differentiable:
    """A gradient pair ready to run: the code of f, the executor of df, and the index lists. Shared by all runs of a plan."""

    __slots__ = ("pair", "run", "backward", "is_pure")

    def __init__(self, pair: Reverse, run: Code, backward: Executor) -> None:
        self.pair = pair
        self.run = run
        self.backward = backward
        self.is_pure = not any(does_more(node) for node in all_nodes(pair.df))

    def __call__(self, operands: Sequence[Any], versions: Versions | None = None) -> list[Any]:
        """f's real outputs for operands that may be Variables; if one of them needs a gradient, the outputs refer to a GraphBackward.

        versions: the versions of memory, if the graph writes; else None.
        """
        pair = self.pair
        outputs = self.run([detached(value) for value in operands])
        real = outputs[:pair.real_outputs]
        if not any(needs_gradient(operands[index]) for index in pair.output_vjps):
            return [on_tape(value, None, None, versions) for value in real]
        function = GraphBackward(self, operands, outputs, versions)
        places = dict(zip(pair.input_vjps, function.places, strict=True))
        return [on_tape(value, function, places.get(index), versions) for index, value in enumerate(real)]

    def forget(self) -> None:
        """Free the functions made so far, and their memory; they are made again when they are needed."""
        self.run.forget()
        self.backward.forget()


def does_more(node: Node) -> bool:
    """Has a node side effects, or random results?"""
    facts = facts_of(node.kind)
    return facts.side_effects or facts.is_random or node_may_write(node) or node.kind[:1] == "^"


class Saved(Holder):
    """A value saved for df: a tensor with its edge on the tape, a list of saved values, or any other value.

    It is copied before its memory is written into, so that df reads the value that f read, as it does if the whole graph is
    differentiated. An output of the step itself is saved without its reference to the step, which would make a reference cycle; `unpack`
    restores the reference. If the caller changes an array between the forward and the backward pass, only a checksum (`checks`) shows it.
    """

    __slots__ = ("data", "edge", "is_output", "name", "checksum")

    def __init__(self, value: Any, is_output: bool, name: str, checks: bool) -> None:
        self.is_output = is_output
        self.name = name
        self.edge: Any = None
        if isinstance(value, list | tuple):
            items = [Saved(each, is_output, name, checks) for each in value]        # a list itself may change until df runs
            self.data: Any = items if isinstance(value, list) else tuple(items)
        elif isinstance(value, Variable):
            self.data = value.data
            self.edge = None if is_output else edge_of(value)
            if value.version is not None:
                value.version.hold(self)
        else:
            self.data = value
        self.checksum = checksum(self.data) if checks else None

    def take_copy(self) -> None:
        """The memory is about to be written into."""
        self.data = self.data.copy()

    def unpack(self, create_graph: bool, outputs: Any = None) -> Any:
        """The value, as a Variable if it is a tensor with a gradient. Raises RunError if the caller has changed it since."""
        if isinstance(self.data, list | tuple):
            edges = outputs if isinstance(outputs, list) else [None] * len(self.data)
            items = [each.unpack(create_graph, one) for each, one in zip(self.data, edges, strict=True)]
            return items if isinstance(self.data, list) else tuple(items)
        if self.checksum is not None and self.checksum != checksum(self.data):
            raise self._modified("is not what it was when the graph ran")
        edge = outputs if self.is_output else self.edge
        if not create_graph or edge is None:
            return self.data
        return Variable(self.data, edge[0], edge[1])

    def _modified(self, what: str) -> RunError:
        """The error, in torch's words, that a saved tensor was written into."""
        which = "a tensor" if self.name.isdecimal() else f"%{self.name}"        # users do not know numbers of values in groups
        return RunError("one of the variables needed for gradient computation has been modified by an inplace operation: "
                        f"{which}, {self.data.dtype} of shape {list(self.data.shape)}, {what}")


def checksum(value: Any) -> int | None:
    """A checksum of the bytes of an array; None for any other value."""
    return crc32(on_host(value).tobytes()) if is_array(value) else None


class GraphBackward(Function):
    """The step of the tape for one run of a Differentiable: runs df in the backward pass."""

    __slots__ = ("owner", "places", "saved", "operand_places", "operands", "pieces")

    def __init__(self, owner: Differentiable, operands: Sequence[Any], outputs: list[Any], versions: Versions | None) -> None:
        pair = owner.pair
        self.operand_places: list[Places] = []      # for each gradient that df returns: its position among the edges
        leaves: list[Any] = []
        for index in pair.output_vjps:
            self.operand_places.append(placed(operands[index], leaves))
        self.operands: list[Metadata | None] = [metadata_of(each) for each in leaves]
        self.places: list[Places] = []              # for each cotangent that df takes: its slot
        results: list[Any] = []
        for index in pair.input_vjps:
            self.places.append(placed(outputs[index], results))
        self.pieces: list[Metadata | None] = [metadata_of(each) for each in results]
        super().__init__([edge_of(each) for each in leaves], len(self.pieces))
        self.owner = owner
        checks = owner.backward.options.check_saved
        self.saved = [Saved(operands[index], False, pair.f.inputs[index].name, checks) for index in pair.captured_inputs]
        self.saved += [Saved(on_tape(outputs[index], None, None, versions), True, pair.f.outputs[index].name, checks)
                       for index in pair.captured_outputs]

    def arguments(self, gradients: list[Any], create_graph: bool) -> list[Any]:
        """The operands of df: the gradients of the outputs, then the saved values."""
        pair = self.owner.pair
        slots = dict(zip(pair.input_vjps, self.places, strict=True))
        edges = [None] * len(pair.captured_inputs) + [self._edges(slots.get(index)) for index in pair.captured_outputs]
        return [*[self._gathered(place, gradients) for place in self.places],
                *[saved.unpack(create_graph, outputs) for saved, outputs in zip(self.saved, edges, strict=True)]]

    def apply(self, gradients: list[Any], create_graph: bool) -> list[Any]:
        """Run df."""
        handed = self.owner.backward.run_on_tape(self.arguments(gradients, create_graph), create_graph)
        by_edge: list[Any] = [None] * len(self.edges)
        for gradient, place in zip(handed, self.operand_places, strict=True):
            put(gradient, place, by_edge)
        return [each if metadata is None else metadata.fitted(each, create_graph)
                for each, metadata in zip(by_edge, self.operands, strict=True)]

    def may_run_ahead(self) -> bool:
        """False if df draws random numbers, writes, or calls an unknown operator."""
        return self.owner.is_pure

    def _gathered(self, place: Places, gradients: list[Any]) -> Any:
        """The operand of df for one output: a gradient, or a tuple or list of gradients, with zeros for missing ones."""
        if isinstance(place, int):
            return gradients[place]
        gathered = [self._gathered(each, gradients) for each in place]
        if isinstance(place, tuple):
            return tuple(gathered)
        if all(each is None for each in gathered):
            return None
        for at, slot in enumerate(place):
            metadata = self.pieces[slot] if gathered[at] is None and isinstance(slot, int) else None
            if metadata is not None:
                gathered[at] = metadata.zeros()
        return gathered

    def _edges(self, place: Places | None) -> Any:
        """The edges for the gradients of an output of this step."""
        if isinstance(place, list | tuple):
            return [self._edges(each) for each in place]
        return None if place is None else (self, place)


Places = int | list[Any] | tuple[Any, ...]
"""A position, or a list or tuple of them."""


def placed(value: Any, flat: list[Any]) -> Places:
    """Append the leaves of a value (of nested lists and tuples) to `flat`; returns their positions in it, nested alike."""
    if isinstance(value, list | tuple):
        places = [placed(each, flat) for each in value]
        return places if isinstance(value, list) else tuple(places)
    flat.append(value)
    return len(flat) - 1


def put(gradient: Any, place: Places, flat: list[Any]) -> None:
    """Store a gradient at the positions of its operand. Raises RunError for a list of another length."""
    if isinstance(place, int):
        flat[place] = gradient
    elif isinstance(gradient, list | tuple):
        if len(gradient) != len(place):
            raise RunError(f"a list of {len(place)} tensors got {len(gradient)} gradients")
        for each, one in zip(gradient, place, strict=True):
            put(each, one, flat)


class Metadata(NamedTuple):
    """Shape and dtype of a tensor, and so of its gradient."""

    shape: tuple[int, ...]
    dtype: Any

    def zeros(self) -> Any:
        """A gradient of zeros."""
        return current_namespace().zeros(self.shape, self.dtype)

    def fitted(self, gradient: Any, create_graph: bool) -> Any:
        """A gradient converted to this shape and dtype, as a Variable; it is summed over broadcast dimensions."""
        if gradient is None:
            return None
        if not isinstance(gradient, Variable):
            gradient = Variable(here(gradient))
        if gradient.data.shape != self.shape:
            gradient = small("sum_to")(gradient, list(self.shape), create_graph)
        if gradient.data.dtype != self.dtype:
            if gradient.data.dtype.kind == "c" and self.dtype.kind != "c":
                gradient = small("real")(gradient, create_graph)
            if gradient.data.dtype != self.dtype:
                gradient = small("cast")(gradient, code_of(self.dtype), create_graph)
        return gradient


def metadata_of(value: Any) -> Metadata | None:
    """Shape and dtype of a floating-point or complex tensor; None for any other value."""
    data = value.data if isinstance(value, Variable) else value
    if not is_array(data) or data.dtype.kind not in "fc":
        return None
    return Metadata(data.shape, data.dtype)


SMALL = {
    "add": """graph(%a : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::add(%a, %b, %1)
  return (%2)""",
    "sum_to": """graph(%a : Tensor, %shape : int[]):
  %2 : Tensor = aten::_grad_sum_to_size(%a, %shape)
  return (%2)""",
    "real": """graph(%a : Tensor):
  %1 : Tensor = aten::real(%a)
  return (%1)""",
    "cast": """graph(%a : Tensor, %dtype : int):
  %2 : bool = prim::Constant[value=0]()
  %3 : NoneType = prim::Constant()
  %4 : Tensor = aten::to(%a, %dtype, %2, %2, %3)
  return (%4)""",
    "part": """graph(%a : Tensor, %places : Tensor, %shape : int[]):
  %3 : int = prim::Constant[value=-1]()
  %4 : int = prim::Constant[value=0]()
  %5 : int[] = prim::ListConstruct(%3)
  %6 : Tensor = aten::reshape(%a, %5)
  %7 : Tensor = aten::index_select(%6, %4, %places)
  %8 : Tensor = aten::reshape(%7, %shape)
  return (%8)""",
    "without": """graph(%a : Tensor, %places : Tensor):
  %2 : int = prim::Constant[value=-1]()
  %3 : int = prim::Constant[value=0]()
  %4 : int[] = prim::ListConstruct(%2)
  %5 : Tensor = aten::reshape(%a, %4)
  %6 : Tensor = aten::index_fill(%5, %3, %places, %3)
  %7 : int[] = aten::size(%a)
  %8 : Tensor = aten::reshape(%6, %7)
  return (%8)""",
    "whole": """graph(%a : Tensor, %places : Tensor, %shape : int[], %size : int):
  %4 : int = prim::Constant[value=-1]()
  %5 : int = prim::Constant[value=0]()
  %6 : int = prim::Constant[value=1]()
  %7 : NoneType = prim::Constant()
  %8 : int[] = prim::ListConstruct(%size)
  %9 : Tensor = aten::new_zeros(%a, %8, %7, %7, %7, %7)
  %10 : int[] = prim::ListConstruct(%4)
  %11 : Tensor = aten::reshape(%a, %10)
  %12 : Tensor = aten::index_add(%9, %5, %places, %11, %6)
  %13 : Tensor = aten::reshape(%12, %shape)
  return (%13)""",
}
"""Graphs that the backward pass runs itself, besides the gradients of operators."""


class Small:
    """One of these graphs, run on arrays or on the tape."""

    def __init__(self, text: str, backend: str) -> None:
        from irtool.execute.compilation import Options
        from irtool.execute.device.device_executor import new_executor
        from irtool.text.parser import parse

        self.executor = new_executor(parse(text).graph(), Options(backend=backend))

    def __call__(self, *arguments: Any) -> Any:
        """The result, a Variable. The last argument: does the result need gradients in turn?"""
        *operands, create_graph = arguments
        result = self.executor.run_on_tape(operands, create_graph)[0]
        return result if isinstance(result, Variable) else Variable(here(result))


def small(name: str) -> Small:
    """One of these graphs by name, for arrays of the current namespace."""
    return _small(name, current_namespace().__name__)


@cache
def _small(name: str, backend: str) -> Small:
    return Small(SMALL[name], backend)


def summed(a: Any, b: Any, create_graph: bool) -> Any:
    """The sum of two gradients."""
    if create_graph:
        return small("add")(a, b, True)
    return Variable(namespace_of(a.data).add(a.data, b.data))


class Versions:
    """The version of each piece of memory, by the array that owns the memory."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, Version]] = {}

    def of(self, array: Any) -> Version:
        """The version of an array's memory."""
        memory = memory_of(array)
        entry = self.known.get(id(memory))
        if entry is None:
            entry = self.known[id(memory)] = (memory, Version())      # the entry keeps the array alive, so that no other gets its id
        return entry[1]

    def join(self, array: Any, other: Any) -> Version:
        """The version of the memory of `other`, which from now on is that of the array's memory too."""
        version, memory = self.of(other), memory_of(array)
        self.known[id(memory)] = memory, version
        return version


def on_tape(value: Any, function: Function | None, place: Any, versions: Versions | None) -> Any:
    """A value with its arrays, in lists, tuples and instances too, wrapped in Variables that refer to `function` (None: to no step).

    Values that are not floating-point have no gradient, but have a position, so that positions of gradients do not shift.
    """
    if is_array(value):
        slot = place if isinstance(place, int) and value.dtype.kind in "fc" else None
        version = None if versions is None else versions.of(value)
        return Variable(value, None, 0, version) if function is None or slot is None else Variable(value, function, slot, version)
    if isinstance(value, list | tuple):
        places = place if isinstance(place, list | tuple) else [None] * len(value)
        items = [on_tape(each, function, one, versions) for each, one in zip(value, places, strict=True)]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        slots = place if isinstance(place, dict) else {}
        return {key: on_tape(each, function, slots.get(key), versions) for key, each in value.items()}
    if isinstance(value, Object):
        instance = Object(value.type)
        instance.attributes.update({name: on_tape(each, None, None, versions) for name, each in value.attributes.items()})
        return instance
    return value


def detached(value: Any) -> Any:
    """The value with its Variables replaced by their arrays."""
    if isinstance(value, Variable):
        return value.data
    if isinstance(value, list):
        return [detached(each) for each in value]
    if isinstance(value, tuple):
        return tuple([detached(each) for each in value])
    return {key: detached(each) for key, each in value.items()} if isinstance(value, dict) else value


def needs_gradient(value: Any) -> bool:
    """Is a value, or a part of it, a Variable that needs a gradient?"""
    if isinstance(value, Variable):
        return value.function is not None
    if isinstance(value, dict):
        return any(map(needs_gradient, value.values()))
    return isinstance(value, list | tuple) and any(map(needs_gradient, value))
