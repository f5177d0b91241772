"""Windows of signal processing: hann, hamming, blackman, bartlett, kaiser; frequencies of a Fourier transform."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import title
from irtool.ops.kernels.factory import OPTIONS, check_size, options
from irtool.ops.op import OpTable

table = OpTable("window")


def _window(xp, name, length, periodic, dtype, values):
    """`values(places, last)` for places 0 ... length - 1; a periodic window is one longer and loses its end."""
    if dtype.kind not in "fc":
        raise RunError(f"{name}_window expects floating point dtypes, got: {dtype.name}")
    if length < 0:
        raise RunError(f"{name}_window requires non-negative window_length, got window_length={length}")
    check_size([length], 8)
    if length < 2:
        return xp.ones(length, dtype)
    _real(dtype)
    last = length - (0 if periodic else 1)
    return values(xp.arange(length, dtype=xp.float64), last).astype(dtype)


def _cosines(xp, coefficients):
    """a0 - a1 cos(x) + a2 cos(2x), x going once round."""
    def values(places, last):
        angle = 2 * math.pi * places / last
        return sum((-1) ** k * a * xp.cos(k * angle) for k, a in enumerate(coefficients))
    return values


def _define(name, arguments, coefficients):
    """The overloads of one cosine window; `coefficients` makes them of the extra arguments."""
    for overload, names in arguments.items():
        schema = f"aten::{name}_window{overload}(int window_length{names}, {OPTIONS}) -> Tensor"
        extras = names.count(",")

        def kernel(xp, window_length, *rest, extras=extras):
            numbers, (dtype, layout, device, _) = rest[:extras], rest[extras:]
            periodic = numbers[0] if numbers else True
            shape = _cosines(xp, coefficients(*numbers[1:]))
            return _window(xp, name, window_length, periodic, options(dtype, layout, device), shape)
        table.define(schema, kernel, doc=f"The {name} window, periodic unless told otherwise.")


PERIODIC = {"": "", ".periodic": ", bool periodic"}
_define("hann", PERIODIC, lambda: (0.5, 0.5))
_define("blackman", PERIODIC, lambda: (0.42, 0.5, 0.08))
_define("hamming", {**PERIODIC, ".periodic_alpha": ", bool periodic, float alpha",
                    ".periodic_alpha_beta": ", bool periodic, float alpha, float beta"}, lambda alpha=0.54, beta=0.46: (alpha, beta))


def _bartlett(xp, window_length, periodic, dtype, layout, device, pin_memory):
    return _window(xp, "bartlett", window_length, periodic, options(dtype, layout, device),
                   lambda places, last: 1 - xp.abs(2 * places / last - 1))


table.define(f"aten::bartlett_window(int window_length, {OPTIONS}) -> Tensor",
             lambda xp, window_length, *rest: _bartlett(xp, window_length, True, *rest), doc="The triangle window, periodic.")
table.define(f"aten::bartlett_window.periodic(int window_length, bool periodic, {OPTIONS}) -> Tensor", _bartlett,
             doc="The triangle window.")


def _kaiser(xp, window_length, periodic, beta, dtype, layout, device, pin_memory):
    return _window(xp, "kaiser", window_length, periodic, options(dtype, layout, device),
                   lambda places, last: xp.i0(beta * xp.sqrt(xp.maximum(1 - (2 * places / last - 1) ** 2, 0))) / xp.i0(xp.asarray(beta)))


table.define(f"aten::kaiser_window(int window_length, {OPTIONS}) -> Tensor",
             lambda xp, window_length, *rest: _kaiser(xp, window_length, True, 12.0, *rest), doc="The Kaiser window, beta 12, periodic.")
table.define(f"aten::kaiser_window.periodic(int window_length, bool periodic, {OPTIONS}) -> Tensor",
             lambda xp, window_length, periodic, *rest: _kaiser(xp, window_length, periodic, 12.0, *rest),
             doc="The Kaiser window, beta 12.")
table.define(f"aten::kaiser_window.beta(int window_length, bool periodic, float beta, {OPTIONS}) -> Tensor", _kaiser,
             doc="The Kaiser window.")


def _real(dtype):
    if dtype.kind != "f":
        raise RunError(f"\"arange_cpu\" not implemented for '{title(dtype)}'", code="E0409")


def _frequencies(xp, name, n, d, dtype):
    if dtype.kind not in "fc":
        raise RunError(f"{name} requires a floating point or complex dtype")
    _real(dtype)
    check_size([n], 8)
    if n == 0:
        return xp.zeros(0 if name == "fftfreq" else 1, dtype) * xp.asarray(math.nan, dtype)
    if d == 0:
        return xp.asarray(getattr(xp.fft, name)(n) * math.inf).astype(dtype)
    return getattr(xp.fft, name)(n, d).astype(dtype)


@table.op(f"aten::fft_fftfreq(int n, float d=1., {OPTIONS}) -> Tensor")
def fft_fftfreq(xp, n, d, dtype, layout, device, pin_memory):
    """Frequencies of an n-point Fourier transform at sample spacing d, zero first, then positive, then negative ones."""
    return _frequencies(xp, "fftfreq", n, d, options(dtype, layout, device))


@table.op(f"aten::fft_rfftfreq(int n, float d=1., {OPTIONS}) -> Tensor")
def fft_rfftfreq(xp, n, d, dtype, layout, device, pin_memory):
    """The frequencies 0 ... of a real n-point Fourier transform at sample spacing d."""
    return _frequencies(xp, "rfftfreq", n, d, options(dtype, layout, device))
