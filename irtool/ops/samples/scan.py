"""Samples of running sums, products and extrema."""
from irtool.ops.array_library import np
from irtool.ops.kernels.scan import table
from irtool.ops.samples.draw import apart, call, complexes, real

table.sample("cumsum cumprod logcumsumexp _logcumsumexp cummax cummin", call(apart(2, 4), 1), call(apart(3, 4), 0), call(apart(), 0))
table.sample("cumsum cumprod", call(complexes(2, 4), 1))
table.sample("diff", call(real(2, 5), 2, 1), call(real(3, 5), 2, 1, real(3, 1), real(3, 2)), call(complexes(5)))
table.sample("trapezoid.x trapz.x cumulative_trapezoid.x", call(real(3, 4), real(4), dim=1), call(real(3, 4), real(3, 4), dim=0))
table.sample("trapezoid.dx trapz.dx cumulative_trapezoid.dx", call(real(3, 4), dx=0.5, dim=0), call(complexes(3, 4), dx=0.5),
             call(real(2, 0)))
table.sample("gradient.scalarint", call(real(3, 4)), call(real(3, 4), spacing=2.0, dim=1, edge_order=2))
table.sample("gradient.scalararray", call(real(3, 4), spacing=2.0, dim=[0, 1]))
table.sample("gradient.array", call(real(3, 4), dim=[1, 0], edge_order=2))
table.sample("gradient.scalarrayint", call(real(4), spacing=[2.0], dim=0))
table.sample("gradient.scalarrayarray", call(real(3, 4), spacing=[2.0, 0.5], dim=[0, 1]))
table.sample("gradient.tensorarrayint", call(real(4), spacing=[np.array([0.0, 1, 3, 4])], dim=0))
table.sample("gradient.tensorarray", call(real(3, 4), spacing=[np.array([0.0, 1, 3]), np.array([0.0, 2, 3, 5])], dim=[0, 1]))
