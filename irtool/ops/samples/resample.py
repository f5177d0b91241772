"""Samples of resampling."""
from irtool.ops.kernels.resample import table
from irtool.ops.samples.draw import call, real

LINE, IMAGE, CUBE = (1, 1, 3), (1, 1, 2, 3), (1, 1, 2, 2, 3)
SMOOTH = "upsample_bilinear2d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa".split()

for kind in ("upsample_nearest", "_upsample_nearest_exact"):
    table.sample(f"{kind}1d", call(real(*LINE), [5]))
    table.sample(f"{kind}2d", call(real(*IMAGE), [4, 5]))
    table.sample(f"{kind}3d", call(real(*CUBE), [3, 2, 4]))
    table.sample(f"{kind}1d.vec", call(real(*LINE), None, [1.6]))
    table.sample(f"{kind}2d.vec", call(real(*IMAGE), None, [1.6, 2.0]), call(real(*IMAGE), [3, 2], None))
    table.sample(f"{kind}3d.vec", call(real(*CUBE), [2, 3, 2], None))
    table.sample(f"{kind}1d_backward", call(real(1, 1, 5), [5], [1, 1, 3]))
    table.sample(f"{kind}2d_backward", call(real(1, 1, 4, 5), [4, 5], [1, 1, 2, 3]))
    table.sample(f"{kind}3d_backward", call(real(1, 1, 3, 2, 4), [3, 2, 4], [1, 1, 2, 2, 3]))
table.sample("upsample_linear1d", call(real(*LINE), [5], True), call(real(*LINE), [5], False))
table.sample("upsample_linear1d.vec", call(real(*LINE), None, False, [1.6]))
table.sample("upsample_linear1d_backward", call(real(1, 1, 5), [5], [1, 1, 3], False))
table.sample("upsample_trilinear3d", call(real(*CUBE), [3, 2, 4], True))
table.sample("upsample_trilinear3d.vec", call(real(*CUBE), None, False, [1.5, 1.0, 2.0]))
table.sample("upsample_trilinear3d_backward", call(real(1, 1, 3, 2, 4), [3, 2, 4], [1, 1, 2, 2, 3], False))
for kind in SMOOTH:
    table.sample(kind, call(real(*IMAGE), [4, 5], False), call(real(1, 1, 4, 3), [3, 5], True))
    table.sample(f"{kind}.vec", call(real(*IMAGE), None, False, [1.6, 2.0]))
    table.sample(f"{kind}_backward", call(real(1, 1, 4, 5), [4, 5], [1, 1, 2, 3], False))
