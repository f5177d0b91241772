"""Gradients of normalizations, first and second order. Running statistics never have one.

With h = (x - mean) * inverse and P v = v - mean(v) - h * mean(v * h), the gradient of a normalization is inverse * P (w * g). The
second order follows from that, the mean and the inverse being functions of x as well.
"""
from __future__ import annotations

from irtool.ops.normalization import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("batch_norm")
def batch_norm_gradient(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
                        training: bool, momentum: float, eps: float, cudnn_enabled: bool):
    result, mean, inverse = torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    has_bias = bias is not None

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.native_batch_norm_backward(grad, input, weight, running_mean, running_var, mean, inverse,
                                                                           training, eps, [True, weight is not None, has_bias])
        return for_input, for_weight, for_bias, None, None, None, None, None, None

    return result, backward


@table.gradient("native_batch_norm _native_batch_norm_legit")
def native_batch_norm_gradient(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                               running_var: Tensor | None, training: bool, momentum: float, eps: float):
    result, mean, inverse = torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    has_bias = bias is not None

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.native_batch_norm_backward(grad, input, weight, running_mean, running_var, mean, inverse,
                                                                           training, eps, [True, weight is not None, has_bias])
        return for_input, for_weight, for_bias, None, None, None, None, None

    return result, mean, inverse, backward


@table.gradient("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats_gradient(input: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float):
    result, mean, inverse = torch.native_batch_norm(input, weight, bias, None, None, training, momentum, eps)
    has_bias = bias is not None

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.native_batch_norm_backward(grad, input, weight, None, None, mean, inverse,
                                                                           training, eps, [True, weight is not None, has_bias])
        return for_input, for_weight, for_bias, None, None, None

    return result, mean, inverse, backward


@table.gradient("_native_batch_norm_legit_no_training")
def batch_norm_no_training_gradient(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor,
                                    momentum: float, eps: float):
    result, mean, inverse = torch.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    has_bias = bias is not None

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.native_batch_norm_backward(grad, input, weight, running_mean, running_var, mean, inverse,
                                                                           False, eps, [True, weight is not None, has_bias])
        return for_input, for_weight, for_bias, None, None, None, None

    return result, mean, inverse, backward


@table.gradient("_native_batch_norm_legit_functional")
def batch_norm_functional_gradient(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor,
                                   training: bool, momentum: float, eps: float):
    result, mean, inverse, mean_out, var_out = torch._native_batch_norm_legit_functional(input, weight, bias, running_mean, running_var,
                                                                                         training, momentum, eps)
    has_bias = bias is not None

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.native_batch_norm_backward(grad, input, weight, running_mean, running_var, mean, inverse,
                                                                           training, eps, [True, weight is not None, has_bias])
        return for_input, for_weight, for_bias, None, None, None, None, None

    return result, mean, inverse, mean_out, var_out, backward


@table.gradient("_batch_norm_with_update")
def batch_norm_with_update_gradient(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor,
                                    momentum: float, eps: float):
    result, mean, inverse, reserve = torch._batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps)
    has_bias = bias is not None

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.native_batch_norm_backward(grad, input, weight, running_mean, running_var, mean, inverse,
                                                                           True, eps, [True, weight is not None, has_bias])
        return for_input, for_weight, for_bias, None, None, None, None

    return result, mean, inverse, reserve, backward


@table.gradient("_batch_norm_impl_index")
def batch_norm_impl_index_gradient(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                                   running_var: Tensor | None, training: bool, momentum: float, eps: float, cudnn_enabled: bool):
    result, mean, inverse, reserve, number = torch._batch_norm_impl_index(input, weight, bias, running_mean, running_var, training, momentum,
                                                                          eps, cudnn_enabled)
    has_bias = bias is not None

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.native_batch_norm_backward(grad, input, weight, running_mean, running_var, mean, inverse,
                                                                           training, eps, [True, weight is not None, has_bias])
        return for_input, for_weight, for_bias, None, None, None, None, None, None

    return result, mean, inverse, reserve, number, backward


def per_channel(values: Tensor, like: Tensor) -> Tensor:
    """Values per channel, in a shape that broadcasts along dimension 1."""
    shape = [1 for size in like.size()]
    shape[1] = values.size(0)
    return values.reshape(shape)


def projected(values: Tensor, normal: Tensor, dims: list[int]) -> Tensor:
    """P values: without their mean and without what goes along the normalized x."""
    return values - values.mean(dims, True) - normal * (values * normal).mean(dims, True)


def second_order(again: Tensor, weight_again: Tensor, bias_again: Tensor, grad: Tensor, weight: Tensor, normal: Tensor, inverse: Tensor,
                 dims: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients, for grad, x and weight, of the three gradients of a normalization; all in shapes that broadcast to x's."""
    scaled = grad * weight
    across, along = (again * normal).mean(dims, True), (scaled * normal).mean(dims, True)
    pulled = projected(again, normal, dims) * inverse
    grad_grad = pulled * weight + weight_again * normal + bias_again
    inner = weight_again * grad - inverse * (along * again + across * scaled)
    total = (again * scaled).mean(dims, True) - again.mean(dims, True) * scaled.mean(dims, True) - across * along
    x_grad = inverse * projected(inner, normal, dims) - total * inverse * inverse * normal
    return grad_grad, x_grad, pulled * grad


@table.gradient("native_batch_norm_backward")
def native_batch_norm_backward_gradient(grad_out: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None,
                                        running_var: Tensor | None, save_mean: Tensor | None, save_invstd: Tensor | None, train: bool,
                                        eps: float, output_mask: list[bool]):
    for_input, for_weight, for_bias = torch.native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean,
                                                                       save_invstd, train, eps, output_mask)

    def backward(input_grad: Tensor | None, weight_grad: Tensor | None, bias_grad: Tensor | None):
        dims = [0]
        for place in range(2, input.dim()):
            dims.append(place)
        nothing = torch.zeros_like(grad_out)
        again, weight_again, bias_again = nothing, nothing, nothing
        scale = torch.ones_like(grad_out)
        if input_grad is not None:
            again = input_grad
        if weight_grad is not None:
            weight_again = per_channel(weight_grad, input).expand_as(input)
        if bias_grad is not None:
            bias_again = per_channel(bias_grad, input).expand_as(input)
        if weight is not None:
            scale = per_channel(weight, input).expand_as(input)
        if train:
            centred = input - input.mean(dims, True)
            inverse = ((centred * centred).mean(dims, True) + eps).rsqrt()
            grad_grad, x_grad, wide = second_order(again, weight_again, bias_again, grad_out, scale, centred * inverse, inverse, dims)
        else:
            assert running_mean is not None and running_var is not None
            inverse = per_channel((running_var + eps).rsqrt(), input)
            normal = (input - per_channel(running_mean, input)) * inverse
            grad_grad = again * scale * inverse + weight_again * normal + bias_again
            x_grad = weight_again * grad_out * inverse
            wide = again * grad_out * inverse
        to_weight: Tensor | None = None
        if weight is not None:
            to_weight = wide.sum(dims)
        return grad_grad, x_grad, to_weight, None, None, None, None, None, None, None

    return for_input, for_weight, for_bias, backward


# ---- over the last dimensions

@table.gradient("layer_norm")
def layer_norm_gradient(input: Tensor, normalized_shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: float,
                        cudnn_enable: bool):
    result, mean, inverse = torch.native_layer_norm(input, normalized_shape, weight, bias, eps)

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.native_layer_norm_backward(grad, input, normalized_shape, mean, inverse, weight, bias,
                                                                           [True, weight is not None, bias is not None])
        return for_input, None, for_weight, for_bias, None, None

    return result, backward


@table.gradient("native_layer_norm")
def native_layer_norm_gradient(input: Tensor, normalized_shape: list[int], weight: Tensor | None, bias: Tensor | None, eps: float):
    result, mean, inverse = torch.native_layer_norm(input, normalized_shape, weight, bias, eps)

    def backward(grad: Tensor | None, mean_grad: Tensor | None, inverse_grad: Tensor | None):
        found = torch.zeros_like(input)
        weight_grad: Tensor | None = None
        bias_grad: Tensor | None = None
        if grad is not None:
            for_input, for_weight, for_bias = torch.native_layer_norm_backward(grad, input, normalized_shape, mean, inverse, weight, bias,
                                                                               [True, weight is not None, bias is not None])
            found = for_input
            weight_grad = for_weight
            bias_grad = for_bias
        count = 1
        for size in normalized_shape:
            count = count * size
        if mean_grad is not None:
            found = found + (mean_grad / count).expand_as(input)
        if inverse_grad is not None:
            found = found - inverse_grad * inverse.pow(3) * (input - mean) / count
        return found, None, weight_grad, bias_grad, None

    return result, mean, inverse, backward


@table.gradient("native_layer_norm_backward")
def native_layer_norm_backward_gradient(grad_out: Tensor, input: Tensor, normalized_shape: list[int], mean: Tensor, rstd: Tensor,
                                        weight: Tensor | None, bias: Tensor | None, output_mask: list[bool]):
    for_input, for_weight, for_bias = torch.native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias,
                                                                       output_mask)

    def backward(input_grad: Tensor | None, weight_grad: Tensor | None, bias_grad: Tensor | None):
        dims: list[int] = []
        for place in range(len(normalized_shape)):
            dims.append(input.dim() - len(normalized_shape) + place)
        nothing = torch.zeros_like(grad_out)
        again, weight_again, bias_again = nothing, nothing, nothing
        scale = torch.ones_like(grad_out)
        if input_grad is not None:
            again = input_grad
        if weight_grad is not None:
            weight_again = weight_grad.expand_as(input)
        if bias_grad is not None:
            bias_again = bias_grad.expand_as(input)
        if weight is not None:
            scale = weight.expand_as(input)
        shape = input.size()
        for dim in dims:
            shape[dim] = 1
        inverse = rstd.reshape(shape)
        normal = (input - mean.reshape(shape)) * inverse
        grad_grad, x_grad, wide = second_order(again, weight_again, bias_again, grad_out, scale, normal, inverse, dims)
        to_weight: Tensor | None = None
        if weight is not None:
            to_weight = wide.sum_to_size(normalized_shape)
        return grad_grad, x_grad, None, None, None, to_weight, None, None

    return for_input, for_weight, for_bias, backward


@table.gradient("rms_norm")
def rms_norm_gradient(input: Tensor, normalized_shape: list[int], weight: Tensor | None, eps: float | None):
    def backward(grad: Tensor):
        small = 1.1920928955078125e-07
        if grad.dtype == 7:
            small = 2.220446049250313e-16
        if eps is not None:
            small = eps
        dims: list[int] = []
        for place in range(len(normalized_shape)):
            dims.append(input.dim() - len(normalized_shape) + place)
        inverse = ((input * input).mean(dims, True) + small).rsqrt()
        normal = input * inverse
        scaled = grad
        weight_grad: Tensor | None = None
        if weight is not None:
            scaled = grad * weight
            weight_grad = (grad * normal).sum_to_size(normalized_shape)
        return inverse * (scaled - normal * (scaled * normal).mean(dims, True)), None, weight_grad, None

    return torch.rms_norm(input, normalized_shape, weight, eps), backward


# ---- over groups of channels

@table.gradient("group_norm")
def group_norm_gradient(input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float, cudnn_enabled: bool):
    rows, channels = input.size(0), input.size(1)
    places = input.numel() // max(rows * channels, 1)
    result, mean, inverse = torch.native_group_norm(input, weight, bias, rows, channels, places, num_groups, eps)
    has_bias = bias is not None

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.native_group_norm_backward(grad, input, mean, inverse, weight, rows, channels, places,
                                                                           num_groups, [True, weight is not None, has_bias])
        return for_input, None, for_weight, for_bias, None, None

    return result, backward


@table.gradient("native_group_norm")
def native_group_norm_gradient(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float):
    result, mean, inverse = torch.native_group_norm(input, weight, bias, N, C, HxW, group, eps)
    has_bias = bias is not None

    def backward(grad: Tensor):
        for_input, for_weight, for_bias = torch.native_group_norm_backward(grad, input, mean, inverse, weight, N, C, HxW, group,
                                                                           [True, weight is not None, has_bias])
        return for_input, for_weight, for_bias, None, None, None, None, None

    return result, mean, inverse, backward


@table.gradient("native_group_norm_backward")
def native_group_norm_backward_gradient(grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, N: int, C: int,
                                        HxW: int, group: int, output_mask: list[bool]):
    for_input, for_weight, for_bias = torch.native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)

    def backward(input_grad: Tensor | None, weight_grad: Tensor | None, bias_grad: Tensor | None):
        each = C // group
        full = [N, group, each, HxW]
        beside = [1, group, each, 1]
        nothing = torch.zeros_like(grad_out).reshape(full)
        again, weight_again, bias_again = nothing, nothing, nothing
        scale = torch.ones_like(nothing)
        if input_grad is not None:
            again = input_grad.reshape(full)
        if weight_grad is not None:
            weight_again = weight_grad.reshape(beside).expand(full)
        if bias_grad is not None:
            bias_again = bias_grad.reshape(beside).expand(full)
        if weight is not None:
            scale = weight.reshape(beside).expand(full)
        inverse = rstd.reshape([N, group, 1, 1])
        normal = (input.reshape(full) - mean.reshape([N, group, 1, 1])) * inverse
        grad_grad, x_grad, wide = second_order(again, weight_again, bias_again, grad_out.reshape(full), scale, normal, inverse, [2, 3])
        to_weight: Tensor | None = None
        if weight is not None:
            to_weight = wide.sum([0, 3]).reshape([C])
        return grad_grad.reshape(grad_out.size()), x_grad.reshape(input.size()), None, None, to_weight, None, None, None, None, None

    return for_input, for_weight, for_bias, backward


@table.gradient("instance_norm")
def instance_norm_gradient(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                           running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool):
    rows, channels = input.size(0), input.size(1)
    places = input.numel() // max(rows * channels, 1)
    result = torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled)
    has_bias = bias is not None

    def backward(grad: Tensor):
        mask = [True, weight is not None, has_bias]
        if use_input_stats:
            unused, mean, inverse = torch.native_group_norm(input, weight, None, rows, channels, places, channels, eps)
            for_input, for_weight, for_bias = torch.native_group_norm_backward(grad, input, mean, inverse, weight, rows, channels, places,
                                                                               channels, mask)
        else:
            for_input, for_weight, for_bias = torch.native_batch_norm_backward(grad, input, weight, running_mean, running_var, None, None,
                                                                               False, eps, mask)
        return for_input, for_weight, for_bias, None, None, None, None, None, None

    return result, backward
