"""Gradients of pointwise operators of one tensor."""
from __future__ import annotations

from irtool.ops.kernels.pointwise import table
from irtool.ops.tensor import Tensor, torch


@table.gradient("acos arccos")
def acos_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * -(1 - self * self).rsqrt()

    return self.acos(), backward


@table.gradient("asin arcsin")
def asin_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * (1 - self * self).rsqrt()

    return self.asin(), backward


@table.gradient("asinh arcsinh")
def asinh_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * (self * self + 1).rsqrt()

    return self.asinh(), backward


@table.gradient("acosh arccosh")
def acosh_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * (self - 1).rsqrt() * (self + 1).rsqrt() if self.is_complex() else grad * (self * self - 1).rsqrt()

    return self.acosh(), backward


@table.gradient("atan arctan")
def atan_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad / (self * self + 1)

    return self.atan(), backward


@table.gradient("atanh arctanh")
def atanh_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad / (1 - self * self)

    return self.atanh(), backward


@table.gradient("cos")
def cos_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * -self.sin()

    return self.cos(), backward


@table.gradient("cosh")
def cosh_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * self.sinh()

    return self.cosh(), backward


@table.gradient("sin")
def sin_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * self.cos()

    return self.sin(), backward


@table.gradient("sinh")
def sinh_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * self.cosh()

    return self.sinh(), backward


@table.gradient("tan")
def tan_gradient(self: Tensor):
    result = self.tan()

    def backward(grad: Tensor):
        return grad * (result * result + 1)

    return result, backward


@table.gradient("tanh")
def tanh_gradient(self: Tensor):
    result = self.tanh()

    def backward(grad: Tensor):
        return torch.tanh_backward(grad, result.conj())

    return result, backward


@table.gradient("exp")
def exp_gradient(self: Tensor):
    result = self.exp()

    def backward(grad: Tensor):
        return grad * result

    return result, backward


@table.gradient("exp2 special_exp2")
def exp2_gradient(self: Tensor):
    result = self.exp2()

    def backward(grad: Tensor):
        return grad * result * 0.6931471805599453

    return result, backward


@table.gradient("expm1 special_expm1")
def expm1_gradient(self: Tensor):
    result = self.expm1()

    def backward(grad: Tensor):
        return grad * (result + 1)

    return result, backward


@table.gradient("log")
def log_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad / self

    return self.log(), backward


@table.gradient("log2")
def log2_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad / (self * 0.6931471805599453)

    return self.log2(), backward


@table.gradient("log10")
def log10_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad / (self * 2.302585092994046)

    return self.log10(), backward


@table.gradient("log1p special_log1p")
def log1p_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad / (self + 1)

    return self.log1p(), backward


@table.gradient("sqrt")
def sqrt_gradient(self: Tensor):
    result = self.sqrt()

    def backward(grad: Tensor):
        return grad / (result * 2)

    return result, backward


@table.gradient("rsqrt")
def rsqrt_gradient(self: Tensor):
    result = self.rsqrt()

    def backward(grad: Tensor):
        return grad * -0.5 * result.pow(3)

    return result, backward


@table.gradient("reciprocal")
def reciprocal_gradient(self: Tensor):
    result = self.reciprocal()

    def backward(grad: Tensor):
        return -grad * (result * result)

    return result, backward


@table.gradient("square")
def square_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * (self * 2)

    return self.square(), backward


@table.gradient("sigmoid special_expit")
def sigmoid_gradient(self: Tensor):
    result = self.sigmoid()

    def backward(grad: Tensor):
        return torch.sigmoid_backward(grad, result.conj())

    return result, backward


@table.gradient("logit special_logit")
def logit_gradient(self: Tensor, eps: float | None):
    def backward(grad: Tensor):
        return torch.logit_backward(grad, self, eps), None

    return torch.logit(self, eps), backward


@table.gradient("sinc special_sinc")
def sinc_gradient(self: Tensor):
    result = self.sinc()

    def backward(grad: Tensor):
        scaled = self * 3.141592653589793
        area = scaled * self
        slope = (scaled * scaled.cos() - scaled.sin()) / area
        return torch.where(area == 0, torch.zeros_like(grad), grad * slope)

    return result, backward


@table.gradient("deg2rad")
def deg2rad_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad.deg2rad()

    return self.deg2rad(), backward


@table.gradient("rad2deg")
def rad2deg_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad.rad2deg()

    return self.rad2deg(), backward


@table.gradient("neg negative")
def neg_gradient(self: Tensor):
    def backward(grad: Tensor):
        return -grad

    return -self, backward


@table.gradient("positive")
def positive_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad

    return self.positive(), backward


@table.gradient("abs absolute")
def abs_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.real(grad) * self.conj().sgn()

    return self.abs(), backward


@table.gradient("ceil")
def ceil_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.zeros_like(grad)

    return self.ceil(), backward


@table.gradient("floor")
def floor_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.zeros_like(grad)

    return self.floor(), backward


@table.gradient("trunc fix")
def trunc_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.zeros_like(grad)

    return self.trunc(), backward


@table.gradient("round")
def round_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.zeros_like(grad)

    return self.round(), backward


@table.gradient("round.decimals special_round")
def round_decimals_gradient(self: Tensor, decimals: int):
    def backward(grad: Tensor):
        return torch.zeros_like(grad), None

    return torch.round(self, decimals=decimals), backward


@table.gradient("frac")
def frac_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad

    return self.frac(), backward


@table.gradient("sign")
def sign_gradient(self: Tensor):
    def backward(grad: Tensor):
        return torch.zeros_like(grad)

    return self.sign(), backward


@table.gradient("sgn")
def sgn_gradient(self: Tensor):
    result = self.sgn()

    def backward(grad: Tensor):
        slope = torch.zeros_like(grad)
        if self.is_complex():       # only what is across the direction turns it
            length, along = self.abs(), torch.real(grad * result)
            slope = ((grad - along * result.conj()) / length).masked_fill(length == 0, 0)
        return slope

    return result, backward


@table.gradient("angle")
def angle_gradient(self: Tensor):
    def backward(grad: Tensor):
        slope = torch.zeros_like(grad)
        if self.is_complex():
            real, imag = torch.real(self), torch.imag(self)
            square = self.abs().square()
            is_zero = (real == 0) & (imag == 0)
            along, across = torch.real(grad) * real / square, torch.real(grad) * imag / square
            slope = torch.complex(torch.where(is_zero, torch.zeros_like(square), along * 0 - across),     # as a product with 1j is
                                  torch.where(is_zero, torch.zeros_like(square), -along - across * 0))
        return slope

    return self.angle(), backward


@table.gradient("nan_to_num")
def nan_to_num_gradient(self: Tensor, nan: float | None, posinf: float | None, neginf: float | None):
    finite = self.isfinite()

    def backward(grad: Tensor):
        return grad * finite, None, None, None

    return torch.nan_to_num(self, nan, posinf, neginf), backward


@table.gradient("conj _conj conj_physical _conj_physical _conj_copy")
def conj_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad.conj()

    return self.conj(), backward


@table.gradient("resolve_conj resolve_neg")
def resolve_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad

    return self.clone(), backward


@table.gradient("real")
def real_gradient(self: Tensor):
    dtype = self.dtype

    def backward(grad: Tensor):
        return torch.real(grad).to(dtype)

    return torch.real(self), backward


@table.gradient("imag")
def imag_gradient(self: Tensor):
    def backward(grad: Tensor):
        imag = torch.real(grad)
        return torch.complex(torch.zeros_like(imag), -imag)

    return torch.imag(self), backward


@table.gradient("frexp.Tensor")
def frexp_gradient(self: Tensor):
    mantissa, exponent = torch.frexp(self)

    def backward(grad: Tensor):
        return grad / torch.exp2(exponent.to(grad.dtype))

    return mantissa, exponent, backward


table.no_gradient("the result is bool", "signbit")
