"""A gradient pair as one entry of a tape: f runs on arrays, and saves what df needs; the backward pass runs df in its own executor."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from irtool.autodiff.reverse import Reverse
from irtool.dispatch.autograd import Entry, Variable
from irtool.dispatch.recipes import conjugated, fitted
from irtool.dispatch.stack import Boxed, is_floating
from irtool.execute.recording import Recording, as_arrays, as_handles
from irtool.interpret import all_nodes
from irtool.ir.effects import facts_of, may_write_or_is_python
from irtool.ir.errors import RunError
from irtool.ops.nested_tensors import map_tensors
from irtool.ops.tensor import Tensor

if TYPE_CHECKING:
    from irtool.execute.compilation import Code
    from irtool.execute.executor import Executor
    from irtool.ir.graph import Node


class Differentiable:
    """A gradient pair ready to run: the code of f, the executor of df, and the index lists. Shared by all runs of a plan."""

    __slots__ = ("pair", "run", "backward", "is_pure")

    def __init__(self, pair: Reverse, run: Code, backward: Executor) -> None:
        self.pair = pair
        self.run = run
        self.backward = backward
        self.is_pure = not any(does_more(node) for node in all_nodes(pair.df))

    def on_tape(self, tape: Recording, operands: Sequence[Any]) -> list[Any]:
        """f's real outputs; if one of the operands needs a gradient, they are results of a new entry of the tape."""
        pair = self.pair
        outputs = [as_handles(each) for each in self.run([as_arrays(value) for value in operands])]
        if any(tape.reaches(operands[index]) for index in pair.output_vjps):
            outputs = GraphEntry.record(tape, self, operands, outputs).results
        return [map_tensors(tape.snapshot, each) for each in outputs[:pair.real_outputs]]

    def forget(self) -> None:
        """Free the functions made so far, and their memory; they are made again when they are needed."""
        self.run.forget()
        self.backward.forget()


def does_more(node: Node) -> bool:
    """Has a node side effects, or random results?"""
    facts = facts_of(node.kind)
    return facts.side_effects or facts.is_random or may_write_or_is_python(node)


class GraphEntry(Entry):
    """One run of a Differentiable. args: the operands that may have gradients; results: all outputs of f; saved: the captured operands."""

    __slots__ = ("owner",)
    owner: Differentiable

    @staticmethod
    def record(tape: Recording, owner: Differentiable, operands: Sequence[Any], outputs: list[Any]) -> GraphEntry:
        """Append the entry of a run to a tape; its results are `outputs`, in boxes where df takes their gradients."""
        pair = owner.pair
        place = len(tape.tape)

        def box(value: Any) -> Any:
            return Boxed(tape, value, Variable(place)) if is_floating(value) else value

        results = [map_tensors(box, each) if index in pair.input_vjps else each for index, each in enumerate(outputs)]
        args = [map_tensors(tape.snapshot, operands[index]) for index in pair.output_vjps]
        entry = GraphEntry(tape, "prim::DifferentiableGraph", args, results, [map_tensors(tape.snapshot, operands[index])
                                                                              for index in pair.captured_inputs])
        entry.owner = owner
        tape.tape.append(entry)
        if tape.checks:
            names = [pair.f.inputs[index].name for index in pair.captured_inputs] + [pair.f.outputs[i].name for i in pair.captured_outputs]
            tape.watch(entry, zip(names, entry.captures(), strict=True))
        return entry

    @property
    def may_run_ahead(self) -> bool:
        """False if df draws random numbers, writes, or calls an unknown operator."""
        return self.owner.is_pure

    def zeros(self, chosen: Sequence[int]) -> list[Any]:
        """Gradients of the outputs: zeros for those that are chosen, by index, undefined for others."""
        zeros = self.tape.below.apply
        return [map_tensors(lambda each: zeros("aten::zeros_like", [self.tape.opened(each), None, None, None, None, None]), value)
                if index in chosen else None for index, value in enumerate(self.results)]

    def captures(self) -> list[Any]:
        """The values of f that df reads."""
        return [*self.saved, *[self.results[index] for index in self.owner.pair.captured_outputs]]

    def arguments(self, grads: list[Any], apply: Callable[..., Any]) -> list[Any]:
        """The operands of df: the gradients of the outputs, then the captures."""
        gradients = [conjugated(grads[index], apply) for index in self.owner.pair.input_vjps]
        return [*gradients, *self.captures()]

    def propagate(self, grads: list[Any], apply: Callable[..., Any]) -> Sequence[Any]:
        """Run df: on the tape if its gradients are wanted in turn, else on arrays."""
        tape, df = self.tape, self.owner.backward
        values = self.arguments(grads, apply)
        if apply == tape.apply:
            assert isinstance(tape, Recording)
            gradients = df.run_on_tape(values, tape)
        else:
            gradients = [as_handles(each) for each in df.execute([as_arrays(each) for each in values])]
        return [gradient_of(conjugated(gradient, apply), arg, apply) for gradient, arg in zip(gradients, self.args, strict=True)]


def gradient_of(gradient: Any, arg: Any, apply: Callable[..., Any]) -> Any:
    """A gradient in the shape and dtype of its operand; it is summed over broadcast dimensions. Raises RunError for a list of another
    length."""
    if isinstance(gradient, list | tuple):
        if len(gradient) != len(arg):
            raise RunError(f"a list of {len(arg)} tensors got {len(gradient)} gradients")
        return [gradient_of(each, one, apply) for each, one in zip(gradient, arg, strict=True)]
    if gradient is None or not isinstance(arg, Tensor):
        return gradient
    if gradient.shape != arg.shape:
        gradient = apply("aten::_grad_sum_to_size", [gradient, list(arg.shape)])
    return fitted(gradient, arg, apply)
