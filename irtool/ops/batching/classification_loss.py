"""Batching rules of losses over classes: nll_loss, cross_entropy_loss, margins between classes, CTC."""
from __future__ import annotations

from typing import Any

from irtool.ir.errors import UnsupportedError
from irtool.ops.array_library import np
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import rows_apart, time_and_rows, zeros_where
from irtool.ops.batching.loss import MEAN, NONE, SUM, reduced
from irtool.ops.kernels.classification_loss import table
from irtool.ops.tensor import Tensor


def weights_of(batch: Batch, target: Any, weight: Any, ignore_index: int, like: Any) -> Any:
    """The weight of each target's class, in target's shape: 1 without weights, 0 for ignore_index."""
    counts = batch.again("aten::ne", target, ignore_index)
    if weight is None:
        return batch.again("aten::to", counts, like.dtype)
    safe = batch.again("aten::where", counts, target, batch.again("aten::zeros_like", target))
    return batch.again("aten::mul", batch.again("aten::take", weight, safe), batch.again("aten::to", counts, weight.dtype))


@table.batch("nll_loss nll_loss2d nll_loss_nd nll_loss_forward nll_loss2d_forward")
def nll_loss(batch: Batch, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """-self[target] * weight[target] by gather; then the sum, or the sum over the total weight."""
    dim = 0 if self.ndim == 1 else 1
    target = batch.again("aten::reshape", target, []) if self.ndim == 1 and target.ndim else target
    is_counted = batch.again("aten::ne", target, ignore_index)
    safe = batch.again("aten::where", is_counted, target, batch.again("aten::zeros_like", target))
    picked = batch.again("aten::squeeze", batch.again("aten::gather", self, dim, batch.again("aten::unsqueeze", safe, dim)), dim)
    counts = weights_of(batch, target, weight, ignore_index, self)
    losses = batch.again("aten::neg", batch.again("aten::mul", picked, counts))
    total = batch.again("aten::sum", counts)
    if reduction == NONE:
        result = losses
    else:
        result = batch.again("aten::sum", losses)
        if reduction == MEAN:
            result = batch.again("aten::div", result, total)
    if "forward" not in batch.kind:
        return result
    return result, total if reduction != NONE or self.ndim == 1 else batch.again("aten::zeros_like", total)


@table.batch("nll_loss_backward nll_loss2d_backward")
def nll_loss_backward(batch: Batch, grad: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total: Any) -> Any:
    """-grad * weight[target], scattered into zeros of self's shape at target."""
    dim = 0 if self.ndim == 1 else 1
    if not dim:     # of one target, with a dimension or without
        target = batch.again("aten::reshape", target, [])
    is_counted = batch.again("aten::ne", target, ignore_index)
    safe = batch.again("aten::where", is_counted, target, batch.again("aten::zeros_like", target))
    counts = weights_of(batch, target, weight, ignore_index, self)
    if reduction == MEAN:
        grad = batch.again("aten::div", grad, total)
    put = batch.again("aten::neg", batch.again("aten::mul", counts, grad))
    return batch.again("aten::scatter", batch.again("aten::zeros_like", self), dim, batch.again("aten::unsqueeze", safe, dim),
                       batch.again("aten::unsqueeze", put, dim))


@table.batch("cross_entropy_loss")
def cross_entropy(batch: Batch, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, smoothing: float) -> Any:
    """log_softmax; then nll_loss for targets that are classes, or -sum(target * logs) for targets that are probabilities."""
    dim = 0 if self.ndim == 1 else 1
    logs = batch.again("aten::log_softmax", self, dim)
    shape = [-1, *[1] * (self.ndim - dim - 1)]
    scaled = logs if weight is None else batch.again("aten::mul", logs, batch.again("aten::reshape", weight, shape))
    if target.dtype in (5, 6, 7, 15):       # chances
        if smoothing:
            target = batch.again("aten::add", batch.again("aten::mul", target, 1 - smoothing), smoothing / self.shape[dim])
        losses = batch.again("aten::neg", batch.again("aten::sum", batch.again("aten::mul", scaled, target), [dim]))
        if reduction != MEAN:
            return reduced(batch, losses, reduction)
        count = 1
        for place, extent in enumerate(self.shape):
            count *= extent if place != dim else 1
        return batch.again("aten::div", batch.again("aten::sum", losses), float(count if self.shape[dim] else 0))
    loss = batch.again("aten::nll_loss_nd", logs, target, weight, reduction, ignore_index)
    if not smoothing:
        return loss
    counts = batch.again("aten::to", batch.again("aten::ne", target, ignore_index), self.dtype)
    smooth = batch.again("aten::mul", batch.again("aten::neg", batch.again("aten::sum", scaled, [dim])), counts)
    if reduction == MEAN:
        total = batch.again("aten::sum", weights_of(batch, target, weight, ignore_index, self))
        smooth = batch.again("aten::div", batch.again("aten::sum", smooth), total)
    else:
        smooth = reduced(batch, smooth, reduction)
    smooth = batch.again("aten::mul", smooth, smoothing / self.shape[dim])
    return batch.again("aten::add", batch.again("aten::mul", loss, 1 - smoothing), smooth)


def rows_of(batch: Batch, value: Any) -> Any:
    """(N, C) -> (N, C); (C) -> (1, C)."""
    return value if value.ndim == 2 else batch.again("aten::reshape", value, [1, -1])


def spread(batch: Batch, grad: Any, slopes: Any, self: Any, count: int) -> Any:
    """slopes (N, C) * grad (N) or () / count, reshaped like self."""
    do = batch.again
    share = do("aten::div", do("aten::reshape", grad, [-1, 1]), count)
    return do("aten::reshape", do("aten::mul", slopes, share), list(self.shape))


def margins(batch: Batch, self: Any, target: Any, p: Any, margin: Any, weight: Any) -> tuple[Any, Any, Any]:
    """(terms, slopes, is_other), each (N, C).

    terms = max(0, margin - x[target] + x[c]) ** p * weight[target]; slopes: their derivatives by x[c]; is_other: c != target.
    """
    do = batch.again
    x = rows_of(batch, self)
    index = do("aten::reshape", target, [-1, 1])
    chosen = do("aten::gather", x, 1, index)
    room = do("aten::clamp_min", do("aten::add", do("aten::rsub", chosen, margin), x), 0)
    slopes = do("aten::to", do("aten::gt", room, 0), room.dtype) if p == 1 else do("aten::mul", room, 2)
    terms = room if p == 1 else do("aten::mul", room, room)
    if weight is not None:
        scale = do("aten::take", weight, index)
        terms, slopes = (do("aten::mul", each, scale) for each in (terms, slopes))
    return terms, slopes, do("aten::ne", Tensor(np.arange(x.shape[1])), index)


@table.batch("multi_margin_loss")
def multi_margin_loss(batch: Batch, self: Any, target: Any, p: Any, margin: Any, weight: Any, reduction: int) -> Any:
    """The mean over classes of the terms of classes other than the target; then reduced."""
    do = batch.again
    terms, _, others = margins(batch, self, target, p, margin, weight)
    loss = do("aten::div", do("aten::sum", zeros_where(batch, others, terms), [1]), terms.shape[1])
    return reduced(batch, loss if target.ndim else do("aten::reshape", loss, []), reduction)


@table.batch("multi_margin_loss_backward")
def multi_margin_loss_backward(batch: Batch, grad: Any, self: Any, target: Any, p: Any, margin: Any, weight: Any, reduction: int) -> Any:
    """The slopes of the other classes; the target's class has minus their sum."""
    do = batch.again
    _, slopes, others = margins(batch, self, target, p, margin, weight)
    slopes = zeros_where(batch, others, slopes)
    back = do("aten::neg", do("aten::sum", slopes, [1], True))
    slopes = do("aten::where", others, slopes, back)
    return spread(batch, grad, slopes, self, slopes.shape[1] * (slopes.shape[0] if reduction == MEAN else 1))


def pairs(batch: Batch, self: Any, target: Any) -> tuple[Any, Any, Any, Any]:
    """(room, is_near, label, is_target) for self (N, C) and target (N, C), of which entries behind the first -1 do not count.

    room (N, target, class) = 1 - x[target] + x[class]; is_near: room > 0, and class is no target; label: target, 0 where it does not count.
    """
    do = batch.again
    x, t = rows_of(batch, self), rows_of(batch, target)
    is_listed = do("aten::to", do("aten::ge", t, 0), 4)
    is_listed = do("aten::to", do("aten::cumprod", is_listed, 1), 11)     # up to the first -1
    label = zeros_where(batch, is_listed, t)
    count = do("aten::scatter_add", do("aten::zeros_like", x), 1, label, do("aten::to", is_listed, x.dtype))
    is_target = do("aten::gt", count, 0)
    score = do("aten::unsqueeze", do("aten::gather", x, 1, label), 2)
    room = do("aten::add", do("aten::rsub", score, 1), do("aten::unsqueeze", x, 1))
    others = do("aten::unsqueeze", do("aten::logical_not", is_target), 1)
    chosen = do("aten::logical_and", do("aten::unsqueeze", is_listed, 2), others)
    is_near = do("aten::logical_and", chosen, do("aten::gt", room, 0))
    return room, is_near, label, do("aten::to", is_target, x.dtype)


@table.batch("multilabel_margin_loss multilabel_margin_loss_forward")
def multilabel_margin_loss(batch: Batch, self: Any, target: Any, reduction: int) -> Any:
    """sum(room[is_near]) / C by row; then reduced."""
    do = batch.again
    room, is_near, _, is_target = pairs(batch, self, target)
    loss = do("aten::div", do("aten::sum", zeros_where(batch, is_near, room), [1, 2]), room.shape[2])
    result = reduced(batch, loss if self.ndim == 2 else do("aten::reshape", loss, []), reduction)
    return (result, do("aten::reshape", is_target, list(self.shape))) if "forward" in batch.kind else result


@table.batch("multilabel_margin_loss_backward")
def multilabel_margin_loss_backward(batch: Batch, grad: Any, self: Any, target: Any, reduction: int, is_target: Any) -> Any:
    """Each near pair adds 1 to the slope of its class and -1 to that of its target."""
    do = batch.again
    room, is_near, label, _ = pairs(batch, self, target)
    near = do("aten::to", is_near, room.dtype)
    back = do("aten::neg", do("aten::sum", near, [2]))
    slopes = do("aten::scatter_add", do("aten::sum", near, [1]), 1, label, back)
    slopes = do("aten::div", slopes, max(slopes.shape[1], 1))
    return spread(batch, grad, slopes, self, slopes.shape[0] if reduction == MEAN else 1)


def folded_lengths(batch: Batch, lengths: Any) -> Any:
    """(N) or () -> (B * N); a list is repeated B times."""
    if isinstance(lengths, Tensor):
        return time_and_rows(batch, batch.again("aten::reshape", lengths, [-1]), 0)
    return list(lengths) * batch.length


def folded_samples(batch: Batch, log_probs: Any, targets: Any, lengths: Any) -> tuple[Any, Any]:
    """log_probs (T, N, C) -> (T, B * N, C); targets (N, S) -> (B * N, S)."""
    if targets.ndim == 1 and batch.has(lengths):
        raise UnsupportedError(f"{batch.kind} under vmap is not supported where lengths are batched and targets stand in one row",
                               code="E0504")
    return time_and_rows(batch, log_probs, 1), time_and_rows(batch, targets, 0)


@table.batch("ctc_loss")
def ctc_loss(batch: Batch, log_probs: Any, targets: Any, inputs: Any, outputs: Any, blank: int, reduction: int, infinite: bool) -> Any:
    """N -> B * N without reduction; then the mean or sum over N."""
    is_single = log_probs.ndim == 2
    if is_single:
        log_probs = batch.again("aten::unsqueeze", log_probs, 1)
    logs, labels = folded_samples(batch, log_probs, targets, outputs)
    result = batch.same(logs, labels, folded_lengths(batch, inputs), folded_lengths(batch, outputs), blank, NONE, infinite)
    losses = rows_apart(batch, result, 0)
    if reduction == MEAN:
        counts = outputs if isinstance(outputs, Tensor) else batch.do("aten::tensor", list(outputs))
        losses = batch.again("aten::div", losses, batch.again("aten::to", batch.again("aten::clamp_min", counts, 1), losses.dtype))
        return batch.again("aten::mean", losses)
    if reduction == SUM:
        return batch.again("aten::sum", losses)
    return batch.again("aten::reshape", losses, []) if is_single else losses


@table.batch("_ctc_loss _ctc_loss.Tensor")
def ctc_with_alpha(batch: Batch, log_probs: Any, targets: Any, inputs: Any, outputs: Any, *rest: Any) -> Any:
    """N -> B * N, and back in the losses (N) and in alpha (N, T, 2S + 1)."""
    logs, labels = folded_samples(batch, log_probs, targets, outputs)
    results = batch.same(logs, labels, folded_lengths(batch, inputs), folded_lengths(batch, outputs), *rest)
    return tuple([rows_apart(batch, each, 0) for each in results])


@table.batch("_ctc_loss_backward _ctc_loss_backward.Tensor")
def ctc_backward(batch: Batch, grad: Any, log_probs: Any, targets: Any, inputs: Any, outputs: Any, loss: Any, alpha: Any,
                 *rest: Any) -> Any:
    """N -> B * N in all operands, and back in the gradient (T, N, C)."""
    logs, labels = folded_samples(batch, log_probs, targets, outputs)
    grads, losses, alphas = (time_and_rows(batch, each, 0) for each in (grad, loss, alpha))
    of_logs = batch.same(grads, logs, labels, folded_lengths(batch, inputs), folded_lengths(batch, outputs), losses, alphas, *rest)
    return rows_apart(batch, of_logs, 1)
