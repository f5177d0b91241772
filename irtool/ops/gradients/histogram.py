"""Of this family nothing has a gradient, and why."""
from __future__ import annotations

from irtool.ops.kernels.histogram import table

table.no_gradient("counts do not move with what is counted")
