"""Samples of views."""
from __future__ import annotations

from irtool.ops.array_library import np
from irtool.ops.kernels.shape import table
from irtool.ops.samples.draw import call, complexes, fixed, ints, real

table.sample("view _unsafe_view reshape", call(real(2, 3), [3, 2]), call(complexes(2, 3), [-1]))
table.sample("view_as reshape_as", call(real(2, 3), fixed(real(3, 2))))
table.sample("_reshape_alias", call(real(2, 3), [3, 2], [2, 1]))
table.sample("_reshape_from_tensor", call(real(2, 3), ints(3, 2)))
table.sample("ravel contiguous t mT mT.a mH mH.a adjoint matrix_H matrix_H.a numpy_T numpy_T.a", call(real(2, 3)), call(complexes(2, 3)))
table.sample("flatten.using_ints", call(real(2, 3, 4), 1, -1))
table.sample("unflatten.int", call(real(2, 6), 1, [3, -1]))
table.sample("transpose.int swapaxes swapdims", call(real(2, 3, 4), 0, -1))
table.sample("permute", call(real(2, 3, 4), [2, 0, 1]))
table.sample("movedim.int moveaxis.int", call(real(2, 3, 4), 0, 2))
table.sample("movedim.intlist moveaxis.intlist", call(real(2, 3, 4), [0, 1], [-1, 0]))
table.sample("squeeze", call(real(2, 1, 3)), call(real(3)))
table.sample("squeeze.dim", call(real(2, 1), 1), call(real(2, 3), 1))
table.sample("squeeze.dims", call(real(2, 1, 1), [1, 2]))
table.sample("unsqueeze", call(real(2, 3), -1))
table.sample("expand", call(real(2, 1), [4, 2, 3]), call(complexes(2, 1), [-1, 3]))
table.sample("broadcast_to", call(real(2, 1), [4, 2, 3]))
table.sample("expand_as", call(real(1), fixed(real(2, 3))))
table.sample("select.int", call(real(2, 3), 1, -1), call(complexes(2, 3), 0, 0))
table.sample("slice.Tensor", call(real(5, 2), 0, 1, None, 2), call(real(5), 0, -3, 9))
table.sample("narrow", call(real(5, 2), 0, -3, 2))
table.sample("narrow.Tensor", call(real(5, 2), 0, np.array(1), 2))
table.sample("diagonal", call(real(3, 4), 1, 0, 1), call(complexes(2, 3, 3), -1, 1, 2))
table.sample("linalg_diagonal", call(real(2, 3, 4), offset=1))
table.sample("unfold", call(real(7), 0, 3, 2), call(real(2, 4), 1, 2, 1))
table.sample("as_strided", call(real(6), [2, 3], [2, 1], 0))
table.sample("view_as_real", call(complexes(2, 3)))
table.sample("view_as_complex", call(real(3, 2)))
