"""Numbers to quantized tensors and back: quantize, dequantize, integers, scales and zero points; quantization that stays in floats."""
from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.arrays import title
from irtool.ops.op import OpTable
from irtool.ops.quantized import Quantized, chosen_for, limits, name_of, quantized

table = OpTable("quantized")


def floats(x, name):
    """The float32 array that is quantized. Raises RunError for anything else."""
    if isinstance(x, Quantized) or x.dtype != np.float32:
        what = "a quantized tensor" if isinstance(x, Quantized) else title(x.dtype)
        raise RunError(f"{name} expects a Float Tensor, got {what}", code="E0409")
    return x


def quantized_of(x):
    """The quantized tensor that an operator takes. Raises RunError for an array."""
    if not isinstance(x, Quantized):
        raise RunError("expected a quantized tensor, got one of floats or integers", code="E0409")
    return x


def refuse_outside(low, high, zero_points, name):
    """Refuses zero points that are no integers of the dtype."""
    zero_points = np.asarray(zero_points)
    if zero_points.size and zero_points.min() < low:
        raise RunError(f"{name}: zero_point {zero_points.min()} is below lower bound.")
    if zero_points.size and zero_points.max() > high:
        raise RunError(f"{name}: zero_point {zero_points.max()} is above upper bound.")


@table.op("aten::quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor",
          "aten::quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ScalarType dtype) -> Tensor")
def quantize_per_tensor(xp, self, scale, zero_point, dtype):
    """Integers that represent the numbers, with one scale and zero point."""
    name = name_of(dtype)
    refuse_outside(*limits(name), int(zero_point), "quantize_tensor_per_tensor_affine")
    return quantized(floats(self, "quantize_per_tensor"), float(scale), int(zero_point), name)


@table.op("aten::quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, ScalarType dtype) -> Tensor[]")
def quantize_tensors(xp, tensors, scales, zero_points, dtype):
    """Each tensor with its scale and zero point."""
    return [quantize_per_tensor.kernel(xp, each, scales[k], zero_points[k], dtype) for k, each in enumerate(tensors)]


@table.op("aten::quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> Tensor")
def quantize_per_channel(xp, self, scales, zero_points, axis, dtype):
    """Integers that represent the numbers, with a scale and zero point for each slice along a dimension."""
    name = name_of(dtype)
    x = floats(self, "quantize_per_channel")
    if not 0 <= axis < x.ndim:
        raise RunError("Channel axis out of range in per channel affine quantization.")
    if scales.shape != (x.shape[axis],) or zero_points.shape != scales.shape:
        raise RunError("length of scales must equal to channel")
    if zero_points.dtype.kind == "f":
        return quantized(x, scales.astype(np.float32), zero_points.astype(np.float32), name, axis)
    refuse_outside(*limits(name), zero_points, "quantize_tensor_per_channel_affine")
    return quantized(x, scales.astype(np.float64), zero_points.astype(np.int64), name, axis)


@table.op("aten::quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor")
def quantize_per_tensor_dynamic(xp, self, dtype, reduce_range):
    """Integers that represent the numbers, with a scale and zero point that fit the least and the largest."""
    name = name_of(dtype)
    if name == "qint32":
        raise RunError("dtype qint32 is not supported by quantize_per_tensor_dynamic", code="E0409")
    x = floats(self, "quantize_per_tensor_dynamic")
    return quantized(x, *chosen_for(x, name, reduce_range), name)


@table.op("aten::dequantize.self(Tensor self) -> Tensor", "aten::dequantize.tensor(Tensor qtensor) -> Tensor")
def dequantize(xp, self):
    """The numbers, as float32; a plain tensor as float32, itself if it is so."""
    return self.dequantize() if isinstance(self, Quantized) else self.astype(np.float32, copy=False)


@table.op("aten::dequantize.tensors(Tensor[] tensors) -> Tensor[]", "aten::dequantize.list(Tensor[] qtensors) -> Tensor[]")
def dequantize_tensors(xp, tensors):
    """The numbers of each tensor."""
    return [quantized_of(each).dequantize() for each in tensors]


table.define("aten::int_repr(Tensor self) -> Tensor", lambda xp, self: quantized_of(self).int_repr(), doc="The integers.")
table.define("aten::q_scale(Tensor self) -> float", lambda xp, self: quantized_of(self).q_scale(), doc="The scale.")
table.define("aten::q_zero_point(Tensor self) -> int", lambda xp, self: quantized_of(self).q_zero_point(),
             doc="The integer that stands for 0.")
table.define("aten::q_per_channel_scales(Tensor self) -> Tensor", lambda xp, self: quantized_of(self).sliced("q_per_channel_scales").scale,
             doc="The scales of the slices.")
table.define("aten::q_per_channel_zero_points(Tensor self) -> Tensor",
             lambda xp, self: quantized_of(self).sliced("q_per_channel_zero_points").zero_point, doc="The zero points of the slices.")
table.define("aten::q_per_channel_axis(Tensor self) -> int", lambda xp, self: quantized_of(self).sliced("q_per_channel_axis").axis,
             doc="The dimension of the slices.")


@table.op("aten::_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor")
def make_per_tensor(xp, self, scale, zero_point):
    """The quantized tensor of integers."""
    return Quantized(self.copy(), f"q{self.dtype.name}", scale, zero_point)


@table.op("aten::_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int axis) -> Tensor")
def make_per_channel(xp, self, scale, zero_point, axis):
    """The quantized tensor of integers, with a scale for each slice."""
    return Quantized(self.copy(), f"q{self.dtype.name}", scale.astype(np.float64), zero_point.astype(np.int64), axis)

table.none_batched("scales are of whole tensors, a batch dimension included", but="dequantize.self dequantize.tensor")
