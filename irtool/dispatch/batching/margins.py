"""Losses of margins between classes, with every pair of classes at once."""
from __future__ import annotations

from typing import Any

import numpy as np

from irtool.dispatch.batched import Batch
from irtool.dispatch.batching import rule
from irtool.dispatch.batching.losses import MEAN, reduced
from irtool.ops.tensor import Tensor


def zeros_where(batch: Batch, condition: Any, value: Any) -> Any:
    """The value where a condition holds, zeros elsewhere."""
    return batch.again("aten::where", condition, value, batch.again("aten::zeros_like", value))


def rows_of(batch: Batch, value: Any) -> Any:
    """A matrix; of a vector one row."""
    return value if value.ndim == 2 else batch.again("aten::reshape", value, [1, -1])


def spread(batch: Batch, grad: Any, slopes: Any, self: Any, count: int) -> Any:
    """The slopes times each row's share of the gradient, in the shape of the operand."""
    share = batch.again("aten::div", batch.again("aten::reshape", grad, [-1, 1]), count)
    return batch.again("aten::reshape", batch.again("aten::mul", slopes, share), list(self.shape))


# ---- one class per row

def margins(batch: Batch, self: Any, target: Any, p: Any, margin: Any, weight: Any) -> tuple[Any, Any, Any]:
    """What each class is too near by, its slope, and which classes are others."""
    x = rows_of(batch, self)
    index = batch.again("aten::reshape", target, [-1, 1])
    own = batch.again("aten::gather", x, 1, index)
    room = batch.again("aten::clamp_min", batch.again("aten::add", batch.again("aten::rsub", own, margin), x), 0)
    slopes = batch.again("aten::to", batch.again("aten::gt", room, 0), room.dtype) if p == 1 else batch.again("aten::mul", room, 2)
    terms = room if p == 1 else batch.again("aten::mul", room, room)
    if weight is not None:
        scale = batch.again("aten::take", weight, index)
        terms, slopes = (batch.again("aten::mul", each, scale) for each in (terms, slopes))
    return terms, slopes, batch.again("aten::ne", Tensor(np.arange(x.shape[1])), index)


@rule("multi_margin_loss")
def multi_margin_loss(batch: Batch, self: Any, target: Any, p: Any, margin: Any, weight: Any, reduction: int) -> Any:
    """Over the other classes of a row."""
    terms, _, others = margins(batch, self, target, p, margin, weight)
    loss = batch.again("aten::div", batch.again("aten::sum", zeros_where(batch, others, terms), [1]), terms.shape[1])
    return reduced(batch, loss if target.ndim else batch.again("aten::reshape", loss, []), reduction)


@rule("multi_margin_loss_backward")
def multi_margin_loss_backward(batch: Batch, grad: Any, self: Any, target: Any, p: Any, margin: Any, weight: Any, reduction: int) -> Any:
    """To the other classes, and all of it back from the row's own."""
    _, slopes, others = margins(batch, self, target, p, margin, weight)
    slopes = zeros_where(batch, others, slopes)
    back = batch.again("aten::neg", batch.again("aten::sum", slopes, [1], True))
    slopes = batch.again("aten::where", others, slopes, back)
    return spread(batch, grad, slopes, self, slopes.shape[1] * (slopes.shape[0] if reduction == MEAN else 1))


# ---- several classes per row

def pairs(batch: Batch, self: Any, target: Any) -> tuple[Any, Any, Any, Any]:
    """For each target and each other class of a row how much too near they are, and whether; each target's class; the targets."""
    x, t = rows_of(batch, self), rows_of(batch, target)
    there = batch.again("aten::to", batch.again("aten::ge", t, 0), 4)
    there = batch.again("aten::to", batch.again("aten::cumprod", there, 1), 11)     # up to the first -1
    label = zeros_where(batch, there, t)
    count = batch.again("aten::scatter_add", batch.again("aten::zeros_like", x), 1, label, batch.again("aten::to", there, x.dtype))
    is_target = batch.again("aten::gt", count, 0)
    own = batch.again("aten::unsqueeze", batch.again("aten::gather", x, 1, label), 2)
    room = batch.again("aten::add", batch.again("aten::rsub", own, 1), batch.again("aten::unsqueeze", x, 1))
    others = batch.again("aten::unsqueeze", batch.again("aten::logical_not", is_target), 1)
    chosen = batch.again("aten::logical_and", batch.again("aten::unsqueeze", there, 2), others)
    is_near = batch.again("aten::logical_and", chosen, batch.again("aten::gt", room, 0))
    return room, is_near, label, batch.again("aten::to", is_target, x.dtype)


@rule("multilabel_margin_loss multilabel_margin_loss_forward")
def multilabel_margin_loss(batch: Batch, self: Any, target: Any, reduction: int) -> Any:
    """Over pairs of a target and another class."""
    room, is_near, _, is_target = pairs(batch, self, target)
    loss = batch.again("aten::div", batch.again("aten::sum", zeros_where(batch, is_near, room), [1, 2]), room.shape[2])
    found = reduced(batch, loss if self.ndim == 2 else batch.again("aten::reshape", loss, []), reduction)
    return (found, batch.again("aten::reshape", is_target, list(self.shape))) if "forward" in batch.kind else found


@rule("multilabel_margin_loss_backward")
def multilabel_margin_loss_backward(batch: Batch, grad: Any, self: Any, target: Any, reduction: int, is_target: Any) -> Any:
    """To the other class of each pair, and back from the target."""
    room, is_near, label, _ = pairs(batch, self, target)
    near = batch.again("aten::to", is_near, room.dtype)
    back = batch.again("aten::neg", batch.again("aten::sum", near, [2]))
    slopes = batch.again("aten::scatter_add", batch.again("aten::sum", near, [1]), 1, label, back)
    slopes = batch.again("aten::div", slopes, max(slopes.shape[1], 1))
    return spread(batch, grad, slopes, self, slopes.shape[0] if reduction == MEAN else 1)
