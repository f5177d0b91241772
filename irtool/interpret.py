"""The reference interpreter: runs nodes in order and control flow, and frees values after their last use.

`walk(graph, inputs, call)` handles nodes, blocks and last uses, and passes values to the function `call` without looking at them. So a
graph can run on arrays, on tensors under layers, or on any other values for which there is a `call`. `run` is `walk` on NumPy arrays
(`irtool.ops.call`).

In `run`, tensors are arrays, also those without dimensions; int, float, bool, complex, str, None, list, tuple and dict are Python's; a
device is its name, a dtype torch's number; an undefined tensor is None. A 0-d constant of the text (`Double() = {2.5}`) is a Python number
until an operator needs an array. Lists and dicts are references, views share memory, and in-place operators write into it.
"""
from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextlib import nullcontext
from typing import Any, Protocol

from irtool.accepted_values import accept, arrays_in, copied, delivered
from irtool.ir.awaitables import with_awaitables_late
from irtool.ir.builder import NOTHING
from irtool.ir.defaults import completed
from irtool.ir.effects import IF_KINDS, LOOP_KINDS, changes_list, may_write_or_is_python
from irtool.ir.errors import Error, OutputError, RunError, UnsupportedError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.module import Module
from irtool.ir.verify import explanation
from irtool.ops.array_library import np
from irtool.ops.arrays import current_namespace, namespace_for, seeded, using
from irtool.ops.device import backend as backend_called
from irtool.ops.kernels.prim import GRAD_MODE, is_there
from irtool.ops.node_calls import call_node
from irtool.ops.python_op import register_python_op
from irtool.shared_inputs import accept_with_clashes, guarded

Call = Callable[[Node, list[Any]], Sequence[Any]]
"""Runs one node without blocks: takes the operands, returns one value per result."""


class Control(Protocol):
    """Called for branches and loops before they are decided; a result of None leaves them to the walk."""

    def branch(self, walk: Walk, step: Step, condition: Any) -> list[Any] | None:
        """The results of an If."""

    def repeat(self, walk: Walk, step: Step, rounds: Rounds, condition: Any, carried: list[Any]) -> list[Any] | None:
        """The final carried values of a Loop, whose rounds so far are done."""


class Observer:
    """Its methods are called during a walk. They do nothing: override those you need."""

    def before(self, node: Node, operands: Sequence[Any]) -> None:
        """Called before `node` runs; not for control flow."""

    def after(self, node: Node, results: Sequence[Any]) -> None:
        """Called after `node` ran; for control flow, after it ended."""

    def released(self, value: Value, content: Any) -> None:
        """Called after the last read of `value`, when the interpreter frees `content`."""


class Step:
    """One node of a block, and the values to free before its blocks run (`early`) and after it (`late`)."""

    __slots__ = ("node", "operands", "results", "early", "late", "enter")

    def __init__(self, node: Node, early: tuple[Value, ...], late: tuple[Value, ...], is_closed: bool = False) -> None:
        self.node = node
        self.operands = node.inputs
        self.results = node.outputs
        self.early = early
        self.late = late
        self.enter = None if is_closed else _control(node)      # None for a node that `call` runs


class Plan:
    """A block prepared for walking."""

    __slots__ = ("block", "steps", "unused_inputs", "own_results")

    def __init__(self, block: Block, steps: list[Step], unused_inputs: tuple[Value, ...], own_results: tuple[Value, ...]) -> None:
        self.block = block
        self.steps = steps
        self.unused_inputs = unused_inputs
        self.own_results = own_results      # results defined in the block itself, freed when the block ends


def plan_block(block: Block, plans: dict[Block, Plan], closed: Container[Node] = ()) -> dict[Value, None]:
    """Compute the last uses in a block and the blocks in it; returns the outer values that it reads.

    closed: nodes that run as a whole though they have inner graphs.

    (Tuples are made from lists, not from generators, which CPython's free lists would keep, so that memory would seem to grow.)
    """
    later: set[Value] = set(block.outputs)
    outer = {value: None for value in block.outputs if value.node.owner is not block}
    steps: list[Step] = []
    node = block.return_node.prev
    while node is not block.param_node and node is not block.return_node:
        inner: dict[Value, None] = {}       # dicts, not sets, so that the order in which values are freed is deterministic
        for nested in node.blocks:
            inner.update(plan_block(nested, plans, closed))
        subgraph = node.subgraph
        if subgraph is not None and subgraph.block not in plans:
            plan_block(subgraph.block, plans, closed)
        read = {**dict.fromkeys(node.inputs), **inner}
        dying = [value for value in read if value not in later and value.node.owner is block]
        early = tuple([value for value in dying if value not in inner]) if node.blocks else ()
        late = [value for value in dying if value in inner or not node.blocks]
        late += [value for value in node.outputs if value not in later]
        steps.append(Step(node, early, tuple(late), node in closed))
        outer.update({value: None for value in read if value.node.owner is not block})
        later.update(read)
        node = node.prev
    steps.reverse()
    unused = tuple([value for value in block.inputs if value not in later])
    own_results = tuple([value for value in dict.fromkeys(block.outputs) if value.node.owner is block])
    plans[block] = Plan(block, steps, unused, own_results)
    return outer


class Frame:
    """The position of the walk in one block, and what to do when the block ends."""

    __slots__ = ("plan", "at", "step", "leave", "state")

    def __init__(self, plan: Plan, step: Step | None, leave: Callable[[Walk, Frame, list[Any]], None] | None, state: Any = None) -> None:
        self.plan = plan
        self.at = 0
        self.step = step        # the node whose block this is; None for the graph's own
        self.leave = leave      # called with the block's results: finishes the node, or starts the next round
        self.state = state


class Walk:
    """One run of a graph: the values alive now, and a stack of blocks (no recursion)."""

    __slots__ = ("env", "plans", "stack", "call", "observer", "closed", "control")

    def __init__(self, call: Call, observer: Observer | None, closed: Container[Node] = (), control: Control | None = None,
                 plans: dict[Block, Plan] | None = None) -> None:
        self.env: dict[Value, Any] = {}
        self.plans: dict[Block, Plan] = {} if plans is None else plans
        self.stack: list[Frame] = []
        self.call = call
        self.observer = observer
        self.closed = closed
        self.control = control

    def run(self, graph: Graph, inputs: list[Any]) -> list[Any]:
        """The graph's results. Empties the list `inputs`, so that each input can be freed after its last use."""
        if graph.block not in self.plans:
            for value in plan_block(graph.block, self.plans, self.closed):
                if value.node.kind == "prim::Omitted":
                    raise located(RunError(f"%{value.name} is left out of the text, which says '...': there is nothing to run"),
                                  next(node for node in (*graph.walk(), graph.block.return_node) if value in node.inputs))
        return self.run_block(graph.block, inputs)

    def run_block(self, block: Block, inputs: list[Any]) -> list[Any]:
        """The results of a block that has a plan. Empties the list `inputs`, as `run` does."""
        taken = list(inputs)
        inputs.clear()
        self.push(block, taken, None, None)
        del taken
        while True:
            frame = self.stack[-1]
            if frame.at < len(frame.plan.steps):
                step = frame.plan.steps[frame.at]
                frame.at += 1
                try:
                    if step.enter is not None:
                        step.enter(self, step)
                    else:
                        self.step(step)
                except Exception as error:
                    raise located(error, step.node) from error
                continue
            env = self.env
            results = [env[value] for value in frame.plan.block.outputs]
            for value in frame.plan.own_results:
                self.release(value)
            self.stack.pop()
            if frame.leave is None:
                return results
            frame.leave(self, frame, results)

    def step(self, step: Step) -> None:
        """Run a node without blocks."""
        env = self.env
        operands = [env[value] for value in step.operands]
        if self.observer is not None:
            self.observer.before(step.node, operands)
        self.finish(step, self.call(step.node, operands))

    def finish(self, step: Step, results: Sequence[Any]) -> None:
        """Bind a node's results, and free the values that it was the last to read."""
        if self.observer is not None:
            self.observer.after(step.node, results)
        self.env.update(zip(step.results, results, strict=True))
        for value in step.late:
            self.release(value)

    def release(self, value: Value) -> None:
        """Free a value after its last use."""
        content = self.env.pop(value, None)
        if self.observer is not None:
            self.observer.released(value, content)

    def push(self, block: Block, values: list[Any], step: Step | None, leave: Callable[[Walk, Frame, list[Any]], None] | None,
             state: Any = None) -> None:
        """Start a block with these values as its inputs."""
        plan = self.plans[block]
        self.env.update(zip(block.inputs, values, strict=True))
        for value in plan.unused_inputs:
            self.release(value)
        self.stack.append(Frame(plan, step, leave, state))


def walk(graph: Graph, inputs: list[Any], call: Call, observer: Observer | None = None, closed: Container[Node] = (),
         control: Control | None = None, plans: dict[Block, Plan] | None = None) -> list[Any]:
    """Run `graph` on values that `call` understands; returns one value per output.

    Empties the list `inputs`, and frees every value after its last use. An exception of `call` is raised as an `irtool.Error` with the
    node's line. closed: nodes with inner graphs that `call` runs as a whole. control: called for branches and loops before they are
    decided. plans: a cache of last uses for further walks of the graph, which must not change. Raises RunError for a wrong number of
    inputs.
    """
    if len(inputs) != len(graph.inputs):
        raise RunError(f"expected {len(graph.inputs)} inputs, got {len(inputs)}", code="E0402")
    return Walk(call, observer, closed, control, plans).run(graph, inputs)


# -- control flow
def _control(node: Node) -> Callable[[Walk, Step], None] | None:
    if node.kind in IF_KINDS and len(node.blocks) == 2:
        return _enter_if
    if node.kind in LOOP_KINDS and len(node.blocks) == 1:
        return _enter_loop
    if node.kind in ("prim::GradOf", "GradOf") and len(node.blocks) == 1:
        return _enter_grad_of
    if node.blocks:
        return _refuse_blocks
    is_entered = node.subgraph is not None and node.kind != "prim::Closure"        # a closure runs where it is called
    return _enter_subgraph if is_entered else None


def _refuse_blocks(walk: Walk, step: Step) -> None:
    raise UnsupportedError(f"{step.node.kind} with {len(step.node.blocks)} block(s) is not supported")


def _release_early(walk: Walk, step: Step) -> None:
    for value in step.early:
        walk.release(value)


def _enter_if(walk: Walk, step: Step) -> None:
    if walk.control is not None:
        results = walk.control.branch(walk, step, walk.env[step.operands[0]])
        if results is not None:
            _release_early(walk, step)
            walk.finish(step, results)
            return
    taken = step.node.blocks[0 if walk.env[step.operands[0]] else 1]
    _release_early(walk, step)
    walk.push(taken, [], step, _leave_block)


def _leave_block(walk: Walk, frame: Frame, results: list[Any]) -> None:
    step = frame.step
    assert step is not None
    if len(results) < len(step.results):
        raise located(RunError(f"{step.node.kind} has {len(step.results)} results, what it runs gives {len(results)}"), step.node)
    walk.finish(step, results[:len(step.results)])


class Rounds:
    """The state of a loop: the number of rounds done, and the limit."""

    __slots__ = ("done", "limit")

    def __init__(self, limit: int | None) -> None:
        self.done = 0
        self.limit = limit


def _enter_loop(walk: Walk, step: Step) -> None:
    limit, condition, *carried = [walk.env[value] for value in step.operands]
    _release_early(walk, step)
    _next_round(walk, step, Rounds(limit if limit is None else int(limit)), condition, carried)


def _next_round(walk: Walk, step: Step, rounds: Rounds, condition: Any, carried: list[Any]) -> None:
    if walk.control is not None:
        results = walk.control.repeat(walk, step, rounds, condition, carried)
        if results is not None:
            walk.finish(step, results)
            return
    if (rounds.limit is None or rounds.done < rounds.limit) and truth(condition, step.node):
        block = step.node.blocks[0]
        values = [rounds.done, *carried]
        rounds.done += 1
        walk.push(block, values, step, _leave_round, rounds)
    else:
        walk.finish(step, carried)


def truth(condition: Any, node: Node) -> bool:
    """A condition as a bool. Raises RunError, at the node, for a tensor that has not one element."""
    try:
        return bool(condition)
    except ValueError as error:
        raise located(error, node) from error


def _leave_round(walk: Walk, frame: Frame, results: list[Any]) -> None:
    assert frame.step is not None
    _next_round(walk, frame.step, frame.state, results[0], results[1:])


def _enter_grad_of(walk: Walk, step: Step) -> None:
    defined = any(is_there(walk.env[value]) for value in step.operands)
    _release_early(walk, step)
    if defined:
        walk.push(step.node.blocks[0], [], step, _leave_block)
    else:
        walk.finish(step, [NOTHING.get(value.type.key) for value in step.node.outputs])     # a result may be a number


def _enter_subgraph(walk: Walk, step: Step) -> None:
    graph = step.node.subgraph
    assert graph is not None
    operands = [walk.env[value] for value in step.operands]
    if len(operands) != len(graph.inputs):
        raise RunError(f"{step.node.kind} gives {len(operands)} values to a graph of {len(graph.inputs)} inputs")
    walk.push(graph.block, operands, step, _leave_block)


def located(error: Exception, node: Node) -> Error:
    """An error as an `irtool.Error` with the line of the node. Raises OutputError unchanged, since it is not the node's."""
    if isinstance(error, OutputError):
        raise error
    if isinstance(error, Error):
        if error.diagnostics:
            return error
    elif isinstance(error, MemoryError):
        error = RunError(f"{node.kind}: not enough memory{': ' if str(error) else ''}{error}", code="E0406")
    elif isinstance(error, ValueError) and str(error).startswith("The truth value of an"):      # NumPy's words
        amount = "no values" if "empty" in str(error) else "more than one value"
        error = RunError(f"Boolean value of Tensor with {amount} is ambiguous", code="E0407")
    else:
        error = RunError(f"{node.kind}: {type(error).__name__}: {error}", code="E0414")
    graph = node.graph
    source = graph.source if graph is not None else None
    diagnostic = source.about(node.line, node.source, error.message) if source is not None else None
    return error.at(() if diagnostic is None else [diagnostic])


ODD = (LookupError, TypeError, ValueError, AttributeError)
"""Exceptions that mostly mean that the graph is invalid."""


# -- on arrays
def run(graph: Graph | Module, inputs: Sequence[Any], *, seed: int | None = 0, observer: Observer | None = None,
        backend: str | None = None, accepted: bool = False) -> list[Any]:
    """Run a graph (or a Module of one) on NumPy arrays and Python values; returns one Python value per output.

    Tensors are arrays of torch's dtypes and shapes, also those without dimensions; a Python number for a tensor input becomes a 0-d array.
    bfloat16 is float32. The caller's arrays, lists and dicts are never modified; outputs may be views of inputs where torch returns views.
    Random operators draw from a NumPy generator seeded with `seed` (values are not torch's); None: from the current generator. backend:
    "numpy", or "cupy" to run on CuPy arrays: NumPy arrays are copied to the device, and outputs stay there; None: cupy if an input is a
    CuPy array. accepted: the inputs are results of another graph, and need no check. Raises RunError for wrong inputs and where torch
    raises, with the line of the node; UnsupportedError naming an operator without a kernel; VerifyError for an invalid graph.
    """
    if isinstance(graph, Module):
        graph = graph.graph()
    if not isinstance(graph, Graph):
        raise RunError(f"run: expected a Module or a Graph, got {type(graph).__name__}")
    if isinstance(inputs, str) or not isinstance(inputs, Sequence):
        raise RunError(f"run: expected a list of inputs, one per input of the graph ({_signature(graph)}), got {type(inputs).__name__}")
    graph, inputs = with_awaitables_late(graph), completed(graph, inputs)
    if len(inputs) != len(graph.inputs):
        raise RunError(f"expected {len(graph.inputs)} inputs ({_signature(graph)}), got {len(inputs)}", code="E0402")
    namespace = namespace_for(inputs) if backend is None else backend_called(backend)
    if namespace is not current_namespace():
        with using(namespace):
            return run(graph, inputs, seed=seed, observer=observer, backend=backend, accepted=accepted)
    writers = writers_of(graph)
    call: Call = call_node
    if writers and not all(map(changes_list, writers)):
        given, clashes = (inputs, []) if accepted else accept_with_clashes(inputs, graph.inputs)
        values = copied(given)
        if clashes:
            pairs = zip(arrays_in(given, on_device=True), arrays_in(values, on_device=True), strict=True)
            call = guarded(call_node, graph.inputs, clashes, {id(each): copy for each, copy in pairs})
    else:
        values = list(inputs) if accepted else [accept(value, declared) for value, declared in zip(inputs, graph.inputs, strict=True)]
        if writers:
            values = copied(values, [False] * len(values))
    try:
        with np.errstate(all="ignore"), GRAD_MODE.fresh(), seeded(seed) if seed is not None else nullcontext():
            results = walk(graph, values, call, observer)
    except Exception as error:
        if isinstance(error.__cause__ if isinstance(error, Error) else error, ODD):
            why = explanation(graph)        # graphs are not verified before a run
            if why is not None:
                raise why from error
        raise
    return [delivered(result, declared.type) for result, declared in zip(results, graph.outputs, strict=True)]


def all_nodes(graph: Graph) -> list[Node]:
    """All nodes of a graph, of its blocks, and of inner graphs of its nodes."""
    nodes: list[Node] = []
    graphs = [graph]
    while graphs:
        for node in graphs.pop().walk():
            nodes.append(node)
            inner = node.subgraph
            if inner is not None:
                graphs.append(inner)
    return nodes


def writers_of(graph: Graph) -> list[Node]:
    """The nodes, of inner graphs too, that may write into memory that existed before; Python operators may."""
    return list(filter(may_write_or_is_python, all_nodes(graph)))


def _signature(graph: Graph) -> str:
    return ", ".join(f"%{value.name} : {value.type}" for value in graph.inputs)


__all__ = ["Call", "Observer", "register_python_op", "run", "walk"]
