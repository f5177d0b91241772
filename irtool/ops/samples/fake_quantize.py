"""Samples of quantization that stays in floats: with steps so small that finite differences do not see them."""
from irtool.ops.array_library import np
from irtool.ops.kernels.fake_quantize import table
from irtool.ops.samples.draw import call, ints, real

LOW, HIGH = -2**31, 2**31 - 1
TINY = 1e-9

table.sample("fake_quantize_per_tensor_affine", call(real(2, 3), TINY, 5, LOW, HIGH),
             call(real(2, 3), 0.25, 1, 0, 3).rough("rounding counts as the identity"))
table.sample("fake_quantize_per_tensor_affine.tensor_qparams", call(real(2, 3), np.array([TINY]), ints(5), LOW, HIGH))
table.sample("fake_quantize_per_channel_affine", call(real(2, 3), np.array([TINY, 2 * TINY]), ints(5, -3), 0, LOW, HIGH))
