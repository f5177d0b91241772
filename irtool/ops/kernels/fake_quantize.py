"""Quantization of floats that remain floats: numbers are rounded to those that integers would represent, as training and observers do."""
from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.checks import only
from irtool.ops.op import OpTable

table = OpTable("fake_quantize")


def steps_of(xp, x, scale, zero_point):
    """The integers that represent numbers, as floats, before they are clipped to the range of the dtype."""
    inverse = np.float32(1) / xp.asarray(scale, np.float32)
    zero_point = xp.asarray(zero_point)
    if zero_point.dtype.kind == "f":
        return xp.rint(x * inverse + zero_point.astype(np.float32))
    return xp.rint(x * inverse) + zero_point.astype(np.float32)


def fake(xp, x, scale, zero_point, low, high):
    """The numbers that the integers represent, and which of them were in the range."""
    only("fake_quantize", "f", x)
    if low > high:
        raise RunError("`quant_min` should be less than or equal to `quant_max`.")
    asked = isinstance(zero_point, int) or zero_point.ndim and zero_point.dtype.kind == "i"      # of others torch asks nothing
    if asked and not low <= xp.min(xp.asarray(zero_point)) <= xp.max(xp.asarray(zero_point)) <= high:
        raise RunError("`zero_point` must be between `quant_min` and `quant_max`.")
    steps = steps_of(xp, x, scale, zero_point)
    inside = (steps >= low) & (steps <= high)
    result = (xp.minimum(xp.maximum(steps, low), high) - xp.asarray(zero_point, np.float32)) * xp.asarray(scale, np.float32)
    return result.astype(x.dtype), inside


def along(xp, x, values, axis):
    """A value per slice, with the dimensions of the tensor. Raises RunError for another number of slices."""
    if not 0 <= axis < x.ndim:
        raise RunError("`axis` must be between 0 and number of dimensions of input")
    if values.shape != (x.shape[axis],):
        raise RunError("dimensions of scale and zero-point are not consistent with input tensor")
    return values.reshape([-1 if k == axis else 1 for k in range(x.ndim)])


@table.op("aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor",
          "aten::fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int "
          "quant_max) -> Tensor")
def fake_quantize_per_tensor_affine(xp, self, scale, zero_point, quant_min, quant_max):
    """The numbers that integers of a range would represent."""
    return fake(xp, self, scale, zero_point, quant_min, quant_max)[0]


@table.op("aten::fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) "
          "-> (Tensor output, Tensor mask)")
def fake_quantize_per_tensor_affine_cachemask(xp, self, scale, zero_point, quant_min, quant_max):
    """The same, and which numbers were in the range."""
    return fake(xp, self, scale, zero_point, quant_min, quant_max)


@table.op("aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) "
          "-> Tensor")
def fake_quantize_per_channel_affine(xp, self, scale, zero_point, axis, quant_min, quant_max):
    """The numbers that integers of a range would represent, with a scale for each slice."""
    return fake(xp, self, along(xp, self, scale, axis), along(xp, self, zero_point, axis), quant_min, quant_max)[0]


@table.op("aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int "
          "quant_max) -> (Tensor output, Tensor mask)")
def fake_quantize_per_channel_affine_cachemask(xp, self, scale, zero_point, axis, quant_min, quant_max):
    """The same, and which numbers were in the range."""
    return fake(xp, self, along(xp, self, scale, axis), along(xp, self, zero_point, axis), quant_min, quant_max)

table.none_batched("scales are of whole tensors, a batch dimension included",
                   but="fake_quantize_per_tensor_affine fake_quantize_per_tensor_affine_cachemask")
