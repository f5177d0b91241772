"""Class instances among the inputs: `%self` of graphs that were not frozen, whose attributes the graph reads.

Each attribute that is read becomes an input of the graph, so a tensor among them has its dtype and rank in the spec, and instances with
attributes of the same dtypes and ranks share a plan. Attributes that the graph writes stay in the instance and are not in the spec.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.accepted_values import attribute_of
from irtool.execute.compilation import ExecutionPlan, Options
from irtool.execute.executor import Counters, Executor
from irtool.execute.recorded import Recorded
from irtool.interpret import all_nodes
from irtool.ir.arguments import is_whole, misfit, positions
from irtool.ir.edits import clone_graph
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import Graph, Value, counted
from irtool.ir.types import ClassType
from irtool.ops.structure import attribute_name

Path = tuple[str, ...]


class Unfolded:
    """A graph whose inputs are the attributes that the original graph reads."""

    def __init__(self, graph: Graph) -> None:
        self.original = graph
        self.graph = clone_graph(graph)
        self.slots: list[tuple[int, Path]] = []
        """Per input: which input of the original, and the names of the attributes that lead to it."""
        self.written = {(node.inputs[0].type.text, attribute_name(node)) for node in all_nodes(graph) if node.kind == "prim::SetAttr"}
        self.inputs: dict[tuple[int, Path], Value] = {}
        """The input for an attribute, which all nodes that read the attribute share."""
        block = self.graph.block
        inputs = list(self.graph.inputs)
        for index, value in enumerate(inputs):
            self.slots.append((index, ()))
            if isinstance(value.type, ClassType):
                self.unfold(value, index, ())
        for index in reversed(range(len(inputs))):
            if isinstance(inputs[index].type, ClassType) and not inputs[index].has_uses:
                block.remove_input(index)
                self.slots.remove((index, ()))
        self.slots.sort(key=lambda slot: bool(slot[1]))     # stable: the original inputs, then attributes

    def unfold(self, value: Value, index: int, path: Path) -> None:
        """Replace reads of attributes of an instance, and of instances in it, by inputs."""
        for user in list(dict.fromkeys(use.user for use in value.uses)):
            name = attribute_name(user)
            if user.kind != "prim::GetAttr" or (value.type.text, name) in self.written:
                continue
            if isinstance(user.output.type, ClassType):
                self.unfold(user.output, index, (*path, name))
                if not user.output.has_uses:
                    user.destroy()
                continue
            slot = (index, (*path, name))
            if slot not in self.inputs:
                self.inputs[slot] = self.graph.block.add_input(self.graph.fresh_id(), user.output.type)
                self.slots.append(slot)
            user.output.replace_all_uses_with(self.inputs[slot])
            user.destroy()

    def values(self, inputs: Sequence[Any]) -> Flat:
        """Inputs of this graph, from those of the original. Raises RunError for a missing attribute and a wrong number of inputs."""
        if isinstance(inputs, Flat):
            return inputs
        declared = self.original.inputs
        if len(inputs) != len(declared):
            raise RunError(f"expected {len(declared)} inputs, but got {'only ' if len(inputs) < len(declared) else ''}{len(inputs)}",
                           code="E0402")
        flat = Flat()
        for index, path in self.slots:
            value, name = inputs[index], declared[index].name
            for each in path:
                value, name = attribute_of(value, each, name), f"{name}.{each}"
            flat.append(value)
        return flat

    def positions(self, wrt: Sequence[int]) -> list[int]:
        """The inputs of this graph for inputs of the original: for an instance, those of its attributes."""
        wrt = positions("vjp", wrt, self.original)
        for index in wrt:
            if isinstance(self.original.inputs[index].type, ClassType) and (index, ()) in self.slots:
                names = ", ".join(sorted(name for _, name in self.written))
                raise UnsupportedError(f"gradients of %{self.original.inputs[index].name} are not supported: the graph "
                                       f"{f'writes {names}, or ' if names else ''}passes on the whole instance", code="E0501")
        return [place for index in wrt for place, (each, _) in enumerate(self.slots) if each == index]

    def gathered(self, wrt: Sequence[int], gradients: Sequence[Any]) -> list[Any]:
        """Gradients by position in `wrt`; for an instance, a dict by attribute name."""
        rest = iter(gradients)
        gathered: list[Any] = []
        for index in wrt:
            mine = [(path, next(rest)) for each, path in self.slots if each == index]
            is_whole = not isinstance(self.original.inputs[index].type, ClassType)
            gathered.append(mine[0][1] if is_whole else {".".join(path): gradient for path, gradient in mine})
        return gathered


class Flat(list[Any]):
    """Inputs of an unfolded graph."""


class RecordedObjects(Recorded):
    """A recorded run of an unfolded graph. Its gradients are by the inputs of the original graph, of an instance a dict."""

    __slots__ = ("unfolded", "chosen")

    def __init__(self, flat: Recorded, unfolded: Unfolded, chosen: Sequence[int]) -> None:
        for name in Recorded.__slots__:
            setattr(self, name, getattr(flat, name))
        self.unfolded = unfolded
        self.chosen = tuple(chosen)     # inputs of the original graph

    def __repr__(self) -> str:
        return f"<Recorded run of {counted(len(self.unfolded.original.inputs), 'input')} for gradients of {list(self.chosen)}>"

    def _gathered(self, gradients: list[Any]) -> list[Any]:
        return self.unfolded.gathered(self.chosen, gradients)

    def _again(self, results: list[Any], outputs: list[Any]) -> Recorded:
        return RecordedObjects(super()._again(results, outputs), self.unfolded, self.chosen)

    def _leaf(self, position: int) -> Any:
        leaves = self.unfolded.gathered(self.chosen, self.leaves)
        if not is_whole(position) or not -len(leaves) <= position < len(leaves):
            raise misfit("hook_input", "position", position, f"a position in wrt, which is {list(self.chosen)}")
        return leaves[position]


class ObjectExecutor(Executor):
    """Runs a graph that takes class instances: Python objects, or dicts of attributes."""

    __slots__ = ("unfolded",)

    def __init__(self, graph: Graph, options: Options | None = None, counters: Counters | None = None) -> None:
        self.unfolded = Unfolded(graph)
        super().__init__(self.unfolded.graph, options, counters)

    def __call__(self, *inputs: Any, seed: int = 0) -> list[Any]:
        """As `Executor.__call__`."""
        return super().__call__(*self.unfolded.values(inputs), seed=seed)

    def run(self, inputs: Sequence[Any], seed: int | None = 0) -> list[Any]:
        """As `Executor.run`."""
        return super().run(self.unfolded.values(inputs), seed)

    def vjp(self, inputs: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int], *, seed: int = 0) -> list[Any]:
        """As `Executor.vjp`. The gradient of an instance is a dict by attribute name; names of nested attributes have dots."""
        gradients = super().vjp(self.unfolded.values(inputs), cotangents, self.unfolded.positions(wrt), seed=seed)
        return self.unfolded.gathered(wrt, gradients)

    def record(self, inputs: Sequence[Any], wrt: Sequence[int], *, seed: int = 0) -> Recorded:
        """As `Executor.record`; if `inputs` are those of the unfolded graph (Flat), so are the positions in `wrt`. The gradient of an
        instance is a dict, as by `vjp`."""
        if isinstance(inputs, Flat):
            return super().record(inputs, wrt, seed=seed)
        chosen = positions("record", wrt, self.unfolded.original)
        recorded = super().record(self.unfolded.values(inputs), self.unfolded.positions(chosen), seed=seed)
        return RecordedObjects(recorded, self.unfolded, chosen)

    def plan_for(self, *inputs: Any, wrt: Sequence[int] = ()) -> ExecutionPlan:
        """As `Executor.plan_for`."""
        return super().plan_for(*self.unfolded.values(inputs), wrt=self.unfolded.positions(wrt))

    def wanted(self, where: str, wrt: Any, values: Sequence[Any]) -> tuple[int, ...]:
        """The positions, unchecked: an instance may have attributes without a gradient."""
        return tuple(wrt)

    def nested(self, graph: Graph, options: Options | None = None) -> Executor:
        """As `Executor.nested`: graphs of gradients, and the unfolded one, take no instances."""
        return Executor(graph, options or self.options, self.counters)
