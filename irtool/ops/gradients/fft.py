"""Gradients of Fourier transforms: the adjoint transform, forward and backward normalization exchanged."""
from __future__ import annotations

from irtool.ops.kernels.fft import table
from irtool.ops.tensor import Tensor, torch


def adjoint_norm(norm: str | None) -> str:
    """The normalization of the adjoint transform."""
    if norm is None or norm == "backward":
        return "forward"
    return "backward" if norm == "forward" else norm


def fitted(x: Tensor, sizes: list[int]) -> Tensor:
    """Cut, or continued by zeros, to `sizes`."""
    border: list[int] = []
    for back in range(len(sizes)):
        dim = len(sizes) - 1 - back
        border += [0, sizes[dim] - x.size(dim)]
    return torch.constant_pad_nd(x, border, 0)


def along(x: Tensor, dim: int, size: int) -> Tensor:
    """Cut, or continued by zeros, along one dimension."""
    sizes = x.size()
    sizes[dim] = size
    return fitted(x, sizes)


def chosen_dims(rank: int, s: list[int] | None, dim: list[int] | None) -> list[int]:
    """The dimensions of a transform over several."""
    if dim is not None:
        return dim
    count = rank
    if s is not None:
        count = len(s)
    return list(range(rank - count, rank))


def both_halves(spectrum: Tensor, dim: int, whole: int) -> Tensor:
    """Twice what stands for two places of a whole spectrum; the first place stands for itself, and the last of an even number."""
    shape = [1] * spectrum.dim()
    shape[dim] = spectrum.size(dim)
    places = torch.arange(spectrum.size(dim))
    weights = 2 - (places == 0).to(torch.int64) - (places * 2 == whole).to(torch.int64)
    return spectrum * weights.reshape(shape)


def real_back(grad: Tensor, sizes: list[int], dims: list[int], whole: int, norm: str) -> Tensor:
    """Gradient of rfftn for a tensor of `sizes`, whose last transformed dimension became `whole` long."""
    spectrum = along(grad, dims[-1], whole)
    return fitted(torch.real(torch.fft_ifftn(spectrum, None, dims, norm)), sizes)


def half_back(grad: Tensor, sizes: list[int], dims: list[int], norm: str) -> Tensor:
    """Gradient of irfftn for a tensor of `sizes`."""
    spectrum = torch.fft_rfftn(torch.real(grad), None, dims, norm)
    return fitted(both_halves(spectrum, dims[-1], grad.size(dims[-1])), sizes)


@table.gradient("fft_fft")
def fft_gradient(self: Tensor, n: int | None, dim: int, norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        return fitted(torch.fft_ifft(grad.conj(), None, dim, adjoint_norm(norm)).conj(), sizes), None, None, None

    return torch.fft_fft(self, n, dim, norm), backward


@table.gradient("fft_ifft")
def ifft_gradient(self: Tensor, n: int | None, dim: int, norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        return fitted(torch.fft_fft(grad.conj(), None, dim, adjoint_norm(norm)).conj(), sizes), None, None, None

    return torch.fft_ifft(self, n, dim, norm), backward


@table.gradient("fft_rfft")
def rfft_gradient(self: Tensor, n: int | None, dim: int, norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        return real_back(grad.conj(), sizes, [dim], sizes[dim] if n is None else n, adjoint_norm(norm)), None, None, None

    return torch.fft_rfft(self, n, dim, norm), backward


@table.gradient("fft_ihfft")
def ihfft_gradient(self: Tensor, n: int | None, dim: int, norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        return real_back(grad, sizes, [dim], sizes[dim] if n is None else n, "backward" if norm is None else norm), None, None, None

    return torch.fft_ihfft(self, n, dim, norm), backward


@table.gradient("fft_irfft")
def irfft_gradient(self: Tensor, n: int | None, dim: int, norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        return half_back(grad, sizes, [dim], adjoint_norm(norm)).conj(), None, None, None

    return torch.fft_irfft(self, n, dim, norm), backward


@table.gradient("fft_hfft")
def hfft_gradient(self: Tensor, n: int | None, dim: int, norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        return half_back(grad, sizes, [dim], "backward" if norm is None else norm), None, None, None

    return torch.fft_hfft(self, n, dim, norm), backward


@table.gradient("fft_fftn")
def fftn_gradient(self: Tensor, s: list[int] | None, dim: list[int] | None, norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        dims = chosen_dims(len(sizes), s, dim)
        return fitted(torch.fft_ifftn(grad.conj(), None, dims, adjoint_norm(norm)).conj(), sizes), None, None, None

    return torch.fft_fftn(self, s, dim, norm), backward


@table.gradient("fft_ifftn")
def ifftn_gradient(self: Tensor, s: list[int] | None, dim: list[int] | None, norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        dims = chosen_dims(len(sizes), s, dim)
        return fitted(torch.fft_fftn(grad.conj(), None, dims, adjoint_norm(norm)).conj(), sizes), None, None, None

    return torch.fft_ifftn(self, s, dim, norm), backward


@table.gradient("fft_rfftn")
def rfftn_gradient(self: Tensor, s: list[int] | None, dim: list[int] | None, norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        dims = chosen_dims(len(sizes), s, dim)
        return real_back(grad.conj(), sizes, dims, sizes[dims[-1]] if s is None else s[-1], adjoint_norm(norm)), None, None, None

    return torch.fft_rfftn(self, s, dim, norm), backward


@table.gradient("fft_ihfftn")
def ihfftn_gradient(self: Tensor, s: list[int] | None, dim: list[int] | None, norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        dims = chosen_dims(len(sizes), s, dim)
        whole = sizes[dims[-1]] if s is None else s[-1]
        return real_back(grad, sizes, dims, whole, "backward" if norm is None else norm), None, None, None

    return torch.fft_ihfftn(self, s, dim, norm), backward


@table.gradient("fft_irfftn")
def irfftn_gradient(self: Tensor, s: list[int] | None, dim: list[int] | None, norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        dims = chosen_dims(len(sizes), s, dim)
        return half_back(grad, sizes, dims, adjoint_norm(norm)).conj(), None, None, None

    return torch.fft_irfftn(self, s, dim, norm), backward


@table.gradient("fft_hfftn")
def hfftn_gradient(self: Tensor, s: list[int] | None, dim: list[int] | None, norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        dims = chosen_dims(len(sizes), s, dim)
        return half_back(grad, sizes, dims, "backward" if norm is None else norm), None, None, None

    return torch.fft_hfftn(self, s, dim, norm), backward


@table.gradient("fft_fft2")
def fft2_gradient(self: Tensor, s: list[int] | None, dim: list[int], norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        dims = dim
        return fitted(torch.fft_ifftn(grad.conj(), None, dims, adjoint_norm(norm)).conj(), sizes), None, None, None

    return torch.fft_fft2(self, s, dim, norm), backward


@table.gradient("fft_ifft2")
def ifft2_gradient(self: Tensor, s: list[int] | None, dim: list[int], norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        dims = dim
        return fitted(torch.fft_fftn(grad.conj(), None, dims, adjoint_norm(norm)).conj(), sizes), None, None, None

    return torch.fft_ifft2(self, s, dim, norm), backward


@table.gradient("fft_rfft2")
def rfft2_gradient(self: Tensor, s: list[int] | None, dim: list[int], norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        dims = dim
        return real_back(grad.conj(), sizes, dims, sizes[dims[-1]] if s is None else s[-1], adjoint_norm(norm)), None, None, None

    return torch.fft_rfft2(self, s, dim, norm), backward


@table.gradient("fft_ihfft2")
def ihfft2_gradient(self: Tensor, s: list[int] | None, dim: list[int], norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        dims = dim
        whole = sizes[dims[-1]] if s is None else s[-1]
        return real_back(grad, sizes, dims, whole, "backward" if norm is None else norm), None, None, None

    return torch.fft_ihfft2(self, s, dim, norm), backward


@table.gradient("fft_irfft2")
def irfft2_gradient(self: Tensor, s: list[int] | None, dim: list[int], norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        dims = dim
        return half_back(grad, sizes, dims, adjoint_norm(norm)).conj(), None, None, None

    return torch.fft_irfft2(self, s, dim, norm), backward


@table.gradient("fft_hfft2")
def hfft2_gradient(self: Tensor, s: list[int] | None, dim: list[int], norm: str | None):
    sizes = self.size()

    def backward(grad: Tensor):
        dims = dim
        return half_back(grad, sizes, dims, "backward" if norm is None else norm), None, None, None

    return torch.fft_hfft2(self, s, dim, norm), backward


@table.gradient("fft_fftshift")
def fftshift_gradient(self: Tensor, dim: list[int] | None):
    def backward(grad: Tensor):
        return torch.fft_ifftshift(grad, dim), None

    return torch.fft_fftshift(self, dim), backward


@table.gradient("fft_ifftshift")
def ifftshift_gradient(self: Tensor, dim: list[int] | None):
    def backward(grad: Tensor):
        return torch.fft_fftshift(grad, dim), None

    return torch.fft_ifftshift(self, dim), backward


@table.gradient("_fft_c2c")
def c2c_gradient(self: Tensor, dim: list[int], normalization: int, forward: bool):
    def backward(grad: Tensor):
        return torch._fft_c2c(grad.conj(), dim, normalization, not forward).conj(), None, None, None

    return torch._fft_c2c(self, dim, normalization, forward), backward


@table.gradient("_fft_r2c")
def r2c_gradient(self: Tensor, dim: list[int], normalization: int, onesided: bool):
    sizes = self.size()

    def backward(grad: Tensor):
        spectrum = fitted(grad.conj(), sizes) if onesided else grad.conj()
        return torch.real(torch._fft_c2c(spectrum, dim, normalization, False)), None, None, None

    return torch._fft_r2c(self, dim, normalization, onesided), backward


@table.gradient("_fft_c2r")
def c2r_gradient(self: Tensor, dim: list[int], normalization: int, last_dim_size: int):
    def backward(grad: Tensor):
        return both_halves(torch._fft_r2c(grad, dim, normalization, True), dim[-1], last_dim_size).conj(), None, None, None

    return torch._fft_c2r(self, dim, normalization, last_dim_size), backward
