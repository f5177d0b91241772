"""Functions of torch with several forms, and losses and samplers whose words become numbers of operators."""
from __future__ import annotations

import math
from typing import List, Optional, Tuple, Union

from irtool.ops.composed.reductions import legacy_number, reduction_number
from irtool.ops.composed.script_types import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    annotate,
    is_scripting,
    number,
    number_of,
)
from irtool.ops.tensor import Tensor, torch


def max_pool1d_with_indices(input: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None,
                        padding: BroadcastingList1[int] = 0, dilation: BroadcastingList1[int] = 1, ceil_mode: bool = False,
                        return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = annotate(List[int], [])
    return torch.ops.aten.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: BroadcastingList1[int],
                                 return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.ops.aten.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool1d(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tensor:
    return torch.ops.aten.adaptive_max_pool1d(input, output_size)[0]


def max_pool2d_with_indices(input: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None,
                        padding: BroadcastingList2[int] = 0, dilation: BroadcastingList2[int] = 1, ceil_mode: bool = False,
                        return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = annotate(List[int], [])
    return torch.ops.aten.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: BroadcastingList2[int],
                                 return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.ops.aten.adaptive_max_pool2d(input, output_size)


def adaptive_max_pool2d(input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False) -> Tensor:
    return torch.ops.aten.adaptive_max_pool2d(input, output_size)[0]


def max_pool3d_with_indices(input: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None,
                        padding: BroadcastingList3[int] = 0, dilation: BroadcastingList3[int] = 1, ceil_mode: bool = False,
                        return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    if stride is None:
        stride = annotate(List[int], [])
    return torch.ops.aten.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: BroadcastingList3[int],
                                 return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.ops.aten.adaptive_max_pool3d(input, output_size)


def adaptive_max_pool3d(input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False) -> Tensor:
    return torch.ops.aten.adaptive_max_pool3d(input, output_size)[0]


def fractional_sizes(input: Tensor, ratios: BroadcastingList1[float], count: int, name: str) -> List[int]:
    """The sizes of the result of a fractional pool; in Python, a single number stands for all ratios."""
    every = [ratios] * count if isinstance(ratios, float) else ratios
    if len(every) > count:
        raise ValueError("{} requires output_ratio to either be a single Int or tuple of Ints.".format(name))
    return [int(input.size(i - count) * every[i]) for i in range(count)]


def fractional_samples(input: Tensor, count: int) -> Tensor:
    """Where the windows of a fractional pool lie, drawn for each channel of each row of a batch."""
    rows = 1 if input.dim() == count + 1 else input.size(0)
    return torch.rand(rows, input.size(-count - 1), count, dtype=input.dtype, device=input.device)


def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: BroadcastingList2[int],
                                       output_size: Optional[BroadcastingList2[int]] = None,
                                       output_ratio: Optional[BroadcastingList2[float]] = None, return_indices: bool = False,
                                       _random_samples: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    if output_size is None and output_ratio is None:
        raise ValueError("fractional_max_pool2d requires specifying either an output_size or an output_ratio")
    if output_size is None and output_ratio is not None:
        output_size = fractional_sizes(input, output_ratio, 2, "fractional_max_pool2d")
    if _random_samples is None:
        _random_samples = fractional_samples(input, 2)
    assert output_size is not None
    return torch.ops.aten.fractional_max_pool2d(input, kernel_size, output_size, _random_samples)


def fractional_max_pool2d(input: Tensor, kernel_size: BroadcastingList2[int], output_size: Optional[BroadcastingList2[int]] = None,
                          output_ratio: Optional[BroadcastingList2[float]] = None, return_indices: bool = False,
                          _random_samples: Optional[Tensor] = None) -> Tensor:
    return fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)[0]


def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: BroadcastingList3[int],
                                       output_size: Optional[BroadcastingList3[int]] = None,
                                       output_ratio: Optional[BroadcastingList3[float]] = None, return_indices: bool = False,
                                       _random_samples: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    if output_size is None and output_ratio is None:
        raise ValueError("fractional_max_pool3d requires specifying either an output_size or an output_ratio")
    if output_size is None and output_ratio is not None:
        output_size = fractional_sizes(input, output_ratio, 3, "fractional_max_pool3d")
    if _random_samples is None:
        _random_samples = fractional_samples(input, 3)
    assert output_size is not None
    return torch.ops.aten.fractional_max_pool3d(input, kernel_size, output_size, _random_samples)


def fractional_max_pool3d(input: Tensor, kernel_size: BroadcastingList3[int], output_size: Optional[BroadcastingList3[int]] = None,
                          output_ratio: Optional[BroadcastingList3[float]] = None, return_indices: bool = False,
                          _random_samples: Optional[Tensor] = None) -> Tensor:
    return fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)[0]


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    return torch.alpha_dropout_(input, p, training) if inplace else torch.alpha_dropout(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    return torch.feature_alpha_dropout_(input, p, training) if inplace else torch.feature_alpha_dropout(input, p, training)


def rrelu(input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, inplace: bool = False) -> Tensor:
    return torch.rrelu_(input, lower, upper, training) if inplace else torch.rrelu(input, lower, upper, training)


def local_response_norm(input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Tensor:
    if input.dim() < 3:
        raise ValueError("Expected 3D or higher dimensionality input (got {} dimensions)".format(input.dim()))
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    if input.dim() == 3:
        rows = torch.ops.aten.pad(squares.unsqueeze(1), [0, 0, size // 2, (size - 1) // 2])
        mean = torch.ops.aten.avg_pool2d(rows, [size, 1], [1, 1]).squeeze(1)
    else:
        sizes = input.size()
        boxes = torch.ops.aten.pad(squares.view(sizes[0], 1, sizes[1], sizes[2], -1), [0, 0, 0, 0, size // 2, (size - 1) // 2])
        mean = torch.ops.aten.avg_pool3d(boxes, [size, 1, 1], [1, 1, 1]).squeeze(1).view(sizes)
    return input / mean.mul(alpha).add(k).pow(beta)


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Optional[Tensor] = None,
                      size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    if weight is not None:
        if weight.dim() != 1:
            raise ValueError("weight must be one-dimensional")
    return torch.ops.aten.multi_margin_loss(input, target, p, margin, weight, legacy_number(size_average, reduce, reduction))


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                           reduction: str = "mean") -> Tensor:
    return torch.ops.aten.multilabel_margin_loss(input, target, legacy_number(size_average, reduce, reduction))


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Optional[bool] = None,
                     eps: float = 1e-8, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.poisson_nll_loss(input, target, log_input, full, eps, legacy_number(size_average, reduce, reduction))


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Union[Tensor, float], full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        variance = torch.full_like(input, var)
    else:
        variance = var
        if torch.any(variance < 0):
            raise ValueError("var has negative entry/entries")
    if variance.size() != input.size():
        if input.size()[:-1] == variance.size():
            variance = torch.unsqueeze(variance, -1)
        else:
            others = 0
            for extent, own in zip(input.size(), variance.size()):
                if extent != own:
                    others += own
            if input.dim() != variance.dim() or others != 1:
                raise ValueError("var is of incorrect size")
    if reduction != "none" and reduction != "mean" and reduction != "sum":
        raise ValueError(reduction + " is not valid")
    known = variance.detach()
    bounded = known.clone().clamp_(min=eps)
    variance = variance + torch.where(bounded > known, bounded - known, 0.0)        # the gradient ignores the bound
    loss = 0.5 * (torch.log(variance) + (input - target) ** 2 / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    if reduction == "mean":
        return loss.mean()
    elif reduction == "sum":
        return loss.sum()
    else:
        return loss


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
                        swap: bool = False, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                        reduction: str = "mean") -> Tensor:
    if margin <= 0:
        raise ValueError("margin must be greater than 0, got {}".format(margin))
    return torch.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, legacy_number(size_average, reduce, reduction))


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Optional[bool] = None,
                          reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.cosine_embedding_loss(input1, input2, target, margin, legacy_number(size_average, reduce, reduction))


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Tensor:
    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction_number(reduction), zero_infinity)


def embedding_bag(input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None, norm_type: float = 2,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Optional[Tensor] = None, include_last_offset: bool = False,
                  padding_idx: Optional[int] = None) -> Tensor:
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences")
        offsets = torch.arange(0, input.numel(), input.size(1), dtype=torch.int64)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if mode == "sum":
        number = 0
    elif mode == "mean":
        number = 1
    elif mode == "max":
        number = 2
        if scale_grad_by_freq:
            raise ValueError("max mode does not support scaling the gradient by the frequency")
        if sparse:
            raise ValueError("max mode does not support sparse weights")
    else:
        raise ValueError("mode has to be one of sum, mean or max")
    if max_norm is not None and not is_scripting():     # TorchScript's own leaves the rows as they are
        torch.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    assert offsets is not None
    elements, _, _, _ = torch.embedding_bag(weight, input, offsets, scale_grad_by_freq, number, sparse, per_sample_weights,
                                         include_last_offset, padding_idx)
    return elements


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: Optional[bool] = None) -> Tensor:
    if not is_scripting():
        number_of("grid_sample: mode", mode, {"bilinear": 0, "nearest": 1, "bicubic": 2})
        number_of("grid_sample: padding_mode", padding_mode, {"zeros": 0, "border": 1, "reflection": 2})
    if mode == "bilinear":
        way = 0
    elif mode == "nearest":
        way = 1
    elif mode == "bicubic":
        way = 2
    else:
        raise ValueError("grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{}'".format(mode))
    if padding_mode == "zeros":
        border = 0
    elif padding_mode == "border":
        border = 1
    elif padding_mode == "reflection":
        border = 2
    else:
        raise ValueError("grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
                         "but got: '{}'".format(padding_mode))
    if align_corners is None:
        align_corners = False
    return torch.grid_sampler(input, grid, way, border, align_corners)


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    if align_corners is None:
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError("Expected theta to have floating point type, but got {}".format(theta.dtype))
    if min(size) <= 0:
        raise ValueError("Expected non-zero, positive output size. Got {}".format(size))
    return torch.affine_grid_generator(theta, size, align_corners)


def tensordot_of_int(a: Tensor, b: Tensor, dims: int = 2) -> Tensor:
    if dims < 0:
        raise RuntimeError("tensordot expects dims >= 0, but got dims={}".format(dims))
    if dims > min(a.dim(), b.dim()):
        raise RuntimeError("tensordot expects dims < ndim_a or ndim_b, but got dims={}".format(dims))
    first = [i - dims for i in range(dims)]
    second = [i for i in range(dims)]
    return torch.ops.aten.tensordot(a, b, first, second)


def tensordot_of_lists(a: Tensor, b: Tensor, dims: List[List[int]]) -> Tensor:
    return torch.ops.aten.tensordot(a, b, dims[0], dims[1])


def tensordot_of_tuple(a: Tensor, b: Tensor, dims: Tuple[List[int], List[int]]) -> Tensor:
    return torch.ops.aten.tensordot(a, b, dims[0], dims[1])


def tensordot_of_tensor(a: Tensor, b: Tensor, dims: Tensor) -> Tensor:
    if dims.numel() > 1:
        first: List[int] = dims[0].tolist()
        second: List[int] = dims[1].tolist()
        return torch.ops.aten.tensordot(a, b, first, second)
    count = int(dims.item())
    return torch.ops.aten.tensordot(a, b, [i - count for i in range(count)], [i for i in range(count)])


def norm_of_number(input: Tensor, p: Optional[number] = 2, dim: Optional[List[int]] = None, keepdim: bool = False,
                   dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = [i for i in range(input.dim())]
    if dtype is None:
        result = torch.ops.aten.norm(input, p, dim, keepdim=keepdim)
    else:
        result = torch.ops.aten.norm(input, p, dim, keepdim=keepdim, dtype=dtype)
    return result


def norm_over_one(input: Tensor, p: Optional[number], dim: int, keepdim: bool = False, dtype: Optional[int] = None) -> Tensor:
    return norm_of_number(input, p, [dim], keepdim, dtype)


def norm_of_word(input: Tensor, p: str = "fro", dim: Optional[List[int]] = None, keepdim: bool = False,
                 dtype: Optional[int] = None) -> Tensor:
    if p == "fro":
        return norm_of_number(input, 2, dim, keepdim, dtype)
    if p != "nuc":
        raise RuntimeError("only valid string values are 'fro' and 'nuc', found {}".format(p))
    if dtype is not None:
        raise ValueError("dtype argument is not supported in frobenius norm")
    if dim is None:
        dim = [i for i in range(input.dim())]
    return torch.nuclear_norm(input, dim, keepdim=keepdim)


def norm_of_word_over_one(input: Tensor, p: str, dim: int, keepdim: bool = False, dtype: Optional[int] = None) -> Tensor:
    return norm_of_word(input, p, [dim], keepdim, dtype)


def norm_over_one_by_name(input: Tensor, keepdim: bool = False, dtype: Optional[int] = None, *, dim: int) -> Tensor:
    return norm_of_word(input, "fro", [dim], keepdim, dtype)


def stft(input: Tensor, n_fft: int, hop_length: Optional[int] = None, win_length: Optional[int] = None, window: Optional[Tensor] = None,
         center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: Optional[bool] = None,
         return_complex: Optional[bool] = None, align_to_window: Optional[bool] = None) -> Tensor:
    return torch.ops.aten.stft(input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex,
                               align_to_window)


def cdist_of_mode(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    if compute_mode == "use_mm_for_euclid_dist_if_necessary":
        mode: Optional[int] = None
    elif compute_mode == "use_mm_for_euclid_dist":
        mode = 1
    elif compute_mode == "donot_use_mm_for_euclid_dist":
        mode = 2
    else:
        raise ValueError("{} is not a valid value for compute_mode".format(compute_mode))
    return torch.ops.aten.cdist(x1, x2, p, mode)


def unique_with_all(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
                    dim: Optional[int] = None) -> Tuple[Tensor, Tensor, Tensor]:
    if dim is not None:
        elements, inverse, counts = torch.unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        elements, inverse, counts = torch._unique2(input, sorted, return_inverse, return_counts)
    return elements, inverse, counts


def unique_alone(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
                 dim: Optional[int] = None) -> Tensor:
    return unique_with_all(input, sorted, return_inverse, return_counts, dim)[0]


def unique_with_inverse(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
                        dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    elements, inverse, _ = unique_with_all(input, sorted, return_inverse, return_counts, dim)
    return elements, inverse


def unique_with_counts(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
                       dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    elements, _, counts = unique_with_all(input, sorted, return_inverse, return_counts, dim)
    return elements, counts


def consecutive_with_all(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                         dim: Optional[int] = None) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.ops.aten.unique_consecutive(input, return_inverse, return_counts, dim)


def consecutive_alone(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None) -> Tensor:
    return consecutive_with_all(input, return_inverse, return_counts, dim)[0]


def consecutive_with_inverse(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                             dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    elements, inverse, _ = consecutive_with_all(input, return_inverse, return_counts, dim)
    return elements, inverse


def consecutive_with_counts(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                            dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    elements, _, counts = consecutive_with_all(input, return_inverse, return_counts, dim)
    return elements, counts


def lu_with_infos(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.ops.aten._lu_with_info(A, pivot, not get_infos)


def lu_alone(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Tuple[Tensor, Tensor]:
    factors, pivots, _ = lu_with_infos(A, pivot, get_infos)
    return factors, pivots
