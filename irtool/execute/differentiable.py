"""Running a graph that has an explicit gradient, on the tape: f forwards, what df needs saved, df in an executor of its own backwards."""
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
    """A gradient pair ready to run: what runs f, the executor of df, and the index lists. Shared by all runs of a plan."""

    __slots__ = ("pair", "run", "backward", "is_pure")

    def __init__(self, pair: Reverse, run: Code, backward: Executor) -> None:
        self.pair = pair
        self.run = run
        self.backward = backward
        self.is_pure = not any(does_more(node) for node in all_nodes(pair.df))

    def __call__(self, operands: Sequence[Any], versions: Versions | None = None) -> list[Any]:
        """f's real outputs for operands that may be Variables; where one of them needs a gradient, the outputs remember this step.

        versions: knows the memory that is written into, where anything is.
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
        """Let go of the functions made so far, and of their memory; what is needed again is made again."""
        self.run.forget()
        self.backward.forget()


def does_more(node: Node) -> bool:
    """Does it more than give results, or give others each time?"""
    facts = facts_of(node.kind)
    return facts.side_effects or facts.is_random or node_may_write(node) or node.kind[:1] == "^"


class Saved(Holder):
    """A value kept for df: a tensor with where it came from; or a list; or anything.

    Before its memory is written into, a copy is taken: gradients are those of what was read, as they are where the whole graph is
    differentiated. An output of the step itself is kept without the step, which would keep itself alive, and gets it back when it is
    unpacked. What the caller does to an array between forwards and backwards is seen only where a checksum is taken (`checks`).
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
        """The value, as a Variable where it is a tensor with a gradient. Raises RunError where the caller has changed it since."""
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
        """It has been written into since; torch's words."""
        which = "a tensor" if self.name.isdecimal() else f"%{self.name}"        # numbers are those of a group
        return RunError("one of the variables needed for gradient computation has been modified by an inplace operation: "
                        f"{which}, {self.data.dtype} of shape {list(self.data.shape)}, {what}")


def checksum(value: Any) -> int | None:
    """Of the elements of an array, bit for bit; None for anything else."""
    return crc32(on_host(value).tobytes()) if is_array(value) else None


class GraphBackward(Function):
    """One forward run of a Differentiable, waiting to be walked back."""

    __slots__ = ("owner", "places", "saved", "operand_places", "operands", "pieces")

    def __init__(self, owner: Differentiable, operands: Sequence[Any], outputs: list[Any], versions: Versions | None) -> None:
        pair = owner.pair
        self.operand_places: list[Places] = []      # of each gradient df gives: its place among the edges
        leaves: list[Any] = []
        for index in pair.output_vjps:
            self.operand_places.append(placed(operands[index], leaves))
        self.operands: list[Metadata | None] = [metadata_of(each) for each in leaves]
        self.places: list[Places] = []              # of each gradient df takes: its slot
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
        """What df takes: gradients by output, then what was saved."""
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
        """Not where df draws random numbers, writes, or calls what is not known."""
        return self.owner.is_pure

    def _gathered(self, place: Places, gradients: list[Any]) -> Any:
        """What df is given for one output: a gradient, a tuple of them, or the list of them, with zeros for those that are missing."""
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
        """Where gradients of an output of this step go."""
        if isinstance(place, list | tuple):
            return [self._edges(each) for each in place]
        return None if place is None else (self, place)


Places = int | list[Any] | tuple[Any, ...]
"""A position, or a list or tuple of them."""


def placed(value: Any, flat: list[Any]) -> Places:
    """Append what a value holds to `flat`, lists and tuples taken apart; says where each is."""
    if isinstance(value, list | tuple):
        places = [placed(each, flat) for each in value]
        return places if isinstance(value, list) else tuple(places)
    flat.append(value)
    return len(flat) - 1


def put(gradient: Any, place: Places, flat: list[Any]) -> None:
    """Put a gradient where its operand is. Raises RunError for a list of another length."""
    if isinstance(place, int):
        flat[place] = gradient
    elif isinstance(gradient, list | tuple):
        if len(gradient) != len(place):
            raise RunError(f"a list of {len(place)} tensors got {len(gradient)} gradients")
        for each, one in zip(gradient, place, strict=True):
            put(each, one, flat)


class Metadata(NamedTuple):
    """Shape and dtype of a tensor, which its gradient has too."""

    shape: tuple[int, ...]
    dtype: Any

    def zeros(self) -> Any:
        """A gradient of zeros."""
        return current_namespace().zeros(self.shape, self.dtype)

    def fitted(self, gradient: Any, create_graph: bool) -> Any:
        """A gradient with this shape and dtype, as a Variable: what was broadcast is summed."""
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
    """Shape and dtype of a tensor of floating-point or complex numbers; None for anything else."""
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
"""What gradients need on their way besides the gradients of operators."""


class Small:
    """One of these graphs, run with the operands as they are or on the tape."""

    def __init__(self, text: str, backend: str) -> None:
        from irtool.execute.compilation import Options
        from irtool.execute.device.device_executor import new_executor
        from irtool.text.parser import parse

        self.executor = new_executor(parse(text).graph(), Options(backend=backend))

    def __call__(self, *arguments: Any) -> Any:
        """One Variable, of operands and, last, whether it needs gradients in turn."""
        *operands, create_graph = arguments
        result = self.executor.run_on_tape(operands, create_graph)[0]
        return result if isinstance(result, Variable) else Variable(here(result))


def small(name: str) -> Small:
    """One of SMALL, for arrays of the namespace of this run."""
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
    """The version of each piece of memory, found by the array that owns it."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, Version]] = {}

    def of(self, array: Any) -> Version:
        """The version shared by all arrays in one piece of memory."""
        memory = memory_of(array)
        entry = self.known.get(id(memory))
        if entry is None:
            entry = self.known[id(memory)] = (memory, Version())      # holds it, so that its id stays its own
        return entry[1]


def on_tape(value: Any, function: Function | None, place: Any, versions: Versions | None) -> Any:
    """A value as the tape has it: arrays as Variables, in lists, tuples and instances too; with the step that made them, where one did.

    What is not floating point has a place among the gradients, so that places do not shift, and no gradient.
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
    """The value without the tape."""
    if isinstance(value, Variable):
        return value.data
    if isinstance(value, list):
        return [detached(each) for each in value]
    if isinstance(value, tuple):
        return tuple([detached(each) for each in value])
    return {key: detached(each) for key, each in value.items()} if isinstance(value, dict) else value


def needs_gradient(value: Any) -> bool:
    """Does it hold a Variable that needs a gradient?"""
    if isinstance(value, Variable):
        return value.function is not None
    if isinstance(value, dict):
        return any(map(needs_gradient, value.values()))
    return isinstance(value, list | tuple) and any(map(needs_gradient, value))
