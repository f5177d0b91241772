"""Gradients of losses. `each` divides by the number of elements if the loss is a mean (reduction 1)."""
from __future__ import annotations

from irtool.ops.gradients.distance import norm_slope
from irtool.ops.kernels.loss import table
from irtool.ops.tensor import Tensor, torch


def each(grad: Tensor, count: int, reduction: int) -> Tensor:
    """The factor of each element's slope."""
    return grad / count if reduction == 1 else grad


@table.pointwise("mse_loss")
def mse_loss_gradient(grad, self, target, reduction):
    difference = self - target
    slope = each(grad, difference.numel(), reduction) * 2 * difference
    return slope, -slope


@table.pointwise("mse_loss_backward")
def mse_loss_backward_gradient(grad, grad_output, self, target, reduction):
    scaled = each(grad, self.numel(), reduction) * 2
    second = scaled * grad_output
    return scaled * (self - target), second, -second


@table.pointwise("l1_loss")
def l1_loss_gradient(grad, self, target, reduction):
    difference = self - target
    slope = each(torch.real(grad), difference.numel(), reduction) * difference.conj().sgn()
    return slope, -slope


def smooth_slope(difference: Tensor, beta: float) -> Tensor:
    """Slope of smooth_l1_loss: linear below `beta`, then 1."""
    return difference.sign() if beta == 0 else torch.where(difference.abs() >= beta, difference.sign(), difference / beta)


@table.pointwise("smooth_l1_loss")
def smooth_l1_loss_gradient(grad, self, target, reduction, beta):
    difference = self - target
    slope = each(grad, difference.numel(), reduction) * smooth_slope(difference, beta)
    return slope, -slope


@table.pointwise("smooth_l1_loss_backward")
def smooth_l1_loss_backward_gradient(grad, grad_output, self, target, reduction, beta):
    difference = self - target
    scaled = each(grad, self.numel(), reduction)
    second = torch.zeros_like(scaled) if beta == 0 else scaled * grad_output * (difference.abs() < beta) / beta
    return scaled * smooth_slope(difference, beta), second, -second


@table.pointwise("huber_loss")
def huber_loss_gradient(grad, self, target, reduction, delta):
    difference = self - target
    slope = each(grad, difference.numel(), reduction) * difference.clamp(-delta, delta)
    return slope, -slope


@table.pointwise("huber_loss_backward")
def huber_loss_backward_gradient(grad, grad_output, self, target, reduction, delta):
    difference = self - target
    scaled = each(grad, self.numel(), reduction)
    second = scaled * grad_output * (difference.abs() < delta)
    return scaled * difference.clamp(-delta, delta), second, -second


@table.pointwise("soft_margin_loss")
def soft_margin_loss_gradient(grad, self, target, reduction):
    common = -(each(grad, (self * target).numel(), reduction) * (-target * self).sigmoid())
    return common * target, common * self


@table.derivative("soft_margin_loss_backward")
def soft_margin_loss_backward_gradient(grad, grad_output, self, target, reduction, grad_output_size):
    scaled = each(grad, self.numel(), reduction)
    chance = (-target * self).sigmoid()
    second = scaled * grad_output * target * chance * (1 - chance)
    return (-(scaled * target * chance)).sum_to_size(grad_output_size), second * target, second * self - scaled * grad_output * chance


@table.gradient("kl_div")
def kl_div_gradient(self: Tensor, target: Tensor, reduction: int, log_target: bool):
    self_size, target_size = self.size(), target.size()

    def backward(grad: Tensor):
        both = self + target
        share = each(grad, both.numel(), reduction).expand(both.size())
        if log_target:
            chance = target.exp()
            return ((-(share * chance)).sum_to_size(self_size), (share * chance * (target - self + 1)).sum_to_size(target_size), None, None)
        # as in torch: target / target is nan where the target is 0; xlogy is 0 where no gradient comes
        for_target = torch.xlogy(share, target) + share * (target / target - self)
        return (-(share * target)).sum_to_size(self_size), for_target.sum_to_size(target_size), None, None

    return torch.kl_div(self, target, reduction, log_target=log_target), backward


# ---- probabilities

@table.derivative("binary_cross_entropy")
def binary_cross_entropy_gradient(grad, self, target, weight, reduction):
    for_self = torch.binary_cross_entropy_backward(grad, self, target, weight, reduction)
    share = each(grad, self.numel(), reduction)
    for_target = share * ((1 - self).log() - self.log())
    if weight is not None:
        for_target = for_target * weight
    return for_self, for_target, None


@table.derivative("binary_cross_entropy_backward")
def binary_cross_entropy_backward_gradient(grad, grad_output, self, target, weight, reduction, grad_output_size):
    scaled = each(grad, self.numel(), reduction)
    if weight is not None:
        scaled = scaled * weight
    spread = ((1 - self) * self).clamp_min(1e-12)
    second = scaled * grad_output / spread
    curved = ((self - target) * (1 - 2 * self) / spread) * ((1 - self) * self >= 1e-12)
    return (scaled * (self - target) / spread).sum_to_size(grad_output_size), second * (1 - curved), -second, None


@table.derivative("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits_gradient(grad, self, target, weight, pos_weight, reduction):
    spread = torch.softplus(-self)
    loss = (1 - target) * self + spread
    slope = self.sigmoid() - target
    target_slope = -self
    if pos_weight is not None:
        factor = (pos_weight - 1) * target + 1
        loss = (1 - target) * self + factor * spread
        slope = factor * self.sigmoid() - pos_weight * target
        target_slope = (pos_weight - 1) * spread - self
    share = each(grad, loss.numel() if weight is None else (loss * weight).numel(), reduction)
    weighted = share if weight is None else share * weight
    for_weight = (share * loss).sum_to_size(weight.size()) if weight is not None else None
    for_positive = (weighted * target * spread).sum_to_size(pos_weight.size()) if pos_weight is not None else None
    return (weighted * slope).sum_to_size(self.size()), (weighted * target_slope).sum_to_size(target.size()), for_weight, for_positive


@table.pointwise("poisson_nll_loss")
def poisson_nll_loss_gradient(grad, input, target, log_input, full, eps, reduction):
    share = each(grad, (input + target).numel(), reduction)
    if log_input:
        slope = input.exp() - target
        target_slope = -input + torch.zeros_like(target)
    else:
        slope = 1 - target / (input + eps)
        target_slope = -(input + eps).log() + torch.zeros_like(target)
    if full:
        target_slope = target_slope + (target.log() + 0.5 / target).masked_fill(target <= 1, 0)
    return share * slope, share * target_slope


# ---- margins and distances

@table.derivative("margin_ranking_loss")
def margin_ranking_loss_gradient(grad, input1, input2, target, margin, reduction):
    difference = input1 - input2
    excess = -target * difference + margin
    slope = each(grad, excess.numel(), reduction) * (excess >= 0)
    return ((-(slope * target)).sum_to_size(input1.size()),
            (slope * target).sum_to_size(input2.size()),
            (-(slope * difference)).sum_to_size(target.size()))


@table.pointwise("hinge_embedding_loss")
def hinge_embedding_loss_gradient(grad, self, target, margin, reduction):
    near = (target != 1) & (margin - self >= 0)
    share = each(grad, (self * target).numel(), reduction)
    return share * (target != -1) - share * near, None


@table.derivative("cosine_embedding_loss")
def cosine_embedding_loss_gradient(grad, input1, input2, target, margin, reduction):
    dim = target.dim()
    one = (input1 * input1).sum([dim], True) + 1e-12
    two = (input2 * input2).sum([dim], True) + 1e-12
    root = (one * two).sqrt()
    cosine = (input1 * input2).sum([dim], True) / root
    side = target.unsqueeze(dim)
    shape = cosine.squeeze(dim) + torch.zeros_like(target)
    share = each(grad, shape.numel(), reduction)
    if reduction == 0:
        share = share.unsqueeze(dim)
    slope = share * ((side == -1) & (cosine >= margin)) - share * (side == 1)
    return ((slope * (input2 / root - cosine * input1 / one)).sum_to_size(input1.size()),
            (slope * (input1 / root - cosine * input2 / two)).sum_to_size(input2.size()), None)


@table.derivative("triplet_margin_loss")
def triplet_margin_loss_gradient(grad, anchor, positive, negative, margin, p, eps, swap, reduction):
    to_positive = anchor - positive + eps
    to_negative = anchor - negative + eps
    between = positive - negative + eps
    near = torch.linalg_vector_norm(to_positive, p, [-1], True)
    far = torch.linalg_vector_norm(to_negative, p, [-1], True)
    other = torch.linalg_vector_norm(between, p, [-1], True)
    farthest = torch.minimum(far, other) if swap else far
    excess = near - farthest + margin
    share = each(torch.real(grad), excess.numel(), reduction)
    if reduction == 0:
        share = share.unsqueeze(-1)
    slope = share * (excess >= 0)
    first = (far < other) + (far == other) * 0.5 if swap else torch.ones_like(far)
    for_positive = slope * norm_slope(to_positive.conj(), near, p)
    for_negative = slope * first * norm_slope(to_negative.conj(), far, p)
    for_other = slope * (1 - first) * norm_slope(between.conj(), other, p)
    return ((for_positive - for_negative).sum_to_size(anchor.size()),
            (-for_positive - for_other).sum_to_size(positive.size()),
            (for_negative + for_other).sum_to_size(negative.size()))


table.no_gradient_for("weight", "torch has none either", "binary_cross_entropy binary_cross_entropy_backward")
