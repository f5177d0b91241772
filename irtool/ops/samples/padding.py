"""Samples of borders."""
from irtool.ops.kernels.padding import table
from irtool.ops.samples.draw import call, complexes, fixed, real

SIZES = {1: (2, 5), 2: (1, 3, 4), 3: (1, 3, 3, 4)}
PAD = {1: [2, 1], 2: [1, 1, 2, 0], 3: [1, 2, 0, 1, 1, 0]}
PADDED = {1: (2, 8), 2: (1, 5, 6), 3: (1, 4, 4, 7)}

table.sample("constant_pad_nd", call(real(2, 3), [1, -1], 0.5), call(complexes(2, 3), [1, 0, 2, 1]))
table.sample("pad", call(real(2, 3, 4), [1, 2], "reflect"), call(real(2, 3, 4), [1, 1, 2, 0], "circular"),
             call(real(3, 4), [1, -2], "constant", 2.0),
             call(real(2, 3, 4), [1, 2], "replicate"))
table.sample("_pad_enum", *[call(real(2, 3, 4), [1, 2], mode) for mode in (0, 1, 2, 3)])
table.sample("_pad_circular", call(real(1, 3, 4), [1, 2]), call(real(1, 1, 3, 4), [1, 2, 1, 0]))
for n in (1, 2, 3):
    table.sample(f"reflection_pad{n}d replication_pad{n}d", call(real(*SIZES[n]), PAD[n]))
    table.sample(f"reflection_pad{n}d_backward replication_pad{n}d_backward", call(real(*PADDED[n]), fixed(real(*SIZES[n])), PAD[n]))
