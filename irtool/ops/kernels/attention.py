"""Scaled dot product attention, and torch's fused transformer layers taken apart into it."""
import math

from irtool.ir.errors import RunError
from irtool.ops.checks import c_name, row_major, same_dtype, widen
from irtool.ops.kernels.matmul import matmul_any
from irtool.ops.kernels.normalization import layer_normalized
from irtool.ops.kernels.random import check_share, kept_by_dropout
from irtool.ops.kernels.softmax import masked_softmax
from irtool.ops.op import OpTable

table = OpTable("attention")

SCORES = 1 << 15
"""The number of scores that are computed at once, unless more are needed."""


def _affine(xp, x, weight, bias):
    return matmul_any(xp, x, weight.T) + bias


def attention(xp, query, key, value, mask, dropout, is_causal, scale, grouped, dropout_mask=None):
    """(result, weights) of softmax(query @ key.T * scale + mask) @ value over the last two dimensions; rows all masked give 0."""
    same_dtype("Expected query, key, and value to have the same dtype", query, key, value)
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RunError("Expected query, key, and value to all be  at least 2 dimensional, but got query.dim(): "
                       f"{query.ndim}, key.dim(): {key.ndim} and value.dim(): {value.ndim} instead.")
    if dropout > 0:         # torch takes negative ones, and nan, for none
        check_share(dropout)
    if is_causal and mask is not None:
        raise RunError("Explicit attn_mask should not be set when is_causal=True")
    if grouped and min(query.ndim, key.ndim, value.ndim) < 3:
        raise RunError("enable_gqa expects queries, keys and values of at least 3 dimensions, got "
                       f"{query.ndim}, {key.ndim} and {value.ndim}")
    if grouped:
        key, value = (xp.repeat(part, query.shape[-3] // part.shape[-3], -3) for part in (key, value))
    wide_query, wide_key, wide_value = (widen(xp, part) for part in (query, key, value))
    kind = wide_query.dtype.type
    factor = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    scores = xp.matmul(wide_query * kind(factor), wide_key.swapaxes(-1, -2))
    if is_causal:
        rows, columns = scores.shape[-2:]
        is_earlier = xp.arange(columns) <= xp.arange(rows)[:, None]
        if query.ndim == 4:         # for which torch has a kernel of its own
            scores = xp.where(is_earlier, scores, kind(-math.inf))
        else:
            mask = is_earlier
    if mask is not None:            # added, so that nan stays nan, as in torch
        scores = scores + (xp.where(mask, kind(0), kind(-math.inf)) if mask.dtype.kind == "b" else mask.astype(scores.dtype, copy=False))
    weights = _softmax_or_zero(xp, scores)
    kept = 1 / (1 - dropout) if dropout < 1 else 0.0        # all are dropped
    if dropout > 0 and dropout_mask is not None:
        weights = xp.where(dropout_mask, weights, kind(0)) * kind(kept)
    elif dropout > 0:
        weights = weights * kept_by_dropout(xp, weights.shape, dropout) * kind(kept)
    return xp.matmul(weights, wide_value).astype(query.dtype, copy=False), weights.astype(query.dtype, copy=False)


def _softmax_or_zero(xp, scores):
    """Over the scores themselves."""
    if not scores.size:
        return scores
    top = scores.max(-1, keepdims=True)
    scores -= xp.where(top == -math.inf, scores.dtype.type(0), top)
    xp.exp(scores, out=scores)
    total = scores.sum(-1, keepdims=True)
    scores /= xp.where(total == 0, scores.dtype.type(1), total)
    return scores


@table.op("aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., "
          "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor")
def scaled_dot_product_attention(xp, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    """softmax(query @ key.T * scale + mask) @ value; a bool mask is True where scores count."""
    if attn_mask is not None and attn_mask.dtype not in ("bool", "float32", query.dtype):
        raise RunError("Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                       f"{c_name(attn_mask.dtype)} and  query.dtype: {c_name(query.dtype)} instead.", code="E0409")
    has_heads = query.ndim == key.ndim == value.ndim == 4
    if has_heads and dropout_p and not dropout_p > 0:
        raise RunError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
    if has_heads and query.shape[:2] == key.shape[:2] == value.shape[:2] and not dropout_p:
        heads, scores = query.shape[1], query.shape[2] * key.shape[2]
        if query.shape[0] * heads * scores > SCORES:
            return _by_heads(xp, query, key, value, attn_mask, is_causal, scale, max(SCORES // scores, 1))
    return attention(xp, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)[0]


def _by_heads(xp, query, key, value, mask, is_causal, scale, few):
    """attention for a few heads at a time, since the scores of all would take more memory than everything else."""
    count, heads = query.shape[:2]
    result = xp.empty((*query.shape[:3], value.shape[3]), query.dtype)
    if mask is not None:
        mask = xp.broadcast_to(mask, (count, heads, query.shape[2], key.shape[2]))
    samples = max(few // heads, 1)
    for first in range(0, count, samples):
        for head in range(0, heads, few):
            some = slice(first, first + samples), slice(head, head + few)
            result[some] = attention(xp, query[some], key[some], value[some], None if mask is None else mask[some], 0.0, is_causal, scale,
                                     False)[0]
    return result


@table.op("aten::_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., "
          "bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)")
def scaled_dot_product_attention_math(xp, query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale, enable_gqa):
    """scaled_dot_product_attention and the weights."""
    if attn_mask is not None and attn_mask.dtype.kind == "b":
        attn_mask = attn_mask.astype(query.dtype)       # here torch adds a bool mask as numbers
    return attention(xp, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, dropout_mask)


@table.op("aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., "
          "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)")
def flash_attention(xp, query, key, value, dropout_p, is_causal, attn_mask, scale):
    """scaled_dot_product_attention and the logarithm of each row's sum."""
    if not query.ndim == key.ndim == value.ndim == 4:
        raise RunError("scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of {B, H, T, K}")
    if dropout_p:
        raise RunError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
    if not query.shape[-1] == key.shape[-1] == value.shape[-1]:
        raise RunError("scaled_dot_product_attention_flash_attention: Q/K/V should have the same head size")
    if not query.shape[:2] == key.shape[:2] == value.shape[:2]:
        raise RunError("scaled_dot_product_attention_flash_attention: expected queries, keys and values of one batch size and number of "
                       f"heads, got {list(query.shape[:2])}, {list(key.shape[:2])} and {list(value.shape[:2])}")
    result, _ = attention(xp, query, key, value, attn_mask, dropout_p, is_causal, scale, False)
    factor = query.dtype.type(1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale)
    scores = xp.matmul(widen(xp, query) * factor, widen(xp, key).swapaxes(-1, -2))
    if attn_mask is not None:
        scores = xp.where(attn_mask, scores, -math.inf) if attn_mask.dtype.kind == "b" else scores + attn_mask
    if is_causal:
        scores = xp.where(xp.tri(*scores.shape[-2:], dtype=bool), scores, scores.dtype.type(-math.inf))
    top = scores.max(-1)
    return result, (xp.log(xp.exp(scores - top[..., None]).sum(-1)) + top).astype(scores.dtype, copy=False)


# ---- whole layers

def _heads(x, heads):
    """(batch, length, heads * size) as (batch, heads, length, size)."""
    return x.reshape(x.shape[0], x.shape[1], heads, -1).swapaxes(1, 2)


def multi_head(xp, query, key, value, embed_dim, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, mask_type):
    """(projected result, weights per head) of self or cross attention in one packed projection. Scores do not count where the mask is
    not 0, also if it is one of numbers."""
    if query.ndim != 3:
        raise RunError(f"expected 3-D `query`, got {query.ndim}-D tensor")
    if embed_dim % heads:
        raise RunError("`embed_dim` must divide evenly by `num_heads`")
    parts = []
    for place, x in enumerate((query, key, value)):
        rows = slice(place * embed_dim, (place + 1) * embed_dim)
        parts.append(_heads(_affine(xp, x, qkv_weight[rows], qkv_bias[rows]), heads))
    if mask is None:
        result, weights = attention(xp, *parts, None, 0.0, False, None, False)
    else:
        q, k, v = (widen(xp, part) for part in parts)
        scores = xp.matmul(q * q.dtype.type(1 / math.sqrt(max(q.shape[-1], 1))), k.swapaxes(-1, -2))
        wide_weights = masked_softmax.kernel(xp, scores, mask != 0, -1, mask_type)
        result, weights = (x.astype(query.dtype, copy=False) for x in (xp.matmul(wide_weights, v), wide_weights))
    joined = result.swapaxes(1, 2).reshape(query.shape[0], query.shape[1], embed_dim)
    return _affine(xp, joined, proj_weight, proj_bias), weights


@table.op("aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, "
          "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, "
          "bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)")
def native_multi_head_attention(xp, query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask,
                                need_weights, average_attn_weights, mask_type):
    """Multi-head attention with packed projections, and its weights, averaged over heads, if wanted."""
    if not query.shape == key.shape == value.shape:
        raise RunError("expected `query`/`key`/`value` shapes to match")
    if qkv_weight.ndim != 2 or len(qkv_weight) != 3 * embed_dim or qkv_bias.shape != (3 * embed_dim,):
        raise RunError(f"expected `qkv_weight` and `qkv_bias` with first dim {3 * embed_dim} (3x embed_dim), got {list(qkv_weight.shape)} "
                       f"and {list(qkv_bias.shape)}")
    if proj_weight.shape != (embed_dim, embed_dim):
        raise RunError(f"expected `proj_weight` of size [{embed_dim}, {embed_dim}], got {list(proj_weight.shape)}")
    result, weights = multi_head(xp, query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, mask_type)
    if not need_weights:
        return result, None
    return result, weights.mean(1, dtype=weights.dtype) if average_attn_weights else weights


@table.op("aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, "
          "Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, "
          "Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, "
          "Tensor? mask=None, int? mask_type=None) -> Tensor")
def transformer_encoder_layer(xp, src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps,
                              norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2,
                              mask, mask_type):
    """Self attention and a feed-forward net, each with a skip connection and layer normalization (first, or afterwards)."""
    from irtool.ops.kernels.activation import gelu

    def first_norm(x):
        return layer_normalized(xp, x, (embed_dim,), norm_weight_1, norm_bias_1, eps)[0]

    def second_norm(x):
        return layer_normalized(xp, x, (embed_dim,), norm_weight_2, norm_bias_2, eps)[0]

    def attend(x):
        return multi_head(xp, x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, mask_type)[0]

    def feed(x):
        hidden = _affine(xp, x, ffn_weight_1, ffn_bias_1)
        hidden = gelu.kernel(xp, hidden, "none") if use_gelu else xp.maximum(hidden, hidden.dtype.type(0))
        return _affine(xp, hidden, ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(first_norm(src))
        return x + feed(second_norm(x))
    x = first_norm(src + attend(src))
    return second_norm(x + feed(x))


@table.op("aten::_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)")
def transform_bias_rescale_qkv(xp, qkv, qkv_bias, num_heads):
    """Packed projections (batch, length, 3 * embed) plus bias as query (scaled), key and value per head."""
    size = qkv.shape[-1] // 3
    q, k, v = (_heads(part, num_heads) for part in xp.split(qkv + qkv_bias, 3, -1))
    return (row_major(xp, q / q.dtype.type(math.sqrt(size // num_heads))), row_major(xp, k), row_major(xp, v))


# ---- dtypes that torch serves

table.takes("hf", "scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_flash_attention_for_cpu "
             "_transform_bias_rescale_qkv")
table.laid_out("KF", "_scaled_dot_product_flash_attention_for_cpu")
