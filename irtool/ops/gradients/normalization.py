"""Gradients of normalizations.

First order: one node, native_..._backward, from the saved mean and inverse standard deviation (`inverse`). The gradient of that node
counts the saved statistics as functions of the input, so they take no part themselves. It works on rows: everything that is
normalized together is one row. `along` is the gradient that comes in for the input's gradient.
"""
from __future__ import annotations

from irtool.ops.kernels.normalization import table
from irtool.ops.tensor import Tensor, torch

CONJUGATED = ("rms_norm_gradient", "fused_rms_norm_gradient")      # conj() is spelt out, as in torch; the others take no complex tensors


def standardized(rows: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    """Rows with mean 0 and variance 1, and the inverse standard deviation, as functions of the rows: the number added to the variance
    follows from `inverse`, and counts as constant."""
    centred = rows - rows.mean([1], True)
    variance = (centred * centred).mean([1], True)
    extra = (1 / (inverse * inverse) - variance).detach()
    scale = (variance + extra).rsqrt()
    return centred * scale, scale


def second_order(along: Tensor, scaled: Tensor, extra: Tensor, normalized: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients, for `scaled` and the rows, of <along, inverse * (scaled - mean - normalized * mean(scaled * normalized))>; `extra` is
    a further slope for `normalized`."""
    along_part = (along * normalized).mean([1], True)
    scaled_part = (scaled * normalized).mean([1], True)
    for_scaled = inverse * (along - along.mean([1], True) - normalized * along_part)
    slope = extra - inverse * (along * scaled_part + scaled * along_part)
    energy = (for_scaled * scaled).mean([1], True)
    for_rows = inverse * (slope - slope.mean([1], True) - normalized * ((slope * normalized).mean([1], True) + energy))
    return for_scaled, for_rows


# ---- over the batch

@table.derivative("batch_norm", through="_batch_norm_impl_index")
@table.derivative("native_batch_norm aten::_native_batch_norm_legit _native_batch_norm_legit_functional _batch_norm_impl_index")
def native_batch_norm_gradient(grad, input, weight, running_mean, running_var, training, eps, result1, result2, weight_present,
                               bias_present):
    return *torch.native_batch_norm_backward(grad, input, weight, running_mean, running_var, result1, result2, training, eps,
                                             [True, weight_present, bias_present]), None, None


@table.derivative("_native_batch_norm_legit.no_stats")
def batch_norm_without_stats_gradient(grad, input, weight, training, eps, result1, result2, weight_present, bias_present):
    return torch.native_batch_norm_backward(grad, input, weight, None, None, result1, result2, training, eps,
                                            [True, weight_present, bias_present])


@table.derivative("_native_batch_norm_legit_no_training")
def batch_norm_inference_gradient(grad, input, weight, running_mean, running_var, eps, weight_present, bias_present):
    return *torch.native_batch_norm_backward(grad, input, weight, running_mean, running_var, None, None, False, eps,
                                             [True, weight_present, bias_present]), None, None


@table.derivative("_batch_norm_with_update _batch_norm_with_update_functional")
def batch_norm_with_update_gradient(grad, input, weight, eps, result1, result2, weight_present, bias_present):
    return *torch.native_batch_norm_backward(grad, input, weight, None, None, result1, result2, True, eps,
                                             [True, weight_present, bias_present]), None, None


@table.gradient("_batch_norm_no_update")
def batch_norm_no_update_gradient(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                                  running_var: Tensor | None, momentum: float, eps: float):
    result, mean, inverse, reserve = torch._batch_norm_no_update(input, weight, bias, running_mean, running_var, momentum, eps)
    training = running_mean is None
    mask = [True, weight is not None, bias is not None]

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.native_batch_norm_backward(grad, input, weight, running_mean, running_var, mean, inverse,
                                                                           training, eps, mask)
        return for_input, for_weight, for_bias, None, None, None, None

    return result, mean, inverse, reserve, backward


def batch_norm_second(along_input: Tensor | None, along_weight: Tensor | None, along_bias: Tensor | None, grad_out: Tensor,
                      input: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
                      saved: Tensor | None, train: bool, eps: float) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients of native_batch_norm_backward for grad_out, input and weight; a row is a channel."""
    moved = input.transpose(0, 1)
    rows = moved.flatten(1)
    grads = grad_out.transpose(0, 1).flatten(1)
    along = torch.zeros_like(rows) if along_input is None else along_input.transpose(0, 1).flatten(1)
    scale = torch.ones_like(rows[:, :1]) if weight is None else weight.unsqueeze(1)
    extra = torch.zeros_like(grads) if along_weight is None else grads * along_weight.unsqueeze(1)
    if train:
        assert saved is not None
        normalized, inverse = standardized(rows, saved.unsqueeze(1))
        for_scaled, for_rows = second_order(along, grads * scale, extra, normalized, inverse)
    else:
        assert running_mean is not None and running_var is not None
        inverse = (running_var + eps).rsqrt().unsqueeze(1)
        normalized = (rows - running_mean.unsqueeze(1)) * inverse
        for_scaled = along * inverse
        for_rows = extra * inverse
    for_grads = for_scaled * scale
    if along_weight is not None:
        for_grads = for_grads + normalized * along_weight.unsqueeze(1)
    if along_bias is not None:
        for_grads = for_grads + along_bias.unsqueeze(1)
    for_weight = (grads * for_scaled).sum([1]) if weight is not None else None
    return for_grads.reshape(moved.size()).transpose(0, 1), for_rows.reshape(moved.size()).transpose(0, 1), for_weight


@table.derivative("native_batch_norm_backward")
def native_batch_norm_backward_gradient(grad_input, grad_weight, grad_bias, grad_out, input, weight, running_mean, running_var, save_invstd,
                                        train, eps):
    return *batch_norm_second(grad_input, grad_weight, grad_bias, grad_out, input, weight, running_mean, running_var, save_invstd, train,
                              eps), None, None, None, None


@table.derivative("batch_norm_backward")
def batch_norm_backward_gradient(grad_input, grad_weight, grad_bias, grad_out, input, weight, running_mean, running_var, save_var, update,
                                 eps):
    return *batch_norm_second(grad_input, grad_weight, grad_bias, grad_out, input, weight, running_mean, running_var, save_var, update,
                              eps), None, None, None, None, None


@table.derivative("_batch_norm_impl_index_backward")
def batch_norm_impl_index_backward_gradient(grad_input, grad_weight, grad_bias, input, grad_output, weight, running_mean, running_var,
                                            save_var_transform, train, eps):
    second_grad, second_input, second_weight = batch_norm_second(grad_input, grad_weight, grad_bias, grad_output, input, weight,
                                                                 running_mean, running_var, save_var_transform, train, eps)
    return second_input, second_grad, second_weight, None, None, None, None, None


# ---- over the last dimensions

@table.derivative("layer_norm", through="native_layer_norm")
@table.derivative("native_layer_norm")
def native_layer_norm_gradient(grad, input, normalized_shape, weight, bias, result1, result2, weight_present, bias_present):
    return torch.native_layer_norm_backward(grad, input, normalized_shape, result1, result2, weight, bias,
                                            [True, weight_present, bias_present])


@table.derivative("native_layer_norm_backward")
def native_layer_norm_backward_gradient(grad_input, grad_weight, grad_bias, grad_out, input, normalized_shape, rstd, weight):
    rows = input.flatten(-len(normalized_shape)).unsqueeze(0).flatten(0, -2)
    grads = grad_out.reshape(rows.size())
    along = torch.zeros_like(rows) if grad_input is None else grad_input.reshape(rows.size())
    scale = torch.ones_like(rows[:1]) if weight is None else weight.reshape([1, -1])
    extra = torch.zeros_like(grads) if grad_weight is None else grads * grad_weight.reshape([1, -1])
    normalized, inverse = standardized(rows, rstd.reshape([-1, 1]))
    for_scaled, for_rows = second_order(along, grads * scale, extra, normalized, inverse)
    for_grads = for_scaled * scale
    if grad_weight is not None:
        for_grads = for_grads + normalized * grad_weight.reshape([1, -1])
    if grad_bias is not None:
        for_grads = for_grads + grad_bias.reshape([1, -1])
    second_weight = (grads * for_scaled).sum([0]).reshape(weight.size()) if weight is not None else None
    return for_grads.reshape(input.size()), for_rows.reshape(input.size()), None, None, second_weight, None


def precise(x: Tensor) -> Tensor:
    """Half precision as single precision, in which torch computes these gradients: squares of 256 and more do not fit half."""
    return x.to(torch.float32) if x.dtype == torch.float16 else x


def rms_backward(grad: Tensor, input: Tensor, weight: Tensor | None, inner: int, eps: float) -> tuple[Tensor, Tensor | None]:
    """Gradients of rms_norm over the last `inner` dimensions, for input and weight."""
    axes = list(range(-inner, 0))
    rows, grads = precise(input), precise(grad)
    inverse = ((rows * rows).mean(axes, True) + eps).rsqrt().conj()       # rows * rows also for complex numbers, as in torch
    normalized = rows.conj() * inverse
    scaled = grads if weight is None else grads * weight.conj()
    for_input = inverse * (scaled - normalized * (scaled * normalized).mean(axes, True))
    for_weight = (grads * normalized).sum_to_size(weight.size()).to(weight.dtype) if weight is not None else None
    return for_input.to(input.dtype), for_weight


def rms_epsilon(input: Tensor, eps: float | None) -> float:
    """torch's default for `eps`, which depends on the dtype."""
    least = 2.220446049250313e-16 if input.dtype == torch.float64 or input.dtype == torch.complex128 else 1.1920928955078125e-07
    return least if eps is None else eps


@table.derivative("rms_norm")
def rms_norm_gradient(grad, input, normalized_shape, weight, eps):
    return rms_backward(grad, input, weight, len(normalized_shape), rms_epsilon(input, eps))


@table.derivative("_fused_rms_norm")
def fused_rms_norm_gradient(grad, grad_inverse, input, normalized_shape, weight, eps, result0, result1):
    result_grad = torch.zeros_like(result0) if grad is None else grad
    for_input, for_weight = rms_backward(result_grad, input, weight, len(normalized_shape), rms_epsilon(input, eps))
    if grad_inverse is not None:
        count = max(input.numel() // max(result1.numel(), 1), 1)
        for_input = for_input - (result1 * result1 * result1 * input).conj() * grad_inverse / count
    return for_input, for_weight


# ---- over groups of channels, and per instance

def without_gaps(x: Tensor) -> Tensor:
    """x as `native_group_norm` takes it: row-major or channels-last, of which the formats of torch are 2 and 3."""
    rank = x.dim()
    fits = x.is_contiguous() or rank == 4 and x.is_contiguous(memory_format=2) or rank == 5 and x.is_contiguous(memory_format=3)
    return x if fits else x.contiguous()


@table.gradient("group_norm")
def group_norm_gradient(input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float, cudnn_enabled: bool):
    count, channels = input.size(0), input.size(1)
    extent = input.numel() // max(count * channels, 1)
    result, mean, inverse = torch.native_group_norm(without_gaps(input), weight, bias, count, channels, extent, num_groups, eps)
    mask = [True, weight is not None, bias is not None]

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.native_group_norm_backward(grad, input, mean, inverse, weight, count, channels, extent,
                                                                           num_groups, mask)
        return for_input, None, for_weight, for_bias, None, None

    return result, backward


@table.derivative("native_group_norm")
def native_group_norm_gradient(grad, grad_mean, grad_inverse, input, weight, N, C, HxW, group, result0, result1, result2, weight_present,
                               bias_present):
    mask = [True, weight_present, bias_present]
    result_grad = torch.zeros_like(result0) if grad is None else grad
    for_input, for_weight, for_bias = torch.native_group_norm_backward(result_grad, input, result1, result2, weight, N, C, HxW, group, mask)
    count = max(C * HxW // group, 1)
    if grad_mean is not None:
        for_input = for_input + (grad_mean / count).reshape([N, group, 1]).expand([N, group, count]).reshape(input.size())
    if grad_inverse is not None:
        centred = input.reshape([N, group, count]) - result1.reshape([N, group, 1])
        for_input = for_input - ((grad_inverse * result2 * result2 * result2 / count).reshape([N, group, 1]) * centred).reshape(
            input.size())
    return for_input, for_weight, for_bias


@table.derivative("native_group_norm_backward")
def native_group_norm_backward_gradient(grad_input, grad_weight, grad_bias, grad_out, input, rstd, weight, N, C, HxW, group):
    sizes, shape = [N * group, C * HxW // group], [N, C, HxW]
    rows = input.reshape(sizes)
    grads = grad_out.reshape(shape)
    along = torch.zeros_like(rows) if grad_input is None else grad_input.reshape(sizes)
    scaled = grads if weight is None else grads * weight.unsqueeze(1)
    extra = torch.zeros_like(grads) if grad_weight is None else grads * grad_weight.unsqueeze(1)
    normalized, inverse = standardized(rows, rstd.reshape([-1, 1]))
    for_scaled, for_rows = second_order(along, scaled.reshape(sizes), extra.reshape(sizes), normalized, inverse)
    for_grads = for_scaled.reshape(shape)
    second_weight: Tensor | None = None
    if weight is not None:
        second_weight = (grads * for_grads).sum([0, 2])
        for_grads = for_grads * weight.unsqueeze(1)
    if grad_weight is not None:
        for_grads = for_grads + normalized.reshape(shape) * grad_weight.unsqueeze(1)
    if grad_bias is not None:
        for_grads = for_grads + grad_bias.unsqueeze(1)
    return for_grads.reshape(input.size()), for_rows.reshape(input.size()), None, None, second_weight


@table.derivative("instance_norm")
def instance_norm_gradient(grad, input, weight, bias, running_mean, running_var, use_input_stats, eps):
    planes = precise(input.flatten(2))
    grads = precise(grad.flatten(2))
    scaled = grads if weight is None else grads * weight.unsqueeze(1)
    if use_input_stats:
        centred = planes - planes.mean([2], True)
        inverse = ((centred * centred).mean([2], True) + eps).rsqrt()
        normalized = centred * inverse
        for_input = inverse * (scaled - scaled.mean([2], True) - normalized * (scaled * normalized).mean([2], True))
    else:
        assert running_mean is not None and running_var is not None
        inverse = (running_var + eps).rsqrt().unsqueeze(1)
        normalized = (planes - running_mean.unsqueeze(1)) * inverse
        for_input = scaled * inverse
    for_weight = (grads * normalized).sum([0, 2]).to(weight.dtype) if weight is not None else None
    for_bias = grads.sum([0, 2]).to(bias.dtype) if bias is not None else None
    return for_input.reshape(input.size()).to(input.dtype), for_weight, for_bias, None, None


table.no_gradient_for("running_mean running_var", "torch has none for running statistics either",
                      "batch_norm native_batch_norm _native_batch_norm_legit_no_training _native_batch_norm_legit_functional "
                      "_native_batch_norm_legit _batch_norm_with_update _batch_norm_with_update_functional _batch_norm_no_update "
                      "_batch_norm_impl_index instance_norm native_batch_norm_backward batch_norm_backward _batch_norm_impl_index_backward")
SAVED = "torch has none for what the forward operator saved either"
table.no_gradient_for("save_mean save_invstd", SAVED, "native_batch_norm_backward")
table.no_gradient_for("save_mean save_var reserve", SAVED, "batch_norm_backward")
table.no_gradient_for("save_mean save_var_transform reservedSpace", SAVED, "_batch_norm_impl_index_backward")
table.no_gradient_for("mean rstd", SAVED, "native_layer_norm_backward")
