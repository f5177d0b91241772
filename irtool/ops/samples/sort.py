"""Samples of sorting and selection: numbers far enough apart."""
from irtool.ops.kernels.sort import table
from irtool.ops.samples.draw import apart, call

table.sample("sort", call(apart(2, 4), 1, True), call(apart(4)))
table.sample("sort.stable", call(apart(2, 4), stable=True, dim=0))
table.sample("msort", call(apart(3, 2)))
table.sample("topk", call(apart(2, 5), 2, 1), call(apart(3, 5), 2, 1, False))
table.sample("kthvalue", call(apart(2, 5), 2, 1), call(apart(5), 2, 0, True))
table.sample("median nanmedian", call(apart(5)))
table.sample("median.dim nanmedian.dim mode", call(apart(2, 5), 1), call(apart(2, 5), 0, True))
