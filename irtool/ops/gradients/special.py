"""Gradients of special functions."""
from __future__ import annotations

from irtool.ops.kernels.special import table
from irtool.ops.tensor import Tensor, number, torch


@table.gradient("erf special_erf")
def erf_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * ((-(self * self)).exp() * 1.1283791670955126)

    return torch.erf(self), backward


@table.gradient("erfc special_erfc")
def erfc_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * (-((-(self * self)).exp() * 1.1283791670955126))

    return torch.erfc(self), backward


@table.gradient("erfinv special_erfinv")
def erfinv_gradient(self: Tensor):
    result = torch.erfinv(self)

    def backward(grad: Tensor):
        return grad * ((result * result).exp() * 0.886226925452758)

    return result, backward


@table.gradient("special_erfcx")
def erfcx_gradient(self: Tensor):
    result = torch.special_erfcx(self)

    def backward(grad: Tensor):
        return grad * (2 * self * result - 1.1283791670955126)

    return result, backward


@table.gradient("i0 special_i0")
def i0_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * torch.special_i1(self)

    return torch.i0(self), backward


@table.gradient("special_modified_bessel_i0")
def modified_bessel_i0_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * torch.special_modified_bessel_i1(self)

    return torch.special_modified_bessel_i0(self), backward


@table.gradient("special_i1")
def i1_gradient(self: Tensor):
    result = torch.special_i1(self)

    def backward(grad: Tensor):
        tiny = ~(self.abs() > 2.220446049250313e-16)       # nan too
        safe = torch.where(tiny, 1.0, self)
        return grad * torch.where(tiny, 0.5, torch.i0(self) - result / safe)

    return result, backward


@table.gradient("special_modified_bessel_i1")
def modified_bessel_i1_gradient(self: Tensor):
    result = torch.special_modified_bessel_i1(self)

    def backward(grad: Tensor):
        tiny = ~(self.abs() > 2.220446049250313e-16)
        safe = torch.where(tiny, 1.0, self)
        return grad * torch.where(tiny, 0.5, torch.special_modified_bessel_i0(self) - result / safe)

    return result, backward


@table.gradient("special_i0e")
def i0e_gradient(self: Tensor):
    result = torch.special_i0e(self)

    def backward(grad: Tensor):
        return grad * (torch.special_i1e(self) - self.sgn() * result)

    return result, backward


@table.gradient("special_i1e")
def i1e_gradient(self: Tensor):
    result = torch.special_i1e(self)

    def backward(grad: Tensor):
        tiny = ~(self.abs() > 2.220446049250313e-16)
        safe = torch.where(tiny, 1.0, self)
        return grad * torch.where(tiny, 0.5, torch.special_i0e(self) - result * (self.sgn() + 1 / safe))

    return result, backward


@table.gradient("special_bessel_j0")
def bessel_j0_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * (-torch.special_bessel_j1(self))

    return torch.special_bessel_j0(self), backward


@table.gradient("special_bessel_j1")
def bessel_j1_gradient(self: Tensor):
    result = torch.special_bessel_j1(self)

    def backward(grad: Tensor):
        safe = torch.where(self == 0, 1.0, self)
        return grad * torch.where(~(self.abs() > 0), 0.5, torch.special_bessel_j0(self) - result / safe)

    return result, backward


@table.gradient("special_bessel_y0")
def bessel_y0_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * (-torch.special_bessel_y1(self))

    return torch.special_bessel_y0(self), backward


@table.gradient("special_bessel_y1")
def bessel_y1_gradient(self: Tensor):
    result = torch.special_bessel_y1(self)

    def backward(grad: Tensor):
        return grad * (torch.special_bessel_y0(self) - result / self)

    return result, backward


@table.gradient("special_modified_bessel_k0")
def modified_bessel_k0_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * (-torch.special_modified_bessel_k1(self))

    return torch.special_modified_bessel_k0(self), backward


@table.gradient("special_modified_bessel_k1")
def modified_bessel_k1_gradient(self: Tensor):
    result = torch.special_modified_bessel_k1(self)

    def backward(grad: Tensor):
        return grad * (-torch.special_modified_bessel_k0(self) - result / self)

    return result, backward


@table.gradient("special_scaled_modified_bessel_k0")
def scaled_modified_bessel_k0_gradient(x: Tensor):
    result = torch.special_scaled_modified_bessel_k0(x)

    def backward(grad: Tensor):
        return grad * (result - torch.special_scaled_modified_bessel_k1(x))

    return result, backward


@table.gradient("special_scaled_modified_bessel_k1")
def scaled_modified_bessel_k1_gradient(x: Tensor):
    result = torch.special_scaled_modified_bessel_k1(x)

    def backward(grad: Tensor):
        return grad * (result - torch.special_scaled_modified_bessel_k0(x) - result / x)

    return result, backward


@table.gradient("special_spherical_bessel_j0")
def spherical_bessel_j0_gradient(x: Tensor):
    result = torch.special_spherical_bessel_j0(x)

    def backward(grad: Tensor):
        safe = torch.where(x == 0, 1.0, x)
        return grad * torch.where(x == 0, x * 0, (x.cos() - result) / safe)

    return result, backward


@table.gradient("special_log_ndtr")
def log_ndtr_gradient(self: Tensor):
    result = torch.special_log_ndtr(self)

    def backward(grad: Tensor):
        return grad * ((-(result + self * self * 0.5)).exp() * 0.3989422804014327)

    return result, backward


@table.gradient("special_ndtr")
def ndtr_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * ((self * self * -0.5).exp() * 0.3989422804014327)

    return torch.special_ndtr(self), backward


@table.gradient("special_ndtri")
def ndtri_gradient(self: Tensor):
    result = torch.special_ndtri(self)

    def backward(grad: Tensor):
        return grad * ((result * result * 0.5).exp() * 2.5066282746310002)

    return result, backward


@table.gradient("special_entr")
def entr_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * (-self.log() - 1)

    return torch.special_entr(self), backward


@table.gradient("lgamma special_gammaln")
def lgamma_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * self.digamma()

    return torch.lgamma(self), backward


@table.gradient("digamma special_digamma special_psi")
def digamma_gradient(self: Tensor):
    def backward(grad: Tensor):
        return grad * torch.polygamma(1, self)

    return torch.digamma(self), backward


@table.gradient("polygamma special_polygamma")
def polygamma_gradient(n: int, self: Tensor):
    def backward(grad: Tensor):
        return None, grad * torch.polygamma(n + 1, self)

    return torch.polygamma(n, self), backward


@table.gradient("polygamma_")
def polygamma_into_gradient(self: Tensor, n: int):
    def backward(grad: Tensor):
        return grad * torch.polygamma(n + 1, self), None

    return torch.polygamma(n, self), backward


@table.gradient("mvlgamma special_multigammaln")
def mvlgamma_gradient(self: Tensor, p: int):
    def backward(grad: Tensor):
        places = 0.0 - torch.arange(p, dtype=grad.dtype) * 0.5
        return grad * (self.unsqueeze(-1) + places).digamma().sum([-1]), None

    return torch.mvlgamma(self, p), backward


@table.gradient("aten::special_zeta")
def zeta_gradient(self: Tensor, other: Tensor):
    other_size = other.size()

    def backward(grad: Tensor):     # torch has none for the exponent
        return None, (grad * -self * torch.special_zeta(self + 1, other)).sum_to_size(other_size)

    return torch.special_zeta(self, other), backward


@table.gradient("special_zeta.self_scalar")
def zeta_of_number_gradient(self: number, other: Tensor):
    def backward(grad: Tensor):
        return None, grad * -self * torch.special_zeta(self + 1, other)

    return torch.special_zeta(self, other), backward


@table.gradient("igamma special_gammainc")
def igamma_gradient(self: Tensor, other: Tensor):
    other_size = other.size()

    def backward(grad: Tensor):     # torch has none for the exponent
        return None, (grad * ((self - 1) * other.log() - other - self.lgamma()).exp()).sum_to_size(other_size)

    return torch.igamma(self, other), backward


@table.gradient("igammac special_gammaincc")
def igammac_gradient(self: Tensor, other: Tensor):
    other_size = other.size()

    def backward(grad: Tensor):
        return None, -(grad * ((self - 1) * other.log() - other - self.lgamma()).exp()).sum_to_size(other_size)

    return torch.igammac(self, other), backward


table.no_gradient("torch has none either", "special_airy_ai")
table.unsupported("torch has none for the exponent either", "special_zeta.other_scalar")
