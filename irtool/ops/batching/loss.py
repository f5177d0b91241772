"""Batching rules of losses by element or by row: without reduction first, then the mean or sum."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import lined_up, pointwise
from irtool.ops.kernels.loss import table
from irtool.ops.tensor import Tensor

NONE, MEAN, SUM = range(3)
"""torch's numbers for reductions."""


def reduced(batch: Batch, losses: Any, reduction: int) -> Any:
    """losses, or their mean or sum -> ()."""
    if reduction == NONE:
        return losses
    return batch.again("aten::mean" if reduction == MEAN else "aten::sum", losses)


@table.batch("mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss kl_div binary_cross_entropy binary_cross_entropy_with_logits "
             "poisson_nll_loss margin_ranking_loss hinge_embedding_loss")
def elementwise_loss(batch: Batch, *args: Any) -> Any:
    """Pointwise without reduction, of operands (B, ...); then reduced."""
    place = batch.schema.positions["reduction"]
    operands = expanded(batch, args)
    return reduced(batch, pointwise(batch, *operands[:place], NONE, *operands[place + 1:]), args[place])


@table.batch("mse_loss_backward smooth_l1_loss_backward huber_loss_backward soft_margin_loss_backward binary_cross_entropy_backward")
def elementwise_loss_backward(batch: Batch, grad: Any, self: Any, *args: Any) -> Any:
    """grad () -> self's shape, over the number of elements for a mean; then pointwise without reduction."""
    place = batch.schema.positions["reduction"]
    values = [grad, self, *args]
    reduction = values[place]
    if reduction == MEAN:
        count = math.prod(self.shape)
        values[0] = batch.again("aten::div", grad, float(max(count, 1)))
    if reduction != NONE:
        values[0] = batch.again("aten::expand", values[0], list(self.shape))
    values[place] = NONE
    return pointwise(batch, *expanded(batch, values))


def expanded(batch: Batch, values: Sequence[Any]) -> list[Any]:
    """Every tensor batched: these operators, or gradients of theirs, want operands of equal shapes."""
    return [batch.box(batch.whole(each)) if isinstance(each, Tensor) else each for each in values]


@table.batch("cosine_embedding_loss")
def cosine_embedding_loss(batch: Batch, x1: Any, x2: Any, target: Any, margin: float, reduction: int) -> Any:
    """cos of rows (..., d): 1 - cos where target is 1, max(0, cos - margin) where it is -1; then reduced."""
    def along_rows(a: Any, b: Any) -> Any:
        return batch.again("aten::sum", batch.again("aten::mul", a, b), [-1])

    first, second = (batch.again("aten::add", along_rows(each, each), 1e-12) for each in (x1, x2))
    squares = batch.again("aten::mul", first, second)
    cosine = batch.again("aten::div", along_rows(x1, x2), batch.again("aten::sqrt", squares))
    zero = batch.again("aten::zeros_like", cosine)
    near = batch.again("aten::clamp_min", batch.again("aten::sub", cosine, margin), 0)
    alike = batch.again("aten::where", batch.again("aten::eq", target, 1), batch.again("aten::rsub", cosine, 1), zero)
    apart = batch.again("aten::where", batch.again("aten::eq", target, -1), near, zero)
    return reduced(batch, batch.again("aten::add", alike, apart), reduction)


@table.batch("triplet_margin_loss")
def row_loss(batch: Batch, *args: Any) -> Any:
    """(..., d) -> (B, ..., d) without reduction; then reduced. Operands are broadcast, so they get one rank; numbers are rows of one."""
    place = batch.schema.positions["reduction"]
    rank = max([1, *[each.ndim for each in args if isinstance(each, Tensor)]])
    values = [lined_up(batch, each, rank - each.ndim) if isinstance(each, Tensor) else each for each in args]
    values[place] = NONE
    return reduced(batch, batch.box(batch.same(*values)), args[place])
