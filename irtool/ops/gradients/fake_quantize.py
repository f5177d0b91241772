"""Gradients of quantization that stays in floats: rounding counts as the identity, cutting to the range as a clamp."""
from irtool.ops.kernels.fake_quantize import table
from irtool.ops.tensor import torch


@table.derivative("fake_quantize_per_tensor_affine fake_quantize_per_tensor_affine.tensor_qparams")
def fake_quantize_per_tensor_affine_gradient(grad, self, scale, zero_point, quant_min, quant_max):
    steps = torch.round(self * (1 / scale)) + zero_point
    return grad * ((steps >= quant_min) & (steps <= quant_max))


@table.derivative("fake_quantize_per_channel_affine")
def fake_quantize_per_channel_affine_gradient(grad, self, scale, zero_point, axis, quant_min, quant_max):
    sizes = [1] * self.dim()
    sizes[axis] = -1
    steps = torch.round(self * (1 / scale).reshape(sizes)) + zero_point.reshape(sizes)
    return grad * ((steps >= quant_min) & (steps <= quant_max)), None, None


table.unsupported("a mask is asked for by gradients alone", " ".join(name for op in table.ops for name in op.names if "cachemask" in name))


table.no_gradient_for("scale", "torch has none either", "fake_quantize_per_tensor_affine.tensor_qparams fake_quantize_per_channel_affine")
