"""Gradients of connectionist temporal classification.

As in torch, the gradient of the log-probabilities is the probabilities minus the expected number of each label at each time. This is right
for a preceding log_softmax, whose own gradient subtracts the first part.

The second derivative is a covariance. Let u be the incoming gradient of the gradient, and U the sum of u along an alignment. Then the
derivative of sum(u * expected) at one position is E[n * U] - E[n] * E[U], where n is 1 if the alignment passes the position, else 0.
E[U | state] is the expectation up to the state (from weights of the states before it) plus the expectation after it. Impossible states have
the logarithm -1e30, not -inf, so that all of this can be differentiated again.
"""
from __future__ import annotations

from irtool.ops.kernels.classification_loss import table
from irtool.ops.tensor import Tensor, torch


def per_sample(grad: Tensor, losses: Tensor, target_lengths: Tensor, reduction: int, zero_infinity: bool) -> Tensor:
    """The gradient of each sample's loss."""
    share = grad.expand(losses.size())
    if reduction == 1:
        share = share / (target_lengths.to(losses.dtype).reshape([-1]).clamp_min(1) * losses.size(0))
    if zero_infinity:
        share = share.masked_fill(losses == float("inf"), 0)
    return share


@table.gradient("ctc_loss.IntList")
def ctc_loss_gradient(log_probs: Tensor, targets: Tensor, input_lengths: list[int], target_lengths: list[int], blank: int, reduction: int,
                      zero_infinity: bool):
    size = log_probs.size()
    logs = log_probs.reshape([size[0], -1, size[-1]])
    labels = targets if log_probs.dim() == 3 else targets.reshape([-1])
    losses, alpha = torch._ctc_loss(logs, labels, input_lengths, target_lengths, blank, zero_infinity)

    def backward(grad: Tensor):
        lengths = torch.tensor(target_lengths, device=log_probs.device)
        share = per_sample(grad, losses, lengths, reduction, zero_infinity)
        for_logs = torch._ctc_loss_backward(share, logs, labels, input_lengths, target_lengths, losses, alpha, blank, zero_infinity)
        return for_logs.reshape(size), None, None, None, None, None, None

    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity), backward


@table.gradient("ctc_loss.Tensor")
def ctc_loss_by_tensors_gradient(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int,
                                 reduction: int, zero_infinity: bool):
    size = log_probs.size()
    logs = log_probs.reshape([size[0], -1, size[-1]])
    labels = targets if log_probs.dim() == 3 else targets.reshape([-1])
    losses, alpha = torch._ctc_loss(logs, labels, input_lengths, target_lengths, blank, zero_infinity)

    def backward(grad: Tensor):
        share = per_sample(grad, losses, target_lengths, reduction, zero_infinity)
        for_logs = torch._ctc_loss_backward(share, logs, labels, input_lengths, target_lengths, losses, alpha, blank, zero_infinity)
        return for_logs.reshape(size), None, None, None, None, None, None

    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity), backward


@table.derivative("aten::_ctc_loss _ctc_loss.Tensor")
def ctc_losses_gradient(grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, result0, result1):
    return torch._ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity), None


# ---- the gradient's own

def label_states(targets: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """For each sample its labels, with blanks between, around and behind them: (batch, 2 * longest + 1)."""
    count = lengths.size(0)
    longest = int(lengths.max()) if count > 0 else 0
    places = torch.arange(longest, device=targets.device).unsqueeze(0)
    if targets.dim() == 1:
        begin = lengths.cumsum(0) - lengths
        taken = (begin.unsqueeze(1) + places).clamp(0, max(targets.numel() - 1, 0))
        labels = targets.index_select(0, taken.reshape([-1])).reshape([count, longest])
    else:
        labels = targets.narrow(1, 0, longest)
    labels = labels.masked_fill(places >= lengths.unsqueeze(1), blank)
    pairs = torch.stack([torch.full_like(labels, blank), labels], -1).reshape([count, 2 * longest])
    return torch.constant_pad_nd(pairs, [0, 1], blank)


def from_before(x: Tensor, skips: Tensor, never: float) -> Tensor:
    """For each state what the states before it have: itself, the last one, and the last but one where that may be left out."""
    last = torch.constant_pad_nd(x, [1, -1], never)
    last_but_one = torch.constant_pad_nd(last, [1, -1], never).masked_fill(skips.logical_not(), never)
    return torch.stack([x, last, last_but_one])


def from_behind(x: Tensor, skips: Tensor, never: float) -> Tensor:
    """As `from_before`, for the states behind a state."""
    following = torch.constant_pad_nd(x, [-1, 1], never)
    next_but_one = torch.constant_pad_nd(x.masked_fill(skips.logical_not(), never), [-2, 2], never)
    return torch.stack([x, following, next_but_one])


def expectations(logs: Tensor, along: Tensor, states: Tensor, blank: int, input_lengths: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """How likely each state is at each time, and the sum of `along` expected given that state; all are (time, batch, states)."""
    count = states.size(1)
    places = torch.arange(count, device=logs.device).unsqueeze(0)
    at_end = (places <= 2 * lengths.unsqueeze(1)) & (places >= 2 * lengths.unsqueeze(1) - 1)
    differ = torch.constant_pad_nd((states.narrow(1, 2, count - 2) != states.narrow(1, 0, count - 2)), [2, 0]) if count > 2 else states < 0
    skips = differ & (states != blank)
    alpha = logs.select(0, 0).masked_fill(places > 1, -1e30)
    so_far = along.select(0, 0)
    alphas = [alpha]
    sums = [so_far]
    for time in range(1, logs.size(0)):
        before = from_before(alpha, skips, -1e30)
        so_far = along.select(0, time) + (before.softmax(0) * from_before(so_far, skips, 0.0)).sum([0])
        alpha = logs.select(0, time) + before.logsumexp([0])
        alphas.append(alpha)
        sums.append(so_far)
    final = torch.zeros_like(alpha).masked_fill(at_end.logical_not(), -1e30)
    beta = final
    to_come = torch.zeros_like(alpha)
    betas = [beta]
    rest = [to_come]
    for back in range(1, logs.size(0)):
        time = logs.size(0) - 1 - back
        behind = from_behind(logs.select(0, time + 1) + beta, skips, -1e30)
        expected = (behind.softmax(0) * from_behind(along.select(0, time + 1) + to_come, skips, 0.0)).sum([0])
        is_last = (input_lengths == time + 1).unsqueeze(1)
        beta = torch.where(is_last, final, behind.logsumexp([0]))
        to_come = expected.masked_fill(is_last, 0)
        betas.append(beta)
        rest.append(to_come)
    return (torch.stack(alphas) + torch.stack(betas).flip([0])).softmax(-1), torch.stack(sums) + torch.stack(rest).flip([0])


def second(along: Tensor, grad: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, losses: Tensor,
           blank: int, zero_infinity: bool) -> Tensor:
    """The slope of sum(along * _ctc_loss_backward) for the log-probabilities."""
    steps = log_probs.size(0)
    lengths = target_lengths.reshape([-1]).to(torch.int64)
    inputs = input_lengths.reshape([-1]).to(torch.int64)
    is_running = torch.arange(steps, device=log_probs.device).reshape([-1, 1, 1]) < inputs.reshape([1, -1, 1])
    states = label_states(targets, lengths, blank)
    index = states.unsqueeze(0).expand([steps, states.size(0), states.size(1)])
    logs = log_probs.gather(2, index).clamp_min(-1e30)
    running = along.masked_fill(is_running.logical_not(), 0)
    likely, expected = expectations(logs, running.gather(2, index), states, blank, inputs, lengths)
    mean = (likely * expected).sum([-1], True)
    together = (likely * (expected - mean)).masked_fill(is_running.logical_not(), 0)
    slope = running * log_probs.exp() - torch.zeros_like(log_probs).scatter_add(2, index, together)
    if zero_infinity:
        slope = slope.masked_fill((losses == float("inf")).reshape([1, -1, 1]), 0)
    return slope * grad.reshape([1, -1, 1])


@table.derivative("aten::_ctc_loss_backward")
def ctc_loss_backward_gradient(along, grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank,
                               zero_infinity):
    once = torch._ctc_loss_backward(torch.ones_like(grad), log_probs, targets, input_lengths, target_lengths, neg_log_likelihood,
                                    log_alpha, blank, zero_infinity)
    for_logs = second(along, grad, log_probs, targets, torch.tensor(input_lengths, device=grad.device),
                      torch.tensor(target_lengths, device=grad.device), neg_log_likelihood, blank, zero_infinity)
    return (along * once).sum([0, 2]), for_logs, None, None, None


@table.derivative("_ctc_loss_backward.Tensor")
def ctc_loss_backward_by_tensors_gradient(along, grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha,
                                          blank, zero_infinity):
    once = torch._ctc_loss_backward(torch.ones_like(grad), log_probs, targets, input_lengths, target_lengths, neg_log_likelihood,
                                    log_alpha, blank, zero_infinity)
    for_logs = second(along, grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, blank, zero_infinity)
    return (along * once).sum([0, 2]), for_logs, None, None, None, None, None
