"""Samples of norms of matrices."""
import math

from irtool.ops.kernels.matrix_norm import table
from irtool.ops.samples.draw import call, complexes, real, regular

table.sample("linalg_matrix_norm", *[call(real(2, 3, 4), order, [0, 2], True) for order in (1, -1, math.inf, -math.inf)],
             call(regular(3, 3), 2), call(regular(3, 3), -2))
table.sample("linalg_matrix_norm.str_ord linalg_norm.ord_str", call(regular(3, 3), "nuc"), call(real(3, 4), "fro", [0, 1], True))
table.sample("linalg_norm", call(real(3, 4), 3, [1]), call(real(3, 4)), call(regular(3, 3), 2), call(complexes(3), None))
table.sample("linalg_cond", call(regular(3, 3)), call(regular(3, 3), 1), call(regular(3, 3), -2))
table.sample("linalg_cond.p_str", call(regular(3, 3), "fro"), call(regular(3, 3), "nuc"))
