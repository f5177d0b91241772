"""Samples of convolutions."""
from irtool.ops.kernels.conv import table
from irtool.ops.samples.draw import call, real

PLAIN = ([1, 1], [1, 0], [1, 2], False, [0, 0], 1)
UPWARDS = ([2, 1], [1, 0], [1, 1], True, [1, 0], 2)
x, w, b = real(1, 2, 4, 5), real(3, 2, 2, 3), real(3)
cube, cube_w = real(1, 2, 3, 3, 3), real(2, 2, 2, 2, 2)

table.sample("convolution convolution_overrideable", call(x, w, b, *PLAIN), call(real(2, 4, 3, 4), real(4, 3, 2, 3), None, *UPWARDS))
table.sample("aten::_convolution", call(real(1, 4, 7), real(4, 2, 3), real(4), [2], [1], [1], False, [0], 2, False, False, False, False))
table.sample("_convolution.deprecated", call(real(1, 4, 7), real(4, 2, 3), real(4), [2], [1], [1], False, [0], 2, False, False, False))
table.sample("_convolution_mode", call(x, w, b, [1, 1], "same", [1, 1], 1), call(x, w, None, [1, 1], "valid", [1, 1], 1))
table.sample("aten::conv1d", call(real(2, 2, 6), real(3, 2, 3), real(3), [2], [1]), call(real(2, 5), real(3, 2, 3)))
table.sample("aten::conv2d", call(real(1, 4, 5, 4), real(4, 2, 2, 3), None, [1, 2], [1, 0], [2, 1], 2), call(x, w, b),
             call(x, real(3, 2, 4, 5)))
table.sample("aten::conv3d", call(cube, cube_w, real(2), padding=[1, 0, 0]))
table.sample("conv1d.padding", call(real(1, 2, 5), real(3, 2, 2), real(3), padding="same"))
table.sample("conv2d.padding", call(x, w, b, padding="same"), call(x, w, None, [2, 1], "valid"))
table.sample("conv3d.padding", call(cube, cube_w, padding="same"))
table.sample("conv_transpose1d", call(real(1, 2, 4), real(2, 3, 3), real(3), [2], [1], [1]))
table.sample("conv_transpose2d.input", call(real(1, 2, 3, 3), real(2, 2, 2, 2), real(2), [2, 1], [0, 1], [1, 0]),
             call(real(2, 4, 3, 2), real(4, 3, 2, 3), real(6), [2, 1], [1, 0], [1, 0], 2, [1, 1]))
table.sample("conv_transpose3d.input", call(cube, cube_w))
table.sample("thnn_conv2d _slow_conv2d_forward", call(x, w, [2, 3], b, [1, 2], [0, 1]))
table.sample("slow_conv3d", call(cube, cube_w, [2, 2, 2], real(2)))
table.sample("slow_conv_dilated2d", call(x, w, [2, 3], b, [1, 1], [0, 1], [2, 1]))
table.sample("slow_conv_dilated3d", call(cube, cube_w, [2, 2, 2], real(2)))
table.sample("_conv_depthwise2d", call(x, real(2, 1, 2, 2), [2, 2], real(2), [1, 1], [0, 1], [1, 1]))
table.sample("conv_depthwise3d", call(cube, real(2, 1, 2, 2, 2), [2, 2, 2], real(2), [1, 1, 1], [0, 0, 0], [1, 1, 1]))
table.sample("conv_tbc", call(real(5, 2, 3), real(2, 3, 4), real(4), 1))
table.sample("convolution_backward", call(real(1, 3, 5, 1), x, w, [3], *PLAIN, [True, True, True]),
             call(real(2, 6, 5, 4), real(2, 4, 3, 2), real(4, 3, 2, 3), [6], *UPWARDS, [True, True, True]),
             call(real(1, 3, 5, 1), x, w, [3], *PLAIN, [True, False, False]))
table.sample("im2col", call(real(1, 2, 4, 5), [2, 2], [1, 1], [0, 1], [1, 2]))
table.sample("col2im", call(real(1, 8, 9), [4, 4], [2, 2], [1, 1], [0, 0], [1, 1]))
