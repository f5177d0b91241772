"""Batch, layer, group, instance and rms normalization, and their gradients.

float16 is computed in float32. Training batch normalization updates the running statistics in place, as torch does, although torch's
schemas do not say so.
"""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import astype, is_contiguous, mean_over
from irtool.ops.checks import BLOCK, channels_last, only, refuse_nothing, row_blocks, widen
from irtool.ops.op import OpTable
from irtool.ops.promotion import result_type

table = OpTable("normalization")


def _channels(values, rank):
    """A vector over dimension 1 of an array of `rank` dimensions."""
    return values.reshape((1, -1) + (1,) * (rank - 2))


def _moments(xp, x, axes):
    """Mean and biased variance over `axes`, dimensions kept."""
    mean = mean_over(x, axes)
    centred = x - mean
    return mean, mean_over(xp.square(centred), axes)


def _update(running, value, momentum):
    """running = (1 - momentum) * running + momentum * value, in place."""
    if running is not None:
        running[...] = (1 - momentum) * running + momentum * value


def _check_dtypes(x, *parameters):
    """Raises torch's error unless parameters have the dtype of x, or are all float32 for an x of float16."""
    dtypes = [each.dtype for each in parameters if each is not None]
    if any(each != x.dtype for each in dtypes) and not (x.dtype == "float16" and all(each == "float32" for each in dtypes)):
        raise RunError("mixed dtype (CPU): all inputs must share same datatype.", code="E0409")


def _check_channels(count, repeated=(), **vectors):
    """Raises torch's error unless tensors have an element per channel; `repeated`: names of those that torch repeats for each sample."""
    for name, values in vectors.items():
        if values is not None and values.size != count:
            raise RunError(f"{name} should contain {count} elements not {values.size}")
        if name in repeated and values is not None and values.ndim > 1:
            raise RunError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")


def _check_statistics(running_mean, running_var):
    """Raises torch's error where one of the two running statistics is given without the other."""
    if (running_mean is None) != (running_var is None):
        raise RunError("running_mean and running_var must either both be None or neither be None")


def _nothing_normalized(xp, x, weight, bias):
    """Normalization of a tensor without elements, as torch has it: times the first weight, plus the first bias, without further checks."""
    result = x.copy()
    for each, join in ((weight, xp.multiply), (bias, xp.add)):
        if each is None:
            continue
        if not each.ndim:
            raise RunError("select() cannot be applied to a 0-dim tensor.")
        if not each.shape[0]:
            refuse_nothing()
        dtype = result_type([result, each[0]])
        result = join(astype(result, dtype), astype(each[0], dtype))
    return result


def batch_normalized(xp, x, weight, bias, running_mean, running_var, training, momentum, eps):
    """(normalized x, mean, 1 / standard deviation) per channel; outside training by the running statistics, the rest None."""
    if x.ndim < 2 and not (x.ndim == 1 and not training):
        raise RunError(f"batch_norm expected input with at least 2 dimensions, got {x.ndim}")
    only("batch_norm", "f", x)
    _check_dtypes(x, weight, bias, running_mean, running_var)
    count = x.shape[1]
    _check_channels(count, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    for each in (running_mean, running_var):
        if each is not None and each.ndim != 1:
            raise RunError(f"TensorAccessor expected 1 dims but tensor has {each.ndim}")
    wide = widen(xp, x)
    if training:
        axes = (0, *range(2, x.ndim))
        mean, variance = (part.reshape(-1) for part in _moments(xp, wide, axes))
        number = x.size // max(count, 1)
        if x.size:
            _update(running_mean, mean, momentum)
            _update(running_var, variance * (number / (number - 1) if number > 1 else math.nan), momentum)
    elif running_mean is None or running_var is None:
        raise RunError("Expected running_mean and running_var to be defined when training=False")
    else:
        mean, variance = running_mean.astype(wide.dtype, copy=False), running_var.astype(wide.dtype, copy=False)
    inverse = 1 / xp.sqrt(variance + variance.dtype.type(eps))
    scale = inverse if weight is None else inverse * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    result = wide * _channels(scale.astype(wide.dtype, copy=False), x.ndim)
    result += _channels(shift, x.ndim)
    return result.astype(x.dtype, copy=False), (mean if training else None), (inverse if training else None)


def _statistics(xp, x, mean, inverse):
    """Saved statistics as torch returns them: empty outside training."""
    dtype = xp.float32 if x.dtype == xp.float16 else x.dtype
    return (xp.empty(0, dtype), xp.empty(0, dtype)) if mean is None else (mean, inverse)


def _narrowed(xp, statistics, x, *parameters):
    """The dtype of statistics: half precision if all operands have it; single precision if weights, or running statistics, have that."""
    if x.dtype != xp.float16 or any(each is not None and each.dtype != xp.float16 for each in parameters):
        return statistics
    return [each.astype(xp.float16, copy=False) for each in statistics]


_STATS = "Tensor? running_mean, Tensor? running_var"


@table.op(f"aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, {_STATS}, bool training, float momentum, float eps, "
          "bool cudnn_enabled) -> Tensor")
def batch_norm(xp, input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """Each channel to mean 0 and variance 1 over the batch (or by running statistics), times weight, plus bias."""
    _check_statistics(running_mean, running_var)
    if not input.size:
        return _nothing_normalized(xp, input, weight, bias)
    return batch_normalized(xp, input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def _native_batch_norm(xp, input, weight, bias, running_mean, running_var, training, momentum, eps):
    if not input.size:
        if training:
            raise RunError(f"input tensor must have at least one element, but got input_sizes = {list(input.shape)}")
        return input.copy(), xp.empty(0, input.dtype), xp.empty(0, input.dtype)
    result, mean, inverse = batch_normalized(xp, input, weight, bias, running_mean, running_var, training, momentum, eps)
    return (result, *_narrowed(xp, _statistics(xp, input, mean, inverse), input, weight, bias, running_mean, running_var))


table.define((f"aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, {_STATS}, bool training, float momentum, float eps) -> "
              "(Tensor, Tensor, Tensor)",
              "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, "
              "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)"), _native_batch_norm,
             doc="batch_norm, with the mean and inverse standard deviation it used in training.")


@table.op("aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) "
          "-> (Tensor, Tensor, Tensor)")
def batch_norm_without_stats(xp, input, weight, bias, training, momentum, eps):
    """batch_norm without running statistics."""
    return _native_batch_norm(xp, input, weight, bias, None, None, training, momentum, eps)


@table.op("aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, "
          "float momentum, float eps) -> (Tensor, Tensor, Tensor)")
def batch_norm_inference(xp, input, weight, bias, running_mean, running_var, momentum, eps):
    """batch_norm by running statistics."""
    return _native_batch_norm(xp, input, weight, bias, running_mean, running_var, False, momentum, eps)


@table.op("aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, "
          "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)")
def batch_norm_functional(xp, input, weight, bias, running_mean, running_var, training, momentum, eps):
    """batch_norm that returns new running statistics instead of writing them."""
    mean, variance = running_mean.copy(), running_var.copy()
    return (*_native_batch_norm(xp, input, weight, bias, mean, variance, training, momentum, eps), mean, variance)


def _with_update(xp, input, weight, bias, running_mean, running_var, momentum, eps):
    return (*_native_batch_norm(xp, input, weight, bias, running_mean, running_var, True, momentum, eps), xp.empty(0, xp.uint8))


table.define("aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, "
             "float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)", _with_update, doc="batch_norm in training.")


@table.op("aten::_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, "
          "float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)")
def batch_norm_with_update_functional(xp, input, weight, bias, running_mean, running_var, momentum, eps):
    """batch_norm in training that returns new running statistics."""
    mean, variance = running_mean.copy(), running_var.copy()
    return (*_with_update(xp, input, weight, bias, mean, variance, momentum, eps), mean, variance)


@table.op(f"aten::_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, {_STATS}, float momentum, float eps) -> "
          "(Tensor, Tensor, Tensor, Tensor)")
def batch_norm_no_update(xp, input, weight, bias, running_mean, running_var, momentum, eps):
    """batch_norm by running statistics, or by the batch's without any."""
    _check_statistics(running_mean, running_var)
    training = running_mean is None
    return (*_native_batch_norm(xp, input, weight, bias, running_mean, running_var, training, momentum, eps), xp.empty(0, xp.uint8))


@table.op(f"aten::_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, {_STATS}, bool training, float momentum, float eps, "
          "bool cudnn_enabled) -> (Tensor, Tensor, Tensor, Tensor, int)")
def batch_norm_impl_index(xp, input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """batch_norm with the values that its gradient needs, and the number of the implementation (0: native)."""
    _check_statistics(running_mean, running_var)
    if not input.size:      # as batch_norm, which takes this too
        nothing = xp.zeros(input.shape[1:2], input.dtype)
        return _nothing_normalized(xp, input, weight, bias), nothing, nothing.copy(), xp.empty(0, xp.uint8), 0
    return (*_native_batch_norm(xp, input, weight, bias, running_mean, running_var, training, momentum, eps), xp.empty(0, xp.uint8), 0)


def _batch_norm_backward(xp, grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask):
    if not input.size:
        each = xp.zeros(input.shape[1:2], grad_out.dtype)
        return tuple([part if wanted else None for part, wanted in zip((xp.zeros_like(input), each, each), output_mask, strict=True)])
    axes = (0, *range(2, input.ndim))
    rank, count = input.ndim, input.size // max(input.shape[1], 1)
    mean = save_mean if train else running_mean
    inverse = save_invstd if train else 1 / xp.sqrt(running_var + eps)
    normalized = (input - _channels(mean, rank)) * _channels(inverse, rank)
    for_bias = grad_out.sum(axes, dtype=grad_out.dtype)
    for_weight = (grad_out * normalized).sum(axes, dtype=grad_out.dtype)
    scale = _channels(inverse if weight is None else inverse * weight, rank)
    if train:
        for_input = scale * (grad_out - _channels(for_bias, rank) / count - normalized * _channels(for_weight, rank) / count)
    else:
        for_input = grad_out * scale
    parts = (for_input.astype(input.dtype, copy=False), for_weight, for_bias)
    return tuple([part if wanted else None for part, wanted in zip(parts, output_mask, strict=True)])


table.define("aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, "
             "Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
             _batch_norm_backward, doc="Gradients of batch_norm for input, weight and bias.")


@table.op("aten::batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var, "
          "Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)")
def batch_norm_backward(xp, grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask, reserve):
    """Gradients of batch_norm for input, weight and bias; `reserve`, of other backends, is not read."""
    return _batch_norm_backward(xp, grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask)


@table.op("aten::_batch_norm_impl_index_backward(int impl_index, Tensor input, Tensor grad_output, Tensor? weight, Tensor? running_mean, "
          "Tensor? running_var, Tensor? save_mean, Tensor? save_var_transform, bool train, float eps, bool[3] output_mask, "
          "Tensor reservedSpace) -> (Tensor, Tensor, Tensor)")
def batch_norm_impl_index_backward(xp, impl_index, input, grad_output, weight, running_mean, running_var, save_mean, save_var_transform,
                                   train, eps, output_mask, reserved):
    """Gradients of _batch_norm_impl_index for input, weight and bias."""
    return _batch_norm_backward(xp, grad_output, input, weight, running_mean, running_var, save_mean, save_var_transform, train, eps,
                                output_mask)


# ---- over the last dimensions

def layer_normalized(xp, x, normalized_shape, weight, bias, eps):
    """(normalized x, mean, 1 / standard deviation) over the last dimensions, which must have `normalized_shape`."""
    inner = len(normalized_shape)
    if not inner:
        raise RunError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
                       "normalized_shape = []")
    for name, values in (("weight", weight), ("bias", bias)):
        if values is not None and values.shape != tuple(normalized_shape):
            raise RunError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(values.shape)} and "
                           f"normalized_shape = {list(normalized_shape)}")
    if x.shape[-inner:] != tuple(normalized_shape):
        raise RunError(f"Given normalized_shape={list(normalized_shape)}, expected input with shape [*, "
                       f"{', '.join(str(n) for n in normalized_shape)}], but got input of size{list(x.shape)}")
    only("LayerNormKernelImpl", "f", x)
    _check_dtypes(x, weight, bias)
    wide = widen(xp, x)
    axes = tuple(range(x.ndim - inner, x.ndim))
    mean = mean_over(wide, axes)
    result = xp.subtract(wide, mean, order="C")
    if result.size > BLOCK:
        parts = [xp.square(part).mean(1, dtype=wide.dtype) for part in row_blocks(result, math.prod(normalized_shape))]
        variance = xp.concatenate(parts).reshape(mean.shape)
    else:
        variance = mean_over(xp.square(result), axes)
    inverse = 1 / xp.sqrt(variance + wide.dtype.type(eps))
    result *= inverse
    if weight is not None:
        result *= weight
    if bias is not None:
        result += bias
    saved = x.dtype if weight is None else weight.dtype
    return result.astype(x.dtype, copy=False), mean.astype(saved, copy=False), inverse.astype(saved, copy=False)


@table.op("aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps="
          "1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor")
def layer_norm(xp, input, normalized_shape, weight, bias, eps, cudnn_enable):
    """The last dimensions to mean 0 and variance 1, times weight, plus bias."""
    return layer_normalized(xp, input, normalized_shape, weight, bias, eps)[0]


@table.op("aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
          "(Tensor, Tensor, Tensor)")
def native_layer_norm(xp, input, normalized_shape, weight, bias, eps):
    """layer_norm with the mean and inverse standard deviation."""
    result, *statistics = layer_normalized(xp, input, normalized_shape, weight, bias, eps)
    return (result, *_narrowed(xp, statistics, input, weight, bias))


@table.op("aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, "
          "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
def native_layer_norm_backward(xp, grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    """Gradients of layer_norm for input, weight and bias."""
    inner = input.ndim - len(normalized_shape)
    outer, last = tuple(range(inner)), tuple(range(inner, input.ndim))
    shape = input.shape[:inner] + (1,) * len(normalized_shape)
    normalized = (input - mean.reshape(shape)) * rstd.reshape(shape)
    scaled = grad_out if weight is None else grad_out * weight
    for_input = rstd.reshape(shape) * (scaled - mean_over(scaled, last)
                                      - normalized * mean_over(scaled * normalized, last))
    parts = (for_input, (grad_out * normalized).sum(outer, dtype=grad_out.dtype), grad_out.sum(outer, dtype=grad_out.dtype))
    known = (True, weight is not None, bias is not None)
    return tuple([part if wanted and has_any else None for part, wanted, has_any in zip(parts, output_mask, known, strict=True)])


@table.op("aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor")
def rms_norm(xp, input, normalized_shape, weight, eps):
    """The last dimensions divided by their root mean square, times weight."""
    return _rms(xp, input, normalized_shape, weight, eps)[0]


def _rms(xp, x, normalized_shape, weight, eps):
    inner = len(normalized_shape)
    if not inner:
        raise RunError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
                       "normalized_shape = []")
    if weight is not None and weight.shape != tuple(normalized_shape):
        raise RunError(f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight.shape)} and "
                       f"normalized_shape = {list(normalized_shape)}")
    if x.shape[-inner:] != tuple(normalized_shape):
        raise RunError(f"Given normalized_shape={list(normalized_shape)}, expected input with shape [*, "
                       f"{', '.join(str(n) for n in normalized_shape)}], but got input of size{list(x.shape)}")
    wide = widen(xp, x)
    axes = tuple(range(x.ndim - inner, x.ndim))
    mean = mean_over(xp.square(wide), axes)      # of complex numbers too, as torch has it
    inverse = 1 / xp.sqrt(mean + mean.dtype.type(xp.finfo(mean.dtype).eps if eps is None else eps))
    result = wide * inverse
    if weight is not None:
        result = result * weight
    return result.astype(x.dtype, copy=False), inverse


@table.op("aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)")
def fused_rms_norm(xp, input, normalized_shape, weight, eps):
    """rms_norm with the inverse root mean square."""
    return _rms(xp, input, normalized_shape, weight, eps)


# ---- over groups of channels, and per instance

def group_normalized(xp, x, weight, bias, groups, eps):
    """(normalized x, mean, 1 / standard deviation) of (n, channels, ...) over each group of channels; statistics (n, groups)."""
    if x.ndim < 2:
        raise RunError(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    count, channels = x.shape[:2]
    if groups <= 0 or channels % groups:
        raise RunError("Expected number of channels in input to be divisible by num_groups, but got input of shape "
                       f"{list(x.shape)} and num_groups={groups}")
    for name, values in (("weight", weight), ("bias", bias)):
        if values is not None and values.shape != (channels,):
            raise RunError(f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                           f"{list(values.shape)} and input of shape {list(x.shape)}")
    only("GroupNormKernelImpl", "f", x)
    _check_dtypes(x, weight, bias)
    wide = widen(xp, x).reshape(count, groups, math.prod(x.shape[1:]) // groups)
    mean, variance = _moments(xp, wide, 2)
    inverse = 1 / xp.sqrt(variance + wide.dtype.type(eps))
    result = ((wide - mean) * inverse).reshape(x.shape)
    if weight is not None:
        result *= _channels(weight, x.ndim)
    if bias is not None:
        result += _channels(bias, x.ndim)
    return result.astype(x.dtype, copy=False), mean.reshape(count, groups), inverse.reshape(count, groups)


@table.op("aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, "
          "bool cudnn_enabled=True) -> Tensor")
def group_norm(xp, input, num_groups, weight, bias, eps, cudnn_enabled):
    """Each group of channels to mean 0 and variance 1, times weight, plus bias."""
    return group_normalized(xp, input, weight, bias, num_groups, eps)[0]


@table.op("aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> "
          "(Tensor, Tensor, Tensor)")
def native_group_norm(xp, input, weight, bias, N, C, HxW, group, eps):
    """group_norm with the mean and inverse standard deviation, of a tensor without gaps, row-major or channels-last."""
    if not is_contiguous(input.transpose(list(channels_last(input)))):
        raise RunError("Expected X.is_contiguous(memory_format) to be true, but got false.")
    if input.size != N * C * HxW:
        raise RunError("Expected X.numel() == N * C * HxW to be true, but got false.")
    result, *statistics = group_normalized(xp, input, weight, bias, group, eps)
    return (result, *_narrowed(xp, statistics, input, weight, bias))


@table.op("aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, "
          "SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
def native_group_norm_backward(xp, grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    """Gradients of group_norm for input, weight and bias."""
    grouped = (N, group, C * HxW // group)
    normalized = ((input.reshape(grouped) - mean.reshape(N, group, 1)) * rstd.reshape(N, group, 1)).reshape(N, C, HxW)
    grad = grad_out.reshape(N, C, HxW)
    scaled = (grad if weight is None else grad * weight[None, :, None]).reshape(grouped)
    flat = normalized.reshape(grouped)
    for_input = rstd.reshape(N, group, 1) * (scaled - mean_over(scaled, 2) - flat * mean_over(scaled * flat, 2))
    parts = (for_input.reshape(input.shape), (grad * normalized).sum((0, 2), dtype=grad.dtype), grad.sum((0, 2), dtype=grad.dtype))
    return tuple([part if wanted else None for part, wanted in zip(parts, output_mask, strict=True)])


@table.op(f"aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, {_STATS}, bool use_input_stats, float momentum, float eps, "
          "bool cudnn_enabled) -> Tensor")
def instance_norm(xp, input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """Each channel of each sample to mean 0 and variance 1 (or by running statistics), times weight, plus bias."""
    if any(each is not None and each.ndim > 1 for each in (running_mean, running_var, weight, bias)):
        raise RunError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RunError("Expected running_mean and running_var to be defined when use_input_stats is false")
        if not input.shape[0]:
            refuse_nothing()
        return batch_norm.kernel(xp, input, weight, bias, running_mean, running_var, False, momentum, eps, False)
    count, channels = input.shape[:2]
    _check_channels(channels, ("weight", "bias", "mean", "var"), weight=weight, bias=bias, mean=running_mean, var=running_var)
    if not count * channels and (weight is not None or bias is not None):
        refuse_nothing()
    result, mean, inverse = group_normalized(xp, input, weight, bias, channels, eps) if channels else (input.copy(), None, None)
    if running_mean is not None or running_var is not None:
        wide, number = widen(xp, input), input.size // max(count * channels, 1)
        _, variance = _moments(xp, wide, tuple(range(2, input.ndim)))
        _update(running_mean, mean.mean(0), momentum)
        _update(running_var, (variance.reshape(count, channels) * (number / (number - 1) if number > 1 else math.nan)).mean(0), momentum)
    return result


# ---- dtypes that torch serves

table.takes("hfc", "rms_norm _fused_rms_norm")
table.takes("hf", "native_batch_norm_backward native_layer_norm_backward native_group_norm_backward")
table.laid_out("C", "rms_norm instance_norm")
table.laid_out("M", "batch_norm group_norm")
table.laid_out("M--", "native_group_norm native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training "
               "native_batch_norm_backward batch_norm_backward")
table.laid_out("-C-", "native_layer_norm")
table.laid_out("CC", "_fused_rms_norm")
table.laid_out("C--", "native_layer_norm_backward _batch_norm_impl_index_backward")
table.laid_out("M---", "_batch_norm_with_update _batch_norm_no_update")
table.laid_out("M----", "_native_batch_norm_legit_functional _batch_norm_impl_index")
table.laid_out("M-----", "_batch_norm_with_update_functional")
