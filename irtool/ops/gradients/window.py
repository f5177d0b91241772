"""Of this family nothing has a gradient, and why."""
from __future__ import annotations

from irtool.ops.kernels.window import table

table.no_gradient("made of sizes and numbers alone")
