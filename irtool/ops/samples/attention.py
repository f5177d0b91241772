"""Samples of attention: masks, causal, grouped."""
from irtool.ops.kernels.attention import table
from irtool.ops.samples.draw import call, flags, positive, real

table.sample("scaled_dot_product_attention", call(real(2, 3, 4), real(2, 5, 4), real(2, 5, 4)),
             call(real(2, 3, 4), real(2, 5, 4), real(2, 5, 2), real(3, 5)),
             call(real(1, 2, 3, 4), real(1, 2, 3, 4), real(1, 2, 3, 2), None, 0.0, True, scale=0.7),
             call(real(1, 4, 3, 4), real(1, 2, 3, 4), real(1, 2, 3, 4), enable_gqa=True),
             call(real(3, 4), real(2, 4), real(2, 4), flags([True, False], [True, True], [False, True])))

q, k, v = real(1, 2, 3, 2), real(1, 2, 4, 2), real(1, 2, 4, 2)
x, w, b = real(2, 3, 4), real(4, 4, low=-0.7, high=0.7), real(4)
qkv, bias = real(12, 4, low=-0.7, high=0.7), real(12)

table.sample("_scaled_dot_product_attention_math", call(q, k, v), call(q, k, v, real(3, 4), scale=0.7), call(q, q, q, is_causal=True))
table.sample("_scaled_dot_product_flash_attention_for_cpu", call(q, k, v), call(q, k, v, attn_mask=real(3, 4)))
table.sample("_native_multi_head_attention", call(x, x, x, 4, 2, qkv, bias, w, b), call(x, x, x, 4, 2, qkv, bias, w, b, need_weights=False))
table.sample("_transformer_encoder_layer_fwd", *[call(x, 4, 2, qkv, bias, w, b, use_gelu, first, 1e-3, positive(4), b, positive(4), b,
                                                      real(5, 4), real(5), real(4, 5), b) for use_gelu, first in ((True, False),
                                                      (False, True))])
table.sample("_transform_bias_rescale_qkv", call(real(2, 3, 12), bias, 2))
