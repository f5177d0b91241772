"""Samples of dropout: the numbers drawn are the same every time."""
from irtool.ops.kernels.random import table
from irtool.ops.samples.draw import call, flags, real

table.sample("dropout feature_dropout alpha_dropout feature_alpha_dropout native_dropout", call(real(2, 5), 0.5, True),
             call(real(2, 5), 0.5, False))
table.sample("_masked_scale native_dropout_backward", call(real(2, 3), flags(True, False, True), 2.0))
