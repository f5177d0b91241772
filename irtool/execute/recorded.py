"""A run that saves the values that its gradients need."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from irtool.accepted_values import arrays_in, copied
from irtool.dispatch.backward_pass import replaced
from irtool.dispatch.stack import pushed
from irtool.dispatch.trees import flatten, unflatten
from irtool.execute.graph_gradients import fitted
from irtool.execute.jit_arguments import spans_of
from irtool.execute.output_cotangents import as_seed, conjugate, distributed, none_for
from irtool.execute.plan.memory import written_inputs
from irtool.execute.recording import Recording, as_arrays, as_handles
from irtool.ir.arguments import ONE_PER_OUTPUT, check_function, check_list, check_seed, is_whole, misfit, positions
from irtool.ir.errors import RunError
from irtool.ir.graph import counted
from irtool.ops.array_library import np
from irtool.ops.arrays import current_namespace, on_this_device, seeded, share_memory, using
from irtool.ops.nested_tensors import map_tensors
from irtool.ops.tensor import Tensor

if TYPE_CHECKING:
    from irtool.dispatch.autograd import Entry
    from irtool.execute.executor import Executor


Hook = Callable[[Any], Any]
"""Called with a gradient, an array; its result, unless that is None, replaces the gradient."""
PreHook = Callable[[Sequence[Any]], Any]
"""Called with the gradients of the results of a step (None: undefined); a list that it returns replaces them."""
PostHook = Callable[[Sequence[Any], Sequence[Any]], Any]
"""Called with the gradients that a step returned, and those of its results; a list that it returns replaces the former."""
Reached = Callable[[int], bool]
"""A function of an input's index: could a gradient reach the input if other branches ran?"""


class Lifetime:
    """Frees what a tape holds when no recorded run needs it any more: tape and boxes refer to each other."""

    __slots__ = ("tape",)

    def __init__(self, tape: Recording) -> None:
        self.tape = tape

    def __del__(self) -> None:
        for entry in self.tape.tape:
            entry.pre_hooks = entry.post_hooks = ()
        self.tape.tape.clear()
        self.tape.sums.clear()


class Recorded:
    """The outputs of a run, and the tape from which their gradients are computed."""

    __slots__ = ("outputs", "inputs", "leaves", "wrt", "results", "seed", "namespace", "tape", "reached", "_lifetime")

    def __init__(self, lifetime: Lifetime, inputs: Sequence[Any], leaves: Sequence[Any], wrt: Sequence[int], results: list[Any],
                 outputs: list[Any], seed: int, reached: Reached | None = None) -> None:
        self.tape = lifetime.tape
        self.inputs = inputs
        self.leaves = leaves        # per input of wrt: a tensor on the tape, or a list, tuple or dict of them
        self.wrt = wrt
        self.results = results      # outputs on the tape
        self.outputs = outputs
        self.seed = seed
        self.namespace = current_namespace()
        self.reached = reached
        self._lifetime = lifetime

    def __repr__(self) -> str:
        return f"<Recorded run of {counted(len(self.inputs), 'input')} for gradients of {list(self.wrt)}>"

    @staticmethod
    def of(executor: Executor, inputs: Sequence[Any], wrt: Sequence[int], seed: int) -> Recorded:
        """Run an executor. Raises RunError for an index in `wrt` of no input."""
        values = executor.accepted(inputs)
        check_seed("record", seed)
        wrt = positions("record", wrt, executor.graph)
        tape = Recording(executor.options.threads, executor.options.check_saved)
        lifetime = Lifetime(tape)
        before = values
        if executor.writes:
            values = copied(values)
        operands = inputs_on(tape, executor, values, wrt)
        leaves = [map_tensors(tape.snapshot, operands[index]) for index in wrt]     # the graph may write into the operand
        with np.errstate(all="ignore"), seeded(seed), pushed(tape):
            results = executor.run_on_tape(operands, tape)
        tape.shares_inputs = False
        # outputs may share memory with each other, which versions of tensors on a tape do not; but a further run answers as one without
        # gradients does
        if executor.writes and tape.has_written and not executor.asks:
            outputs = executor.delivered(executor.execute(copied(before), seed))
        else:
            outputs = executor.delivered([as_arrays(value) for value in results])
        return Recorded(lifetime, values, leaves, tuple(wrt), results, outputs, seed, executor.reaches)

    def hook_output(self, index: int, hook: Hook) -> None:
        """Call `hook(gradient)` with the gradient of an output before the backward pass uses it; a result other than None replaces it."""
        check_function("hook_output", hook)
        self._hook(self._result("hook_output", index), hook)

    def hook_input(self, position: int, hook: Hook) -> None:
        """Call `hook(gradient)` with the gradient of input `wrt[position]` when it is complete; a result other than None replaces it."""
        check_function("hook_input", hook)
        self._hook(self._leaf(position), hook)

    def hook_before(self, index: int, hook: PreHook) -> None:
        """Call `hook(gradients)` before the step that computed an output runs backwards, with its gradients; a returned list replaces
        them."""
        check_function("hook_before", hook)
        entry = self._step("hook_before", index)
        entry.pre_hooks = [*entry.pre_hooks, partial(call_before, entry, hook)]

    def hook_after(self, index: int, hook: PostHook) -> None:
        """Call `hook(results, gradients)` after the step that computed an output ran backwards, with the gradients that it returned and
        those that it got; a returned list replaces `results`."""
        check_function("hook_after", hook)
        entry = self._step("hook_after", index)
        entry.post_hooks = [*entry.post_hooks, partial(call_after, entry, hook)]

    def _hook(self, tensor: Any, hook: Hook) -> None:
        """Have a hook called with the complete gradient of a tensor. Raises RunError if the tensor needs no gradient."""
        self._check_hooked(tensor)
        tensor.known.hooks = [*tensor.known.hooks, lambda gradient: handle_of(hook(as_arrays(gradient)))]

    def _check_hooked(self, tensor: Any) -> None:
        if not isinstance(tensor, Tensor):
            raise RunError(f"hooks are for tensors, not for {type(tensor).__name__}")
        if not self.tape.owns(tensor):
            raise RunError("cannot register a hook on a tensor that doesn't require gradient")
        self.tape.has_hooks = True

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

    def _step(self, where: str, index: int) -> Entry:
        """The entry that computed an output. Raises RunError, in torch's words, if none with a gradient did."""
        tensor = self._result(where, index)
        self._check_hooked(tensor)
        if tensor.known.made_by < 0:
            raise RunError(f"{where}: output {index} is an input of the graph, which no step computed")
        entry: Entry = self.tape.tape[tensor.known.made_by]
        return entry

    def backward(self, cotangents: Sequence[Any]) -> list[Any]:
        """Gradients by position in `wrt`: None if no gradient can reach the input; zeros if one could, and is undefined in this run.

        cotangents: one per tensor of the outputs, or trees of them (`irtool.execute.output_cotangents`); None: takes no part.
        """
        if self.namespace is not current_namespace():
            with using(self.namespace):
                return self.backward(cotangents)
        return self._gathered(self._gradients(self._walk_back(cotangents, False)))

    def backward_recorded(self, cotangents: Sequence[Any]) -> Recorded:
        """As `backward`, itself recorded: `outputs` of the result are the gradients, and its `backward` differentiates them with respect to
        the same inputs."""
        if self.namespace is not current_namespace():
            with using(self.namespace):
                return self.backward_recorded(cotangents)
        gradients = self._walk_back(cotangents, True)
        outputs = self._gradients(gradients)
        results = [on_tape_again(gradient, output) for gradient, output in zip(gradients, outputs, strict=True)]
        return self._again(self._gathered(results), self._gathered(outputs))

    def _gathered(self, gradients: list[Any]) -> list[Any]:
        """Gradients as the caller of `record` named the inputs."""
        return gradients

    def _again(self, results: list[Any], outputs: list[Any]) -> Recorded:
        """A recorded run with other results on the same tape."""
        return Recorded(self._lifetime, self.inputs, self.leaves, self.wrt, results, outputs, self.seed)

    def _walk_back(self, cotangents: Sequence[Any], create_graph: bool) -> list[Any]:
        """The gradients of the leaves, as handles; with create_graph they are recorded on the tape in turn."""
        check_list("backward", "cotangents", cotangents, ONE_PER_OUTPUT)
        outputs: list[Any] = []
        seeds: list[Any] = []
        plain = [as_arrays(value) for value in self.results]
        for result, output, cotangent in zip(self.results, plain, distributed(plain, cotangents), strict=True):
            self._root(result, output, cotangent, outputs, seeds)
        with np.errstate(all="ignore"), seeded(self.seed), pushed(self.tape if create_graph else self.tape.below):
            return self.tape.gradients(outputs, seeds, self.leaves, create_graph=create_graph)

    def _root(self, result: Any, output: Any, cotangent: Any, outputs: list[Any], seeds: list[Any]) -> None:
        """Append the tensors of an output to `outputs`, and their cotangents to `seeds`."""
        if isinstance(result, dict):
            trees = none_for(output) if cotangent is None else cotangent
            for key, one in result.items():
                self._root(one, output[key], trees[key], outputs, seeds)
        elif isinstance(result, list | tuple):
            for each in zip(result, output, [None] * len(result) if cotangent is None else cotangent, strict=True):
                self._root(*each, outputs, seeds)
        else:
            seed = as_seed(cotangent, output)
            outputs.append(result)
            seeds.append(None if seed is None else Tensor(conjugate(seed)))

    def _gradients(self, gradients: list[Any]) -> list[Any]:
        """The gradients for the caller; zeros if a gradient is undefined in this run, or exists only for a branch that was not taken, or
        for further iterations."""
        variables = self.tape.reached_from(self.results)
        inputs = [self.inputs[index] for index in self.wrt]
        delivered = [self._fitted(*each, variables) for each in zip(self.leaves, gradients, inputs, strict=True)]
        return [fitted(None, one) if gradient is None and self.reached is not None and self.reached(index) else gradient
                for gradient, one, index in zip(delivered, inputs, self.wrt, strict=True)]

    def _fitted(self, leaf: Any, gradient: Any, value: Any, variables: set[int]) -> Any:
        """The gradient of an input for the caller: in the dtype of `value`, a list for a list; None if no gradient can reach it."""
        if self.tape.owns(leaf):
            if gradient is None:
                return fitted(None, value) if id(leaf.known) in variables else None
            return fitted(conjugate(as_arrays(gradient)), value)
        if isinstance(leaf, dict):
            entries = {key: self._fitted(each, gradient[key], value[key], variables) for key, each in leaf.items()}
            return None if all(each is None for each in entries.values()) else \
                {key: fitted(None, value[key]) if each is None else each for key, each in entries.items()}
        if isinstance(leaf, list | tuple):
            pieces = [self._fitted(*each, variables) for each in zip(leaf, gradient, value, strict=True)]
            if all(piece is None for piece in pieces):
                return None
            return [fitted(None, one) if piece is None else piece for piece, one in zip(pieces, value, strict=True)]
        return None


def call_before(entry: Entry, hook: PreHook, name: str, cotangents: list[Any]) -> list[Any]:
    """Call a hook with the gradients of the results of an entry."""
    return Picked(entry, entry.results, cotangents).after(hook)


def call_after(entry: Entry, hook: PostHook, name: str, gradients: Sequence[Any], cotangents: list[Any]) -> list[Any]:
    """Call a hook with the gradients of the operands of an entry, and those of its results."""
    came = Picked(entry, entry.results, cotangents).arrays
    return Picked(entry, entry.args, gradients).after(lambda handed: hook(handed, came))


class Picked:
    """Gradients of operands or results of an entry; `arrays`: as hooks see them, those of tensors on the tape, in lists too."""

    def __init__(self, entry: Entry, values: Sequence[Any], gradients: Sequence[Any]) -> None:
        self.shapes = [flatten(value)[1] for value in values]
        self.leaves = [leaves_like(*each) for each in zip(values, gradients, strict=True)]
        self.places = [(place, at) for place, value in enumerate(values) for at, leaf in enumerate(flatten(value)[0])
                       if entry.tape.owns(leaf)]
        self.arrays = [as_arrays(self.leaves[place][at]) for place, at in self.places]

    def after(self, hook: PreHook) -> list[Any]:
        """The gradients after a hook was called with them."""
        returned = hook(self.arrays)
        handles = [handle_of(each) for each in returned] if isinstance(returned, list | tuple) else returned
        before = [self.leaves[place][at] for place, at in self.places]
        for (place, at), gradient in zip(self.places, replaced(handles, before), strict=True):
            self.leaves[place][at] = gradient
        return [unflatten(*each) for each in zip(self.shapes, self.leaves, strict=True)]


def handle_of(returned: Any) -> Any:
    """What a hook returned for a gradient, as a tensor. Raises RunError if it is no array of numbers."""
    if returned is None or isinstance(returned, Tensor):
        return returned
    array = on_this_device(returned)
    if array.dtype.kind not in "biufc":
        raise RunError(f"expected an array of numbers, but hook returned {repr(returned)[:40]}")
    return Tensor(array)


def leaves_like(value: Any, gradient: Any) -> list[Any]:
    """The gradients of the leaves of a value; None stands for a whole tree."""
    leaves = flatten(value)[0]
    return [None] * len(leaves) if gradient is None else list(flatten(gradient)[0])


def on_tape_again(gradient: Any, output: Any) -> Any:
    """The gradient of an input as a value on the tape; zeros if it is undefined."""
    if isinstance(gradient, dict) and output is not None:
        return {key: on_tape_again(each, output[key]) for key, each in gradient.items()}
    if isinstance(gradient, list | tuple) and output is not None:
        return [on_tape_again(each, one) for each, one in zip(gradient, output, strict=True)]
    return gradient if isinstance(gradient, Tensor) or output is None else as_handles(output)


def inputs_on(tape: Recording, executor: Executor, values: Sequence[Any], wrt: Sequence[int]) -> list[Any]:
    """The inputs of a graph as handles. If some of them share memory that the graph writes into, they become views of one tensor, so that a
    write into one changes the others. Sets `tape.shares_inputs` if a gradient of such an input is wanted."""
    if not executor.writes or not wrt:      # without a gradient to compute, the arrays themselves share memory
        return [tape.leaf(value) if index in wrt else as_handles(value) for index, value in enumerate(values)]
    is_written = written_inputs(executor.graph)
    leaves, shape = flatten([None if index in wrt else value for index, value in enumerate(values)])
    owners = [index for index, value in enumerate(values) for _ in flatten(None if index in wrt else value)[0]]
    arrays = {place: leaf for place, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)}
    spans = [span for span in spans_of(arrays) or () if any(is_written[owners[place]] for place in span.parts)]
    parts = {place for span in spans for place in span.parts}
    memories = [(span.of(arrays), True) for span in spans]
    memories += [(array, is_written[owners[place]]) for place, leaf in enumerate(leaves) if place not in parts
                 for array in arrays_in([leaf])]
    memories += [(array, is_written[index]) for index in wrt for array in arrays_in([values[index]])]
    tape.shares_inputs = any((first or second) and share_memory(one, other)
                             for (one, first), (other, second) in combinations(memories, 2))
    handles = list(map(as_handles, leaves))
    for span in spans:
        is_one = span.is_one(arrays)
        memory = as_handles(arrays[span.first] if is_one else span.of(arrays))
        for place in span.parts:
            with pushed(tape):
                handles[place] = memory if is_one else tape.apply("aten::as_strided", [memory, *span.view(place, arrays[place])])
    inputs: list[Any] = unflatten(shape, handles)
    return [tape.leaf(value) if index in wrt else inputs[index] for index, value in enumerate(values)]
