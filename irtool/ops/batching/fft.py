"""Batching rules of Fourier transforms."""
from __future__ import annotations

from typing import Any

from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import shifted
from irtool.ops.kernels.fft import table


@table.batch("fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft")
def fft_of_one(batch: Batch, self: Any, n: Any, dim: int, norm: Any) -> Any:
    """(B, ...), dim + 1."""
    return batch.box(batch.same(batch.front(self), n, shifted(dim, self), norm))


@table.batch("fft_fftn fft_fft2 fft_ifftn fft_ifft2 fft_rfftn fft_rfft2 fft_irfftn fft_irfft2 fft_hfftn fft_hfft2 fft_ihfftn fft_ihfft2")
def fft_of_several(batch: Batch, self: Any, s: Any, dim: Any, norm: Any) -> Any:
    """(B, ...), dims + 1. Without dims: the last len(s), or all."""
    if dim is None:
        dim = list(range(self.ndim)) if s is None else list(range(self.ndim - len(s), self.ndim))
    return batch.box(batch.same(batch.front(self), s, shifted([dim] if isinstance(dim, int) else list(dim), self), norm))


@table.batch("fft_fftshift fft_ifftshift")
def fft_shift(batch: Batch, self: Any, dim: Any) -> Any:
    """(B, ...), dims + 1. Without dims: all."""
    dims = list(range(self.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return batch.box(batch.same(batch.front(self), shifted(dims, self)))


@table.batch("_fft_c2c _fft_r2c _fft_c2r")
def fft_core(batch: Batch, self: Any, dim: Any, *rest: Any) -> Any:
    """(B, ...), dims + 1."""
    return batch.box(batch.same(batch.front(self), shifted(list(dim), self), *rest))
