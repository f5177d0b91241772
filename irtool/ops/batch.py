"""What a batching rule works with (`irtool.ops.batching`): the operation, the batched layer and the layer below.

In docstrings of rules, B is the extent of the batch dimension, the one that `vmap` hides: a batched tensor of shape (2, 3) is one of
shape (B, 2, 3) on the layer below. All other sizes, and all dimensions that an operator names, are without it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from irtool.ir.errors import UnsupportedError
from irtool.ir.schema import Schema
from irtool.ops.call import overload
from irtool.ops.nested_tensors import map_tensors, tensors_in
from irtool.ops.tensor import Tensor


class BatchedLayer(Protocol):
    """What rules ask of the layer that hides the batch dimension (`irtool.dispatch.batched`)."""

    length: int
    """The extent of the batch dimension."""
    randomness: str
    """What random operators do: draw the `same` numbers for all, or `different` ones."""

    @property
    def below(self) -> Any:
        """The layer below, with `call` and `apply`."""

    def owns(self, value: Any) -> bool:
        """Is it a tensor batched by this layer?"""

    def whole(self, value: Any) -> Any:
        """(...) -> (B, ...), on the layer below; expanded where the tensor is not batched."""

    def box(self, value: Any, dim: int = 0) -> Any:
        """A tensor of the layer below with its dimension `dim` hidden."""

    def call(self, kind: str, args: Sequence[Any], named: Any) -> Any:
        """Do an operation on this layer; the overload is chosen by the operands."""

    def apply(self, name: str, args: list[Any]) -> Any:
        """Do an overload on this layer, one value per argument."""

    def custom_vjp(self, forward: Callable[..., Any], backward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """Run `forward(*args)` on this layer, with a gradient of its own."""

    def write_into(self, target: Any, result: Any, name: str) -> Any:
        """Give a tensor that is written into its new value."""

    def numbers(self, value: Any) -> Any:
        """See Batch.numbers."""

    def elements(self, value: Any) -> Any:
        """See Batch.elements."""


class Batch:
    """One operation on one layer, as its batching rule sees it: `result = rule(batch, *args)`, args as in the schema."""

    __slots__ = ("layer", "name")

    def __init__(self, layer: BatchedLayer, name: str) -> None:
        self.layer = layer
        self.name = name

    @property
    def kind(self) -> str:
        """`aten::sum` of `aten::sum.dim_IntList`."""
        return self.name.partition(".")[0]

    @property
    def schema(self) -> Schema:
        """The overload's declaration."""
        return overload(self.name).schema

    @property
    def length(self) -> int:
        """The extent B of the batch dimension."""
        return self.layer.length

    def share(self, extent: int) -> int:
        """B * n -> n: an extent without the batch dimension that was folded into it. Raises UnsupportedError where B is 0."""
        self.refuse_none()
        return extent // self.length

    def refuse_none(self) -> None:
        """Raises UnsupportedError where B is 0 and would be folded into the channels, which then could not be told apart."""
        if not self.length:
            raise UnsupportedError(f"{self.kind} under vmap over a dimension of extent 0 is not supported: its places become channels",
                                   code="E0504")

    def has(self, value: Any) -> bool:
        """Is a tensor, or one in a list of them, batched?"""
        return any(self.layer.owns(each) for each in tensors_in(value))

    def front(self, value: Any) -> Any:
        """(...) -> (B, ...), on the layer below; (...) where the tensor is not batched. None stays None."""
        return self.layer.whole(value) if self.layer.owns(value) else value

    def whole(self, value: Any) -> Any:
        """(...) -> (B, ...), on the layer below, expanded where the tensor is not batched. None stays None."""
        return self.layer.whole(value) if isinstance(value, Tensor) else value

    def box(self, value: Any, dim: int = 0) -> Any:
        """Tensors of the layer below, in lists and tuples too, as batched ones: dimension `dim`, of extent B, is hidden."""
        return map_tensors(lambda each: self.layer.box(each, dim), value)

    def do(self, kind: str, *args: Any, **named: Any) -> Any:
        """An operation on the layer below: `batch.do("aten::add", x, y)`."""
        return self.layer.below.call(kind, args, named)

    def same(self, *args: Any) -> Any:
        """The overload itself, on the layer below."""
        return self.layer.below.apply(self.name, list(args))

    def again(self, kind: str, *args: Any, **named: Any) -> Any:
        """An operation on the batched layer itself, for rules made of other operators: `batch.again("aten::add", self, other)`."""
        return self.layer.call(kind, args, named)

    def numbers(self, value: Any) -> Any:
        """The elements, as Python numbers, of a tensor that is not batched. A trace that follows decisions notes it."""
        return self.layer.numbers(value)

    def elements(self, value: Any) -> Any:
        """The array below all layers: for a check that raises or passes, never for a result."""
        return self.layer.elements(value)
