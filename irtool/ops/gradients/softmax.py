"""Gradients of softmax and its relatives."""
from irtool.ops.kernels.softmax import table
from irtool.ops.tensor import torch

table.derivative("softmax.int special_softmax _safe_softmax _softmax",
                 lambda grad, dim, result: torch._softmax_backward_data(grad, result, dim, grad.dtype))
table.derivative("log_softmax.int special_log_softmax _log_softmax",
                 lambda grad, dim, result: torch._log_softmax_backward_data(grad, result, dim, grad.dtype))


@table.derivative("_masked_softmax")
def masked_softmax_gradient(grad, dim, result):
    along = dim if dim is not None else -1
    spread = torch._softmax_backward_data(grad, result, along, grad.dtype)
    return torch.where(result == 0, torch.zeros_like(spread), spread), None


@table.derivative("_softmax_backward_data")
def softmax_backward_gradient(grad, grad_output, output, dim):
    weighted = (grad * output).sum([dim], True)
    output_grad = grad * (grad_output - (grad_output * output).sum([dim], True)) - grad_output * weighted
    return torch._softmax_backward_data(grad, output, dim, grad.dtype), output_grad


@table.derivative("_log_softmax_backward_data")
def log_softmax_backward_gradient(grad, grad_output, output, dim):
    weighted = grad * output.exp()
    return grad - weighted.sum([dim], True), -weighted * grad_output.sum([dim], True)


@table.derivative("_masked_softmax_backward")
def masked_softmax_backward_gradient(grad, grad_output, output, mask, dim):
    over = dim if dim is not None else -1
    nothing = torch.zeros_like(output)
    shown = torch.where(mask, nothing, output)
    weighted = (grad * shown).sum([over], True)
    second_output = grad * (grad_output - (grad_output * shown).sum([over], True)) - grad_output * weighted
    return shown * (grad - weighted), torch.where(mask, nothing, second_output), None
