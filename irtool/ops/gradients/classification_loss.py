"""Gradients of classification losses."""
from __future__ import annotations

from irtool.ops.classification_loss import table
from irtool.ops.tensor import Tensor, number, torch


@table.gradient("nll_loss nll_loss2d nll_loss_nd")
def nll_loss_gradient(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int):
    result, total_weight = torch.nll_loss_forward(self, target, weight, reduction, ignore_index)

    def backward(grad: Tensor):
        found = torch.nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total_weight)
        return found, None, None, None, None

    return result, backward


@table.gradient("nll_loss_forward nll_loss2d_forward")
def nll_loss_forward_gradient(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int):
    result, total_weight = torch.nll_loss_forward(self, target, weight, reduction, ignore_index)

    def backward(grad: Tensor):
        found = torch.nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total_weight)
        return found, None, None, None, None

    return result, total_weight, backward


@table.gradient("nll_loss_backward nll_loss2d_backward")
def nll_loss_backward_gradient(grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int,
                               total_weight: Tensor):
    def backward(grad: Tensor):
        again = torch.nll_loss(grad, target, weight, reduction, ignore_index)
        return again, torch.zeros_like(grad), None, None, None, None, None

    return torch.nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight), backward


def along_classes(weight: Tensor, logs: Tensor, dim: int) -> Tensor:
    """A weight per class, in a shape that broadcasts."""
    shape = [1 for size in logs.size()]
    shape[dim] = weight.size(0)
    return weight.reshape(shape)


@table.gradient("cross_entropy_loss")
def cross_entropy_loss_gradient(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int,
                                label_smoothing: float):
    result = torch.cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing)
    dim = 1 if self.dim() > 1 else 0
    logs = torch.log_softmax(self, dim)

    def backward(grad: Tensor):
        classes = self.size(dim)
        target_grad: Tensor | None = None
        spread = grad
        if reduction == 0:
            spread = grad.unsqueeze(dim)
        scale = torch.ones_like(logs)
        if weight is not None:
            scale = along_classes(weight, logs, dim).expand_as(logs)
        if self.size() == target.size():
            if reduction == 1:
                spread = spread / (self.numel() // max(classes, 1))
            chance = target * (1 - label_smoothing) + label_smoothing / classes
            slope = -chance * scale * spread
            target_grad = -logs * scale * (1 - label_smoothing) * spread
        else:
            unused, total_weight = torch.nll_loss_forward(logs, target, weight, reduction, ignore_index)
            slope = torch.nll_loss_backward(grad * (1 - label_smoothing), logs, target, weight, reduction, ignore_index, total_weight)
            if label_smoothing > 0:
                if reduction == 1:
                    spread = spread / total_weight
                kept = (target != ignore_index).unsqueeze(dim)
                slope = slope - torch.where(kept, scale * spread * (label_smoothing / classes), torch.zeros_like(logs))
        return torch._log_softmax_backward_data(slope, logs, dim, slope.dtype), target_grad, None, None, None, None

    return result, backward


@table.gradient("multi_margin_loss")
def multi_margin_loss_gradient(self: Tensor, target: Tensor, p: number, margin: number, weight: Tensor | None, reduction: int):
    def backward(grad: Tensor):
        return torch.multi_margin_loss_backward(grad, self, target, p, margin, weight, reduction), None, None, None, None, None

    return torch.multi_margin_loss(self, target, p, margin, weight, reduction), backward


@table.gradient("multilabel_margin_loss")
def multilabel_margin_loss_gradient(self: Tensor, target: Tensor, reduction: int):
    result, is_target = torch.multilabel_margin_loss_forward(self, target, reduction)

    def backward(grad: Tensor):
        return torch.multilabel_margin_loss_backward(grad, self, target, reduction, is_target), None, None

    return result, backward


@table.gradient("multilabel_margin_loss_forward")
def multilabel_margin_loss_forward_gradient(self: Tensor, target: Tensor, reduction: int):
    result, is_target = torch.multilabel_margin_loss_forward(self, target, reduction)

    def backward(grad: Tensor):
        return torch.multilabel_margin_loss_backward(grad, self, target, reduction, is_target), None, None

    return result, is_target, backward


table.no_gradient("torch has no second order for it either", "multi_margin_loss_backward multilabel_margin_loss_backward")
