"""Of this family nothing has a gradient, and why."""
from irtool.ops.kernels.histogram import table

table.no_gradient("counts do not move with what is counted")
