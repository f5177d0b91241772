"""Samples of pooling: numbers far enough apart."""
from irtool.ops.kernels.pooling import table
from irtool.ops.samples.draw import apart, call, chance, fixed, ints, real

x, cube = apart(1, 2, 4, 4), apart(1, 1, 4, 3, 3)
TWO = ([2, 2], [2, 1], [1, 0], [1, 1], False)
THREE = ([2, 2, 2], [2, 1, 1], [0, 0, 0], [1, 1, 1], True)

table.sample("max_pool1d max_pool1d_with_indices", call(apart(1, 2, 6), [3], [2], [1]), call(apart(2, 7), [3], [2], [1], [1], True))
table.sample("max_pool2d max_pool2d_with_indices", call(x, [2, 2]), call(x, *TWO))
table.sample("max_pool3d max_pool3d_with_indices", call(cube, *THREE))
table.sample("max_pool2d_backward", call(real(1, 2, 2, 2), fixed(apart(1, 2, 4, 4)), [2, 2], [2, 2]))
table.sample("max_pool2d_with_indices_backward", call(real(1, 2, 2, 2), fixed(apart(1, 2, 4, 4)), [2, 2], [2, 2], [0, 0], [1, 1], False,
                                                      ints([[[[0, 3], [9, 15]], [[5, 2], [8, 14]]]])))
table.sample("max_pool3d_with_indices_backward", call(real(1, 1, 1, 1, 2), fixed(apart(1, 1, 2, 2, 3)), [2, 2, 2], [1, 1, 1], [0, 0, 0],
                                                      [1, 1, 1], False, ints([[[[[0, 8]]]]])))
table.sample("avg_pool1d", call(real(2, 3, 7), [3], [2], [1], True, False))
table.sample("avg_pool2d", call(real(1, 2, 5, 5), [3, 3], [2, 2], [1, 1], True, False), call(real(2, 4, 4), [3, 2], divisor_override=5))
table.sample("avg_pool3d", call(real(1, 2, 4, 4, 4), [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, 5))
table.sample("avg_pool2d_backward", call(real(2, 3, 3, 2), fixed(real(2, 3, 6, 5)), [2, 2], [2, 2], [0, 0], False, True, None))
table.sample("avg_pool3d_backward",
             call(real(1, 1, 2, 2, 2), fixed(real(1, 1, 4, 4, 4)), [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None))
table.sample("max_unpool2d", call(real(1, 1, 2, 2), ints([[[[0, 3], [9, 15]]]]), [4, 4]))
table.sample("max_unpool3d", call(real(1, 1, 1, 2, 2), ints([[[[[0, 3], [9, 15]]]]]), [1, 4, 4], [1, 2, 2], [0, 0, 0]))
table.sample("fractional_max_pool2d", call(apart(1, 2, 5, 5), [2, 2], [3, 3], fixed(chance(1, 2, 2))))
table.sample("fractional_max_pool3d", call(apart(1, 1, 4, 4, 4), [2, 2, 2], [2, 2, 2], fixed(chance(1, 1, 3))))
table.sample("fractional_max_pool2d_backward",
             call(real(1, 1, 2, 2), fixed(apart(1, 1, 4, 4)), [2, 2], [2, 2], ints([[[[0, 3], [9, 15]]]])))
table.sample("fractional_max_pool3d_backward", call(real(1, 1, 1, 2, 2), fixed(apart(1, 1, 2, 4, 4)), [2, 2, 2], [1, 2, 2],
                                                    ints([[[[[0, 3], [25, 15]]]]])))
