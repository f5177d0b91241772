"""Gradients of loops whose condition no layer knows: what each round begins with is kept, and the rounds are gone through backwards.

A tape runs a loop round by round where it can be told when to stop: of a batched condition, when it holds nowhere any more. Under a trace
it cannot: the loop stays a Loop, whose rounds leave what they carry in lists, and the way back is a Loop over them, which runs each
round again on a tape of its own. So layers have two more methods: `keep` is `repeat` with a History, `unwind` goes back through one.
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
    """What a loop carried at the beginning of each of its rounds; `record` holds it in a form that only `layer` reads."""

    __slots__ = ("layer", "record")

    def __init__(self, layer: Layer, record: Any) -> None:
        self.layer = layer
        self.record = record


def run_rounds(layer: Layer, limit: int | None, condition: Any, body: Branch, args: Sequence[Any], count: int) -> list[Any] | None:
    """What a loop carries at its end, run round by round on a layer while its condition holds at any place. None: no layer knows it.

    Places where it does not hold keep what they have.
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
    """The gradients of a loop's operands from those of what it carries at its end. Operations run on `layer`."""
    history, body, count = entry.saved
    args = entry.args if layer is tape else [tape.opened(arg) for arg in entry.args]
    moving = [place for place in range(count) if is_floating(args[place])]
    read = [place for place in range(count, len(args)) if tape.owns(entry.args[place])]
    rest = args[count:]

    def zeros(value: Any) -> Any:
        return layer.apply("aten::zeros_like", [value, None, None, None, None, None])

    def back(*values: Any) -> list[Any]:
        """One round backwards: the gradients of what it began with, and the sums of gradients of what it reads.

        values: what it began with; the gradients of what it ended with, and the sums so far; what it reads.
        """
        inner = tape.again(current())
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


__all__ = ["History", "propagate_rounds", "refuse_lists", "run_rounds"]
