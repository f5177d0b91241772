"""The profiling mode: one plan per executor, for exactly the shapes that were seen, behind a guard.

The first runs execute the graph with a `prim::profile` node on each tensor that a node reads, which records the tensor's type. Then the
graph is optimised for the types of its inputs, including sizes and strides: sizes become constants, branches on them are folded, loops
over them are unrolled, gradients need no sums to sizes. The plan is, as text,

    %3 : Float(2, 3, ...), %4 : bool = prim::TypeCheck[types=[Float(2, 3, ...)]](%x)
    %5 : Tensor = prim::If(%4)
      block0():     # the optimised graph
      block1():
        %6 : Tensor = prim::FallbackGraph_0(%x)

with `prim::RequiresGradCheck` if a gradient is needed; the names are torch's. Here the guard is evaluated before the plan runs. Inputs that
fail it go to a second executor, which profiles in turn, up to `bailout_depth` times; the last executor makes plans per spec as usual.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from irtool.dispatch.stack import Boxed, is_floating
from irtool.execute.argument_spec import PRESENCE, ArgumentSpec, record_of, record_of_type, type_of
from irtool.execute.compilation import Code, ExecutionPlan, Options, make_plan, with_own_gradients, writes
from irtool.execute.phases import REQUIRED, Phases
from irtool.execute.recording import as_arrays
from irtool.interpret import Observer
from irtool.interpret import run as interpret
from irtool.ir.attribute import Attribute
from irtool.ir.builder import Builder
from irtool.ir.edits import clone_block, clone_graph
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import BOOL, TENSOR, OptionalType, TensorType, TupleType, Type, spell, tensor_type
from irtool.ops.structure import has_type

if TYPE_CHECKING:
    from irtool.execute.executor import Executor

COUNTERS = ("profiled_runs", "guard_failures")
_GRADIENT = 2


class Seen:
    """The profile of one tensor, or one optional input: a type that all values seen have, or whether it was present."""

    __slots__ = ("what", "type", "flag", "present")

    def __init__(self, what: int, value: Any, flag: int) -> None:
        self.what = what
        self.present = value is not None
        self.flag = record_of(value, flag) & _GRADIENT if what != PRESENCE else 0
        self.type: Type | None = type_of(value, flag) if what != PRESENCE else None

    def merge(self, other: Seen) -> None:
        """Add another profile. If some values needed gradients and others did not, the plan is for values that do."""
        self.present |= other.present
        self.flag |= other.flag
        self.type = merged(self.type, other.type)

    def fits(self, value: Any, flag: int) -> bool:
        """Does a value fit the profile?"""
        if self.what == PRESENCE:
            return (value is not None) == self.present
        record = record_of(value, flag)
        if record & _GRADIENT != self.flag:
            return False
        return value is not None if self.type is None else has_type(value, self.type)


def merged(a: Type | None, b: Type | None) -> Type | None:
    """The most precise type of the tensors of both types; a defined type wins over undefined. None: any tensor."""
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return None
    if a.undefined or b.undefined:
        return a if b.undefined else b
    if a.dtype != b.dtype or a.device != b.device or a.sizes is None or b.sizes is None or len(a.sizes) != len(b.sizes):
        return None
    sizes = tuple([n if n == m else None for n, m in zip(a.sizes, b.sizes, strict=True)])
    return tensor_type(a.dtype, sizes, a.strides if None not in sizes and a.strides == b.strides else None,
                       bool(a.requires_grad or b.requires_grad), a.device)


class Profile:
    """The profile of an executor, and the plan made from it. The executor's lock guards it."""

    def __init__(self, owner: Executor) -> None:
        self.owner = owner
        self.left = owner.options.profiled_runs
        self.seen: list[Seen] = []
        self.profiled: ProfilePlan | None = None
        self.plan: ExecutionPlan | None = None
        self.fallback: Executor | None = None
        self.lock = Lock()

    def fits(self, values: Sequence[Any], flags: Sequence[bool]) -> bool:
        """Is there a guard, and do these inputs pass it?"""
        if self.left:
            return False
        maker = self.owner.spec_maker
        if self.plan is not None and self.plan.spec is not None and self.plan.spec.wanted != maker.wanted(flags):
            return False        # as it was made, its inputs without records needed other gradients
        noted = maker.noted(values, flags)
        return all(seen.fits(value, flag) for seen, (_, value, flag) in zip(self.seen, noted, strict=True))

    def find(self, values: Sequence[Any], flags: Sequence[bool]) -> ExecutionPlan | None:
        """The plan for these inputs, made if necessary; the first inputs are profiled. None: the inputs fail the guard."""
        count = self.owner.counters.count
        if self.left:
            self.left -= 1
            count("profiled_runs")
            self.note(values, flags)
            if not (any(flags) and writes(self.owner.graph)):
                if self.profiled is None:
                    self.profiled = profile_plan(self.owner)
                return self.profiled
            self.left = 0       # df may need overwritten values, which a run node by node loses: these inputs are the whole profile
        if not self.fits(values, flags):
            count("guard_failures")
            return None
        count("execution_plan_cache_miss" if self.plan is None else "execution_plan_cache_hit")
        if self.plan is None:
            types = [seen.type if isinstance(seen.type, TensorType) else None for seen in self.seen if seen.what != PRESENCE]
            flagged = [seen.flag for seen in self.seen if seen.what != PRESENCE]
            spec = ArgumentSpec(tuple([record_of_type(type, flag) for type, flag in zip(types, flagged, strict=True)]),
                                tuple([seen.present for seen in self.seen if seen.what == PRESENCE]),
                                self.owner.spec_maker.wanted(flags))
            self.plan = self.owner.plans[spec] = make_plan(self.owner, spec, values, flags, types)
            self.plan.guarded = guarded(self.owner.graph, self.plan.graph, self.seen)
        return self.plan

    def note(self, values: Sequence[Any], flags: Sequence[bool]) -> None:
        """Record the inputs of a run."""
        records = [Seen(*each) for each in self.owner.spec_maker.noted(values, flags)]
        if not self.seen:
            self.seen = records
            return
        for seen, new in zip(self.seen, records, strict=True):
            seen.merge(new)

    def next(self) -> Executor:
        """The executor for inputs that fail the guard; the same for all threads."""
        with self.lock:
            if self.fallback is None:
                depth = self.owner.options.bailout_depth - 1
                self.fallback = self.owner.nested(self.owner.graph, self.owner.options.changed(profiling=depth > 0, bailout_depth=depth))
            return self.fallback


# -- the first runs
class ProfilePlan(ExecutionPlan):
    """A graph whose `prim::profile` nodes record the types of tensors."""

    def __init__(self, owner: Executor, graph: Graph) -> None:
        super().__init__(owner, graph, None, with_own_gradients(owner, graph, None))
        self._code = ProfileCode(graph, self)

    def note(self, node: Node, value: Any) -> None:
        """Record the tensor that a node saw."""
        data = as_arrays(value)
        profiled = type_of(data, _GRADIENT * (isinstance(value, Boxed) and is_floating(value)))
        with self._lock:
            known: Any = node.attributes["profiled_type"].value
            if known is not TENSOR:
                profiled = merged(known, profiled)
            node.set_attribute("profiled_type", Attribute.of(profiled or TENSOR, self.graph.dialect))
            if data is None:
                node.set_attribute("seen_none", Attribute.of(1, self.graph.dialect))


class ProfileCode(Code):
    """Runs the graph of a ProfilePlan without a tape."""

    def __init__(self, graph: Graph, plan: ProfilePlan) -> None:
        super().__init__(graph, Options(optimize=False, backend=plan.options.backend))
        self.notes = plan.note

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """The outputs."""
        return interpret(self.graph, values, seed=None, observer=Watcher(self.notes), backend=self.backend, accepted=True)


class Watcher(Observer):
    """An observer that calls `note` with the operands of `prim::profile` nodes."""

    def __init__(self, note: Any) -> None:
        self.note = note

    def before(self, node: Node, operands: Sequence[Any]) -> None:
        """Looks at the operand."""
        if node.kind == "prim::profile":
            self.note(node, operands[0])


def profile_plan(owner: Executor) -> ProfilePlan:
    """The graph after the required passes, with a `prim::profile` in front of each tensor that is read."""
    phases = Phases(owner.options.on_pass)
    graph = phases.copy(owner.graph)
    phases.run(graph, REQUIRED)
    for node in list(graph.walk()):
        insert_profiles(graph, node)
        for block in node.blocks:
            insert_profiles(graph, block.return_node)
    insert_profiles(graph, graph.block.return_node)
    phases.report("profile", graph)
    return ProfilePlan(owner.nested(owner.graph, owner.options.changed(profiling=False)), graph)      # this executor runs single nodes


def insert_profiles(graph: Graph, node: Node) -> None:
    """Insert a `prim::profile` for each tensor that a node reads."""
    build = Builder(graph).before(node)
    for slot, value in enumerate(node.inputs):
        if isinstance(value.type, TensorType):
            attributes = {"profiled_type": Attribute.of(TENSOR, graph.dialect), "seen_none": Attribute.of(0, graph.dialect)}
            node.replace_input(slot, build.node("prim::profile", (value,), attributes, (value.type,)).output)


# -- the plan as text
def guarded(graph: Graph, optimized: Graph, seen: Sequence[Seen]) -> Graph:
    """The plan as text: the optimised graph behind its guard, and the original graph for inputs that fail it."""
    combined = Graph(graph.dialect, graph.name)
    combined.source = graph.source
    build = Builder(combined)
    inputs = [combined.block.add_input(value.name, value.type) for value in graph.inputs]
    noted = list(zip(seen, (each for value in inputs for each in parts(build, value)), strict=True))
    checked = [(value, one.type) for one, value in noted if isinstance(one.type, TensorType) and not one.type.undefined]
    conditions = [build.node("aten::__isnot__" if one.present else "aten::__is__", (value, build.constant(None)),
                             output_types=(BOOL,)).output
                  for one, value in noted if one.what == PRESENCE or isinstance(one.type, TensorType) and one.type.undefined]
    instead: dict[Value, Value] = {}
    for kind, types in (("prim::TypeCheck", [type for _, type in checked]), ("prim::RequiresGradCheck", gradients_of(checked))):
        if types:
            node = build.node(kind, [instead.get(value, value) for value, _ in checked],
                              {"types": Attribute.of(types, graph.dialect)}, [*[spell(type, graph.dialect) for _, type in checked], BOOL])
            instead.update(zip([value for value, _ in checked], node.outputs, strict=False))
            conditions.append(node.outputs[-1])
    condition = conditions[0] if conditions else build.constant(True)
    for each in conditions[1:]:
        condition = build.call("aten::__and__", condition, each, type=BOOL)
    choice = build.node("prim::If", (condition,), output_types=[value.type for value in graph.outputs])
    passes, fails = choice.add_block(), choice.add_block()
    mapping = {mine: instead.get(value, value) for mine, value in zip(optimized.inputs, inputs, strict=True)}
    clone_block(optimized.block, passes, mapping, combined)
    fallback = build.at_end(fails).node("prim::FallbackGraph", inputs, {"Subgraph": Attribute("<Graph>", clone_graph(graph))},
                                        [value.type for value in graph.outputs])
    fails.set_outputs(fallback.outputs)
    combined.block.set_outputs(choice.outputs)
    return combined


def gradients_of(checked: Sequence[tuple[Value, TensorType]]) -> list[Type]:
    """The types for `prim::RequiresGradCheck`, which say which values need gradients; empty if none does."""
    flags = [bool(type.requires_grad) for _, type in checked]
    return [tensor_type(requires_grad=flag) for flag in flags] if any(flags) else []


def parts(build: Builder, value: Value) -> Iterator[Value]:
    """The values of an input that a spec records: the input itself, or the elements of a tuple."""
    type = value.type
    if isinstance(type, TupleType):
        node = build.node("prim::TupleUnpack", (value,), output_types=type.elements)
        for each in node.outputs:
            yield from parts(build, each)
    elif noted_type(type):
        yield value


def noted_type(type: Type) -> bool:
    """Does a spec record values of this type?"""
    from irtool.execute.argument_spec import is_noted

    return is_noted(type) or isinstance(type, OptionalType)
