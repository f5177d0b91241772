"""Gradients of attention, with the weights computed again from their logarithmic form's parts."""
from __future__ import annotations

from irtool.ops.kernels.attention import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("scaled_dot_product_attention")
def scaled_dot_product_attention_gradient(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float,
                                          is_causal: bool, scale: float | None, enable_gqa: bool):
    factor = scale if scale is not None else float(max(query.size(-1), 1)) ** -0.5
    dtype = query.dtype
    wide = 6 if dtype == 5 else dtype       # scores of float16 may be larger than its numbers
    wide_query, wide_key, wide_value = query.to(wide), key.to(wide), value.to(wide)
    if enable_gqa:
        wide_key = torch.repeat_interleave(wide_key, query.size(-3) // key.size(-3), -3)
        wide_value = torch.repeat_interleave(wide_value, query.size(-3) // value.size(-3), -3)
    scores = torch.matmul(wide_query * factor, wide_key.transpose(-2, -1))
    nowhere = float("-inf")
    if is_causal:
        look = torch.ones([scores.size(-2), scores.size(-1)], dtype=11, device=query.device).tril()
        scores = torch.where(look, scores, nowhere)
    if attn_mask is not None:
        scores = torch.where(attn_mask, scores, nowhere) if attn_mask.dtype == 11 else scores + attn_mask
    weights = torch._safe_softmax(scores, -1)
    thinned = weights
    dropout_mask: Tensor | None = None
    if dropout_p > 0.0:
        thinned, dropout_mask = torch.native_dropout(weights, dropout_p, True)
    room = 1.0 / (1.0 - dropout_p) if dropout_p > 0.0 and dropout_p < 1.0 else 1.0

    def backward(grad: Tensor):
        wide_grad = grad.to(wide)
        value_grad = torch.matmul(thinned.transpose(-2, -1), wide_grad)
        weights_grad = torch.matmul(wide_grad, wide_value.transpose(-2, -1))
        if dropout_mask is not None:
            weights_grad = torch.native_dropout_backward(weights_grad, dropout_mask, room)
        scores_grad = torch._softmax_backward_data(weights_grad, weights, -1, weights_grad.dtype)
        query_grad = torch.matmul(scores_grad, wide_key) * factor
        key_grad = torch.matmul(scores_grad.transpose(-2, -1), wide_query) * factor
        mask_grad: Tensor | None = None
        if attn_mask is not None:
            if attn_mask.dtype != 11:
                mask_grad = scores_grad.sum_to_size(attn_mask.size()).to(attn_mask.dtype)
        if enable_gqa:
            heads = query.size(-3) // key.size(-3)
            key_grad = key_grad.unflatten(-3, [key.size(-3), heads]).sum([-3])
            heads = query.size(-3) // value.size(-3)
            value_grad = value_grad.unflatten(-3, [value.size(-3), heads]).sum([-3])
        return (query_grad.sum_to_size(query.size()).to(dtype), key_grad.sum_to_size(key.size()).to(dtype),
                value_grad.sum_to_size(value.size()).to(dtype), mask_grad, None, None, None, None)

    return torch.matmul(thinned, wide_value).to(dtype), backward
