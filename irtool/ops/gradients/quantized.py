"""Quantized tensors have no gradients, as in torch."""
from irtool.ops.kernels import quantized, quantized_packed, quantized_pointwise, quantized_recurrent

for _family in (quantized, quantized_packed, quantized_pointwise, quantized_recurrent):
    _family.table.no_gradient("rounding to integers has no slope, and torch gives none")
