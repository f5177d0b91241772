"""The graph executor: a plan per spec of inputs, compiled when first needed and cached.

    executor = irtool.compile(graph)
    outputs = executor(x, y)                                    # optimised for the dtypes and ranks of x and y
    gradients = executor.vjp([x, y], [cotangent], wrt=[0, 1])
    executor.stats["execution_plan_cache_hit"]

Inputs of equal dtypes and ranks share a plan (`irtool.execute.argument_spec`); `irtool.execute.phases` lists the passes that make it. The
executor works on a copy of the graph. It may be called from several threads: plans are made under one lock, so no plan is made twice.
"""
from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock, local
from typing import Any

from irtool.accepted_values import accept, delivered, refuse_none
from irtool.analysis.gradients_off import modes_in
from irtool.autodiff.gradient_modes import settle_grad_mode
from irtool.autodiff.gradient_questions import QUESTIONS
from irtool.autodiff.groups import open_writing_groups
from irtool.autodiff.inlined_forks import inline_forks
from irtool.autodiff.reach import requiring
from irtool.dispatch.gradients_off import mode_kept
from irtool.execute.argument_spec import ArgumentSpec, SpecMaker, arrays_key
from irtool.execute.backends import BACKENDS
from irtool.execute.compilation import ExecutionPlan, Options, fallback_plan, make_plan, writes
from irtool.execute.fallbacks import NotLowered, failed
from irtool.execute.graph_gradients import prepared, wanted
from irtool.execute.joint_plan import Together, is_alike, is_simple, together_of
from irtool.execute.phases import custom_passes
from irtool.execute.plan.compiled import Plan
from irtool.execute.plan.memory import inputs_written, written_inputs
from irtool.execute.plan.python_source import Changed
from irtool.execute.plan_cache import WORTH_KEEPING, Kept, Shelf
from irtool.execute.profiling import COUNTERS as PROFILE_COUNTERS
from irtool.execute.profiling import Profile
from irtool.execute.recorded import Recorded
from irtool.execute.recording import Recording, as_arrays, as_handles
from irtool.interpret import ODD, all_nodes
from irtool.ir.arguments import (
    ONE_PER_OUTPUT,
    check_choice,
    check_count,
    check_flag,
    check_list,
    check_listed,
    check_seed,
    misfit,
    positions,
    signature,
)
from irtool.ir.defaults import completed
from irtool.ir.displayed import Displayed
from irtool.ir.edits import clone_graph
from irtool.ir.errors import Error, RunError
from irtool.ir.graph import Graph, counted
from irtool.ir.module import Module
from irtool.ir.rounded import warn_of_rounded
from irtool.ir.verify import explanation
from irtool.ops.array_library import np
from irtool.ops.arrays import seeded
from irtool.ops.kernels.prim import GRAD_MODE
from irtool.ops.quantized import holds_quantized, makes_quantized
from irtool.ops.tensor import Tensor
from irtool.shared_inputs import accept_all


class Counters:
    """Counters of an executor, shared with the executors that it makes for gradients."""

    __slots__ = ("counts", "lock")
    NAMES = ("graph_executors_constructed", "graph_executor_invocations", "execution_plan_cache_hit", "execution_plan_cache_miss")

    def __init__(self, profiling: bool = False) -> None:
        self.counts = dict.fromkeys((*self.NAMES, *PROFILE_COUNTERS) if profiling else self.NAMES, 0)
        self.lock = Lock()

    def count(self, name: str) -> None:
        """Increment a counter; safe from several threads."""
        with self.lock:
            self.counts[name] += 1

    def count_hit(self) -> None:
        """Count a call that used an existing plan."""
        counts = self.counts
        with self.lock:
            counts["graph_executor_invocations"] += 1
            counts["execution_plan_cache_hit"] += 1


MAX_QUICK = 64


class _Last(local):
    """Per thread: the graph that ran last."""

    graph: weakref.ref[Graph] | None = None


_last = _Last()


def last_executed_graph() -> Graph | None:
    """The optimised graph that an executor of this thread ran last; None if there is none, or it was freed."""
    return _last.graph() if _last.graph is not None else None


class Executor(Displayed):
    """Runs a graph through plans: see the module's docstring."""

    __slots__ = ("graph", "options", "counters", "spec_maker", "plans", "fallback", "writes", "quick", "joined", "shelf", "profile",
                 "reached", "quantized", "original", "is_settled", "asks", "interpreting", "_lock", "__weakref__")

    def __init__(self, graph: Graph, options: Options | None = None, counters: Counters | None = None) -> None:
        self.graph = self.original = clone_graph(graph)
        inline_forks(self.graph)
        open_writing_groups(self.graph)
        self.is_settled = True              # are no switches of gradients left in `graph`?
        if next(modes_in(self.graph), None) is not None:
            self.graph = clone_graph(self.original)
            self.is_settled = settle_grad_mode(self.graph)
        self.asks = any(node.kind in QUESTIONS for node in all_nodes(self.graph))       # whether gradients are taken through a tensor?
        self.options = options or Options()
        self.counters = counters or Counters(self.options.profiling)
        self.counters.count("graph_executors_constructed")
        self.spec_maker = SpecMaker(self.graph)
        self.plans: dict[ArgumentSpec, ExecutionPlan] = {}
        self.fallback: ExecutionPlan | None = None
        self.writes = writes(self.graph) and any(written_inputs(self.graph))    # a write that callers can see
        self.quick: dict[Any, Kept] = {}        # compiled functions by `arrays_key`
        self.joined: dict[Any, Together] = {}   # f and df as one graph, by `arrays_key` and `wrt`
        self.shelf: Shelf | None = None
        self.profile = Profile(self) if self.options.optimize and self.options.profiling else None
        if self.options.optimize and self.options.backend == "numpy" and self.options.on_pass is None and not self.writes \
                and self.profile is None and sum(1 for _ in self.graph.block) >= WORTH_KEEPING:
            self.shelf = Shelf(self.graph, (self.options.native, self.options.threads))
        self.reached: dict[int, bool] = {}
        self.quantized = next((node for node in all_nodes(self.graph) if makes_quantized(node.kind)), None)
        self.interpreting: Executor | None = None
        self._lock = Lock()

    def __repr__(self) -> str:
        nodes = sum(1 for _ in self.graph.walk())
        return f"<Executor of {self.graph.name or 'graph'}, {counted(nodes, 'node')}, {counted(len(self.plans), 'plan')}>"

    def __reduce__(self) -> Any:
        """Pickled as its graph and options: plans are made again where it runs."""
        return type(self), (self.original, self.options)

    # -- for users
    def __call__(self, *inputs: Any, seed: int = 0) -> list[Any]:
        """Run on NumPy arrays and Python values, one per input; returns one value per output, as `irtool.run` does.

        The caller's arrays are never modified; outputs may be views of inputs where torch returns views. Raises RunError for wrong inputs
        and where torch raises, UnsupportedError for an operator without a kernel.

        For `irtool.Tensor`s it returns Tensors; inside `irtool.trace` the graph is copied into the trace.
        """
        results = self.run_again(inputs, arrays_key(inputs))
        if results is not None:
            return results
        if any(isinstance(value, Tensor) for each in inputs for value in (each if isinstance(each, list | tuple) else (each,))):
            from irtool.execute.tracing import run_on_tensors

            return run_on_tensors(self, inputs, seed)
        check_seed("run", seed)
        return self.delivered(self.execute(self.accepted(inputs), seed))

    def run(self, inputs: Sequence[Any], seed: int | None = 0) -> list[Any]:
        """As `__call__`, for inputs that are no `irtool.Tensor`. seed: None draws random numbers from the current generator."""
        if inputs.__class__ is not list and inputs.__class__ is not tuple:
            check_listed("run", self.graph, inputs)
        results = self.run_again(inputs, arrays_key(inputs))
        if results is not None:
            return results
        check_seed("run", seed)
        return self.delivered(self.execute(self.accepted(inputs), seed))

    def run_again(self, inputs: Sequence[Any], key: Any) -> list[Any] | None:
        """The outputs by the compiled function that is cached under `key` (an `arrays_key`); None if there is none."""
        results = self.run_quick(inputs, key) if self.quick else None
        return results if results is None or all([type(each) is np.ndarray for each in results]) else self.delivered(results)

    def vjp(self, inputs: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int], *, seed: int = 0) -> list[Any]:
        """Gradients of the inputs named by `wrt`, as by `irtool.vjp`: None where no gradient can reach.

        cotangents: one per tensor of the outputs, or trees of them (`irtool.execute.output_cotangents`); None: takes no part.
        """
        check_seed("vjp", seed)
        check_list("vjp", "cotangents", cotangents, ONE_PER_OUTPUT)
        values = self.accepted(inputs)
        wrt = self.wanted("vjp", wrt, values)
        if self.options.optimize:
            try:
                gradients = self._together(values, cotangents, wrt, seed)
            except RunError:
                recorded = self.record(inputs, wrt, seed=seed)
                gradients = recorded.backward(cotangents)       # raises what is wrong with a cotangent, or makes it the output's dtype
                if all([each is None or is_alike(each, output) for each, output in zip(cotangents, recorded.outputs, strict=True)]):
                    raise
            if gradients is not None:
                return gradients
        return self.record(inputs, wrt, seed=seed).backward(cotangents)

    def vjp_again(self, inputs: Sequence[Any], cotangents: Sequence[Any], wrt: tuple[int, ...], key: Any) -> list[Any] | None:
        """Gradients by the joint graph of f and df that is cached under `key` (an `arrays_key`) and `wrt`; None if there is none."""
        together = self.joined.get((key, wrt))
        try:
            gradients = None if together is None else together.run(inputs, cotangents, wrt, 0)
        except RunError:
            return None     # `vjp` raises it
        if gradients is not None:       # as f and df, one by one, would count
            self.counters.count_hit()
            self.counters.count_hit()
        return gradients

    def _together(self, values: list[Any], cotangents: Sequence[Any], wrt: tuple[int, ...], seed: int) -> list[Any] | None:
        """Gradients by one run of f and df as one graph; None if the tape is needed."""
        if not is_simple(values, wrt):
            return None
        flags = [index in wrt for index in range(len(values))]
        with self._lock:
            plan = self.plans.get(self.spec_maker.make(values, flags))
            if self.profile is not None and not self.profile.fits(values, flags):
                return None
        if plan is None or not plan.differentiables:        # the first time, the tape makes the plan
            return None
        with self._lock:
            if plan.together is None:
                plan.together = together_of(self, plan) or False
        if not plan.together:
            return None
        gradients: list[Any] | None = plan.together.run(values, cotangents, wrt, seed)
        if gradients is None:
            plan.together = False
            self.joined.clear()
            return None
        key = arrays_key(values)
        if key is not None and self.profile is None and len(self.joined) < MAX_QUICK:
            self.joined[key, wrt] = plan.together
        self.counters.count_hit()       # as f and df, one by one, would count
        self.counters.count_hit()
        return gradients

    def record(self, inputs: Sequence[Any], wrt: Sequence[int], *, seed: int = 0) -> Recorded:
        """Run the graph and save what gradients of the inputs named by `wrt` need: `.outputs`, `.backward(cotangents)`."""
        return Recorded.of(self, inputs, wrt, seed)

    def plan_for(self, *inputs: Any, wrt: Sequence[int] = ()) -> ExecutionPlan:
        """The plan for these inputs, made if necessary; `.graph` is the graph that is executed."""
        values = self.accepted(inputs)
        chosen = positions("plan_for", wrt, self.graph)
        flags = [index in chosen for index in range(len(values))] if chosen else []
        with np.errstate(all="ignore"), seeded(0):
            return self.get_plan(values, flags)

    @property
    def stats(self) -> dict[str, int]:
        """The counters: executors made (for gradients too), calls, plan cache hits and misses; when profiling two more."""
        return dict(self.counters.counts)

    # -- running
    def accepted(self, inputs: Sequence[Any]) -> list[Any]:
        """The inputs converted to what the graph's input types ask for. Raises RunError."""
        declared = self.graph.inputs
        check_listed("run", self.graph, inputs)
        inputs = completed(self.graph, inputs)
        if len(inputs) != len(declared):
            raise RunError(f"expected {len(declared)} inputs, but got {'only ' if len(inputs) < len(declared) else ''}{len(inputs)}; "
                           f"the graph takes ({signature(self.graph)})", code="E0402")
        refuse_none(self.original, inputs)
        if self.writes:
            return accept_all(inputs, declared, partial(inputs_written, self.graph))
        return [accept(value, one) for value, one in zip(inputs, declared, strict=True)]

    def wanted(self, where: str, wrt: Any, values: Sequence[Any]) -> tuple[int, ...]:
        """The positions of the inputs that `wrt` names. Raises RunError for a name or position of no input, or of one without gradient."""
        return wanted(where, wrt, self.graph, values)

    def delivered(self, results: Sequence[Any]) -> list[Any]:
        """The outputs converted for the caller."""
        return [delivered(result, declared.type) for result, declared in zip(results, self.graph.outputs, strict=True)]

    def execute(self, values: list[Any], seed: int | None = None) -> list[Any]:
        """Run on values that `accepted` returned; random numbers come from `seed`, or (None) from the current generator."""
        if self.is_settled:
            return self.execute_settled(values, seed)
        with GRAD_MODE.fresh():
            return self.execute_settled(values, seed)

    def execute_settled(self, values: list[Any], seed: int | None) -> list[Any]:
        """As `execute`, in the current mode of gradients."""
        key = arrays_key(values)
        if self.quick or self.shelf is not None:
            outputs = self.run_quick(values, key)
            if outputs is not None:
                return outputs
        plan = self.get_plan(values, ())
        _last.graph = weakref.ref(plan.shown)
        if seed is None or not plan.is_random:
            compiled = plan.code.plan
            if key is None or not isinstance(compiled, Plan) or not compiled.repeatable or plan.is_random or self.writes \
                    or any(compiled.written) or self.profile is not None and plan is not self.profile.plan:
                return plan.code(values)
            if self.shelf is not None and self.shelf.is_known(values):
                compiled.compile_after = 0
            results = plan.code(values)
            variant = compiled.variants.get(key)
            if variant is not None and variant.function is not None and variant.workspace is not None and len(self.quick) < MAX_QUICK:
                self.quick[key] = Kept(variant.function, variant.workspace, plan.shown)
                if self.shelf is not None and not plan.is_custom:
                    self.shelf.offer(values, variant)
            return results
        with seeded(seed):
            return plan.code(values)

    def run_quick(self, values: Sequence[Any], key: Any) -> list[Any] | None:
        """The results by the compiled function cached for such arrays, without making a spec; None if there is none."""
        if key is None:
            return None
        known = self.quick.get(key)
        if known is None:
            known = self.shelf.find(values) if self.shelf is not None and not custom_passes() else None
            if known is None:
                return None
            self.quick[key] = known
        try:
            results = known(values)
        except Exception as error:
            self.quick.pop(key, None)
            if self.shelf is not None:
                self.shelf.forget(values)
            if not isinstance(error, Changed):
                self.plan_again(values, error)
            return None
        _last.graph = known.graph
        self.counters.count_hit()
        return results

    def plan_again(self, values: Sequence[Any], error: Exception) -> None:
        """After a compiled function raised `error`, run its plan, which raises the same error with the node; report it if the plan does
        not raise."""
        with np.errstate(all="ignore"), seeded(0):
            self.get_plan(list(values), ()).code(list(values))
        failed(error, self.graph, "the function")

    def run_on_tape(self, values: Sequence[Any], tape: Recording) -> list[Any]:
        """Run on values whose tensors are handles, some of them on a tape, which then records the run."""
        plain = [as_arrays(value) for value in values]
        flags = [tape.reaches(value) for value in values]
        if not any(flags):
            return [as_handles(each) for each in self.execute(plain)]
        if not self.is_settled and self.options.optimize:
            return self.plain().run_on_tape(values, tape)       # where switches stay in their places
        plan = self.get_plan(plain, flags)
        if plan.is_unsettled:
            return self.plain().run_on_tape(values, tape)       # where no node that asks about a gradient is among others in a group
        _last.graph = weakref.ref(plan.shown)
        with mode_kept(tape):       # the graph may leave gradients off
            return plan.record(list(values), tape)

    def reaches(self, index: int) -> bool:
        """Could a gradient reach this input if other branches ran? False for a graph without branches and loops."""
        is_reached = self.reached.get(index)
        if is_reached is None:
            is_reached = False
            if any(node.blocks for node in self.graph.block):
                graph = prepared(self.graph) if writes(self.graph) else self.graph     # where reads follow writes, as in a pair of graphs
                is_reached = not requiring(graph, [place == index for place in range(len(graph.inputs))], False).isdisjoint(graph.outputs)
            self.reached[index] = is_reached
        return is_reached

    # -- plans
    def get_plan(self, values: Sequence[Any], flags: Sequence[bool]) -> ExecutionPlan:
        """The plan for these values; `flags` says which of them need gradients."""
        self.counters.count("graph_executor_invocations")
        if not self.options.optimize:
            return self.fallback_plan()
        if self.why_no_plan(values) is not None:
            return self.plain().get_plan(values, flags)
        if self.profile is not None:
            with self._lock, self.explained():
                plan = self.profile.find(values, flags)
            return plan or self.profile.next().get_plan(values, flags)
        spec = self.spec_maker.make(values, flags)
        with self._lock:
            plan = self.plans.get(spec)
            self.counters.count("execution_plan_cache_miss" if plan is None else "execution_plan_cache_hit")
            if plan is None:
                with self.explained():
                    plan = self.plans[spec] = make_plan(self, spec, values, flags)
            return plan

    @contextmanager
    def explained(self) -> Iterator[None]:
        """A context in which an error that an invalid graph causes is replaced by the verifier's report on the graph."""
        try:
            yield
        except ODD as error:
            why = explanation(self.graph)
            if isinstance(error, Error) or why is None:
                raise
            raise why from error

    def why_no_plan(self, values: Sequence[Any]) -> NotLowered | None:
        """Why no plan is made for these values, where none is: plans know no quantized tensors."""
        if self.quantized is not None:
            return NotLowered(f"'{self.quantized.kind}' gives or takes quantized tensors", self.quantized)
        return NotLowered("an input is quantized") if holds_quantized(values) else None

    def plain(self) -> Executor:
        """The executor that interprets the graph, made if necessary."""
        with self._lock:
            if self.interpreting is None:
                self.interpreting = self.nested(self.graph, Options(False, self.options.backend))
            return self.interpreting

    def fallback_plan(self) -> ExecutionPlan:
        """The plan that fits all inputs, made if necessary."""
        with self._lock:
            if self.fallback is None:
                with self.explained():
                    self.fallback = fallback_plan(self)
            return self.fallback

    def forget(self) -> None:
        """Free the functions made so far, and their memory. Plans stay, and make the functions again when they are needed."""
        with self._lock:
            self.quick.clear()
            for plan in self.plans.values():
                plan.forget()

    def nested(self, graph: Graph, options: Options | None = None) -> Executor:
        """An executor for a gradient graph, or with other options; it shares the counters of this one."""
        return Executor(graph, options or self.options, self.counters)


def compile(graph: Graph | Module, *, optimize: bool = True, backend: str = "numpy", native: bool | None = None,
            threads: int = 1, check_saved: bool = False, profiling: bool = False, autodiff_threshold: int | None = None,
            inline_threshold: int | None = None) -> Executor:
    """An executor for a graph, or a Module of one. Raises RunError for arguments that do not fit.

    optimize: False runs only the required passes. backend: the library of the arrays, "numpy" or "cupy".
    native: run groups of pointwise operators as loops in C, through the system's compiler (True: all groups; False: none; None: those on
    large arrays, if there is a compiler). threads: how many threads share large groups and run expensive nodes that do not depend on each
    other, in gradients too; results are the same bit for bit. Matrix products are left to BLAS if it has threads of its own.
    check_saved: for debugging. If the caller writes into an array between `record` and `backward`, gradients are wrong; with this flag
    a checksum of each saved array is taken, and `backward` raises RunError.
    profiling: note the shapes of the first run, then run a plan for these shapes behind a guard (`irtool.execute.profiling`).
    autodiff_threshold, inline_threshold: by default the whole graph is differentiated if possible. With these, groups of at least
    `autodiff_threshold` operators (2) are, those with fewer than `inline_threshold` (5) are inlined again, and a tape joins the groups.
    """
    check_choice("compile", "backend", backend, tuple(BACKENDS))
    if isinstance(graph, Module):
        graph = graph.graph()
    if not isinstance(graph, Graph):
        raise RunError(f"compile: expected a Module or a Graph, got {type(graph).__name__}")
    check_count("compile", "threads", threads)
    for name, threshold in (("autodiff_threshold", autodiff_threshold), ("inline_threshold", inline_threshold)):
        if threshold is not None:
            check_count("compile", name, threshold)
    for name, flag in (("optimize", optimize), ("check_saved", check_saved), ("profiling", profiling)):
        check_flag("compile", name, flag)
    if native is not None and native is not True and native is not False:
        raise misfit("compile", "native", native, "True, False or None")
    warn_of_rounded(graph)
    from irtool.execute.device.device_executor import new_executor

    by_groups = autodiff_threshold is not None or inline_threshold is not None
    return new_executor(graph, Options(
        optimize, backend, not by_groups, autodiff_threshold or 2, inline_threshold or 5, native=native, threads=threads,
        check_saved=check_saved, profiling=profiling))
