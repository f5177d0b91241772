"""Samples of lists of tensors."""
from irtool.ops.kernels.list import table
from irtool.ops.samples.draw import call, real

tensors = [real(2), real(3), real()]

table.sample("__getitem__.t select.t", call(tensors, 1), call(tensors, -1))
table.sample("copy.t list.t", call(tensors))
table.sample("add.t", call(tensors, [real(1), real(2)]))
table.sample("mul.left_t", call(tensors, 2), call(tensors, 0))
table.sample("mul.right_", call(2, tensors))
table.sample("slice.t", call(tensors, 1), call(tensors, None, None, 2), call(tensors, 2, 1))
