"""Samples of Fourier transforms: shorter, longer, real, complex, each norm."""
from irtool.ops.kernels.fft import table
from irtool.ops.samples.draw import call, complexes, real

ONE = call(real(2, 5)), call(complexes(2, 5), 6, 1), call(complexes(2, 5), 4, 0, "ortho")
MANY = call(real(3, 4)), call(complexes(3, 4), [2, 5], [0, 1], "forward"), call(complexes(3, 4), norm="ortho"), \
    call(complexes(3, 4), [2, -1], [1, 0])

table.sample("fft_fft fft_ifft fft_irfft fft_hfft", *ONE)
table.sample("fft_rfft fft_ihfft", call(real(2, 5), 6, 1), call(real(6), 5, 0, "forward"), call(real(2, 4), norm="ortho"))
table.sample("fft_fft2 fft_ifft2 fft_irfft2 fft_hfft2 fft_fftn fft_ifftn fft_irfftn fft_hfftn", *MANY)
table.sample("fft_rfft2 fft_ihfft2 fft_rfftn fft_ihfftn", call(real(3, 4)), call(real(3, 4), [2, 5], [0, 1], "forward"),
             call(real(3, 4), [2, -1], [1, 0]))
table.sample("fft_fftshift fft_ifftshift", call(real(5)), call(complexes(3, 4), [0]))
table.sample("_fft_c2c", call(complexes(3, 4), [0, 1], 1, True), call(complexes(3, 4), [1], 2, False))
table.sample("_fft_r2c", call(real(3, 4), [0, 1], 0, True), call(real(3, 5), [1], 1, False))
table.sample("_fft_c2r", call(complexes(3, 3), [0, 1], 0, 4), call(complexes(3, 3), [1], 2, 5))
