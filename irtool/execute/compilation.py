"""Making plans: the phases of one compilation, with gradients if the spec asks for them.

A graph that needs gradients becomes one node that has f and df, if the whole graph can be differentiated. Otherwise groups of operators
become such nodes, and a tape records them and the nodes between them one by one (`irtool.execute.recording`). A separate executor
runs df. It makes its plans when the first cotangents arrive, since only then is it known which of them are defined.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from irtool.analysis.liveness import remove_dead_nodes
from irtool.autodiff.captures import dtypes_by_type, dtypes_or_any
from irtool.autodiff.gradient_questions import settle_questions
from irtool.autodiff.reach import holds_tensors
from irtool.autodiff.reverse import Reverse, differentiate_graph
from irtool.autodiff.unread_writes import without_writes
from irtool.autodiff.versions import in_versions
from irtool.dispatch.recipes import Way
from irtool.execute.argument_spec import ArgumentSpec
from irtool.execute.backends import BACKENDS, Program
from irtool.execute.differentiable import Differentiable
from irtool.execute.graph_gradients import is_construct
from irtool.execute.mixed_dtypes import may_mix
from irtool.execute.phases import OnPass, Phases, custom_passes, forget_requires_grad
from irtool.execute.plan.predicted_dtypes import predicted_dtypes
from irtool.execute.recording import NodeCalls, Recording
from irtool.interpret import Plan as Walked
from irtool.interpret import all_nodes, walk, writers_of
from irtool.interpret import run as interpret
from irtool.ir.attribute import Attribute
from irtool.ir.collector import Paused
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.custom import CUSTOM_VJP
from irtool.ir.displayed import Displayed
from irtool.ir.edits import clone_graph, clone_node, inline_graph, replace_node
from irtool.ir.effects import facts_of
from irtool.ir.errors import UnsupportedError
from irtool.ir.graph import Block, Graph, Node, Value, counted
from irtool.ir.packed import owns_gradient
from irtool.ir.structure_kinds import CONSTRUCTS, GROUP_KINDS
from irtool.ir.types import TensorType
from irtool.ops.array_library import np
from irtool.ops.node_calls import call_node
from irtool.passes import BY_NAME
from irtool.passes.propagate_requires_grad import reach_of

if TYPE_CHECKING:
    from irtool.execute.executor import Executor


class Options:
    """How plans are made.

    whole: differentiate a graph as a whole if possible; else only groups of at least `autodiff_threshold` operators, of which those with
    fewer than `inline_threshold` are inlined again. on_pass: called after each pass of a compilation with its name and the graph.
    native: run groups of pointwise operators as loops in C (None: large groups, if there is a compiler; True: all; False: none).
    threads: how many threads share large groups and run expensive nodes at the same time. check_saved: check by a checksum that arrays
    saved for gradients are unchanged when df reads them. profiling: make a plan for the shapes of the first `profiled_runs` runs
    (`irtool.execute.profiling`); inputs of other shapes get plans in the same way, `bailout_depth` times at most.
    """

    __slots__ = ("optimize", "backend", "whole", "autodiff_threshold", "inline_threshold", "on_pass", "native", "threads", "check_saved",
                 "profiling", "profiled_runs", "bailout_depth")

    def __init__(self, optimize: bool = True, backend: str = "numpy", whole: bool = True, autodiff_threshold: int = 2,
                 inline_threshold: int = 5, on_pass: OnPass | None = None, native: bool | None = None, threads: int = 1,
                 check_saved: bool = False, profiling: bool = False, profiled_runs: int = 1, bailout_depth: int = 2) -> None:
        self.optimize = optimize
        self.backend = backend
        self.whole = whole
        self.autodiff_threshold = autodiff_threshold
        self.inline_threshold = inline_threshold
        self.on_pass = on_pass
        self.native = native
        self.threads = threads
        self.check_saved = check_saved
        self.profiling = profiling
        self.profiled_runs = profiled_runs
        self.bailout_depth = bailout_depth

    def changed(self, **changes: Any) -> Options:
        """These options with some of them changed, by name."""
        return Options(**{name: changes.get(name, getattr(self, name)) for name in self.__slots__})


class ExecutionPlan(Displayed):
    """A graph compiled for one spec, and the code that runs it. May be shared by threads."""

    __slots__ = ("graph", "spec", "writes", "is_random", "is_custom", "differentiables", "options", "together", "guarded",
                 "is_unsettled", "_code", "_outline", "_owner", "_ways", "_walks", "_lock")
    note: Callable[[Node, Any], None] | None = None

    def __init__(self, owner: Executor, graph: Graph, spec: ArgumentSpec | None,
                 differentiables: dict[Node, Differentiable] | None = None) -> None:
        self.graph = graph
        self.spec = spec            # None: the fallback plan, which fits all inputs
        self.differentiables = differentiables or {}
        self.options = owner.options
        self.is_custom = bool(custom_passes())      # users' passes have rewritten it
        self.writes = writes(graph)
        self.is_random = any(facts_of(node.kind).is_random for node in all_nodes(graph))
        self.together: Any = None   # f and df as one graph (`irtool.execute.joint_plan`); False: they cannot be joined
        self.guarded: Graph | None = None       # the graph behind the guard that a profiling executor evaluates first
        self.is_unsettled = False   # does the graph ask about gradients what only a tape knows, node by node?
        self._owner = owner
        self._code: Code | None = None
        self._outline: list[Outline] | None = None
        self._ways: dict[Node, Way] = {}        # caches of recorded runs
        self._walks: dict[Block, Walked] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} for {self.spec or 'any inputs'}, {counted(sum(1 for _ in self.shown.walk()), 'node')}>"

    @property
    def shown(self) -> Graph:
        """The graph that is executed, behind its guard if there is one."""
        return self.guarded or self.graph

    @property
    def code(self) -> Code:
        """Runs the graph without a tape."""
        if self._code is None:
            with self._lock:
                if self._code is None:
                    self._code = Code(self.graph, self.options)
        return self._code

    def forget(self) -> None:
        """Free the functions made so far, and their memory."""
        if self._code is not None:
            self._code.forget()

    def record(self, values: list[Any], tape: Recording) -> list[Any]:
        """The outputs, on a tape, for values whose tensors are handles."""
        if self._outline is None:
            self._outline = outline(self.graph, self.differentiables)
        if self._outline:
            ((node, run),) = self.differentiables.items()
            env = dict(zip(self.graph.inputs, values, strict=True))
            env.update(zip(node.outputs, run.on_tape(tape, [env[value] for value in node.inputs]), strict=True))
            return [put_together(each, env) for each in self._outline]
        calls = NodeCalls(tape, self.differentiables, self._ways, self.note)
        return walk(self.graph, values, calls, closed=self.differentiables, plans=self._walks)


Outline = Value | list[Any] | tuple[Any, ...]
"""An output of a graph: a value, or a list or tuple of outlines."""


def outline(graph: Graph, differentiables: dict[Node, Differentiable]) -> list[Outline]:
    """The outputs of a graph that is one node with a gradient, followed only by nodes that construct lists and tuples of its results;
    empty for any other graph."""
    first = graph.block.return_node.next
    rest = list(graph.block)[1:]
    if first not in differentiables or len(differentiables) > 1 or any(node.kind not in CONSTRUCTS for node in rest):
        return []
    outlines: dict[Value, Outline] = {value: value for value in (*graph.inputs, *first.outputs)}
    for node in rest:
        parts = [outlines[value] for value in node.inputs]
        outlines[node.output] = tuple(parts) if node.kind == "prim::TupleConstruct" else parts
    return [outlines[value] for value in graph.outputs]


def put_together(part: Outline, env: dict[Value, Any]) -> Any:
    """The output that an outline describes, from the values of a run."""
    if isinstance(part, Value):
        return env[part]
    parts = [put_together(each, env) for each in part]
    return tuple(parts) if isinstance(part, tuple) else parts


def writes(graph: Graph) -> bool:
    """May a graph write into memory that it did not allocate?"""
    return bool(writers_of(graph))


class Code:
    """Runs a graph: compiled, or interpreted if nothing is optimised. Random numbers come from the current generator."""

    __slots__ = ("graph", "plan", "backend", "is_direct")

    def __init__(self, graph: Graph, options: Options, is_piece: bool = False) -> None:
        self.graph = graph
        self.is_direct = is_piece and writes(graph)     # no copies of inputs: the caller has copied those that are written
        self.backend = None if options.backend == "numpy" else options.backend
        self.plan: Program | None = None
        if options.optimize:
            self.plan = BACKENDS[options.backend].compile(graph, native=options.native, threads=options.threads)

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """The outputs. Operands that the graph writes into are copied first, unless the graph is a piece of another."""
        if self.is_direct:
            with np.errstate(all="ignore"):
                return walk(self.graph, list(values), call_node)
        if self.plan is None:
            return interpret(self.graph, values, seed=None, backend=self.backend)
        return self.plan(values, seed=None, accepted=True)

    def forget(self) -> None:
        """Free the functions made so far, and their memory."""
        if self.plan is not None:
            self.plan.forget()


# -- plans
def fallback_plan(owner: Executor) -> ExecutionPlan:
    """The plan that fits every input: required passes only."""
    phases = Phases(owner.options.on_pass)
    graph = phases.fallback(owner.graph)
    return ExecutionPlan(owner, graph, None, with_own_gradients(owner, graph, None))


def make_plan(owner: Executor, spec: ArgumentSpec, values: Sequence[Any], flags: Sequence[bool],
              types: Sequence[TensorType | None] = ()) -> ExecutionPlan:
    """The plan for a spec. `values` are the first inputs: if operators mix dtypes, a run on them shows the dtypes of all values.

    types: by record of the spec, types with more facts than the spec has, such as sizes.
    """
    with Paused():
        options = owner.options
        phases = Phases(options.on_pass)
        graph = phases.specialized(owner.graph, spec, types)
        phases.differentiable(graph)
        if not spec.requires_gradient:
            if not any(node.kind[:1] == "^" for node in all_nodes(graph)):      # torch: a Python operator may have its own gradient
                phases.without_gradients(graph)
            return ExecutionPlan(owner, graph, spec)
        without_writes(graph)
        graph = phases.retyped(in_versions(graph))       # what is overwritten may be needed for gradients
        if settle_questions(graph, flags) is not None:
            unsettled = ExecutionPlan(owner, graph, spec)
            unsettled.is_unsettled = True
            return unsettled
        plan = as_one(owner, phases, graph, spec, flags, values) if options.whole else None
        return plan or ExecutionPlan(owner, graph, spec, as_groups(owner, phases, graph, flags, values))


def differentiable(owner: Executor, pair: Reverse, phases: Phases | None, is_piece: bool = False) -> Differentiable:
    """A pair ready to run. phases: passes that optimise f, whose operators need no gradients any more (None: none). is_piece: f is a part
    of a graph, and the other parts see its writes.
    """
    if phases is not None:
        phases.differentiable(pair.f)
        phases.without_gradients(pair.f)
    return Differentiable(pair, Code(pair.f, owner.options, is_piece), owner.nested(pair.df))


def as_one(owner: Executor, phases: Phases, graph: Graph, spec: ArgumentSpec, flags: Sequence[bool],
           values: Sequence[Any]) -> ExecutionPlan | None:
    """The whole graph as one node with a gradient; nodes that only construct lists and tuples of results stay outside. None if the graph
    cannot be differentiated as a whole."""
    ending = dict.fromkeys(trailing(graph))
    body = [node for node in graph.block if node not in ending and node.kind not in CONSTANT_KINDS]
    if not body:
        return None
    inside = set(body)
    if writes(graph):       # f writes into copies of the inputs: a returned input is such a copy
        inside.add(graph.block.param_node)
    readers = (*ending, graph.block.return_node)
    results = list(dict.fromkeys(value for node in readers for value in node.inputs if value.node in inside))
    inner = Graph(graph.dialect)
    inner.source = graph.source
    mapping: dict[Value, Value] = {value: inner.block.add_input(value.name, value.type) for value in graph.inputs}
    for node in graph.block:
        if node not in ending:
            clone_node(node, mapping, inner.block)
    inner.block.set_outputs([mapping[value] for value in results])
    remove_dead_nodes(inner)
    wanted = [flag and holds_tensors(value.type) for flag, value in zip(flags, graph.inputs, strict=True)]
    dtypes = {**predicted_dtypes(inner, values), **dtypes_by_type(inner)} if may_mix(inner, values) else {}
    try:
        pair = differentiate_graph(inner, wanted, True, dtypes=dtypes)
    except UnsupportedError:
        return None
    step = differentiable(owner, pair, phases)
    node = Node("prim::GraphExecutor" if graph.dialect.is_of_2018 else "prim::DifferentiableGraph", graph.inputs,
                {"Subgraph": Attribute("<Graph>", pair.f)})
    graph.block.prepend(node)       # in front of nodes that construct lists of its results
    for value in results:
        result = node.add_output(graph.fresh_id(), value.type)
        for user, slot in list(value.uses):
            if user in readers:
                user.replace_input(slot, result)
    for each in reversed(body):
        each.destroy()
    remove_dead_nodes(graph)
    phases.report("differentiate", graph)
    return ExecutionPlan(owner, graph, spec, {node: step})


def with_own_gradients(owner: Executor, graph: Graph, phases: Phases | None) -> dict[Node, Differentiable]:
    """The `custom_vjp` nodes of a graph, as nodes with gradients: the tape must not differentiate their bodies."""
    pieces: dict[Node, Differentiable] = {}
    for node in graph.walk():
        if node.kind == CUSTOM_VJP or owns_gradient(node):
            inner = Graph(graph.dialect)
            copy = clone_node(node, {}, inner.block, inner)
            copy.set_inputs([inner.block.add_input(inner.fresh_id(), value.type) for value in node.inputs])
            inner.block.set_outputs(copy.outputs)
            pair = differentiate_graph(inner, [holds_tensors(value.type) for value in node.inputs], True)
            pieces[node] = differentiable(owner, pair, phases, is_piece=True)
    return pieces


def trailing(graph: Graph) -> list[Node]:
    """The nodes that only construct lists and tuples of the graph's results."""
    constructs: dict[Node, None] = {}
    pending = list(graph.outputs)
    while pending:
        value = pending.pop()
        node = value.node
        if is_construct(value) and all(user.kind == "prim::Return" or user in constructs for user, _ in value.uses):
            constructs[node] = None
            pending += node.inputs
    return list(constructs)


def as_groups(owner: Executor, phases: Phases, graph: Graph, required: Sequence[bool], values: Sequence[Any]) -> dict[Node, Differentiable]:
    """Groups of operators as nodes with gradients. required: for each input of the graph whether it needs a gradient; values: the first
    inputs. A group does not see what the rest of the graph mixes: if dtypes may mix in the graph, they may in each group."""
    options = owner.options
    mixed = may_mix(graph, values)
    needed = {value for value, flag in zip(graph.inputs, required, strict=True) if flag}
    reach = reach_of(graph, needed)
    idle = {value for value in graph.inputs if value not in needed and not reach.has(value)}
    for value in graph.inputs:
        if value not in needed and value not in idle:       # without a gradient when the graph begins: what is written into it may have one
            forget_requires_grad(value, graph)
    BY_NAME["create-autodiff-subgraphs"].function(graph, threshold=options.autodiff_threshold)
    phases.report("create-autodiff-subgraphs", graph)
    pieces = with_own_gradients(owner, graph, phases)
    for node in [each for each in graph.walk() if each.kind in GROUP_KINDS and not owns_gradient(each)]:
        group = node.graphs["Subgraph"]
        flags = [holds_tensors(value.type) and not (isinstance(value.type, TensorType) and value.type.requires_grad is False)
                 and value not in idle for value in node.inputs]
        inner = clone_graph(group)
        try:
            pair = differentiate_graph(inner, flags, True, trust_types=True, dtypes=dtypes_or_any(inner) if mixed else {})
        except UnsupportedError:
            pair = None
        if pair is None or sum(1 for each in pair.f.walk() if each.kind not in CONSTANT_KINDS) < options.inline_threshold:
            replace_node(node, inline_graph(group, node, node.inputs))
            continue
        pieces[node] = differentiable(owner, pair, phases, is_piece=True)
        node.set_attribute("Subgraph", Attribute("<Graph>", pair.f))
    phases.report("inline-autodiff-subgraphs", graph)
    return pieces
