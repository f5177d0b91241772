"""Short-time Fourier transform of one or many signals, and back."""
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.arrays import astype, complex_of, memory_order, real_of
from irtool.ops.checks import in_memory_order, row_major
from irtool.ops.op import OpTable

table = OpTable("stft")


def _window(xp, name, window, win_length, n_fft, dtype):
    """The window, ones without one, in the middle of n_fft zeros."""
    if win_length <= 0 or win_length > n_fft:
        raise RunError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={win_length}")
    if window is not None and window.shape != (win_length,):
        raise RunError(f"{name}: expected a 1D window tensor of size equal to win_length={win_length}, but got window with size "
                       f"{list(window.shape)}")
    values = xp.ones(win_length, dtype) if window is None else window
    left = (n_fft - win_length) // 2
    padded = xp.zeros(n_fft, values.dtype)
    padded[left:left + win_length] = values
    return padded


def _frames(xp, x, n_fft, hop):
    """Windows of n_fft samples every `hop` of the last dimension: (..., frames, n_fft), a view."""
    return xp.lib.stride_tricks.sliding_window_view(x, n_fft, axis=-1)[..., ::hop, :]


def _stft(xp, self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window):
    if align_to_window:
        raise UnsupportedError("aten::stft with align_to_window is not supported")
    hop, length = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if self.dtype.kind not in "fc":
        raise RunError("stft expects a tensor of floating point or complex values")
    if self.ndim not in (1, 2):
        raise RunError("stft expects a 1D or 2D tensor")
    if not 0 < n_fft <= self.shape[-1]:
        raise RunError(f"stft: expected 0 < n_fft <= {self.shape[-1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RunError(f"stft: expected hop_length > 0, but got hop_length={hop}")
    shape = _window(xp, "stft", window, length, n_fft, real_of(self.dtype))
    is_complex = "c" in (self.dtype.kind, shape.dtype.kind)
    if onesided is None:
        onesided = not is_complex
    if onesided and is_complex:
        raise RunError("stft: Cannot have onesided output if window or input is complex")
    if return_complex is None:
        if not is_complex:
            raise RunError("stft requires the return_complex parameter be given for real inputs, and will further require that "
                           "return_complex=True in a future PyTorch release.")
        return_complex = True
    frames = _frames(xp, self, n_fft, hop) * shape
    spectrum = (xp.fft.rfft if onesided else xp.fft.fft)(frames, axis=-1, norm="ortho" if normalized else "backward")
    order = [*[place for place in memory_order(frames) if place < self.ndim], self.ndim]      # a window is a row
    result = xp.swapaxes(in_memory_order(xp, astype(spectrum, complex_of(frames.dtype)), order), -1, -2)
    return result if return_complex else xp.stack([result.real, result.imag], -1)


@table.op("aten::stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, "
          "bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor")
def stft(xp, self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window):
    """Spectra of overlapping windows of a signal (or a batch): (..., frequencies, frames), complex or with a last dimension of 2."""
    return _stft(xp, self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)


@table.op('aten::stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, '
          'str pad_mode="reflect", bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None)'
          ' -> Tensor')
def stft_center(xp, self, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window):
    """The same after padding the signal by half a window on both sides when `center`."""
    if center:
        if align_to_window is not None:
            raise RunError("stft align_to_window should only be set when center = false.")
        mode = {"reflect": "reflect", "constant": "constant", "replicate": "edge", "circular": "wrap"}.get(pad_mode)
        if mode is None:
            raise UnsupportedError(f"aten::stft with pad_mode {pad_mode} is not supported")
        half = n_fft // 2
        if mode == "reflect" and half >= self.shape[-1]:
            raise RunError(f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding ({half}, "
                           f"{half}) at dimension 2 of input {[1, *self.shape]}")
        self = row_major(xp, xp.pad(self, [(0, 0)] * (self.ndim - 1) + [(half, half)], mode))
    return _stft(xp, self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)


@table.op("aten::istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
          "bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor")
def istft(xp, self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex):
    """The signal with these short-time spectra: overlapping inverse transforms are added and divided by the added squared windows."""
    if self.dtype.kind != "c":
        raise RunError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    hop, win = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if self.ndim not in (2, 3) or self.size == 0:
        raise RunError("istft(): input tensor cannot be empty." if self.size == 0 else
                       f"istft(): expected a tensor with 3 or 4 dimensions, but got {self.ndim + 1}")
    if onesided is None:
        onesided = self.shape[-2] != n_fft
    if self.shape[-2] != (n_fft // 2 + 1 if onesided else n_fft):
        raise RunError("istft(): expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when "
                       f"onesided=True, but got {self.shape[-2]}")
    if not 0 < hop <= win:
        raise RunError("istft(): expected 0 < hop_length <= win_length")
    shape = _window(xp, "istft()", window, win, n_fft, real_of(self.dtype))
    if shape.dtype.kind == "c" and not return_complex:
        raise RunError("Complex windows are incompatible with return_complex=False")
    norm = "ortho" if normalized else "backward"
    spectra = xp.swapaxes(self, -1, -2)
    if return_complex:
        if onesided:
            raise RunError("istft(): cannot have onesided output if window or input is complex")
        frames = xp.fft.ifft(spectra, n_fft, -1, norm)
    else:
        frames = xp.fft.irfft(spectra[..., :n_fft // 2 + 1], n_fft, -1, norm)
    signal, weight = _overlap(xp, frames * shape, hop), _overlap(xp, xp.broadcast_to(shape * shape, frames.shape[-2:]), hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else signal.shape[-1] - (n_fft // 2 if center else 0)
    signal, weight = signal[..., start:end], weight[start:end]
    if weight.size and xp.abs(weight).min() < 1e-11:
        raise RunError("window overlap add min: 1")
    signal = signal / weight
    if length is not None and signal.shape[-1] < length:
        signal = xp.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, length - signal.shape[-1])])
    return astype(signal, self.dtype if return_complex else real_of(self.dtype))


def _overlap(xp, frames, hop):
    """Frames (..., count, width) added up, each `hop` further."""
    count, width = frames.shape[-2:]
    total = xp.zeros((*frames.shape[:-2], width + hop * (count - 1)), frames.dtype)
    for place in range(count):
        total[..., place * hop:place * hop + width] += frames[..., place, :]
    return total


# ---- dtypes that torch serves

table.takes("fc", "stft")
