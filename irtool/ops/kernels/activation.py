"""Activation functions and their gradients. Float only where torch says so; float16 is computed in float32 and rounded once."""
import math

from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.arrays import as_array, generator, title, wrap_dim
from irtool.ops.checks import fit, only, row_major, widen
from irtool.ops.kernels.pointwise_binary import within
from irtool.ops.op import OpTable
from irtool.ops.promotion import PROMOTE

table = OpTable("activation")

SIXTH = 0.1666666716337204
"""1 / 6 as a float: torch's slope of hardsigmoid, also where tensors are double."""


def _float_only(name, kinds="f"):
    """Decorator: refuses other dtypes under the name of torch's kernel, computes float16 in float32, returns the input's dtype."""
    def wrap(kernel):
        def checked(xp, self, *args):
            only(name, kinds, self)
            wide = widen(xp, self)
            if wide is not self:
                args = tuple(widen(xp, a) if hasattr(a, "dtype") else a for a in args)
            return kernel(xp, wide, *args).astype(self.dtype, copy=False)
        checked.__doc__ = kernel.__doc__
        return checked
    return wrap


def _define(schemas, kernel_name, kinds="f", fits=""):
    """`table.op` with `_float_only` below it."""
    def wrap(kernel):
        return table.define(schemas, _float_only(kernel_name, kinds)(kernel), doc=kernel.__doc__ or "", fits=fits)
    return wrap


def _sigmoid(xp, x):
    return 1 / (1 + xp.exp(-x))


def _softplus(xp, x):
    """log(1 + exp(x)) without overflow."""
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))


def _erf(xp, x):
    from irtool.ops import OPS

    return OPS["aten::erf"].kernel(xp, x)


# ---- kinked

@table.op("aten::relu(Tensor self) -> Tensor")
def relu(xp, self):
    """max(x, 0); -0.0 and nan stay."""
    if self.dtype.kind == "b":
        raise RunError("Boolean inputs not supported for relu")
    only("clamp_min_scalar_cpu", "iuf", self)
    return within(xp, self, self.dtype.type(0), None)


def _clamp(xp, x, low, high):
    return within(xp, x, as_array(low, x.dtype), as_array(high, x.dtype))


@table.op("aten::relu6(Tensor self) -> Tensor")
def relu6(xp, self):
    """x clamped to [0, 6]."""
    if self.dtype.kind == "b":
        raise RunError("Bool inputs not supported for hardtanh")
    return _clamp(xp, self, 0, 6)


def _limit(number, dtype):
    """A known limit as torch reads it: for integers, without its fraction. Raises torch's error for one that the dtype cannot represent."""
    if not isinstance(number, int | float | complex):
        return number
    if dtype.kind not in "iu":
        return fit(number, dtype)
    whole = int(fit(number, np.dtype(np.int64)))
    if dtype.kind == "u" and whole < 0:
        raise RunError("cannot do hardtanh on an unsigned type with negative limits")
    return whole


@table.op("aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor")
def hardtanh(xp, self, min_val, max_val):
    """x clamped to [min_val, max_val]."""
    if self.dtype.kind == "b":
        raise RunError("Bool inputs not supported for hardtanh")
    low, high = (_limit(number, self.dtype) for number in (min_val, max_val))
    only("clamp_scalar_cpu", "iuf", self)
    if self.dtype.kind in "iu":
        low, high = (fit(number, self.dtype) if isinstance(number, int) else number for number in (low, high))
    return _clamp(xp, self, low, high)


@table.op("aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor")
def hardtanh_backward(xp, grad_output, self, min_val, max_val):
    """Gradient of hardtanh."""
    return xp.where((self <= min_val) | (self >= max_val), grad_output.dtype.type(0), grad_output)


@table.op("aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", fits="threshold+ value")
def threshold(xp, self, threshold, value):
    """x where above the threshold (or nan), `value` elsewhere."""
    only("threshold_cpu", "iuf", self)
    return xp.where(self <= as_array(threshold, self.dtype), as_array(value, self.dtype), self)


@table.op("aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor")
def threshold_backward(xp, grad_output, self, threshold):
    """Gradient of threshold, and of relu with 0."""
    return xp.where(self <= threshold, grad_output.dtype.type(0), grad_output)


@_define("aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", "leaky_relu_cpu", fits="negative_slope+")
def leaky_relu(xp, self, negative_slope):
    """x above 0, negative_slope * x below."""
    return xp.where(self > 0, self, self * self.dtype.type(negative_slope))


@table.op("aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor")
def leaky_relu_backward(xp, grad_output, self, negative_slope, self_is_result):
    """Gradient of leaky_relu."""
    return xp.where(self > 0, grad_output, grad_output * grad_output.dtype.type(negative_slope))


def _prelu_weight(self, weight):
    if self.dtype != weight.dtype:
        raise RunError("prelu: Type promoting not supported")
    channels = self.shape[1] if self.ndim >= 2 else 1
    if weight.ndim > 1:
        raise RunError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if weight.size not in (1, channels):
        raise RunError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.size} and channel size = "
                       f"{channels}.")
    if weight.ndim == 0 or self.ndim < 2:
        return weight.reshape(()) if weight.ndim == 0 or self.ndim == 0 else weight
    return weight.reshape((1, -1) + (1,) * (self.ndim - 2))


@table.op("aten::prelu(Tensor self, Tensor weight) -> Tensor")
def prelu(xp, self, weight):
    """x above 0, weight * x below, one weight for all or per channel."""
    return xp.where(self > 0, self, self * _prelu_weight(self, weight))


@table.op("aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor")
def prelu_kernel(xp, self, weight):
    """prelu with a weight that broadcasts."""
    return xp.where(self > 0, self, self * weight)


@table.op("aten::_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)")
def prelu_kernel_backward(xp, grad_output, self, weight):
    """Gradients of _prelu_kernel, the weight's not yet summed."""
    zero = grad_output.dtype.type(0)
    return (xp.where(self > 0, grad_output, grad_output * weight), xp.where(self > 0, zero, self * grad_output))


@_define("aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", "hardshrink_cpu", fits="lambd")
def hardshrink(xp, self, lambd):
    """0 within [-lambd, lambd], x outside."""
    return xp.where((self >= -lambd) & (self <= lambd), self.dtype.type(0), self)


@table.op("aten::hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor")
def hardshrink_backward(xp, grad_out, self, lambd):
    """Gradient of hardshrink."""
    return xp.where((self >= -lambd) & (self <= lambd), grad_out.dtype.type(0), grad_out)


@_define("aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", "softshrink_check", fits="lambd+")
def softshrink(xp, self, lambd):
    """x moved towards 0 by lambd, 0 within."""
    if not lambd >= 0:      # nan, too
        raise RunError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    largest = float(xp.finfo(self.dtype).max)
    if lambd > largest:
        raise RunError(f"lambda must be in range [0, {largest:g}] for input dtype {title(self.dtype)}, but found {lambd:g}")
    by = self.dtype.type(lambd)
    return xp.where(self > by, self - by, xp.where(self < -by, self + by, self * self.dtype.type(0)))


@table.op("aten::softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor")
def softshrink_backward(xp, grad_output, self, lambd):
    """Gradient of softshrink."""
    return hardshrink_backward.kernel(xp, grad_output, self, lambd)


@_define("aten::hardsigmoid(Tensor self) -> Tensor", "hardsigmoid_cpu")
def hardsigmoid(xp, self):
    """(x + 3) / 6 clamped to [0, 1]."""
    return _clamp(xp, self + 3, 0, 6) / self.dtype.type(6)


@table.op("aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor")
def hardsigmoid_backward(xp, grad_output, self):
    """Gradient of hardsigmoid."""
    return xp.where((self > -3) & (self < 3), grad_output * grad_output.dtype.type(SIXTH), grad_output.dtype.type(0))


@_define("aten::hardswish(Tensor self) -> Tensor", "hardswish_cpu")
def hardswish(xp, self):
    """x * hardsigmoid(x)."""
    return self * _clamp(xp, self + 3, 0, 6) / self.dtype.type(6)


@table.op("aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor")
def hardswish_backward(xp, grad_output, self):
    """Gradient of hardswish."""
    inner = grad_output * (self / grad_output.dtype.type(3) + grad_output.dtype.type(0.5))
    return xp.where(self <= -3, grad_output.dtype.type(0), xp.where(self < 3, inner, grad_output))


# ---- exponential

@_define("aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", "elu_cpu",
         fits="alpha+ scale+ input_scale+")
def elu(xp, self, alpha, scale, input_scale):
    """scale * x from 0 on, scale * alpha * (exp(input_scale * x) - 1) below."""
    kind = self.dtype.type
    return xp.where(self < 0, xp.expm1(self * kind(input_scale)) * kind(alpha * scale), self * kind(scale))


@table.op("aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) "
          "-> Tensor")
def elu_backward(xp, grad_output, alpha, scale, input_scale, is_result, self_or_result):
    """Gradient of elu from its input or its result."""
    x, kind = self_or_result, grad_output.dtype.type
    if is_result and not alpha >= 0:
        raise RunError("In-place elu backward calculation is triggered with a negative slope which is not supported. This is caused by "
                       "calling in-place forward function with a negative slope, please call out-of-place version instead.")
    if is_result:
        below = grad_output * kind(input_scale) * (x + kind(alpha * scale))
    else:
        below = grad_output * kind(input_scale * alpha * scale) * xp.exp(x * kind(input_scale))
    return xp.where(x <= 0, below, grad_output * kind(scale))


@_define("aten::celu(Tensor self, Scalar alpha=1.) -> Tensor", "elu_cpu", fits="alpha+")
def celu(xp, self, alpha):
    """elu with exp(x / alpha)."""
    if alpha == 0:
        raise RunError("ZeroDivisionError: alpha cannot be 0 for CELU")
    kind = self.dtype.type
    return xp.where(self < 0, xp.expm1(self * kind(1 / alpha)) * kind(alpha), self)


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@_define("aten::selu(Tensor self) -> Tensor", "elu_cpu")
def selu(xp, self):
    """elu with the constants that keep mean 0 and variance 1."""
    kind = self.dtype.type
    return xp.where(self > 0, self * kind(SELU_SCALE), xp.expm1(self) * kind(SELU_ALPHA * SELU_SCALE))


@_define("aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor", "GeluKernelImpl")
def gelu(xp, self, approximate):
    """x times the normal distribution function; `tanh`: its approximation."""
    kind = self.dtype.type
    if approximate == "none":
        return self * kind(0.5) * (1 + _erf(xp, self * kind(math.sqrt(0.5))))
    if approximate != "tanh":
        raise RunError("approximate argument must be either none or tanh.")
    inner = kind(math.sqrt(2 / math.pi)) * (self + kind(0.044715) * self * self * self)
    return kind(0.5) * self * (1 + xp.tanh(inner))


@table.op("aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor")
def gelu_backward(xp, grad_output, self, approximate):
    """Gradient of gelu."""
    kind = self.dtype.type
    if approximate == "none":
        cdf = kind(0.5) * (1 + _erf(xp, self * kind(math.sqrt(0.5))))
        return grad_output * (cdf + self * xp.exp(-kind(0.5) * self * self) * kind(1 / math.sqrt(2 * math.pi)))
    if approximate != "tanh":
        raise RunError("approximate argument must be either none or tanh.")
    x = self.astype(xp.float32) if self.dtype == xp.float16 else self       # squares of 256 and more do not fit half precision
    kind = x.dtype.type
    factor = kind(math.sqrt(2 / math.pi))
    bent = xp.tanh(factor * (x + kind(0.044715) * x * x * x))
    slope = factor * (1 + kind(3 * 0.044715) * x * x)
    whole = kind(0.5) * (1 + bent) + kind(0.5) * x * (1 - bent * bent) * slope
    return grad_output * whole.astype(self.dtype, copy=False)


@_define("aten::silu(Tensor self) -> Tensor", "silu_cpu", "fc")
def silu(xp, self):
    """x * sigmoid(x)."""
    return self / (1 + xp.exp(-self))


@table.op("aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor")
def silu_backward(xp, grad_output, self):
    """Gradient of silu."""
    s = _sigmoid(xp, self)
    return grad_output * s * (1 + self * (1 - s))


@_define("aten::mish(Tensor self) -> Tensor", "mish_cpu")
def mish(xp, self):
    """x * tanh(softplus(x))."""
    return self * xp.tanh(_softplus(xp, self))


@table.op("aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor")
def mish_backward(xp, grad_output, self):
    """Gradient of mish."""
    bent = xp.tanh(_softplus(xp, self))
    return grad_output * (bent + self * _sigmoid(xp, self) * (1 - bent * bent))


@_define("aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", "softplus_cpu", fits="beta+ threshold+")
def softplus(xp, self, beta, threshold):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""
    kind = self.dtype.type
    scaled = self * kind(beta)
    return xp.where(scaled > kind(threshold), self, xp.log1p(xp.exp(scaled)) / kind(beta))


@table.op("aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor")
def softplus_backward(xp, grad_output, self, beta, threshold):
    """Gradient of softplus."""
    kind = self.dtype.type
    scaled = self * kind(beta)
    return xp.where(scaled > kind(threshold), grad_output, grad_output * _sigmoid(xp, scaled))


@_define("aten::log_sigmoid(Tensor self) -> Tensor", "log_sigmoid_cpu")
def log_sigmoid(xp, self):
    """log(sigmoid(x)) without overflow."""
    return xp.minimum(self, 0) - xp.log1p(xp.exp(-xp.abs(self)))


@table.op("aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)")
def log_sigmoid_forward(xp, self):
    """log_sigmoid and exp(-|x|)."""
    return log_sigmoid.kernel(xp, self), xp.exp(-xp.abs(self))


@table.op("aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor")
def log_sigmoid_backward(xp, grad_output, self, buffer):
    """Gradient of log_sigmoid."""
    return grad_output * _sigmoid(xp, -self)


def _halves(self, dim):
    if not self.ndim:
        raise RunError("glu does not support 0-dimensional tensors")
    dim = wrap_dim(dim, self.ndim)
    extent = self.shape[dim]
    if extent % 2:
        raise RunError(f"Halving dimension must be even, but dimension {dim} is size {extent}")
    lead = (slice(None),) * dim
    return self[(*lead, slice(0, extent // 2))], self[(*lead, slice(extent // 2, None))], dim


@_define("aten::glu(Tensor self, int dim=-1) -> Tensor", "glu_cpu")
def glu(xp, self, dim):
    """First half of a dimension times the sigmoid of its second half."""
    first, second, _ = _halves(self, dim)
    return row_major(xp, first * _sigmoid(xp, second))


@table.op("aten::glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor")
def glu_backward(xp, grad_output, self, dim):
    """Gradient of glu."""
    first, second, dim = _halves(self, dim)
    s = _sigmoid(xp, second)
    return xp.concatenate([grad_output * s, grad_output * first * s * (1 - s)], dim)


# ---- gradients of pointwise functions, from their results

@table.op("aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", promote=PROMOTE)
def sigmoid_backward(xp, grad_output, output):
    """Gradient of sigmoid."""
    return grad_output * xp.conj((1 - output) * output)


@table.op("aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor", promote=PROMOTE)
def tanh_backward(xp, grad_output, output):
    """Gradient of tanh."""
    return grad_output * xp.conj(1 - output * output)


@table.op("aten::logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor")
def logit_backward(xp, grad_output, self, eps):
    """Gradient of logit: 0 (nan without eps) outside [eps, 1 - eps]."""
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    outside = grad_output.dtype.type(math.nan if eps is None else 0)
    return xp.where((self < low) | (self > high), outside, grad_output / (abs(self) * (1 - self)))      # of -0. as of 0.


# ---- random slopes

def _rrelu(xp, self, lower, upper, training, draw):
    if lower > upper:
        raise RunError(f"Lower bound should be less than or equal to the upper bound, but got {lower} and {upper}")
    only("rrelu_with_noise_out_cpu", "f", self)
    if not training:
        slope = self.dtype.type((lower + upper) / 2)
        return xp.where(self > 0, self, self * slope), None
    noise = xp.where(self <= 0, xp.asarray(generator(draw).uniform(lower, upper, self.shape)).astype(self.dtype), self.dtype.type(1))
    return self * noise, noise


@table.op("aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, "
          "Generator? generator=None) -> Tensor")
def rrelu(xp, self, lower, upper, training, generator):
    """leaky_relu with a slope drawn for each element in training, the mean slope otherwise."""
    return _rrelu(xp, self, lower, upper, training, generator)[0]


@table.op("aten::rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool "
          "training=False, Generator? generator=None) -> Tensor")
def rrelu_with_noise(xp, self, noise, lower, upper, training, generator):
    """rrelu that writes the slopes it drew."""
    result, drawn = _rrelu(xp, self, lower, upper, training, generator)
    if drawn is not None:
        noise[...] = drawn
    return result


@table.op("aten::rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, "
          "bool self_is_result) -> Tensor")
def rrelu_with_noise_backward(xp, grad_output, self, noise, lower, upper, training, self_is_result):
    """Gradient of rrelu."""
    if training and upper - lower > 1e-6:
        return grad_output * noise
    return leaky_relu_backward.kernel(xp, grad_output, self, (lower + upper) / 2, self_is_result)


# ---- dtypes that torch serves

table.takes("hf=", "prelu _prelu_kernel _prelu_kernel_backward")
table.takes("hf+", "hardtanh_backward leaky_relu_backward hardshrink_backward softshrink_backward hardsigmoid_backward hardswish_backward "
             "elu_backward gelu_backward mish_backward softplus_backward logit_backward")
table.takes("uilhf+", "threshold_backward")
table.takes("hfc+", "sigmoid_backward tanh_backward")
table.takes("uilhf", "relu6")
table.takes("hfc+", "silu_backward")
table.laid_out("C", "log_sigmoid")
table.laid_out("CC", "log_sigmoid_forward")
table.takes("hf", "glu_backward log_sigmoid_backward")
table.laid_out("P", "glu")
table.laid_out("C", "glu_backward")
