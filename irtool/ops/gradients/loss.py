"""Gradients of regression and probability losses, in plain arithmetic, so that they have gradients themselves."""
from __future__ import annotations

from irtool.ops.loss import table
from irtool.ops.tensor import Tensor, torch


def share(grad: Tensor, count: int, reduction: int) -> Tensor:
    """What each element gets of a loss's gradient: 0 none, 1 mean, 2 sum."""
    if reduction == 1:
        return grad / count
    return grad


@table.gradient("mse_loss")
def mse_loss_gradient(self: Tensor, target: Tensor, reduction: int):
    self_size, target_size = self.size(), target.size()

    def backward(grad: Tensor):
        off = self - target
        slope = off * share(grad, off.numel(), reduction) * 2
        return slope.sum_to_size(self_size), (-slope).sum_to_size(target_size), None

    return torch.mse_loss(self, target, reduction), backward


@table.gradient("l1_loss")
def l1_loss_gradient(self: Tensor, target: Tensor, reduction: int):
    self_size, target_size = self.size(), target.size()

    def backward(grad: Tensor):
        off = self - target
        slope = off.sgn() * share(grad, off.numel(), reduction)
        return slope.sum_to_size(self_size), (-slope).sum_to_size(target_size), None

    return torch.l1_loss(self, target, reduction), backward


@table.gradient("smooth_l1_loss")
def smooth_l1_loss_gradient(self: Tensor, target: Tensor, reduction: int, beta: float):
    self_size, target_size = self.size(), target.size()

    def backward(grad: Tensor):
        off = self - target
        bent = off.sgn()
        if beta > 0:
            bent = torch.where(off.abs() < beta, off / beta, bent)
        slope = bent * share(grad, off.numel(), reduction)
        return slope.sum_to_size(self_size), (-slope).sum_to_size(target_size), None, None

    return torch.smooth_l1_loss(self, target, reduction, beta), backward


@table.gradient("huber_loss")
def huber_loss_gradient(self: Tensor, target: Tensor, reduction: int, delta: float):
    self_size, target_size = self.size(), target.size()

    def backward(grad: Tensor):
        off = self - target
        slope = torch.clamp(off, -delta, delta) * share(grad, off.numel(), reduction)
        return slope.sum_to_size(self_size), (-slope).sum_to_size(target_size), None, None

    return torch.huber_loss(self, target, reduction, delta), backward


@table.gradient("soft_margin_loss")
def soft_margin_loss_gradient(self: Tensor, target: Tensor, reduction: int):
    self_size, target_size = self.size(), target.size()

    def backward(grad: Tensor):
        product = self * target
        slope = -(-product).sigmoid() * share(grad, product.numel(), reduction)
        return (slope * target).sum_to_size(self_size), (slope * self).sum_to_size(target_size), None

    return torch.soft_margin_loss(self, target, reduction), backward


@table.gradient("kl_div")
def kl_div_gradient(self: Tensor, target: Tensor, reduction: int, log_target: bool):
    self_size, target_size = self.size(), target.size()

    def backward(grad: Tensor):
        each = share(grad, (self + target).numel(), reduction)
        if log_target:
            chance = target.exp()
            target_grad = chance * (target + 1 - self) * each
        else:
            chance = target
            spread = torch.where(target == 0, torch.zeros_like(target), target.log() + 1)
            target_grad = torch.where(target == 0, torch.zeros_like(target), spread - self) * each
        return (-chance * each).sum_to_size(self_size), target_grad.sum_to_size(target_size), None, None

    return torch.kl_div(self, target, reduction, log_target=log_target), backward


def weighed(slope: Tensor, weight: Tensor | None) -> Tensor:
    """Times a weight where there is one."""
    if weight is None:
        return slope
    return slope * weight


@table.gradient("binary_cross_entropy")
def binary_cross_entropy_gradient(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int):
    def backward(grad: Tensor):
        each = weighed(share(grad, self.numel(), reduction), weight)
        slope = (self - target) / torch.clamp_min((1 - self) * self, 1e-12)
        target_grad = ((1 - self).log() - self.log()) * each
        return slope * each, target_grad, None, None

    return torch.binary_cross_entropy(self, target, weight, reduction), backward


@table.gradient("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits_gradient(self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None,
                                              reduction: int):
    self_size, target_size = self.size(), target.size()

    def backward(grad: Tensor):
        each = weighed(share(grad, self.numel(), reduction), weight)
        if pos_weight is None:
            slope = self.sigmoid() - target
            target_slope = -self
        else:
            slope = ((pos_weight - 1) * target + 1) * self.sigmoid() - pos_weight * target
            target_slope = torch.log_sigmoid(-self) - pos_weight * torch.log_sigmoid(self)
        return (slope * each).sum_to_size(self_size), (target_slope * each).sum_to_size(target_size), None, None, None

    return torch.binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction), backward


@table.gradient("poisson_nll_loss")
def poisson_nll_loss_gradient(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int):
    input_size, target_size = input.size(), target.size()

    def backward(grad: Tensor):
        each = share(grad, (input + target).numel(), reduction)
        if log_input:
            slope = input.exp() - target
            target_slope = -input
        else:
            slope = 1 - target / (input + eps)
            target_slope = -(input + eps).log()
        if full:
            stirling = target.log() + target.reciprocal() * 0.5
            target_slope = target_slope + torch.where(target > 1, stirling, torch.zeros_like(stirling))
        return (slope * each).sum_to_size(input_size), (target_slope * each).sum_to_size(target_size), None, None, None, None

    return torch.poisson_nll_loss(input, target, log_input, full, eps, reduction), backward


@table.gradient("margin_ranking_loss")
def margin_ranking_loss_gradient(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int):
    size1, size2, target_size = input1.size(), input2.size(), target.size()

    def backward(grad: Tensor):
        room = -target * (input1 - input2) + margin
        each = torch.where(room >= 0, share(grad, room.numel(), reduction), torch.zeros_like(room))
        slope = each * target
        return (-slope).sum_to_size(size1), slope.sum_to_size(size2), (-each * (input1 - input2)).sum_to_size(target_size), None, None

    return torch.margin_ranking_loss(input1, input2, target, margin, reduction), backward


@table.gradient("hinge_embedding_loss")
def hinge_embedding_loss_gradient(self: Tensor, target: Tensor, margin: float, reduction: int):
    self_size = self.size()

    def backward(grad: Tensor):
        room = margin - self
        nothing = torch.zeros_like(room)
        each = share(grad, (self + target).numel(), reduction)
        far = torch.where(target != 1, torch.where(room >= 0, -torch.ones_like(room), nothing), nothing)
        near = torch.where(target != -1, torch.ones_like(room), nothing)
        return ((near + far) * each).sum_to_size(self_size), None, None, None

    return torch.hinge_embedding_loss(self, target, margin, reduction), backward


def normal_slopes(self: Tensor, other: Tensor, similarity: Tensor, dim: int) -> Tensor:
    """The slope of a cosine similarity, for the first vector."""
    square, other_square = (self * self).sum([dim], True), (other * other).sum([dim], True)
    return other / (square * other_square).sqrt() - similarity * self / square


@table.gradient("cosine_embedding_loss")
def cosine_embedding_loss_gradient(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int):
    size1, size2 = input1.size(), input2.size()

    def backward(grad: Tensor):
        rank = target.dim()
        product = (input1 * input2).sum([rank], True)
        length1, length2 = (input1 * input1).sum([rank], True) + 1e-12, (input2 * input2).sum([rank], True) + 1e-12
        both = (length1 * length2).sqrt()
        cosine = product / both
        signs = target.unsqueeze(rank)
        nothing = torch.zeros_like(cosine)
        away = torch.where(cosine - margin >= 0, torch.ones_like(cosine), nothing)
        slope = torch.where(signs == 1, -torch.ones_like(cosine), torch.where(signs == -1, away, nothing))
        spread = grad
        if reduction == 0:
            spread = grad.unsqueeze(rank)
        each = slope * share(spread, cosine.numel(), reduction)
        grad1, grad2 = each * (input2 / both - cosine * input1 / length1), each * (input1 / both - cosine * input2 / length2)
        return grad1.sum_to_size(size1), grad2.sum_to_size(size2), None, None, None

    return torch.cosine_embedding_loss(input1, input2, target, margin, reduction), backward


def distance_slope(off: Tensor, distance: Tensor, p: float) -> Tensor:
    """The slope of the p-norm of differences along the last dimension."""
    length = distance.unsqueeze(-1)
    slope = off.sgn() * off.abs().pow(p - 1.0) / length.pow(p - 1.0)
    return torch.where(length == 0, torch.zeros_like(slope), slope)


@table.gradient("triplet_margin_loss")
def triplet_margin_loss_gradient(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool,
                                 reduction: int):
    anchor_size, positive_size, negative_size = anchor.size(), positive.size(), negative.size()

    def backward(grad: Tensor):
        near_off, far_off, other_off = anchor - positive + eps, anchor - negative + eps, positive - negative + eps
        near = torch.linalg_vector_norm(near_off, p, [-1])
        far = torch.linalg_vector_norm(far_off, p, [-1])
        other = torch.linalg_vector_norm(other_off, p, [-1])
        nothing = torch.zeros_like(near)
        distance = far
        if swap:
            distance = torch.minimum(far, other)
        room = near - distance + margin
        each = torch.where(room >= 0, share(grad, room.numel(), reduction), nothing)
        near_slope = distance_slope(near_off, near, p) * each.unsqueeze(-1)
        far_share, other_share = each, nothing
        if swap:
            even = torch.where(far == other, each / 2, each)
            far_share = torch.where(far <= other, even, nothing)
            other_share = torch.where(other <= far, even, nothing)
        far_slope = distance_slope(far_off, far, p) * far_share.unsqueeze(-1)
        other_slope = distance_slope(other_off, other, p) * other_share.unsqueeze(-1)
        return ((near_slope - far_slope).sum_to_size(anchor_size), (-near_slope - other_slope).sum_to_size(positive_size),
                (far_slope + other_slope).sum_to_size(negative_size), None, None, None, None, None)

    return torch.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction), backward
