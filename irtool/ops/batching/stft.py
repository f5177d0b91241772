"""Batching rules of short-time Fourier transforms: of B signals with one window, or step by step if windows are batched."""
from __future__ import annotations

from typing import Any

from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.array_library import np
from irtool.ops.arrays import dtype_of
from irtool.ops.batch import Batch
from irtool.ops.batching.batch_dim import folded, unfolded
from irtool.ops.kernels.stft import table


@table.batch("stft")
def stft(batch: Batch, self: Any, n_fft: int, hop_length: Any, win_length: Any, window: Any, *rest: Any) -> Any:
    """(N, n) -> (B * N, n), N optional; a batched window: by parts."""
    if batch.has(window):
        return spectra(batch, self, n_fft, hop_length, win_length, window, *rest)
    return unfolded(batch, batch.same(folded(batch, self, 1), n_fft, hop_length, win_length, window, *rest), self, 1)


@table.batch("stft.center")
def stft_center(batch: Batch, self: Any, n_fft: int, hop_length: Any, win_length: Any, window: Any, center: bool, pad_mode: str,
                *rest: Any) -> Any:
    """The same, padded by n_fft / 2 at both ends."""
    if not batch.has(window):
        return unfolded(batch, batch.same(folded(batch, self, 1), n_fft, hop_length, win_length, window, center, pad_mode, *rest), self, 1)
    if center:
        padded = batch.again("aten::pad", batch.again("aten::unsqueeze", self, 0), [n_fft // 2, n_fft // 2], pad_mode, None)
        self = batch.again("aten::squeeze", padded, 0)
    return spectra(batch, self, n_fft, hop_length, win_length, window, *rest)


def spectra(batch: Batch, self: Any, n_fft: int, hop_length: Any, win_length: Any, window: Any, normalized: bool, onesided: Any,
            return_complex: Any, align_to_window: Any) -> Any:
    """Overlapping frames (..., count, n_fft) times window, transformed. Raises as the operator does."""
    is_complex = "c" in (dtype_of(self.dtype).kind, dtype_of(window.dtype).kind)
    onesided = not is_complex if onesided is None else onesided
    if align_to_window:
        raise UnsupportedError(f"{batch.kind} with align_to_window is not supported", code="E0504")
    if onesided and is_complex:
        raise RunError("stft: Cannot have onesided output if window or input is complex", code="E0504")
    if return_complex is None and not is_complex:
        raise RunError("stft requires the return_complex parameter be given for real inputs", code="E0504")
    frames = batch.again("aten::unfold", self, self.ndim - 1, n_fft, n_fft // 4 if hop_length is None else hop_length)
    windowed = batch.again("aten::mul", frames, in_the_middle(batch, window, n_fft))
    result = batch.again("aten::fft_rfft" if onesided else "aten::fft_fft", windowed, None, -1, norm_of(normalized))
    result = batch.again("aten::transpose", result, -2, -1)
    return batch.again("aten::view_as_real", result) if return_complex is False else result


@table.batch("istft")
def istft(batch: Batch, self: Any, n_fft: int, hop_length: Any, win_length: Any, window: Any, *rest: Any) -> Any:
    """(N, bins, count) -> (B * N, bins, count), N optional; a batched window: by parts."""
    if batch.has(window):
        return signals(batch, self, n_fft, n_fft // 4 if hop_length is None else hop_length, window, *rest)
    return unfolded(batch, batch.same(folded(batch, self, 2), n_fft, hop_length, win_length, window, *rest), self, 2)


def signals(batch: Batch, self: Any, n_fft: int, hop: int, window: Any, center: bool, normalized: bool, onesided: Any, length: Any,
            return_complex: bool) -> Any:
    """Inverse transforms times window, added where they overlap, over the sum of squared windows. Raises RunError where that is 0."""
    if onesided if onesided is not None else self.shape[-2] != n_fft:
        if return_complex:
            raise RunError("istft(): cannot have onesided output if window or input is complex", code="E0504")
    pieces = batch.again("aten::transpose", self, -2, -1)
    if return_complex:
        frames = batch.again("aten::fft_ifft", pieces, n_fft, -1, norm_of(normalized))
    else:
        frames = batch.again("aten::fft_irfft", batch.again("aten::narrow", pieces, -1, 0, n_fft // 2 + 1), n_fft, -1, norm_of(normalized))
    shape = in_the_middle(batch, window, n_fft)
    count = frames.shape[-2]
    total = n_fft + hop * (count - 1)
    start = n_fft // 2 if center else 0
    end = min(total, start + length) if length is not None else total - start

    def added(values: Any) -> Any:
        """Pieces (..., count, n_fft) added up, each `hop` further, from the start to the end."""
        whole = batch.again("aten::unfold_backward", values, [*values.shape[:-2], total], values.ndim - 2, n_fft, hop)
        return batch.again("aten::narrow", whole, -1, start, end - start)
    weight = added(batch.again("aten::expand", batch.again("aten::mul", shape, shape), [count, n_fft]))
    if end > start and np.abs(batch.elements(weight)).min() < 1e-11:
        raise RunError("window overlap add min: 1", code="E0504")
    result = batch.again("aten::div", added(batch.again("aten::mul", frames, shape)), weight)
    if length is not None and length > end - start:
        result = batch.again("aten::constant_pad_nd", result, [0, length - (end - start)], 0)
    return result


def in_the_middle(batch: Batch, window: Any, n_fft: int) -> Any:
    """window (n) -> (n_fft), zeros at both ends."""
    (extent,) = window.shape
    left = (n_fft - extent) // 2
    return batch.again("aten::constant_pad_nd", window, [left, n_fft - extent - left], 0) if extent < n_fft else window


def norm_of(normalized: bool) -> str:
    """The normalization that fft takes: `ortho` or `backward`."""
    return "ortho" if normalized else "backward"
