"""Gradients of pointwise operators of two and three tensors. Each operand's gradient is summed down to its own shape."""
from __future__ import annotations

from irtool.ops.kernels.pointwise_binary import table
from irtool.ops.tensor import Tensor, torch

table.pointwise("add.Tensor add.Scalar", lambda grad, alpha: (grad, grad * alpha))
table.pointwise("sub.Tensor subtract.Tensor sub.Scalar subtract.Scalar", lambda grad, alpha: (grad, -grad * alpha))
table.pointwise("rsub.Tensor rsub.Scalar", lambda grad, alpha: (-grad * alpha, grad))


@table.pointwise("_add_relu.Tensor _add_relu.Scalar")
def add_relu_gradient(grad, alpha, result):
    passed = torch.threshold_backward(grad, result, 0)
    return passed, passed * alpha


table.slope("mul.Tensor multiply.Tensor mul.Scalar multiply.Scalar", lambda self, other: (other, self))
table.pointwise("div.Tensor divide.Tensor true_divide.Tensor div.Scalar divide.Scalar true_divide.Scalar",
                lambda grad, other, result: (grad / other, -grad * (result / other)))


@table.pointwise("div.Tensor_mode divide.Tensor_mode div.Scalar_mode divide.Scalar_mode")
def div_mode_gradient(grad, other, rounding_mode, result):
    none = torch.zeros_like(grad)
    return (grad / other if rounding_mode is None else none), (-grad * (result / other) if rounding_mode is None else none)


table.pointwise("remainder.Tensor remainder.Scalar",
                lambda grad, self, other: (grad, -grad * torch.div(self, other, rounding_mode="floor")))
table.derivative("remainder.Scalar_Tensor", lambda grad, self, other: -grad * torch.floor(other.reciprocal() * self))
table.pointwise("fmod.Tensor fmod.Scalar", lambda grad, self, other: (grad, -grad * torch.div(self, other, rounding_mode="trunc")))


def power_slopes(grad: Tensor, base: Tensor, power: Tensor, result: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of base ** power, which is the result. What a derivative would be nan or infinite of is hidden before the product, too."""
    flat = power == 0
    slope = grad * (power * torch.pow(base, power - 1)).masked_fill(flat, 0)
    wide = base.to(result.dtype) if result.is_complex() else base
    still = (base == 0) & (torch.real(power) >= 0)
    growth = grad * (result * wide.log()).masked_fill(still, 0)
    return torch.where(flat, torch.zeros_like(slope), slope), torch.where(still, torch.zeros_like(growth), growth)


table.pointwise("pow.Tensor_Tensor", lambda grad, self, exponent, result: power_slopes(grad, self, exponent, result))
table.pointwise("float_power.Tensor_Tensor",
                lambda grad, self, exponent, result: power_slopes(grad, self.to(result.dtype), exponent.to(result.dtype), result))


@table.derivative("float_power.Tensor_Scalar")
def float_power_number_gradient(grad, self, exponent, result):
    return torch.zeros_like(grad) if exponent == 0 else grad * (torch.pow(self.to(result.dtype), exponent - 1) * exponent)


@table.derivative("pow.Tensor_Scalar")
def pow_number_gradient(grad, self, exponent):
    return torch.zeros_like(grad) if exponent == 0 else grad * (torch.pow(self, exponent - 1) * exponent)


@table.derivative("pow.Scalar float_power.Scalar")
def pow_of_number_gradient(grad, self, exponent, result):
    exact = torch.complex128 if grad.is_complex() else torch.float64        # the number may be larger than the tensor's can be
    slope = result * torch.log(torch.scalar_tensor(self, dtype=exact))
    still = torch.real(exponent) >= 0
    return torch.where(still, torch.zeros_like(grad), grad * slope.masked_fill(still, 0)) if self == 0 else grad * slope


table.pointwise("ldexp.Tensor", lambda grad, other, result: (torch.ldexp(grad, other), grad * result * 0.6931471805599453))


@table.pointwise("atan2 arctan2")
def atan2_gradient(grad, self, other):
    square = self * self + other * other
    scaled = grad / square.masked_fill(square == 0, float("inf"))
    return scaled * other, -scaled * self


table.slope("hypot", lambda self, other, result: (self / result, other / result))


@table.pointwise("copysign.Tensor copysign.Scalar")
def copysign_gradient(grad, self, result):
    ratio = torch.where(self == 0, torch.zeros_like(grad), result / self)
    return grad * ratio, torch.zeros_like(grad)


table.pointwise("logaddexp", lambda grad, self, other: (grad / (torch.exp(other - self) + 1), grad / (torch.exp(self - other) + 1)))
table.pointwise("logaddexp2", lambda grad, self, other: (grad / (torch.exp2(other - self) + 1), grad / (torch.exp2(self - other) + 1)))


@table.pointwise("xlogy.Tensor special_xlogy")
def xlogy_gradient(grad, self, other):
    still = (self == 0) & (other <= 0)
    slope = torch.where(still, torch.zeros_like(grad), torch.xlogy(grad, other))
    return slope, grad * (self / other)


table.derivative("xlogy.Scalar_Self special_xlogy.self_scalar", lambda grad, self, other: grad * self / other)


@table.derivative("xlogy.Scalar_Other special_xlogy.other_scalar")
def xlogy_number_gradient(grad, self, other):
    slope = torch.xlogy(grad, other)
    if other <= 0:
        slope = torch.where(self == 0, torch.zeros_like(grad), slope)
    return slope


@table.pointwise("special_xlog1py")
def xlog1py_gradient(grad, self, other):
    still = (self == 0) & (other <= -1)
    slope = torch.where(still, torch.zeros_like(grad), torch.special_xlog1py(grad, other))
    return slope, grad * (self / (other + 1))


table.slope("special_xlog1py.self_scalar", lambda self, other: (other + 1).reciprocal() * self)


@table.derivative("special_xlog1py.other_scalar")
def xlog1py_number_gradient(grad, self, other):
    slope = torch.full_like(grad, other).log1p()
    if other <= -1:
        slope = torch.where(self == 0, torch.zeros_like(grad), slope)
    return grad * slope


@table.pointwise("maximum max.other")
def maximum_gradient(grad, self, other):
    shared = torch.where(self == other, grad / 2, grad)
    none = torch.zeros_like(grad)
    return torch.where(self < other, none, shared), torch.where(self > other, none, shared)


@table.pointwise("minimum min.other")
def minimum_gradient(grad, self, other):
    shared = torch.where(self == other, grad / 2, grad)
    none = torch.zeros_like(grad)
    return torch.where(self > other, none, shared), torch.where(self < other, none, shared)


@table.gradient("fmax")
def fmax_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()
    mine = (self >= other) | other.isnan()

    def backward(grad: Tensor):
        none = torch.zeros_like(grad)
        return torch.where(mine, grad, none).sum_to_size(self_size), torch.where(mine, none, grad).sum_to_size(other_size)

    return torch.fmax(self, other), backward


@table.gradient("fmin")
def fmin_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()
    mine = (self <= other) | other.isnan()

    def backward(grad: Tensor):
        none = torch.zeros_like(grad)
        return torch.where(mine, grad, none).sum_to_size(self_size), torch.where(mine, none, grad).sum_to_size(other_size)

    return torch.fmin(self, other), backward


@table.derivative("clamp clip")
def clamp_gradient(grad, self, min, max):
    self_grad = grad
    if min is not None:
        self_grad = torch.where(self >= min, self_grad, torch.zeros_like(grad))
    if max is not None:
        self_grad = torch.where(self <= max, self_grad, torch.zeros_like(grad))
    return self_grad


@table.derivative("clamp.Tensor clip.Tensor")
def clamp_tensor_gradient(grad, self, min, max, self_size):
    none = torch.zeros_like(grad)
    self_grad = grad
    min_grad: Tensor | None = None
    max_grad: Tensor | None = None
    if min is not None:
        self_grad = torch.where(self >= min, self_grad, none)
        low = torch.where(self < min, grad, none)
        if max is not None:
            low = torch.where(min < max, low, none)
        min_grad = low.sum_to_size(min.size())
    if max is not None:
        self_grad = torch.where(self <= max, self_grad, none)
        high = self > max
        if min is not None:
            high = high | (max < min)
        max_grad = torch.where(high, grad, none).sum_to_size(max.size())
    return self_grad.sum_to_size(self_size), min_grad, max_grad


@table.pointwise("clamp_min.Tensor aten::clamp_min")
def clamp_min_tensor_gradient(grad, self, min):
    none = torch.zeros_like(grad)
    return torch.where(self >= min, grad, none), torch.where(self < min, grad, none)


@table.pointwise("clamp_max.Tensor aten::clamp_max")
def clamp_max_tensor_gradient(grad, self, max):
    none = torch.zeros_like(grad)
    return torch.where(self <= max, grad, none), torch.where(self > max, grad, none)


@table.pointwise("where.self where.ScalarSelf where.ScalarOther")
def where_gradient(grad, condition):
    none = torch.zeros_like(grad)
    return None, torch.where(condition, grad, none), torch.where(condition, none, grad)


table.slope("lerp.Tensor lerp.Scalar", lambda self, end, weight: (1 - weight, weight, end - self))


@table.pointwise("addcmul")
def addcmul_gradient(grad, tensor1, tensor2, value):
    scaled = grad * value
    return grad, scaled * tensor2, scaled * tensor1


table.pointwise("addcdiv",
                lambda grad, tensor1, tensor2, value: (grad, grad * value / tensor2, -grad * (tensor1 * value / (tensor2 * tensor2))))
table.pointwise("complex", lambda grad: (torch.real(grad), -torch.imag(grad)))


@table.pointwise("polar")
def polar_gradient(grad, result):
    turned = torch.real(grad * torch.sgn(result))      # 0 where the result is 0, as in torch
    return turned, -torch.imag(grad * result)


table.no_gradient("both choices are numbers", "where.Scalar")


@table.pointwise("nextafter")
def nextafter_gradient(grad, self, other):
    none = torch.zeros_like(grad)
    return torch.where(self == other, none, grad), none


table.no_gradient("the result is piecewise constant", "floor_divide heaviside")
