"""Gradients of special functions."""
from __future__ import annotations

from irtool.ops.kernels.special import table
from irtool.ops.tensor import Tensor, torch

table.slope("erf special_erf", lambda self: (-(self * self)).exp() * 1.1283791670955126)
table.slope("erfc special_erfc", lambda self: -((-(self * self)).exp() * 1.1283791670955126))
table.slope("erfinv special_erfinv", lambda result: (result * result).exp() * 0.886226925452758)
table.slope("special_erfcx", lambda self, result: 2 * self * result - 1.1283791670955126)
table.slope("i0 special_i0", lambda self: torch.special_i1(self))
table.slope("special_modified_bessel_i0", lambda self: torch.special_modified_bessel_i1(self))


@table.slope("special_i1")
def i1_slope(self, result):
    tiny = ~(self.abs() > 2.220446049250313e-16)       # nan too
    safe = torch.where(tiny, 1.0, self)
    return torch.where(tiny, 0.5, torch.i0(self) - result / safe)


@table.slope("special_modified_bessel_i1")
def modified_bessel_i1_slope(self, result):
    tiny = ~(self.abs() > 2.220446049250313e-16)
    safe = torch.where(tiny, 1.0, self)
    return torch.where(tiny, 0.5, torch.special_modified_bessel_i0(self) - result / safe)


table.slope("special_i0e", lambda self, result: torch.special_i1e(self) - self.sgn() * result)


@table.slope("special_i1e")
def i1e_slope(self, result):
    tiny = ~(self.abs() > 2.220446049250313e-16)
    safe = torch.where(tiny, 1.0, self)
    return torch.where(tiny, 0.5, torch.special_i0e(self) - result * (self.sgn() + 1 / safe))


table.slope("special_bessel_j0", lambda self: -torch.special_bessel_j1(self))


@table.slope("special_bessel_j1")
def bessel_j1_slope(self, result):
    safe = torch.where(self == 0, 1.0, self)
    return torch.where(~(self.abs() > 0), 0.5, torch.special_bessel_j0(self) - result / safe)


table.slope("special_bessel_y0", lambda self: -torch.special_bessel_y1(self))
table.slope("special_bessel_y1", lambda self, result: torch.special_bessel_y0(self) - result / self)
table.slope("special_modified_bessel_k0", lambda self: -torch.special_modified_bessel_k1(self))
table.slope("special_modified_bessel_k1", lambda self, result: -torch.special_modified_bessel_k0(self) - result / self)
table.slope("special_scaled_modified_bessel_k0", lambda x, result: result - torch.special_scaled_modified_bessel_k1(x))
table.slope("special_scaled_modified_bessel_k1", lambda x, result: result - torch.special_scaled_modified_bessel_k0(x) - result / x)


@table.slope("special_spherical_bessel_j0")
def spherical_bessel_j0_slope(x, result):
    safe = torch.where(x == 0, 1.0, x)
    return torch.where(x == 0, x * 0, (x.cos() - result) / safe)


table.slope("special_log_ndtr", lambda self, result: (-(result + self * self * 0.5)).exp() * 0.3989422804014327)
table.slope("special_ndtr", lambda self: (self * self * -0.5).exp() * 0.3989422804014327)
table.slope("special_ndtri", lambda result: (result * result * 0.5).exp() * 2.5066282746310002)
table.slope("special_entr", lambda self: -self.log() - 1)
table.slope("lgamma special_gammaln", lambda self: self.digamma())
table.slope("digamma special_digamma special_psi", lambda self: torch.polygamma(1, self))
table.slope("polygamma special_polygamma", lambda n, self: torch.polygamma(n + 1, self))


@table.gradient("polygamma_")
def polygamma_into_gradient(self: Tensor, n: int):
    def backward(grad: Tensor):
        return grad * torch.polygamma(n + 1, self), None

    return torch.polygamma(n, self), backward


@table.derivative("mvlgamma special_multigammaln")
def mvlgamma_gradient(grad, self, p):
    places = 0.0 - torch.arange(p, dtype=grad.dtype) * 0.5
    return grad * (self.unsqueeze(-1) + places).digamma().sum([-1])


table.pointwise("aten::special_zeta", lambda grad, self, other: (None, grad * -self * torch.special_zeta(self + 1, other)))
table.derivative("special_zeta.self_scalar", lambda grad, self, other: grad * -self * torch.special_zeta(self + 1, other))
table.slope("igamma special_gammainc", lambda self, other: (None, ((self - 1) * other.log() - other - self.lgamma()).exp()))
table.pointwise("igammac special_gammaincc",
                lambda grad, self, other: (None, -(grad * ((self - 1) * other.log() - other - self.lgamma()).exp())))


table.no_gradient("torch has none either", "special_airy_ai")
table.unsupported("torch has none for the exponent either", "special_zeta.other_scalar")


table.no_gradient_for("self", "torch has none either", "igamma igammac special_gammainc special_gammaincc special_zeta")
