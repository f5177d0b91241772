"""Compiled plans: a graph becomes one Python function over NumPy calls, made for the dtypes, shapes and strides of its inputs.

    plan = compile_plan(graph)
    outputs = plan([x, y])      # the first call on such inputs runs from slots, later calls run the compiled function
    print(plan.source, plan.memory)

Results and errors are those of `irtool.interpret.run`, bit for bit. The interpreter runs graphs that have no plan: blocks nested deeper
than Python allows, or an invalid graph.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Any

from irtool.accepted_values import accept, copied, delivered
from irtool.analysis.memory_classes import memory_class
from irtool.execute.fallbacks import NotLowered, interpreted, why
from irtool.execute.fusion import Fused, GroupOptions
from irtool.execute.plan.buffers import Workspace
from irtool.execute.plan.loop_numbers import ROOM
from irtool.execute.plan.lower import Lowering, Observed
from irtool.execute.plan.memory import MemoryPlan, MemoryReport, every, inputs_written, written_inputs
from irtool.execute.plan.parallel import describe_tasks
from irtool.execute.plan.plan_passes import Making, rewrite
from irtool.execute.plan.program import Known, Program, Visit
from irtool.execute.plan.program_listing import listing
from irtool.execute.plan.python_source import Changed, Source
from irtool.execute.plan.slots import Interval, SlotProgram
from irtool.execute.thread_pool import Failed
from irtool.interpret import all_nodes, located, run
from irtool.ir.collector import Paused
from irtool.ir.effects import facts_of, may_write_or_is_python
from irtool.ir.errors import RunError
from irtool.ir.graph import Graph, Node
from irtool.ir.types import TupleType
from irtool.ir.verify import explanation
from irtool.ops.array_library import np
from irtool.ops.arrays import seeded
from irtool.ops.symbols.array_layout import Meta, fresh_meta, meta_of
from irtool.shared_inputs import accept_all

HARMLESS = frozenset(("prim::RaiseException",))
"""Kinds of nodes whose side effect may happen twice."""
MAX_VARIANTS = 64
"""The number of variants that one plan keeps."""
PLAIN = ("", "int[]", "float[]", "bool[]", "str[]")
"""Types of results that need no conversion between numbers and tensors."""
FEW = 4
"""The number of different ints as inputs after which ints count as data; until then they count as sizes, and each gets a variant."""
TOO_MANY = 16
"""The number of variants after which lists of ints count as data, and no longer as sizes."""
_serial = itertools.count()


def compile_plan(graph: Graph, *, spec: Sequence[Any] | None = None, native: bool | None = None, threads: int = 1) -> Plan:
    """A plan of a graph. The graph is not copied, and must not change.

    spec: if not None, compile the function for such inputs at once; one entry per input: an array, a Meta or a (dtype, shape) pair for an
    array, None for any other input. native: run large groups of pointwise operators as loops in C (None: if it pays); threads: how many
    share such a group, and run expensive nodes at the same time.
    """
    plan = Plan(graph, native=native, threads=threads)
    if spec is not None:
        plan.compile(spec)
    return plan


class Runner:
    """Runs a variant, from slots or by its function, and holds the memory for it. nodes: the node of each line of the function."""

    __slots__ = ("workspace", "slots", "function", "nodes", "filename")

    def __init__(self, workspace: Workspace, slots: SlotProgram | None, function: Callable[..., list[Any]] | None = None,
                 nodes: Sequence[Node | None] = (), filename: str = "") -> None:
        self.workspace = workspace
        self.slots = slots
        self.function = function
        self.nodes = nodes
        self.filename = filename

    def run(self, values: Sequence[Any]) -> list[Any]:
        """One run on accepted values."""
        work = self.workspace.borrow()
        try:
            results = self.call(values, work) if self.slots is None else self.slots.run(values, work)
        except Exception:
            self.workspace.give_back(work)
            raise
        self.workspace.give_back(work)      # not after an interruption: another thread may be writing into it
        return results

    def call(self, values: Sequence[Any], work: Any) -> list[Any]:
        """One run of the function."""
        assert self.function is not None
        try:
            return self.function(*values, work)
        except Changed:
            raise
        except Failed as failure:
            node = self.nodes[failure.line - 1]
            raise failure.error if node is None else located(failure.error, node) from failure.error
        except Exception as error:
            node = self.node_at(error.__traceback__)
            if node is None:
                raise
            raise located(error, node) from error

    def node_at(self, trace: TracebackType | None) -> Node | None:
        """The node of the function's line in a traceback."""
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename:
                return self.nodes[trace.tb_lineno - 1]
            trace = trace.tb_next
        return None


class Variant:
    """The compiled form of a plan for inputs of certain dtypes, shapes and strides."""

    __slots__ = ("graph", "facts", "options", "written", "as_they_are", "runs", "observed", "slots", "function", "workspace", "program",
                 "source", "memory", "reason", "lowering", "is_grouped", "is_last", "runner", "lock")

    def __init__(self, graph: Graph, facts: list[Meta | Known | None], as_they_are: bool, options: GroupOptions,
                 written: Sequence[bool]) -> None:
        self.graph = graph
        self.options = options
        self.written = written              # flags: which inputs are copied for each run
        self.facts = facts
        self.as_they_are = as_they_are      # no input needs converting
        self.runs = 0
        self.observed: Observed | None = None
        self.slots: SlotProgram | None = None
        self.function: Callable[..., list[Any]] | None = None
        self.workspace: Workspace | None = None
        self.program: Program | None = None
        self.source = ""
        self.memory: MemoryReport | None = None
        self.reason: NotLowered | None = None   # why the interpreter runs the graph, if it does
        self.lowering: Lowering | None = None   # of the last lowering
        self.is_grouped = False
        self.is_last = False        # its predecessor's results had other facts than observed: if so again, nothing is observed
        self.runner: Runner | None = None       # replaced as a whole, since another thread may compile during a run
        self.lock = Lock()

    @property
    def is_interpreted(self) -> bool:
        """Does the interpreter run the graph?"""
        return self.reason is not None

    def start(self, making: Making, without: Collection[tuple[Node, int]]) -> tuple[Program, Lowering]:
        """The program before any pass, and the state of its lowering. Raises NotLowered."""
        self.lowering = Lowering(making.graph, making.observed, self.options, without)
        return self.lowering.run(self.facts), self.lowering

    def lowered(self, thorough: bool, after: Callable[[str, Program], None] | None = None) -> tuple[Program, MemoryPlan]:
        """The program and its memory; thorough: after all of PLAN_PASSES, else after those that always run. Raises NotLowered."""
        try:
            making = Making(self.graph, self.observed, self.options, self.is_grouped, thorough, self.start)
            program = rewrite(making, after)
            self.graph, self.observed, self.is_grouped = making.graph, making.observed, making.is_grouped
            return program, MemoryPlan(program, self.written, is_first=not thorough)
        except NotLowered as reason:
            reason.node = reason.node or self.at
            raise
        except RecursionError as error:
            raise NotLowered("it is nested deeper than Python allows", self.at) from error
        except Exception as error:
            why = explanation(self.graph)       # the graph has not been verified
            raise NotLowered(f"{type(error).__name__}: {error}" if why is None else "it is invalid", self.at, why is not None) from error

    @property
    def at(self) -> Node | None:
        """The node that was being lowered last."""
        return self.lowering.at if self.lowering is not None else None

    def build(self, thorough: bool) -> tuple[Program, MemoryPlan] | None:
        """Make the program and its memory, and store them in the variant; None: the interpreter runs the graph."""
        if self.is_interpreted:
            return None
        try:
            program, memory = self.lowered(thorough)
        except NotLowered as reason:
            self.reason = reason
            return None
        finally:
            self.lowering = None
        self.program, self.memory, self.workspace = program, memory.report, Workspace(memory)
        return program, memory

    def prepare_slots(self, observe: bool) -> None:
        """Make the slot program. observe: a run of it records the facts of the results of visits."""
        with self.lock, Paused():
            planned = self.build(thorough=False) if self.runner is None else None
            if planned is not None and self.workspace is not None:
                self.slots = SlotProgram(*planned, observe)
                self.runner = Runner(self.workspace, self.slots)

    def compile(self) -> None:
        """Compile the function."""
        with self.lock, Paused():
            planned = self.build(thorough=True) if self.function is None else None
            if planned is None or self.workspace is None:
                return
            source = Source(*planned)
            filename = f"<irtool plan {next(_serial)}>"
            exec(compile(source.text, filename, "exec"), source.names)     # text made of numbers and of names from tables
            self.source, self.slots = source.text, None
            self.runner = Runner(self.workspace, None, source.names["plan"], source.nodes, filename)
            self.function = self.runner.function


class Plan:
    """A compiled graph. May be called from several threads at once."""

    def __init__(self, graph: Graph, compile_after: int = 1, native: bool | None = None, threads: int = 1) -> None:
        self.graph = graph
        self.options = GroupOptions(native, threads)
        self.compile_after = compile_after      # runs from slots before the function is compiled; negative: never
        self.variants: dict[Any, Variant] = {}
        self.latest: Variant | None = None
        self.said: str | None = None            # why the interpreter runs the graph, as a message
        nodes = all_nodes(graph)
        self.writes = any(map(may_write_or_is_python, nodes))
        self.written = written_inputs(graph) if self.writes else ()
        self.delivers = [place for place, value in enumerate(graph.outputs) if memory_class(value.type) not in PLAIN]
        self.by_number = True                   # is there a variant per value of an int input?
        self.numbers: set[tuple[int, ...]] = set()
        self.by_value = not self.writes         # is there a variant per value of a list of ints?
        self.repeatable = not any(facts_of(node.kind).side_effects and node.kind not in HARMLESS for node in nodes)

    @property
    def source(self) -> str:
        """The source of the last function; empty if there is none yet."""
        return self.latest.source if self.latest is not None else ""

    @property
    def memory(self) -> MemoryReport | None:
        """The memory of the last variant; None if there is none yet."""
        return self.latest.memory if self.latest is not None else None

    @property
    def groups(self) -> list[tuple[Node, Fused]]:
        """The fused groups of the last variant; `chosen` of each says how it runs."""
        program = self.latest.program if self.latest is not None else None
        return program.groups if program is not None else []

    @property
    def beside(self) -> list[str]:
        """Which instructions of the last variant run at the same time, and why, as text."""
        program = self.latest.program if self.latest is not None else None
        return describe_tasks(program) if program is not None else []

    @property
    def loops(self) -> list[tuple[Node, str]]:
        """How each loop of the last variant runs, and why."""
        program = self.latest.program if self.latest is not None else None
        return program.loops if program is not None else []

    def compile(self, spec: Sequence[Any]) -> None:
        """Compile the function for inputs of this spec (see `compile_plan`)."""
        if len(spec) != len(self.graph.inputs):
            raise RunError(f"expected {len(self.graph.inputs)} inputs, got {len(spec)}", code="E0402")
        spec = [fresh_meta(*each) if is_pair(each) and not isinstance(value.type, TupleType) else each
                for each, value in zip(spec, self.graph.inputs, strict=True)]
        facts = self.facts(spec)
        key = tuple([tuple(fact) if isinstance(fact, Meta) else self.key_of(each) for fact, each in zip(facts, spec, strict=True)])
        variant = self.variants[key] = self.variants.get(key) or Variant(self.graph, facts, False, self.options, self.written)
        variant.compile()
        self.latest = variant

    def why_not(self, inputs: Sequence[Any]) -> str | None:
        """A message why the interpreter runs the graph on such inputs; None if it does not."""
        facts = self.facts(inputs)
        variant = Variant(self.graph, facts, False, self.options, self.written)
        variant.prepare_slots(observe=False)
        return None if variant.reason is None else why(variant.reason, self.graph)

    def programs(self, inputs: Sequence[Any]) -> list[tuple[str, str]]:
        """The program for such inputs after each of PLAN_PASSES, as (name of the pass, text). Raises NotLowered."""
        facts = self.facts(inputs)
        texts: list[tuple[str, str]] = []
        Variant(self.graph, facts, False, self.options, self.written).lowered(True, lambda name, each: texts.append((name, listing(each))))
        return texts

    def intervals(self, inputs: Sequence[Any], seed: int | None = 0) -> list[Interval]:
        """When each instruction ran, in one run on such inputs: the second, unless the graph has side effects. Raises NotLowered, or the
        error of a node."""
        return self.intervals_of(inputs, seed, 1)[0]

    def intervals_of(self, inputs: Sequence[Any], seed: int | None, runs: int) -> list[list[Interval]]:
        """The same of several runs; of the first one alone, if the graph has side effects."""
        values = self.accepted(inputs)
        variant = Variant(self.graph, self.facts(values), False, self.options, self.written)
        intervals: list[Interval] = []
        if self.repeatable:
            variant.prepare_slots(observe=True)
            if variant.slots is not None:       # as in `prepare`: of some results only a run knows the facts
                self.once(variant, copied(values, self.written) if self.writes else values, seed)
                variant.observed = variant.slots.observed
        variant.program, memory = variant.lowered(True)
        variant.runner = Runner(Workspace(memory), SlotProgram(variant.program, memory, intervals=intervals))
        collected: list[list[Interval]] = []
        for _ in range(runs + 1 if self.repeatable else 1):
            intervals.clear()
            self.once(variant, copied(values, self.written) if self.writes else values, seed)
            collected.append(list(intervals))
        return collected[-runs:]

    def forget(self) -> None:
        """Free the functions made so far, and their memory."""
        self.latest = None
        self.variants.clear()

    def __call__(self, inputs: Sequence[Any], *, seed: int | None = 0, accepted: bool = False) -> list[Any]:
        """Run on arrays and Python values; as `irtool.interpret.run`. accepted: the inputs are converted already."""
        try:
            key = tuple([(x.dtype, x.shape, x.strides) if type(x) is np.ndarray else self.key_of(x) for x in inputs])
            variant = self.variants[key]
            values = inputs if accepted or variant.as_they_are else self.accepted(inputs)
        except (KeyError, TypeError):
            if isinstance(inputs, str) or not isinstance(inputs, Sequence) or len(inputs) != len(self.graph.inputs):
                return run(self.graph, inputs, seed=seed)       # raises the error
            values = inputs if accepted else self.accepted(inputs)
            variant = self.variant(key, inputs, values)
        if variant.function is None and not variant.is_interpreted:
            self.prepare(variant)
        self.latest = variant
        for _ in range(3):
            if variant.reason is not None:
                return self.interpreted(variant.reason, inputs, seed)
            try:
                results = self.once(variant, copied(values, self.written) if self.writes else values, seed)
                break
            except Changed:
                variant = self.latest = self.after_change(key, variant)
                values = inputs if accepted or variant.as_they_are else self.accepted(inputs)
        else:
            variant.reason = NotLowered("a result lies in memory otherwise than was predicted")
            return self.interpreted(variant.reason, inputs, seed)
        for place in self.delivers:
            value = results[place]
            if type(value) is not np.ndarray:
                results[place] = delivered(value, self.graph.outputs[place].type)
        return results

    def interpreted(self, reason: NotLowered, inputs: Sequence[Any], seed: int | None) -> list[Any]:
        """The results by the interpreter; why it runs the graph is said once."""
        results = run(self.graph, inputs, seed=seed)
        if self.said is None:
            self.said = interpreted(reason, self.graph)
        return results

    def after_change(self, key: Any, variant: Variant) -> Variant:
        """Replace a variant whose results have other facts than the first run observed. The new variant observes once more, since the first
        call of a module often fills buffers that later calls read; if the facts change again, the variant does without observed facts."""
        if variant.is_last:
            variant.observed, variant.function = None, None
            variant.compile()
            return variant
        another = self.variants[key] = Variant(self.graph, variant.facts, variant.as_they_are, self.options, self.written)
        another.is_last = True
        self.prepare(another)
        return another

    def once(self, variant: Variant, values: Sequence[Any], seed: int | None) -> list[Any]:
        """One run, with NumPy's warnings off and random numbers from the seed (None: from the current generator)."""
        runner = variant.runner
        assert runner is not None
        with np.errstate(all="ignore"):
            if seed is not None and variant.program is not None and variant.program.is_random:
                with seeded(seed):
                    return runner.run(values)
            return runner.run(values)

    def accepted(self, inputs: Sequence[Any]) -> list[Any]:
        """The inputs converted to what the graph's input types ask for."""
        if self.writes:
            return accept_all(inputs, self.graph.inputs, partial(inputs_written, self.graph))
        return [accept(value, declared) for value, declared in zip(inputs, self.graph.inputs, strict=True)]

    def variant(self, key: Any, inputs: Sequence[Any], values: Sequence[Any]) -> Variant:
        """A new variant for these inputs."""
        facts = [meta_of(value) if type(value) is np.ndarray else self.known(value) for value in values]
        as_they_are = all(a is b or isinstance(fact, Known) for a, b, fact in zip(inputs, values, facts, strict=True))
        variant = Variant(self.graph, facts, as_they_are, self.options, self.written)
        self.numbers.add(tuple([value for value in inputs if type(value) is int]))
        if len(self.numbers) > FEW and self.by_number:
            self.by_number = False
            self.variants.clear()
        if len(self.variants) >= TOO_MANY and self.by_value:
            self.by_value = False
            self.variants.clear()
        while len(self.variants) >= MAX_VARIANTS:       # frees the oldest and its memory
            self.variants.pop(next(iter(self.variants)), None)
        return self.variants.setdefault(key, variant)

    def key_of(self, value: Any) -> Any:
        """The key of an input that is no array: the value, if there is a variant per value; else its type."""
        if value is None or type(value) is bool:
            return value
        if type(value) is int and self.by_number:
            return value, int
        return tuple(value) if self.by_value and is_sizes(value) else type(value)

    def facts(self, values: Sequence[Any]) -> list[Meta | Known | None]:
        """What is known of each input: of an array its facts, of other values what `known` says."""
        return [meta_of(each) if isinstance(each, np.ndarray) else each if isinstance(each, Meta) else self.known(each) for each in values]

    def known(self, value: Any) -> Known | None:
        """The value as a known item, if there is a variant per value; else None."""
        if value is None or type(value) is bool or type(value) is int and self.by_number and abs(value) < ROOM:
            return Known(value)
        return Known(value) if self.by_value and is_sizes(value) else None

    def prepare(self, variant: Variant) -> None:
        """Make the slot program for the first runs, then the function."""
        variant.runs += 1
        if 0 <= self.compile_after < variant.runs:
            if variant.slots is not None and self.repeatable:
                variant.observed = variant.slots.observed
            elif variant.slots is None and self.repeatable and self.compile_after == 0:
                variant.prepare_slots(observe=True)
                if variant.program is not None and any(isinstance(each, Visit) and not each.fills and None in each.facts
                                                       for each in every(variant.program.body)):
                    return      # of some results only a run knows the facts
            variant.compile()
        elif variant.slots is None:
            variant.prepare_slots(observe=self.compile_after >= 0)


def is_sizes(value: Any) -> bool:
    """Is a value a list of a few ints, such as the sizes of a tensor?"""
    return type(value) is list and len(value) <= 8 and all(type(each) is int for each in value)


def is_pair(entry: Any) -> bool:
    """Is an entry of a spec a (dtype, shape) pair?"""
    return isinstance(entry, tuple) and len(entry) == 2
