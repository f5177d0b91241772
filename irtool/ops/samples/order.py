"""Samples of quantiles."""
from irtool.ops.kernels.order import table
from irtool.ops.samples.draw import apart, call, chance, fixed

table.sample("quantile nanquantile", call(apart(3, 5), fixed(chance(2)), 1), call(apart(4), fixed(chance()), interpolation="midpoint"))
table.sample("quantile.scalar nanquantile.scalar", call(apart(4, 3), 0.4, None, True), call(apart(4, 3), 0.4, 0, interpolation="lower"))
