"""Samples of softmax."""
from irtool.ops.kernels.softmax import table
from irtool.ops.samples.draw import call, chance, flags, real

table.sample("softmax.int log_softmax.int special_softmax special_log_softmax _safe_softmax", call(real(2, 5), 1),
             call(real(3, 4), 0, dtype=7), call(real(), 0))
table.sample("_softmax _log_softmax", call(real(2, 5), 1, False))
table.sample("_masked_softmax", call(real(2, 4), flags(False, True, False, False).repeat(2).reshape(2, 4), 1))
table.sample("_softmax_backward_data _log_softmax_backward_data", call(real(3, 4), chance(3, 4), 1, 7))
table.sample("_masked_softmax_backward", call(real(2, 3), real(2, 3), flags([True, False, False], [False, False, True])),
             call(real(2, 3), real(2, 3), flags([True, False, False], [False, False, False]), 0))
