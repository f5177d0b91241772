"""`irtool.run` and `irtool.vjp`: the reference interpreter the first time, an executor from the second run on inputs of one kind.

The kind of inputs is their dtypes and ranks. Making a plan takes as long as about three runs of the interpreter (gradients: as six
differentiations), so a graph that runs once is interpreted. A graph refers to its executors, and both are freed together. A graph may be
changed between two runs: each run compares its facts, 0.2 microseconds a node; `irtool.compile` copies its graph and need not.

Errors have the reference's words: if a plan fails, the interpreter runs the graph again, unless side effects would happen twice.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import ref

from irtool.accepted_values import refuse_none
from irtool.analysis.liveness import remove_dead_nodes
from irtool.execute.argument_spec import arrays_key
from irtool.execute.fallbacks import Fault, failed, is_fault, is_strict
from irtool.interpret import Observer, all_nodes
from irtool.interpret import run as interpreted
from irtool.ir.arguments import ONE_PER_OUTPUT, check_flag, check_list, check_seed, misfit, positions
from irtool.ir.defaults import completed
from irtool.ir.edits import clone_graph
from irtool.ir.effects import facts_of
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ir.graph import Graph, Node
from irtool.ir.module import Module
from irtool.ir.rounded import warn_of_rounded
from irtool.ops.array_library import np
from irtool.ops.arrays import current_namespace, is_array, namespace_for, using
from irtool.ops.device import backend as backend_called
from irtool.torchscript.library_calls import opened

if TYPE_CHECKING:
    from irtool.execute.executor import Executor

MAX_GRAPHS = 256
"""The number of graphs that keep their executors and the memory of their plans."""
MAX_KINDS = 1000
"""The number of kinds of inputs remembered per graph; then all are forgotten."""

_lock = Lock()
_kept: deque[ref[Graph]] = deque()


class Runs:
    """The executors made for one graph so far, and the facts that they depend on."""

    __slots__ = ("facts", "opened", "seen", "executors", "passes", "has_effects", "lock")

    def __init__(self, facts: list[Any], whole: Graph | None) -> None:
        self.opened = whole                             # the graph with calls of torch's functions inlined, if it has any
        self.facts = facts                              # of the graph when these executors were made
        self.seen: set[Any] = set()
        self.executors: dict[str, Executor] = {}        # by backend
        self.passes: tuple[Any, ...] = ()               # custom passes registered when the executors were made
        self.has_effects = False
        self.lock = Lock()

    def has_seen(self, kind: Any) -> bool:
        """Has the graph run on inputs of this kind before? Marks that it has from now on."""
        if kind in self.seen:
            return True
        if len(self.seen) >= MAX_KINDS:
            self.seen.clear()
        self.seen.add(kind)
        return False

    def executor(self, graph: Graph, backend: str) -> Executor:
        """The graph's executor, made if necessary."""
        from irtool.execute.phases import registered  # here, so that a graph that runs once does not wait for the imports

        with self.lock:
            if self.passes != registered:
                self.executors.clear()
            executor = self.executors.get(backend)
            return executor if executor is not None else self.make(self.opened or graph, backend, registered)

    def make(self, graph: Graph, backend: str, passes: tuple[Any, ...]) -> Executor:
        """Make an executor."""
        from irtool.execute.compilation import Options
        from irtool.execute.device.device_executor import new_executor
        from irtool.execute.plan.compiled import HARMLESS

        self.has_effects = any(facts_of(node.kind).side_effects and node.kind not in HARMLESS for node in all_nodes(graph))
        self.passes = passes
        executor = self.executors[backend] = new_executor(graph, Options(backend=backend))
        keep(graph)
        return executor


def keep(graph: Graph) -> None:
    """Count a graph with executors; if there are too many, the oldest graph loses its executors."""
    with _lock:
        _kept.append(ref(graph))
        while len(_kept) > MAX_GRAPHS:
            oldest = _kept.popleft()()
            if oldest is not None:
                oldest.runs = None


def runs_of(graph: Graph) -> Runs:
    """The executors of a graph; none yet if the graph has changed since they were made."""
    facts = facts_now(graph)
    with _lock:
        runs = graph.runs
        if not isinstance(runs, Runs) or runs.facts != facts:
            whole = opened(graph)
            runs = graph.runs = Runs(facts, whole if whole is not graph else None)
        return runs


def facts_now(graph: Graph) -> list[Any]:
    """All that a run of a graph depends on. Comparing two is fast: mostly by identity, since edits replace tuples and never change them."""
    facts: list[Any] = [graph.dialect, graph.source]
    blocks = [graph.block]
    for block in blocks:        # the loop appends inner blocks
        node = block.param_node
        while node is not block.return_node:
            attributes = node.attributes
            facts += (node.kind, node.inputs, node.outputs, attributes)
            for value in node.outputs:
                facts.append(value.type)
            if node.blocks:
                facts.append(node.blocks)
                blocks += node.blocks
            if "Subgraph" in attributes:
                blocks += [inner.block for inner in node.graphs.values()]
            node = node.next if node is not block.param_node else block.return_node.next
        facts.append(block.return_node.inputs)
    return facts


def kind_of(inputs: Sequence[Any]) -> Any:
    """The kind of inputs, an approximation of a spec: dtypes and ranks of arrays, Python types of all other values."""
    return tuple([(value.dtype, value.ndim) if is_array(value) else type(value) for value in inputs])


def executor_for(graph: Graph, inputs: Sequence[Any], more: Any) -> tuple[Runs, Executor | None]:
    """The executor, if the graph ran on inputs of this kind before. more: a further part of the key."""
    runs = runs_of(graph)
    namespace = current_namespace()
    backend = "numpy" if namespace is np else "cupy"
    return runs, runs.executor(graph, backend) if runs.has_seen((backend, more, kind_of(inputs))) else None


def run(graph: Graph | Module, inputs: Sequence[Any], *, seed: int | None = 0, observer: Observer | None = None,
        backend: str | None = None, interpret: bool = False) -> list[Any]:
    """Run a graph (or a Module of one) on NumPy arrays and Python values; returns one Python value per output.

    Tensors are arrays of torch's dtypes and shapes, also those without dimensions; a Python number for a tensor input becomes a 0-d array.
    bfloat16 is float32. The caller's arrays, lists and dicts are never modified; outputs may be views of inputs where torch returns
    views. Random operators draw from a NumPy generator seeded with `seed` (values are not torch's); None: from the current generator.
    backend: "numpy", or "cupy" to run on CuPy arrays: NumPy arrays are copied to the device, and outputs stay there; None: cupy if an
    input is a CuPy array. interpret: always run the reference interpreter. observer: its methods are called for each node.
    Raises RunError for wrong inputs and where torch raises, with the line of the node; UnsupportedError naming an operator without a
    kernel; VerifyError for an invalid graph.
    """
    check_seed("run", seed)
    check_flag("run", "interpret", interpret)
    if observer is not None and not isinstance(observer, Observer):
        raise misfit("run", "observer", observer, "an irtool.interpret.Observer or None")
    if isinstance(graph, Module):
        graph = graph.graph()
    if isinstance(graph, Graph):
        if not interpret and observer is None and backend is None and (inputs.__class__ is list or inputs.__class__ is tuple):
            key = arrays_key(inputs)
            results = cached(graph, "quick", key, "run_again", inputs, key)
            if results is not None:
                return results
        inputs = completed(graph, inputs)
        refuse_none(graph, inputs)
    if interpret or observer is not None or not is_call(graph, inputs):
        if isinstance(graph, Graph):
            warn_of_rounded(graph)
            graph = opened(graph)
        return needed(graph, inputs, seed, observer, backend)
    namespace = namespace_for(inputs) if backend is None else backend_called(backend)
    if namespace is not current_namespace():
        with using(namespace):
            return run(graph, inputs, seed=seed, backend=backend)
    warn_of_rounded(graph)
    runs, executor = executor_for(graph, inputs, None)

    def reference() -> list[Any]:
        return needed(runs.opened or graph, inputs, seed, None, backend)

    return reference() if executor is None else tried(graph, runs, lambda: executor.run(inputs, seed), reference)


def needed(graph: Any, inputs: Sequence[Any], seed: int | None, observer: Observer | None, backend: str | None) -> list[Any]:
    """The results of the interpreter; if a node raises, those of the nodes that results depend on: torch, like a plan, runs no others."""
    try:
        return interpreted(graph, inputs, seed=seed, observer=observer, backend=backend)
    except RunError:
        if observer is not None or not isinstance(graph, Graph) or any(has_more_effects(node, seed) for node in all_nodes(graph)):
            raise
        rest = clone_graph(graph)
        if not remove_dead_nodes(rest):
            raise
    return interpreted(rest, inputs, seed=seed, backend=backend)


def has_more_effects(node: Node, seed: int | None) -> bool:
    """May a second run of a node be seen?"""
    facts = facts_of(node.kind)
    return facts.side_effects or facts.is_random and seed is None or node.kind[:1] == "^"


def vjp(graph: Graph | Module, inputs: Sequence[Any], cotangents: Sequence[Any], wrt: Sequence[int], *,
        interpret: bool = False) -> list[Any]:
    """Gradients by reverse differentiation: one array per index in `wrt` (a list of them for a list), None where no gradient can reach.

    cotangents: one per tensor of the outputs, those of tuples, lists and dicts in order; or one per output, a list for a list and a
    dict for a dict, by key; None: takes no part.
    `wrt` alone decides what needs a gradient, whatever `requires_grad=0` the types say. A gradient has the dtype and shape of its input.
    interpret: always differentiate the whole graph and interpret f and df; a graph that cannot be differentiated as a whole is
    interpreted on a tape, node by node.
    Raises UnsupportedError naming an operator that has no gradient yet; RunError for wrong inputs and cotangents.
    """
    check_flag("vjp", "interpret", interpret)
    if isinstance(graph, Module):
        graph = graph.graph()
    if isinstance(graph, Graph):
        if not interpret and (inputs.__class__ is list or inputs.__class__ is tuple) and wrt.__class__ in (list, tuple):
            check_list("vjp", "cotangents", cotangents, ONE_PER_OUTPUT)
            key, places = arrays_key(inputs), positions("vjp", wrt, graph)
            gradients = cached(graph, "joined", (key, places), "vjp_again", inputs, cotangents, places, key)
            if gradients is not None:
                return gradients
        warn_of_rounded(graph)
        inputs = completed(graph, inputs)
        refuse_none(graph, inputs)
    from irtool.execute import graph_gradients

    if interpret or not is_call(graph, inputs):
        return graph_gradients.vjp(opened(graph) if isinstance(graph, Graph) else graph, inputs, cotangents, wrt)
    namespace = namespace_for(inputs)
    if namespace is not current_namespace():
        with using(namespace):
            return vjp(graph, inputs, cotangents, wrt)
    check_list("vjp", "cotangents", cotangents, ONE_PER_OUTPUT)
    chosen = positions("vjp", wrt, graph)
    has_cotangent = tuple([each is not None for each in cotangents])
    runs, executor = executor_for(graph, inputs, (chosen, has_cotangent))

    def reference() -> list[Any]:
        return graph_gradients.vjp(runs.opened or graph, inputs, cotangents, wrt)

    def planned() -> list[Any]:
        return runs.executor(graph, "numpy" if namespace is np else "cupy").vjp(inputs, cotangents, wrt)

    if executor is not None and not runs.has_effects:       # an error of such a graph has its line only from the reference
        return tried(graph, runs, planned, reference)
    try:
        return reference()
    except UnsupportedError as error:       # for the whole graph; node by node it may work
        try:
            return planned()
        except Exception as other:
            if is_strict() and is_fault(other):
                raise
            raise error from None


def cached(graph: Graph, functions: str, key: Any, method: str, *args: Any) -> list[Any] | None:
    """The results of a method of the graph's executor, if that has cached a function (in `quick` or `joined`) under this key, and neither
    the graph nor custom passes have changed since.

    None if there is none, and if it fails: then the caller runs the graph in the usual way, which reports the error. Cached functions have
    no side effects, so that nothing happens twice.
    """
    runs = graph.runs
    executor = runs.executors.get("numpy") if isinstance(runs, Runs) and current_namespace() is np else None
    if executor is None or key not in getattr(executor, functions) or runs_of(graph) is not runs:
        return None
    from irtool.execute.phases import registered

    if runs.passes != registered:
        return None
    try:
        results: list[Any] | None = getattr(executor, method)(*args)
        return results
    except Fault:
        raise
    except Exception:
        return None


def is_call(graph: Any, inputs: Any) -> bool:
    """Is `graph` a graph, and `inputs` a list or tuple of as many values as it has inputs?"""
    return isinstance(graph, Graph) and isinstance(inputs, list | tuple) and len(inputs) == len(graph.inputs)


def tried(graph: Graph, runs: Runs, planned: Callable[[], list[Any]], reference: Callable[[], list[Any]]) -> list[Any]:
    """The results of a plan; if it fails, those of the reference, or its error. A graph with side effects does not run twice."""
    try:
        return planned()
    except Fault:
        raise
    except Exception as error:
        if runs.has_effects:
            raise
        why = error
    results = reference()
    failed(why, graph)      # only the plan fails: warn
    return results
