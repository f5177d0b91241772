"""Gradients of loops whose condition is undecided: the carried values of each round are saved, and the rounds differentiated in reverse.

A tape runs a loop round by round if a layer can decide when to stop (a batched condition: when it holds at no place). Under a trace
nobody can: the loop is recorded as a Loop that appends the carried values of each round to lists; the backward pass is a Loop over these
lists, which runs each round again on a new tape. For this, layers have two more methods: `keep` is `repeat` with a History, and `unwind`
runs over the rounds of a History.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from irtool.dispatch.control_flow import either, holds_anywhere, truth
from irtool.dispatch.stack import Branch, Layer, current, is_floating, pushed
from irtool.ir.errors import UnsupportedError
from irtool.ops.nested_tensors import tensors_in
from irtool.ops.tensor import Tensor

if TYPE_CHECKING:
    from irtool.dispatch.autograd import Autograd, Entry


class History:
    """The carried values at the start of each round of a loop. record: these, in a form that only `layer` understands."""

    __slots__ = ("layer", "record")

    def __init__(self, layer: Layer, record: Any) -> None:
        self.layer = layer
        self.record = record


def run_rounds(layer: Layer, limit: int | None, condition: Any, body: Branch, args: Sequence[Any], count: int) -> list[Any] | None:
    """The final carried values of a loop, run round by round on a layer while its condition holds at any place. None: undecided.

    A place where the condition does not hold keeps its values.
    """
    carried, rest, done = list(args[:count]), args[count:], 0
    while limit is None or done < limit:
        goes_on = holds_anywhere(layer, condition)
        if goes_on is None:
            return None
        if not goes_on:
            break
        with pushed(layer):
            after, *results = body(*carried, *rest)
        if isinstance(condition, Tensor):
            carried = either(layer, condition, results, carried)
            condition = layer.call("aten::logical_and", (condition, truth(after, layer.apply)), {})
        else:
            carried, condition = results, after
        done += 1
    return carried


def propagate_rounds(entry: Entry, tape: Autograd, grads: list[Any], layer: Layer) -> Sequence[Any]:
    """The gradients of a loop's operands from those of its final carried values. Operations run on `layer`."""
    history, body, count = entry.saved
    args = entry.args if layer is tape else [tape.opened(arg) for arg in entry.args]
    moving = [place for place in range(count) if is_floating(args[place])]
    read = [place for place in range(count, len(args)) if tape.owns(entry.args[place])]
    rest = args[count:]

    def zeros(value: Any) -> Any:
        return layer.apply("aten::zeros_like", [value, None, None, None, None, None])

    def back(*values: Any) -> list[Any]:
        """Differentiate one round: returns the gradients of its initial carried values, and the sums of gradients of outer values.

        values: the round's initial carried values; the gradients of its final ones, and the sums so far; the outer values.
        """
        inner = tape.again(current())
        inner.runs_again = True
        carried, state, others = values[:count], values[count:count + len(moving) + len(read)], values[count + len(moving) + len(read):]
        operands = [inner.variable(each) if place in moving or place in read else each for place, each in enumerate([*carried, *others])]
        with pushed(inner):
            _, *results = body(*operands)
        wanted = [operands[place] for place in (*moving, *read)]
        gradients = inner.gradients([results[place] for place in moving], state[:len(moving)], wanted, "zeros")
        sums = [inner.below.apply("aten::add.Tensor", [a, b, 1]) for a, b in zip(state[len(moving):], gradients[len(moving):], strict=True)]
        return [*gradients[:len(moving)], *sums]

    state = [*[zeros(args[place]) if grads[place] is None else grads[place] for place in moving], *[zeros(args[place]) for place in read]]
    by_place = dict(zip((*moving, *read), layer.unwind(history, back, state, rest), strict=True))
    return [by_place.get(place) for place in range(len(args))]


def refuse_lists(args: Sequence[Any], owns: Callable[[Any], bool], what: str) -> None:
    """Raise UnsupportedError for variables of a tape in lists."""
    if any(owns(value) for arg in args if isinstance(arg, list | tuple) for value in tensors_in(arg)):
        raise UnsupportedError(f"the gradient of {what} that is batched or traced is not supported with lists of tensors", code="E0501")
