"""Samples of pooling to a size."""
from irtool.ops.kernels.adaptive_pooling import table
from irtool.ops.samples.draw import apart, call, fixed, ints, real

table.sample("adaptive_avg_pool1d", call(real(2, 7), [3]))
table.sample("adaptive_avg_pool2d _adaptive_avg_pool2d", call(real(1, 2, 5, 4), [2, 3]), call(real(2, 3, 3), [4, 1]))
table.sample("adaptive_avg_pool3d _adaptive_avg_pool3d", call(real(1, 2, 3, 4, 3), [2, 3, 1]))
table.sample("_adaptive_avg_pool2d_backward", call(real(1, 2, 2, 3), fixed(real(1, 2, 5, 4))))
table.sample("_adaptive_avg_pool3d_backward", call(real(1, 1, 2, 3, 1), fixed(real(1, 1, 3, 4, 3))))
table.sample("adaptive_max_pool1d", call(apart(2, 7), [3]))
table.sample("adaptive_max_pool2d", call(apart(1, 2, 5, 4), [2, 3]))
table.sample("adaptive_max_pool3d", call(apart(1, 1, 3, 4, 3), [2, 3, 1]))
table.sample("adaptive_max_pool2d_backward", call(real(1, 1, 2, 2), fixed(apart(1, 1, 4, 4)), ints([[[[0, 3], [9, 15]]]])))
table.sample("adaptive_max_pool3d_backward", call(real(1, 1, 1, 2, 2), fixed(apart(1, 1, 2, 4, 4)), ints([[[[[0, 3], [25, 15]]]]])))
