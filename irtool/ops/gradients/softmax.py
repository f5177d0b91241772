"""Gradients of softmax and its relatives."""
from __future__ import annotations

from irtool.ops.kernels.softmax import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("softmax.int special_softmax")
def softmax_gradient(self: Tensor, dim: int, dtype: int | None):
    result = torch.softmax(self, dim, dtype)

    def backward(grad: Tensor):
        return torch._softmax_backward_data(grad, result, dim, grad.dtype), None, None

    return result, backward


@table.gradient("_safe_softmax")
def safe_softmax_gradient(self: Tensor, dim: int, dtype: int | None):
    result = torch._safe_softmax(self, dim, dtype)

    def backward(grad: Tensor):
        return torch._softmax_backward_data(grad, result, dim, grad.dtype), None, None

    return result, backward


@table.gradient("_softmax")
def plain_softmax_gradient(self: Tensor, dim: int, half_to_float: bool):
    result = torch._softmax(self, dim, half_to_float)

    def backward(grad: Tensor):
        return torch._softmax_backward_data(grad, result, dim, grad.dtype), None, None

    return result, backward


@table.gradient("log_softmax.int special_log_softmax")
def log_softmax_gradient(self: Tensor, dim: int, dtype: int | None):
    result = torch.log_softmax(self, dim, dtype)

    def backward(grad: Tensor):
        return torch._log_softmax_backward_data(grad, result, dim, grad.dtype), None, None

    return result, backward


@table.gradient("_log_softmax")
def plain_log_softmax_gradient(self: Tensor, dim: int, half_to_float: bool):
    result = torch._log_softmax(self, dim, half_to_float)

    def backward(grad: Tensor):
        return torch._log_softmax_backward_data(grad, result, dim, grad.dtype), None, None

    return result, backward


@table.gradient("_masked_softmax")
def masked_softmax_gradient(self: Tensor, mask: Tensor, dim: int | None, mask_type: int | None):
    result = torch._masked_softmax(self, mask, dim, mask_type)

    def backward(grad: Tensor):
        along = -1
        if dim is not None:
            along = dim
        spread = torch._softmax_backward_data(grad, result, along, grad.dtype)
        return torch.where(result == 0, torch.zeros_like(spread), spread), None, None, None

    return result, backward


@table.gradient("_softmax_backward_data")
def softmax_backward_gradient(grad_output: Tensor, output: Tensor, dim: int, input_dtype: int):
    def backward(grad: Tensor):
        weighted = (grad * output).sum([dim], True)
        output_grad = grad * (grad_output - (grad_output * output).sum([dim], True)) - grad_output * weighted
        return torch._softmax_backward_data(grad, output, dim, grad.dtype), output_grad, None, None

    return torch._softmax_backward_data(grad_output, output, dim, input_dtype), backward


@table.gradient("_log_softmax_backward_data")
def log_softmax_backward_gradient(grad_output: Tensor, output: Tensor, dim: int, input_dtype: int):
    def backward(grad: Tensor):
        weighted = grad * output.exp()
        return grad - weighted.sum([dim], True), -weighted * grad_output.sum([dim], True), None, None

    return torch._log_softmax_backward_data(grad_output, output, dim, input_dtype), backward


@table.gradient("_masked_softmax_backward")
def masked_softmax_backward_gradient(grad_output: Tensor, output: Tensor, mask: Tensor, dim: int | None):
    def backward(grad: Tensor):
        over = -1
        if dim is not None:
            over = dim
        shown = torch.where(mask, torch.zeros_like(grad), grad)
        weighted = (shown * output).sum([over], True)
        second_output = shown * (grad_output - (grad_output * output).sum([over], True)) - grad_output * weighted
        return output * (shown - weighted), second_output, None, None

    return torch._masked_softmax_backward(grad_output, output, mask, dim), backward
