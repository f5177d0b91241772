"""Gradients of dropout. Numbers that are drawn have none."""
from __future__ import annotations

from irtool.ops.kernels.random import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("dropout")
def dropout_gradient(input: Tensor, p: float, train: bool):
    scale = 1.0 / (1.0 - p) if train and p < 1.0 else 1.0
    mask: Tensor | None = None
    if train and p > 0.0:
        result, mask = torch.native_dropout(input, p, True)
    else:
        result = torch.dropout(input, p, False)

    def backward(grad: Tensor):
        for_input = torch.native_dropout_backward(grad, mask, scale) if mask is not None else grad
        return for_input, None, None

    return result, backward


@table.gradient("native_dropout")
def native_dropout_gradient(input: Tensor, p: float, train: bool | None):
    result, mask = torch.native_dropout(input, p, train)
    scale = 1.0
    if p < 1.0:
        if train is None:
            scale = 1.0 / (1.0 - p)
        elif train:
            scale = 1.0 / (1.0 - p)

    def backward(grad: Tensor):
        return torch.native_dropout_backward(grad, mask, scale), None, None

    return result, mask, backward


table.pointwise("native_dropout_backward", lambda grad, mask, scale: (torch.native_dropout_backward(grad, mask, scale), None))
table.pointwise("_masked_scale", lambda grad, mask, scale: (grad * mask * scale, None))


@table.gradient("feature_dropout")
def feature_dropout_gradient(input: Tensor, p: float, train: bool):
    mask: Tensor | None = None
    if train and p > 0.0:
        mask = torch.feature_dropout(torch.ones_like(input), p, train)
        result = input * mask
    else:
        result = torch.feature_dropout(input, p, train)

    def backward(grad: Tensor):
        for_input = grad * mask if mask is not None else grad
        return for_input, None, None

    return result, backward


@table.derivative("alpha_dropout")
def alpha_dropout_gradient(grad, p, train, result):
    for_input = grad
    if train and p > 0.0:
        saturation = 1.7580993408473766
        scale = 1.0 / ((saturation * saturation * p + 1.0) * (1.0 - p)) ** 0.5 if p < 1.0 else 0.0
        dropped = result - (saturation * scale * p - saturation * scale)
        for_input = torch.where(dropped.abs() <= 1e-6, torch.zeros_like(grad), grad * scale)
    return for_input


@table.gradient("feature_alpha_dropout")
def feature_alpha_dropout_gradient(input: Tensor, p: float, train: bool):
    slope = torch.ones_like(input)
    if train and p > 0.0:
        marks = torch.feature_alpha_dropout(slope, p, train)        # the mask is the same for ones
        saturation = 1.7580993408473766
        scale = 1.0 / ((saturation * saturation * p + 1.0) * (1.0 - p)) ** 0.5 if p < 1.0 else 0.0
        dropped = (marks - (saturation * scale * p - saturation * scale)).abs() <= 1e-6
        slope = torch.where(dropped, torch.zeros_like(input), torch.full_like(input, scale))
        result = input * slope + (marks - slope)
    else:
        result = torch.feature_alpha_dropout(input, p, train)

    def backward(grad: Tensor):
        return grad * slope, None, None

    return result, backward


table.no_gradient("random numbers")
