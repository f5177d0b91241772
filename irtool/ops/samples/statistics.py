"""Samples of variances, deviations and norms."""
import math

from irtool.ops.kernels.statistics import table
from irtool.ops.samples.draw import apart, call, complexes, ints, positive, real, regular

table.sample("var std var_mean std_mean", call(real(5)), call(real(2, 3), False), call(complexes(2, 3)))
table.sample("var.dim std.dim var_mean.dim std_mean.dim", call(real(2, 5), [1], True, True), call(real(2, 5), [0, 1]))
table.sample("var.correction std.correction var_mean.correction std_mean.correction", call(real(2, 5), [1], correction=1),
             call(real(2, 5), None, correction=0), call(complexes(2, 5), [1]))
table.sample("linalg_vector_norm", *[call(apart(2, 5), p, [1]) for p in (0, 0.5, 1, 1.5, 2, 3, math.inf, -math.inf)],
             call(complexes(2, 3), 2, [0], True), call(complexes(2, 3), 3, None))
table.sample("norm.Scalar native_norm", call(real(2, 3), 2), call(real(2, 3), 3))
table.sample("norm.ScalarOpt_dim", call(real(2, 3), None, [1], True), call(complexes(2, 3), 1.5, [0]))
table.sample("norm.ScalarOpt_dtype", call(real(2, 3), 2, dtype=7))
table.sample("norm.ScalarOpt_dim_dtype", call(real(2, 3), 3, [1], False, dtype=7))
table.sample("frobenius_norm.dim", call(real(2, 3), [1], True), call(real(2, 3), [0, 1]), call(complexes(2, 3), [1]))
table.sample("cov", call(real(3, 5)), call(real(3, 5), aweights=positive(5)), call(complexes(3, 5)),
             call(real(3, 5), correction=0, fweights=ints(1, 2, 1, 3, 1), aweights=positive(5)), call(real(5)))
table.sample("corrcoef", call(real(3, 5)), call(complexes(3, 5)))
table.sample("native_norm.ScalarOpt_dim_dtype", call(real(2, 3), 2, [1], True, None))
table.sample("nuclear_norm", call(regular(3, 3)), call(real(3, 2), True))
table.sample("nuclear_norm.dim", call(regular(2, 3, 3), [1, 2]))
