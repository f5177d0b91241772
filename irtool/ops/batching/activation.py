"""Batching rules of activations with a weight or random slopes; the others are pointwise."""
from __future__ import annotations

from typing import Any

from irtool.ir.errors import UnsupportedError
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import along
from irtool.ops.batching.random import random_of
from irtool.ops.kernels.activation import table


@table.batch("rrelu_with_noise")
def rrelu_with_noise(batch: Batch, self: Any, noise: Any, lower: Any, upper: Any, training: bool, generator: Any) -> Any:
    """Slopes drawn per slice of the batch, into a copy of noise, which in training is then noise's new value."""
    if batch.layer.randomness == "same" and training:
        raise UnsupportedError(f"{batch.kind} under vmap is not supported with randomness='same'", code="E0504")
    slopes = batch.do("aten::clone", batch.whole(noise))
    result = batch.box(batch.same(batch.whole(self), slopes, lower, upper, training, generator))
    if training:
        batch.layer.write_into(noise, batch.box(slopes), batch.name)
    return result


@table.batch("prelu")
def prelu(batch: Batch, self: Any, weight: Any) -> Any:
    """weight () or (C) -> one that broadcasts against self (N, C, ...), then `_prelu_kernel`."""
    if weight.ndim == 1 and self.ndim > 1:
        weight = batch.again("aten::reshape", weight, [-1, *[1] * (self.ndim - 2)])
    elif weight.ndim == 1 and not self.ndim:
        weight = batch.again("aten::reshape", weight, [])
    return batch.again("aten::_prelu_kernel", self, weight)


table.batch("glu glu_backward")(along)
table.batch("rrelu")(random_of)
