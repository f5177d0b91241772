"""Of this family nothing has a gradient, and why."""
from irtool.ops.kernels.factory import table

table.no_gradient("made of sizes and numbers alone")
