"""Samples of diagonals, and of operators that reverse views."""
from irtool.ops.kernels.diagonal import table
from irtool.ops.samples.draw import call, complexes, real

x = real(2, 3)

table.sample("tril triu", call(real(3, 3)), call(complexes(2, 3, 4), 1))
table.sample("diag_embed", call(x), call(x, 1, 0, 2))
table.sample("diag", call(real(3)), call(real(3, 3), 1))
table.sample("diagflat", call(x, 1))
table.sample("trace", call(real(3, 4)), call(complexes(3, 3)))
table.sample("trace_backward", call(real(), [3, 4]))
table.sample("select_scatter", call(x, real(2), 1, -1))
table.sample("slice_scatter", call(real(5, 2), real(2, 2), 0, 1, None, 2))
table.sample("diagonal_scatter", call(real(3, 4), real(3), 1))
table.sample("select_backward", call(real(2), [2, 3], 1, 1))
table.sample("slice_backward", call(real(2, 2), [5, 2], 0, 1, 5, 2))
table.sample("diagonal_backward", call(real(3), [3, 4], 1, 0, 1))
table.sample("as_strided_scatter", call(real(6), real(2, 2), [2, 2], [3, 1], 1).rough("torch's gradient is not the slope"))
