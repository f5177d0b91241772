"""torch.nn.functional: activations, normalization, pools and losses."""
from __future__ import annotations

from typing import List, Optional

from irtool.ops.composed.reductions import legacy_number, legacy_reduction, reduction_number
from irtool.ops.composed.script_types import BroadcastingList1, BroadcastingList2, BroadcastingList3, annotate, is_scripting
from irtool.ops.tensor import Tensor, torch


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.relu_(input) if inplace else torch.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.relu6_(input) if inplace else torch.relu6(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.elu_(input, alpha) if inplace else torch.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.selu_(input) if inplace else torch.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.celu_(input, alpha) if inplace else torch.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    return torch.leaky_relu_(input, negative_slope) if inplace else torch.leaky_relu(input, negative_slope)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return torch.hardtanh_(input, min_val, max_val) if inplace else torch.hardtanh(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.hardsigmoid_(input) if inplace else torch.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.hardswish_(input) if inplace else torch.hardswish(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.silu_(input) if inplace else torch.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.mish_(input) if inplace else torch.mish(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    return torch.threshold_(input, threshold, value) if inplace else torch.threshold(input, threshold, value)


def softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    return input - input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    return input.tanh()


def glu(input: Tensor, dim: int = -1) -> Tensor:
    return torch.glu(input, dim)


def softmax_dimension(rank: int) -> int:
    return 0 if rank == 0 or rank == 1 or rank == 3 else 1


def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = softmax_dimension(input.dim())
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = softmax_dimension(input.dim())
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = softmax_dimension(input.dim())
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError("dropout probability has to be between 0 and 1, but got {}".format(p))
    return torch.dropout_(input, p, training) if inplace else torch.dropout(input, p, training)


def linear(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    return torch.ops.aten.linear(input, weight, bias)


def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               eps: float = 1e-5) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps, True)


def check_values_per_channel(size: List[int]) -> None:
    values = size[0]
    for extent in size[2:]:
        values *= extent
    if values == 1:
        raise ValueError("Expected more than 1 value per channel when training, got input size {}".format(size))


def check_spatial_elements(size: List[int]) -> None:
    elements = 1
    for extent in size[2:]:
        elements *= extent
    if elements == 1:
        raise ValueError("Expected more than 1 spatial element when training, got input size {}".format(size))


def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    if input.dim() < 2:
        raise RuntimeError("Expected at least 2 dimensions for input tensor but received {}".format(input.dim()))
    check_values_per_channel([input.size(0) * input.size(1) // num_groups, num_groups] + input.size()[2:])
    return torch.group_norm(input, num_groups, weight, bias, eps, True)


def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], weight: Optional[Tensor] = None,
               bias: Optional[Tensor] = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    if training:
        check_values_per_channel(input.size())
        if eps <= 0.0:
            raise ValueError("batch_norm eps must be positive during training, but got {}".format(eps))
    elif eps < 0.0:
        raise ValueError("batch_norm eps must be non-negative, but got {}".format(eps))
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def instance_norm(input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None,
                  weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    if use_input_stats:
        check_spatial_elements(input.size())
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    denominator = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denominator


def embedding(input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    if padding_idx is not None:
        if padding_idx > 0:
            assert padding_idx < weight.size(0), "Padding_idx must be within num_embeddings"
        elif padding_idx < 0:
            assert padding_idx >= -weight.size(0), "Padding_idx must be within num_embeddings"
            padding_idx = weight.size(0) + padding_idx
    else:
        padding_idx = -1
    if max_norm is not None and not is_scripting():     # TorchScript's own leaves the rows as they are
        torch.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return torch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def max_pool1d(input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None,
               padding: BroadcastingList1[int] = 0, dilation: BroadcastingList1[int] = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Tensor:
    if stride is None:
        stride = annotate(List[int], [])
    return torch.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None,
               padding: BroadcastingList2[int] = 0, dilation: BroadcastingList2[int] = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Tensor:
    if stride is None:
        stride = annotate(List[int], [])
    return torch.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None,
               padding: BroadcastingList3[int] = 0, dilation: BroadcastingList3[int] = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Tensor:
    if stride is None:
        stride = annotate(List[int], [])
    return torch.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


def adaptive_avg_pool1d(input: Tensor, output_size: BroadcastingList1[int]) -> Tensor:
    return torch.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: BroadcastingList2[int]) -> Tensor:
    return torch.ops.aten.adaptive_avg_pool2d(input, output_size)


def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return torch.ops.aten.pad(input, pad, mode, value)


def unfold(input: Tensor, kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = 1, padding: BroadcastingList2[int] = 0,
           stride: BroadcastingList2[int] = 1) -> Tensor:
    return torch.im2col(input, kernel_size, dilation, padding, stride)


def fold(input: Tensor, output_size: BroadcastingList2[int], kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = 1,
         padding: BroadcastingList2[int] = 0, stride: BroadcastingList2[int] = 1) -> Tensor:
    return torch.col2im(input, output_size, kernel_size, dilation, padding, stride)


def weighted_loss(losses: Tensor, input: Tensor, weight: Tensor, reduction: str, divides_by_weight: bool) -> Tensor:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    weighted = losses * weight
    if reduction == "none":
        return weighted
    elif reduction == "sum":
        return torch.sum(weighted)
    elif reduction == "mean" and divides_by_weight:
        return torch.sum(weighted) / torch.sum(weight)
    elif reduction == "mean":
        return weighted.mean()
    else:
        raise ValueError("Invalid reduction mode: {}. Expected one of 'none', 'mean', 'sum'.".format(reduction))


def mse_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
             reduction: str = "mean", weight: Optional[Tensor] = None) -> Tensor:
    word = legacy_reduction(size_average, reduce, reduction)
    expanded_input, expanded_target = torch.broadcast_tensors([input, target])
    if weight is not None:
        return weighted_loss(torch.pow(expanded_input - expanded_target, 2), input, weight, word, True)
    else:
        return torch.ops.aten.mse_loss(expanded_input, expanded_target, reduction_number(word))


def l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
            reduction: str = "mean", weight: Optional[Tensor] = None) -> Tensor:
    word = legacy_reduction(size_average, reduce, reduction)
    expanded_input, expanded_target = torch.broadcast_tensors([input, target])
    if weight is not None:
        return weighted_loss(torch.abs(expanded_input - expanded_target), input, weight, word, True)
    else:
        return torch.ops.aten.l1_loss(expanded_input, expanded_target, reduction_number(word))


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                   reduction: str = "mean", beta: float = 1.0) -> Tensor:
    expanded_input, expanded_target = torch.broadcast_tensors([input, target])
    if beta == 0.0:
        result = torch.ops.aten.l1_loss(expanded_input, expanded_target, legacy_number(size_average, reduce, reduction))
    else:
        result = torch.ops.aten.smooth_l1_loss(expanded_input, expanded_target, legacy_number(size_average, reduce, reduction), beta)
    return result


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Optional[Tensor] = None) -> Tensor:
    expanded_input, expanded_target = torch.broadcast_tensors([input, target])
    if weight is not None:
        return weighted_loss(torch.ops.aten.huber_loss(expanded_input, expanded_target, 0, delta), input, weight, reduction, False)
    else:
        return torch.ops.aten.huber_loss(expanded_input, expanded_target, reduction_number(reduction), delta)


def cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
                  ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    return torch.ops.aten.cross_entropy_loss(input, target, weight, legacy_number(size_average, reduce, reduction), ignore_index,
                                             label_smoothing)


def nll_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
             ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.ops.aten.nll_loss_nd(input, target, weight, legacy_number(size_average, reduce, reduction), ignore_index)


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
                         reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.ops.aten.binary_cross_entropy(input, target, weight, legacy_number(size_average, reduce, reduction))


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                                     size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
                                     pos_weight: Optional[Tensor] = None) -> Tensor:
    if target.size() != input.size():
        raise ValueError("Target size ({}) must be the same as input size ({})".format(target.size(), input.size()))
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, legacy_number(size_average, reduce, reduction))


def kl_div(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:
    number = 2 if reduction == "batchmean" else legacy_number(size_average, reduce, reduction)
    result = torch.kl_div(input, target, number, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        result = result / input.size(0)
    return result


def soft_margin_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                     reduction: str = "mean") -> Tensor:
    return torch.ops.aten.soft_margin_loss(input, target, legacy_number(size_average, reduce, reduction))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Optional[bool] = None,
                        reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: "
                           "input1: {}, input2: {}, target: {} ".format(input1.size(), input2.size(), target.size()))
    return torch.margin_ranking_loss(input1, input2, target, margin, legacy_number(size_average, reduce, reduction))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: Optional[bool] = None,
                         reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.hinge_embedding_loss(input, target, margin, legacy_number(size_average, reduce, reduction))
