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


def fitted_like(x: Tensor, sizes: list[int], dtype: int) -> Tensor:
    """The gradient of an operand of these sizes and this dtype: real where that is."""
    part = fitted(x, sizes)
    is_complex = dtype == torch.complex64 or dtype == torch.complex128
    return part if is_complex else torch.real(part)


def along(x: Tensor, dim: int, size: int) -> Tensor:
    """Cut, or continued by zeros, along one dimension."""
    sizes = x.size()
    sizes[dim] = size
    return fitted(x, sizes)


def chosen_dims(rank: int, s: list[int] | None, dim: list[int] | None) -> list[int]:
    """The dimensions of a transform over several."""
    if dim is not None:
        return dim
    count = len(s) if s is not None else rank
    return list(range(rank - count, rank))


def last_extent(sizes: list[int], s: list[int] | None, dims: list[int]) -> int:
    """The extent that a transform over several dimensions uses of the last one; -1 in `s` is that of the tensor."""
    return sizes[dims[-1]] if s is None or s[-1] == -1 else s[-1]


def both_halves(spectrum: Tensor, dim: int, whole: int) -> Tensor:
    """Twice the elements that represent two positions of a whole spectrum; the first represents only itself, as does the last of an even
    number."""
    shape = [1] * spectrum.dim()
    shape[dim] = spectrum.size(dim)
    places = torch.arange(spectrum.size(dim))
    weights = 2 - (places == 0).to(torch.int64) - (places * 2 == whole).to(torch.int64)
    return spectrum * weights.reshape(shape)


def real_back(grad: Tensor, sizes: list[int], dims: list[int], whole: int, norm: str) -> Tensor:
    """Gradient of rfftn for a tensor of `sizes`, whose last transformed dimension was used with extent `whole`."""
    spectrum = along(grad, dims[-1], whole)
    return fitted(torch.real(torch.fft_ifftn(spectrum, None, dims, norm)), sizes)


def half_back(grad: Tensor, sizes: list[int], dims: list[int], norm: str, dtype: int) -> Tensor:
    """Gradient of hfftn, and the conjugate of that of irfftn, for a tensor of `sizes` and `dtype`."""
    spectrum = torch.fft_rfftn(torch.real(grad), None, dims, norm)
    return fitted_like(both_halves(spectrum, dims[-1], grad.size(dims[-1])), sizes, dtype)


@table.derivative("fft_fft")
def fft_gradient(grad, dim, norm, self_size, self_dtype):
    return fitted_like(torch.fft_ifft(grad.conj(), None, dim, adjoint_norm(norm)).conj(), self_size, self_dtype)


@table.derivative("fft_ifft")
def ifft_gradient(grad, dim, norm, self_size, self_dtype):
    return fitted_like(torch.fft_fft(grad.conj(), None, dim, adjoint_norm(norm)).conj(), self_size, self_dtype)


@table.derivative("fft_rfft")
def rfft_gradient(grad, n, dim, norm, self_size):
    return real_back(grad.conj(), self_size, [dim], self_size[dim] if n is None else n, adjoint_norm(norm))


@table.derivative("fft_ihfft")
def ihfft_gradient(grad, n, dim, norm, self_size):
    return real_back(grad, self_size, [dim], self_size[dim] if n is None else n, "backward" if norm is None else norm)


table.derivative("fft_irfft", lambda grad, dim, norm, self_size, self_dtype:
                 half_back(grad, self_size, [dim], adjoint_norm(norm), self_dtype).conj())
table.derivative("fft_hfft", lambda grad, dim, norm, self_size, self_dtype:
                 half_back(grad, self_size, [dim], "backward" if norm is None else norm, self_dtype))


@table.derivative("fft_fftn")
def fftn_gradient(grad, s, dim, norm, self_size, self_dtype):
    dims = chosen_dims(len(self_size), s, dim)
    return fitted_like(torch.fft_ifftn(grad.conj(), None, dims, adjoint_norm(norm)).conj(), self_size, self_dtype)


@table.derivative("fft_ifftn")
def ifftn_gradient(grad, s, dim, norm, self_size, self_dtype):
    dims = chosen_dims(len(self_size), s, dim)
    return fitted_like(torch.fft_fftn(grad.conj(), None, dims, adjoint_norm(norm)).conj(), self_size, self_dtype)


@table.derivative("fft_rfftn")
def rfftn_gradient(grad, s, dim, norm, self_size):
    dims = chosen_dims(len(self_size), s, dim)
    return real_back(grad.conj(), self_size, dims, last_extent(self_size, s, dims), adjoint_norm(norm))


@table.derivative("fft_ihfftn")
def ihfftn_gradient(grad, s, dim, norm, self_size):
    dims = chosen_dims(len(self_size), s, dim)
    whole = last_extent(self_size, s, dims)
    return real_back(grad, self_size, dims, whole, "backward" if norm is None else norm)


@table.derivative("fft_irfftn")
def irfftn_gradient(grad, s, dim, norm, self_size, self_dtype):
    dims = chosen_dims(len(self_size), s, dim)
    return half_back(grad, self_size, dims, adjoint_norm(norm), self_dtype).conj()


@table.derivative("fft_hfftn")
def hfftn_gradient(grad, s, dim, norm, self_size, self_dtype):
    dims = chosen_dims(len(self_size), s, dim)
    return half_back(grad, self_size, dims, "backward" if norm is None else norm, self_dtype)


@table.derivative("fft_fft2")
def fft2_gradient(grad, dim, norm, self_size, self_dtype):
    dims = dim
    return fitted_like(torch.fft_ifftn(grad.conj(), None, dims, adjoint_norm(norm)).conj(), self_size, self_dtype)


@table.derivative("fft_ifft2")
def ifft2_gradient(grad, dim, norm, self_size, self_dtype):
    dims = dim
    return fitted_like(torch.fft_fftn(grad.conj(), None, dims, adjoint_norm(norm)).conj(), self_size, self_dtype)


@table.derivative("fft_rfft2")
def rfft2_gradient(grad, s, dim, norm, self_size):
    dims = dim
    return real_back(grad.conj(), self_size, dims, last_extent(self_size, s, dims), adjoint_norm(norm))


@table.derivative("fft_ihfft2")
def ihfft2_gradient(grad, s, dim, norm, self_size):
    dims = dim
    whole = last_extent(self_size, s, dims)
    return real_back(grad, self_size, dims, whole, "backward" if norm is None else norm)


@table.derivative("fft_irfft2")
def irfft2_gradient(grad, dim, norm, self_size, self_dtype):
    dims = dim
    return half_back(grad, self_size, dims, adjoint_norm(norm), self_dtype).conj()


@table.derivative("fft_hfft2")
def hfft2_gradient(grad, dim, norm, self_size, self_dtype):
    dims = dim
    return half_back(grad, self_size, dims, "backward" if norm is None else norm, self_dtype)


table.derivative("fft_fftshift", lambda grad, dim: torch.fft_ifftshift(grad, dim))
table.derivative("fft_ifftshift", lambda grad, dim: torch.fft_fftshift(grad, dim))
table.derivative("_fft_c2c", lambda grad, dim, normalization, forward: torch._fft_c2c(grad.conj(), dim, normalization, not forward).conj())


@table.derivative("_fft_r2c")
def r2c_gradient(grad, dim, normalization, onesided, self_size):
    spectrum = fitted(grad.conj(), self_size) if onesided else grad.conj()
    return torch.real(torch._fft_c2c(spectrum, dim, normalization, False))


@table.derivative("_fft_c2r")
def c2r_gradient(grad, dim, normalization, last_dim_size):
    return both_halves(torch._fft_r2c(grad, dim, normalization, True), dim[-1], last_dim_size).conj()
