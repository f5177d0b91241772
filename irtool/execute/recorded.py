"""A run that saves the values that its gradients need."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from irtool.accepted_values import copied
from irtool.execute.differentiable import detached, needs_gradient, summed
from irtool.execute.graph_gradients import fitted
from irtool.execute.output_cotangents import as_seed, distributed, none_for, parts_of
from irtool.execute.tape import Entry, Function, Hook, Leaf, PostHook, PreHook, Variable, backward, edge_of
from irtool.ir.arguments import ONE_PER_OUTPUT, check_function, check_list, check_seed, is_whole, misfit, positions
from irtool.ir.errors import RunError
from irtool.ir.graph import counted
from irtool.ops.array_library import np
from irtool.ops.arrays import current_namespace, is_array, seeded, using

if TYPE_CHECKING:
    from irtool.execute.executor import Executor


Reached = Callable[[int], bool]
"""A function of an input's index: could a gradient reach the input if other branches ran?"""


class Recorded:
    """The outputs of a run, and the tape from which their gradients are computed."""

    __slots__ = ("outputs", "inputs", "leaves", "wrt", "results", "seed", "namespace", "threads", "reached")

    def __init__(self, inputs: Sequence[Any], leaves: Sequence[Any], wrt: Sequence[int], results: list[Any], outputs: list[Any],
                 seed: int, threads: int = 1, reached: Reached | None = None) -> None:
        self.inputs = inputs
        self.leaves = leaves        # per input of wrt: a Variable, or a list or tuple of them
        self.wrt = wrt
        self.results = results      # outputs on the tape
        self.outputs = outputs
        self.seed = seed
        self.namespace = current_namespace()
        self.threads = threads if self.namespace is np else 1       # a device orders its operations itself
        self.reached = reached

    def __repr__(self) -> str:
        return f"<Recorded run of {counted(len(self.inputs), 'input')} for gradients of {list(self.wrt)}>"

    @staticmethod
    def of(executor: Executor, inputs: Sequence[Any], wrt: Sequence[int], seed: int) -> Recorded:
        """Run an executor. Raises RunError for an index in `wrt` of no input."""
        values = executor.accepted(inputs)
        check_seed("record", seed)
        wrt = positions("record", wrt, executor.graph)
        if executor.writes:
            values = copied(values)
        operands = list(values)
        for index in dict.fromkeys(wrt):
            operands[index] = leaf_of(values[index])
        with np.errstate(all="ignore"), seeded(seed):
            results = executor.run_on_tape([entered(each) for each in operands] if executor.writes else operands, True)
        return Recorded(values, [operands[index] for index in wrt], tuple(wrt), results,
                        executor.delivered([detached(value) for value in results]), seed, executor.options.threads, executor.reaches)

    def hook_output(self, index: int, hook: Hook) -> None:
        """Call `hook(gradient)` with the gradient of an output before the backward pass uses it; a result other than None replaces it."""
        check_function("hook_output", hook)
        only(self._result("hook_output", index)).register_hook(hook)

    def hook_input(self, position: int, hook: Hook) -> None:
        """Call `hook(gradient)` with the gradient of input `wrt[position]` when it is complete; a result other than None replaces it."""
        check_function("hook_input", hook)
        only(self._leaf(position)).register_hook(hook)

    def hook_before(self, index: int, hook: PreHook) -> None:
        """Call `hook(gradients)` before the step that computed an output runs backwards, with its gradients; a returned list replaces
        them."""
        check_function("hook_before", hook)
        self._step("hook_before", index).pre_hooks.append(hook)

    def hook_after(self, index: int, hook: PostHook) -> None:
        """Call `hook(results, gradients)` after the step that computed an output ran backwards, with the gradients that it returned and
        those that it got; a returned list replaces `results`."""
        check_function("hook_after", hook)
        self._step("hook_after", index).post_hooks.append(hook)

    def _result(self, where: str, index: int) -> Any:
        """An output on the tape. Raises an Error for an index of no output."""
        if not is_whole(index) or not -len(self.results) <= index < len(self.results):
            raise misfit(where, "index", index, f"the position of an output, of which there are {len(self.results)}")
        return self.results[index]

    def _leaf(self, position: int) -> Any:
        """An input on the tape. Raises an Error for a position that is not in `wrt`."""
        if not is_whole(position) or not -len(self.leaves) <= position < len(self.leaves):
            raise misfit("hook_input", "position", position, f"a position in wrt, which is {list(self.wrt)}")
        return self.leaves[position]

    def _step(self, where: str, index: int) -> Function:
        """The step that computed an output. Raises RunError, in torch's words, if no step with a gradient did."""
        function = only(self._result(where, index)).function
        if function is None:
            raise RunError("cannot register a hook on a tensor that doesn't require gradient")
        return function

    def backward(self, cotangents: Sequence[Any]) -> list[Any]:
        """Gradients by position in `wrt`: None if no gradient can reach the input; zeros if one could, and is undefined in this run.

        cotangents: one per tensor of the outputs, or trees of them (`irtool.execute.output_cotangents`); None: takes no part.
        """
        if self.namespace is not current_namespace():
            with using(self.namespace):
                return self.backward(cotangents)
        by_leaf = self._walk_back(cotangents, False)
        return self._gradients(by_leaf)

    def backward_recorded(self, cotangents: Sequence[Any]) -> Recorded:
        """As `backward`, itself recorded: `outputs` of the result are the gradients, and its `backward` differentiates them with respect to
        the same inputs."""
        if self.namespace is not current_namespace():
            with using(self.namespace):
                return self.backward_recorded(cotangents)
        by_leaf = self._walk_back(cotangents, True)
        outputs = self._gradients(by_leaf)
        results = [gradient_on_tape(leaf, output, by_leaf) for leaf, output in zip(self.leaves, outputs, strict=True)]
        return Recorded(self.inputs, self.leaves, self.wrt, results, outputs, self.seed, self.threads)

    def _walk_back(self, cotangents: Sequence[Any], create_graph: bool) -> dict[Leaf, Any]:
        """The gradients by leaf, as Variables; with create_graph they are recorded on the tape in turn."""
        check_list("backward", "cotangents", cotangents, ONE_PER_OUTPUT)
        plain = [detached(value) for value in self.results]
        per_output = distributed(plain, cotangents)
        roots: list[tuple[Variable, Any]] = []
        for result, output, cotangent in zip(self.results, plain, per_output, strict=True):
            roots += rooted(result, output, cotangent)
        with np.errstate(all="ignore"), seeded(self.seed):
            return backward(roots, leaves_of(self.leaves), summed, create_graph, self.threads)

    def _gradients(self, by_leaf: dict[Leaf, Any]) -> list[Any]:
        """The gradients for the caller; zeros if a gradient exists only for a branch that was not taken, or for further iterations."""
        inputs = [self.inputs[index] for index in self.wrt]
        gradients = [self._fitted(leaf, one, by_leaf) for leaf, one in zip(self.leaves, inputs, strict=True)]
        return [fitted(None, one) if gradient is None and self.reached is not None and self.reached(index) else gradient
                for gradient, one, index in zip(gradients, inputs, self.wrt, strict=True)]

    def _fitted(self, leaf: Any, value: Any, by_leaf: dict[Leaf, Any]) -> Any:
        """The gradient of an input for the caller: in the dtype of `value`, a list for a list; None if no gradient can reach it."""
        if isinstance(leaf, Variable):
            function = leaf.function
            if not isinstance(function, Leaf) or function not in by_leaf:
                return None
            return fitted(detached(by_leaf[function]), value)
        if isinstance(leaf, dict):
            entries = {key: self._fitted(each, value[key], by_leaf) for key, each in leaf.items()}
            return None if all(each is None for each in entries.values()) else \
                {key: fitted(None, value[key]) if each is None else each for key, each in entries.items()}
        if isinstance(leaf, list | tuple):
            pieces = [self._fitted(each, one, by_leaf) for each, one in zip(leaf, value, strict=True)]
            if all(piece is None for piece in pieces):
                return None
            return [fitted(None, one) if piece is None else piece for piece, one in zip(pieces, value, strict=True)]
        return None


def leaf_of(value: Any) -> Any:
    """An input on the tape: floating-point and complex tensors become leaves, in lists and tuples too."""
    if is_array(value) and value.dtype.kind in "fc":
        return Variable(value, Leaf(value))
    if isinstance(value, list):
        return [leaf_of(each) for each in value]
    if isinstance(value, dict):
        return {key: leaf_of(each) for key, each in value.items()}
    return tuple([leaf_of(each) for each in value]) if isinstance(value, tuple) else value


def entered(value: Any) -> Any:
    """An input of a graph that may write into it, wrapped in an Entry: its gradient is that of the input before the write."""
    if isinstance(value, Variable):
        return Variable(value.data, Entry([edge_of(value)], 1), 0) if value.function is not None else value
    if isinstance(value, list):
        return [entered(each) for each in value]
    if isinstance(value, dict):
        return {key: entered(each) for key, each in value.items()}
    return tuple([entered(each) for each in value]) if isinstance(value, tuple) else value


def leaves_of(value: Any) -> list[Leaf]:
    """The leaves among inputs."""
    if isinstance(value, Variable):
        return [value.function] if isinstance(value.function, Leaf) else []
    return [leaf for each in parts_of(value) for leaf in leaves_of(each)] if isinstance(value, list | tuple | dict) else []


def gradient_on_tape(leaf: Any, output: Any, by_leaf: dict[Leaf, Any]) -> Any:
    """The gradient of a leaf as a Variable; zeros if it is undefined."""
    if isinstance(leaf, Variable):
        gradient = by_leaf.get(leaf.function) if isinstance(leaf.function, Leaf) else None
        return Variable(output) if gradient is None and output is not None else gradient
    if output is None:
        return None
    if isinstance(leaf, dict):
        return {key: gradient_on_tape(each, output[key], by_leaf) for key, each in leaf.items()}
    if isinstance(leaf, list | tuple):
        return [gradient_on_tape(each, one, by_leaf) for each, one in zip(leaf, output, strict=True)]
    return None


def rooted(result: Any, output: Any, cotangent: Any) -> list[tuple[Variable, Any]]:
    """The Variables at which the backward pass begins, each with its cotangent. A Variable without cotangent gets None, so that the pass
    finds all inputs that a gradient could reach."""
    if isinstance(result, dict):
        cotangents = none_for(output) if cotangent is None else cotangent
        return [pair for key, one in result.items() for pair in rooted(one, output[key], cotangents[key])]
    if isinstance(result, list | tuple):
        cotangents = [None] * len(result) if cotangent is None else cotangent
        return [pair for each in zip(result, output, cotangents, strict=True) for pair in rooted(*each)]
    seed = as_seed(cotangent, output)
    return [(result, None if seed is None else Variable(seed))] if needs_gradient(result) else []


def only(value: Any) -> Variable:
    """The tensor for a hook. Raises RunError if `value` is no tensor."""
    if is_array(value):
        return Variable(value)
    if not isinstance(value, Variable):
        raise RunError(f"hooks are for tensors, not for {type(value).__name__}")
    return value
