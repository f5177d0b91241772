"""Gradients of pointwise operators of one tensor."""
from irtool.ops.kernels.pointwise import table
from irtool.ops.tensor import torch

table.slope("acos arccos", lambda self: -(1 - self * self).rsqrt())
table.slope("asin arcsin", lambda self: (1 - self * self).rsqrt())
table.slope("asinh arcsinh", lambda self: (self * self + 1).rsqrt())


@table.derivative("acosh arccosh")
def acosh_gradient(grad, self):
    return grad * (self - 1).rsqrt() * (self + 1).rsqrt() if self.is_complex() else grad * (self * self - 1).rsqrt()


table.derivative("atan arctan", lambda grad, self: grad / (self * self + 1))
table.derivative("atanh arctanh", lambda grad, self: grad / (1 - self * self))
table.slope("cos", lambda self: -self.sin())
table.slope("cosh", lambda self: self.sinh())
table.slope("sin", lambda self: self.cos())
table.slope("sinh", lambda self: self.cosh())
table.slope("tan", lambda result: result * result + 1)
table.derivative("tanh", lambda grad, result: torch.tanh_backward(grad, result.conj()))
table.slope("exp", lambda result: result)
table.derivative("exp2 special_exp2", lambda grad, result: grad * result * 0.6931471805599453)
table.slope("expm1 special_expm1", lambda result: result + 1)
table.derivative("log", lambda grad, self: grad / self)
table.derivative("log2", lambda grad, self: grad / (self * 0.6931471805599453))
table.derivative("log10", lambda grad, self: grad / (self * 2.302585092994046))
table.derivative("log1p special_log1p", lambda grad, self: grad / (self + 1))
table.derivative("sqrt", lambda grad, result: grad / (result * 2))
table.derivative("rsqrt", lambda grad, result: grad * -0.5 * result.pow(3))
table.derivative("reciprocal", lambda grad, result: -grad * (result * result))
table.slope("square", lambda self: self * 2)
table.derivative("sigmoid special_expit", lambda grad, result: torch.sigmoid_backward(grad, result.conj()))
table.derivative("logit special_logit", lambda grad, self, eps: torch.logit_backward(grad, self, eps))


@table.derivative("sinc special_sinc")
def sinc_gradient(grad, self):
    scaled = self * 3.141592653589793
    area = scaled * self
    slope = (scaled * scaled.cos() - scaled.sin()) / area.masked_fill(area == 0, float("inf"))
    # at 0, where the quotient says nothing, the first term of the series: it has the slope of the slope
    return grad * torch.where(self == 0, self * -3.289868133696453, slope)


table.derivative("deg2rad", lambda grad: grad.deg2rad())
table.derivative("rad2deg", lambda grad: grad.rad2deg())
table.derivative("neg negative", lambda grad: -grad)
table.derivative("positive frac resolve_conj resolve_neg", lambda grad: grad)
table.derivative("abs absolute", lambda grad, self: torch.real(grad) * self.conj().sgn())
table.derivative("ceil floor trunc fix round round.decimals special_round sign", lambda grad: torch.zeros_like(grad))


@table.derivative("sgn")
def sgn_gradient(grad, self, result):
    if not self.is_complex():
        return None     # none at all, also where what comes in front has no finite slope
    length, along = self.abs(), torch.real(grad * result)       # only the part across the direction rotates it
    return (grad - along * result.conj()) / length.masked_fill(length == 0, float("inf"))


@table.derivative("angle")
def angle_gradient(grad, self):
    slope = torch.zeros_like(grad)
    if self.is_complex():
        real, imag = torch.real(self), torch.imag(self)
        square = self.abs().square().masked_fill((real == 0) & (imag == 0), float("inf"))
        along, across = torch.real(grad) * real / square, torch.real(grad) * imag / square
        slope = torch.complex(along * 0 - across, -along - across * 0)      # as a product with 1j is
    return slope


table.slope("nan_to_num", lambda self_isfinite: self_isfinite)
table.derivative("conj _conj conj_physical _conj_physical _conj_copy", lambda grad: grad.conj())
table.derivative("real", lambda grad, self_dtype: torch.real(grad).to(self_dtype))


@table.derivative("imag")
def imag_gradient(grad):
    imag = torch.real(grad)
    return torch.complex(torch.zeros_like(imag), -imag)


table.derivative("frexp.Tensor", lambda grad, exponent: grad / torch.exp2(exponent.to(grad.dtype)))


table.no_gradient("the result is bool", "signbit")
