"""`irtool.jit(f)`: a function traced for each path it takes, its graphs run by executors.

    fast = irtool.jit(irtool.vmap(irtool.grad(loss), in_dims=(None, 0, 0)))
    fast(w, x, y)               # traces, and computes
    fast(w, x2, y2)             # runs the graph: dtypes and sizes are the same, and so are the decisions of the trace

A signature is the dtypes and sizes of arrays, the classes of numbers and the values of all other arguments, and what the function reads
from outside its arguments (`irtool.execute.jit_surroundings`). For one signature the function may have several variants: a variant is a
trace and its decisions (`irtool.dispatch.follower`), the answers that Python got about elements and numbers. Each run compares its answers
with the decisions, before it writes into an argument; if they differ, another variant runs, or is traced. Under a layer (inside grad, vmap,
trace) the Python function itself is called, and the layer sees its operations.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from itertools import count
from threading import RLock
from typing import Any
from warnings import warn

from irtool.dispatch.backend import BACKEND
from irtool.dispatch.callables import graph_of
from irtool.dispatch.followed import followed
from irtool.dispatch.stack import current
from irtool.dispatch.tracer import TraceWarning
from irtool.dispatch.trees import flatten, unflatten
from irtool.execute.argument_spec import arrays_key
from irtool.execute.executor import Executor
from irtool.execute.jit_arguments import pattern, repeats, signature
from irtool.execute.jit_graphs import JittedGraph
from irtool.execute.jit_layers import run_on_layer
from irtool.execute.jit_surroundings import PLAIN, Surroundings, held_by
from irtool.execute.jit_trace import trace_call
from irtool.execute.jit_variants import Call, Fork, Outer, Tree, Variant, Variants
from irtool.ir.arguments import check_function
from irtool.ir.errors import RunError
from irtool.ir.graph import counted
from irtool.ops.array_library import np
from irtool.ops.tensor import Tensor

MAX_SIGNATURES = 1000
MAX_VARIANTS = 16
"""The largest number of variants of one signature for equal numbers among the arguments."""
MAX_QUICK = 256
MAX_SURROUNDINGS = 16
"""The number of states of what the function reads from outside, from which on all variants are forgotten with each new state."""

STATES = count(1)


class Jitted:
    """A jitted function: the function and its variants. May be called from several threads at once."""

    def __init__(self, function: Callable[..., Any], held: tuple[Any, ...] = ()) -> None:
        """held: arguments that have contents, as a captured object has. What the function reads from them is compared in each call, too."""
        update_wrapper(self, function)      # first, since it copies the attributes of `function`, which may be jitted too
        self.function = function
        self.trees: dict[Any, Tree] = {}
        self.quick: dict[Any, tuple[Executor, Any]] = {}        # variants without decisions, by arguments that are all arrays
        self.why = ""                   # why the last call was traced
        self.surroundings = Surroundings((function, *held) if held else function)
        self.by_held: dict[Any, Jitted] = {}        # the same function for calls with such arguments, by their keys
        self.states: dict[Any, int] = {}        # states of the surroundings, by number
        self.state = 0
        self.unkept: Variant | None = None      # the last trace of a function that is traced in each call
        self.changed = ""               # what the last change of the state was
        self._lock = RLock()

    def __repr__(self) -> str:
        return f"<jitted {getattr(self.function, '__qualname__', self.function)}, {counted(self.signatures, 'signature')}>"

    def __reduce__(self) -> Any:
        """Pickled by name where `@jit` has put it in the function's place, else with the function; it is traced again where it runs."""
        module, name = sys.modules.get(self.__module__), getattr(self, "__qualname__", "")
        return name if getattr(module, name, None) is self else (jit, (self.function,))

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The function's result; arguments are written as the function writes them. Raises the function's errors; RunError if it returns
        neither tensors nor numbers, or needs more than MAX_VARIANTS variants."""
        layer = current()
        if layer is not BACKEND:
            return run_on_layer(followed(self.function) if is_followed(layer) else self.function, args, named)
        values = [each.array if each.__class__ is Tensor else each for each in args]
        kind = arrays_key(values) if not named else None
        if kind is None and not PLAIN.issuperset(map(type, (*args, *named.values()))) and (held := held_by(*flatten((args, named)))):
            jitted = self.holding(held)
            results = jitted._call(args, named, None, values)
            self.why = jitted.why
            return results
        return self._call(args, named, kind, values)

    def _call(self, args: tuple[Any, ...], named: dict[str, Any], kind: Any, values: list[Any]) -> Any:
        """A call outside of layers. kind: the key of the values if all are arrays."""
        if self.surroundings.has_changed():
            self.enter_state()
        if self.surroundings.opaque:
            return self.run(args, named)
        known = self.quick.get(kind) if kind is not None else None
        if known is None:
            return self.run(args, named, kind)
        executor, shape = known
        self.why = ""
        results = executor.run_quick(values, kind) if executor.quick else None
        return unflatten(shape, [Tensor(each) for each in (executor.run(values, None) if results is None else results)])

    def run(self, args: tuple[Any, ...], named: dict[str, Any], quick: Any = None) -> Any:
        """A call that is not answered by the cache `self.quick`. quick: the key under which the variant may be cached there."""
        arguments = args, named
        leaves, shape = flatten(arguments)
        call = Call(leaves)
        if self.surroundings.opaque:
            return self.trace_for_now(call, arguments, shape)
        tree = self.tree((self.state, signature(leaves, shape), pattern(leaves), repeats(arguments)))
        known: dict[Fork, Any] = {}
        failed: list[Variant] = []
        variant = tree.last if tree.last is not None and all(each.step < 0 for each in tree.last.guards) else tree.find(call, known)
        while True:
            if variant is None:
                with self._lock:
                    variant = tree.find(call, known, failed)        # another thread may have traced it
                    if variant is None:
                        return self.trace(tree, call, arguments, shape, known, bool(failed))
            answers = call.answers(variant.steps)
            try:
                outputs, others = variant.run(leaves, answers)
            except Exception:       # this call may take another path; if not, tracing raises the error in the user's line
                failed.append(variant)
                variant = tree.find(call, known, failed)
                continue
            if others is None:
                self.why = ""
                tree.note(variant)
                if quick is not None and tree.root is variant and variant.is_plain and variant.tensors == list(range(len(args))) \
                        and len(self.quick) < MAX_QUICK:
                    self.quick[quick] = variant.executor, variant.shape
                return unflatten(variant.shape, variant.deliver(leaves, arguments, outputs, answers))
            known.update(others)
            variant = tree.find(call, known, failed)

    def tree(self, key: Any) -> Tree:
        """The variants of a signature."""
        tree = self.trees.get(key)
        if tree is None:
            with self._lock:
                if len(self.trees) >= MAX_SIGNATURES:
                    self.clear()
                tree = self.trees.setdefault(key, Tree())
        return tree

    def holding(self, held: dict[Any, Any]) -> Jitted:
        """The same function for calls with these arguments that have contents."""
        key = tuple(held)
        with self._lock:
            jitted = self.by_held.get(key)
            if jitted is None:
                if len(self.by_held) >= MAX_SIGNATURES:
                    self.clear()
                jitted = self.by_held[key] = Jitted(self.function, tuple(held.values()))
                jitted._lock = self._lock
        return jitted

    def enter_state(self) -> None:
        """Turn to the variants for what the function reads from outside now."""
        with self._lock:
            key, self.changed = self.surroundings.look()
            state = self.states.get(key)
            if state is None:
                if len(self.states) >= MAX_SURROUNDINGS:
                    warn(f"jit: {self.name} is traced anew whenever what it reads from outside changes, and that was {len(self.states)} "
                         f"times so far, now {self.changed}. Pass it as an argument", TraceWarning, stacklevel=4)
                    self.clear()
                    self.states.clear()
                state = self.states[key] = next(STATES)
            if state != self.state:
                self.quick.clear()
                self.state = state

    def trace(self, tree: Tree, call: Call, arguments: Any, shape: Any, known: dict[Fork, Any], has_failed: bool) -> Any:
        """Trace one more variant; the trace also computes the result. Raises RunError if there are too many."""
        reason = "it is the first call of its signature"
        if self.changed:
            reason += f" after a change of {self.changed}, which the function reads from outside"
        if has_failed:
            reason = "the graphs of other variants raise errors"
        elif tree.root is not None:
            reason = self.departure(tree, call, known)
            if tree.count(call) >= MAX_VARIANTS:
                raise RunError(f"jit: {self.name} took another path {MAX_VARIANTS} times for arguments of one signature, and does again: "
                               f"{reason}. What depends on elements can stay in the graph: torch.where, torch.cond, torch.while_loop",
                               code="E0412")
        variant, results = trace_call(self.function, arguments, call.leaves, shape)
        if self.surroundings.accept_changes():
            self.states = {self.surroundings.key: self.state}
        held = [each.held for each in variant.more if isinstance(each, Outer)]
        shortened = self.surroundings.take_inputs([each for each in held if isinstance(each, np.ndarray)])
        if shortened is not None:
            self.states = {shortened(key): state for key, state in self.states.items()} | {self.surroundings.key: self.state}
        variant.reason = self.why = reason
        tree.add(variant)
        return unflatten(variant.shape, results)

    def trace_for_now(self, call: Call, arguments: Any, shape: Any) -> Any:
        """The result of a trace that is not used again, since the function reads what cannot be compared."""
        with self._lock:
            variant, results = trace_call(self.function, arguments, call.leaves, shape)
            self.surroundings.accept_changes()
            variant.reason = self.why = f"{self.surroundings.opaque}: it is traced in each call"
            self.unkept = variant
            return unflatten(variant.shape, results)

    def departure(self, tree: Tree, call: Call, known: dict[Fork, Any]) -> str:
        """The first answer that no variant has, in words."""
        stack = [] if tree.root is None else [tree.root]
        while stack:
            node = stack.pop()
            if not isinstance(node, Fork):
                continue
            by_number = node.decision.step >= 0
            if not by_number and node not in known:
                stack += node.branches.values()
                continue
            key = call.answer(node) if by_number else known[node]
            if key not in node.branches:
                outcome = repr(call.answers(node.steps)[node.decision.step] if by_number else node.seen) if key != "" else "an error"
                return f"{node.decision.place}: {node.decision.question} is {outcome}, which no variant has"
            stack.append(node.branches[key])
        return "it was decided by something else"

    @property
    def name(self) -> str:
        """The name of the function in messages."""
        return str(getattr(self.function, "__name__", "the function"))

    @property
    def signatures(self) -> int:
        """The number of signatures so far."""
        return len(self.trees) + sum([each.signatures for each in list(self.by_held.values())])

    @property
    def variants(self) -> Variants:
        """The variants so far, with the decisions that they hold for (`guards`) and why each was traced (`reason`). To be printed."""
        kept = [each for tree in list(self.trees.values()) for each in tree.variants()]
        kept += [self.unkept] if self.unkept is not None and self.surroundings.opaque else ()
        return Variants([*kept, *[each for jitted in list(self.by_held.values()) for each in jitted.variants]], self.why)

    def graphs(self) -> list[Any]:
        """The graphs that were traced so far."""
        return [each.graph for each in self.variants]

    def clear(self) -> None:
        """Forget all variants, and the memory of their plans."""
        with self._lock:
            self.trees.clear()
            self.quick.clear()
            self.by_held.clear()
            self.unkept = None
            self.surroundings.known.inputs.clear()


def is_followed(layer: Any) -> bool:
    """Is a trace that follows decisions on the stack?"""
    while layer is not None and not layer.follows:
        layer = layer.inner
    return layer is not None


def jit(function: Any) -> Any:
    """The function, traced once for each path it takes and run by executors after that; a graph is run by its executor.

    Results have the function's dtypes and shapes: tensors, numbers, texts, None, and lists, tuples and dicts of these. `variants` of the
    jitted function is the list of its traces, each with what it was traced for; `graphs()` returns their graphs, `clear()` forgets them.
    Raises RunError for what is no function, for other results, and for more than 16 paths for equal numbers; UnsupportedError and
    DispatchError for what cannot be traced; and what the function raises.
    """
    graph = graph_of("jit", function)
    if graph is not None:
        return JittedGraph(graph)
    check_function("jit", function)
    return Jitted(function)
