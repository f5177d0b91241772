"""Samples of sampling at a grid."""
from irtool.ops.kernels.grid_sample import table
from irtool.ops.samples.draw import call, real

image, grid = real(1, 2, 4, 5), real(1, 2, 3, 2)
cube, cube_grid = real(1, 1, 3, 4, 2), real(1, 2, 1, 2, 3)

table.sample("grid_sampler", *[call(image, grid, how, border, True) for how in (0, 2) for border in (0, 1, 2)],
             call(image, grid, 1, 0, False),
             call(cube, cube_grid, 0, 1, False))
table.sample("grid_sampler_2d _grid_sampler_2d_cpu_fallback", call(image, grid, 0, 0, False))
table.sample("grid_sampler_3d", call(cube, cube_grid, 0, 0, False))
table.sample("affine_grid_generator", call(real(2, 2, 3), [2, 1, 3, 4], True), call(real(1, 3, 4), [1, 1, 2, 2, 2], False))
table.sample("affine_grid_generator_backward", call(real(2, 3, 4, 2), [2, 1, 3, 4], True))
