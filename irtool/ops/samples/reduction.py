"""Samples of sums, means, products, extrema."""
from irtool.ops.kernels.reduction import table
from irtool.ops.samples.draw import apart, call, complexes, ints, positive, real

table.sample("sum mean prod nansum nanmean max min", call(apart(2, 3)))
table.sample("sum.dim_IntList mean.dim nansum nanmean logsumexp special_logsumexp amax amin", call(apart(2, 3, 4), [0, -1]),
             call(apart(2, 3), [1], True), call(apart(), [0]))
table.sample("sum mean prod", call(complexes(2, 3)))
table.sample("sum.dim_IntList mean.dim", call(complexes(2, 3), [1]))
table.sample("prod.dim_int", call(real(2, 3), 1), call(real(2, 3), 0, True), call(complexes(2, 3), 1))
table.sample("max.dim min.dim", call(apart(2, 3), 1), call(apart(2, 3), 0, True))
table.sample("aminmax", call(apart(2, 3), dim=1), call(apart(2, 3), dim=0, keepdim=True), call(apart(5)))
table.sample("sum_to_size _grad_sum_to_size", call(real(2, 3), [1, 3]), call(real(2, 3), [3]), call(complexes(2, 3), [2, 1]))
table.sample("_aminmax", call(apart(2, 3)))
table.sample("_aminmax.dim", call(apart(2, 3), 1), call(apart(2, 3), 0, True))
table.sample("segment_reduce", *[call(positive(5, 2), how, lengths=ints(2, 1, 2)) for how in ("sum", "mean", "prod", "max", "min")],
             call(positive(5), "sum", offsets=ints(0, 2, 5), initial=1.0))
