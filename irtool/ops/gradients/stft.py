"""Gradients of the short-time Fourier transform and its inverse."""
from __future__ import annotations

from irtool.ops.gradients.fft import adjoint_norm, along, both_halves
from irtool.ops.gradients.padding import pad_back
from irtool.ops.kernels.stft import table
from irtool.ops.tensor import Tensor, torch

CONJUGATED = True      # conj() is spelt out, as in torch


def wide_window(window: Tensor | None, n_fft: int, win_length: int | None, like: Tensor) -> Tensor:
    """The window in the middle of n_fft zeros; ones without one."""
    length = win_length if win_length is not None else n_fft
    left = (n_fft - length) // 2
    values = window if window is not None else torch.ones([length], dtype=torch.real(like).dtype)
    return torch.constant_pad_nd(values, [left, n_fft - length - left], 0)


def window_part(grad: Tensor, window: Tensor | None, n_fft: int, win_length: int | None) -> Tensor | None:
    """The gradient of the window from that of the wide one."""
    result: Tensor | None = None
    if window is not None:
        length = win_length if win_length is not None else n_fft
        result = grad.narrow(0, (n_fft - length) // 2, length)
    return result


def stft_back(grad: Tensor, signal: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None,
              normalized: bool, onesided: bool | None, return_complex: bool | None) -> tuple[Tensor, Tensor | None]:
    """Gradients for the signal (with its borders) and the window."""
    hop = hop_length if hop_length is not None else n_fft // 4
    shape = wide_window(window, n_fft, win_length, signal)
    real = not signal.is_complex() and not shape.is_complex()
    half = onesided if onesided is not None else real
    slope = torch.complex(grad.select(-1, 0), grad.select(-1, 1)) if not grad.is_complex() else grad
    slope = slope.transpose(-1, -2)
    if half:
        slope = along(slope, slope.dim() - 1, n_fft)
    frames = torch.fft_ifft(slope, None, -1, adjoint_norm("ortho" if normalized else "backward"))
    for_signal_frames = torch.real(frames * shape.conj()) if not signal.is_complex() else frames * shape.conj()
    for_signal = torch.unfold_backward(for_signal_frames, signal.size(), signal.dim() - 1, n_fft, hop)
    for_window: Tensor | None = None
    if window is not None:
        product = frames * signal.unfold(-1, n_fft, hop).conj()
        if not window.is_complex():
            product = torch.real(product)
        for_window = window_part(product.sum_to_size([n_fft]), window, n_fft, win_length)
    return for_signal, for_window


@table.derivative("aten::stft")
def stft_gradient(grad, self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex):
    return stft_back(grad, self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex)


@table.gradient("stft.center")
def stft_center_gradient(self: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None, center: bool,
                         pad_mode: str, normalized: bool, onesided: bool | None, return_complex: bool | None,
                         align_to_window: bool | None):
    border = [n_fft // 2, n_fft // 2] if center else [0, 0]
    lifted = self.unsqueeze(0) if self.dim() == 2 else self.unsqueeze(0).unsqueeze(0)
    padded = torch.pad(lifted, border, pad_mode) if center else lifted
    signal = padded.reshape(self.size()[:-1] + [padded.size(-1)])
    result = torch.stft(signal, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, None)

    def backward(grad: Tensor):
        for_signal, for_window = stft_back(grad, signal, n_fft, hop_length, win_length, window, normalized, onesided, return_complex)
        if center:
            for_signal = pad_back(for_signal.reshape(padded.size()), lifted, border, pad_mode).reshape(self.size())
        return for_signal, None, None, None, for_window, None, None, None, None, None, None

    return result, backward


@table.derivative("istft")
def istft_gradient(grad, self, n_fft, hop_length, win_length, window, center, normalized, return_complex, result):
    hop = hop_length if hop_length is not None else n_fft // 4
    shape = wide_window(window, n_fft, win_length, self)
    count = self.size(-1)
    whole = n_fft + hop * (count - 1)
    start = n_fft // 2 if center else 0
    size = min(grad.size(-1), whole - start)
    signal = grad if return_complex else torch.real(grad)
    squares = (shape * shape).unsqueeze(0).expand([count, n_fft])
    weight = torch.unfold_backward(squares, [whole], 0, n_fft, hop).narrow(0, start, size)
    per_sample = signal.narrow(-1, 0, size) / weight.conj()
    signal_grad = torch.constant_pad_nd(per_sample, [start, whole - start - size], 0)
    frame_grad = signal_grad.unfold(-1, n_fft, hop)
    norm = "ortho" if normalized else "backward"
    spectra = self.transpose(-1, -2)
    if return_complex:
        frames = torch.fft_ifft(spectra, n_fft, -1, norm)
        for_spectra = torch.fft_fft(frame_grad * shape.conj(), None, -1, adjoint_norm(norm))
    else:
        frames = torch.fft_irfft(spectra.narrow(-1, 0, n_fft // 2 + 1), n_fft, -1, norm)
        part = torch.fft_rfft(frame_grad * shape, None, -1, adjoint_norm(norm))
        for_spectra = along(both_halves(part, part.dim() - 1, n_fft), part.dim() - 1, spectra.size(-1))
    for_window: Tensor | None = None
    if window is not None:
        lost = torch.constant_pad_nd(per_sample * result.narrow(-1, 0, size).conj(), [start, whole - start - size], 0)
        slope = (frame_grad * frames.conj()).sum_to_size([n_fft])
        slope = slope - 2 * (lost.unfold(-1, n_fft, hop) * shape.conj()).sum_to_size([n_fft])
        if not window.is_complex():
            slope = torch.real(slope)
        for_window = window_part(slope, window, n_fft, win_length)
    return for_spectra.transpose(-1, -2), for_window
