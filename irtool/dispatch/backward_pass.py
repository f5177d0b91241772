"""The walk back over a tape: from gradients of results to those of operands, entry by entry, with hooks.

A hook is called with a gradient when it is complete, and may replace it. Hooks of tensors are in their variables, those of one operation in
its entry, those of all operations in the tape.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from irtool.dispatch.closure_conversion import Lifted
from irtool.dispatch.gradients_off import switched_off
from irtool.dispatch.stack import pushed
from irtool.dispatch.trees import flatten
from irtool.ir.errors import RunError
from irtool.ops.arrays import CODES, is_array
from irtool.ops.nested_tensors import map_tensors, tensors_in
from irtool.ops.tensor import Tensor

if TYPE_CHECKING:
    from irtool.dispatch.autograd import Autograd, Entry, Variable

Hook = Callable[[Any], Any]
"""Called with the gradient of a tensor; a returned tensor replaces it."""
PreHook = Callable[[str, list[Any]], Sequence[Any] | None]
"""Called before an operation is differentiated, with its name and the gradients of its results; a returned list replaces these."""
PostHook = Callable[[str, Sequence[Any], list[Any]], Sequence[Any] | None]
"""Called afterwards, with the name, the gradients of operands and those of results; a returned sequence replaces the former."""


class BackwardPass:
    """One walk back over a tape. apply: runs the operations of the gradients; grads: the sums so far, by variable."""

    def __init__(self, tape: Autograd, apply: Callable[..., Any]) -> None:
        self.tape = tape
        self.apply = apply
        self.grads: dict[int, Any] = {}
        self.seen: set[int] = set()     # variables whose hooks have run

    def run(self, last: int) -> None:
        """Differentiate the entries up to a number, the last one first."""
        for place in range(last, -1, -1):
            self.step(place)

    def step(self, place: int) -> None:
        """Differentiate an entry, if its results have gradients."""
        entry = self.tape.tape[place]
        cotangents = self.cotangents(entry)
        if any(True for _ in tensors_in(cotangents)):
            for arg, gradient in zip(entry.args, self.propagated(entry, cotangents), strict=True):
                self.hand_on(arg, gradient)

    def cotangents(self, entry: Entry) -> list[Any]:
        """The gradients of an entry's results."""
        return [self.complete(each) for each in entry.results]

    def propagated(self, entry: Entry, cotangents: list[Any]) -> Sequence[Any]:
        """The gradients of an operation's operands, with hooks called."""
        for before in (*self.tape.pre_hooks, *entry.pre_hooks):
            cotangents = list(replaced(before(entry.name, cotangents), cotangents))
        gradients = self.propagate(entry, cotangents)
        for after in (*self.tape.post_hooks, *entry.post_hooks):
            gradients = replaced(after(entry.name, gradients, cotangents), gradients)
        return gradients

    def propagate(self, entry: Entry, cotangents: list[Any]) -> Sequence[Any]:
        """The gradients of an operation's operands."""
        if not entry.is_quiet:
            return entry.propagate(cotangents, self.apply)
        with switched_off(entry.tape.below):
            return entry.propagate(cotangents, self.apply)

    def hand_on(self, arg: Any, gradient: Any) -> None:
        """Add a gradient to those of the variables in an operand."""
        if gradient is None:
            return
        if isinstance(arg, list | tuple | dict):
            for one, each in zip(flatten(arg)[0], flatten(gradient)[0], strict=True):
                self.hand_on(one, each)
        elif self.tape.owns(arg):
            self.accumulate(arg.known, gradient)

    def accumulate(self, variable: Variable, gradient: Any) -> None:
        """Add a gradient to the sum for a variable."""
        before = self.grads.get(id(variable))
        self.grads[id(variable)] = gradient if before is None else self.tape.rules.add(before, gradient, self.apply)

    def complete(self, value: Any) -> Any:
        """The gradient of a result, after its hooks, which run once per walk; None for a value without a gradient."""
        if isinstance(value, list):
            return [self.complete(each) for each in value]
        if isinstance(value, tuple):
            return tuple([self.complete(each) for each in value])
        if isinstance(value, dict):
            return {key: self.complete(each) for key, each in value.items()}
        if not self.tape.owns(value):
            return None
        variable = value.known
        gradient = self.grads.get(id(variable))
        if gradient is not None and variable.hooks and id(variable) not in self.seen:
            self.seen.add(id(variable))
            for hook in variable.hooks:
                gradient = self.grads[id(variable)] = replacement(self.called(hook, gradient), gradient)
        return gradient

    def called(self, hook: Hook, gradient: Any) -> Any:
        """What a hook returns for a gradient. It may read tensors on the tape, which are constants unless the walk itself is recorded."""
        layer = self.apply.__self__     # type: ignore[attr-defined]
        if layer is self.tape:
            with pushed(layer):
                return hook(gradient)
        if layer is self.tape.below:
            with pushed(self.tape):
                return self.tape.opened(hook(gradient))
        lifted = Lifted([hook])         # under a batch of cotangents, which does not know the tape
        with pushed(layer):
            return lifted.function(0, self.tape.opened(lifted.tensors))(gradient)

    def results(self, wanted: Sequence[Any]) -> list[Any]:
        """The gradients of these tensors, also in lists, tuples and dicts."""
        return [map_tensors(self.complete, each) for each in wanted]


def replaced(returned: Any, gradients: Sequence[Any]) -> Sequence[Any]:
    """Gradients after a hook on all of them returned `returned`. Raises RunError, in torch's words, for another number of them."""
    if returned is None:
        return gradients
    if not isinstance(returned, list | tuple):
        raise RunError(f"expected a list of gradients, but hook returned {repr(returned)[:40]}")
    if len(returned) != len(gradients):
        raise RunError(f"hook has returned an incorrect number of values (got {len(returned)}, but expected {len(gradients)})")
    return [each if one is None or each is None else replacement(each, one) for each, one in zip(returned, gradients, strict=True)]


def replacement(returned: Any, gradient: Any) -> Any:
    """A gradient after a hook returned `returned` for it. Raises RunError, in torch's words, for a tensor of another size or dtype or no
    tensor."""
    if returned is None:
        return gradient
    if isinstance(gradient, Tensor) and not isinstance(returned, Tensor):
        if not is_array(returned):
            raise RunError(f"expected a tensor as gradient, but hook returned {repr(returned)[:40]}")
        returned = Tensor(returned)
    if isinstance(returned, Tensor) and isinstance(gradient, Tensor) and returned.shape != gradient.shape:
        raise RunError(f"hook has changed the size of value (was {list(gradient.shape)}, got {list(returned.shape)})")
    if isinstance(returned, Tensor) and isinstance(gradient, Tensor) and returned.dtype != gradient.dtype:
        raise RunError(f"hook has changed the type of value (was {CODES[gradient.dtype]}, got {CODES[returned.dtype]})")
    return returned
