"""Losses with class indices as targets: negative log-likelihood, cross entropy, margins, connectionist temporal classification."""
import math

from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.arrays import title
from irtool.ops.checks import only
from irtool.ops.kernels.loss import MEAN, NONE, SUM, check_reduction, reduced
from irtool.ops.kernels.softmax import log_softmax_along
from irtool.ops.op import OpTable

table = OpTable("classification_loss")


# ---- negative log-likelihood

def _check_weights(classes, weight):
    if weight is not None and weight.shape != (classes,):
        raise RunError(f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: "
                       f"{list(weight.shape)}")


def _check_targets(x, target, ignore_index, weight):
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    _check_weights(classes, weight)
    if target.dtype not in ("int64", "uint8"):
        raise RunError(f"expected target dtype to be Long or Byte, but got {title(target.dtype)}")
    wrong = (target != ignore_index) & ((target < 0) | (target >= classes))
    if wrong.any():
        raise RunError(f"Target {int(target[wrong].reshape(-1)[0])} is out of bounds.", code="E0408")


def _need_dtype(x, weight):
    if weight.dtype != x.dtype:
        raise RunError(f"expected scalar type {title(x.dtype)} but found {title(weight.dtype)}", code="E0409")


def likelihood(xp, x, target, weight, reduction, ignore_index):
    """(loss, total weight) of log-probabilities (n, classes, ...) or (classes,) with class indices (n, ...) or 0-dim."""
    check_reduction(reduction)
    if x.ndim < 1:
        raise RunError("input tensor should be 1D or 2D")
    expected = x.shape[:1] + x.shape[2:] if x.ndim > 1 else ()
    if x.ndim == target.ndim == 1 != target.size:
        raise RunError(f"For 1D input, 1D target must have size 1, but got target size: {target.size}", code="E0407")
    if target.shape != expected and not (x.ndim == 1 and target.shape == (1,)):
        raise RunError(f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({target.shape[0] if target.ndim else 1})."
                       if x.ndim <= 2 else f"size mismatch (got input: {list(x.shape)} , target: {list(target.shape)}", code="E0407")
    only("nll_loss_out_frame", "f", x)
    if weight is not None:
        _need_dtype(x, weight)
    _check_targets(x, target, ignore_index, weight)
    target = target.reshape(expected)
    counts = target != ignore_index
    index = xp.where(counts, target, 0).astype(xp.int64)
    axis = 1 if x.ndim > 1 else 0
    if index.size and x.size:
        picked = xp.take_along_axis(x, xp.expand_dims(index, axis) if x.ndim > 1 else index.reshape(1), axis)
        picked = picked.reshape(target.shape)
        weights = xp.where(counts, x.dtype.type(1) if weight is None else weight[index], x.dtype.type(0)).astype(x.dtype, copy=False)
    else:
        picked = weights = xp.zeros(target.shape, x.dtype)
    loss = xp.where(counts, -picked * weights, x.dtype.type(0))
    total = xp.asarray(weights.sum(dtype=x.dtype))
    if reduction == NONE and x.ndim > 1:
        return loss, xp.asarray(x.dtype.type(0))
    value = xp.asarray(loss.sum(dtype=x.dtype))
    if reduction == MEAN:
        value = xp.asarray(value / total)
    return value, total


def _nll_loss(xp, self, target, weight, reduction, ignore_index):
    return likelihood(xp, self, target, weight, reduction, ignore_index)[0]


_NLL = "Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor"
def _of_rows(kernel):
    """The kernel, on a row or a matrix of log-probabilities only."""
    def checked(xp, self, target, *rest):
        if self.ndim > 2:
            raise RunError("input tensor should be 1D or 2D")
        return kernel(xp, self, target, *rest)
    return checked


def _of_images(kernel):
    """The kernel, on batches of images only."""
    def checked(xp, self, target, *rest):
        if target.ndim != 3:
            raise RunError(f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.ndim}")
        if self.ndim != 4:
            raise RunError(f"only batches of spatial inputs supported (4D tensors), but got input of dimension: {self.ndim}")
        return kernel(xp, self, target, *rest)
    return checked


for _name, _which in (("nll_loss", _of_rows(_nll_loss)), ("nll_loss2d", _of_images(_nll_loss)), ("nll_loss_nd", _nll_loss)):
    table.define(f"aten::{_name}({_NLL}", _which,
                 doc="Minus the log-probability of the target class, weighted; `ignore_index` counts for nothing.")

_FORWARD = "Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)"
for _name, _which in (("nll_loss", likelihood), ("nll_loss2d", _of_images(likelihood))):     # formulas ask the first for images, too
    table.define(f"aten::{_name}_forward({_FORWARD}", _which, doc="nll_loss and the total weight.")


def _nll_backward(xp, grad_output, self, target, weight, reduction, ignore_index, total_weight):
    axis = 1 if self.ndim > 1 else 0
    result = xp.zeros(self.shape, self.dtype)
    if not self.size:
        return result
    counts = target != ignore_index
    index = xp.where(counts, target, 0)
    slope = -(self.dtype.type(1) if weight is None else weight[index])
    if reduction == MEAN:
        slope = slope / total_weight
    values = xp.broadcast_to(xp.where(counts, slope * grad_output, self.dtype.type(0)), target.shape)
    if self.ndim == 1:
        result[int(index.reshape(-1)[0])] = values.reshape(-1)[0]
        return result
    xp.put_along_axis(result, xp.expand_dims(index, axis), xp.expand_dims(values, axis), axis)
    return result


_BACKWARD = ("Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> "
             "Tensor")
table.define([f"aten::{name}_backward({_BACKWARD}" for name in ("nll_loss", "nll_loss2d")], _nll_backward, doc="Gradient of nll_loss.")


# ---- cross entropy

def _check_smoothing(smoothing):
    """Refuse more than 1. torch takes what is not above 0, also nan, for no smoothing."""
    if smoothing > 1:
        raise RunError(f"label_smoothing must be between 0.0 and 1.0. Got: {smoothing}")


def _cross_entropy_of_probabilities(xp, logs, target, weight, reduction, smoothing):
    axis = 1 if logs.ndim > 1 else 0
    classes = logs.shape[axis]
    _check_weights(classes, weight)
    if smoothing > 0:
        _check_smoothing(smoothing)
        target = target * logs.dtype.type(1 - smoothing) + logs.dtype.type(smoothing / max(classes, 1))
    product = logs * target
    if weight is not None:
        product = product * weight.reshape((1,) * axis + (-1,) + (1,) * (logs.ndim - axis - 1))
    loss = -product.sum(axis, dtype=product.dtype)
    if reduction == MEAN:
        return xp.asarray(loss.sum(dtype=product.dtype) / product.dtype.type(logs.size // classes if classes else 0))
    return reduced(xp, xp.asarray(loss), reduction)


def _smoothed(xp, logs, target, weight, reduction, ignore_index, smoothing):
    axis = 1 if logs.ndim > 1 else 0
    classes, kind = logs.shape[axis], logs.dtype.type
    loss, _ = likelihood(xp, logs, target, weight, reduction, ignore_index)
    if weight is None:
        spread = -logs.sum(axis, dtype=logs.dtype)
    else:
        spread = -(logs * weight.reshape((1,) * axis + (-1,) + (1,) * (logs.ndim - axis - 1))).sum(axis, dtype=logs.dtype)
    counts = (target != ignore_index).reshape(spread.shape)
    spread = xp.where(counts, spread, kind(0))
    if reduction == MEAN:
        if weight is None:
            spread = spread.sum(dtype=logs.dtype) / kind(int(counts.sum()))
        else:
            if target.dtype != "int64":
                raise RunError("gather(): Expected dtype int32/int64 for index", code="E0409")
            index = xp.where(counts, target.reshape(counts.shape), 0)
            spread = spread.sum(dtype=logs.dtype) / xp.where(counts, weight[index], kind(0)).sum(dtype=logs.dtype)
    elif reduction == SUM:
        spread = spread.sum(dtype=logs.dtype)
    return xp.asarray(kind(1 - smoothing) * loss + kind(smoothing / classes if classes else math.inf) * spread)


@table.op("aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, "
          "float label_smoothing=0.) -> Tensor")
def cross_entropy_loss(xp, self, target, weight, reduction, ignore_index, label_smoothing):
    """nll_loss of log_softmax over the classes; a target of self's shape holds probabilities."""
    logs = log_softmax_along(xp, self, 1 if self.ndim > 1 else 0)
    if self.shape == target.shape:
        if target.dtype.kind != "f":
            raise RunError(f"Expected floating point type for target with class probabilities, got {title(target.dtype)}")
        if ignore_index >= 0:
            raise RunError("ignore_index is not supported for floating point target")
        return _cross_entropy_of_probabilities(xp, logs, target, weight, reduction, label_smoothing)
    if label_smoothing > 0:
        _check_smoothing(label_smoothing)
        return _smoothed(xp, logs, target, weight, reduction, ignore_index, label_smoothing)
    return likelihood(xp, logs, target, weight, reduction, ignore_index)[0]


# ---- margins

def _margin_terms(xp, self, target, p, margin, weight):
    x = self if self.ndim == 2 else self.reshape(1, -1)
    index = target.reshape(-1)
    if target.ndim > 1 or target.size != len(x):
        raise RunError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
                       f"Expected target size [{len(x)}], but got {list(target.shape)}. Input has shape {list(self.shape)}.", code="E0407")
    if target.dtype != xp.int64:
        raise RunError(f"expected scalar type Long but found {title(target.dtype)}", code="E0409")
    p = int(p) if math.isfinite(p) else p        # as torch reads it, without a fraction
    if p not in (1, 2):
        raise RunError("only p == 1 and p == 2 supported")
    if index.size and (int(index.min()) < 0 or int(index.max()) >= x.shape[1]):
        raise RunError("target out of range", code="E0408")
    at_target = xp.take_along_axis(x, index[:, None], 1) if x.size else x[:, :1]
    room = x.dtype.type(margin) - at_target + x
    room = xp.where(room > 0, room, x.dtype.type(0))        # nan is no loss, as in torch
    terms = room if p == 1 else room * room
    slopes = (room > 0).astype(x.dtype) if p == 1 else 2 * room
    if weight is not None:
        if weight.shape != x.shape[1:]:
            raise RunError(f"inconsistent weight size, expected {x.shape[1]} but got {list(weight.shape)}")
        _need_dtype(x, weight)
        terms, slopes = terms * weight[index][:, None], slopes * weight[index][:, None]
    off = xp.arange(x.shape[1]) != index[:, None]
    return x, index, xp.where(off, terms, x.dtype.type(0)), xp.where(off, slopes, x.dtype.type(0))


@table.op("aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) "
          "-> Tensor")
def multi_margin_loss(xp, self, target, p, margin, weight, reduction):
    """Mean over the other classes of max(0, margin - x[target] + x[class]) ** p."""
    only("multi_margin_loss", "f", self)
    if self.ndim > 2 or self.ndim and not self.shape[-1]:
        raise RunError("Expected non-empty vector or matrix with optional 0-dim batch size, but got: " + str(list(self.shape)))
    x, _, terms, _ = _margin_terms(xp, self, target, p, margin, weight)
    loss = terms.sum(1, dtype=x.dtype) / x.dtype.type(x.shape[1])
    return reduced(xp, loss if target.ndim else loss.reshape(()), reduction)


@table.op("aten::multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, "
          "int reduction=1) -> Tensor")
def multi_margin_loss_backward(xp, grad_output, self, target, p, margin, weight, reduction):
    """Gradient of multi_margin_loss."""
    x, index, _, slopes = _margin_terms(xp, self, target, p, margin, weight)
    xp.put_along_axis(slopes, index[:, None], -slopes.sum(1, keepdims=True, dtype=x.dtype), 1)
    grad = grad_output.reshape(-1, 1) / x.dtype.type(x.shape[1] * (x.shape[0] if reduction == MEAN else 1))
    return (slopes * grad).reshape(self.shape)


def _multilabel(xp, self, target):
    if self.ndim > 2 or self.ndim and not self.shape[-1]:
        raise RunError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(self.shape)}")
    x, t = (self, target) if self.ndim == 2 else (self.reshape(1, -1), target.reshape(1, -1))
    is_target = xp.zeros(x.shape, x.dtype)
    loss = xp.zeros(x.shape[0], x.dtype)
    slopes = xp.zeros(x.shape, x.dtype)
    for row in range(x.shape[0]):
        ends = (t[row] < 0).nonzero()[0]
        labels = t[row][:int(ends[0])] if len(ends) else t[row]
        is_target[row, labels] = 1
        others = is_target[row] == 0
        room = xp.where(others, 1 - x[row][labels][:, None] + x[row], x.dtype.type(0))
        positive = (room > 0) & others
        loss[row] = xp.where(positive, room, x.dtype.type(0)).sum() / x.dtype.type(x.shape[1])
        slopes[row] = positive.sum(0)
        for place, label in enumerate(labels):
            slopes[row, label] -= positive[place].sum()
    return loss, is_target, slopes / x.dtype.type(max(x.shape[1], 1))


@table.op("aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)")
def multilabel_margin_loss_forward(xp, self, target, reduction):
    """multilabel_margin_loss, and which classes are targets."""
    only("multilabel_margin_loss_forward_out_frame", "f", self)
    if self.shape != target.shape:
        raise RunError(f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}")
    if target.dtype != xp.int64:
        raise RunError(f"expected scalar type Long but found {title(target.dtype)}", code="E0409")
    classes = self.shape[-1] if self.ndim else 1
    if target.size and (int(target.max()) >= classes or int(target.min()) < -1):
        raise RunError("target is out of range", code="E0408")
    loss, is_target, _ = _multilabel(xp, self, target)
    return reduced(xp, loss if self.ndim == 2 else loss.reshape(()), reduction), is_target.reshape(self.shape)


@table.op("aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
def multilabel_margin_loss(xp, self, target, reduction):
    """Sum over targets (up to the first -1) and other classes of max(0, 1 - x[target] + x[class]), over the number of classes."""
    return multilabel_margin_loss_forward.kernel(xp, self, target, reduction)[0]


@table.op("aten::multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) "
          "-> Tensor")
def multilabel_margin_loss_backward(xp, grad_output, self, target, reduction, is_target):
    """Gradient of multilabel_margin_loss."""
    slopes = _multilabel(xp, self, target)[2]
    rows = slopes.shape[0] if reduction == MEAN else 1
    return (slopes * (grad_output.reshape(-1, 1) / slopes.dtype.type(rows))).reshape(self.shape)


# ---- connectionist temporal classification

def _ctc_rows(log_probs, targets, input_lengths, target_lengths):
    """For each sample its log-probabilities (time, classes) and its target labels."""
    start = 0
    for row, (time, count) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        if targets.ndim == 1:
            labels = targets[start:start + count]
            start += count
        else:
            labels = targets[row, :count]
        yield log_probs[:time, row], labels


def _ctc_states(xp, labels, blank):
    """Labels with blanks between and around them, and which may be reached from the last but one."""
    extended = xp.full(2 * len(labels) + 1, blank, xp.int64)
    extended[1::2] = labels
    skip = xp.zeros(len(extended), bool)
    skip[2:] = extended[2:] != extended[:-2]        # never between blanks; a label that is the blank counts as a label, as in torch
    return extended, skip


def _check_lengths(targets, input_lengths, target_lengths, steps):
    for length in target_lengths:
        if length < 0:
            raise RunError(f"Expected target_lengths to have value at least 0, but got value {length} {CTC}")
    for length in input_lengths:
        if not 0 <= length <= steps:
            raise RunError(f"Expected input_lengths to have value at {'least 0' if length < 0 else f'most {steps}'}, but got value {length}"
                           f" {CTC}")
    total, longest = sum(target_lengths), max(target_lengths, default=0)
    if targets.ndim not in (1, 2):
        raise RunError(f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor for argument #2 'targets' {CTC}")
    for place, size in enumerate((total,) if targets.ndim == 1 else (len(input_lengths),)):
        if targets.shape[place] != size:
            raise RunError(f"Expected tensor to have size {size} at dimension 0, but got size {targets.shape[0]} for argument #2 'targets' "
                           f"{CTC}")
    if targets.ndim == 2 and targets.shape[1] < longest:
        raise RunError(f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.shape[1]} for argument #2 "
                       f"'targets' {CTC}")


CTC = "(while checking arguments for ctc_loss_allocate_outputs)"


def ctc(xp, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    """Negative log-likelihood per sample and the forward variables (batch, time, 2 * longest target + 1)."""
    only("ctc_loss_cpu", "f", log_probs)
    steps, batch, classes = log_probs.shape
    if not log_probs.size:
        raise RunError("log_probs tensor must not be empty")
    if not 0 <= blank < classes:
        raise RunError("blank must be in label range")
    if len(input_lengths) != batch or len(target_lengths) != batch:
        raise RunError("input_lengths must be of size batch_size" if len(input_lengths) != batch else
                       "target_lengths must be of size batch_size")
    _check_lengths(targets, input_lengths, target_lengths, steps)
    longest = max(target_lengths, default=0) if targets.ndim == 1 else targets.shape[1]
    alpha = xp.full((batch, steps, 2 * longest + 1), -math.inf, log_probs.dtype)
    losses = xp.full(batch, math.inf, log_probs.dtype)
    for row, (logs, labels) in enumerate(_ctc_rows(log_probs, targets, input_lengths, target_lengths)):
        if not len(logs):
            losses[row] = 0 if not len(labels) else math.inf
            continue
        extended, skip = _ctc_states(xp, labels, blank)
        forward = alpha[row]
        width = len(extended)
        forward[0, 0] = logs[0, blank]
        if width > 1:
            forward[0, 1] = logs[0, extended[1]]
        for time in range(1, len(logs)):
            before = forward[time - 1, :width]
            one = xp.concatenate([xp.full(1, -math.inf, before.dtype), before[:-1]])
            two = xp.where(skip, xp.concatenate([xp.full(2, -math.inf, before.dtype), before[:-2]])[:width], -math.inf)
            forward[time, :width] = xp.logaddexp(xp.logaddexp(before, one), two).astype(before.dtype) + logs[time, extended]
        last = forward[len(logs) - 1, max(width - 2, 0):width]
        losses[row] = -xp.logaddexp.reduce(last)
    if zero_infinity:
        losses = xp.where(losses == math.inf, losses.dtype.type(0), losses)
    return losses, alpha


def _lengths(values):
    return [int(v) for v in values]


def _ctc_loss(xp, log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    for name, lengths in (("input", input_lengths), ("target", target_lengths)):
        if getattr(lengths, "dtype", np.dtype(int)).kind not in "iu":
            raise RunError(f"{name}_lengths must be integral")
    batched = log_probs.ndim == 3
    if not batched:
        log_probs = log_probs[:, None]
    inputs, outputs = _lengths(_at_least_1d(input_lengths)), _lengths(_at_least_1d(target_lengths))
    losses, _ = ctc(xp, log_probs, targets, inputs, outputs, blank, zero_infinity)
    if reduction == MEAN:
        sizes = xp.maximum(xp.asarray(outputs, losses.dtype), losses.dtype.type(1))
        return xp.asarray((losses / sizes).mean(dtype=losses.dtype))
    if reduction == SUM:
        return xp.asarray(losses.sum(dtype=losses.dtype))
    return losses if batched else losses[0:1].reshape(())


def _at_least_1d(values):
    return values.reshape(-1) if hasattr(values, "reshape") else values


for _suffix, _type in (("IntList", "int[]"), ("Tensor", "Tensor")):
    table.define(f"aten::ctc_loss.{_suffix}(Tensor log_probs, Tensor targets, {_type} input_lengths, {_type} target_lengths, int blank=0, "
                 "int reduction=1, bool zero_infinity=False) -> Tensor", _ctc_loss,
                 doc="Minus the log-probability of all alignments of the targets with (time, batch, classes).")


def _ctc_with_alpha(xp, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    return ctc(xp, log_probs, targets, _lengths(_at_least_1d(input_lengths)), _lengths(_at_least_1d(target_lengths)), blank, False)


for _suffix, _type in (("", "int[]"), (".Tensor", "Tensor")):
    table.define(f"aten::_ctc_loss{_suffix}(Tensor log_probs, Tensor targets, {_type} input_lengths, {_type} target_lengths, int blank=0, "
                 "bool zero_infinity=False) -> (Tensor, Tensor)", _ctc_with_alpha, doc="ctc_loss per sample, and its forward variables.")


def _ctc_backward(xp, grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity):
    inputs, outputs = _lengths(_at_least_1d(input_lengths)), _lengths(_at_least_1d(target_lengths))
    for tensor, rank in ((grad, 1), (log_probs, 3), (neg_log_likelihood, 1), (log_alpha, 3)):
        if tensor.ndim != rank:     # NumPy's ufunc.at reads beyond operands of too many dimensions
            raise RunError(f"TensorAccessor expected {rank} dims but tensor has {tensor.ndim}")
    result = xp.zeros_like(log_probs)
    for row, (logs, labels) in enumerate(_ctc_rows(log_probs, targets, inputs, outputs)):
        loss = neg_log_likelihood[row]
        if not len(logs) or (zero_infinity and loss == math.inf):
            continue
        extended, skip = _ctc_states(xp, labels, blank)
        width = len(extended)
        beta = xp.full((len(logs), width), -math.inf, log_probs.dtype)
        beta[-1, -2:] = logs[-1, extended[-2:]]
        for time in range(len(logs) - 1)[::-1]:
            after = beta[time + 1]
            one = xp.concatenate([after[1:], xp.full(1, -math.inf, after.dtype)])
            two = xp.concatenate([xp.where(skip, after, -math.inf)[2:], xp.full(2, -math.inf, after.dtype)])[:width]
            beta[time] = xp.logaddexp(xp.logaddexp(after, one), two).astype(after.dtype) + logs[time, extended]
        both = xp.full(logs.shape, -math.inf, log_probs.dtype)
        xp.logaddexp.at(both, (slice(None), extended), log_alpha[row, :len(logs), :width] + beta)
        result[:len(logs), row] = (xp.exp(logs) - xp.exp(both + loss - logs)) * grad[row]
    return result


for _suffix, _type in (("", "int[]"), (".Tensor", "Tensor")):
    table.define(f"aten::_ctc_loss_backward{_suffix}(Tensor grad, Tensor log_probs, Tensor targets, {_type} input_lengths, {_type} "
                 "target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
                 _ctc_backward, doc="Gradient of _ctc_loss as if after a log_softmax: probabilities less expected labels.")


# ---- dtypes that torch serves

table.takes("f", "multi_margin_loss multi_margin_loss_backward multilabel_margin_loss_forward multilabel_margin_loss ctc_loss "
             "_ctc_loss _ctc_loss_backward")
table.takes("hf", "nll_loss_backward nll_loss2d_backward")
table.takes("f", "multilabel_margin_loss_backward")
table.laid_out("C", "_ctc_loss_backward")
