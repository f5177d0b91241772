"""Gradients of pointwise operators of two and three tensors. Each operand's gradient is summed down to its own shape."""
from __future__ import annotations

from irtool.ops.kernels.pointwise_binary import table
from irtool.ops.tensor import Tensor, number, torch


@table.gradient("add.Tensor")
def add_gradient(self: Tensor, other: Tensor, alpha: number):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        return grad.sum_to_size(self_size), (grad * alpha).sum_to_size(other_size), None

    return torch.add(self, other, alpha=alpha), backward


@table.gradient("add.Scalar")
def add_number_gradient(self: Tensor, other: number, alpha: number):
    def backward(grad: Tensor):
        return grad, None, None

    return torch.add(self, other, alpha), backward


@table.gradient("sub.Tensor subtract.Tensor")
def sub_gradient(self: Tensor, other: Tensor, alpha: number):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        return grad.sum_to_size(self_size), (-grad * alpha).sum_to_size(other_size), None

    return torch.sub(self, other, alpha=alpha), backward


@table.gradient("sub.Scalar subtract.Scalar")
def sub_number_gradient(self: Tensor, other: number, alpha: number):
    def backward(grad: Tensor):
        return grad, None, None

    return torch.sub(self, other, alpha), backward


@table.gradient("rsub.Tensor")
def rsub_gradient(self: Tensor, other: Tensor, alpha: number):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        return (-grad * alpha).sum_to_size(self_size), grad.sum_to_size(other_size), None

    return torch.rsub(self, other, alpha=alpha), backward


@table.gradient("rsub.Scalar")
def rsub_number_gradient(self: Tensor, other: number, alpha: number):
    def backward(grad: Tensor):
        return -grad * alpha, None, None

    return torch.rsub(self, other, alpha), backward


@table.gradient("_add_relu.Tensor")
def add_relu_gradient(self: Tensor, other: Tensor, alpha: number):
    self_size, other_size = self.size(), other.size()
    result = torch.relu(torch.add(self, other, alpha=alpha))

    def backward(grad: Tensor):
        passed = torch.threshold_backward(grad, result, 0)
        return passed.sum_to_size(self_size), (passed * alpha).sum_to_size(other_size), None

    return result, backward


@table.gradient("_add_relu.Scalar")
def add_relu_number_gradient(self: Tensor, other: number, alpha: number):
    result = torch.relu(torch.add(self, other, alpha))

    def backward(grad: Tensor):
        return torch.threshold_backward(grad, result, 0), None, None

    return result, backward


@table.gradient("mul.Tensor multiply.Tensor")
def mul_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        return (grad * other).sum_to_size(self_size), (grad * self).sum_to_size(other_size)

    return self * other, backward


@table.gradient("mul.Scalar multiply.Scalar")
def mul_number_gradient(self: Tensor, other: number):
    def backward(grad: Tensor):
        return grad * other, None

    return self * other, backward


@table.gradient("div.Tensor divide.Tensor true_divide.Tensor")
def div_gradient(self: Tensor, other: Tensor):
    quotient = self / other
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        return (grad / other).sum_to_size(self_size), (-grad * (quotient / other)).sum_to_size(other_size)

    return quotient, backward


@table.gradient("div.Scalar divide.Scalar true_divide.Scalar")
def div_number_gradient(self: Tensor, other: number):
    def backward(grad: Tensor):
        return grad / other, None

    return self / other, backward


@table.gradient("div.Tensor_mode divide.Tensor_mode")
def div_mode_gradient(self: Tensor, other: Tensor, rounding_mode: str | None):
    quotient = torch.div(self, other, rounding_mode=rounding_mode)
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        if rounding_mode is None:
            self_grad, other_grad = grad / other, -grad * (quotient / other)
        else:
            self_grad, other_grad = torch.zeros_like(grad), torch.zeros_like(grad)
        return self_grad.sum_to_size(self_size), other_grad.sum_to_size(other_size), None

    return quotient, backward


@table.gradient("div.Scalar_mode divide.Scalar_mode")
def div_number_mode_gradient(self: Tensor, other: number, rounding_mode: str | None):
    def backward(grad: Tensor):
        if rounding_mode is None:
            self_grad = grad / other
        else:
            self_grad = torch.zeros_like(grad)
        return self_grad, None, None

    return torch.div(self, other, rounding_mode=rounding_mode), backward


@table.gradient("remainder.Tensor")
def remainder_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        quotient = torch.div(self, other, rounding_mode="floor")
        return grad.sum_to_size(self_size), (-grad * quotient).sum_to_size(other_size)

    return torch.remainder(self, other), backward


@table.gradient("remainder.Scalar")
def remainder_number_gradient(self: Tensor, other: number):
    def backward(grad: Tensor):
        return grad, None

    return torch.remainder(self, other), backward


@table.gradient("remainder.Scalar_Tensor")
def remainder_of_number_gradient(self: number, other: Tensor):
    def backward(grad: Tensor):
        return None, -grad * torch.floor(other.reciprocal() * self)

    return torch.remainder(self, other), backward


@table.gradient("fmod.Tensor")
def fmod_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        quotient = torch.div(self, other, rounding_mode="trunc")
        return grad.sum_to_size(self_size), (-grad * quotient).sum_to_size(other_size)

    return torch.fmod(self, other), backward


@table.gradient("fmod.Scalar")
def fmod_number_gradient(self: Tensor, other: number):
    def backward(grad: Tensor):
        return grad, None

    return torch.fmod(self, other), backward


@table.gradient("float_power.Tensor_Tensor")
def float_power_gradient(self: Tensor, exponent: Tensor):
    self_size, exponent_size = self.size(), exponent.size()
    result = torch.float_power(self, exponent)

    def backward(grad: Tensor):
        base, power = self.to(result.dtype), exponent.to(result.dtype)
        slope = grad * (power * torch.pow(base, power - 1))
        self_grad = torch.where(power == 0, torch.zeros_like(slope), slope)
        growth = grad * (result * base.log())
        still = (base == 0) & (torch.real(power) >= 0)
        exponent_grad = torch.where(still, torch.zeros_like(growth), growth)
        return self_grad.sum_to_size(self_size), exponent_grad.sum_to_size(exponent_size)

    return result, backward


@table.gradient("pow.Tensor_Tensor")
def pow_gradient(self: Tensor, exponent: Tensor):
    self_size, exponent_size = self.size(), exponent.size()
    result = torch.pow(self, exponent)

    def backward(grad: Tensor):
        slope = grad * (exponent * torch.pow(self, exponent - 1))
        self_grad = torch.where(exponent == 0, torch.zeros_like(slope), slope)
        base = self
        if result.is_complex():
            base = self.to(result.dtype)
        growth = grad * (result * base.log())
        still = (self == 0) & (torch.real(exponent) >= 0)
        exponent_grad = torch.where(still, torch.zeros_like(growth), growth)
        return self_grad.sum_to_size(self_size), exponent_grad.sum_to_size(exponent_size)

    return result, backward


@table.gradient("float_power.Tensor_Scalar")
def float_power_number_gradient(self: Tensor, exponent: number):
    result = torch.float_power(self, exponent)

    def backward(grad: Tensor):
        if exponent == 0:
            self_grad = torch.zeros_like(grad)
        else:
            self_grad = grad * (torch.pow(self.to(result.dtype), exponent - 1) * exponent)
        return self_grad, None

    return result, backward


@table.gradient("pow.Tensor_Scalar")
def pow_number_gradient(self: Tensor, exponent: number):
    def backward(grad: Tensor):
        if exponent == 0:
            self_grad = torch.zeros_like(grad)
        else:
            self_grad = grad * (torch.pow(self, exponent - 1) * exponent)
        return self_grad, None

    return torch.pow(self, exponent), backward


@table.gradient("pow.Scalar float_power.Scalar")
def pow_of_number_gradient(self: number, exponent: Tensor):
    result = torch.pow(self, exponent)

    def backward(grad: Tensor):
        exact = torch.complex128 if grad.is_complex() else torch.float64        # the number may be larger than the tensor's can be
        growth = grad * (result * torch.log(torch.scalar_tensor(self, dtype=exact)))
        if self == 0:
            exponent_grad = torch.where(torch.real(exponent) >= 0, torch.zeros_like(growth), growth)
        else:
            exponent_grad = growth
        return None, exponent_grad

    return result, backward


@table.gradient("ldexp.Tensor")
def ldexp_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()
    result = torch.ldexp(self, other)

    def backward(grad: Tensor):
        self_grad = torch.ldexp(grad, other)
        return self_grad.sum_to_size(self_size), (grad * result * 0.6931471805599453).sum_to_size(other_size)

    return result, backward


@table.gradient("atan2 arctan2")
def atan2_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        square = self * self + other * other
        scaled = torch.where(square == 0, torch.zeros_like(grad), grad / square)
        return (scaled * other).sum_to_size(self_size), (-scaled * self).sum_to_size(other_size)

    return torch.atan2(self, other), backward


@table.gradient("hypot")
def hypot_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()
    result = torch.hypot(self, other)

    def backward(grad: Tensor):
        return (grad * (self / result)).sum_to_size(self_size), (grad * (other / result)).sum_to_size(other_size)

    return result, backward


@table.gradient("copysign.Tensor")
def copysign_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()
    result = torch.copysign(self, other)

    def backward(grad: Tensor):
        ratio = torch.where(self == 0, torch.zeros_like(grad), result / self)
        return (grad * ratio).sum_to_size(self_size), torch.zeros_like(grad).sum_to_size(other_size)

    return result, backward


@table.gradient("copysign.Scalar")
def copysign_number_gradient(self: Tensor, other: number):
    result = torch.copysign(self, other)

    def backward(grad: Tensor):
        return grad * torch.where(self == 0, torch.zeros_like(grad), result / self), None

    return result, backward


@table.gradient("logaddexp")
def logaddexp_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        self_grad, other_grad = grad / (torch.exp(other - self) + 1), grad / (torch.exp(self - other) + 1)
        return self_grad.sum_to_size(self_size), other_grad.sum_to_size(other_size)

    return torch.logaddexp(self, other), backward


@table.gradient("logaddexp2")
def logaddexp2_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        self_grad, other_grad = grad / (torch.exp2(other - self) + 1), grad / (torch.exp2(self - other) + 1)
        return self_grad.sum_to_size(self_size), other_grad.sum_to_size(other_size)

    return torch.logaddexp2(self, other), backward


@table.gradient("xlogy.Tensor special_xlogy")
def xlogy_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        still = (self == 0) & (other <= 0)
        slope = torch.where(still, torch.zeros_like(grad), torch.xlogy(grad, other))
        return slope.sum_to_size(self_size), (grad * (self / other)).sum_to_size(other_size)

    return torch.xlogy(self, other), backward


@table.gradient("xlogy.Scalar_Self special_xlogy.self_scalar")
def xlogy_of_number_gradient(self: number, other: Tensor):
    def backward(grad: Tensor):
        return None, grad * self / other

    return torch.xlogy(self, other), backward


@table.gradient("xlogy.Scalar_Other special_xlogy.other_scalar")
def xlogy_number_gradient(self: Tensor, other: number):
    def backward(grad: Tensor):
        slope = torch.xlogy(grad, other)
        if other <= 0:
            slope = torch.where(self == 0, torch.zeros_like(grad), slope)
        return slope, None

    return torch.xlogy(self, other), backward


@table.gradient("special_xlog1py")
def xlog1py_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        still = (self == 0) & (other <= -1)
        slope = torch.where(still, torch.zeros_like(grad), torch.special_xlog1py(grad, other))
        return slope.sum_to_size(self_size), (grad * (self / (other + 1))).sum_to_size(other_size)

    return torch.special_xlog1py(self, other), backward


@table.gradient("special_xlog1py.self_scalar")
def xlog1py_of_number_gradient(self: number, other: Tensor):
    def backward(grad: Tensor):
        return None, grad * ((other + 1).reciprocal() * self)

    return torch.special_xlog1py(self, other), backward


@table.gradient("special_xlog1py.other_scalar")
def xlog1py_number_gradient(self: Tensor, other: number):
    def backward(grad: Tensor):
        slope = torch.full_like(grad, other).log1p()
        if other <= -1:
            slope = torch.where(self == 0, torch.zeros_like(grad), slope)
        return grad * slope, None

    return torch.special_xlog1py(self, other), backward


@table.gradient("maximum max.other")
def maximum_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        shared = torch.where(self == other, grad / 2, grad)
        none = torch.zeros_like(grad)
        self_grad, other_grad = torch.where(self < other, none, shared), torch.where(self > other, none, shared)
        return self_grad.sum_to_size(self_size), other_grad.sum_to_size(other_size)

    return torch.maximum(self, other), backward


@table.gradient("minimum min.other")
def minimum_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        shared = torch.where(self == other, grad / 2, grad)
        none = torch.zeros_like(grad)
        self_grad, other_grad = torch.where(self > other, none, shared), torch.where(self < other, none, shared)
        return self_grad.sum_to_size(self_size), other_grad.sum_to_size(other_size)

    return torch.minimum(self, other), backward


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


@table.gradient("clamp clip")
def clamp_gradient(self: Tensor, min: number | None, max: number | None):
    def backward(grad: Tensor):
        self_grad = grad
        if min is not None:
            self_grad = torch.where(self >= min, self_grad, torch.zeros_like(grad))
        if max is not None:
            self_grad = torch.where(self <= max, self_grad, torch.zeros_like(grad))
        return self_grad, None, None

    return torch.clamp(self, min, max), backward


@table.gradient("clamp.Tensor clip.Tensor")
def clamp_tensor_gradient(self: Tensor, min: Tensor | None, max: Tensor | None):
    self_size = self.size()

    def backward(grad: Tensor):
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

    return torch.clamp(self, min, max), backward


@table.gradient("clamp_min")
def clamp_min_gradient(self: Tensor, min: number):
    def backward(grad: Tensor):
        return torch.where(self >= min, grad, torch.zeros_like(grad)), None

    return torch.clamp_min(self, min), backward


@table.gradient("clamp_min.Tensor")
def clamp_min_tensor_gradient(self: Tensor, min: Tensor):
    self_size, min_size = self.size(), min.size()

    def backward(grad: Tensor):
        none = torch.zeros_like(grad)
        return torch.where(self >= min, grad, none).sum_to_size(self_size), torch.where(self < min, grad, none).sum_to_size(min_size)

    return torch.clamp_min(self, min), backward


@table.gradient("clamp_max")
def clamp_max_gradient(self: Tensor, max: number):
    def backward(grad: Tensor):
        return torch.where(self <= max, grad, torch.zeros_like(grad)), None

    return torch.clamp_max(self, max), backward


@table.gradient("clamp_max.Tensor")
def clamp_max_tensor_gradient(self: Tensor, max: Tensor):
    self_size, max_size = self.size(), max.size()

    def backward(grad: Tensor):
        none = torch.zeros_like(grad)
        return torch.where(self <= max, grad, none).sum_to_size(self_size), torch.where(self > max, grad, none).sum_to_size(max_size)

    return torch.clamp_max(self, max), backward


@table.gradient("where.self")
def where_gradient(condition: Tensor, self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        none = torch.zeros_like(grad)
        return None, torch.where(condition, grad, none).sum_to_size(self_size), torch.where(condition, none, grad).sum_to_size(other_size)

    return torch.where(condition, self, other), backward


@table.gradient("where.ScalarSelf")
def where_number_or_gradient(condition: Tensor, self: number, other: Tensor):
    other_size = other.size()

    def backward(grad: Tensor):
        return None, None, torch.where(condition, torch.zeros_like(grad), grad).sum_to_size(other_size)

    return torch.where(condition, self, other), backward


@table.gradient("where.ScalarOther")
def where_or_number_gradient(condition: Tensor, self: Tensor, other: number):
    self_size = self.size()

    def backward(grad: Tensor):
        return None, torch.where(condition, grad, torch.zeros_like(grad)).sum_to_size(self_size), None

    return torch.where(condition, self, other), backward


@table.gradient("lerp.Scalar")
def lerp_number_gradient(self: Tensor, end: Tensor, weight: number):
    self_size, end_size = self.size(), end.size()

    def backward(grad: Tensor):
        return (grad * (1 - weight)).sum_to_size(self_size), (grad * weight).sum_to_size(end_size), None

    return torch.lerp(self, end, weight), backward


@table.gradient("lerp.Tensor")
def lerp_gradient(self: Tensor, end: Tensor, weight: Tensor):
    self_size, end_size, weight_size = self.size(), end.size(), weight.size()

    def backward(grad: Tensor):
        self_grad = grad * (1 - weight)
        weight_grad = grad * (end - self)
        return self_grad.sum_to_size(self_size), (grad * weight).sum_to_size(end_size), weight_grad.sum_to_size(weight_size)

    return torch.lerp(self, end, weight), backward


@table.gradient("addcmul")
def addcmul_gradient(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: number):
    self_size, size1, size2 = self.size(), tensor1.size(), tensor2.size()

    def backward(grad: Tensor):
        scaled = grad * value
        return grad.sum_to_size(self_size), (scaled * tensor2).sum_to_size(size1), (scaled * tensor1).sum_to_size(size2), None

    return torch.addcmul(self, tensor1, tensor2, value=value), backward


@table.gradient("addcdiv")
def addcdiv_gradient(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: number):
    self_size, size1, size2 = self.size(), tensor1.size(), tensor2.size()

    def backward(grad: Tensor):
        slope = -grad * (tensor1 * value / (tensor2 * tensor2))
        return grad.sum_to_size(self_size), (grad * value / tensor2).sum_to_size(size1), slope.sum_to_size(size2), None

    return torch.addcdiv(self, tensor1, tensor2, value=value), backward


@table.gradient("complex")
def complex_gradient(real: Tensor, imag: Tensor):
    real_size, imag_size = real.size(), imag.size()

    def backward(grad: Tensor):
        return torch.real(grad).sum_to_size(real_size), -torch.imag(grad).sum_to_size(imag_size)

    return torch.complex(real, imag), backward


@table.gradient("polar")
def polar_gradient(abs: Tensor, angle: Tensor):
    abs_size, angle_size = abs.size(), angle.size()
    result = torch.polar(abs, angle)

    def backward(grad: Tensor):
        turned = torch.real(grad * torch.sgn(result))      # nothing where it is 0, as torch has it
        return turned.sum_to_size(abs_size), -torch.imag(grad * result).sum_to_size(angle_size)

    return result, backward


table.no_gradient("both choices are numbers", "where.Scalar")
@table.gradient("nextafter")
def nextafter_gradient(self: Tensor, other: Tensor):
    self_size, other_size = self.size(), other.size()

    def backward(grad: Tensor):
        none = torch.zeros_like(grad)
        return torch.where(self == other, none, grad).sum_to_size(self_size), none.sum_to_size(other_size)

    return torch.nextafter(self, other), backward


table.no_gradient("the result is piecewise constant", "floor_divide heaviside")
