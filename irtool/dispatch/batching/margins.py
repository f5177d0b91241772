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
    do = batch.again
    return do("aten::where", condition, value, do("aten::zeros_like", value))


def rows_of(batch: Batch, value: Any) -> Any:
    """A matrix; of a vector one row."""
    return value if value.ndim == 2 else batch.again("aten::reshape", value, [1, -1])


def spread(batch: Batch, grad: Any, slopes: Any, self: Any, count: int) -> Any:
    """The slopes times each row's share of the gradient, in the shape of the operand."""
    do = batch.again
    share = do("aten::div", do("aten::reshape", grad, [-1, 1]), count)
    return do("aten::reshape", do("aten::mul", slopes, share), list(self.shape))


# ---- one class per row

def margins(batch: Batch, self: Any, target: Any, p: Any, margin: Any, weight: Any) -> tuple[Any, Any, Any]:
    """What each class is too near by, its slope, and which classes are others."""
    do = batch.again
    x = rows_of(batch, self)
    index = do("aten::reshape", target, [-1, 1])
    own = do("aten::gather", x, 1, index)
    room = do("aten::clamp_min", do("aten::add", do("aten::rsub", own, margin), x), 0)
    slopes = do("aten::to", do("aten::gt", room, 0), room.dtype) if p == 1 else do("aten::mul", room, 2)
    terms = room if p == 1 else do("aten::mul", room, room)
    if weight is not None:
        scale = do("aten::take", weight, index)
        terms, slopes = (do("aten::mul", each, scale) for each in (terms, slopes))
    return terms, slopes, do("aten::ne", Tensor(np.arange(x.shape[1])), index)


@rule("multi_margin_loss")
def multi_margin_loss(batch: Batch, self: Any, target: Any, p: Any, margin: Any, weight: Any, reduction: int) -> Any:
    """Over the other classes of a row."""
    do = batch.again
    terms, _, others = margins(batch, self, target, p, margin, weight)
    loss = do("aten::div", do("aten::sum", zeros_where(batch, others, terms), [1]), terms.shape[1])
    return reduced(batch, loss if target.ndim else do("aten::reshape", loss, []), reduction)


@rule("multi_margin_loss_backward")
def multi_margin_loss_backward(batch: Batch, grad: Any, self: Any, target: Any, p: Any, margin: Any, weight: Any, reduction: int) -> Any:
    """To the other classes, and all of it back from the row's own."""
    do = batch.again
    _, slopes, others = margins(batch, self, target, p, margin, weight)
    slopes = zeros_where(batch, others, slopes)
    back = do("aten::neg", do("aten::sum", slopes, [1], True))
    slopes = do("aten::where", others, slopes, back)
    return spread(batch, grad, slopes, self, slopes.shape[1] * (slopes.shape[0] if reduction == MEAN else 1))


# ---- several classes per row

def pairs(batch: Batch, self: Any, target: Any) -> tuple[Any, Any, Any, Any]:
    """For each target and each other class of a row how much too near they are, and whether; each target's class; the targets."""
    do = batch.again
    x, t = rows_of(batch, self), rows_of(batch, target)
    there = do("aten::to", do("aten::ge", t, 0), 4)
    there = do("aten::to", do("aten::cumprod", there, 1), 11)     # up to the first -1
    label = zeros_where(batch, there, t)
    count = do("aten::scatter_add", do("aten::zeros_like", x), 1, label, do("aten::to", there, x.dtype))
    is_target = do("aten::gt", count, 0)
    own = do("aten::unsqueeze", do("aten::gather", x, 1, label), 2)
    room = do("aten::add", do("aten::rsub", own, 1), do("aten::unsqueeze", x, 1))
    others = do("aten::unsqueeze", do("aten::logical_not", is_target), 1)
    chosen = do("aten::logical_and", do("aten::unsqueeze", there, 2), others)
    is_near = do("aten::logical_and", chosen, do("aten::gt", room, 0))
    return room, is_near, label, do("aten::to", is_target, x.dtype)


@rule("multilabel_margin_loss multilabel_margin_loss_forward")
def multilabel_margin_loss(batch: Batch, self: Any, target: Any, reduction: int) -> Any:
    """Over pairs of a target and another class."""
    do = batch.again
    room, is_near, _, is_target = pairs(batch, self, target)
    loss = do("aten::div", do("aten::sum", zeros_where(batch, is_near, room), [1, 2]), room.shape[2])
    found = reduced(batch, loss if self.ndim == 2 else do("aten::reshape", loss, []), reduction)
    return (found, do("aten::reshape", is_target, list(self.shape))) if "forward" in batch.kind else found


@rule("multilabel_margin_loss_backward")
def multilabel_margin_loss_backward(batch: Batch, grad: Any, self: Any, target: Any, reduction: int, is_target: Any) -> Any:
    """To the other class of each pair, and back from the target."""
    do = batch.again
    room, is_near, label, _ = pairs(batch, self, target)
    near = do("aten::to", is_near, room.dtype)
    back = do("aten::neg", do("aten::sum", near, [2]))
    slopes = do("aten::scatter_add", do("aten::sum", near, [1]), 1, label, back)
    slopes = do("aten::div", slopes, max(slopes.shape[1], 1))
    return spread(batch, grad, slopes, self, slopes.shape[0] if reduction == MEAN else 1)
