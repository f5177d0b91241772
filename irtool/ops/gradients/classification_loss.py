"""Gradients of losses over classes."""
from __future__ import annotations

from irtool.ops.kernels.classification_loss import table
from irtool.ops.tensor import Tensor, number, torch


@table.derivative("nll_loss nll_loss2d nll_loss_nd", through="nll_loss_forward")
@table.derivative("nll_loss_forward nll_loss2d_forward")
def nll_loss_forward_gradient(grad, self, target, weight, reduction, ignore_index, total_weight):
    return torch.nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total_weight), None, None


@table.derivative("nll_loss_backward nll_loss2d_backward")
def nll_loss_backward_gradient(grad, target, weight, reduction, ignore_index):
    along, _ = torch.nll_loss_forward(grad, target, weight, reduction, ignore_index)
    return along, None, None, None, None


@table.derivative("cross_entropy_loss")
def cross_entropy_loss_gradient(grad, self, target, weight, reduction, ignore_index, label_smoothing):
    dim = 0 if self.dim() == 1 else 1
    smoothing = label_smoothing if label_smoothing > 0 else 0.0     # torch ignores negative ones, and nan
    classes = self.size(dim)
    logs = self.log_softmax(dim)
    weights = torch.ones_like(self) if weight is None else weight.reshape([-1] + [1] * (self.dim() - 1 - dim)).expand_as(self)
    for_target: Tensor | None = None
    for_weight: Tensor | None = None
    if target.is_floating_point():      # probabilities
        smooth = target * (1 - smoothing) + smoothing / classes
        share = grad if reduction != 0 else grad.unsqueeze(dim)
        if reduction == 1:
            share = share * classes / self.numel()
        slope = -smooth * weights * share
        for_target = -logs * weights * share * (1 - smoothing)
        if weight is not None:
            for_weight = (-logs * smooth * share).transpose(0, dim).reshape([classes, -1]).sum([1])
    elif weight is None:
        _, total = torch.nll_loss_forward(logs, target, weight, 1, ignore_index)
        slope = torch.nll_loss_backward(grad, logs, target, weight, reduction, ignore_index, total)
        if smoothing > 0:
            share = grad.unsqueeze(dim) if reduction == 0 else grad
            if reduction == 1:
                share = share / total
            spread = -share * (target != ignore_index).unsqueeze(dim) * torch.ones_like(self)
            slope = slope * (1 - smoothing) + spread * (smoothing / classes)
    else:       # by operators that have gradients for the weights, which nll_loss_backward has not
        counted = (target != ignore_index).unsqueeze(dim)
        chosen = torch.zeros_like(self).scatter(dim, torch.where(counted, target.unsqueeze(dim).long(), 0), 1.0) * counted
        smooth = chosen * (1 - smoothing) + counted * (smoothing / classes)
        share = grad.unsqueeze(dim) if reduction == 0 else grad
        parts = -logs * smooth
        if reduction == 1:
            total = (chosen * weights).sum()
            share = share / total
            parts = parts - chosen * ((parts * weights).sum() / total)
        slope = torch.where(smooth != 0, -smooth * weights * share, 0.0)        # 0 where all targets are ignored, and share is infinite
        for_weight = (parts * share).transpose(0, dim).reshape([classes, -1]).sum([1])
    return slope - logs.exp() * slope.sum([dim], True), for_target, for_weight


def one_per_row(grad: Tensor, rows: int, reduction: int) -> Tensor:
    """The gradient of each row's loss, as a column."""
    if reduction == 1:
        return grad / rows
    return grad.reshape([-1, 1]) if reduction == 0 else grad


def margin_slope(self: Tensor, target: Tensor, p: number, margin: number, weight: Tensor | None) -> Tensor:
    """Slope of each row's multi_margin_loss."""
    rows = torch.atleast_2d(self)
    places = target.reshape([-1, 1])
    excess = rows - rows.gather(1, places) + margin
    active = (excess > 0).to(self.dtype).scatter(1, places, 0) / rows.size(1)
    if p >= 2:         # torch ignores its fraction
        active = active * 2 * excess
    if weight is not None:
        active = active * weight.index_select(0, target.reshape([-1])).unsqueeze(1)
    return active.scatter_add(1, places, -active.sum([1], True))


@table.derivative("multi_margin_loss")
def multi_margin_loss_gradient(grad, self, target, p, margin, weight, reduction):
    slope = margin_slope(self, target, p, margin, weight)
    return (slope * one_per_row(grad, slope.size(0), reduction)).reshape(self.size()), None, None


@table.derivative("multi_margin_loss_backward")
def multi_margin_loss_backward_gradient(grad, grad_output, self, target, p, margin, weight, reduction):
    slope = margin_slope(self, target, p, margin, weight)
    along = grad.reshape(slope.size())
    ones = one_per_row(torch.ones_like(grad_output), slope.size(0), reduction)
    for_grad = (along * slope * ones).sum([1]).sum_to_size(grad_output.size())
    second = torch.zeros_like(self)
    if p >= 2:         # torch ignores its fraction
        places = target.reshape([-1, 1])
        bent = (slope > 0).scatter(1, places, False) * (along - along.gather(1, places)) * (2.0 / slope.size(1))
        if weight is not None:
            bent = bent * weight.index_select(0, target.reshape([-1])).unsqueeze(1)
        bent = bent.scatter_add(1, places, -bent.sum([1], True))
        second = (bent * one_per_row(grad_output, slope.size(0), reduction)).reshape(self.size())
    return for_grad, second, None, None


@table.derivative("multilabel_margin_loss", through="multilabel_margin_loss_forward")
@table.derivative("multilabel_margin_loss_forward")
def multilabel_margin_loss_forward_gradient(grad, self, target, reduction, is_target):
    return torch.multilabel_margin_loss_backward(grad, self, target, reduction, is_target), None


@table.derivative("multilabel_margin_loss_backward")
def multilabel_margin_loss_backward_gradient(grad, grad_output, self, target, reduction, is_target):
    slope = torch.multilabel_margin_loss_backward(torch.ones_like(grad_output), self, target, reduction, is_target)
    product = grad * slope
    for_grad = product.sum() if grad_output.dim() == 0 else product.sum([-1])
    return for_grad, torch.zeros_like(self), None, None


table.no_gradient_for("weight", "torch has none either",
                      "nll_loss nll_loss2d nll_loss_nd nll_loss_forward nll_loss2d_forward nll_loss_backward nll_loss2d_backward "
                      "multi_margin_loss multi_margin_loss_backward")
table.no_gradient_for("total_weight", "torch has none either", "nll_loss_backward nll_loss2d_backward")
table.no_gradient_for("is_target", "torch has none either", "multilabel_margin_loss_backward")
