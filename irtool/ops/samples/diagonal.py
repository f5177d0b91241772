"""Samples of diagonals, copies of views, and what undoes views."""
from __future__ import annotations

from irtool.ops.kernels.diagonal import table
from irtool.ops.samples.draw import call, complexes, real

x = real(2, 3)

table.sample("tril triu", call(real(3, 3)), call(complexes(2, 3, 4), 1))
table.sample("diag_embed", call(x), call(x, 1, 0, 2))
table.sample("diag", call(real(3)), call(real(3, 3), 1))
table.sample("diagflat", call(x, 1))
table.sample("trace", call(real(3, 4)), call(complexes(3, 3)))
table.sample("trace_backward", call(real(), [3, 4]))
table.sample("as_strided_copy", call(real(6), [2, 3], [2, 1], 0))
table.sample("diagonal_copy", call(real(3, 4), 1))
table.sample("expand_copy", call(real(2, 1), [4, 2, 3]))
table.sample("narrow_copy", call(real(5, 2), 0, 1, 2))
table.sample("permute_copy", call(x, [1, 0]))
table.sample("select_copy.int", call(x, 1, -1))
table.sample("slice_copy.Tensor", call(real(5, 2), 0, 1, None, 2))
table.sample("squeeze_copy", call(real(2, 1, 3)))
table.sample("squeeze_copy.dim", call(real(2, 1), 1))
table.sample("squeeze_copy.dims", call(real(2, 1, 1), [1, 2]))
table.sample("t_copy", call(x))
table.sample("transpose_copy.int", call(x, 0, 1))
table.sample("unfold_copy", call(real(7), 0, 3, 2))
table.sample("unsqueeze_copy", call(x, 1))
table.sample("view_copy", call(x, [3, 2]))
table.sample("view_as_complex_copy", call(real(3, 2)))
table.sample("view_as_real_copy", call(complexes(3)))
table.sample("select_scatter", call(x, real(2), 1, -1))
table.sample("slice_scatter", call(real(5, 2), real(2, 2), 0, 1, None, 2))
table.sample("diagonal_scatter", call(real(3, 4), real(3), 1))
table.sample("select_backward", call(real(2), [2, 3], 1, 1))
table.sample("slice_backward", call(real(2, 2), [5, 2], 0, 1, 5, 2))
table.sample("diagonal_backward", call(real(3), [3, 4], 1, 0, 1))
table.sample("as_strided_scatter", call(real(6), real(2, 2), [2, 2], [3, 1], 1).rough("torch's gradient is not the slope"))
