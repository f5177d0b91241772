"""Batching rule of attention."""
from __future__ import annotations

from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import lined_up
from irtool.ops.kernels.attention import table
from irtool.ops.tensor import Tensor


@table.batch("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(batch: Batch, query: Any, key: Any, value: Any, dropout: float, is_causal: bool, mask: Any, scale: Any) -> Any:
    """q, k, v (N, H, n, d) -> (B * N, H, n, d), since the kernel takes four dimensions alone; the mask expanded to B * N."""
    rows = query.shape[0]
    parts = [batch.do("aten::flatten", batch.whole(each), 0, 1) for each in (query, key, value)]
    if mask is not None:
        wide = lined_up(batch, mask, 4 - mask.ndim)
        mask = batch.do("aten::flatten", batch.do("aten::expand", wide, [batch.length, rows, -1, -1, -1]), 0, 1)
    results = batch.same(*parts, dropout, is_causal, mask, scale)
    return tuple([batch.box(batch.do("aten::unflatten", each, 0, [batch.length, rows])) for each in results])


@table.batch("scaled_dot_product_attention _scaled_dot_product_attention_math")
def attention(batch: Batch, *args: Any) -> Any:
    """q, k, v, mask (..., n, d) -> (B, 1, ..., n, d): all of one rank, so that the dimensions in front broadcast."""
    rank = max(each.ndim for each in args if isinstance(each, Tensor))
    return batch.box(batch.same(*[lined_up(batch, each, rank - each.ndim) if isinstance(each, Tensor) else each for each in args]))


table.not_batched("a kernel for whole layers: vmap their parts", "_native_multi_head_attention _transformer_encoder_layer_fwd "
                  "_transform_bias_rescale_qkv")
