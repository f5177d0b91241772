"""The layer of functions that must not write into tensors from outside them: branches, bodies and steps of `irtool.torch.cond` and others.

A batch runs both branches, and all places of a loop as often as the last one; a trace runs what later runs may not. A write into a tensor
from outside would be seen where it should not have happened. So it is refused everywhere, also where the function runs alone.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from irtool.dispatch.layer_writes import is_view, may_copy, root_of, shares_memory
from irtool.dispatch.stack import Layer, current, pushed
from irtool.dispatch.tracer import written_statistics
from irtool.ir.arguments import called
from irtool.ir.effects import OF_EACH, STATISTICS, facts_of
from irtool.ir.errors import RunError
from irtool.ir.schema import forgets_kinds, schema_named
from irtool.ops.call import overload
from irtool.ops.nested_tensors import map_tensors, tensors_in
from irtool.ops.tensor import Tensor

Function = Callable[..., Any]


class WriteGuard(Layer):
    """Forwards each operation to the layer below, and refuses writes into tensors that are older than itself. function: its name in
    messages."""

    def __init__(self, inner: Layer, function: str) -> None:
        super().__init__(inner, inner.name)
        self.function = function
        self.views: dict[int, Tensor] = {}      # tensors made inside that may share memory with one from outside, by id

    def again(self, inner: Layer) -> WriteGuard:
        """A guard for tensors made from now on: all others have new handles there."""
        return WriteGuard(inner, self.function)

    def call(self, kind: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Run an operation by its kind, by the shortcuts of the layer below if the operator neither writes nor gives views."""
        if not named and self.rules.is_library and facts_of(kind).is_plain and kind not in OF_EACH:
            return self.below.call(kind, args, named)
        return super().call(kind, args, named)

    def apply(self, name: str, args: list[Any]) -> Any:
        """Run the operation on the layer below. Raises RunError for a write into a tensor from outside."""
        if self.rules.is_library and is_harmless(name):
            return self.below.apply(name, args)
        for target in written(name, args) if self.rules.is_library else args[:1] if self.facts(name).plain else ():
            if self.is_outside(target):
                raise self.refusal(f"a tensor from outside it ({name.partition('.')[0]})")
        result = self.below.apply(name, args)
        if self.facts(name).is_view:
            viewed = args[0] if isinstance(args[0], Tensor) else next((each for each in args if isinstance(each, list)), None)
            wholes = [each for each in tensors_in([viewed]) if self.is_outside(each)]
            for each in tensors_in([result]) if wholes else ():
                if not may_copy(name) or any(shares_memory(each, whole) for whole in wholes):
                    self.views[id(each)] = each
        return result

    def refusal(self, target: str) -> RunError:
        """The error for a write."""
        return RunError(f"{self.function} writes into {target}: higher order ops do not support input mutation; write into a copy, "
                        "x.clone()")

    def is_outside(self, tensor: Tensor) -> bool:
        """Is a tensor older than this layer, or does it share memory with one that is?"""
        root = root_of(tensor)
        return tensor.born < self.start or root.born < self.start or id(tensor) in self.views or id(root) in self.views

    def custom_vjp(self, forward: Function, backward: Function, args: Sequence[Any]) -> tuple[Any, Any]:
        """As the layer below, with the writes of `forward` refused."""
        guarded = without_writes(self.function, forward)
        return self.below.custom_vjp(lambda *values: guarded(values), backward, args)


def written(name: str, args: Sequence[Any]) -> Iterator[Tensor]:
    """The tensors that an operator writes into."""
    for place in places_written(name):
        yield from tensors_in(args[place:place + 1])
    for _, each in written_statistics(name, list(args)):
        yield each


@forgets_kinds
@cache
def places_written(name: str) -> tuple[int, ...]:
    """The positions of the arguments that an operator writes into."""
    schema = schema_named(name) or overload(name).schema
    return tuple(schema.written_places)


@forgets_kinds
@cache
def is_harmless(name: str) -> bool:
    """Does an operator write into nothing, and give no views?"""
    return not places_written(name) and not is_view(name) and name.partition(".")[0] not in STATISTICS


def without_writes(what: str, function: Function, are_apart: bool = False) -> Callable[[Sequence[Any]], Any]:
    """Calls of a user's function that must not write into tensors from outside it. what: its name in messages. are_apart: results that
    share memory with tensors from outside are copied, so that later writes into them are seen as little as under a batch or trace."""
    def guarded(args: Sequence[Any]) -> Any:
        with pushed(WriteGuard(current(), what)) as guard:
            results = called(what, function, args)
            return map_tensors(lambda each: each.clone() if guard.is_outside(each) else each, results) if are_apart else results
    return guarded
