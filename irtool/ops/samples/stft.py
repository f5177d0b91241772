"""Samples of short-time transforms."""
from irtool.ops.kernels.stft import table
from irtool.ops.samples.draw import call, complexes, positive, real

window = positive(4)

table.sample("stft", call(real(9), 4, 2, 4, window, onesided=True, return_complex=True),
             call(complexes(2, 9), 4, onesided=False, return_complex=True))
table.sample("stft.center", call(real(2, 8), 4, 1, 3, positive(3), True, "reflect", True, True, True))
table.sample("istft", call(complexes(3, 5), 4, 2, 4, window, center=True, onesided=True), call(complexes(2, 3, 4), 4, normalized=True))
