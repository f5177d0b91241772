"""The tape layer: it records each operation on its tensors with the values that the gradient needs; `gradients` walks back.

The derivative of an operation runs on the layer below, so that only tapes below record it; with `create_graph` it runs on the tape itself,
is recorded there, and can be differentiated again. A tensor that no gradient reaches has the gradient None, not zeros.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from irtool.dispatch.backward_pass import BackwardPass, Hook, PostHook, PreHook
from irtool.dispatch.batched import draws
from irtool.dispatch.custom_functions import gradients_as_arguments
from irtool.dispatch.layer_writes import another, do_write, is_inside, is_operand, remember, root_of, with_operands, write
from irtool.dispatch.logger import Print, label, line
from irtool.dispatch.loop_tapes import propagate_rounds, refuse_lists, run_rounds
from irtool.dispatch.overwriting import is_overwriting, tangent_of
from irtool.dispatch.stack import Boxed, Branch, DispatchError, Layer, current, pushed
from irtool.dispatch.trees import flatten, unflatten
from irtool.ir.arguments import check_function
from irtool.ir.effects import ONE_BY_ONE
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.arrays import dtype_of
from irtool.ops.checks import expands
from irtool.ops.nested_tensors import map_tensors, tensors_in
from irtool.ops.tensor import Tensor


class Variable:
    """A value on a tape. made_by: the number of the entry that computed it, -1 for an input. hooks: called with its gradient."""

    __slots__ = ("made_by", "hooks")

    def __init__(self, made_by: int = -1) -> None:
        self.made_by = made_by
        self.hooks: Sequence[Hook] = ()


class Entry:
    """One recorded operation: its operands and results, in the tape's boxes, as they were then, and other values saved for its gradient.

    pre_hooks, post_hooks: called before and after it is differentiated. is_quiet: tapes below must not record its derivative.
    """

    __slots__ = ("tape", "name", "args", "results", "saved", "pre_hooks", "post_hooks", "is_quiet")

    def __init__(self, tape: Autograd, name: str, args: list[Any], results: list[Any], saved: Any = None) -> None:
        self.tape = tape
        self.name = name
        self.args = args
        self.results = results
        self.saved = saved
        self.pre_hooks: Sequence[PreHook] = ()
        self.post_hooks: Sequence[PostHook] = ()
        self.is_quiet = tape.is_of_tangents and not tape.mode       # other gradients are off, tangents pass

    @property
    def may_run_ahead(self) -> bool:
        """Has its gradient no side effects, so that another thread may compute it early?"""
        return not self.tape.facts(self.name).is_random

    def propagate(self, grads: list[Any], apply: Callable[..., Any]) -> Sequence[Any]:
        """The gradients of the operands, from those of the results; `apply` runs the operations."""
        tape = self.tape
        args, results = self.args, self.results
        if tape.rules.is_library:
            for place, message in tape.rules.refused(self.name).items():
                if any(map(tape.owns, tensors_in([args[place]]))):
                    raise UnsupportedError(message, code="E0501")
        is_again = apply == tape.apply
        inner = [tape.opened(arg) for arg in args]
        needed = tuple([bool(tape.post_hooks or self.post_hooks) or one is not other for one, other in zip(args, inner, strict=True)])
        if not is_again:
            args, results = inner, [tape.opened(each) for each in results]
        more = {"is_fitted": False} if tape.keeps_dtypes else {}
        below: Any = tape.below
        if below.is_for_tangents and apply == below.apply and below.owns(grads[0]) and is_overwriting(self.name, args):
            gradients = tape.rules.backward(self.name, args, results, self.saved, [grads[0].value], below.below.apply, needed, **more)
            entry = CustomEntry(below, self.name, [below.snapshot(grads[0])], [], tangent_of(self.name, args))
            return below.note(entry, tuple(gradients))      # type: ignore[no-any-return]
        gradients = tape.rules.backward(self.name, args, results, self.saved, grads, apply, needed, is_again, **more)
        if isinstance(grads[0], list) and self.name.partition(".")[0] in ONE_BY_ONE and isinstance(gradients[0], list):
            given = [None if grad is None else each for each, grad in zip(gradients[0], grads[0], strict=True)]
            return [given, *gradients[1:]]
        return gradients        # type: ignore[no-any-return]


class Refusal(Entry):
    """An operation without a gradient. saved: the error that says so."""

    __slots__ = ()

    def propagate(self, grads: list[Any], apply: Callable[..., Any]) -> Sequence[Any]:
        """Raises the error."""
        raise self.saved


class ShapeChange(Entry):
    """`squeeze_`, `t_` and others where gradients are off: torch's autograd still has the tensor for what it was, whatever the elements are
    now, and takes its gradient in the shape that the tensor had."""

    __slots__ = ()

    def propagate(self, grads: list[Any], apply: Callable[..., Any]) -> Sequence[Any]:
        """The gradient, summed over dimensions that the tensor did not have. Raises RunError, as torch does, for any other shape."""
        before, grad = self.args[0].shape, grads[0]
        if grad is None or list(grad.shape) == list(before):
            return [grad, *[None] * (len(self.args) - 1)]
        if not expands(before, grad.shape):
            raise RunError(f"{self.name.partition('.')[0]} changed the shape of a tensor where gradients are off: its gradient has the "
                           f"shape {list(grad.shape)} but expected shape compatible with {list(before)}")
        return [apply("aten::_grad_sum_to_size", [grad, list(before)]), *[None] * (len(self.args) - 1)]


class CustomEntry(Entry):
    """One call of a `custom_vjp` function; saved: a function from gradients of the results to those of the operands."""

    __slots__ = ()

    def propagate(self, grads: list[Any], apply: Callable[..., Any]) -> Sequence[Any]:
        """The gradients that the function's backward returns."""
        return self.saved(grads, apply)     # type: ignore[no-any-return]


class BranchEntry(Entry):
    """A branch whose condition is undecided. saved: the condition and both functions, which the backward pass runs again."""

    __slots__ = ()

    def propagate(self, grads: list[Any], apply: Callable[..., Any]) -> Sequence[Any]:
        """Run a branch on the same condition, each side of which runs its function again and differentiates it."""
        tape = self.tape
        layer: Layer = apply.__self__       # type: ignore[attr-defined]
        condition, then, otherwise = self.saved
        args = self.args if layer is tape else [tape.opened(arg) for arg in self.args]
        count = len(args)
        grads = flatten(grads)[0]
        defined = [place for place, each in enumerate(grads) if isinstance(each, Tensor)]
        needed = [place for place, arg in enumerate(self.args) if tape.owns(arg)]

        def gradients_of(function: Branch) -> Branch:
            def run(*values: Any) -> list[Any]:
                inner = Autograd(current())
                inner.runs_again = True
                operands = [inner.variable(each) if place in needed else each for place, each in enumerate(values[:count])]
                with pushed(inner):
                    results = flatten(function(*operands))[0]
                wanted = [operands[place] for place in needed]
                return inner.gradients([results[place] for place in defined], values[count:], wanted, "zeros")
            return run
        gradients = layer.branch(condition, gradients_of(then), gradients_of(otherwise), [*args, *[grads[place] for place in defined]])
        by_place = dict(zip(needed, gradients, strict=True))
        return [by_place.get(place) for place in range(count)]


class LoopEntry(Entry):
    """A loop whose condition is undecided. saved: the history of its rounds, its body, and the number of loop-carried values."""

    __slots__ = ()

    def propagate(self, grads: list[Any], apply: Callable[..., Any]) -> Sequence[Any]:
        """Differentiate the rounds, the last one first."""
        return propagate_rounds(self, self.tape, grads, apply.__self__)     # type: ignore[attr-defined]


class Autograd(Layer):
    """Reverse differentiation by a tape. create_graph: record derivatives on this tape too. write: called with a line per operation."""

    is_tape = True

    def __init__(self, inner: Layer, name: str = "", create_graph: bool = False, write: Print | None = None,
                 is_for_tangents: bool = False) -> None:
        self.is_for_tangents = is_for_tangents
        self.is_of_tangents = is_for_tangents or inner.is_for_tangents
        self.begins_with_gradients = not self.is_of_tangents
        super().__init__(inner, name)
        self.create_graph = create_graph
        self.write = write
        self.tape: list[Entry] = []
        self.records = True
        self.keeps_dtypes = False           # of gradients? Else they are converted to those of operands
        self.runs_again = False             # what is recorded has run before: other random numbers would be those of another function
        self.pre_hooks: list[PreHook] = []
        self.post_hooks: list[PostHook] = []

    def variable(self, value: Any) -> Any:
        """A tensor of the layer below (or tensors, in lists and tuples) as an input of the tape, whose gradient can be computed."""
        return map_tensors(lambda each: Boxed(self, another(each), Variable()), value)

    def takes_part(self, args: Sequence[Any]) -> bool:
        """Does the tape record an operation on these operands?"""
        return self.records and any(self.owns(value) for value in tensors_in(list(args)))

    def apply(self, name: str, args: list[Any]) -> Any:
        """Run the operation on the layer below, and record it if an operand is on this tape."""
        rules, facts = self.rules, self.facts(name)
        if self.runs_again and draws(name, args):
            raise UnsupportedError(f"the gradient of {name.partition('.')[0]} in a branch or loop whose condition is batched or traced is "
                                   "not supported: draw the random numbers before it", code="E0501")
        if facts.plain is not None or facts.only_writes:
            self.check_target(args[0], name)
            return do_write(self, name, facts.plain, args)
        inner, is_recorded = list(args), rules.constants_on_tape
        for place, arg in enumerate(args):
            if arg.__class__ is Boxed:
                if arg.layer is self:
                    inner[place], is_recorded = arg.value, True
            elif isinstance(arg, list | tuple | dict):
                inner[place] = self.opened(arg)
                is_recorded = is_recorded or any(map(self.owns, tensors_in(arg)))
        # of the first alone: the result has the sizes or the dtype of another tensor, and none of its elements
        is_recorded = is_recorded and (not facts.of_the_first or self.owns(args[0]))
        if is_recorded and self.records and facts.numbers:
            self.refuse_numbers(name, args)
        shortcut = rules.shortcut(name, args) if is_recorded and self.records else None
        if shortcut is not None:
            return shortcut
        if is_recorded and self.records and facts.lacks and not self.is_of_tangents:
            error = UnsupportedError(facts.lacks, code="E0501")
            refusal = Refusal(self, name, [map_tensors(self.snapshot, arg) for arg in args], [], error)
            return self.note(refusal, self.below.apply(name, inner))
        if not is_recorded or not self.records or not rules.is_differentiable(name):
            result = self.below.apply(name, inner)
            return remember(self, name, args, result) if facts.is_view else result
        if facts.takes_out:
            raise RunError(f"{name[6:].partition('.')[0]}(): functions with out=... arguments don't support automatic differentiation, but "
                           "one of the arguments requires grad.")
        result, saved = rules.forward(name, inner, self.below.apply)
        if facts.is_view and is_operand(self, name, args[0], result):
            return args[0]
        saved = None if saved is None else map_tensors(self.snapshot, saved)       # operands among them may be written into
        entry = Entry(self, name, [map_tensors(self.snapshot, arg) for arg in args], [], saved)
        boxed = self.note(entry, result, rules.taken(name) if rules.is_library and isinstance(result, tuple) else None)
        if facts.is_view:
            boxed = remember(self, name, args, with_operands(self, name, args, result, boxed))
        if self.write is not None:
            self.write(line(self, boxed, rules.spelled(name, args, label, is_tape=True)))
        return boxed

    def refuse_numbers(self, name: str, args: Sequence[Any]) -> None:
        """Raise UnsupportedError for a tensor of the tape in place of a number, whose gradient would be lost."""
        for place, argument in self.facts(name).numbers.items():
            if self.owns(args[place]):
                raise UnsupportedError(f"{name.partition('.')[0]}: argument '{argument}' is a number, which has no gradient; expected a "
                                       "number, or tensor.detach(), got a tensor that gradients are taken for", code="E0501")

    def note(self, entry: Entry, result: Any, taken: int | None = None) -> Any:
        """Append an entry to the tape; returns the results in boxes. taken: only so many first ones of a tuple have a gradient (None: all
        do)."""
        place = len(self.tape)
        self.tape.append(entry)

        def box(value: Any) -> Any:
            return Boxed(self, value, Variable(place)) if dtype_of(value.dtype).kind in "fc" else value

        boxed = map_tensors(box, result) if taken is None else (*map_tensors(box, result[:taken]), *result[taken:])
        entry.results[:] = [map_tensors(self.snapshot, each) for each in (boxed if isinstance(boxed, tuple) else (boxed,))]
        return boxed

    def snapshot(self, value: Any) -> Any:
        """A copy of a handle: a write replaces the value of the original handle, but not of the copy."""
        return another(value) if value.born > self.start or self.owns(value) else value

    def renewed(self, before: Boxed, after: Any, inside: Any) -> Any:
        """The variable of the new value: this tape has recorded the write, which another below it must not see."""
        return Boxed(self, inside, after.known) if self.owns(after) else inside

    def set_mode(self, is_on: bool) -> None:
        """Record or not. The tapes of `jvp` always do: tangents pass `no_grad`, as in torch."""
        self.mode = is_on
        self.records = is_on or self.is_of_tangents

    def variable_of(self, tensor: Boxed) -> Any:
        """The tensor's variable; None on a tape of tangents."""
        return None if self.is_of_tangents else tensor.known

    def silent_tapes(self, is_detached: bool) -> list[Any]:
        """The tapes that must not record a write: for a write through a detached tensor this one and those below; else those of them that
        do not record now."""
        return [*[self] * (is_detached or not self.records), *self.below.silent_tapes(is_detached)]

    @contextmanager
    def noting_shapes(self) -> Iterator[None]:
        """A context in which what changes the shape of a tensor is noted as that (`ShapeChange`), though nothing is recorded now."""
        count, before = len(self.tape), self.records
        self.records = True
        try:
            yield
        finally:
            self.records = before
            for entry in self.tape[count:]:
                entry.__class__ = ShapeChange

    @contextmanager
    def silently(self) -> Iterator[None]:
        """A context in which nothing is recorded."""
        before = self.records
        self.records = False
        try:
            yield
        finally:
            self.records = before

    def check_target(self, target: Any, name: str) -> None:
        """Raises DispatchError, in torch's words, for a write into a tensor from outside the transformed function."""
        if not is_inside(self, root_of(target)):
            raise DispatchError("During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                                f"operation ({name}) that would mutate a captured Tensor. This is not supported; please rewrite the "
                                "function being transformed to explicitly accept the mutated Tensor(s) as inputs.")

    def write_into(self, target: Any, result: Any, name: str) -> Any:
        """Give a tensor that was written into its new value. Raises DispatchError for a tensor from outside."""
        self.check_target(target, name)
        return write(self, name, target, result)

    def custom_vjp(self, forward: Callable[..., Any], backward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """Run `forward` on the layer below, where lower tapes record it with `backward` too; `backward` runs on this layer."""
        if not self.takes_part(args):
            return self.below.custom_vjp(forward, backward, [self.opened(arg) for arg in args])
        output, saved = self.below.custom_vjp(forward, backward, [self.opened(arg) for arg in args])
        taken = [map_tensors(self.snapshot, arg) for arg in args]

        def propagate(grads: list[Any], apply: Callable[..., Any]) -> Sequence[Any]:
            layer: Layer = apply.__self__       # type: ignore[attr-defined]
            is_above = layer is not self and layer is not self.below        # under a batch of cotangents
            if len(grads) > 1 or not isinstance(grads[0], Tensor):
                grads = self.without_gaps(grads, entry.results)
            with pushed(layer if is_above else self):
                gradients = backward(grads if len(grads) > 1 else grads[0], self.opened(boxed_saved) if is_above else boxed_saved)
            gradients = self.without_gaps(gradients_as_arguments(gradients, taken), taken)
            return gradients if apply == self.apply else [self.opened(each) for each in gradients]

        entry = CustomEntry(self, "custom_vjp", taken, [], propagate)
        boxed = self.note(entry, output)
        if self.write is not None:
            self.write(line(self, boxed, f"custom_vjp({', '.join([forward.__name__, backward.__name__, *map(label, args)])})"))
        known = {id(each.value): each for each in tensors_in([boxed, *args]) if self.owns(each)}     # operands win over equal results
        boxed_saved = map_tensors(lambda each: known.get(id(each), each), saved)       # saved operands and results are on the tape
        return boxed, boxed_saved

    def without_gaps(self, grads: list[Any], values: list[Any]) -> list[Any]:
        """Gradients in the trees of `values`, with zeros for missing gradients of tensors on this tape."""
        leaves, shape = flatten(values)
        return unflatten(shape, [zeros_of(each) if one is None and self.owns(each) else one     # type: ignore[no-any-return]
                                 for one, each in zip(flatten(grads)[0], leaves, strict=True)])

    def branch(self, condition: Any, then: Branch, otherwise: Branch, args: list[Any]) -> list[Any]:
        """Run the branch on the layer below, and record it with both functions. Raises UnsupportedError for tensors in lists."""
        if not self.takes_part(args):
            return self.below.branch(condition, then, otherwise, [self.opened(arg) for arg in args])
        refuse_lists(args, self.owns, "a branch")
        results = self.below.branch(condition, then, otherwise, [self.opened(arg) for arg in args])
        entry = BranchEntry(self, "prim::If", [map_tensors(self.snapshot, arg) for arg in args], [], (condition, then, otherwise))
        return list(self.note(entry, tuple(results)))

    def repeat(self, limit: int | None, condition: Any, body: Branch, args: list[Any], count: int) -> list[Any]:
        """Run and record the rounds one by one, if a layer can decide the condition; else run the loop on the layer below, and record it
        with a history of its rounds.

        Raises UnsupportedError for tensors in lists.
        """
        if not self.takes_part(args):
            return self.below.repeat(limit, condition, body, [self.opened(arg) for arg in args], count)
        finals = run_rounds(self, limit, condition, body, args, count)
        if finals is not None:
            return finals
        refuse_lists(args, lambda value: self.owns(value) or any(value is each for each in tensors_in(args[:count])), "a loop")
        finals, history = self.below.keep(limit, self.opened(condition), body, [self.opened(arg) for arg in args], count)
        entry = LoopEntry(self, "prim::Loop", [map_tensors(self.snapshot, arg) for arg in args], [], (history, body, count))
        return list(self.note(entry, tuple(finals)))

    def keep(self, limit: int | None, condition: Any, body: Branch, args: list[Any], count: int) -> tuple[list[Any], Any]:
        """As the layer below. Raises UnsupportedError if a gradient would go through the history."""
        if any(self.owns(value) for value in tensors_in([condition, *args])):
            raise UnsupportedError("the second derivative of a loop whose condition is traced is not supported by tapes: trace the first, "
                                   "and differentiate its graph", code="E0501")
        return self.below.keep(limit, condition, body, args, count)

    def unwind(self, history: Any, step: Branch, state: list[Any], args: list[Any]) -> list[Any]:
        """As the layer below. Raises UnsupportedError if a gradient would go through the history."""
        if any(self.owns(value) for value in tensors_in([*state, *args])):
            raise UnsupportedError("the second derivative of a loop whose condition is traced is not supported by tapes: trace the first, "
                                   "and differentiate its graph", code="E0501")
        return self.below.unwind(history, step, state, args)

    def again(self, inner: Layer) -> Autograd:
        """A new tape."""
        return Autograd(inner, self.name)

    # -- back
    def gradients(self, outputs: Sequence[Any], seeds: Sequence[Any], wanted: Sequence[Any], unused: str = "none",
                  create_graph: bool | None = None) -> list[Any]:
        """The gradients of the sum of `outputs` times `seeds`, with respect to the tensors `wanted`, in their shapes and dtypes.

        seeds: tensors of the layer below, in the shapes of the outputs; None: the output takes no part. With create_graph (None: as the
        tape says) the gradients are on this tape, else tensors of the layer below. unused: the gradient of a tensor that the outputs do not
        depend on is None ("none") or zeros ("zeros").
        """
        is_again = self.create_graph if create_graph is None else create_graph
        walk = self.backward_pass(self.apply if is_again else self.outside().apply)
        last = -1
        for output, seed in zip(outputs, seeds, strict=True):
            if self.owns(output) and seed is not None:
                last = max(last, output.known.made_by)
                walk.accumulate(output.known, seed)
        if self.write is not None:
            self.write(f"-- {self.name} d{', d'.join(map(label, outputs))} -------")
        walk.run(last)
        if self.write is not None:
            self.write("-" * 24)
        results = walk.results(wanted)
        if unused == "zeros":
            return [walk.apply("aten::zeros_like", [self.opened(each), None, None, None, None, None])
                    if one is None and isinstance(each, Tensor) else one for one, each in zip(results, wanted, strict=True)]
        return results

    def backward_pass(self, apply: Callable[..., Any]) -> BackwardPass:
        """A walk back that begins; `apply` runs the operations of the gradients."""
        return BackwardPass(self, apply)

    def outside(self) -> Layer:
        """The layer on which derivatives run that this tape does not record: the one below, or layers pushed on that meanwhile."""
        top = current()
        return top if top.contains(self.below) and not top.contains(self) else self.below


def zeros_of(tensor: Any) -> Any:
    """Zeros of a tensor's shape and dtype, on the layer below its own."""
    return tensor.layer.below.apply("aten::zeros_like", [tensor.value, None, None, None, None, None])


def layers_of(tensor: Any) -> Iterator[Layer]:
    """The layers in whose boxes a tensor is, from the top."""
    while isinstance(tensor, Boxed):
        yield tensor.layer
        tensor = tensor.value


def register_hook(tensor: Any, hook: Hook) -> None:
    """Call `hook(gradient)` with the complete gradient of a tensor on a tape; a returned tensor replaces the gradient (as torch's
    Tensor.register_hook).

    Under `jvp`, `linearize` and `jacfwd`, which compute tangents and no gradients, the hook is not called. Raises DispatchError for a
    tensor that is on no tape, and for one in a function whose tangents are differentiated again.
    """
    if not isinstance(tensor, Boxed) or not isinstance(tensor.layer, Autograd):
        raise DispatchError("a hook needs a tensor whose gradient can be asked for")
    check_function("register_hook", hook)
    if tensor.layer.is_of_tangents:
        if any(layer.is_tape and not layer.is_of_tangents for layer in layers_of(tensor)):
            raise DispatchError("cannot register a hook on a tensor that doesn't require gradient: its tangents are computed here")
        return
    tensor.known.hooks = [*tensor.known.hooks, hook]
