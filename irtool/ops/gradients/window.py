"""Of this family nothing has a gradient, and why."""
from irtool.ops.kernels.window import table

table.no_gradient("made of sizes and numbers alone")
