"""The interface of batching rules (`irtool.ops.batching`): the operation, the batched layer and the layer below.

In docstrings of rules, B is the extent of the batch dimension, which `vmap` hides: a batched tensor of shape (2, 3) has the shape (B, 2, 3)
on the layer below. All other sizes, and the dimensions in arguments of operators, are without the batch dimension.
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
    """The methods of the layer that hides the batch dimension (`irtool.dispatch.batched`) that rules use."""

    length: int
    """The extent of the batch dimension."""
    randomness: str
    """Random operators draw the `same` numbers for all places, or `different` ones."""

    @property
    def below(self) -> Any:
        """The layer below, with `call` and `apply`."""

    def owns(self, value: Any) -> bool:
        """Is a value a tensor batched by this layer?"""

    def whole(self, value: Any) -> Any:
        """(...) -> (B, ...), on the layer below; expanded if the tensor is not batched."""

    def box(self, value: Any, dim: int = 0) -> Any:
        """A tensor of the layer below with its dimension `dim` hidden."""

    def call(self, kind: str, args: Sequence[Any], named: Any) -> Any:
        """Run an operation on this layer; the operands choose the overload."""

    def apply(self, name: str, args: list[Any]) -> Any:
        """Run an overload on this layer, on one value per argument."""

    def custom_vjp(self, forward: Callable[..., Any], backward: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """Run `forward(*args)` on this layer, with `backward` as its gradient."""

    def write_into(self, target: Any, result: Any, name: str) -> Any:
        """Give a tensor that is written into its new value."""

    def numbers(self, value: Any) -> Any:
        """See Batch.numbers."""

    def elements(self, value: Any) -> Any:
        """See Batch.elements."""


class Batch:
    """The first argument of a batching rule, `result = rule(batch, *args)`, for one operation on one layer; args as in the schema."""

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
        """The overload's schema."""
        return overload(self.name).schema

    @property
    def length(self) -> int:
        """The extent B of the batch dimension."""
        return self.layer.length

    def share(self, extent: int) -> int:
        """B * n -> n: an extent without the batch dimension that was folded into it. Raises UnsupportedError if B is 0."""
        self.refuse_none()
        return extent // self.length

    def refuse_none(self) -> None:
        """Raises UnsupportedError if B is 0: folded into the channels, it could not be separated from them again."""
        if not self.length:
            raise UnsupportedError(f"{self.kind} under vmap over a dimension of extent 0 is not supported: its places become channels",
                                   code="E0504")

    def has(self, value: Any) -> bool:
        """Is a tensor, or one in a list, batched?"""
        return any(self.layer.owns(each) for each in tensors_in(value))

    def front(self, value: Any) -> Any:
        """(...) -> (B, ...), on the layer below; (...) if the tensor is not batched. None stays None."""
        return self.layer.whole(value) if self.layer.owns(value) else value

    def whole(self, value: Any) -> Any:
        """(...) -> (B, ...), on the layer below, expanded if the tensor is not batched. None stays None."""
        return self.layer.whole(value) if isinstance(value, Tensor) else value

    def box(self, value: Any, dim: int = 0) -> Any:
        """Hide dimension `dim`, of extent B, in tensors of the layer below, in lists and tuples too."""
        return map_tensors(lambda each: self.layer.box(each, dim), value)

    def do(self, kind: str, *args: Any, **named: Any) -> Any:
        """Run an operation on the layer below: `batch.do("aten::add", x, y)`."""
        return self.layer.below.call(kind, args, named)

    def same(self, *args: Any) -> Any:
        """Run the overload itself on the layer below."""
        return self.layer.below.apply(self.name, list(args))

    def again(self, kind: str, *args: Any, **named: Any) -> Any:
        """Run another operation on the batched layer, for rules composed of other operators: `batch.again("aten::add", self, other)`."""
        return self.layer.call(kind, args, named)

    def numbers(self, value: Any) -> Any:
        """The elements, as Python numbers, of a tensor that is not batched; in a trace of `jit` they become a decision."""
        return self.layer.numbers(value)

    def elements(self, value: Any) -> Any:
        """The array below all layers, only for checks that raise or pass, never for a result."""
        return self.layer.elements(value)
