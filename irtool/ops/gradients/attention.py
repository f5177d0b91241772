"""Gradients of attention."""
from __future__ import annotations

from irtool.ops.attention import table
from irtool.ops.tensor import Tensor, torch


def shared_heads(x: Tensor, heads: int) -> Tensor:
    """Heads of keys or values repeated for groups of query heads."""
    return x.repeat_interleave(heads // x.size(-3), -3)


def weights_of(query: Tensor, key: Tensor, attn_mask: Tensor | None, is_causal: bool, factor: float) -> Tensor:
    """softmax(query @ key.T * factor + mask); rows that are all masked are 0."""
    scores = (query * factor).matmul(key.transpose(-2, -1))
    if is_causal:
        seen = torch.ones([query.size(-2), key.size(-2)], dtype=torch.bool).tril()
        scores = scores.masked_fill(~seen, -float("inf"))
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -float("inf"))
        else:
            scores = scores + attn_mask
    return torch._safe_softmax(scores, -1)


def attention_back(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, weights: Tensor,
                   kept: Tensor | None, factor: float, enable_gqa: bool) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Gradients for query, key, value and a mask that is added; `kept` multiplies weights where there is dropout."""
    keys, values = key, value
    if enable_gqa:
        keys, values = shared_heads(key, query.size(-3)), shared_heads(value, query.size(-3))
    for_weights = grad.matmul(values.transpose(-2, -1))
    used = weights
    if kept is not None:
        for_weights = for_weights * kept
        used = weights * kept
    for_value = used.transpose(-2, -1).matmul(grad)
    for_scores = torch._softmax_backward_data(for_weights, weights, -1, weights.dtype)
    for_mask: Tensor | None = None
    if attn_mask is not None:
        if attn_mask.dtype != torch.bool:
            for_mask = for_scores.sum_to_size(attn_mask.size())
    for_query = for_scores.matmul(keys) * factor
    for_key = for_scores.transpose(-2, -1).matmul(query) * factor
    if enable_gqa:
        groups = [key.size(-3), query.size(-3) // key.size(-3)]
        for_key = for_key.unflatten(-3, groups).sum([-3])
        for_value = for_value.unflatten(-3, [value.size(-3), query.size(-3) // value.size(-3)]).sum([-3])
    return for_query.sum_to_size(query.size()), for_key.sum_to_size(key.size()), for_value.sum_to_size(value.size()), for_mask


def factor_of(query: Tensor, scale: float | None) -> float:
    """The given scale, or 1 / sqrt(features)."""
    if scale is None:
        return float(max(query.size(-1), 1)) ** -0.5
    return scale


@table.gradient("scaled_dot_product_attention")
def scaled_dot_product_attention_gradient(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float,
                                          is_causal: bool, scale: float | None, enable_gqa: bool):
    factor = factor_of(query, scale)
    weights = weights_of(query, shared_heads(key, query.size(-3)) if enable_gqa else key, attn_mask, is_causal, factor)
    kept: Tensor | None = None
    used = weights
    if dropout_p > 0:
        kept = (torch.rand_like(weights) >= dropout_p).to(weights.dtype) / (1 - dropout_p)
        used = weights * kept
    result = used.matmul(shared_heads(value, query.size(-3)) if enable_gqa else value)

    def backward(grad: Tensor):
        for_query, for_key, for_value, for_mask = attention_back(grad, query, key, value, attn_mask, weights, kept, factor, enable_gqa)
        return for_query, for_key, for_value, for_mask, None, None, None, None

    return result, backward


@table.gradient("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention_gradient(query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, attn_mask: Tensor | None,
                             scale: float | None):
    result, logsumexp = torch._scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, attn_mask=attn_mask,
                                                                          scale=scale)

    def backward(grad: Tensor):
        factor = factor_of(query, scale)
        weights = weights_of(query, key, attn_mask, is_causal, factor)
        for_query, for_key, for_value, for_mask = attention_back(grad, query, key, value, attn_mask, weights, None, factor, False)
        return for_query, for_key, for_value, None, None, None, None

    return result, logsumexp, backward
