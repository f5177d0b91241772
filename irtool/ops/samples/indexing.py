"""Samples of indexing: picking, putting, masks."""
from irtool.ops.array_library import np
from irtool.ops.kernels.indexing import table
from irtool.ops.samples.draw import call, complexes, fixed, flags, ints, real

x, columns, mask, chosen = real(3, 4), ints(1, 1, 3), flags(True, False), np.array([1, 0, 1], np.uint8)

table.sample("index_select", call(x, 1, ints(0, 2, 2)), call(complexes(3, 4), 0, ints(2, 0)), call(real(), 0, ints(0)))
table.sample("index_select_backward", call(real(3, 2), [3, 4], 1, ints(0, 2)))
table.sample("gather", call(x, 1, ints([[0, 0], [1, 2], [3, 3]])), call(complexes(3), 0, ints(0, 0, 2)),
             call(real(), 0, ints(0, 0)), call(real(3), 0, np.array(1)))
table.sample("gather_backward", call(real(3, 2), fixed(real(3, 4)), 1, ints([[0, 0], [1, 2], [3, 3]]), False))
table.sample("index.Tensor _unsafe_index.Tensor", call(x, [None, columns]), call(x, [ints(0, 2, 2), columns]),
             call(complexes(3, 4), [columns - 1]))
table.sample("index.Tensor_hacked_twin _unsafe_index.Tensor_hacked_twin", call(x, [ints(0, 2, 2), columns]))
table.sample("index_put index_put_ _unsafe_index_put _index_put_impl _index_put_impl_", call(x, [ints(0, 2)], real(2, 4)),
             call(x, [ints(0, 0)], real(4), True), call(x, [None, columns], real(3, 3), True))
table.sample("index_put index_put_ _index_put_impl _index_put_impl_", call(x, [chosen], real(2, 4)))
table.sample("index_put.hacked_twin index_put_.hacked_twin _unsafe_index_put.hacked_twin _index_put_impl_.hacked_twin",
             call(x, [ints(0, 2)], real(2, 4)), call(x, [ints(0, 0)], real(), True))
table.sample("_unsafe_masked_index", call(x, flags(True, False, True), [None, columns], 0.5))
table.sample("_unsafe_masked_index_put_accumulate", call(x, flags(True, False, True), [None, columns], real(3, 3)))
table.sample("index_add", call(x, 0, ints(0, 2), real(2, 4), alpha=2), call(complexes(3), 0, ints(0, 0), complexes(2)))
table.sample("index_copy", call(x, 0, ints(0, 2), real(2, 4)))
table.sample("index_fill.int_Scalar", call(x, 1, ints(0, 2), 0.5))
table.sample("index_fill.int_Tensor", call(x, 1, ints(0, 2), real()))
table.sample("take", call(x, ints(0, 5, 5)))
table.sample("put", call(x, ints(0, 5), real(2)), call(x, ints(0, 5, 5), real(3), True))
table.sample("masked_fill.Scalar", call(real(2, 2), mask, 1.0), call(complexes(2, 2), mask, 1.0))
table.sample("masked_fill.Tensor", call(real(2, 2), mask, real()))
table.sample("masked_select", call(real(2, 2), mask))
table.sample("masked_select_backward", call(real(2), fixed(real(2, 2)), mask))
table.sample("masked_scatter", call(real(3, 2), mask, real(4)))
table.sample("masked_scatter_backward", call(real(3, 2), flags([True, False], [True, True], [False, False]), [4]))
table.sample("take_along_dim", call(x, ints([[0, 0], [1, 2], [3, 3]]), 1), call(x, ints([[1], [0], [2]]), 1), call(x, ints(0, 5, 5)))
