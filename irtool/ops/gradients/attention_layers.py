"""Gradients of attention with its weights as a result, and of torch's fused transformer layers. Intermediate results are computed again."""
from __future__ import annotations

from irtool.ops.gradients.recurrent import product_back
from irtool.ops.kernels.attention import table
from irtool.ops.tensor import Tensor, torch

# ---- softmax(query @ key.T) @ value

def masked(scores: Tensor, look: Tensor | None) -> Tensor:
    """Scores with a mask: bools are True where scores count, numbers are added."""
    if look is None:
        return scores
    if look.dtype == torch.bool:
        return torch.where(look, scores, float("-inf"))
    return scores + look


def causal(scores: Tensor) -> Tensor:
    """Scores in which later positions are masked."""
    look = torch.ones([scores.size(-2), scores.size(-1)], dtype=torch.bool, device=scores.device).tril()
    return torch.where(look, scores, float("-inf"))


def scores_back(weights_grad: Tensor, weights: Tensor) -> Tensor:
    """Gradient of the scores whose softmax the weights are."""
    return torch._softmax_backward_data(weights_grad, weights, -1, weights_grad.dtype)


def mask_back(for_scores: Tensor, mask: Tensor | None) -> Tensor | None:
    """Gradient of a mask that was added."""
    for_mask: Tensor | None = None
    if mask is not None:
        if mask.dtype != torch.bool:
            for_mask = for_scores.sum_to_size(mask.size())
    return for_mask


def factor_of(query: Tensor, scale: float | None) -> float:
    """The factor by which scores are scaled."""
    factor = scale if scale is not None else float(query.size(-1)) ** -0.5
    return factor


@table.derivative("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention_gradient(grad, query, key, value, is_causal, attn_mask, scale):
    factor = factor_of(query, scale)
    scores = torch.matmul(query * factor, key.transpose(-2, -1))
    if is_causal:
        scores = causal(scores)
    weights = torch._safe_softmax(masked(scores, attn_mask), -1)
    for_scores = scores_back(torch.matmul(grad, value.transpose(-2, -1)), weights)
    for_key = torch.matmul(for_scores.transpose(-2, -1), query) * factor
    for_value = torch.matmul(weights.transpose(-2, -1), grad)
    return torch.matmul(for_scores, key) * factor, for_key, for_value, mask_back(for_scores, attn_mask)


def grouped_back(whole: Tensor, like: Tensor) -> Tensor:
    """Gradient of keys or values that several heads share."""
    return whole.unflatten(-3, [like.size(-3), whole.size(-3) // like.size(-3)]).sum([-3])


@table.gradient("_scaled_dot_product_attention_math")
def attention_math_gradient(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool,
                            dropout_mask: Tensor | None, scale: float | None, enable_gqa: bool):
    factor = factor_of(query, scale)
    wide_key, wide_value = key, value
    if enable_gqa:
        wide_key = torch.repeat_interleave(key, query.size(-3) // key.size(-3), -3)
        wide_value = torch.repeat_interleave(value, query.size(-3) // value.size(-3), -3)
    scores = torch.matmul(query * factor, wide_key.transpose(-2, -1))
    if is_causal:
        scores = causal(scores)
    if attn_mask is not None:
        scores = scores + attn_mask.to(scores.dtype)        # truth values too: here torch adds them as numbers
    weights = torch._safe_softmax(scores, -1)
    room = 1.0 / (1.0 - dropout_p) if dropout_p > 0.0 and dropout_p < 1.0 else 1.0
    if dropout_mask is not None and dropout_p > 0.0:
        mask = dropout_mask.to(torch.bool)
        thinned = torch.where(mask, weights, 0.0) * room
    else:
        thinned, mask = torch.native_dropout(weights, dropout_p if dropout_p > 0.0 else 0.0, dropout_p > 0.0)
    result = torch.matmul(thinned, wide_value)

    def backward(grad: Tensor | None, grad_weights: Tensor | None):
        for_value = torch.zeros_like(wide_value)
        for_thinned = torch.zeros_like(thinned) if grad_weights is None else grad_weights
        if grad is not None:
            for_value = torch.matmul(thinned.transpose(-2, -1), grad)
            for_thinned = for_thinned + torch.matmul(grad, wide_value.transpose(-2, -1))
        for_scores = scores_back(torch.native_dropout_backward(for_thinned, mask, room), weights)
        for_query = torch.matmul(for_scores, wide_key) * factor
        for_key = torch.matmul(for_scores.transpose(-2, -1), query) * factor
        if enable_gqa:
            for_key, for_value = grouped_back(for_key, key), grouped_back(for_value, value)
        return (for_query.sum_to_size(query.size()), for_key.sum_to_size(key.size()), for_value.sum_to_size(value.size()),
                mask_back(for_scores, attn_mask), None, None, None, None, None)

    return result, thinned, backward


# ---- several heads in one packed projection

def split_heads(x: Tensor, heads: int) -> Tensor:
    """(batch, length, heads * size) as (batch, heads, length, size)."""
    return x.unflatten(-1, [heads, x.size(-1) // heads]).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """The way back."""
    return x.transpose(1, 2).flatten(2)


def projected(x: Tensor, place: int, heads: int, weight: Tensor, bias: Tensor) -> Tensor:
    """Queries (place 0), keys (1) or values (2) of each head."""
    embed = weight.size(0) // 3
    return split_heads(torch.linear(x, weight.narrow(0, place * embed, embed), bias.narrow(0, place * embed, embed)), heads)


def projected_back(grad: Tensor, x: Tensor, place: int, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the same for x, its part of the weight and of the bias."""
    embed = weight.size(0) // 3
    return product_back(join_heads(grad), x, weight.narrow(0, place * embed, embed))


def head_weights(query: Tensor, key: Tensor, mask: Tensor | None, mask_type: int | None) -> Tensor:
    """Attention weights per head; scores do not count where the mask is not 0, `mask_type` determines its dimensions."""
    scores = torch.matmul(query * (float(query.size(-1)) ** -0.5), key.transpose(-2, -1))
    if mask is not None:
        away = mask
        if mask_type is not None:
            if mask_type == 0 and mask.dim() == 2:
                away = mask.unsqueeze(0).unsqueeze(0)
            elif mask_type == 1:
                away = mask.unsqueeze(1).unsqueeze(1)
        scores = masked(scores, away == 0)
    return torch._safe_softmax(scores, -1)


def attended(x: Tensor, heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, mask: Tensor | None,
             mask_type: int | None) -> Tensor:
    """Self attention."""
    weights = head_weights(projected(x, 0, heads, qkv_weight, qkv_bias), projected(x, 1, heads, qkv_weight, qkv_bias), mask, mask_type)
    joined = join_heads(torch.matmul(weights, projected(x, 2, heads, qkv_weight, qkv_bias)))
    return torch.linear(joined, proj_weight, proj_bias)


def attend_back(grad: Tensor, grad_weights: Tensor | None, query: Tensor, key: Tensor, value: Tensor, heads: int, qkv_weight: Tensor,
                qkv_bias: Tensor, proj_weight: Tensor, mask: Tensor | None, mask_type: int | None) -> tuple[
                    Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients for query, key, value, packed weight and bias, projection weight and bias; and those of the scores."""
    q, k = projected(query, 0, heads, qkv_weight, qkv_bias), projected(key, 1, heads, qkv_weight, qkv_bias)
    v = projected(value, 2, heads, qkv_weight, qkv_bias)
    weights = head_weights(q, k, mask, mask_type)
    for_joined, for_proj_weight, for_proj_bias = product_back(grad, join_heads(torch.matmul(weights, v)), proj_weight)
    for_heads = split_heads(for_joined, heads)
    for_weights = torch.matmul(for_heads, v.transpose(-2, -1))
    if grad_weights is not None:
        for_weights = for_weights + grad_weights
    for_scores = scores_back(for_weights, weights)
    factor = float(q.size(-1)) ** -0.5
    for_query, weight_q, bias_q = projected_back(torch.matmul(for_scores, k) * factor, query, 0, qkv_weight)
    for_key, weight_k, bias_k = projected_back(torch.matmul(for_scores.transpose(-2, -1), q) * factor, key, 1, qkv_weight)
    for_value, weight_v, bias_v = projected_back(torch.matmul(weights.transpose(-2, -1), for_heads), value, 2, qkv_weight)
    return (for_query, for_key, for_value, torch.cat([weight_q, weight_k, weight_v]), torch.cat([bias_q, bias_k, bias_v]),
            for_proj_weight, for_proj_bias, for_scores)


@table.derivative("_native_multi_head_attention")
def multi_head_attention_gradient(grad, grad_weights, query, key, value, num_head, qkv_weight, qkv_bias, proj_weight, mask, need_weights,
                                  average_attn_weights, mask_type):
    result_grad = torch.zeros_like(query) if grad is None else grad
    per_head: Tensor | None = None
    if need_weights:
        if grad_weights is not None:
            per_head = grad_weights.unsqueeze(1) / num_head if average_attn_weights else grad_weights
    for_query, for_key, for_value, for_weight, for_bias, for_proj_weight, for_proj_bias, _ = attend_back(
        result_grad, per_head, query, key, value, num_head, qkv_weight, qkv_bias, proj_weight, mask, mask_type)
    return for_query, for_key, for_value, for_weight, for_bias, for_proj_weight, for_proj_bias, None


@table.derivative("_transform_bias_rescale_qkv")
def transform_bias_rescale_qkv_gradient(grad_query, grad_key, grad_value, qkv_bias, result0):
    zeros = torch.zeros_like(result0)
    for_query = zeros if grad_query is None else grad_query * float(result0.size(-1)) ** -0.5
    parts = [join_heads(for_query), join_heads(zeros if grad_key is None else grad_key),
             join_heads(zeros if grad_value is None else grad_value)]
    whole = torch.cat(parts, -1)
    return whole, whole.sum_to_size(qkv_bias.size())


# ---- an encoder layer

def normed(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Layer normalization over the last dimension."""
    return torch.native_layer_norm(x, [x.size(-1)], weight, bias, eps)[0]


def normed_back(grad: Tensor, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the same for x, weight and bias."""
    result, mean, inverse = torch.native_layer_norm(x, [x.size(-1)], weight, bias, eps)
    return torch.native_layer_norm_backward(grad, x, [x.size(-1)], mean, inverse, weight, bias, [True, True, True])


def fed(x: Tensor, use_gelu: bool, weight1: Tensor, bias1: Tensor, weight2: Tensor, bias2: Tensor) -> Tensor:
    """The feed-forward net."""
    hidden = torch.linear(x, weight1, bias1)
    return torch.linear(torch.gelu(hidden) if use_gelu else torch.relu(hidden), weight2, bias2)


def fed_back(grad: Tensor, x: Tensor, use_gelu: bool, weight1: Tensor, bias1: Tensor, weight2: Tensor) -> tuple[
        Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of the same for x, weight1, bias1, weight2, bias2."""
    hidden = torch.linear(x, weight1, bias1)
    for_active, for_weight2, for_bias2 = product_back(grad, torch.gelu(hidden) if use_gelu else torch.relu(hidden), weight2)
    for_hidden = torch.gelu_backward(for_active, hidden) if use_gelu else torch.threshold_backward(for_active, hidden, 0)
    for_x, for_weight1, for_bias1 = product_back(for_hidden, x, weight1)
    return for_x, for_weight1, for_bias1, for_weight2, for_bias2


@table.derivative("_transformer_encoder_layer_fwd")
def transformer_encoder_layer_gradient(grad, src, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps,
                                       norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2,
                                       ffn_bias_2, mask, mask_type):
    looked_at = normed(src, norm_weight_1, norm_bias_1, eps) if norm_first else src
    after = src + attended(looked_at, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, mask_type)
    if norm_first:
        inner = normed(after, norm_weight_2, norm_bias_2, eps)
        for_inner, ffn1, ffn_b1, ffn2, ffn_b2 = fed_back(grad, inner, use_gelu, ffn_weight_1, ffn_bias_1, ffn_weight_2)
        for_after, weight_2, bias_2 = normed_back(for_inner, after, norm_weight_2, norm_bias_2, eps)
        for_after = for_after + grad
        weight_1, bias_1 = weight_2, bias_2     # known below
    else:
        inner = normed(after, norm_weight_1, norm_bias_1, eps)
        total = inner + fed(inner, use_gelu, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2)
        for_total, weight_2, bias_2 = normed_back(grad, total, norm_weight_2, norm_bias_2, eps)
        for_inner, ffn1, ffn_b1, ffn2, ffn_b2 = fed_back(for_total, inner, use_gelu, ffn_weight_1, ffn_bias_1, ffn_weight_2)
        for_after, weight_1, bias_1 = normed_back(for_inner + for_total, after, norm_weight_1, norm_bias_1, eps)
    as_query, as_key, as_value, qkv_w, qkv_b, proj_w, proj_b, _ = attend_back(
        for_after, None, looked_at, looked_at, looked_at, num_heads, qkv_weight, qkv_bias, proj_weight, mask, mask_type)
    for_src = as_query + as_key + as_value
    if norm_first:
        for_src, weight_1, bias_1 = normed_back(for_src, src, norm_weight_1, norm_bias_1, eps)
    return for_src + for_after, qkv_w, qkv_b, proj_w, proj_b, weight_1, bias_1, weight_2, bias_2, ffn1, ffn_b1, ffn2, ffn_b2, None
