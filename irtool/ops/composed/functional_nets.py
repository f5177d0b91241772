"""More of torch.nn.functional: attention, pools and their inverses, dropout of channels, resizing, losses."""
from __future__ import annotations

import math
from typing import List, Optional, Tuple, Union

from irtool.ops.composed.functional import max_pool1d, max_pool2d, max_pool3d
from irtool.ops.composed.reductions import legacy_reduction
from irtool.ops.composed.script_types import BroadcastingList1, BroadcastingList2, BroadcastingList3, annotate
from irtool.ops.tensor import Tensor, torch


def sizes_of(sizes: BroadcastingList1[int], count: int) -> List[int]:
    """One number per dimension; in Python, a single number stands for all."""
    return [sizes] * count if isinstance(sizes, int) else sizes


def pooled_power(total: Tensor, power: float, count: int) -> Tensor:
    return (torch.sign(total) * torch.relu(torch.abs(total))).mul(count).pow(1.0 / power)


def power_of(norm_type: Union[int, float]) -> float:
    return float(norm_type) if isinstance(norm_type, int) else norm_type


def lp_pool1d(input: Tensor, norm_type: Union[int, float], kernel_size: int, stride: Optional[BroadcastingList1[int]] = None,
              ceil_mode: bool = False) -> Tensor:
    power = power_of(norm_type)
    if power == float("inf"):
        return max_pool1d(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if power == -float("inf"):
        return -max_pool1d(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    step = sizes_of(stride, 1) if stride is not None else [kernel_size]
    total = torch.avg_pool1d(input.pow(power), [kernel_size], step, [0], ceil_mode)
    return pooled_power(total, power, kernel_size)


def lp_pool2d(input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList2[int],
              stride: Optional[BroadcastingList2[int]] = None, ceil_mode: bool = False) -> Tensor:
    power = power_of(norm_type)
    if power == float("inf"):
        return max_pool2d(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if power == -float("inf"):
        return -max_pool2d(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    sizes = sizes_of(kernel_size, 2)
    step = sizes_of(stride, 2) if stride is not None else sizes
    total = torch.ops.aten.avg_pool2d(input.pow(power), sizes, step, [0, 0], ceil_mode)
    return pooled_power(total, power, sizes[0] * sizes[1])


def lp_pool3d(input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList3[int],
              stride: Optional[BroadcastingList3[int]] = None, ceil_mode: bool = False) -> Tensor:
    power = power_of(norm_type)
    if power == float("inf"):
        return max_pool3d(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if power == -float("inf"):
        return -max_pool3d(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    sizes = sizes_of(kernel_size, 3)
    step = sizes_of(stride, 3) if stride is not None else sizes
    total = torch.ops.aten.avg_pool3d(input.pow(power), sizes, step, [0, 0, 0], ceil_mode)
    return pooled_power(total, power, sizes[0] * sizes[1] * sizes[2])


def unpooled_size(input: Tensor, kernel_size: List[int], stride: List[int], padding: List[int],
                  output_size: Optional[List[int]]) -> List[int]:
    count = len(kernel_size)
    usual = annotate(List[int], [])
    for d in range(count):
        usual.append((input.size(d - count) - 1) * stride[d] + kernel_size[d] - 2 * padding[d])
    if output_size is None:
        sizes = usual
    else:
        sizes = output_size
        if len(sizes) == count + 2:
            sizes = sizes[2:]
        if len(sizes) != count:
            raise ValueError("output_size should be a sequence containing {} or {} elements, but it has a length of '{}'".format(
                count, count + 2, len(sizes)))
        for d in range(count):
            least, most = usual[d] - stride[d], usual[d] + stride[d]
            if sizes[d] <= least or sizes[d] >= most:
                raise ValueError('invalid output_size "{}" (dim {} must be between {} and {})'.format(sizes, d, least, most))
    for d in range(count):
        if sizes[d] < 0:
            raise ValueError("max_unpooling: output_size must contain non-negative spatial dimensions, but got output_size[{}]={}".format(
                d, sizes[d]))
    return sizes


def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None,
                 padding: BroadcastingList1[int] = 0, output_size: Optional[BroadcastingList1[int]] = None) -> Tensor:
    kernel = sizes_of(kernel_size, 1)
    step = sizes_of(stride, 1) if stride is not None else kernel
    wanted = sizes_of(output_size, 1) if output_size is not None else None
    sizes = unpooled_size(input, kernel, step, sizes_of(padding, 1), wanted)
    return torch.ops.aten.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [sizes[0], 1]).squeeze(-1)


def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None,
                 padding: BroadcastingList2[int] = 0, output_size: Optional[BroadcastingList2[int]] = None) -> Tensor:
    kernel = sizes_of(kernel_size, 2)
    step = sizes_of(stride, 2) if stride is not None else kernel
    wanted = sizes_of(output_size, 2) if output_size is not None else None
    return torch.ops.aten.max_unpool2d(input, indices, unpooled_size(input, kernel, step, sizes_of(padding, 2), wanted))


def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None,
                 padding: BroadcastingList3[int] = 0, output_size: Optional[BroadcastingList3[int]] = None) -> Tensor:
    kernel = sizes_of(kernel_size, 3)
    step = sizes_of(stride, 3) if stride is not None else kernel
    wanted = sizes_of(output_size, 3) if output_size is not None else None
    pads = sizes_of(padding, 3)
    return torch.ops.aten.max_unpool3d(input, indices, unpooled_size(input, kernel, step, pads, wanted), step, pads)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError("dropout probability has to be between 0 and 1, but got {}".format(p))
    rank = input.dim()
    if rank != 2 and rank != 3:
        raise RuntimeError("dropout1d: Expected 2D or 3D input, but received a {}D input.".format(rank))
    return dropped(input, p, training, inplace, rank == 2)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError("dropout probability has to be between 0 and 1, but got {}".format(p))
    return dropped(input, p, training, inplace, False)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError("dropout probability has to be between 0 and 1, but got {}".format(p))
    return dropped(input, p, training, inplace, input.dim() != 5)


def dropped(input: Tensor, p: float, training: bool, inplace: bool, is_alone: bool) -> Tensor:
    if is_alone:
        batch = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    else:
        batch = input
    result = torch.feature_dropout_(batch, p, training) if inplace else torch.feature_dropout(batch, p, training)
    if is_alone:
        result = result.squeeze_(0) if inplace else result.squeeze(0)
    return result


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    noise = -torch.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if hard:
        index = soft.max(dim, keepdim=True)[1]
        result = torch.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft
    else:
        result = soft
    return result


def size_of_scales(input: Tensor, scales: List[float]) -> List[int]:
    return [math.floor(float(input.size(i + 2)) * scales[i]) for i in range(len(scales))]


def interpolate(input: Tensor, size: Union[None, int, List[int]] = None,
                scale_factor: Union[None, float, List[float]] = None, mode: str = "nearest",
                align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None,
                antialias: bool = False) -> Tensor:
    if (mode == "nearest" or mode == "area" or mode == "nearest-exact") and align_corners is not None:
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    count = input.dim() - 2
    corners = False if align_corners is None else align_corners
    sizes = annotate(Optional[List[int]], None)
    if isinstance(size, int):
        sizes = [size for _ in range(count)]
    elif size is not None:
        if len(size) != count:
            raise ValueError("Input and output must have the same number of spatial dimensions")
        sizes = size
    scales = annotate(Optional[List[float]], None)
    if isinstance(scale_factor, (int, float)):
        scales = [scale_factor for _ in range(count)]
    elif scale_factor is not None:
        if len(scale_factor) != count:
            raise ValueError("Input and scale_factor must have the same number of spatial dimensions")
        scales = scale_factor
    recomputes = False if recompute_scale_factor is None else recompute_scale_factor
    if recomputes and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if scales is not None and (recomputes or mode == "area"):
        sizes = size_of_scales(input, scales)
        scales = None
    if antialias and not ((mode == "bilinear" or mode == "bicubic") and count == 2):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if mode == "nearest" and count == 1:
        result = torch.ops.aten.upsample_nearest1d(input, sizes, scales)
    elif mode == "nearest" and count == 2:
        result = torch.ops.aten.upsample_nearest2d(input, sizes, scales)
    elif mode == "nearest" and count == 3:
        result = torch.ops.aten.upsample_nearest3d(input, sizes, scales)
    elif mode == "nearest-exact" and count == 1:
        result = torch.ops.aten._upsample_nearest_exact1d(input, sizes, scales)
    elif mode == "nearest-exact" and count == 2:
        result = torch.ops.aten._upsample_nearest_exact2d(input, sizes, scales)
    elif mode == "nearest-exact" and count == 3:
        result = torch.ops.aten._upsample_nearest_exact3d(input, sizes, scales)
    elif mode == "area" and count == 1 and sizes is not None:
        result = torch.ops.aten.adaptive_avg_pool1d(input, sizes)
    elif mode == "area" and count == 2 and sizes is not None:
        result = torch.ops.aten.adaptive_avg_pool2d(input, sizes)
    elif mode == "area" and count == 3 and sizes is not None:
        result = torch.ops.aten.adaptive_avg_pool3d(input, sizes)
    elif mode == "linear" and count == 1:
        result = torch.ops.aten.upsample_linear1d(input, sizes, corners, scales)
    elif mode == "bilinear" and count == 2 and antialias:
        result = torch.ops.aten._upsample_bilinear2d_aa(input, sizes, corners, scales)
    elif mode == "bilinear" and count == 2:
        result = torch.ops.aten.upsample_bilinear2d(input, sizes, corners, scales)
    elif mode == "bicubic" and count == 2 and antialias:
        result = torch.ops.aten._upsample_bicubic2d_aa(input, sizes, corners, scales)
    elif mode == "bicubic" and count == 2:
        result = torch.ops.aten.upsample_bicubic2d(input, sizes, corners, scales)
    elif mode == "trilinear" and count == 3:
        result = torch.ops.aten.upsample_trilinear3d(input, sizes, corners, scales)
    else:
        raise NotImplementedError("interpolate: an input of {} dimensions is not for mode {}".format(count + 2, mode))
    return result


def upsample(input: Tensor, size: Union[None, int, List[int]] = None,
             scale_factor: Union[None, float, List[float]] = None, mode: str = "nearest",
             align_corners: Optional[bool] = None) -> Tensor:
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Union[None, int, List[int]] = None,
                     scale_factor: Union[None, float, List[float]] = None) -> Tensor:
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Union[None, int, List[int]] = None,
                      scale_factor: Union[None, float, List[float]] = None) -> Tensor:
    return interpolate(input, size, scale_factor, "bilinear", True)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
                                reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    loss = -(target * torch.ops.aten.log_sigmoid(input) + (1 - target) * torch.ops.aten.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    last = input.dim() - 1
    loss = loss.sum([last]) / input.size(last)
    word = legacy_reduction(size_average, reduce, reduction)
    if word == "none":
        result = loss
    elif word == "mean":
        result = loss.mean()
    elif word == "sum":
        result = loss.sum()
    else:
        raise ValueError(reduction + " is not valid")
    return result


def mask_of_numbers(mask: Tensor, name: str, like: Tensor) -> Tensor:
    if torch.is_floating_point(mask):
        return mask
    if mask.dtype != torch.bool:
        raise AssertionError("only bool and floating types of {} are supported".format(name))
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, float("-inf"))


def check_attention(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor], attn_mask: Optional[Tensor],
                    num_heads: int) -> bool:
    rank = query.dim()
    if rank != 2 and rank != 3:
        raise AssertionError("query should be unbatched 2D or batched 3D tensor but received {}-D query tensor".format(rank))
    what = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError("For {} `query`, expected `key` and `value` to be {}-D but found {}-D and {}-D tensors respectively".format(
            what, rank, key.dim(), value.dim()))
    if key_padding_mask is not None:
        if key_padding_mask.dim() != rank - 1:
            raise AssertionError("For {} `query`, expected `key_padding_mask` to be `None` or {}-D but found {}-D tensor instead".format(
                what, rank - 1, key_padding_mask.dim()))
    if attn_mask is not None:
        if attn_mask.dim() != 2 and attn_mask.dim() != 3:
            raise AssertionError("For {} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {}-D tensor instead".format(
                what, attn_mask.dim()))
    return rank == 3


def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
                                 in_proj_weight: Optional[Tensor], in_proj_bias: Optional[Tensor], bias_k: Optional[Tensor],
                                 bias_v: Optional[Tensor], add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
                                 out_proj_bias: Optional[Tensor], training: bool = True, key_padding_mask: Optional[Tensor] = None,
                                 need_weights: bool = True, attn_mask: Optional[Tensor] = None, use_separate_proj_weight: bool = False,
                                 q_proj_weight: Optional[Tensor] = None, k_proj_weight: Optional[Tensor] = None,
                                 v_proj_weight: Optional[Tensor] = None, static_k: Optional[Tensor] = None,
                                 static_v: Optional[Tensor] = None, average_attn_weights: bool = True,
                                 is_causal: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
    is_batched = check_attention(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not is_batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, bsz, embed_dim = query.size(0), query.size(1), query.size(2)
    src_len = key.size(0)
    if key_padding_mask is not None:
        key_padding_mask = mask_of_numbers(key_padding_mask, "key_padding_mask", query)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                           "`generate_square_subsequent_mask` to create this mask.")
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = annotate(Optional[Tensor], None)
    else:
        if attn_mask is not None:
            attn_mask = mask_of_numbers(attn_mask, "attn_mask", query)
        if key_padding_mask is not None:
            is_causal = False
    if embed_dim != embed_dim_to_check:
        raise AssertionError("was expecting embedding dimension of {}, but got {}".format(embed_dim_to_check, embed_dim))
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError("embed_dim {} not divisible by num_heads {}".format(embed_dim, num_heads))
    if use_separate_proj_weight:
        if key.size(0) != value.size(0) or key.size(1) != value.size(1):
            raise AssertionError("key's sequence and batch dims {} do not match value's {}".format(key.shape[:2], value.shape[:2]))
        if q_proj_weight is None or k_proj_weight is None or v_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is True but q_proj_weight, k_proj_weight or v_proj_weight is None")
        w_q, w_k, w_v = q_proj_weight, k_proj_weight, v_proj_weight
    else:
        if key.shape != value.shape:
            raise AssertionError("key shape {} does not match value shape {}".format(key.shape, value.shape))
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        w_q, w_k, w_v = in_proj_weight[:embed_dim], in_proj_weight[embed_dim:2 * embed_dim], in_proj_weight[2 * embed_dim:]
    if in_proj_bias is None:
        q, k, v = torch.matmul(query, w_q.t()), torch.matmul(key, w_k.t()), torch.matmul(value, w_v.t())
    else:
        q = torch.ops.aten.linear(query, w_q, in_proj_bias[:embed_dim])
        k = torch.ops.aten.linear(key, w_k, in_proj_bias[embed_dim:2 * embed_dim])
        v = torch.ops.aten.linear(value, w_v, in_proj_bias[2 * embed_dim:])
    if attn_mask is not None:
        if attn_mask.dim() == 2:
            if attn_mask.size(0) != tgt_len or attn_mask.size(1) != src_len:
                raise RuntimeError("The shape of the 2D attn_mask is {}, but should be {}.".format(attn_mask.shape, (tgt_len, src_len)))
            attn_mask = attn_mask.unsqueeze(0)
        elif attn_mask.size(0) != bsz * num_heads or attn_mask.size(1) != tgt_len or attn_mask.size(2) != src_len:
            raise RuntimeError("The shape of the 3D attn_mask is {}, but should be {}.".format(
                attn_mask.shape, (bsz * num_heads, tgt_len, src_len)))
    if bias_k is not None and bias_v is not None:
        if static_k is not None:
            raise AssertionError("bias cannot be added to static key.")
        if static_v is not None:
            raise AssertionError("bias cannot be added to static value.")
        k = torch.cat([k, bias_k.repeat([1, bsz, 1])])
        v = torch.cat([v, bias_v.repeat([1, bsz, 1])])
        if attn_mask is not None:
            attn_mask = torch.constant_pad_nd(attn_mask, [0, 1])
        if key_padding_mask is not None:
            key_padding_mask = torch.constant_pad_nd(key_padding_mask, [0, 1])
    elif bias_k is not None:
        raise AssertionError("bias_k is set but bias_v is None")
    elif bias_v is not None:
        raise AssertionError("bias_v is set but bias_k is None")
    heads = bsz * num_heads
    q = q.reshape([tgt_len, heads, head_dim]).transpose(0, 1)
    if static_k is None:
        k = k.reshape([k.size(0), heads, head_dim]).transpose(0, 1)
    else:
        if static_k.size(0) != heads:
            raise AssertionError("expecting static_k.size(0) of {}, but got {}".format(heads, static_k.size(0)))
        if static_k.size(2) != head_dim:
            raise AssertionError("expecting static_k.size(2) of {}, but got {}".format(head_dim, static_k.size(2)))
        k = static_k
    if static_v is None:
        v = v.reshape([v.size(0), heads, head_dim]).transpose(0, 1)
    else:
        if static_v.size(0) != heads:
            raise AssertionError("expecting static_v.size(0) of {}, but got {}".format(heads, static_v.size(0)))
        if static_v.size(2) != head_dim:
            raise AssertionError("expecting static_v.size(2) of {}, but got {}".format(head_dim, static_v.size(2)))
        v = static_v
    if add_zero_attn:
        k = torch.constant_pad_nd(k, [0, 0, 0, 1])
        v = torch.constant_pad_nd(v, [0, 0, 0, 1])
        if attn_mask is not None:
            attn_mask = torch.constant_pad_nd(attn_mask, [0, 1])
        if key_padding_mask is not None:
            key_padding_mask = torch.constant_pad_nd(key_padding_mask, [0, 1])
    src_len = k.size(1)
    if key_padding_mask is not None:
        if key_padding_mask.size(0) != bsz or key_padding_mask.size(1) != src_len:
            raise AssertionError("expected key_padding_mask of shape {}, but got {}".format((bsz, src_len), key_padding_mask.shape))
        padding = key_padding_mask.reshape([bsz, 1, 1, src_len]).expand([-1, num_heads, -1, -1]).reshape([heads, 1, src_len])
        attn_mask = padding if attn_mask is None else attn_mask + padding
    if not training:
        dropout_p = 0.0
    if need_weights:
        if is_causal and attn_mask is None:
            raise AssertionError("FIXME: is_causal not implemented for need_weights")
        scaled = q * math.sqrt(1.0 / float(head_dim))
        weights = torch.baddbmm(attn_mask, scaled, k.transpose(-2, -1)) if attn_mask is not None else torch.bmm(scaled, k.transpose(-2, -1))
        weights = weights.softmax(-1)
        if dropout_p > 0.0:
            weights = torch.dropout(weights, dropout_p, True)
        joined = torch.bmm(weights, v).transpose(0, 1).reshape([tgt_len * bsz, embed_dim])
        output = torch.ops.aten.linear(joined, out_proj_weight, out_proj_bias)
        output = output.reshape([tgt_len, bsz, output.size(1)])
        shown = weights.reshape([bsz, num_heads, tgt_len, src_len])
        if average_attn_weights:
            shown = shown.mean([1])
        if not is_batched:
            output, shown = output.squeeze(1), shown.squeeze(0)
        result = annotate(Optional[Tensor], shown)
    else:
        if attn_mask is not None:
            attn_mask = attn_mask.unsqueeze(0) if attn_mask.size(0) == 1 else attn_mask.reshape([bsz, num_heads, -1, src_len])
        heads_out = torch.scaled_dot_product_attention(
            q.reshape([bsz, num_heads, tgt_len, head_dim]), k.reshape([bsz, num_heads, src_len, head_dim]),
            v.reshape([bsz, num_heads, src_len, head_dim]), attn_mask, dropout_p, is_causal)
        joined = heads_out.permute([2, 0, 1, 3]).reshape([bsz * tgt_len, embed_dim])
        output = torch.ops.aten.linear(joined, out_proj_weight, out_proj_bias)
        output = output.reshape([tgt_len, bsz, output.size(1)])
        if not is_batched:
            output = output.squeeze(1)
        result = annotate(Optional[Tensor], None)
    return output, result
