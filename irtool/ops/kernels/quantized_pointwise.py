"""Quantized tensors joined and mapped element by element: sums, products, activations."""
from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.kernels.quantized import quantized_of
from irtool.ops.op import OpTable
from irtool.ops.quantized import Quantized, limits, quantized, rounded
from irtool.ops.tensor_facts import INTEGERS

table = OpTable("quantized_pointwise")


def whole(x):
    """The tensor, quantized per tensor. Raises RunError for any other."""
    return quantized_of(x).whole("quantized operators")


def pair(a, b):
    """Two tensors of one dtype. Raises RunError."""
    a, b = whole(a), whole(b)
    if a.name != b.name:
        raise RunError("Both inputs have to have the same dtype", code="E0409")
    return a, b


def relued(numbers, has_relu):
    """The larger of each number and 0, if there is a relu."""
    return np.maximum(numbers, np.float32(0)) if has_relu else numbers


def mapped(x, function, scale=None, zero_point=None):
    """A quantized tensor of function(number), with another scale and zero point if they are given."""
    x = whole(x)
    scale, zero_point = (x.scale, x.zero_point) if scale is None else (scale, zero_point)
    return quantized(function(x.dequantize()), scale, zero_point, x.name)


def cut(x, low, high):
    """A quantized tensor clipped to `low` and `high` (numbers, or None), with the same scale."""
    x = whole(x)
    low, high = [None if bound is None else int(quantized(np.float32(bound), x.scale, x.zero_point, x.name).ints) for bound in (low, high)]
    ints = x.ints if low is None else np.maximum(x.ints, x.ints.dtype.type(low))
    return x.with_ints(ints.copy() if high is None else np.minimum(ints, ints.dtype.type(high)))


# ---- two tensors
def _add(has_relu):
    def kernel(xp, qa, qb, scale, zero_point):
        a, b = pair(qa, qb)
        return quantized(relued(a.dequantize() + b.dequantize(), has_relu), scale, zero_point, a.name)
    return kernel


def _mul(has_relu):
    def kernel(xp, qa, qb, scale, zero_point):
        a, b = pair(qa, qb)
        factor = np.float32(a.scale) * np.float32(b.scale) * (np.float32(1) / np.float32(scale))
        steps = (a.shifted() * b.shifted()).astype(np.float32) * factor
        ints = rounded(steps, zero_point, a.name, zero_point if has_relu else None)
        return Quantized(ints, a.name, float(scale), int(zero_point))
    return kernel


for _relu in ("", "_relu"):
    table.define(f"quantized::add{_relu}(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc", _add(bool(_relu)), doc="A sum.")
    table.define(f"quantized::mul{_relu}(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc", _mul(bool(_relu)),
                 doc="A product.")


@table.op("quantized::matmul(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")
def matmul(xp, qa, qb, scale, zero_point):
    """A matrix product."""
    a, b = pair(qa, qb)
    sums = a.shifted().astype(np.float64) @ b.shifted().astype(np.float64)
    factor = np.float32(a.scale) * np.float32(b.scale) / np.float32(scale)
    return Quantized(rounded(sums.astype(np.float32) * factor, zero_point, a.name), a.name, float(scale), int(zero_point))


# ---- a tensor and a number
def added_number(x, number, has_relu):
    """A tensor plus a number: another zero point, and another scale if the integers' range is too small."""
    x = whole(x)
    low, high = limits(x.name)
    step = int(np.rint(float(number) / x.scale))
    zero = x.zero_point - step
    if low <= zero <= high:
        ints = np.maximum(x.ints, x.ints.dtype.type(zero)) if has_relu else x.ints.copy()
        return Quantized(ints, x.name, x.scale, zero)
    span = float(high) - zero if zero < low else float(zero) - low
    scale, zero = span / (float(high) - low) * x.scale, low if zero < low else high
    steps = (x.shifted() + step).astype(np.float32) * (np.float32(x.scale) * (np.float32(1) / np.float32(scale)))
    return Quantized(rounded(steps, zero, x.name, zero if has_relu else None), x.name, scale, zero)


def scaled(x, number, has_relu):
    """A tensor times a number: another scale; of a negative number, the integers turned around."""
    x = whole(x)
    low, high = limits(x.name)
    number = float(number)
    if number > 0:
        result = Quantized(x.ints.copy(), x.name, number * x.scale, x.zero_point)
    elif number < 0:
        turned = (low + high - x.ints.astype(np.int64)).astype(INTEGERS[x.name])
        result = Quantized(turned, x.name, -number * x.scale, high - (x.zero_point - low))
    else:
        return Quantized(np.zeros_like(x.ints), x.name, 1.0, 0)
    return result.with_ints(np.maximum(result.ints, result.ints.dtype.type(result.zero_point))) if has_relu else result


for _word, _function in (("add", added_number), ("mul", scaled)):
    for _relu in ("", "_relu"):
        table.define((f"quantized::{_word}_scalar{_relu}(Tensor qa, Scalar b) -> Tensor qc",
                      f"quantized::{_word}{_relu}.Scalar(Tensor qa, Scalar b) -> Tensor qc"),
                     lambda xp, qa, b, function=_function, has_relu=bool(_relu): function(qa, b, has_relu), doc="With a number.")
        table.define(f"quantized::{_word}_scalar{_relu}.Tensor(Tensor qa, Tensor b) -> Tensor qc",
                     lambda xp, qa, b, function=_function, has_relu=bool(_relu): function(qa, b.item(), has_relu),
                     doc="With the number in a tensor.")


# ---- several tensors
def _cat(has_relu):
    def kernel(xp, qx, dim, scale, zero_point):
        tensors = [whole(each) for each in qx]
        first = tensors[0]
        scale = first.scale if scale is None else scale
        zero_point = first.zero_point if zero_point is None else zero_point
        pieces = [each.ints if (each.scale, each.zero_point) == (scale, zero_point) and not has_relu else
                  quantized(relued(each.dequantize(), has_relu), scale, zero_point, first.name).ints for each in tensors]
        return Quantized(np.concatenate(pieces, dim), first.name, float(scale), int(zero_point))
    return kernel


for _relu in ("", "_relu"):
    table.define(f"quantized::cat{_relu}(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor", _cat(bool(_relu)),
                 doc="Tensors one behind the other, with one scale.")


# ---- activations
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    with np.errstate(over="ignore"):
        return (np.float32(1) / (np.float32(1) + np.exp(-x))).astype(np.float32)


def elu(x, alpha, scale, input_scale):
    """x where it is positive, alpha * (exp(x) - 1) elsewhere, each scaled."""
    positive, negative = np.float32(scale), np.float32(alpha) * np.float32(scale)
    return np.where(x >= 0, x * positive, np.expm1(np.minimum(x, 0) * np.float32(input_scale)) * negative).astype(np.float32)


def hardswish(x):
    """x * min(max(x + 3, 0), 6) / 6."""
    return x * np.minimum(np.maximum(x + np.float32(3), np.float32(0)), np.float32(6)) / np.float32(6)


@table.op("quantized::sigmoid(Tensor qx, float output_scale, int output_zero_point) -> Tensor")
def quantized_sigmoid(xp, qx, scale, zero_point):
    """The sigmoid function."""
    return mapped(qx, sigmoid, scale, zero_point)


@table.op("quantized::hardswish(Tensor input, float output_scale, int output_zero_point) -> Tensor")
def quantized_hardswish(xp, input, scale, zero_point):
    """The hard swish function."""
    return mapped(input, hardswish, scale, zero_point)


@table.op("quantized::elu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) "
          "-> Tensor")
def quantized_elu(xp, self, output_scale, output_zero_point, alpha, scale, input_scale):
    """The exponential linear unit."""
    return mapped(self, lambda x: elu(x, alpha, scale, input_scale), output_scale, output_zero_point)


@table.op("quantized::celu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1) -> Tensor")
def quantized_celu(xp, self, output_scale, output_zero_point, alpha):
    """The continuously differentiable exponential linear unit."""
    return mapped(self, lambda x: elu(x, alpha, 1, 1 / alpha), output_scale, output_zero_point)


@table.op("quantized::leaky_relu(Tensor qx, Scalar negative_slope, bool inplace, float output_scale, int output_zero_point) -> Tensor")
def quantized_leaky_relu(xp, qx, negative_slope, inplace, output_scale, output_zero_point):
    """x where it is positive, a fraction of it elsewhere."""
    return mapped(qx, lambda x: np.where(x > 0, x, x * np.float32(negative_slope)), output_scale, output_zero_point)


table.define("quantized::relu6(Tensor qx, bool inplace=False) -> Tensor", lambda xp, qx, inplace: cut(qx, 0, 6), doc="min(max(x, 0), 6).")
table.define("quantized::clamp(Tensor qx, Scalar? min=None, Scalar? max=None) -> Tensor qy", lambda xp, qx, min, max: cut(qx, min, max),
             doc="Between two bounds.")
@table.op("quantized::softmax(Tensor qx, int dim, float output_scale, int output_zero_point) -> Tensor")
def quantized_softmax(xp, qx, dim, output_scale, output_zero_point):
    """exp(x) divided by its sum along a dimension."""
    def softmax(x):
        powers = np.exp(x - x.max(dim, keepdims=True))
        return powers / powers.sum(dim, keepdims=True)
    return mapped(qx, softmax, output_scale, output_zero_point)


# ---- normalization with statistics that are known
def _batch_norm(has_relu):
    def kernel(xp, qx, weight, bias, mean, var, eps, scale, zero_point):
        x = whole(qx)
        factor = np.float32(1) / np.sqrt(var + np.float32(eps))
        factor = factor if weight is None else factor * weight
        shift = -mean * factor if bias is None else bias - mean * factor
        sizes = [-1 if k == 1 else 1 for k in range(x.ndim)]
        steps = x.shifted().astype(np.float32) * (factor * np.float32(x.scale) / np.float32(scale)).reshape(sizes)
        steps = steps + (shift / np.float32(scale)).reshape(sizes)
        return Quantized(rounded(steps, zero_point, x.name, zero_point if has_relu else None), x.name, float(scale), int(zero_point))
    return kernel


for _rank in ("", "1d", "2d", "3d"):
    for _relu in ("", "_relu"):
        table.define(f"quantized::batch_norm{_rank}{_relu}(Tensor qx, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, "
                     "float output_scale, int output_zero_point) -> Tensor", _batch_norm(bool(_relu)),
                     doc="Batch normalization by statistics that are known.")

table.none_batched("scales are of whole tensors, a batch dimension included")
