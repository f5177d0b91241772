"""Samples of scattering."""
from irtool.ops.kernels.scatter import table
from irtool.ops.samples.draw import apart, call, complexes, ints, positive, real

x, index = real(3, 4), ints([[0, 1], [2, 3]])

table.sample("scatter.src", call(x, 1, index, real(2, 2)), call(complexes(3, 4), 1, index, complexes(2, 2)))
table.sample("scatter.value", call(x, 1, index, 0.5))
table.sample("scatter.reduce", call(x, 1, ints([[0, 0], [2, 3]]), real(2, 2), reduce="add"))
table.sample("scatter.value_reduce", call(x, 1, index, 1.5, reduce="add"))
table.sample("scatter_add", call(x, 1, ints([[0, 0], [2, 2]]), real(2, 2)))
table.sample("scatter_reduce.two", *[call(apart(3, 4), 0, ints([[0, 1, 2, 0], [1, 1, 0, 0]]), positive(2, 4), how, include_self=with_self)
                                     for how in ("sum", "mean", "prod", "amax", "amin") for with_self in (True, False)])
table.sample("index_reduce", *[call(apart(3, 4), 0, ints(0, 2, 0), positive(3, 4), how, include_self=with_self)
                               for how in ("mean", "prod", "amax", "amin") for with_self in (True, False)])
