"""No batching rules: `vmap` does not hide dimensions of quantized tensors, nor of what is quantized inside."""
from __future__ import annotations

from irtool.ops.kernels import fake_quantize, quantized, quantized_packed, quantized_pointwise, quantized_recurrent

for _family in (fake_quantize, quantized, quantized_packed, quantized_pointwise, quantized_recurrent):
    _family.table.not_batched("scales are of whole tensors, a batch dimension included",
                              " ".join(name for op in _family.table.ops for name in op.names))
